"""The result of `inference` and the size of its prompts. Both the declaration and the request use them."""

from __future__ import annotations

from typing import TypedDict

from albert_tools.engine.model.limits import MiB

#: Bytes of a prompt.
MAX_PROMPT = 8 * MiB


class Usage(TypedDict):
    """Tokens used; `estimated` if the provider did not count them."""

    prompt_tokens: int
    completion_tokens: int
    estimated: bool


class Inference(TypedDict):
    """Result of `inference`."""

    text: str
    text_hash: str
    finish_reason: str | None
    usage: Usage
    cost: float | None
    provider: str
    model: str
    max_tokens: int
    prompt_hash: str
    system_hash: str | None

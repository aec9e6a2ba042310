"""A language model as the chat uses it, and the messages that it gets. Neither depends on a provider.

`OpenAIModel` and `AnthropicModel` implement `Model` with the providers' own packages.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from albert_tools.builtins.models.providers import Price


class Requested(Struct, frozen=True):
    """A call that a model requests. `arguments` is the model's JSON text, which may be invalid."""

    id: str
    name: str
    arguments: str


class Returned(Struct, frozen=True):
    """The result of the call `id`, as JSON text."""

    id: str
    name: str
    text: str
    ok: bool = True


class Message(Struct, omit_defaults=True):
    """A message of a conversation. `calls` belong to the role ``assistant``, `results` to the role ``tools``."""

    role: Literal["user", "assistant", "tools"]
    text: str = ""
    calls: list[Requested] = field(default_factory=list)
    results: list[Returned] = field(default_factory=list)


class Ended(Struct, frozen=True):
    """The end of an answer: the tokens used, None if the provider did not count them, and the provider's finish reason."""

    usage: tuple[int, int] | None = None
    reason: str = ""


class Model(Protocol):
    """A model of a provider. `specs` is the form of its tools, for `ToolService.tool_specs`."""

    @property
    def name(self) -> str: ...

    @property
    def specs(self) -> Literal["openai", "anthropic"]: ...

    @property
    def price(self) -> Price | None: ...

    def answer(
        self, system: str, messages: Sequence[Message], tools: list[dict[str, Any]]
    ) -> AsyncGenerator[str | Requested | Ended, None]:
        """The answer to the messages: pieces of its text as they arrive, complete calls, and at last `Ended`.

        Raises:
            Failure: `network_error`, `timeout`, `rate_limited`, `service_error`, `not_found`, `too_large`.
        """
        ...


def merged(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a provider, without empty ones and with neighbouring texts of the user joined. Some models insist on this."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        if not message["content"] and not message.get("tool_calls"):
            continue
        if joined and joined[-1]["role"] == message["role"] == "user":
            before, content = joined[-1]["content"], message["content"]
            joined[-1] = {
                "role": "user",
                "content": f"{before}\n\n{content}" if isinstance(before, str) else before + content,
            }
        else:
            joined.append(message)
    return joined

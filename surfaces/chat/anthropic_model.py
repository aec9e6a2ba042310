"""A model behind Anthropic's messages, by the package `anthropic`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Literal

from anthropic import AsyncAnthropic

from albert_tools.builtins.models.providers import Price
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.chat.connection import failures, http_client
from albert_tools.surfaces.chat.model import Ended, Message, Requested, merged

#: Tokens of one answer, a required parameter. Every current model allows this many.
MAX_TOKENS = 8192


class AnthropicModel:
    """A model of a provider that implements Anthropic's messages.

    Args:
        name: The provider's name of the model.
        base_url, key: The provider and its key. Without both, `anthropic` takes them from ``ANTHROPIC_API_KEY`` and
            ``ANTHROPIC_BASE_URL``.
        price: The price, for a bound of cost.
        clean: Removes the key from a text.
    """

    specs: Literal["anthropic"] = "anthropic"

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        key: str | None = None,
        *,
        price: Price | None = None,
        clean: Callable[[str], str] = str,
    ) -> None:
        self.name, self.price, self._clean = name, price, clean
        if base_url is not None:
            # Without this, a key from the environment would be sent to another host. The package adds "/v1" itself.
            base_url, key = base_url.rstrip("/").removesuffix("/v1"), key or "none"
        self._client = AsyncAnthropic(base_url=base_url, api_key=key, http_client=http_client())
        if not (self._client.api_key or self._client.auth_token or self._client.credentials):
            hint = "set ANTHROPIC_API_KEY, or configure a provider"
            raise Failure("invalid_arguments", "no key for Anthropic is given", hint=hint)

    async def answer(
        self, system: str, messages: Sequence[Message], tools: list[dict[str, Any]]
    ) -> AsyncGenerator[str | Requested | Ended, None]:
        """As `Model.answer`."""
        # The tools and the system prompt are the same in each request, so the provider may cache them.
        cached = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        body: dict[str, Any] = {
            "model": self.name,
            "max_tokens": MAX_TOKENS,
            "system": cached,
            "messages": _sent(messages),
        }
        if tools:
            body["tools"] = tools
        call: tuple[str, str, list[str]] | None = None
        prompt, completion, reason = 0, 0, ""
        with failures(self.name, self._clean):
            stream = await self._client.messages.create(**body, stream=True)
            async with stream:
                async for event in stream:
                    if event.type == "message_start":
                        used = event.message.usage
                        prompt = used.input_tokens
                        prompt += (used.cache_creation_input_tokens or 0) + (used.cache_read_input_tokens or 0)
                    elif event.type == "content_block_start" and event.content_block.type == "tool_use":
                        call = (event.content_block.id, event.content_block.name, [])
                    elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                        yield event.delta.text
                    elif (
                        event.type == "content_block_delta"
                        and event.delta.type == "input_json_delta"
                        and call is not None
                    ):
                        call[2].append(event.delta.partial_json)
                    elif event.type == "content_block_stop" and call is not None:
                        yield Requested(call[0], call[1], "".join(call[2]))
                        call = None
                    elif event.type == "message_delta":
                        completion, reason = event.usage.output_tokens, event.delta.stop_reason or reason
            if not reason:
                raise Failure("network_error", "the provider's answer was cut off", hint="ask again", retryable=True)
            yield Ended((prompt, completion) if prompt + completion else None, reason)


def _sent(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages in Anthropic's form."""
    converted: list[dict[str, Any]] = []
    for message in messages:
        content: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": r.id, "content": r.text, "is_error": not r.ok}
            for r in message.results
        ]
        if message.text.strip():
            content.append({"type": "text", "text": message.text.rstrip()})
        content += [
            {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in message.calls
        ]
        converted.append({"role": "assistant" if message.role == "assistant" else "user", "content": content})
    return merged(converted)

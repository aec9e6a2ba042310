"""A model behind OpenAI's chat completions, which most providers and local servers implement, by the package `openai`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Literal

from openai import AsyncOpenAI, OpenAIError
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from albert_tools.builtins.models.providers import Price
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.chat.connection import failures, http_client
from albert_tools.surfaces.chat.model import Ended, Message, Requested, merged


class OpenAIModel:
    """A model of an OpenAI-compatible provider.

    Args:
        name: The provider's name of the model.
        base_url, key: The provider and its key. Without both, `openai` takes them from ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``.
        price: The price, for a bound of cost.
        stream: Whether the provider can stream.
        clean: Removes the key from a text.
    """

    specs: Literal["openai"] = "openai"

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        key: str | None = None,
        *,
        price: Price | None = None,
        stream: bool = True,
        clean: Callable[[str], str] = str,
    ) -> None:
        self.name, self.price = name, price
        self._stream, self._clean = stream, clean
        if base_url is not None and key is None:
            # Without this, a key from the environment would be sent to another host.
            key = "none"
        try:
            self._client = AsyncOpenAI(base_url=base_url, api_key=key, http_client=http_client())
        except OpenAIError as error:
            hint = "set OPENAI_API_KEY, or configure a provider"
            raise Failure("invalid_arguments", "no key for OpenAI is given", hint=hint) from error

    async def answer(
        self, system: str, messages: Sequence[Message], tools: list[dict[str, Any]]
    ) -> AsyncGenerator[str | Requested | Ended, None]:
        """As `Model.answer`."""
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": "system", "content": system}, *_sent(messages)],
        }
        if tools:
            body["tools"] = tools
        with failures(self.name, self._clean):
            async with aclosing(self._streamed(body) if self._stream else self._whole(body)) as parts:
                async for part in parts:
                    yield part

    async def _streamed(self, body: dict[str, Any]) -> AsyncGenerator[str | Requested | Ended, None]:
        call: _Partial | None = None
        usage, reason = None, ""
        stream = await self._client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
        async with stream:
            async for chunk in stream:
                if chunk.usage is not None:
                    usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
                for choice in chunk.choices[:1]:
                    reason = choice.finish_reason or reason
                    if choice.delta.content:
                        yield choice.delta.content
                    for part in choice.delta.tool_calls or ():
                        if call is None or call.ends_before(part):
                            if call is not None:
                                yield call.whole()
                            call = _Partial(part.index)
                        call.add(part)
        if not reason:
            raise Failure("network_error", "the provider's answer was cut off", hint="ask again", retryable=True)
        if call is not None:
            yield call.whole()
        yield Ended(usage, reason)

    async def _whole(self, body: dict[str, Any]) -> AsyncGenerator[str | Requested | Ended, None]:
        completion = await self._client.chat.completions.create(**body)
        choice, usage = completion.choices[0], completion.usage
        if choice.message.content:
            yield choice.message.content
        for call in choice.message.tool_calls or ():
            if call.type == "function":
                yield Requested(call.id, call.function.name, call.function.arguments)
        yield Ended(
            None if usage is None else (usage.prompt_tokens, usage.completion_tokens), choice.finish_reason or ""
        )


class _Partial:
    """A call that is arriving. Calls arrive one after the other."""

    def __init__(self, index: int) -> None:
        self._index, self._id, self._name = index, "", ""
        self._arguments: list[str] = []

    def ends_before(self, part: ChoiceDeltaToolCall) -> bool:
        """Whether a part belongs to the next call. Some servers number all calls 0 and change only the id."""
        return part.index != self._index or bool(part.id and self._id and part.id != self._id)

    def add(self, part: ChoiceDeltaToolCall) -> None:
        self._id = self._id or part.id or ""
        if part.function is not None:
            self._name = self._name or part.function.name or ""
            self._arguments.append(part.function.arguments or "")

    def whole(self) -> Requested:
        return Requested(self._id, self._name, "".join(self._arguments))


def _sent(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages in OpenAI's form."""
    converted: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tools":
            converted += [{"role": "tool", "tool_call_id": r.id, "content": r.text} for r in message.results]
            converted.append({"role": "user", "content": message.text})
            continue
        sent: dict[str, Any] = {"role": message.role, "content": message.text}
        if message.calls:
            sent["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in message.calls
            ]
        converted.append(sent)
    return merged(converted)

"""One request to a model: its body, its budget, its answer, and the tokens that it used.

This module is separate from the declaration (`inference`), so listing the tools does not import it.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from albert_tools.builtins.models.answers import Completion, Events, believable, estimated, refused
from albert_tools.builtins.models.inference_result import MAX_PROMPT, Inference
from albert_tools.builtins.models.providers import Provider, provider_of
from albert_tools.builtins.text_encoding import decode, encode
from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.protocols import CallContext, ContentStore

if TYPE_CHECKING:
    from albert_tools.builtins.net.client import Response

#: Bytes that are read of an error, and bytes that are read of an answer that is not streamed.
MAX_ERROR, MAX_WHOLE = 64 * 1024, 32 * MiB
#: Characters of a partial answer in a failure.
MAX_PARTIAL = 64 * 1024


class Request(NamedTuple):
    """The arguments of a call of `inference`."""

    provider: str
    model: str
    prompt: str | None
    prompt_hash: str | None
    max_tokens: int
    temperature: float | None
    system: str | None
    system_hash: str | None

    async def answer(self, context: CallContext) -> Inference:
        """Send the request and return the result. Raises the same failures as `inference`."""
        provider = provider_of(context.settings, self.provider, self.model)
        contents = context.contents
        if contents is None:
            raise Failure("not_found", "this service has no content store, so prompts can't be stored")
        prompt = await _text(contents, self.prompt, self.prompt_hash, "the prompt")
        if prompt is None:
            raise refused_argument("prompt", "give either prompt or prompt_hash", rule="required")
        system = await _text(contents, self.system or None, self.system_hash or None, "the system prompt")
        texts = [each for each in (system, prompt) if each is not None]
        sent = "".join(text for text, _ in texts)
        limit = _affordable(context, provider, self.model, self.max_tokens, estimated(sent))
        answer = Completion()
        facts = {
            "provider": self.provider,
            "model": self.model,
            "prompt_hash": prompt[1],
            "system_hash": None if system is None else system[1],
        }
        body = self._body(provider, None if system is None else system[0], prompt[0], limit)
        await _send(context, provider, body, answer, facts, sent)
        prompt_tokens, completion_tokens, guessed = _usage(answer, sent)
        price = provider.price_of(self.model)
        return {
            "text": answer.text,
            "text_hash": await asyncio.to_thread(contents.put, answer.text.encode()),
            "finish_reason": answer.finish_reason,
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "estimated": guessed,
            },
            "cost": None if price is None else price.of(prompt_tokens, completion_tokens),
            "provider": self.provider,
            "model": self.model,
            "max_tokens": limit,
            "prompt_hash": prompt[1],
            "system_hash": None if system is None else system[1],
        }

    def _body(self, provider: Provider, system: str | None, prompt: str, limit: int) -> dict[str, Any]:
        first = [] if system is None else [{"role": "system", "content": system}]
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*first, {"role": "user", "content": prompt}],
            provider.max_tokens_as: limit,
        }
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if provider.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


async def _send(
    context: CallContext, provider: Provider, body: dict[str, Any], answer: Completion, facts: dict[str, Any], sent: str
) -> None:
    """Send the request and read the answer. The used tokens are recorded, also after a failure."""
    from albert_tools.builtins.net.client import Client, HttpRequest

    headers: dict[str, Any] = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    if provider.api_key is not None:
        headers["authorization"] = {"secret": provider.api_key.secret, "prefix": "Bearer "}
    data = json.dumps(body, ensure_ascii=False).encode()
    request = HttpRequest("POST", f"{provider.base_url.rstrip('/')}/chat/completions", headers, data, by_owner=True)
    # The provider may have used tokens although no answer was received.
    may_have_run = False
    try:
        async with context.keep(Client).stream(context, request) as response:
            await _receive(response, answer, body["model"])
    except asyncio.CancelledError:
        may_have_run = True
        raise
    except Failure as failure:
        may_have_run = failure.code in ("timeout", "network_error") and not failure.retryable
        if answer.begun and failure.code in ("timeout", "network_error", "service_error"):
            failure.details = {**failure.details, "text": answer.text[:MAX_PARTIAL]}
            failure.hint = failure.hint or "the answer is incomplete; ask again, perhaps for a shorter one"
        raise
    finally:
        if answer.begun or may_have_run:
            prompt_tokens, completion_tokens, guessed = _usage(answer, sent)
            price = provider.price_of(body["model"])
            context.effect(
                "network",
                **facts,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                model_tokens=prompt_tokens + completion_tokens,
                model_cost=None if price is None else price.of(prompt_tokens, completion_tokens),
                estimated=guessed,
                finish_reason=answer.finish_reason,
                answer_hash=_hash(answer.text) if answer.over else None,
            )


async def _receive(response: Response, answer: Completion, model: str) -> None:
    """Read the answer as it arrives.

    Raises:
        Failure: the provider reported an error, or the answer is invalid or incomplete.
    """
    from albert_tools.builtins.net.bodies import unpacked

    packing = response.headers.get("content-encoding", "")
    if response.status != 200:
        body, _ = await unpacked(response.pieces(), packing, MAX_ERROR)
        raise refused(response.status, body, response.retry_after_ms, model, response.secrets.out_of_text)
    answer.begun, answer.clean = True, response.secrets.out_of_text
    try:
        await _read(response, packing, answer)
    finally:
        # A partial answer is reported too.
        answer.finish()
    if not answer.over and answer.finish_reason is None:
        raise Failure("network_error", "the provider's answer was cut off")
    answer.over = True


async def _read(response: Response, packing: str, answer: Completion) -> None:
    from albert_tools.builtins.net.bodies import unpacked

    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream" or packing.strip().lower() not in ("", "identity"):
        body, truncated = await unpacked(response.pieces(), packing, MAX_WHOLE)
        if truncated:
            raise Failure("too_large", f"the provider sent more than {MAX_WHOLE:,} bytes")
        if kind != "text/event-stream":
            answer.whole(body)
        else:
            _events(Events(), body, answer)
    else:
        events = Events()
        async for piece in response.pieces():
            _events(events, piece, answer)
            if answer.over:
                break


def _events(events: Events, piece: bytes, answer: Completion) -> None:
    for data in events.of(piece):
        answer.event(data)


def _usage(answer: Completion, sent: str) -> tuple[int, int, bool]:
    """Tokens of prompt and answer, and whether they are estimated. They are estimated if the count is missing or impossibly low."""
    prompt_tokens, completion_tokens = answer.usage or (0, 0)
    if answer.usage is not None and believable(prompt_tokens, sent) and believable(completion_tokens, answer.text):
        return prompt_tokens, completion_tokens, False
    return max(prompt_tokens, estimated(sent)), max(completion_tokens, estimated(answer.text)), True


def _affordable(context: CallContext, provider: Provider, model: str, wanted: int, prompt_tokens: int) -> int:
    """The number of tokens to request: at most the rest of the budget after the prompt.

    Raises:
        Failure: `budget_exceeded`.
    """
    tokens, cost, price = context.left("model_tokens"), context.left("model_cost"), provider.price_of(model)
    most = float(wanted)
    if tokens != float("inf"):
        most = min(most, tokens - prompt_tokens)
        if most < 1:
            raise _budget_exceeded(
                "model_tokens", f"the prompt has about {prompt_tokens:,} tokens, and the budget has {tokens:,.0f} left"
            )
    if cost != float("inf"):
        if price is None:
            raise _budget_exceeded(
                "model_cost", f"{model[:100]!r} has no price, so its cost can't be charged to a budget"
            )
        left = cost - price.of(prompt_tokens, 0)
        if price.completion:
            most = min(most, left * 1_000_000 / price.completion)
        if left < 0 or most < 1:
            raise _budget_exceeded(
                "model_cost", f"the budget has {cost:g} left, too little for the prompt and an answer"
            )
    return int(most)


def _budget_exceeded(unit: str, message: str) -> Failure:
    return Failure(
        "budget_exceeded",
        message,
        hint="use a session with a larger budget",
        rule=f"lease.budget.{unit}",
        details={"unit": unit},
    )


async def _text(contents: ContentStore, text: str | None, ref: str | None, what: str) -> tuple[str, str] | None:
    """Store a prompt. Returns the text and its hash, or None if there is no prompt.

    Raises:
        Failure: `too_large`, `encoding_error`, and the failures of `ContentStore.get`.
    """
    if text is not None:
        return text, await asyncio.to_thread(contents.put, _bounded(encode(text, what), what))
    if ref is None:
        return None
    name = ref if ref.startswith("b3:") else f"b3:{ref}"

    def load() -> bytes:
        if contents.size(name) > MAX_PROMPT:
            raise _too_long(what)
        return contents.get(name)

    return decode(await asyncio.to_thread(load), "utf-8", what), name


def _bounded(data: bytes, what: str) -> bytes:
    if len(data) > MAX_PROMPT:
        raise _too_long(what)
    return data


def _too_long(what: str) -> Failure:
    return Failure("too_large", f"{what} has more than {MAX_PROMPT:,} bytes", hint="shorten it")


def _hash(text: str) -> str:
    from blake3 import blake3

    return f"b3:{blake3(text.encode()).hexdigest()}"

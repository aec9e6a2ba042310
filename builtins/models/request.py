"""One question to a model: what is sent, what it may come to, what it has used, and what comes back.

Apart from its declaration (`inference`), so that whoever only lists tools loads none of it.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from albert_tools.builtins.models.answers import Completion, Events, believable, estimated, refused
from albert_tools.builtins.models.inference_result import MAX_PROMPT, Inference
from albert_tools.builtins.models.providers import Provider, provider_of
from albert_tools.builtins.text_encoding import decode, encode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.protocols import CallContext, ContentStore

if TYPE_CHECKING:
    from albert_tools.builtins.net.client import Response

#: Bytes of an error that are looked at, and of an answer that comes all at once.
MAX_ERROR, MAX_WHOLE = 64 * 1024, 32 * MiB
#: Characters of half an answer that a failure holds.
MAX_PARTIAL = 64 * 1024


class Asking(NamedTuple):
    """The arguments of a call."""

    provider: str
    model: str
    prompt: str | None
    prompt_hash: str | None
    max_tokens: int
    temperature: float | None
    system: str | None
    system_hash: str | None

    async def answer(self, context: CallContext) -> Inference:
        """Ask.

        Raises:
            Failure: as `inference` says.
        """
        whom = provider_of(context.settings, self.provider, self.model)
        contents = context.contents
        if contents is None:
            raise Failure("not_found", "nothing is kept here, so no prompt can be recorded by its hash")
        prompt = await _text(contents, self.prompt, self.prompt_hash, "the prompt")
        if prompt is None:
            message = "give prompt or prompt_hash: what is to be asked?"
            violations = [{"field": "prompt", "rule": "required", "message": f"prompt: {message}"}]
            raise Failure("invalid_arguments", message, details={"violations": violations})
        system = await _text(contents, self.system or None, self.system_hash or None, "the system prompt")
        texts = [each for each in (system, prompt) if each is not None]
        said = "".join(text for text, _ in texts)
        most = _affordable(context, whom, self.model, self.max_tokens, estimated(said))
        answer = Completion()
        facts = {
            "provider": self.provider,
            "model": self.model,
            "prompt_hash": prompt[1],
            "system_hash": None if system is None else system[1],
        }
        body = self._body(whom, None if system is None else system[0], prompt[0], most)
        await _ask(context, whom, body, answer, facts, said)
        prompt_tokens, completion_tokens, guessed = _usage(answer, said)
        price = whom.price_of(self.model)
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
            "max_tokens": most,
            "prompt_hash": prompt[1],
            "system_hash": None if system is None else system[1],
        }

    def _body(self, whom: Provider, system: str | None, prompt: str, most: int) -> dict[str, Any]:
        before = [] if system is None else [{"role": "system", "content": system}]
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*before, {"role": "user", "content": prompt}],
            whom.max_tokens_as: most,
        }
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if whom.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


async def _ask(
    context: CallContext, whom: Provider, body: dict[str, Any], answer: Completion, facts: dict[str, Any], said: str
) -> None:
    """Send the request, and take the answer in; what was used is recorded however it ends."""
    from albert_tools.builtins.net.client import Call, Client

    headers: dict[str, Any] = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    if whom.api_key is not None:
        headers["authorization"] = {"secret": whom.api_key, "prefix": "Bearer "}
    data = json.dumps(body, ensure_ascii=False).encode()
    call = Call("POST", f"{whom.base_url}/chat/completions", headers, data, by_owner=True)
    unknown = False
    try:
        async with context.keep(Client).stream(context, call) as response:
            await _taken(response, answer, body["model"])
    except asyncio.CancelledError:
        unknown = True
        raise
    except Failure as failure:
        # Where something was sent and no answer came, the provider may have worked all the same.
        unknown = failure.code in ("timeout", "network_error") and not failure.retryable
        if answer.begun and failure.code in ("timeout", "network_error", "service_error"):
            failure.details = {**failure.details, "text": answer.text[:MAX_PARTIAL]}
            failure.hint = failure.hint or "half an answer is not an answer; ask again, perhaps for less"
        raise
    finally:
        if answer.begun or unknown:
            prompt_tokens, completion_tokens, guessed = _usage(answer, said)
            price = whom.price_of(body["model"])
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


async def _taken(response: Response, answer: Completion, model: str) -> None:
    """Read the answer, as it comes.

    Raises:
        Failure: what the provider says went wrong, or that it can't be read, or was cut.
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
        # Half an answer is told, too.
        answer.finish()
    if not answer.over and answer.finish_reason is None:
        raise Failure("network_error", "the provider's answer was cut short")
    answer.over = True


async def _read(response: Response, packing: str, answer: Completion) -> None:
    from albert_tools.builtins.net.bodies import unpacked

    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream" or packing.strip().lower() not in ("", "identity"):
        body, more = await unpacked(response.pieces(), packing, MAX_WHOLE)
        if more:
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


def _usage(answer: Completion, said: str) -> tuple[int, int, bool]:
    """Tokens of prompt and answer, and whether they are estimated: where nobody counted, or nobody can have counted so few."""
    prompt_tokens, completion_tokens = answer.usage or (0, 0)
    if answer.usage is not None and believable(prompt_tokens, said) and believable(completion_tokens, answer.text):
        return prompt_tokens, completion_tokens, False
    return max(prompt_tokens, estimated(said)), max(completion_tokens, estimated(answer.text)), True


def _affordable(context: CallContext, whom: Provider, model: str, wanted: int, prompt_tokens: int) -> int:
    """The tokens that can be asked for: no more than the budget has left when the prompt is paid for.

    Raises:
        Failure: `budget_exceeded`.
    """
    tokens, cost, price = context.left("model_tokens"), context.left("model_cost"), whom.price_of(model)
    most = float(wanted)
    if tokens != float("inf"):
        most = min(most, tokens - prompt_tokens)
        if most < 1:
            raise _over(
                "model_tokens", f"the prompt alone has about {prompt_tokens:,} tokens, and {tokens:,.0f} are left"
            )
    if cost != float("inf"):
        if price is None:
            raise _over("model_cost", f"nobody has said what {model[:100]!r} costs, so it can't be taken from a budget")
        left = cost - price.of(prompt_tokens, 0)
        if price.completion:
            most = min(most, left * 1_000_000 / price.completion)
        if left < 0 or most < 1:
            raise _over("model_cost", f"what is left, {cost:g}, doesn't pay for the prompt and an answer")
    return int(most)


def _over(unit: str, message: str) -> Failure:
    return Failure(
        "budget_exceeded",
        message,
        hint="what is left to do needs a session with a larger budget",
        rule=f"lease.budget.{unit}",
        details={"unit": unit},
    )


async def _text(contents: ContentStore, text: str | None, ref: str | None, what: str) -> tuple[str, str] | None:
    """A prompt and its hash, kept; None where there is none.

    Raises:
        Failure: `too_large`, `encoding_error`; as `ContentStore.get`.
    """
    if text is not None:
        return text, await asyncio.to_thread(contents.put, _bounded(encode(text, what), what))
    if ref is None:
        return None
    named = ref if ref.startswith("b3:") else f"b3:{ref}"

    def load() -> bytes:
        if contents.size(named) > MAX_PROMPT:
            raise _too_long(what)
        return contents.get(named)

    return decode(await asyncio.to_thread(load), "utf-8", what), named


def _bounded(data: bytes, what: str) -> bytes:
    if len(data) > MAX_PROMPT:
        raise _too_long(what)
    return data


def _too_long(what: str) -> Failure:
    return Failure("too_large", f"{what} has more than {MAX_PROMPT:,} bytes", hint="give a part of it")


def _hash(text: str) -> str:
    from blake3 import blake3

    return f"b3:{blake3(text.encode()).hexdigest()}"

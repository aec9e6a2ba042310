"""`ChatSession`: a model's answers, the calls that it makes, and their results, until it answers without a call.

Each call goes to `ToolService.invoke` in the chat's own session, so the rules, approvals and the record apply to it as to any other
call. This module only decides how often the model may go on: see `Limits`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from msgspec import Struct

from albert_tools.builtins.models.answers import MAX_COUNTED, estimated
from albert_tools.engine.agent.invocation_parser import ToolInvocationParser
from albert_tools.engine.agent.offers import Offer
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.service import ToolService
from albert_tools.surfaces.chat.conversation import CANCELLED, UNKNOWN, Conversation, Saved
from albert_tools.surfaces.chat.model import Ended, Message, Model, Requested, Returned
from albert_tools.surfaces.chat.protocols import Calls, Made, NativeCalls, Part, TextCalls

#: Characters of one answer. What a model may write in one answer is much less.
MAX_ANSWER = 4 * MiB
#: Characters of a result that the model gets, and of the text that a tool printed. Large outputs have a handle, see `read_result`.
MAX_RESULT, MAX_LOG = 64 * 1024, 4096
#: The most calls that run at the same time.
MAX_TOGETHER = 8
#: Finish reasons of a complete answer.
_COMPLETE = frozenset({"stop", "end_turn", "tool_calls", "tool_use", "function_call", "stop_sequence"})


class Limits(Struct, frozen=True):
    """How long a model may go on.

    Attributes:
        rounds: The most answers for one message of the user.
        tokens: The most tokens of the whole conversation, prompts included. None means unlimited.
        cost: The most that the whole conversation may cost, in the currency of the model's price. None means unlimited.
        failures: How often the same call, with the same arguments, may fail for one message of the user.
    """

    rounds: int = 50
    tokens: int | None = None
    cost: float | None = None
    failures: int = 3


class Text(Struct, frozen=True):
    """An event: a piece of the model's text."""

    text: str


class Began(Struct, frozen=True):
    """An event: a call begins."""

    id: str
    name: str
    arguments: Mapping[str, Any]


class Printed(Struct, frozen=True):
    """An event: the program of a call has printed a text."""

    id: str
    text: str


class Finished(Struct, frozen=True):
    """An event: a call has ended."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    result: ToolResult


class Remark(Struct, frozen=True):
    """An event: the chat says something about the model's answer, such as a mistake in a call."""

    text: str


Event = Text | Began | Printed | Finished | Remark


class Answer(Struct, frozen=True):
    """The end of the model's turn: its last text, and why the chat has stopped the model (empty if it has not)."""

    text: str
    stopped: str = ""


class ChatSession:
    """A conversation between a user and a model that calls tools. Use it as an async context manager::

        async with ToolService.open() as service, ChatSession(service, OpenAIModel("gpt-5")) as chat:
            answer = await chat.ask("How many words does notes.md have?")

    Args:
        service: The service whose tools the model calls.
        model: The model.
        session: The token of the session that the calls are made in. By default one for a day is opened, and ended at the end.
        saved: The saved conversation to continue; by default a new one that is not saved.
        limits: How long the model may go on.
        listen: Called with each event. It must not block.
    """

    def __init__(
        self,
        service: ToolService,
        model: Model,
        *,
        session: str | None = None,
        saved: Saved | None = None,
        limits: Limits | None = None,
        listen: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self.service, self.model = service, model
        self.limits = limits or Limits()
        self.conversation = saved.conversation if saved is not None else Conversation("")
        self._saved, self._listen = saved, listen
        self._token, self._own = session, ""
        #: The number of the user's message.
        self._turn = ""
        if self.limits.cost is not None and model.price is None:
            raise Failure(
                "invalid_arguments", f"the model {model.name[:100]!r} has no price, so its cost can't be limited"
            )

    async def __aenter__(self) -> ChatSession:
        if self._token is None:
            opened, self._token = self.service.open_session(f"chat with {self.model.name[:200]}")
            self._own = opened.id
        if self.conversation.unfinished(UNKNOWN):
            self._save()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._own:
            self.service.sessions.end(self._own)

    async def offered(self) -> list[Offer]:
        """The tools that the model is offered."""
        return await self.service.offered(session=self._token)

    async def ask(self, text: str) -> Answer:
        """Send a message of the user, and make the calls of the model until it answers without a call.

        If this is cancelled, the calls under way are cancelled too, and the conversation says so. It can be continued.

        Raises:
            Failure: The provider failed, see `Model.answer`; or the conversation can't be saved. The conversation can be continued.
        """
        assert self._token is not None, "write `async with ChatSession(…) as chat:`"
        if ended := self._take_results():
            text = f"[the chat program] These calls have ended meanwhile; their results are above: {ended}.\n\n{text}"
        self._append(Message("user", text))
        self._turn = str(sum(message.role == "user" for message in self.conversation.messages))
        # The tools that are offered may have changed since the last message.
        offers = await self.offered()
        native = self.conversation.protocol == "native"
        calls = NativeCalls(offers, self.model.specs) if native else TextCalls(offers)
        system = await self.service.guide(session=self._token) + calls.prompt
        said, failed, mistakes = "", Counter[str](), 0
        for _ in range(self.limits.rounds):
            if exceeded := self._exceeded():
                return Answer(said, exceeded)
            said, made, wrong = await self._answer(system, calls)
            if not made and not wrong:
                return Answer(said)
            results = await self._make(made, wrong, calls)
            mistakes = mistakes + 1 if wrong else 0
            if any(result.ok for _, result in results):
                failed.clear()
            failed.update({f"{r.name} {r.arguments}" for r, result in results if not result.ok})
            if max(mistakes, *failed.values(), 0) >= self.limits.failures:
                return Answer(said, f"the same call has failed {self.limits.failures} times")
        return Answer(said, f"the model has made calls in {self.limits.rounds} answers")

    def _take_results(self) -> str:
        """Replace the answer "suspended" of each call whose run has ended meanwhile, such as by ``approvals answer --resume``.

        Returns:
            The names of these calls.
        """
        ended = []
        for message in self.conversation.messages:
            for place, result in enumerate(message.results):
                if (run := _waiting_run(result)) is None:
                    continue
                with suppress(Failure):
                    tool_result = self.service.runs.recorded(run)
                    message.results[place] = Returned(result.id, result.name, result_text(tool_result), tool_result.ok)
                    ended.append(result.name)
        return ", ".join(ended)

    def _exceeded(self) -> str:
        """Which limit of the conversation is used up; empty if none is."""
        tokens, cost = self.limits.tokens, self.limits.cost
        if tokens is not None and self.conversation.tokens >= tokens:
            return f"the conversation has used {self.conversation.tokens:,} of {tokens:,} tokens"
        if cost is not None and self.conversation.cost >= cost:
            return f"the conversation has cost {self.conversation.cost:.4g} of {cost:.4g}"
        return ""

    async def _answer(self, system: str, calls: Calls) -> tuple[str, list[tuple[Requested, Made]], list[Failure]]:
        """Receive one answer and save it. Returns its text, its calls, and its mistakes."""
        reader = calls.reader({call.id for message in self.conversation.messages for call in message.calls})
        messages = calls.sent(self.conversation.messages)
        raw, shown, wrong, ended = list[str](), list[str](), list[Failure](), Ended()
        made: list[tuple[Requested, Made]] = []

        def take(parts: Iterable[Part]) -> None:
            for part in parts:
                if isinstance(part, str):
                    shown.append(part)
                    self._listen(Text(part))
                elif isinstance(part, Failure):
                    wrong.append(part)
                    self._listen(Remark(part.message))
                else:
                    made.append(part)

        size, complete = 0, False
        try:
            async with aclosing(self.model.answer(system, messages, calls.tools)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Ended):
                        ended = piece
                        continue
                    if isinstance(piece, str):
                        # A server may split a character.
                        piece = piece.encode("utf-8", "replace").decode()
                        raw.append(piece)
                    size += len(piece if isinstance(piece, str) else piece.arguments)
                    take(reader.read(piece))
                    if reader.stopped or size > MAX_ANSWER:
                        break
            take(reader.close())
            complete = True
        finally:
            if complete or size:
                # A provider that has refused the request has used nothing.
                self._charge(ended, [system, json.dumps(calls.tools)], messages, "".join(raw))
            if not complete and "".join(shown).strip():
                self._append(Message("assistant", f"{''.join(shown)}\n\n[This answer was interrupted.]"))
        if size > MAX_ANSWER:
            self._listen(Remark(f"the answer has more than {MAX_ANSWER:,} characters, and was cut"))
        if ended.reason and ended.reason not in _COMPLETE:
            self._listen(Remark(f"the provider ended the answer early: {ended.reason[:100]}"))
        text = "".join(raw)[: reader.end]
        if isinstance(calls, NativeCalls) and not made and _has_call(text):
            # It is not made: the text may be a quotation of a file or a page.
            why = "the model wrote a call into its text, and it was not made"
            self._listen(Remark(f"{why}; if it does so again, begin a new chat with --protocol text"))
        self._append(Message("assistant", text, [requested for requested, _ in made]))
        return "".join(shown), made, wrong

    def _charge(self, ended: Ended, prompt: list[str], messages: Sequence[Message], text: str) -> None:
        """Add the tokens of an answer. They are estimated if the provider has not counted them."""
        if ended.usage is None:
            sent = [*prompt, *(m.text for m in messages), *(r.text for m in messages for r in m.results)]
            counted = sum(map(estimated, sent)), estimated(text)
        else:
            counted = max(0, min(ended.usage[0], MAX_COUNTED)), max(0, min(ended.usage[1], MAX_COUNTED))
        self.conversation.tokens += sum(counted)
        if self.model.price is not None:
            self.conversation.cost += self.model.price.of(*counted)

    async def _make(
        self, made: list[tuple[Requested, Made]], wrong: list[Failure], calls: Calls
    ) -> list[tuple[Requested, ToolResult]]:
        """Make the calls of an answer, side by side if all of them only read, and save their results."""
        message = Message("tools", "\n".join(f"[the chat program] {f.message}. {f.hint or ''}" for f in wrong))
        self.conversation.messages.append(message)
        results: dict[str, ToolResult] = {}
        places = asyncio.Semaphore(MAX_TOGETHER)

        async def make(requested: Requested, invocation: Made) -> None:
            async with places:
                results[requested.id] = await self._invoke(requested, invocation, calls)
                message.results = [
                    Returned(r.id, r.name, result_text(done), done.ok)
                    for r, _ in made
                    if (done := results.get(r.id)) is not None
                ]

        offers = [calls.offers.get(each.tool) for _, each in made if not isinstance(each, Failure)]
        try:
            if all(offer is not None and offer.reads_only for offer in offers):
                await asyncio.gather(*(make(*each) for each in made))
            else:
                for each in made:
                    await make(*each)
                    self._save()
        finally:
            self.conversation.unfinished(CANCELLED)
            self._save()
        return [(requested, results[requested.id]) for requested, _ in made]

    async def _invoke(self, requested: Requested, invocation: Made, calls: Calls) -> ToolResult:
        """Make one call."""
        if isinstance(invocation, Failure):
            result = ToolResult(requested.name, error=invocation)
            self._listen(Finished(requested.id, requested.name, {}, result))
            return result
        call = (requested.id, invocation.tool, invocation.arguments)
        self._listen(Began(*call))
        # An active tool is offered in the version that was activated.
        offer = calls.offers.get(invocation.tool)
        version = (offer.version or None) if offer is not None else None
        result = ToolResult(requested.name, error=Failure("cancelled", "the user has stopped this call"))
        try:
            result = await self.service.invoke(
                invocation.tool,
                invocation.arguments,
                version=version,
                session=self._token,
                turn=self._turn,
                log=lambda _, text: self._listen(Printed(requested.id, text)),
            )
        finally:
            self._listen(Finished(*call, result))
        return result

    def _append(self, message: Message) -> None:
        self.conversation.messages.append(message)
        self._save()

    def _save(self) -> None:
        if self._saved is not None:
            self._saved.save()


def _has_call(text: str) -> bool:
    """Whether a text has a call outside of code, or what begins like one."""
    parser = ToolInvocationParser()
    parts = [*parser.feed(text)]
    # The end of the text stops the parser too.
    return parser.stopped or any(isinstance(part, ToolInvocation) for part in [*parts, *parser.close()])


def _waiting_run(result: Returned) -> str | None:
    """The run of a call that waited for a person when its result was saved."""
    if result.ok or '"suspended"' not in result.text:
        return None
    with suppress(ValueError, LookupError, TypeError):
        error = json.loads(result.text)["error"]
        return str(error["details"]["run"]) if error["code"] == "suspended" else None
    return None


def result_text(result: ToolResult) -> str:
    """A result as the model gets it: JSON, at most a little more than `MAX_RESULT` characters."""
    document: dict[str, Any]
    if result.error is None:
        document = {"ok": True, "output": result.output}
    else:
        error = result.error
        # The message of a refused source has the diagnostics as text.
        details = {key: value for key, value in error.details.items() if key != "diagnostics"}
        shown = {"code": error.code, "message": error.message, "hint": error.hint, "details": details}
        document = {"ok": False, "error": {key: value for key, value in shown.items() if value}}
    if result.log:
        document["log"] = result.log[-MAX_LOG:]
    text = json.dumps(document, ensure_ascii=False, default=str)
    if len(text) > MAX_RESULT:
        cut = {
            "ok": result.ok,
            "too_long": f"{len(text):,} characters; this is the beginning",
            "beginning": text[:MAX_RESULT],
        }
        text = json.dumps(cut, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()

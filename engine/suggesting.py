"""Suggests tools: sequences of calls that sessions repeat, each as a draft that a person or an agent can define.

Nothing is saved. The owner sees what all sessions repeat. A session sees what it repeats itself, with the sessions within it, and
the rest by the action ``read_records``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field

from albert_tools.engine.actions import READ, ActionRequest, Actions
from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.model.definition import EFFECTS, Json, ToolDefinition, literal
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.record_types import Entry
from albert_tools.engine.model.turns import Turns
from albert_tools.engine.session_access import SessionAccess
from albert_tools.engine.suggest.drafts import Draft, Parameter
from albert_tools.engine.suggest.emitter import destinations, name_of, source_of, title_of
from albert_tools.engine.suggest.miner import Miner, of_home, of_session, rank, spared
from albert_tools.engine.suggest.traces import Traces

#: The days of calls that are compared.
DAYS = 90
#: The most values of a parameter that are shown, and the characters of one.
MAX_USUAL, MAX_SHOWN = 3, 60


class Suggestion(Struct, frozen=True):
    """A draft of a tool.

    Attributes:
        title: The tools that it calls: ``get_user → every get_order``.
        name: The name of the draft.
        source: The draft. `ToolService.define` saves it.
        effects: The effects of its calls.
        sessions, people: How many have repeated the sequence; no people in a home that one person uses.
        calls, tokens: How many calls and, roughly, tokens it would have spared.
        replays, tried: In how many of the recorded sequences with the same tools it makes the same calls.
        notes: What it does otherwise than some sessions.
        usual: For each parameter its most frequent values, as the record has them, and how often each one was used.
        destinations: For each argument that decides where an effect happens, where it comes from.
    """

    title: str
    name: str
    source: str
    effects: tuple[str, ...]
    sessions: int
    people: int
    calls: int
    tokens: int
    replays: int
    tried: int
    notes: tuple[str, ...]
    usual: dict[str, list[tuple[str, int]]]
    destinations: dict[str, str]

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Suggestions(Struct, eq=False):
    """Finds suggestions in the ledger."""

    context: ServiceContext
    lookup: Lookup
    actions: Actions
    access: SessionAccess
    #: What was found for the owner before, so that only new entries are read.
    _of_home: _Mined | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: One request of a session is answered at a time.
    _turns: Turns = field(default_factory=lambda: Turns(1))

    async def suggest(
        self,
        limit: int = 10,
        *,
        session: str | None = None,
        everyone: bool = False,
        request: ActionRequest | None = None,
    ) -> list[Suggestion]:
        """At most `limit` suggestions, those that only read first.

        Args:
            limit: The most suggestions.
            session: The token of a session. It sees what three sessions repeat of itself and those within it.
            everyone: Whether a session sees what all sessions repeat. It needs the action ``read_records``.
            request: The session's request, if it is known.

        Raises:
            Failure: `damaged`, `io_error`; in a session also those of a call.
        """
        if session is not None and not everyone:
            own = self.access.session(session)
            since = datetime.fromisoformat(own.created)
            # It reads the whole record since then, in a thread that others need, too.
            async with self._turns.of(self.context.client_of(session)):
                return await asyncio.to_thread(self._own, own.id, since, session, limit)

        async def read() -> list[Suggestion]:
            async with self._lock:
                return await asyncio.to_thread(self._all, session, limit)

        return await self.actions.perform(READ, {"of": "the calls of all sessions"}, session, read, request=request)

    def _all(self, token: str | None, limit: int) -> list[Suggestion]:
        if self._of_home is None:
            self._of_home = _Mined(Miner(Traces(self._definition, self._belongs), of_home))
        self._of_home.read(self.context, None)
        return self._suggestions(self._of_home.miner.drafts(), token, limit)

    def _own(self, own: str, since: datetime, token: str, limit: int) -> list[Suggestion]:
        mined = _Mined(Miner(Traces(self._definition, self._belongs), of_session), since)
        mined.read(self.context, own)
        return self._suggestions(mined.miner.drafts(), token, limit)

    def _suggestions(self, drafts: list[Draft], token: str | None, limit: int) -> list[Suggestion]:
        """The best drafts, of tools that the lease covers. What a saved draft spares is spared already."""
        usable = [d for d in drafts if all(self._is_usable(token, *shape) for shape in d.shapes)]
        saved = [d for d in usable if self._is_saved(d)]
        names = self.lookup.registry.names()
        suggestions: list[Suggestion] = []
        for draft in [d for d in rank(usable, limit + len(saved)) if d not in saved][:limit]:
            suggestions.append(
                _suggestion(draft, name_of(draft, [*names, *(s.name for s in suggestions)]), self._known)
            )
        return suggestions

    def _is_usable(self, token: str | None, tool: str, arguments: tuple[str, ...]) -> bool:
        """Whether the tool is still there with these arguments, and covered by the lease."""
        definition = self._definition(tool)
        return definition is not None and all(map(definition.parameter, arguments)) and self.access.covers(token, tool)

    def _is_saved(self, draft: Draft) -> bool:
        try:
            version = self.lookup.by_name(name_of(draft, ()))
        except Failure:
            return False
        return {c.name for c in version.calls} == {step.tool for step in draft.steps}

    def _definition(self, tool: str) -> ToolDefinition | None:
        return self.lookup.registry.get(tool)

    def _known(self, tool: str) -> ToolDefinition:
        definition = self._definition(tool)
        assert definition is not None, "a draft has no unknown tools"
        return definition

    def _belongs(self, session: str) -> tuple[str, str]:
        """The outermost session around a session. A home has one user, so the person has no name."""
        return self.context.record.sessions.outermost(session), ""


class _Mined(Struct, eq=False):
    """A miner, and how far it has read the ledger."""

    miner: Miner
    since: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(days=DAYS))
    last: int = 0

    def read(self, context: ServiceContext, own: str | None) -> None:
        """Read the new entries: of all sessions, or of one and those within it.

        Raises:
            Failure: `not_found`, `damaged`, `io_error`.
        """
        sessions = context.record.sessions
        ledger, is_own = context.ledger, dict[str, bool]()

        def new() -> Iterator[Entry]:
            for entry in ledger.entries({"call", "result"}, self.since):
                if entry.n <= self.last:
                    continue
                self.last, self.since = entry.n, datetime.fromisoformat(entry.at)
                session = entry.data.get("session", "")
                if own is None or not session:
                    yield entry
                    continue
                if session not in is_own:
                    is_own[session] = sessions.is_within(session, own)
                if is_own[session]:
                    yield entry

        self.miner.traces.read(new())


def _suggestion(draft: Draft, name: str, definition: Callable[[str], ToolDefinition]) -> Suggestion:
    effects = {effect for step in draft.steps for effect in definition(step.tool).effects}
    traces = {piece.trace.session: piece.trace for piece in draft.pieces}.values()
    calls, tokens = spared(draft)
    return Suggestion(
        title_of(draft),
        name,
        source_of(draft, name, definition),
        tuple(effect for effect in EFFECTS if effect in effects),
        len({trace.session for trace in traces}),
        len({trace.person for trace in traces} - {""}),
        calls,
        tokens,
        len(draft.pieces),
        draft.tried,
        tuple(dict.fromkeys(draft.notes)),
        {p.name: _usual(p) for p in draft.parameters},
        dict(destinations(draft, definition)),
    )


def _usual(parameter: Parameter) -> list[tuple[str, int]]:
    count = Counter(brief(literal(value), MAX_SHOWN) for value in parameter.values)
    return [(value, times) for value, times in count.most_common(MAX_USUAL) if times > 1]

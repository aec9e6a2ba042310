"""The context of a primitive: what the service gives to a function that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from albert_tools.engine.call.absent import NoSession
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.call.errors import notify
from albert_tools.engine.call.seen import is_approved, note_shown, planned
from albert_tools.engine.model.result import Effect
from albert_tools.engine.model.telemetry import traceparent
from albert_tools.engine.policy.decision import strictest
from albert_tools.engine.workspace.workspace import Workspace

if TYPE_CHECKING:
    from albert_tools.engine.model.protocols import ArtifactStore, BatchAccess, ContentStore, Examine
    from albert_tools.engine.policy.outgoing import Outgoing

T = TypeVar("T")


class PrimitiveContext(Struct):
    """The `CallContext` of a primitive."""

    workspace: Workspace
    remaining: float
    settings: Mapping[str, Any]
    network: Outgoing | None
    _call: Call
    _run: Run

    @property
    def key(self) -> str:
        return f"{self._run.id}:{self._call.step}"

    @property
    def trace(self) -> str:
        return traceparent(self._call.span) if self._call.span is not None else self._run.trace

    @property
    def contents(self) -> ContentStore | None:
        return self._run.contents

    @property
    def artifacts(self) -> ArtifactStore | None:
        stored, session = self._run.service.artifacts, self._run.session
        if stored is None or isinstance(session, NoSession):
            return stored
        from albert_tools.engine.call.session_contents import SessionArtifacts

        return SessionArtifacts(stored, session)

    @property
    def examine(self) -> Examine | None:
        return self._run.service.examine

    @property
    def batches(self) -> BatchAccess | None:
        made = self._run.service.batches
        return made(self._call, self._run) if made is not None else None

    def left(self, unit: str) -> float:
        return self._run.session.left(unit)

    def keep(self, make: Callable[[], T]) -> T:
        return self._run.service.resource_pool.get(make)

    @property
    def progress(self) -> Callable[[str], None] | None:
        run = self._run
        if run.options.log is None:
            return None

        def say(text: str) -> None:
            self.record_seen()
            notify(run.options.log, self._call.target.definition.name, text)

        return say

    def record_seen(self) -> None:
        self.note_read()
        note_shown(self._call, self._run)
        # Nothing leaves the service before its entry.
        self._run.entries.flush()

    def guard_requests(self) -> Callable[[], None]:
        call, run = self._call, self._run
        flows, manifest = call.rules.authority.policy.flows, run.target.definition.manifest
        # As in the stage of flows: of an approved program only its arguments count, because the rest was reviewed.
        is_reviewed = (
            manifest is not None and is_approved(run) and not flows.is_given(manifest, planned(call, manifest))
        )

        def demand() -> None:
            # What the call sees itself is judged only together with what others see meanwhile.
            by_others = run.session.seen(excluding=run.id)
            if not is_reviewed and by_others.keys() - run.seen_before:
                judged = call.target.definition, call.arguments
                decisions = flows.judge_session(*judged, run.session.seen, call.callers)
                # What the session had seen before was judged when it called.
                known = flows.judge_session(*judged, lambda: dict.fromkeys(run.seen_before, ""), call.callers)
                answered = {*call.asks, *((d.rule, d.subject) for d in known)}
                unanswered = [d for d in decisions if (d.rule, d.subject) not in answered]
                if unanswered:
                    # Nobody can be asked now.
                    raise strictest(unanswered).failure(call.name)
            self.record_seen()

        return demand

    def note_read(self) -> None:
        """Note what the call has read so far, for `seen`."""
        report, judge = self._call.report, self.workspace.judge
        report.private_path = judge.private_path or report.private_path
        report.asked = self.network.asked if self.network is not None else None

    def effect(self, kind: str, **facts: Any) -> None:
        effect = Effect(kind, self._call.target.definition.name, facts)
        self._run.report.effects.append(effect)
        self._call.report.effects.append(effect)

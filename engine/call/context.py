"""What calls are judged by and happen in; what one request's calls share; and what a call inherits from the one that makes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from albert_tools.engine.authority.authorization import Asker, Authority
from albert_tools.engine.authority.rules_source import RulesSource
from albert_tools.engine.call.ledger import CallId, Recorder
from albert_tools.engine.call.resource_pool import Kept
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.settings import Governance
from albert_tools.engine.sandbox.worker.run_report import RunReport

if TYPE_CHECKING:
    from albert_tools.engine.authority.approval_digest import Standing
    from albert_tools.engine.authority.approvals import Approvals
    from albert_tools.engine.authority.idempotency import DedupeKeys
    from albert_tools.engine.authority.projections import Projections
    from albert_tools.engine.authority.rate_limit import RateLimits
    from albert_tools.engine.authority.sessions import Session, Sessions
    from albert_tools.engine.call.resource_locks import Turns
    from albert_tools.engine.model.interrupted import Settled
    from albert_tools.engine.model.protocols import ArtifactStore, ContentStore, Examine, Ledger, RunStore
    from albert_tools.engine.model.telemetry import Observer, Span, Started
    from albert_tools.engine.policy.decision import Decision
    from albert_tools.engine.policy.outgoing import Outgoing
    from albert_tools.engine.runs.journal import Steps

T = TypeVar("T")
Log = Callable[[str, str], None]


class Again(Exception):
    """The call was made before, under the same dedupe key: the result of then."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What calls are judged by and happen in. `workspace` and `rules` may be the failure that says why they are missing.

    Without a ledger nothing is recorded, and then there are no sessions, limits, repeats, approvals or runs either: in the examples
    of a source, whose `scratch` workspace is all that they can change.
    """

    workspace: Any
    rules: RulesSource | Governance | Failure
    #: Answers for tools by name, instead of the tools: in the examples of a source.
    stubs: Mapping[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    #: Whether only what stays inside the workspace may be done for real.
    scratch: bool = False
    modes: Modes = field(default_factory=lambda: Modes(None))
    #: Who is asked where the rules say so; None: whoever answers the record of the question.
    ask: Asker | None = None
    #: Seconds that a call waits for an answer from elsewhere before its run is suspended; None: it is denied at once.
    patience: float | None = None
    ledger: Ledger | None = None
    projections: Projections | None = None
    runs: RunStore | None = None
    contents: ContentStore | None = None
    artifacts: ArtifactStore | None = None
    examine: Examine | None = None
    observer: Observer | None = None
    turns: Turns | None = None
    #: What primitives keep between calls.
    kept: Kept = field(default_factory=Kept)
    #: Whom a call without a session is made by: one service, for answers that hold "for this session".
    own: str = "own"
    #: Bytes of an output that are handed to whoever called; a larger one is kept, and a part of it and its handle handed over.
    output_bytes: int = 1024 * 1024

    def ruling(self, *, say: bool = True) -> tuple[Governance, Authority | None]:
        """The rules in force, and who judges by them: nobody in a scratch workspace. Who only looks leaves no record: not `say`.

        Raises:
            Failure: `governance_unavailable`.
        """
        # A copy: the one that is kept would gather a traceback with each call.
        if isinstance(self.workspace, Failure):
            raise replace(self.workspace)
        rules = self.rules
        if isinstance(rules, Failure):
            raise replace(rules)
        if isinstance(rules, Governance):
            if self.scratch:
                return rules, None
            rules = RulesSource(rules, None)
            object.__setattr__(self, "rules", rules)
        ruling = rules.in_force(str(self.workspace.root), self.modes, audit=say)
        if isinstance(ruling, Failure):
            raise ruling
        return ruling.governance, None if self.scratch else ruling.authority

    @property
    def sessions(self) -> Sessions | None:
        """The home's sessions."""
        return self.projections.sessions if self.projections is not None else None

    @property
    def approvals(self) -> Approvals | None:
        """The home's questions and answers."""
        return self.projections.approvals if self.projections is not None else None

    @property
    def rate_limits(self) -> RateLimits | None:
        """How often what was called."""
        return self.projections.rate_limits if self.projections is not None else None

    @property
    def dedupe_keys(self) -> DedupeKeys | None:
        """What was called under which key."""
        return self.projections.dedupe_keys if self.projections is not None else None

    @property
    def governance(self) -> Governance | Failure:
        """The rules in force, or why there are none."""
        return self.rules.current() if isinstance(self.rules, RulesSource) else self.rules

    @property
    def authority(self) -> Authority | None:
        """Who judges now; None where nothing can be judged."""
        try:
            return self.ruling(say=False)[1]
        except Failure:
            return None


@dataclass(slots=True)
class Run:
    """The record of what one request does. Without a journal (yet), only its id."""

    id: str
    steps: Steps | None = None
    #: Whom it goes on for, when it is resumed: the id of a session, and whom lasting answers were for.
    session: str | None = None
    principal: str | None = None
    #: The repeat's key in the records, of one that was begun under a key.
    repeat: str | None = None
    #: Whether it was begun before, and now goes on.
    resumed: bool = False
    #: Whether nothing is done: a replay ends where the journal does.
    dry: bool = False
    #: Why it is to stop, once somebody wants that.
    stop: Failure | None = None
    task: asyncio.Task[Any] | None = None


@dataclass(slots=True)
class Request:
    """What all calls of one invocation share: on whose behalf, and what they have come to so far."""

    invocation: ToolInvocation
    surroundings: Surroundings
    recorder: Recorder
    run: Run
    #: Where its calls work: the workspace, from the session's folder.
    workspace: Any
    log: Log | None = None
    watch: Callable[[str], None] | None = None
    session: Session | None = None
    #: The repeat's key in the records and the digest of the call, once it has been begun.
    repeat: str | None = None
    decision: Decision | None = None
    #: Its arguments, once they are known to be valid: a copy that nobody else has.
    arguments: dict[str, Any] = field(default_factory=dict)
    #: Whether it was let through and charged: from here on something may have been done.
    begun: bool = False
    #: Why it was never made.
    refused: Failure | None = None
    printed: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    calls: int = 0
    printed_bytes: int = 0
    #: Seconds that people took to answer; they don't count.
    waited: float = 0.0
    #: The runs of programs that stand still meanwhile, and how many questions are open.
    runs: list[RunReport] = field(default_factory=list)
    open: int = 0
    since: float = 0.0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def origin(self) -> str | None:
        """The id of the session on whose behalf all of it is; of a run that goes on, the one that it began in."""
        if self.session is None:
            return None
        return self.session.parent if self.session.grant and self.session.parent else self.session.id

    @property
    def principal(self) -> str:
        """Whom lasting answers are for: the session, or whoever has none."""
        return self.origin or self.run.principal or self.surroundings.own


@dataclass(slots=True)
class Chain:
    """One call's place: how deep, called by whom, until when. `step` is its number in the run, empty for the first."""

    request: Request
    deadline: float
    call: CallId
    step: str = ""
    depth: int = 0
    callers: tuple[str, ...] = ()
    #: The versions of the callers.
    trail: tuple[str, ...] = ()
    span: Span | None = None
    report: RunReport = field(default_factory=RunReport)
    decision: Decision | None = None
    mode: str = ""
    #: The rules that ask, each with what it is about where that is less than the whole call.
    asks: tuple[tuple[str, str], ...] = ()
    #: What a person was asked about, where the answer was for this once: what the call may change, by absolute path.
    approved: Mapping[str, Standing] | None = None
    retried: int = 0
    #: What observers were told as it began, until they are told of its end.
    notice: Started | None = None
    #: The arguments as the caller gave them, for the journal, and when the call was begun (seconds since 1970).
    given: Any = None
    began: float = 0.0
    #: What it has printed, with the tools that it calls: for the journal.
    printed: list[str] = field(default_factory=list)
    #: What its primitive says of a call that was cut short.
    settled: Settled | None = None

    @property
    def answered(self) -> bool:
        """Whether a step that was cut short is known to have been done, and with which result."""
        return self.settled is not None and self.settled.value is not ...


class Judged(NamedTuple):
    """A call as it was judged: its arguments, which are valid; the rules in force; and who judges by them what it opens: nobody,
    in a scratch workspace."""

    arguments: dict[str, Any]
    governance: Governance
    authority: Authority | None

    def workspace(self, request: Request) -> Any:
        """Where the call works: what it may reach, before anything of it is judged."""
        return request.workspace if self.authority is None else self.authority.reaching(request.workspace)


@dataclass(slots=True)
class Context:
    """The `CallContext` of a primitive."""

    workspace: Any
    remaining: float
    settings: Mapping[str, Any]
    key: str
    contents: ContentStore | None
    network: Outgoing | None
    _kept: Kept
    _tool: str
    _effects: list[Effect]
    _own: list[Effect]
    artifacts: ArtifactStore | None = None
    examine: Examine | None = None
    _left: Callable[[str], float] = field(default=lambda unit: float("inf"))

    def left(self, unit: str) -> float:
        return self._left(unit)

    def keep(self, make: Callable[[], T]) -> T:
        return self._kept.get(make)

    def effect(self, kind: str, **facts: Any) -> None:
        effect = Effect(kind, self._tool, facts)
        self._effects.append(effect)
        self._own.append(effect)

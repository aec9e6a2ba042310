"""The context of a call: the service it runs in, the request it belongs to, and what it inherits from its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from albert_tools.engine.authority.authorization import Asker, Authority
from albert_tools.engine.authority.rules_source import RulesSource
from albert_tools.engine.call.ledger import Recorder
from albert_tools.engine.call.resource_locks import ResourceLocks
from albert_tools.engine.call.resource_pool import ResourcePool
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.settings import Governance
from albert_tools.engine.sandbox.worker.run_report import RunReport

if TYPE_CHECKING:
    from albert_tools.engine.authority.approval_digest import Fingerprint
    from albert_tools.engine.authority.approvals import Approvals
    from albert_tools.engine.authority.idempotency import DedupeKeys
    from albert_tools.engine.authority.projections import Projections
    from albert_tools.engine.authority.rate_limit import RateLimits
    from albert_tools.engine.authority.sessions import Session, Sessions
    from albert_tools.engine.call.journal import RunJournal
    from albert_tools.engine.model.interrupted import Settled
    from albert_tools.engine.model.protocols import ArtifactStore, ContentStore, Examine, Ledger, RunStore
    from albert_tools.engine.model.telemetry import Observer, Span, Started
    from albert_tools.engine.policy.decision import Decision
    from albert_tools.engine.policy.outgoing import Outgoing

T = TypeVar("T")
#: Called for each text that a program prints, with the tool's name and the text.
Log = Callable[[str, str], None]


class Repeated(Exception):
    """The call was already made with the same dedupe key. The exception contains that call's result."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """The service that executes calls. If `workspace` or `rules` are unavailable, the field contains the failure that explains why.

    Without a ledger nothing is recorded, and there are no sessions, rate limits, dedupe keys, approvals or runs. The examples of a
    source run like that, in a temporary (`scratch`) workspace.
    """

    workspace: Any
    rules: RulesSource | Governance | Failure
    #: Answers that replace tools in the examples of a source, by tool name.
    stubs: Mapping[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    #: Whether calls may only change the workspace.
    scratch: bool = False
    modes: Modes = field(default_factory=lambda: Modes(None))
    #: Asks a person during the call. None: the question waits for an answer from another process.
    ask: Asker | None = None
    #: Seconds that a call waits for such an answer before its run is suspended. None denies the call immediately.
    patience: float | None = None
    ledger: Ledger | None = None
    projections: Projections | None = None
    runs: RunStore | None = None
    contents: ContentStore | None = None
    artifacts: ArtifactStore | None = None
    examine: Examine | None = None
    observer: Observer | None = None
    resource_locks: ResourceLocks = field(default_factory=lambda: ResourceLocks(None))
    resource_pool: ResourcePool = field(default_factory=ResourcePool)
    #: The principal of calls without a session: this service. It is used for answers that apply "for this session".
    own: str = "own"
    #: The size in bytes up to which an output is returned completely. For a larger output, the caller gets a part and a handle.
    output_bytes: int = 1024 * 1024

    def ruling(self, *, audit: bool = True) -> tuple[Governance, Authority | None]:
        """The current rules and the authority that applies them. The authority is None in a temporary workspace.

        Pass ``audit=False`` to read the rules without writing an audit entry when they have changed.

        Raises:
            Failure: `governance_unavailable`.
        """
        # Raise a copy: raising the stored failure would add a traceback to it at each call.
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
        ruling = rules.in_force(str(self.workspace.root), self.modes, audit=audit)
        if isinstance(ruling, Failure):
            raise ruling
        return ruling.governance, None if self.scratch else ruling.authority

    @property
    def sessions(self) -> Sessions | None:
        """The sessions of the home."""
        return self.projections.sessions if self.projections is not None else None

    @property
    def approvals(self) -> Approvals | None:
        """The approvals of the home."""
        return self.projections.approvals if self.projections is not None else None

    @property
    def rate_limits(self) -> RateLimits | None:
        """The counts of calls for rate limits."""
        return self.projections.rate_limits if self.projections is not None else None

    @property
    def dedupe_keys(self) -> DedupeKeys | None:
        """The calls with dedupe keys."""
        return self.projections.dedupe_keys if self.projections is not None else None

    @property
    def governance(self) -> Governance | Failure:
        """The current rules, or the failure that explains why there are none."""
        return self.rules.current() if isinstance(self.rules, RulesSource) else self.rules

    @property
    def authority(self) -> Authority | None:
        """The current authority; None if no decision is possible."""
        try:
            return self.ruling(audit=False)[1]
        except Failure:
            return None


@dataclass(slots=True)
class Run:
    """The run of one request. Most requests for a primitive have no journal; their run is only an id."""

    id: str
    journal: RunJournal | None = None
    #: For a resumed run: the id of its session, and the principal of lasting answers.
    session: str | None = None
    principal: str | None = None
    #: For a run with a dedupe key: the key's id in the record.
    repeat: str | None = None
    resumed: bool = False
    #: Whether this run is a replay. In a replay, all results of calls are read from the journal.
    dry: bool = False
    #: Why the run must stop, after somebody has cancelled it.
    stop: Failure | None = None
    task: asyncio.Task[Any] | None = None


@dataclass(slots=True)
class Request:
    """The state that all calls of one invocation share."""

    invocation: ToolInvocation
    context: ServiceContext
    recorder: Recorder
    run: Run
    #: The folder in which the calls work: the workspace, or the session's folder in the workspace.
    workspace: Any
    log: Log | None = None
    watch: Callable[[str], None] | None = None
    session: Session | None = None
    #: ``KEY:DIGEST`` of the dedupe key and the arguments, after the call with this key has begun.
    repeat: str | None = None
    decision: Decision | None = None
    #: A private copy of the arguments, after their validation.
    arguments: dict[str, Any] = field(default_factory=dict)
    #: Why the request was refused.
    refused: Failure | None = None
    printed: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    calls: int = 0
    printed_bytes: int = 0
    #: Seconds that people took to answer. No limit includes this time.
    waited: float = 0.0
    #: The programs whose clocks stop while a question is open; the number of open questions, and the time when they were opened.
    runs: list[RunReport] = field(default_factory=list)
    open_questions: int = 0
    open_since: float = 0.0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def origin(self) -> str | None:
        """The id of the session that made the request. For a resumed run, this is the session in which the run began."""
        if self.session is None:
            return None
        return self.session.parent if self.session.grant and self.session.parent else self.session.id

    @property
    def principal(self) -> str:
        """The principal of lasting answers: the session; or the service if there is no session."""
        return self.origin or self.run.principal or self.context.own


@dataclass(slots=True)
class Call:
    """One call: its id, its step in the run, its callers and its deadline.

    `step` is empty for the request itself.
    """

    request: Request
    deadline: float
    id: str
    #: The id of the caller's call.
    parent: str | None = None
    step: str = ""
    depth: int = 0
    callers: tuple[str, ...] = ()
    #: The versions of the callers.
    trail: tuple[str, ...] = ()
    span: Span | None = None
    report: RunReport = field(default_factory=RunReport)
    decision: Decision | None = None
    mode: str = ""
    #: The rules that ask, each with its subject.
    asks: tuple[tuple[str, str], ...] = ()
    #: The objects that a person approved for this call, by absolute path.
    approved: Mapping[str, Fingerprint] | None = None
    retried: int = 0
    #: The notice that observers got when the call began. It is removed when they get the notice of the end.
    notice: Started | None = None
    #: For the journal: the arguments as the program gave them, and when the call began (seconds since 1970).
    given: Any = None
    began: float = 0.0
    #: For the journal: the text that the call and its nested calls have printed.
    printed: list[str] = field(default_factory=list)
    #: For an interrupted step: the outcome that its primitive determined.
    settled: Settled | None = None

    @property
    def answered(self) -> bool:
        """Whether the call is an interrupted step that took effect and has a known result."""
        return self.settled is not None and self.settled.value is not ...


class Authorized(NamedTuple):
    """An authorized call: its valid arguments, the current rules, and the authority that authorizes each opened object.

    There is no authority in a temporary workspace.
    """

    arguments: dict[str, Any]
    governance: Governance
    authority: Authority | None

    def workspace(self, request: Request) -> Any:
        """The workspace with the additional folders that the rules open. Access to single files is not decided here."""
        return request.workspace if self.authority is None else self.authority.reaching(request.workspace)


@dataclass(slots=True)
class PrimitiveContext:
    """The `CallContext` of a primitive."""

    workspace: Any
    remaining: float
    settings: Mapping[str, Any]
    key: str
    contents: ContentStore | None
    network: Outgoing | None
    _pool: ResourcePool
    _tool: str
    _request_effects: list[Effect]
    _call_effects: list[Effect]
    artifacts: ArtifactStore | None = None
    examine: Examine | None = None
    _left: Callable[[str], float] = field(default=lambda unit: float("inf"))

    def left(self, unit: str) -> float:
        return self._left(unit)

    def keep(self, make: Callable[[], T]) -> T:
        return self._pool.get(make)

    def effect(self, kind: str, **facts: Any) -> None:
        effect = Effect(kind, self._tool, facts)
        self._request_effects.append(effect)
        self._call_effects.append(effect)

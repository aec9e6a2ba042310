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
#: Receives each text that a program prints: the tool's name and the text.
Log = Callable[[str, str], None]


class Repeated(Exception):
    """The call was made before under the same dedupe key; carries that call's result."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """The service that calls run in. `workspace` and `rules` may be the failure that explains why they are missing.

    Without a ledger nothing is recorded, and there are no sessions, rate limits, dedupe keys, approvals or runs. The examples of a
    source run like that, in a `scratch` workspace.
    """

    workspace: Any
    rules: RulesSource | Governance | Failure
    #: Answers by tool name that replace the tools: in the examples of a source.
    stubs: Mapping[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    #: Whether calls may change the workspace only.
    scratch: bool = False
    modes: Modes = field(default_factory=lambda: Modes(None))
    #: Asks a person in the call; None: the question waits for an answer from another process.
    ask: Asker | None = None
    #: Seconds that a call waits for such an answer before its run is suspended; None denies the call at once.
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
    #: The principal of calls without a session: this service, for answers that apply "for this session".
    own: str = "own"
    #: The largest output in bytes that is returned whole; of a larger one the caller gets a part and a handle.
    output_bytes: int = 1024 * 1024

    def ruling(self, *, audit: bool = True) -> tuple[Governance, Authority | None]:
        """The rules in force and the authority that applies them, None in a scratch workspace.

        Pass ``audit=False`` to read the rules without writing an entry about a change of them.

        Raises:
            Failure: `governance_unavailable`.
        """
        # Copies: raising the stored failure itself would add a traceback to it with each call.
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
        """The home's questions and answers."""
        return self.projections.approvals if self.projections is not None else None

    @property
    def rate_limits(self) -> RateLimits | None:
        """The counts of calls for rate limits."""
        return self.projections.rate_limits if self.projections is not None else None

    @property
    def dedupe_keys(self) -> DedupeKeys | None:
        """The calls that were made under dedupe keys."""
        return self.projections.dedupe_keys if self.projections is not None else None

    @property
    def governance(self) -> Governance | Failure:
        """The rules in force, or why there are none."""
        return self.rules.current() if isinstance(self.rules, RulesSource) else self.rules

    @property
    def authority(self) -> Authority | None:
        """The authority that decides now; None if nothing can be decided."""
        try:
            return self.ruling(audit=False)[1]
        except Failure:
            return None


@dataclass(slots=True)
class Run:
    """The run of one request. Most requests for a primitive have no journal, and the run is only an id."""

    id: str
    journal: RunJournal | None = None
    #: Of a run that is resumed: the id of its session, and the principal of lasting answers.
    session: str | None = None
    principal: str | None = None
    #: The key in the record, of a run that was begun under a dedupe key.
    repeat: str | None = None
    resumed: bool = False
    #: Whether this is a replay: calls are answered from the journal only.
    dry: bool = False
    #: Why the run is to stop, once somebody has cancelled it.
    stop: Failure | None = None
    task: asyncio.Task[Any] | None = None


@dataclass(slots=True)
class Request:
    """What all calls of one invocation share."""

    invocation: ToolInvocation
    context: ServiceContext
    recorder: Recorder
    run: Run
    #: The folder in which the calls work: the workspace, or the session's folder in it.
    workspace: Any
    log: Log | None = None
    watch: Callable[[str], None] | None = None
    session: Session | None = None
    #: ``KEY:DIGEST`` of the dedupe key and the arguments, once the call under it has begun.
    repeat: str | None = None
    decision: Decision | None = None
    #: A private copy of the arguments, once they are valid.
    arguments: dict[str, Any] = field(default_factory=dict)
    #: Why the request was refused.
    refused: Failure | None = None
    printed: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    calls: int = 0
    printed_bytes: int = 0
    #: Seconds that people took to answer. They count against no limit.
    waited: float = 0.0
    #: The programs whose clocks stop while a question is open; how many questions are open, and since when.
    runs: list[RunReport] = field(default_factory=list)
    open_questions: int = 0
    open_since: float = 0.0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def origin(self) -> str | None:
        """The id of the session that made the request; of a resumed run, the session in which it began."""
        if self.session is None:
            return None
        return self.session.parent if self.session.grant and self.session.parent else self.session.id

    @property
    def principal(self) -> str:
        """Who lasting answers are for: the session, or the service if there is none."""
        return self.origin or self.run.principal or self.context.own


@dataclass(slots=True)
class Call:
    """One call: its id, its place in the run, its callers and its deadline.

    `step` is its number in the run, empty for the request itself.
    """

    request: Request
    deadline: float
    id: str
    #: The id of the call that made this one.
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
    #: What observers were sent when the call began, until they are sent its end.
    notice: Started | None = None
    #: The arguments as the program gave them, and when the call began (seconds since 1970): for the journal.
    given: Any = None
    began: float = 0.0
    #: What the call has printed, with the tools that it calls: for the journal.
    printed: list[str] = field(default_factory=list)
    #: What its primitive found out, of a step that was cut short.
    settled: Settled | None = None

    @property
    def answered(self) -> bool:
        """Whether a step that was cut short is known to be done, with a known result."""
        return self.settled is not None and self.settled.value is not ...


class Authorized(NamedTuple):
    """An authorized call: its valid arguments, the rules in force, and the authority that judges what the call opens.

    There is no authority in a scratch workspace.
    """

    arguments: dict[str, Any]
    governance: Governance
    authority: Authority | None

    def workspace(self, request: Request) -> Any:
        """The workspace with the folders that the rules open beside it; single files are not judged here."""
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

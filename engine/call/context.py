"""The context of a call: the service that makes it, the run to which it belongs, and the call itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET, Struct, field

from albert_tools.engine.authority.authorization import Asker, Authority, ExampleAuthority
from albert_tools.engine.authority.rules_source import RulesInForce, RulesSource
from albert_tools.engine.call.absent import NO_LEDGER, NO_SESSION, NoSession
from albert_tools.engine.call.provenance import Provenance
from albert_tools.engine.call.resource_locks import ResourceLocks
from albert_tools.engine.call.resource_pool import ResourcePool
from albert_tools.engine.call.target import UNKNOWN, Lookup, Target
from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import UNJUDGED_POLICY, Effect, ToolInvocation, ToolResult
from albert_tools.engine.model.turns import LongBlocks
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.settings import Governance
from albert_tools.engine.sandbox.worker.run_report import RunReport
from albert_tools.engine.workspace.workspace import Workspace

if TYPE_CHECKING:
    from albert_tools.engine.authority.approval_digest import Fingerprint
    from albert_tools.engine.authority.approvals import Approval
    from albert_tools.engine.authority.leased_session import LeasedSession
    from albert_tools.engine.authority.projections import Projections
    from albert_tools.engine.authority.sessions import Line
    from albert_tools.engine.call.entries import Entries, Entry
    from albert_tools.engine.call.journal import Entered, RunJournal, Step
    from albert_tools.engine.call.manifest_fence import Fence
    from albert_tools.engine.model.definition import Json, Mode, ToolDefinition
    from albert_tools.engine.model.manifest import PlannedCall
    from albert_tools.engine.model.primitive import Primitive
    from albert_tools.engine.model.protocols import ArtifactStore, BatchAccess, ContentStore, Examine, Ledger, RunStore
    from albert_tools.engine.model.telemetry import Observer, Span
    from albert_tools.engine.sandbox.worker.pool import Sandbox

T = TypeVar("T")
#: Called for each text that a program prints, with the tool's name and the text.
Log = Callable[[str, str], None]
#: Analyses a version again. The second argument says whether it is stored.
Renewed = Callable[[ToolVersion, bool], Awaitable[ToolVersion]]


def available(found: T | Failure) -> T:
    """What was found. Raises the failure that explains why it is missing."""
    if isinstance(found, Failure):
        raise found.copy()
    return found


#: The priority of a queued run, if none is given.
DEFAULT_PRIORITY = 100
#: The name of a workspace that is a checkout begins with this.
CHECKOUT = "git+"


def checkout_in(workspace: str) -> tuple[str, str] | None:
    """The repository and the commit of a workspace that is a checkout; None for a folder."""
    if not workspace.startswith(CHECKOUT):
        return None
    repository, _, commit = workspace.removeprefix(CHECKOUT).rpartition("@")
    return repository, commit


class Repeated(Exception):
    """The request was already made with the same dedupe key. The exception contains that request's result."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


class Known(Exception):
    """The output of the call is known, so the call is not executed."""

    def __init__(self, output: Json) -> None:
        super().__init__()
        self.output = output


class JudgeAgain(Exception):
    """All stages run again, because the rules, the mode or the files have changed, or may have changed while a person answered."""


class ServiceContext(Struct, frozen=True):
    """The service that executes calls. If there is no workspace or no rules, the field contains the failure that explains why.

    The examples of a source and replays have no ledger and no `record`.
    """

    workspace_or_failure: Workspace | Failure
    rules: RulesSource | Failure
    modes: Modes = field(default_factory=lambda: Modes(None))
    #: Asks a person during the call. None: the question waits for an answer from another process.
    ask: Asker | None = None
    #: Seconds that a call waits for such an answer before its run is suspended. None denies the call immediately.
    patience: float | None = None
    ledger: Ledger = NO_LEDGER
    projections: Projections | None = None
    runs: RunStore | None = None
    contents: ContentStore | None = None
    artifacts: ArtifactStore | None = None
    examine: Examine | None = None
    #: The batches that a call can start and read.
    batches: Callable[[Call, Run], BatchAccess] | None = None
    observer: Observer | None = None
    resource_locks: ResourceLocks = field(default_factory=lambda: ResourceLocks(None))
    resource_pool: ResourcePool = field(default_factory=ResourcePool)
    #: The work of clients that can hold the event loop.
    long_blocks: LongBlocks = field(default_factory=LongBlocks)
    #: Where the values of the sessions' arguments come from.
    provenance: Provenance = field(default_factory=Provenance)
    #: The principal of calls without a session. An answer "for this session" applies to the calls of its principal.
    principal: str = "own"
    #: The size in bytes up to which an output is returned completely. For a larger output, the caller gets a part and a handle.
    output_bytes: int = 1024 * 1024

    def ruling(self, *, audit: bool = True) -> RulesInForce:
        """The current rules and the authority that applies them.

        Pass ``audit=False`` to read the rules without writing an audit entry when they have changed.

        Raises:
            Failure: `governance_unavailable`.
        """
        return available(available(self.rules).in_force(self.root, self.modes, audit=audit))

    @property
    def quota(self) -> float:
        """The bytes that may be stored for a session. Without rules it is the default, because refusals are stored, too."""
        try:
            return self.ruling(audit=False).governance.session_bytes
        except Failure:
            return Governance().session_bytes

    @property
    def record(self) -> Projections:
        """The sessions, approvals, reviews and counts of the home. Examples and replays have none."""
        assert self.projections is not None
        return self.projections

    @property
    def workspace(self) -> Workspace:
        """The workspace.

        Raises:
            Failure: `governance_unavailable` if there is none.
        """
        return available(self.workspace_or_failure)

    @property
    def root(self) -> str:
        """The path of the workspace. Raises as `workspace`."""
        return str(self.workspace.root)

    def client_of(self, token: Any) -> str | None:
        """Whose share of what few can use at once the session of a token uses: that of the outermost session around it.

        So sessions that a session opens add nothing to its share. None for the owner, and for a session that is not active.
        """
        if token is None:
            return None
        try:
            return self.record.sessions.client_of(token, self.root)
        except Failure:
            return None

    @property
    def governance(self) -> Governance | Failure:
        """The current rules, or the failure that explains why there are none."""
        return self.rules.current() if isinstance(self.rules, RulesSource) else self.rules

    @property
    def authority(self) -> Authority | None:
        """The current authority; None if no decision is possible."""
        try:
            return self.ruling(audit=False).authority
        except Failure:
            return None

    def flow_decisions(self, definition: ToolDefinition) -> list[Decision]:
        """The flows of a composite that the rules deny or ask about, as far as they are known before it runs.

        The list is empty for a primitive, and if no decision is possible.
        """
        authority, manifest = self.authority, definition.manifest
        if authority is None or manifest is None:
            return []
        return authority.policy.flows.judge_version(definition.name, manifest, definition.version)


class Queued(Struct, frozen=True):
    """What a request for a queue says: its queue, and its priority, of which the lowest is first.

    If the run works in a checkout that the worker makes, also the URL of the git repository, the commit in 40 hex digits, and what
    its changes become: a ``patch``, or a ``branch`` of the repository. `find_commit` asks the repository for the commit. It is
    called when all else is judged, so that a request that is refused does not reach the repository. It may raise a Failure.

    `batch` is the id of its batch, or empty. `session` is the id of the session whose call makes the request, if it is not made
    with a token.
    """

    queue: str
    priority: int
    repository: str | None = None
    commit: str = ""
    changes: str = "patch"
    find_commit: Callable[[], str] | None = None
    batch: str = ""
    session: str | None = None

    def workspace(self, root: str) -> str:
        """The name of the workspace: that of the checkout, or `root`."""
        return root if self.repository is None else f"{CHECKOUT}{self.repository}@{self.commit}"


class Resumed(Struct, frozen=True, eq=False):
    """An earlier run that a request resumes or replays: its id and journal, the id of its session, the principal of lasting
    answers, and the dedupe key's id in the record.

    `queue` and `batch` are those of the run, or empty. In a replay, all results of calls are read from the journal. With
    `new_version`, another version of the tool is replayed; it may call other versions of saved tools.
    """

    id: str
    journal: RunJournal | None
    session: str | None = None
    principal: str | None = None
    repeat: str | None = None
    is_replay: bool = False
    new_version: bool = False
    queue: str = ""
    batch: str = ""


#: For a run that begins with its request.
NOT_RESUMED = Resumed("", None)


class Questions(Struct, eq=False):
    """The questions to people during a run: the seconds that they took to answer, which no limit includes, and the open ones."""

    waited: float = 0.0
    #: The programs whose clocks stop while a question is open; the number of open questions, and when the first was opened.
    programs: list[RunReport] = field(default_factory=list)
    open: int = 0
    open_since: float = 0.0
    #: Held while a person is asked, because the application is asked one question of a run at a time.
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class RequestOptions(Struct, frozen=True, eq=False):
    """How a request is made.

    `log` is called with the tool and the text for each print of the program, and `watch` with the name of each tool that the
    program calls, when the call begins.
    """

    log: Log | None = None
    watch: Callable[[str], None] | None = None
    #: A version to run instead of the stored one: of a source that `run_source` runs, or of a source with examples.
    unsaved: ToolVersion | None = None
    #: Answers that replace tools in the examples of a source, by tool name.
    stubs: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None
    #: The earlier run that the request resumes or replays.
    resumed: Resumed = NOT_RESUMED
    #: The action that is requested in place of a tool, see `engine.actions`.
    action: Primitive | None = None
    #: The queue in which the request waits for a worker. Its result is the failure `suspended`.
    queued: Queued | None = None


#: For a request of a tool of that name.
NO_OPTIONS = RequestOptions()


class RequestReport(Struct, eq=False):
    """What a request has done so far, for its result. `calls` are those of its program."""

    #: The decision about the request itself.
    decision: dict[str, Json] = field(default_factory=UNJUDGED_POLICY.copy)
    #: The output as the caller gets it, see `output_or_handle`, or UNSET.
    shown: Any = UNSET
    effects: list[Effect] = field(default_factory=list)
    calls: int = 0
    printed: list[str] = field(default_factory=list)
    printed_bytes: int = 0


class Run(Struct, eq=False):
    """One request, with everything that changes while it is executed. All calls of the request share it."""

    id: str
    invocation: ToolInvocation
    service: ServiceContext
    stages: Stages
    lookup: Lookup
    #: The folder in which the calls work: the workspace, or the session's folder in the workspace.
    workspace_or_failure: Workspace | Failure
    #: Starts the sandbox. It is awaited when a composite runs.
    sandbox: Callable[[], Awaitable[Sandbox]]
    #: Finds out anew what a version can do, if an earlier analysis has found it out.
    renewed: Renewed
    #: A monotonic clock, in seconds.
    clock: Callable[[], float]
    #: When the request began, by the clock.
    began: float
    #: The place of the request in a trace, as a W3C traceparent: in the caller's trace, or in a new one.
    trace: str
    options: RequestOptions
    journal: RunJournal
    entries: Entries

    #: The session whose request it is, as it was when the request came, or why there is none; None for the owner.
    line: Line | Failure | None = None
    session: LeasedSession | NoSession = NO_SESSION
    #: The tool of the request.
    target: Target = UNKNOWN

    #: The content store's reference to the unsaved version.
    source: str | None = None
    #: ``KEY:DIGEST`` of the dedupe key and the arguments, after the call with this key has begun.
    repeat: str | None = None
    #: A private copy of the request's arguments, after their validation.
    arguments: dict[str, Any] = field(default_factory=dict)
    #: What the session had seen when the request was judged, of `flow_rules.SEEN`.
    seen_before: frozenset[str] = frozenset()
    #: Whether an earlier request of the session failed, so that a success must be recorded as the end of failures in a row.
    after_failure: bool = False
    report: RequestReport = field(default_factory=RequestReport)
    #: Why the run must stop, after somebody has cancelled it.
    stop: Failure | None = None
    task: asyncio.Task[Any] | None = None
    questions: Questions = field(default_factory=Questions)

    @property
    def workspace(self) -> Workspace:
        """The folder in which the calls work. Raises as `ServiceContext.workspace`."""
        return available(self.workspace_or_failure)

    @property
    def contents(self) -> ContentStore | None:
        """The content store for the session of the run; without a session, the whole store."""
        stored = self.service.contents
        if stored is None or isinstance(self.session, NoSession):
            return stored
        from albert_tools.engine.call.session_contents import SessionContents

        return SessionContents(stored, self.session)

    @property
    def batch(self) -> str:
        """The id of the batch to which the run belongs, or empty."""
        queued = self.options.queued
        return queued.batch if queued is not None else self.options.resumed.batch

    @property
    def principal(self) -> str:
        """The principal of lasting answers: the session; or the service if there is no session."""
        return self.session.origin or self.options.resumed.principal or self.service.principal


class CallReport(RunReport):
    """What happens during one call. Only the call's execution changes it."""

    effects: list[Effect] = field(default_factory=list)
    #: The text that the call and its nested calls have printed, for the journal.
    printed: list[str] = field(default_factory=list)
    retried: int = 0
    #: A file with private data that the call has read, and a URL for which it has asked besides those of its arguments.
    private_path: str | None = None
    asked: str | None = None
    #: What its session has seen by the lines that were shown while it ran; see `seen`.
    shown: dict[str, Json] = field(default_factory=dict)
    #: When the execution began, in seconds since 1970; 0 for a call that was refused.
    began: float = 0.0
    #: The entry with the decision.
    entry: Entry | None = None


#: The decision about a call that no rule has judged yet.
UNJUDGED = Decision("deny", "unjudged", "no_rule", "no rule has judged the call")


class Call(Struct, frozen=True, eq=False):
    """One call. It is immutable: each stage returns a copy with what it has found out.

    The first fields state what is called, and by whom. `step` is the call's place in the run; it is empty for the request itself.
    `parent` is the id of the caller's call. `callers` and `trail` are the names and versions of the composites around the call.
    """

    tool: Any
    version: str | None
    #: The arguments as the caller gave them. The journal of a run contains them.
    given: Any
    id: str
    #: When the call must have ended, in the time of the run's clock without the time that people take to answer.
    deadline: float
    report: CallReport
    span: Span | None = None
    #: Whether the checker has seen the call in the program. True for a call from outside.
    pinned: bool = True
    parent: str | None = None
    step: str = ""
    depth: int = 0
    callers: tuple[str, ...] = ()
    trail: tuple[str, ...] = ()

    #: From `lookup`.
    target: Target = UNKNOWN
    #: From the journal: the step, if the call had begun in another process and was interrupted there.
    interrupted: Step | None = None
    #: From `validate`: the valid arguments.
    arguments: dict[str, Any] = field(default_factory=dict)
    #: The approved versions around the call, outermost first; from `reviewed`.
    fences: tuple[Fence, ...] = ()
    #: The approved version outside of whose manifest the call is, and why; for each fence, the planned calls that allow the call.
    beyond: tuple[str, str] | None = None
    planned: tuple[tuple[PlannedCall, ...], ...] = ()
    #: From `mode` and `policy`.
    mode: Mode = "NORMAL"
    rules: RulesInForce = RulesInForce(Governance(), ExampleAuthority())
    decision: Decision = UNJUDGED
    #: The rules that ask, each with its subject.
    asks: tuple[tuple[str, str], ...] = ()
    #: From `allowance`: the rate limits that count the call, and the journal's entry if this run has begun the same call before.
    windows: tuple[tuple[str, int], ...] = ()
    begun_before: Entered | None = None
    #: From `approval`: the person's answer, and the objects that it covers, by absolute path.
    approval: Approval | None = None
    approved: Mapping[str, Fingerprint] | None = None

    @property
    def name(self) -> str:
        """The tool's name; before `lookup`, the name that was asked for."""
        return self.target.definition.name or str(self.tool)

    @property
    def place(self) -> str:
        """The step's name in the journal; ``0`` for the only call in the run of a primitive."""
        return self.step or "0"

    @property
    def is_step(self) -> bool:
        """Whether the call is a step: a call by a program, or the only call in the run of a primitive."""
        return self.depth > 0 or self.target.primitive is not None


Stage = Callable[[Call, Run], Awaitable[Call]]
Stages = tuple[Stage, ...]
#: Governs one call; see `Pipeline.call`.
Invoke = Callable[[Call, Run], Awaitable[Any]]

"""`ToolService`, the façade: every operation that an application can do with tools.

The service makes its parts, and its methods are theirs; this module says which part has which method. It makes no decision itself:
a confined process checks sources, and the pipeline authorizes and runs calls. Slow work runs in a thread.
`albert_tools.ToolService.open` creates a service with the real components.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from msgspec.structs import replace

from albert_tools.engine.actions import ActionRequest, Actions
from albert_tools.engine.authoring import Authoring
from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.resource_pool import ResourcePool
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.describing import Describer
from albert_tools.engine.listing import Listing
from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.owner import OwnerDecisions
from albert_tools.engine.pipeline.pipeline import Pipeline
from albert_tools.engine.running import Running
from albert_tools.engine.runs.runs import RunManager
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.sandbox.worker.spawn import discard
from albert_tools.engine.session_access import SessionAccess
from albert_tools.engine.session_runs import SessionRuns
from albert_tools.engine.sources import Sources

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approvals
    from albert_tools.engine.authority.reviews import Reviews
    from albert_tools.engine.authority.rules_source import RulesInForce
    from albert_tools.engine.authority.sessions import Sessions
    from albert_tools.engine.batches import Batches
    from albert_tools.engine.call.context import Call, Run
    from albert_tools.engine.model.protocols import BatchAccess
    from albert_tools.engine.other_home import Library, OtherHome
    from albert_tools.engine.policy.settings import Governance
    from albert_tools.engine.receiving import Received
    from albert_tools.engine.runs.run_queue import RunQueue
    from albert_tools.engine.runs.schedules import Schedules
    from albert_tools.engine.sandbox.worker.spawn import Spawned
    from albert_tools.engine.suggesting import Suggestion, Suggestions
    from albert_tools.engine.workspace.workspace import Workspace

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _of(part: str, method: Callable[Concatenate[Any, _P], _T]) -> Callable[Concatenate[ToolService, _P], _T]:
    """The method of `ToolService` that calls this method of one of its parts."""

    @wraps(method)
    def call(self: ToolService, /, *args: _P.args, **named: _P.kwargs) -> _T:
        return method(getattr(self, part), *args, **named)

    return call


def _within(
    part: str, method: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]]
) -> Callable[Concatenate[ToolService, _P], Coroutine[Any, Any, _T]]:
    """The same for a method that can start processes, so it is called between the beginning and the end of `async with`."""

    @wraps(method)
    async def call(self: ToolService, /, *args: _P.args, **named: _P.kwargs) -> _T:
        self._must_be_open()
        return await method(getattr(self, part), *args, **named)

    return call


class ToolService:
    """Defines, checks, saves, lists and runs tools. Use it as an async context manager.

    Args:
        registry: The primitives and the saved tools.
        store: The saved tools.
        context: The workspace, the rules and the record.
        sandbox: A sandbox that is not started. The service starts it before the first run of a composite.
        library: The home in which a search also looks.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        store: ToolStore,
        context: ServiceContext,
        sandbox: Sandbox,
        library: Library | None = None,
    ) -> None:
        self.registry = registry
        self.store, self.library = store, library
        self._context = context = replace(context, batches=self._own_batches)
        self._sandbox = sandbox
        #: The mode and the ledger of this home.
        self.modes, self.ledger = context.modes, context.ledger
        self._entered = self._closed = False
        self._pipeline = pipeline = Pipeline(registry, store, self._started, self._renewed)
        self._lookup = lookup = pipeline.lookup
        #: The runs of this home: list, show, resume, cancel and replay them.
        self.runs = runs = RunManager(pipeline, context)
        self._access = access = SessionAccess(context, lookup)
        self.actions = actions = Actions(pipeline, context, access)
        self._describer = Describer(context, lookup, access)
        self._listing = Listing(context, lookup, self._describer, access, library)
        self._sources = sources = Sources(context, lookup, access)
        self._authoring = Authoring(context, pipeline, sources, actions, access)
        self._owner = OwnerDecisions(context, pipeline, runs, sources, self._authoring)
        self.running = Running(context, pipeline, runs, sources, actions)
        self._session_runs = SessionRuns(context, lookup, runs, actions, access)
        self._suggestions: Suggestions | None = None
        registry.load = lambda name: context.record.reviews.by_name(name)

    async def __aenter__(self) -> ToolService:
        self._entered = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the sandbox and close the workspace and the ledger. After that, nothing can be run or defined."""
        await self._close_own()
        await self._sandbox.close()
        self._close_parts(self._context.ledger, self.store, self.library)

    @asynccontextmanager
    async def beside(self, **changes: Any) -> AsyncIterator[Self]:
        """Another service, whose context has these changes. It uses the tools, the record and the sandbox of this one."""
        context = replace(self._context, **changes, resource_pool=ResourcePool())
        service = type(self)(self.registry, self.store, context, self._sandbox)
        service._entered = True
        try:
            yield service
        finally:
            await service._close_own()

    async def _close_own(self) -> None:
        """Close what no other service uses."""
        self._closed = True
        self.running.close()
        await self._sources.close()
        await self._context.resource_pool.close()
        self._close_parts(self._context.workspace_or_failure)

    @staticmethod
    def _close_parts(*parts: object) -> None:
        for part in parts:
            close = getattr(part, "close", None)
            if close is not None:
                # All entries that must survive a crash have already been written to the disk.
                with suppress(Failure):
                    close()

    def _must_be_open(self) -> None:
        if self._closed:
            raise RuntimeError("this service is closed; open another one")
        if not self._entered:
            # Nobody would end its processes.
            raise RuntimeError("this service was not entered; write `async with ToolService.open(…) as service:`")

    async def _renewed(self, version: ToolVersion, is_stored: bool) -> ToolVersion:
        return await self._sources.renewed(version, is_stored)

    async def _started(self) -> Sandbox:
        await self._sandbox.start()
        return self._sandbox

    async def prepare(self, name: str, spawned: Spawned | None = None, version: str | None = None) -> None:
        """Start the sandbox for one tool. It loads only the façades that the tool and its callees import.

        Without this method, the sandbox starts at the first run and loads all façades.

        Args:
            name: The tool.
            spawned: A zygote that was started earlier. The service becomes responsible for it, even if this method fails.
            version: A version of the tool; the newest by default.

        Raises:
            Failure: `unknown_tool`, `damaged`, `sandbox_unavailable`.
        """
        modules: set[str] = set()
        try:
            self._must_be_open()
            pending = [self.store.load(name, version) if version is not None else self._lookup.by_name(name)]
            while pending:
                current = pending.pop()
                modules.update(current.program.imports)
                pending += [self.store.load(c.name, c.version) for c in current.calls if c.kind == "composite"]
        except (Failure, RuntimeError):
            if spawned is not None:
                discard(spawned)
            raise
        self._sandbox.expect(sorted(modules))
        await self._sandbox.start(spawned)

    @property
    def confinement(self) -> str:
        """The confinement of the workers: ``seccomp``, ``landlock`` or ``rlimits``. Empty until the first worker starts."""
        return self._sandbox.confinement

    # The parts of the service that surfaces read

    @property
    def workspace(self) -> Workspace:
        """The workspace. Raises Failure `governance_unavailable` if there is none."""
        return self._context.workspace

    @property
    def workspace_or_failure(self) -> Workspace | Failure:
        """The workspace, or the reason why there is none."""
        return self._context.workspace_or_failure

    @property
    def governance(self) -> Governance | Failure:
        """The rules, or the reason why there are none."""
        return self._context.governance

    @property
    def problem_of_rules(self) -> str | None:
        """Why changed rules are not in force, so that those before them still are; None if there is no such problem."""
        rules = self._context.rules
        return None if isinstance(rules, Failure) else rules.problem

    def ruling(self) -> RulesInForce:
        """The rules and the authority that applies them. Raises Failure `governance_unavailable`."""
        return self._context.ruling(audit=False)

    @property
    def quota(self) -> float:
        """The bytes that may be stored for a session."""
        return self._context.quota

    @property
    def sessions(self) -> Sessions:
        """The sessions of this home."""
        return self._context.record.sessions

    @property
    def approvals(self) -> Approvals:
        """The approvals of this home."""
        return self._context.record.approvals

    @property
    def reviews(self) -> Reviews:
        """The states of the saved versions of this home."""
        return self._context.record.reviews

    @cached_property
    def queue(self) -> RunQueue:
        """The queued runs of this home, and their workers."""
        from albert_tools.engine.runs.run_queue import RunQueue

        record = self._context.record
        return RunQueue(record.ledger, record.rate_limits, lambda: self.ruling().governance.queues)

    @cached_property
    def batches(self) -> Batches:
        """The batches of this home."""
        from albert_tools.engine.batches import Batches

        return Batches(self._context.record.ledger, self.running, self.runs, self._sources)

    def _own_batches(self, call: Call, run: Run) -> BatchAccess:
        from albert_tools.engine.own_batches import OwnBatches

        return OwnBatches(self.batches, call, run)

    @cached_property
    def schedules(self) -> Schedules:
        """The schedules of this home."""
        from albert_tools.engine.runs.schedules import Schedules

        return Schedules(self._context.record.ledger)

    def register(self, primitive: Primitive) -> None:
        """Add a primitive of the application.

        Raises:
            TypeError: The object is not a primitive.
            ValueError: Another primitive has the same name.
        """
        self.registry.register(primitive)

    # Tools

    check = _within("_sources", Sources.check)
    check_together = _within("_sources", Sources.check_together)
    format = _within("_sources", Sources.format)
    outline = _within("_sources", Sources.outline)
    prepare_judge = _within("_sources", Sources.prepare_judge)
    define = _within("_authoring", Authoring.define)
    define_version = _within("_authoring", Authoring.define_version)
    remove = _within("_authoring", Authoring.remove)
    describe = _of("_describer", Describer.describe)
    callers = _of("_describer", Describer.callers)
    outdated = _of("_lookup", Lookup.problem_of)
    list = _of("_listing", Listing.list)
    search = _of("_listing", Listing.search)
    standing = _of("_describer", Describer.standing)
    flow_decisions = _of("_context", ServiceContext.flow_decisions)

    async def suggest(
        self,
        limit: int = 10,
        *,
        session: str | None = None,
        everyone: bool = False,
        request: ActionRequest | None = None,
    ) -> builtins.list[Suggestion]:
        """See `Suggestions.suggest`."""
        if self._suggestions is None:
            # What few services need is loaded late.
            from albert_tools.engine.suggesting import Suggestions

            self._suggestions = Suggestions(self._context, self._lookup, self.actions, self._access)
        return await self._suggestions.suggest(limit, session=session, everyone=everyone, request=request)

    async def receive(
        self, version: ToolVersion, there: OtherHome, here: str, by: str, **more: Any
    ) -> builtins.list[Received]:
        """Take a version over from another home, with all that it calls, see `Receiver.receive`."""
        from albert_tools.engine.receiving import Receiver

        self._must_be_open()
        receiver = Receiver(self._context, self.store, self._sources, self._authoring)
        return await receiver.receive(version, there, here, by, **more)

    # Reviews

    review = _within("_owner", OwnerDecisions.review)
    decide = _within("_owner", OwnerDecisions.decide)
    approve = _within("_owner", OwnerDecisions.approve)
    deprecate = _within("_owner", OwnerDecisions.deprecate)
    upgrade = _within("_owner", OwnerDecisions.upgrade)

    # Runs

    invoke = _within("running", Running.invoke)
    run_source = _within("running", Running.run_source)
    enqueue = _within("running", Running.enqueue)
    validate = _within("running", Running.validate)
    resume = _within("running", Running.resume)
    list_runs = _of("_session_runs", SessionRuns.list_runs)
    show_run = _of("_session_runs", SessionRuns.show_run)
    cancel_run = _of("_session_runs", SessionRuns.cancel_run)
    records = _of("_session_runs", SessionRuns.records)

    # Sessions

    open_session = _of("_session_runs", SessionRuns.open_session)
    sign_in = _of("_session_runs", SessionRuns.sign_in)
    withdraw_sessions = _of("_session_runs", SessionRuns.withdraw_sessions)
    list_sessions = _of("_session_runs", SessionRuns.list_sessions)
    revoke_session = _of("_session_runs", SessionRuns.revoke_session)
    client_of = _of("_context", ServiceContext.client_of)
    session_of = _of("_access", SessionAccess.session)
    session_line = _of("_access", SessionAccess.line)
    covers = _of("_access", SessionAccess.covers)
    coverage = _of("_access", SessionAccess.coverage)
    demand_covered = _of("_access", SessionAccess.demand_covered)
    contents = _of("_access", SessionAccess.contents)

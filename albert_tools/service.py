"""Assembles a service: the store in the user's home, the built-in primitives, the workspace and the rules."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from albert_tools.builtins.catalog import builtin_loaders
from albert_tools.engine import service as engine
from albert_tools.engine.authority.authorization import Asker
from albert_tools.engine.authority.projections import Projections
from albert_tools.engine.authority.rules_source import RulesSource
from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.resource_locks import ResourceLocks
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import FolderFile
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.engine.policy.settings import Governance, read_governance
from albert_tools.engine.sandbox.command.view import imported_from
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.workspace.find_workspace import find_workspace
from albert_tools.engine.workspace.workspace import Workspace
from albert_tools.store.home import Home, home_at
from albert_tools.store.places import LIBRARY, Homes, checkouts
from albert_tools.store.record.runs import Runs

if TYPE_CHECKING:
    from albert_tools.engine.agent.offers import Offer
    from albert_tools.engine.agent.tool_specs import Provider
    from albert_tools.engine.authority.sessions import Session
    from albert_tools.engine.model.result import ToolResult
    from albert_tools.engine.model.telemetry import Observer
    from albert_tools.engine.other_home import Library, OtherHome

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: The largest output in bytes that is returned whole.
OUTPUT_BYTES = 1024 * 1024

#: The rules of an application, or the path of their file.
GivenRules = Mapping[str, Any] | str | os.PathLike[str] | None


class ToolService(engine.ToolService):
    """The tools of one user in one workspace::

    async with ToolService.open(workspace="project") as service:
        await service.define(source)
        result = await service.invoke("count_words", {"path": "notes.md"})
        print(result.value())
    """

    home: Home
    #: The rules as `open` got them.
    given_rules: GivenRules = None

    @classmethod
    def open(
        cls,
        *,
        home: str | os.PathLike[str] | None = None,
        workspace: str | os.PathLike[str] | None = None,
        governance: GivenRules = None,
        primitives: Iterable[Primitive] = (),
        builtins: Iterable[str] | None = None,
        ask: Asker | None = None,
        patience: float | None = 0.0,
        telemetry: Observer | None = None,
        output_bytes: int = OUTPUT_BYTES,
        importable: Collection[str] | None = None,
    ) -> ToolService:
        """Make a service, to be used with ``async with``.

        Args:
            home: The folder to use instead of ``~/.albert``, with configuration, cache and state; by default that of `ALBERT_HOME`.
                Or the URL of a PostgreSQL database, ``postgresql://user@host/database``, which needs the extra ``fleet``.
            workspace: The folder that tools work in; by default the nearest one at or above the current folder that has
                ``.albert`` or ``.git``. Without a workspace tools can be defined, but every call is denied.
            governance: The rules, as a mapping or as the path of a file; by default the user's ``governance.yaml``. The project's
                own ``.albert/governance.yaml`` tightens either.
            primitives: The application's primitives, in addition to the built-in ones.
            builtins: The names of the built-in primitives that the service has; by default all, and an empty list means none.
            ask: Called when the rules require a person's approval. Returns yes or no, or one of the question's choices.
            patience: Without `ask`, the number of seconds that such a call waits for an answer from another process
                (`albert approvals`) before its run is suspended. None denies the call at once.
            telemetry: An observer that is notified when each call begins and ends.
            output_bytes: The size of the largest output that is returned whole. Of a larger output the caller gets a part and a
                handle for `read_result`.
            importable: The entries of the rules' ``primitives_from`` that may be imported; by default all.

        Returns:
            The service. Nothing has been started yet.

        Raises:
            Failure: `io_error`: the home folder can't be found; `invalid_arguments`: the URL is wrong; `not_found`: the extra
                ``fleet`` is not installed; `governance_unavailable`: this process reads the names of files in another charset than
                UTF-8.
            ValueError: the name of a primitive is taken, or `builtins` names none.
        """
        charset = sys.getfilesystemencoding()
        if charset != "utf-8":
            # Rules and git name files in UTF-8, and bash would get a command's text as other words than those that were judged.
            message = f"this process reads the names of files in {charset}, not in UTF-8"
            raise Failure("governance_unavailable", message, hint="set PYTHONUTF8=1, or a locale in UTF-8")
        environ = dict(os.environ)
        if home is not None:
            environ["ALBERT_HOME"] = os.fspath(home) or "."
        homes = Homes.resolve(environ)
        stored = home_at(homes)
        store, ledger = stored.tools, stored.record
        registry = ToolRegistry(primitives, store, builtin_loaders(builtins))
        registry.refresh = _Mounts(stored, registry)
        registry.refresh()
        workspace_or_failure = _workspace(workspace, homes, governance)
        rules = _rules(
            governance, stored, workspace_or_failure, {*builtin_loaders(), *registry.primitive_names, *RESERVED}
        )
        _import_primitives(rules, registry, workspace_or_failure, importable)
        examiner = _Examiner()
        context = ServiceContext(
            workspace_or_failure,
            rules,
            modes=stored.modes(),
            ask=ask,
            patience=patience,
            ledger=ledger,
            projections=Projections(ledger, store),
            runs=Runs(ledger),
            contents=stored.contents,
            artifacts=stored.artifacts,
            examine=examiner.examine,
            observer=telemetry,
            resource_locks=ResourceLocks(homes.state / "turns"),
            principal=f"own:{os.urandom(8).hex()}",
            output_bytes=output_bytes,
        )
        service = cls(registry, store, context, Sandbox(_limits(rules)), _library())
        service.running.agent_tools = _AgentTools(service)
        service.home, service.given_rules = stored, governance
        examiner.service = service
        return service

    @asynccontextmanager
    async def elsewhere(self, folder: str | os.PathLike[str]) -> AsyncIterator[ToolService]:
        """A service of the same home in another workspace. It uses the tools, the record and the sandbox of this one.

        Args:
            folder: The folder of the workspace.
        """
        workspace_or_failure = _workspace(folder, self.home.local, self.given_rules)
        primitives = {*builtin_loaders(), *self.registry.primitive_names, *RESERVED}
        rules = _rules(self.given_rules, self.home, workspace_or_failure, primitives)
        async with self.beside(workspace_or_failure=workspace_or_failure, rules=rules) as service:
            service.home, service.given_rules = self.home, self.given_rules
            yield service

    # What an agent is offered

    async def offered(self, *, session: str | None = None) -> list[Offer]:
        """The tools that an agent is offered: its own, the primitives and the active saved tools, as far as the lease and the rules
        allow them.

        Args:
            session: The token of the agent's session; None for the owner.

        Raises:
            Failure: `permission_denied` if the session has ended; `io_error`, `damaged`.
        """
        from albert_tools.engine.agent.offers import offered

        return await asyncio.to_thread(offered, self, session)

    def offers_changed(self) -> str:
        """A text that differs after each change of what is active, by any process. Raises Failure `io_error`, `damaged`."""
        self.registry.refresh()
        return f"{self.reviews.changed()} {hash(tuple(self.registry.mounted.items()))}"

    async def tool_specs(self, provider: Provider, *, session: str | None = None) -> list[dict[str, Any]]:
        """The offered tools in the form that a provider of models takes, see `tool_specs.tool_specs`."""
        from albert_tools.engine.agent.tool_specs import tool_specs

        return tool_specs(await self.offered(session=session), provider)

    async def guide(
        self,
        tools: Collection[str] = (),
        tokens: int | None = None,
        *,
        session: str | None = None,
        commands: bool = False,
    ) -> str:
        """The guide for a model that writes tools: the language on one page, and the tools that its programs can call.

        Args:
            tools: The tools whose signatures come first, such as those that the model will need.
            tokens: The most tokens, by a cautious estimate. Default: the whole page, and 2,600 for the tools.
            session: The token of the agent's session; None for the owner.
            commands: Whether the agent uses the command line, and has no tools of its own.

        Raises:
            Failure: `unknown_tool`; `invalid_arguments` if `tokens` is too small; `permission_denied` if the session has ended or
                its lease does not cover one of `tools`; `io_error`, `damaged`.
        """
        from albert_tools.engine.agent.guide import COMMANDS, OWN_TOOLS, guide

        return await asyncio.to_thread(guide, self, tools, tokens, session, COMMANDS if commands else OWN_TOOLS)

    async def stubs(self, *, session: str | None = None) -> str:
        """The stub file for type checkers and editors: the tools that programs can call, and the names that need no import.

        Args:
            session: The token of a session. The file has only the tools that its lease covers.

        Raises:
            Failure: `permission_denied` if the session has ended; `io_error`.
        """
        from albert_tools.engine.agent.stub_file import stubs

        return await asyncio.to_thread(stubs, self, session)

    async def __aenter__(self) -> ToolService:
        await super().__aenter__()
        return self


class _AgentTools:
    """The agent's own tools. Most processes need none, so their module is imported at the first use."""

    def __init__(self, service: ToolService) -> None:
        self._service = service

    async def invoke(self, *request: Any) -> ToolResult:
        from albert_tools.engine.agent.agent_tools import AgentTools

        return await AgentTools(self._service).invoke(*request)


class _Examiner:
    """Runs the checkup for the tool `self_check`. It is created before the service, which is set later."""

    service: ToolService

    async def examine(self, trials: bool) -> dict[str, Any]:
        """As `Examine`."""
        from contextlib import aclosing

        from albert_tools.checkup import checkup, document

        async with aclosing(checkup(self.service, self.service.home, trials)) as findings:
            return document([finding async for finding in findings])


def _place_of(place: str | None) -> Homes:
    return Homes.resolve(dict(os.environ) | ({} if place is None else {"ALBERT_HOME": place}))


def other_home(place: str | None) -> OtherHome:
    """The home at a folder or URL; None for the user's own.

    Raises:
        Failure: `not_found` for a folder without tools, and those of `home_at`.
    """
    from albert_tools.engine.other_home import OtherHome

    local = _place_of(place)
    if place is not None and not local.url and not local.tools.is_dir():
        hint = "give the folder that is ALBERT_HOME there, or the URL of a database"
        raise Failure("not_found", f"there is no home with tools at {local.shown}", hint=hint)
    home = home_at(local)

    def end_by(deadline: float) -> None:
        home.record.database.deadline = deadline

    def close() -> None:
        home.record.close()
        home.tools.close()

    return OtherHome(home.local.shown, home.tools, home.record, end_by, close)


def _library() -> Library | None:
    place = os.environ.get(LIBRARY)
    if not place:
        return None
    from albert_tools.engine.other_home import Library

    return Library(lambda: other_home(place))


def _workspace(named: str | os.PathLike[str] | None, homes: Homes, given: GivenRules) -> Workspace | Failure:
    try:
        folder = Path(named) if named is not None else None
        own = [homes.config, homes.cache, homes.state]
        # In the checkouts, a worker runs git outside of any sandbox. Only a run works there, in the folder `files` of its checkout.
        place = checkouts()
        below = os.path.relpath(os.path.realpath(folder or Path.cwd()), os.path.realpath(place)).split("/")
        if below[0] == ".." or below[1:2] != ["files"]:
            own.append(place)
        found = find_workspace(folder, Path.cwd(), Path.home(), homes.albert, own, _file_of(given))
        _search_workspace_last(str(found.root))
        return found
    except Failure as failure:
        return failure
    except (OSError, RuntimeError) as error:
        # Either the current folder was removed, or the home folder, which is never the workspace, is unknown.
        return Failure(
            "governance_unavailable",
            f"the workspace can't be found: {error}",
            hint="change to a folder that exists, and set HOME",
        )


def _search_workspace_last(workspace: str) -> None:
    """Move the folders in the workspace to the end of `sys.path`, except those of the Python installation.

    The path begins with the folder of a script, or with the current one (`python -m`). A module that a tool writes there must not
    replace an installed one, which the service imports when it first needs it.
    """
    last = imported_from(workspace)
    sys.path[:] = [*(folder for folder in sys.path if folder not in last), *last]


def _file_of(given: GivenRules) -> Path | None:
    """The file of an application's rules, if it names one. If a folder of the path is a link, it is followed once: the file that is
    read is the one that tools can't write."""
    if given is None or isinstance(given, Mapping):
        return None
    return Path(os.path.realpath(Path(given).parent), Path(given).name)


def _rules(
    given: GivenRules,
    home: Home,
    workspace: Workspace | Failure,
    primitives: Collection[str],
) -> RulesSource | Failure:
    project = None
    if not isinstance(workspace, Failure):
        project = Path(workspace.root) / ".albert" / "governance.yaml"
    try:
        if isinstance(given, Mapping):
            own = read_governance(given, "the application", primitives=primitives)
            return RulesSource(own, project, ledger=home.record, primitives=primitives)
        user = _file_of(given) or home.rules
        return RulesSource(user, project, required=given is not None, ledger=home.record, primitives=primitives)
    except Failure as failure:
        return failure


def _import_primitives(
    rules: RulesSource | Failure,
    registry: ToolRegistry,
    workspace: Workspace | Failure,
    importable: Collection[str] | None,
) -> None:
    """Import the primitives that the rules name.

    This happens once, at the start; later changes of the rules have no effect here.
    """
    entries = [entry for entry in _imports_of(rules) if importable is None or entry in importable]
    if entries:
        from albert_tools.engine.application_primitives import add_primitives

        root = None if isinstance(workspace, Failure) else os.fspath(workspace.root)
        add_primitives(registry, entries, root)


def _imports_of(rules: RulesSource | Failure) -> tuple[str, ...]:
    """The modules that the rules name; none if there are no rules."""
    current = rules.current() if isinstance(rules, RulesSource) else rules
    return current.primitives_from if isinstance(current, Governance) else ()


def imports_of_home(place: str | None) -> tuple[str, ...]:
    """The ``primitives_from`` of the rules of a home; place None is the user's own. Raises as `home_at`."""
    home = home_at(_place_of(place))
    try:
        return _imports_of(_rules(None, home, Failure("not_found", "no workspace"), {*builtin_loaders(), *RESERVED}))
    finally:
        home.record.close()
        home.tools.close()


class _Mounts:
    """Gives a registry the tools of the servers that the owner has mounted, again after each change by any process.

    Their library is not loaded before a call.
    """

    def __init__(self, home: Home, registry: ToolRegistry) -> None:
        self._registry = registry
        self._file, self._suspended = home.mounts, home.local.state / "mounts"
        self._seen: tuple[object, ...] = (None, None)

    def __call__(self) -> None:
        """Two looks at the home, if nothing has changed."""
        try:
            now = self._file.stamp(), FolderFile(self._suspended).stamp()
        except Failure as failure:
            # Nobody knows whether the tools are still mounted.
            self._registry.set_mounted({}, {}, [failure.message])
            self._seen = ()
            return
        if now != self._seen:
            from albert_tools.builtins.mounts.mounted_tools import set_mounts

            set_mounts(self._registry, self._file, self._suspended)
            self._seen = now


def _limits(rules: RulesSource | Failure) -> RunLimits:
    current = rules.current() if isinstance(rules, RulesSource) else rules
    return current.limits if isinstance(current, Governance) else RunLimits()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _waiting(
    method: Callable[Concatenate[ToolService, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[SyncToolService, _P], _T]:
    """The method of `SyncToolService` that calls this method and waits for its result."""

    @wraps(method)
    def wait(self: SyncToolService, /, *args: _P.args, **named: _P.kwargs) -> _T:
        return self._wait(method(self._service, *args, **named))

    return wait


def _opening(make: Callable[_P, ToolService]) -> Callable[Concatenate[type[SyncToolService], _P], SyncToolService]:
    """The same for the function that makes a service. It is called in the service's own thread."""

    @wraps(make.__func__)  # type: ignore[attr-defined]
    def open_service(cls: type[SyncToolService], /, *args: _P.args, **named: _P.kwargs) -> SyncToolService:
        return cls(lambda: make(*args, **named))

    return open_service


class SyncToolService:
    """`ToolService` for code that isn't async. It has the same methods, each of which waits for its result.

    The service runs in its own thread, and calls its listeners there. Any number of threads can call it::

        with SyncToolService.open(workspace="project") as service:
            service.define(source)
            print(service.invoke("count_words", {"path": "notes.md"}).value())
    """

    def __init__(self, make: Callable[[], ToolService]) -> None:
        self._closing = threading.Lock()
        # Guards `_shut`. A call is either submitted before the service closes, or refused.
        self._door = threading.Lock()
        self._shut = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="albert-tools", daemon=True)
        self._thread.start()
        try:
            self._service = self._wait(self._made(make))
        except BaseException:
            self._end()
            raise

    def _serve(self) -> None:
        """Runs in the service's own thread, because the caller of `close` may be in an event loop."""
        self._loop.run_forever()
        # Cancel calls that were submitted while the service was closing.
        self._loop.run_until_complete(_cancel_others())
        self._loop.close()

    @staticmethod
    async def _made(make: Callable[[], ToolService]) -> ToolService:
        return await make().__aenter__()

    def _submit(self, coroutine: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        with self._door:
            if self._shut:
                coroutine.close()
                raise RuntimeError("this service is closed; open another one")
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _wait(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError(
                "a listener can't wait for the service that calls it; call the service from another thread"
            )
        future = self._submit(coroutine)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError("this service was closed before it could answer") from None
        except BaseException:
            future.cancel()
            raise

    def __enter__(self) -> SyncToolService:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the service and end its thread. Runs that other threads wait for are cancelled."""
        with self._closing:
            if not self._loop.is_closed():
                self._wait(self._cancel_and_close())
                self._end()

    async def _cancel_and_close(self) -> None:
        await _cancel_others()
        await self._service.close()

    def _end(self) -> None:
        with self._door:
            self._shut = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def service(self) -> ToolService:
        """The service itself. Use it in its own thread only, see `within`."""
        return self._service

    def within(self, work: Callable[[ToolService], _T]) -> _T:
        """Call `work` with the service, in the service's thread, and return its result. Use it for sessions, approvals and runs."""

        async def done() -> _T:
            return work(self._service)

        return self._wait(done())

    def run(self, work: Callable[[ToolService], Coroutine[Any, Any, _T]]) -> _T:
        """Run the coroutine ``work(service)`` in the service's thread, and return its result."""
        return self._wait(work(self._service))

    async def arun(self, work: Callable[[ToolService], Coroutine[Any, Any, _T]]) -> _T:
        """As `run`, for a caller in an event loop of its own. If the caller is cancelled, so is the work."""
        return await asyncio.wrap_future(self._submit(work(self._service)))

    def open_session(self, client: str, **options: Any) -> tuple[Session, str]:
        """As `ToolService.open_session`."""
        return self.within(lambda service: service.open_session(client, **options))

    def register(self, primitive: Primitive) -> None:
        """As `ToolService.register`."""
        self._service.register(primitive)

    open = classmethod(_opening(ToolService.open))
    check = _waiting(engine.ToolService.check)
    define = _waiting(engine.ToolService.define)
    validate = _waiting(engine.ToolService.validate)
    invoke = _waiting(engine.ToolService.invoke)
    run_source = _waiting(engine.ToolService.run_source)
    enqueue = _waiting(engine.ToolService.enqueue)
    resume = _waiting(engine.ToolService.resume)
    list_runs = _waiting(engine.ToolService.list_runs)
    show_run = _waiting(engine.ToolService.show_run)
    cancel_run = _waiting(engine.ToolService.cancel_run)
    revoke_session = _waiting(engine.ToolService.revoke_session)
    records = _waiting(engine.ToolService.records)
    describe = _waiting(engine.ToolService.describe)
    list = _waiting(engine.ToolService.list)
    search = _waiting(engine.ToolService.search)
    remove = _waiting(engine.ToolService.remove)
    approve = _waiting(engine.ToolService.approve)
    deprecate = _waiting(engine.ToolService.deprecate)
    upgrade = _waiting(engine.ToolService.upgrade)
    review = _waiting(engine.ToolService.review)
    offered = _waiting(ToolService.offered)
    tool_specs = _waiting(ToolService.tool_specs)
    guide = _waiting(ToolService.guide)
    stubs = _waiting(ToolService.stubs)

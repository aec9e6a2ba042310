"""The façade: everything that can be done with tools, as one object.

It holds what belongs together (registry, store, sandbox, workspace, rules) and decides nothing itself: checking is `check`'s,
judging and running the pipeline's. What takes time on disk or processor runs in a thread, so one service can serve many at once.
The parts are given to it; `albert_tools.ToolService.open` is where the real ones are wired in.
"""

from __future__ import annotations

import asyncio
import builtins
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from albert_tools.engine.call.context import Log, ServiceContext
from albert_tools.engine.call.registry import ToolRegistry
from albert_tools.engine.model.definition import Callee, Json, ToolDefinition, ToolVersion
from albert_tools.engine.model.describe import confined_of, resources_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.protocols import Saved, Summary, ToolStore
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.engine.pipeline.pipeline import Pipeline
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.runs.runs import RunManager
from albert_tools.engine.sandbox.worker.pool import Sandbox

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approvals
    from albert_tools.engine.authority.authorization import Authority
    from albert_tools.engine.authority.sessions import Budget, Session, Sessions
    from albert_tools.engine.check.checker import Report
    from albert_tools.engine.sandbox.worker.spawn import Spawned
    from albert_tools.grammar.diagnostic import Diagnostic

_T = TypeVar("_T")

#: Seconds that a session lives when nobody says otherwise.
DAY = 24 * 3600.0
#: Seconds between two looks whether another process wants a run stopped, and how many with nothing to do until none is taken.
LOOK_SECONDS, MAX_IDLE_LOOKS = 0.25, 20
#: Versions that a description lists; a tool's whole history is seldom asked for.
MAX_VERSIONS = 10
#: Why a tool is refused that another mode would allow.
_OF_MODE = ("mode", "tool_mode")
#: Tools that are looked at for calls of one that was replaced.
MAX_CALLERS = 1000


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of the list of tools. `outdated` or `problem` says why it can't run.

    `changed` names the saved tools it calls in a version that is no longer the newest; it runs on with that one. `policy` is
    what the rules say of every call in the present mode, whatever its arguments; see `ToolService.standing`.
    """

    name: str
    kind: str
    description: str
    signature: str = ""
    category: str = ""
    version: str = ""
    versions: int = 0
    created: str = ""
    outdated: str | None = None
    problem: str | None = None
    changed: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    policy: Mapping[str, Json] = dataclasses.field(default_factory=dict)

    @property
    def hidden(self) -> bool:
        """Whether the present mode refuses it, whatever its arguments."""
        return self.policy.get("rationale_code") in _OF_MODE


@dataclass(frozen=True, slots=True)
class Description:
    """Everything about one tool; `source`, `calls`, `created` and what follows are those of a saved one.

    `gated` needs the owner's permission. `resources` are the parameters of a primitive that rules judge, each with what as;
    `policy` is what they say of every call now, `bounds` the seconds and the calls per hour that they leave it. `newest` has, for
    each saved tool it calls, the version that a call would reach if it were defined now; None for one that was removed.
    `versions` are the last ones saved, `total` says how many there are.
    """

    definition: ToolDefinition
    source: str = ""
    calls: tuple[Callee, ...] = ()
    created: str = ""
    outdated: str | None = None
    gated: bool = False
    newest: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    versions: tuple[Saved, ...] = ()
    total: int = 0
    resources: Mapping[str, str] = dataclasses.field(default_factory=dict)
    policy: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    bounds: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    #: What of a primitive runs confined: ``function``, ``command``, or nothing.
    confined: str = ""

    @property
    def changed(self) -> tuple[Callee, ...]:
        """The callees that have been replaced or removed since; this tool runs on with what it was checked against."""
        return _changed(self.calls, self.newest)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        d = self.definition
        return {
            "name": d.name,
            "kind": d.kind,
            "description": d.description,
            "signature": d.signature(),
            "parameters": d.parameters_schema(),
            "result": d.result,
            "depth": d.depth,
            "version": d.version,
            "created": self.created,
            "calls": [
                {"name": c.name, "kind": c.kind, "version": c.version, "newest": self.newest.get(c.name, c.version)}
                for c in self.calls
            ],
            "outdated": self.outdated,
            "gated": self.gated,
            "effects": list(d.effects),
            "timeout_seconds": d.timeout,
            **d.governance(),
            "confined": self.confined,
            "resources": dict(self.resources),
            "policy": dict(self.policy),
            "bounds": dict(self.bounds),
            "versions": [{"version": v.version, "created": v.created, "current": v.current} for v in self.versions],
            "versions_total": self.total,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Defined:
    """What a definition outcome to: the version, the checker's warnings, and what it means for what was there.

    `outcome` is ``saved``, ``replaced`` (then `replaced` is the hash of what was the newest before) or ``unchanged``.
    `callers` are saved tools that go on calling an older version, because that is what they were checked against.
    """

    version: ToolVersion
    warnings: tuple[Diagnostic, ...]
    outcome: str
    replaced: str | None = None
    callers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checkup:
    """What checking one source found; `examples` are those that `define` would run."""

    diagnostics: tuple[Diagnostic, ...]
    examples: int = 0


class ToolService:
    """Tools: defined, checked, kept, listed, run. Use it as an async context manager.

    Args:
        registry: Primitives, and the store's tools.
        store: Where saved tools live.
        context: The workspace and the rules.
        sandbox: Not started yet; it starts with the first run.
    """

    def __init__(self, registry: ToolRegistry, store: ToolStore, context: ServiceContext, sandbox: Sandbox) -> None:
        self.registry = registry
        self.store = store
        self.context = context
        self._sandbox = sandbox
        self._closed = False
        self._pipeline = Pipeline(registry, store, self._started)
        self._runs = RunManager(self._pipeline, lambda: self.context)
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> ToolService:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the sandbox and let go of the workspace. Nothing can be run or defined from here on."""
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
        await self._sandbox.close()
        await self.context.resource_pool.close()
        for held in (self.context.workspace, self.context.ledger):
            close = getattr(held, "close", None)
            if close is not None:
                # What had to be on the disk was waited for; the rest of the log survives this process anyway.
                with suppress(Failure):
                    close()

    def _must_be_open(self) -> None:
        if self._closed:
            raise RuntimeError("this service is closed; open another one")

    async def _started(self) -> Sandbox:
        await self._sandbox.start()
        return self._sandbox

    async def prepare(self, name: str, spawned: Spawned | None = None, version: str | None = None) -> None:
        """Start the sandbox for runs of one tool, with the façades that it and its callees import and no others.

        `spawned` is a zygote that was started before; it is this service's from here on, also when this
        fails. Without this, the sandbox starts at the first run and loads all.

        Raises:
            Failure: `unknown_tool`, `damaged`, `sandbox_unavailable`.
        """
        modules: set[str] = set()
        try:
            pending = [self.store.load(name, version)]
            while pending:
                current = pending.pop()
                modules.update(current.program.imports)
                pending += [self.store.load(c.name, c.version) for c in current.calls if c.kind == "composite"]
        except Failure:
            if spawned is not None:
                # It has nothing yet that it could leave behind, and by itself it would only end if nobody holds its other end.
                spawned[1].close()
                spawned[0].kill()
                spawned[0].wait()
            raise
        self._sandbox.expect(sorted(modules))
        await self._sandbox.start(spawned)

    @property
    def confinement(self) -> str:
        """The workers' fence, once one has been started: ``seccomp``, ``landlock`` or ``rlimits``."""
        return self._sandbox.confinement

    # Authoring

    async def check(self, source: str | bytes | Mapping[str, Any]) -> tuple[Diagnostic, ...]:
        """Everything that is wrong with a source (or a structured form), warnings included; empty when nothing is.

        Raises:
            Failure: `invalid_arguments` for a malformed structured form.
        """
        report = await self._in_thread(self._report, source)
        return report.diagnostics

    async def check_together(self, sources: Sequence[str | bytes]) -> builtins.list[Checkup]:
        """As `check`, each source with those before it as if they were saved."""

        def work() -> builtins.list[Checkup]:
            beside: dict[str, ToolDefinition] = {}
            found = []
            for source in sources:
                report = self._report(source, beside)
                if report.checked is not None:
                    beside[report.checked.definition.name] = report.checked.definition
                found.append(Checkup(report.diagnostics, len(report.checked.examples) if report.checked else 0))
            return found

        return await self._in_thread(work)

    async def define(
        self, source: str | bytes | Mapping[str, Any], progress: Callable[[str], None] | None = None
    ) -> ToolDefinition:
        """Check a source, run its examples, and save it as the newest version of its tool.

        Args:
            source: The text, or ``{name, description, parameters, implementation}``.
            progress: Told what is being done.

        Raises:
            SourceError: the source is refused; carries every diagnostic.
            Failure: `example_failed` (with expected and got in `details`), `invalid_arguments`, `io_error`, ….
        """
        return (await self.define_version(source, progress)).version.definition

    async def define_version(
        self, source: str | bytes | Mapping[str, Any], progress: Callable[[str], None] | None = None
    ) -> Defined:
        """As `define`; says with the saved version what it replaced and who still calls that."""
        from albert_tools.engine.examples import run_examples
        from albert_tools.grammar.diagnostic import SourceError

        self._must_be_open()
        report_progress = progress or (lambda _: None)
        report_progress("checking")
        version, report = await self._in_thread(self._compiled, source)
        if version is None or report.checked is None:
            raise SourceError(report.diagnostics)
        examples = report.checked.examples
        if examples:
            report_progress(f"running {len(examples):,} example{'s' if len(examples) > 1 else ''}")
            problems = await run_examples(version, examples, self._pipeline, self._denied())
            if problems:
                first = problems[0]
                raise Failure(
                    "example_failed",
                    _failed_examples(len(problems), len(examples), first),
                    hint=first.get("hint") or "mend the program or the example; nothing was saved",
                    tool=version.name,
                    line=first["line"],
                    details={"examples": problems},
                )
        report_progress("saving")
        return await self._in_thread(self._saved, version, report.diagnostics)

    def _saved(self, version: ToolVersion, warnings: tuple[Diagnostic, ...]) -> Defined:
        versions, total = self.store.history(version.name, 1)
        before = versions[0].version if versions and versions[0].current else None
        changed = self.store.save(version)
        if changed:
            self._record("definition", tool=version.name, version=version.version, replaced=before)
        callers = self._callers(version) if total > (before == version.version) else ()
        if not changed:
            return Defined(version, warnings, "unchanged", None, callers)
        if before in (None, version.version):
            return Defined(version, warnings, "saved", None, callers)
        return Defined(version, warnings, "replaced", before, callers)

    def _callers(self, version: ToolVersion) -> tuple[str, ...]:
        """The saved tools that call another version of a tool. Whoever calls it spells its name, so a search finds them."""
        found = []
        for summary in self.store.search(version.name, MAX_CALLERS):
            try:
                calls = self.store.load(summary.name).calls
            except Failure:
                continue
            if any(c.name == version.name and c.kind == "composite" and c.version != version.version for c in calls):
                found.append(summary.name)
        return tuple(sorted(found))

    def _denied(self) -> frozenset[str]:
        """What an example may not do for real. Without rules that is whatever reaches out of its scratch workspace."""
        rules, authority = self.context.governance, self.context.authority
        if not isinstance(rules, Failure):
            return rules.denied | (frozenset() if authority is None else self._not_in_examples(authority))
        return frozenset(p.name for p in self.registry.primitives() if p.context is None and p.definition.effects)

    def _not_in_examples(self, authority: Authority) -> frozenset[str]:
        """What the rules forbid in the present mode, or want a person asked about who would not be: all but files of the
        scratch workspace."""
        found = []
        mode = authority.modes.mode
        for p in self.registry.primitives():
            verdict = authority.policy.permits(p.definition, p.gated, mode).verdict
            if not p.gated and (verdict == "deny" or (verdict == "ask" and p.context is None)):
                found.append(p.name)
        return frozenset(found)

    def _report(
        self, source: str | bytes | Mapping[str, Any], beside: Mapping[str, ToolDefinition] | None = None
    ) -> Report:
        from albert_tools.engine.check.checker import Report, check
        from albert_tools.engine.check.rule import error

        if isinstance(source, Mapping):
            from albert_tools.engine.structured import render_source

            source = render_source(dict(source))
        if not isinstance(source, str | bytes):
            raise Failure(
                "invalid_arguments",
                f"expected a source, got {type(source).__name__}",
                hint="give the text, or a form {name, description, parameters, implementation}",
            )
        report = check(source, _Catalog(self.registry, beside or {}))
        checked = report.checked
        if checked is not None and self.registry.primitive(checked.definition.name) is not None:
            function = checked.facts.tool
            assert function is not None
            taken = error(
                "name-taken",
                function.name_span,
                f"{function.name!r} is a primitive; a saved tool needs a name of its own",
                hint=f"call it something else, for example my_{function.name}",
            )
            return Report((*report.diagnostics, taken), None)
        if checked is not None:
            # It would be outdated as soon as it was saved, so it is refused while somebody is there to hear why.
            refused = [
                error(
                    "outdated-callee",
                    call.func.span,
                    f"{name!r} is outdated: {why}",
                    hint=f"define {name} again first, from its source",
                )
                for call, name in checked.facts.tool_calls
                if name not in (beside or {}) and (why := self._outdated(name))
            ]
            if refused:
                return Report((*report.diagnostics, *refused), None)
        return report

    def _outdated(self, name: str) -> str | None:
        if self.registry.primitive(name) is not None:
            return None
        try:
            return self._pipeline.lookup.outdated(self.store.load(name))
        except Failure as failure:
            return failure.message

    def _compiled(self, source: str | bytes | Mapping[str, Any]) -> tuple[ToolVersion | None, Report]:
        from albert_tools.engine.compile.program import compile_version

        report = self._report(source)
        if report.checked is None:
            return None, report
        return compile_version(report.checked, datetime.now(UTC).isoformat(timespec="seconds")), report

    # Running

    async def validate(self, name: str, arguments: Mapping[str, Any]) -> builtins.list[dict[str, str]]:
        """Everything that is wrong with arguments, as ``{field, rule, message}``; empty when nothing is.

        Raises:
            Failure: `unknown_tool`, `damaged`.
        """
        return await self._in_thread(self._pipeline.violations, name, arguments)

    async def invoke(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        version: str | None = None,
        session: str | None = None,
        request_id: str | None = None,
        dedupe_key: str | None = None,
        trace: str | None = None,
        reason: str | None = None,
        log: Log | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> ToolResult:
        """Run a tool, primitive or saved; always one result, which says whether it went well.

        Args:
            name: The tool.
            arguments: By name.
            version: A saved tool's version; the newest when not given.
            session: The token of the session on whose behalf; the owner's own when not given.
            request_id: Handed back in the result.
            dedupe_key: The same call again under the same key (and session) gives the first one's result and does
                nothing, in whatever process; other arguments under it are refused. Remembered for a day; empty is none.
            trace: The caller's trace: a W3C traceparent, or the 32 hex digits of its id.
            reason: What the caller says it is for, shown to whoever is asked.
            log: Told each print as it happens: tool and text.
            watch: Told the name of each tool that the program calls, as the call begins.

        Raises:
            RuntimeError: the service is closed.
        """
        self._must_be_open()
        given = {} if arguments is None else arguments
        invocation = ToolInvocation(name, given, version, session, request_id, dedupe_key, trace, reason=reason)
        self._watch_for_ends()
        return await self._pipeline.invoke(invocation, self.context, log, watch=watch)

    # Sessions, approvals

    @property
    def sessions(self) -> Sessions:
        """The sessions of this home.

        Raises:
            Failure: `not_found`: nothing is recorded here.
        """
        return _there(self.context.sessions, "sessions")

    @property
    def approvals(self) -> Approvals:
        """The questions to people, open and answered. Raises as `sessions`."""
        return _there(self.context.approvals, "approvals")

    def open_session(
        self,
        client: str,
        *,
        cwd: str = "",
        tools: Iterable[str] | None = None,
        seconds: float | None = DAY,
        budget: Budget | None = None,
        within: str | None = None,
    ) -> tuple[Session, str]:
        """A session in this workspace, and its token; arguments as `Sessions.open`.

        Raises:
            Failure: `invalid_arguments`, `permission_denied`, `governance_unavailable`; as `workspace.at` for `cwd`.
        """
        workspace = self.context.workspace
        if isinstance(workspace, Failure):
            raise dataclasses.replace(workspace)
        if cwd:
            workspace.at(cwd)
        named = None if tools is None else frozenset(tools)
        return self.sessions.open(
            client, str(workspace.root), cwd=cwd, tools=named, seconds=seconds, budget=budget, within=within
        )

    # Runs

    @property
    def runs(self) -> RunManager:
        """The runs of this home: listed, shown, resumed, called off, replayed."""
        return self._runs

    async def resume(self, run: str, log: Log | None = None) -> ToolResult:
        """Go on with a run that waits for an answer, or whose process has died; gives its result.

        Raises:
            Failure: `not_found`, `damaged`; `exists`: it is over or under way; `diverged`: it can't go on here.
            RuntimeError: the service is closed.
        """
        self._must_be_open()
        self._watch_for_ends()
        return await self._runs.resume(run, log)

    def _watch_for_ends(self) -> None:
        """Look now and then, while anything runs, whether another process wants a run stopped."""
        if self.context.runs is None or (self._watching is not None and not self._watching.done()):
            return

        async def watch() -> None:
            idle = 0
            while idle < MAX_IDLE_LOOKS and not self._closed:
                await asyncio.sleep(LOOK_SECONDS)
                idle = 0 if self._pipeline.active else idle + 1
                self._runs.stop_cancelled()

        self._watching = asyncio.create_task(watch())

    # Looking

    async def describe(self, name: str, version: str | None = None) -> Description:
        """Everything about one tool.

        Raises:
            Failure: `unknown_tool` (with the nearest name), `damaged`.
        """
        primitive = self.registry.primitive(name)
        if primitive is not None and version in (None, primitive.definition.version):
            return self._judged(
                Description(
                    primitive.definition,
                    gated=primitive.gated,
                    resources=resources_of(primitive),
                    confined=confined_of(primitive),
                )
            )

        def load() -> Description:
            found = self._pipeline.lookup.look_up(name, version).version
            assert found is not None
            versions, total = self.store.history(name, MAX_VERSIONS)
            description = Description(
                found.definition,
                found.source,
                found.calls,
                found.created,
                self._pipeline.lookup.outdated(found),
                newest=self._newest(found.calls),
                versions=tuple(versions),
                total=total,
            )
            return self._judged(description)

        return await self._in_thread(load)

    def standing(self, definition: ToolDefinition, gated: bool = False) -> dict[str, Json]:
        """What the rules say of every call of a tool in the present mode, whatever its arguments; what it touches can only make it
        graver. As a result's ``policy``, with the ``mode``; where nothing can be authorized, a denial that says why.
        """
        try:
            authority = self.context.ruling(audit=False)[1]
        except Failure as failure:
            authority, why = None, failure
        else:
            why = Failure("governance_unavailable", "nothing is authorized in a scratch workspace")
        if authority is None:
            said = Decision("deny", why.rule or "governance", "no_rule", why.message).as_dict()
            return {**said, "rationale_code": "unavailable", "hint": why.hint, "mode": None}
        mode = authority.modes.mode
        decision = authority.policy.permits(definition, gated, mode)
        return {**decision.as_dict(), "hint": decision.hint, "mode": mode}

    def _judged(self, description: Description) -> Description:
        definition, authority = description.definition, self.context.authority
        bounds: dict[str, Json] = {}
        if authority is not None:
            policy = authority.policy
            bounds = {
                "timeout_seconds": policy.timeout(definition),
                "calls_per_hour": dict(policy.rate_limits(definition)),
            }
        return dataclasses.replace(description, policy=self.standing(definition, description.gated), bounds=bounds)

    async def list(self, hidden: bool = False) -> builtins.list[Listed]:
        """Every tool: primitives as registered, then saved ones by name; damaged ones with their problem.

        A primitive that is forbidden in the present mode isn't listed, unless `hidden`.

        Raises:
            Failure: `io_error` when the store can't be read.
        """
        primitives = [self._primitive(p) for p in self.registry.primitives()]
        offered = [listed for listed in primitives if hidden or not listed.hidden]
        return offered + await self._in_thread(lambda: [self._listed(s) for s in self.store.list()])

    def _primitive(self, primitive: Primitive) -> Listed:
        d = primitive.definition
        policy = self.standing(d, primitive.gated)
        return Listed(
            d.name, "primitive", first_line(d.description), d.signature(), d.family, effects=d.effects, policy=policy
        )

    async def search(self, text: str, limit: int = 20) -> builtins.list[Listed]:
        """Tools whose name, description or source speak of `text`: saved ones best first, then primitives.

        Raises:
            Failure: `io_error` when the store can't be read.
        """
        found = await self._in_thread(lambda: [self._listed(s) for s in self.store.search(text, limit)])
        words = [w for w in text.lower().split() if w]
        for primitive in self.registry.primitives():
            d = primitive.definition
            spoken = f"{d.name} {d.name.replace('_', ' ')} {d.description}".lower()
            if words and all(w in spoken for w in words):
                found.append(self._primitive(primitive))
        return found[: max(0, limit)]

    def _listed(self, summary: Summary) -> Listed:
        listed = Listed(
            name=summary.name,
            kind="composite",
            description=first_line(summary.description),
            category="saved",
            version=summary.version,
            versions=summary.versions,
            created=summary.created,
            problem=summary.problem,
        )
        if summary.problem is not None:
            return listed
        if self.registry.primitive(summary.name) is not None:
            hidden = f"a primitive of this application has the name {summary.name}, so calls reach that"
            return dataclasses.replace(listed, problem=hidden)
        try:
            version = self.store.load(summary.name)
        except Failure as failure:
            return dataclasses.replace(listed, problem=failure.message)
        newest = self._newest(version.calls)
        return dataclasses.replace(
            listed,
            signature=version.definition.signature(),
            outdated=self._pipeline.lookup.outdated(version),
            changed=tuple(c.name for c in _changed(version.calls, newest) if newest[c.name] is not None),
            effects=version.definition.effects,
            policy=self.standing(version.definition),
        )

    def _newest(self, calls: Iterable[Callee]) -> dict[str, str | None]:
        """For each saved tool among them, the version that is the newest now; None when it was removed."""
        found: dict[str, str | None] = {}
        for callee in calls:
            if callee.kind == "composite":
                try:
                    found[callee.name] = self.store.load(callee.name).version
                except Failure as failure:
                    # One that can't be read is told of by `outdated`, where it matters.
                    found[callee.name] = None if failure.code == "unknown_tool" else callee.version
        return found

    async def remove(self, name: str) -> None:
        """Take a saved tool off the list; its history stays, and tools pinned to it keep running.

        Raises:
            Failure: `unknown_tool`; `permission_denied` for a primitive.
        """
        if self.registry.primitive(name) is not None:
            raise Failure(
                "permission_denied",
                f"{name} is a primitive and can't be removed",
                hint=f"only saved tools can be; `deny: [{name}]` in governance.yaml turns a primitive off",
                rule="primitive",
                tool=name,
            )
        await self._in_thread(self.store.delete, name)
        self._record("removal", tool=name)

    def _record(self, kind: str, **data: Json) -> None:
        """Write down what has been done to the store, which keeps its own history too: a full disk doesn't undo it."""
        if self.context.ledger is not None:
            with suppress(Failure):
                self.context.ledger.append(kind, data)

    def register(self, primitive: Primitive) -> None:
        """Add a primitive of the application's own.

        Raises:
            ValueError: its name is taken.
        """
        self.registry.register(primitive)

    @staticmethod
    async def _in_thread(function: Callable[..., _T], *args: Any) -> _T:
        return await asyncio.to_thread(function, *args)


class _Catalog:
    """What the checker looks names up in: primitives, then tools that stand beside, then saved ones."""

    def __init__(self, registry: ToolRegistry, beside: Mapping[str, ToolDefinition]) -> None:
        self._registry = registry
        self._beside = beside

    def get(self, name: str) -> ToolDefinition | None:
        if name in self._beside and self._registry.primitive(name) is None:
            return self._beside[name]
        return self._registry.get(name)

    def names(self) -> builtins.list[str]:
        return builtins.list(dict.fromkeys([*self._registry.names(), *self._beside]))


def _changed(calls: Iterable[Callee], newest: Mapping[str, str | None]) -> tuple[Callee, ...]:
    return tuple(c for c in calls if newest.get(c.name, c.version) != c.version)


def _there(what: _T | None, name: str) -> _T:
    if what is None:
        raise Failure("not_found", f"there are no {name} where nothing is recorded")
    return what


def first_line(text: str) -> str:
    """The first line of a description."""
    return text.strip().split("\n")[0]


def _failed_examples(failed: int, of: int, first: dict[str, Any]) -> str:
    which = f"the example in line {first['line']} did not come out as it says"
    if failed > 1:
        which = f"{failed} of {of} examples did not come out as they say; the first, in line {first['line']}"
    return f"{which}: {first['message']}"

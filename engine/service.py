"""`ToolService`, the façade: every operation that an application can do with tools.

The service owns the registry, the store, the sandbox, the workspace and the rules. It makes no decision itself: a confined process
checks sources, and the pipeline authorizes and runs calls. Slow work runs in a thread. `albert_tools.ToolService.open` creates a
service with the real components.
"""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct, field
from msgspec import json as msgspec_json
from msgspec.structs import asdict, replace

from albert_tools.engine.actions import CANCEL, DEFINE, READ, REMOVE, RESUME, REVOKE, RUN, Actions, Review, permitted
from albert_tools.engine.call.context import Log, ServiceContext
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.call.turns import Turns
from albert_tools.engine.model.definition import CATEGORIES, Callee, Json, Mode, ToolDefinition, ToolVersion
from albert_tools.engine.model.describe import confined_of, resources_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean, look_alike
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.protocols import ContentStore, Saved, Summary, ToolStore
from albert_tools.engine.model.record_types import STORED
from albert_tools.engine.model.reserved_names import AGENT_TOOLS, RESERVED
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.engine.pipeline.lookup import demand_depth
from albert_tools.engine.pipeline.pipeline import Pipeline
from albert_tools.engine.pipeline.scratch import reads_outside
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.harmless import READ_ONLY, is_harmless
from albert_tools.engine.runs.runs import RunManager, RunView
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.sandbox.worker.spawn import discard

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approvals
    from albert_tools.engine.authority.reviews import Reviews, VersionState
    from albert_tools.engine.authority.rules_source import RulesInForce
    from albert_tools.engine.authority.sessions import Budget, Session, Sessions
    from albert_tools.engine.judging.accept import CheckedSource
    from albert_tools.engine.judging.answers import Outline
    from albert_tools.engine.judging.source_judge import Judgement, SourceJudge
    from albert_tools.engine.model.example import Example
    from albert_tools.engine.model.protocols import Ledger
    from albert_tools.engine.model.record_types import Entry
    from albert_tools.engine.policy.modes import Modes
    from albert_tools.engine.policy.settings import Governance
    from albert_tools.engine.renewing import Renewer
    from albert_tools.engine.review.version_review import ExampleRun, VersionReview
    from albert_tools.engine.sandbox.worker.spawn import Spawned
    from albert_tools.engine.upgrading import Upgrade
    from albert_tools.engine.workspace.workspace import Workspace
    from albert_tools.grammar.diagnostic import Diagnostic

_T = TypeVar("_T")

#: The text of a source, or its form ``{name, description, parameters, implementation}``.
Source = str | bytes | Mapping[str, Any]

#: The default lifetime of a session, in seconds.
DAY = 24 * 3600.0
#: Seconds between two checks for runs that another process cancelled, and the number of checks without a run before polling stops.
POLL_SECONDS, MAX_IDLE_POLLS = 0.25, 20
#: The family of the saved tools in lists.
SAVED = "saved"
#: The most versions that a description lists.
MAX_VERSIONS = 10
#: The rationale codes of a denial that only applies in the current mode.
_OF_MODE = ("mode", "tool_mode")
#: The words of a search that primitives are compared with.
MAX_WORDS = 16


class Listed(Struct, frozen=True):
    """A tool in the list. `outdated` or `problem` says why the tool can't run.

    `changed` names callees that have a newer version. The tool keeps calling the older version that it was checked against.
    `category` is that of the rules; it is empty for a damaged tool. The family of a saved tool is ``saved``.
    `policy` is the decision of the rules on every call in the current mode, see `ToolService.standing`.
    """

    name: str
    kind: str
    description: str
    signature: str = ""
    family: str = ""
    category: str = ""
    version: str = ""
    versions: int = 0
    created: str = ""
    outdated: str | None = None
    problem: str | None = None
    changed: tuple[str, ...] = ()
    #: The version that agents are offered; empty if the tool is not active.
    active: str = ""
    #: The state of the newest version, and who has decided it; empty if this service keeps no record.
    state: str = ""
    decided_by: str = ""
    effects: tuple[str, ...] = ()
    policy: Mapping[str, Json] = field(default_factory=dict)

    @property
    def hidden(self) -> bool:
        """Whether the current mode denies every call of the tool."""
        return self.policy.get("rationale_code") in _OF_MODE


class Description(Struct, frozen=True):
    """All information about one tool. Only a composite has `source`, `calls`, `created`, `newest` and `versions`.

    Attributes:
        gated: Whether the tool needs the owner's permission.
        newest: For each composite that the tool calls, its newest version; None if that composite was removed.
        versions: The newest saved versions.
        total: The number of saved versions.
        resources: The parameters of a primitive that rules can refer to, each with its kind of resource.
        policy: The decision of the rules on every call in the current mode.
        bounds: The seconds per call and the calls per hour that the rules allow.
        confined: Which part of a primitive runs confined: ``function``, ``command``, or an empty text.
        review: The state of the version of a composite; None if this service keeps no record.
    """

    definition: ToolDefinition
    source: str = ""
    calls: tuple[Callee, ...] = ()
    created: str = ""
    outdated: str | None = None
    gated: bool = False
    newest: Mapping[str, str | None] = field(default_factory=dict)
    versions: tuple[Saved, ...] = ()
    total: int = 0
    resources: Mapping[str, str] = field(default_factory=dict)
    policy: Mapping[str, Json] = field(default_factory=dict)
    bounds: Mapping[str, Json] = field(default_factory=dict)
    confined: str = ""
    review: VersionState | None = None

    @property
    def changed(self) -> tuple[Callee, ...]:
        """The callees that were replaced or removed since. The tool keeps calling the versions that it was checked against."""
        return _changed(self.calls, self.newest)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        from albert_tools.engine.review.manifest_view import view
        from albert_tools.engine.review.sentences import sentence

        d = self.definition
        about = {
            "sentence": sentence(d),
            "manifest": view(d.manifest) if d.manifest is not None else None,
            "review": asdict(self.review) if self.review is not None else None,
        }
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
            "versions": [
                {"version": v.version, "created": v.created, "current": v.current, "author": v.author or None}
                for v in self.versions
            ],
            "versions_total": self.total,
            **(about if d.kind == "composite" else {}),
            "source": self.source,
        }


class Defined(Struct, frozen=True):
    """The result of a definition: the version, and the checker's warnings.

    `outcome` is ``saved``, ``unchanged`` or ``replaced``. If it is ``replaced``, then `replaced` is the previous newest version.
    `callers` are the composites that still call an older version, because they were checked against it.
    """

    version: ToolVersion
    warnings: tuple[Diagnostic, ...]
    outcome: str
    replaced: str | None = None
    callers: tuple[str, ...] = ()


class Checkup(Struct, frozen=True):
    """The result of checking one source. `examples` is the number of examples that `define` would run."""

    diagnostics: tuple[Diagnostic, ...]
    examples: int = 0


class AgentTools(Protocol):
    """The agent's own tools. They use the service, so it knows them only by this method."""

    async def invoke(
        self, invocation: ToolInvocation, log: Log | None, watch: Callable[[str], None] | None
    ) -> ToolResult:
        """Run one of them. As `ToolService.invoke`."""


class ToolService:
    """Defines, checks, saves, lists and runs tools. Use it as an async context manager.

    Args:
        registry: The primitives and the saved tools.
        store: The saved tools.
        context: The workspace, the rules and the record.
        sandbox: A sandbox that is not started. The service starts it before the first run of a composite.
    """

    def __init__(self, registry: ToolRegistry, store: ToolStore, context: ServiceContext, sandbox: Sandbox) -> None:
        self.registry = registry
        self.store = store
        self._context = context
        self._sandbox = sandbox
        self._source_judge: SourceJudge | None = None
        self._renewer: Renewer | None = None
        self._entered = self._closed = False
        self._pipeline = Pipeline(registry, store, self._started, self._renewed)
        self._runs = RunManager(self._pipeline, lambda: self._context)
        #: The sources of a session that are judged at once; four processes judge those of all.
        self._turns = Turns(2)
        self.actions = Actions(self._pipeline, lambda: self._context)
        #: Runs the agent's own tools, see `engine.agent`.
        self.agent_tools: AgentTools | None = None
        self._watching: asyncio.Task[None] | None = None
        registry.load = self._by_name

    def _by_name(self, name: str) -> ToolVersion:
        reviews = self._context.reviews
        return self.store.load(name) if reviews is None else reviews.by_name(name)

    async def __aenter__(self) -> ToolService:
        self._entered = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the sandbox and close the workspace and the ledger. After that, nothing can be run or defined."""
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
        await self._sandbox.close()
        if self._source_judge is not None:
            await self._source_judge.close()
        await self._context.resource_pool.close()
        for part in (self._context.workspace_or_failure, self._context.ledger, self.store):
            close = getattr(part, "close", None)
            if close is not None:
                # All entries that must survive a crash have already been written to the disk.
                with suppress(Failure):
                    close()

    @property
    def _judge(self) -> SourceJudge:
        # A call of a tool doesn't need it.
        from albert_tools.engine.judging.source_judge import SourceJudge

        self._must_be_open()
        self._source_judge = self._source_judge or SourceJudge()
        return self._source_judge

    def _must_be_open(self) -> None:
        if self._closed:
            raise RuntimeError("this service is closed; open another one")
        if not self._entered:
            # Nobody would end its processes.
            raise RuntimeError("this service was not entered; write `async with ToolService.open(…) as service:`")

    async def _renewed(self, version: ToolVersion, is_stored: bool = True) -> ToolVersion:
        """The version with a manifest of the present analysis, see `Renewer`."""
        if version.is_current:
            return version
        return await self._renewing.renewed(version, is_stored)

    @property
    def _renewing(self) -> Renewer:
        from albert_tools.engine.renewing import Renewer

        if self._renewer is None:
            self._renewer = Renewer(self.registry, self.store, self._pipeline.lookup, self._judge.check)
        return self._renewer

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
            pending = [self.store.load(name, version) if version is not None else self._by_name(name)]
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

    # The workspace and the rules

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
    def modes(self) -> Modes:
        """The mode of this home."""
        return self._context.modes

    @property
    def ledger(self) -> Ledger:
        """The ledger of this home, without the judgement that `records` makes for a session."""
        return self._context.ledger

    @property
    def quota(self) -> float:
        """The bytes that may be stored for a session."""
        return self._context.quota

    def client_of(self, token: str | None) -> str | None:
        """The client whose share the session of a token uses, see `ServiceContext.client_of`."""
        return self._context.client_of(token)

    # Authoring

    async def check(self, source: Source, *, session: str | None = None) -> tuple[Diagnostic, ...]:
        """Check a source without saving it.

        Args:
            source: The text, or ``{name, description, parameters, implementation}``.
            session: The token of a session. For it, tools outside of its lease do not exist.

        Returns:
            All errors and warnings. The tuple is empty if there are no problems.

        Raises:
            Failure: `invalid_arguments` if the structured form is malformed; `permission_denied` if there is no such session.
        """
        return (await self._check(await self._text(source), session=session)).diagnostics

    async def check_together(
        self, sources: Sequence[str | bytes], *, session: str | None = None
    ) -> builtins.list[Checkup]:
        """Check several sources in order. Each one may call the tools of the sources before it. The results are in the same order.

        Raises:
            Failure: See `check`.
        """

        together: dict[str, ToolDefinition] = {}
        found = []
        for source in sources:
            diagnostics, checked = await self._check(await self._text(source), together, session=session)
            if checked is not None:
                together[checked.definition.name] = checked.definition
            found.append(Checkup(diagnostics, len(checked.examples) if checked else 0))
        return found

    async def define(
        self, source: Source, progress: Callable[[str], None] | None = None, *, session: str | None = None
    ) -> ToolDefinition:
        """Check a source, run its examples, and save it as the newest version of its tool.

        Args:
            source: The text, or ``{name, description, parameters, implementation}``.
            progress: Called with the name of each phase: ``checking``, ``running 2 examples``, ``saving``.
            session: The token of the session that defines the tool, by the action ``define_tool``. A person is asked before the
                session replaces a tool that the owner or another session has defined.

        Returns:
            The definition of the saved version.

        Raises:
            SourceError: The source has errors. The exception contains all diagnostics.
            Failure: `example_failed` (expected and actual result are in `details`), `invalid_arguments`, `io_error`. In a session
                also those of a call: `permission_denied`, `suspended`, `budget_exceeded`, …
            RuntimeError: The service is closed.
        """
        return (await self.define_version(source, progress, session=session)).version.definition

    async def define_version(
        self, source: Source, progress: Callable[[str], None] | None = None, *, session: str | None = None
    ) -> Defined:
        """Like `define`, but also return the warnings, the replaced version, and the tools that still call an older version."""
        self._must_be_open()
        report_progress = progress or (lambda _: None)
        if session is None:
            version, warnings = await self._examined(source, report_progress)
            report_progress("saving")
            return await asyncio.to_thread(self._saved, version, warnings)
        examined: builtins.list[tuple[ToolVersion, tuple[Diagnostic, ...]]] = []
        head = ""

        async def review(token: str) -> Review:
            nonlocal head
            if not examined:
                examined.append(await self._examined(source, report_progress, token))
            version = examined[0][0]
            head, why = await asyncio.to_thread(self._head, version.name, token, "replacing it", version.version)
            # The version also names the callees, so an answer does not cover the same source with other callees.
            facts = {"name": version.name, "version": version.version, "replaces": head}
            if why and (contents := self.contents(token)) is not None:
                # The question itself has only the beginning of a long text.
                facts["stored_source"] = await asyncio.to_thread(contents.put, version.source.encode())
            return Review(why, facts)

        async def save() -> Defined:
            report_progress("saving")
            return await asyncio.to_thread(self._saved, *examined[0], head)

        defined = await self.actions.perform(DEFINE, {"source": _shown_source(source)}, session, save, review=review)
        await self._notify_owner(defined)
        return defined

    async def _notify_owner(self, defined: Defined) -> None:
        """Run the owner's command if a new version waits for a review. Never fails."""
        with suppress(Failure):
            command = self._context.ruling(audit=False).governance.notify
            version = defined.version
            if command and defined.outcome != "unchanged" and self.reviews.of(version).state == "pending":
                from albert_tools.engine.pipeline.notify import about_version, notify

                await notify(command, about_version(version.name, version.version, self._context.root))

    def _head(self, name: str, token: str, what: str, version: str = "") -> tuple[str, str]:
        """The current version of a tool ("" if there is none, or the tool was removed: its name is free), and why a person must
        be asked before a session changes it. Nobody is asked if `version` already is the current version."""
        versions, _ = self.store.history(name, 1)
        if not versions or not versions[0].current:
            return "", ""
        head = versions[0]
        if head.version == version or self.actions.is_own(token, lambda: head.author):
            return head.version, ""
        whom = f"the session {head.author}" if head.author else "the owner"
        return head.version, f"{name} was defined by {whom}; {what} needs a person's approval"

    async def _examined(
        self, source: Source, report_progress: Callable[[str], None], token: str | None = None
    ) -> tuple[ToolVersion, tuple[Diagnostic, ...]]:
        """The version that a source makes, after its examples were run, and the checker's warnings. Raises as `define`."""
        from albert_tools.engine.examples import run_examples

        report_progress("checking")
        session = self.actions.session(token) if token is not None else None
        author = session.id if session is not None else ""
        version, examples, diagnostics = await self._compiled(source, author, session=token)
        self._demand_possible(version.definition)
        if examples:
            report_progress(f"running {len(examples):,} example{'s' if len(examples) > 1 else ''}")
            problems = await run_examples(version, examples, self._pipeline, self._denied(session))
            if problems:
                first = problems[0]
                raise Failure(
                    "example_failed",
                    _failed_examples(len(problems), len(examples), first),
                    hint=first.get("hint") or "correct the program or the example; nothing was saved",
                    tool=version.name,
                    line=first["line"],
                    details={"examples": problems},
                )
        return version, diagnostics

    def _demand_possible(self, definition: ToolDefinition) -> None:
        """Refuse a tool that the rules would not let run: with a flow that they deny, or nested too deep.

        Raises:
            Failure: `permission_denied`, `depth_limit`.
        """
        rules = self._context.governance
        if not isinstance(rules, Failure):
            demand_depth(definition.name, definition.depth, rules.limits.depth)
        denied = next((d for d in self.flow_decisions(definition) if d.verdict == "deny"), None)
        if denied is not None:
            raise denied.failure(definition.name)

    def flow_decisions(self, definition: ToolDefinition) -> builtins.list[Decision]:
        """The flows of a composite that the rules deny or ask about, as far as they are known before it runs.

        The list is empty for a primitive, for a composite without a manifest, and if no decision is possible.
        """
        authority, manifest = self._context.authority, definition.manifest
        if authority is None or manifest is None:
            return []
        return authority.policy.flows.judge_version(definition.name, manifest, definition.version)

    def _saved(self, version: ToolVersion, warnings: tuple[Diagnostic, ...], over: str | None = None) -> Defined:
        versions, total = self.store.history(version.name, 1)
        before = versions[0].version if versions and versions[0].current else None
        changed = self.store.save(version, over)
        if changed:
            facts: dict[str, Json] = {"tool": version.name, "version": version.version, "replaced": before}
            if version.author:
                size = len(msgspec_json.encode(version.to_document()))
                facts |= {"session": version.author, "used": {STORED: size}}
            self._record("definition", version.author, **facts)
            self._activate_harmless(version)
        callers = self._callers(version.name, version.version) if total > (before == version.version) else ()
        if not changed:
            return Defined(version, warnings, "unchanged", None, callers)
        if before in (None, version.version):
            return Defined(version, warnings, "saved", None, callers)
        return Defined(version, warnings, "replaced", before, callers)

    def _activate_harmless(self, version: ToolVersion) -> None:
        """Activate a new version without a review, if the owner's rules say so."""
        from albert_tools.engine.authority.reviews import BY_RULES

        rules, reviews, manifest = self._context.governance, self._context.reviews, version.definition.manifest
        if isinstance(rules, Failure) or not rules.activates_harmless or reviews is None or manifest is None:
            return
        if is_harmless(manifest) and reviews.of(version).state == "pending":
            # The version is saved. If this fails, it is pending.
            with suppress(Failure):
                reviews.approve(version.name, version.version, BY_RULES, READ_ONLY)

    async def callers(self, name: str) -> tuple[str, ...]:
        """The composites that call a saved tool, in any version, by name."""
        return await asyncio.to_thread(self._callers, name, None)

    def _callers(self, name: str, but: str | None) -> tuple[str, ...]:
        """The composites that call a version of a tool other than `but`."""
        return tuple(caller for caller, version in self.store.callers(name) if version != but)

    def _denied(self, session: Session | None = None) -> dict[str, Failure]:
        """The tools that an example must not execute, each with the reason.

        They are the tools that the rules deny, and the primitives that they ask about or that the lease of the `session` does not
        cover, except those that only use the workspace. Without rules, they are all tools with effects outside the temporary
        workspace.
        """
        rules, authority, primitives = self._context.governance, self._context.authority, self.registry.primitives()
        if isinstance(rules, Failure):
            return {p.name: rules for p in primitives if p.context is None and p.definition.effects}
        found = {}
        for name in rules.denied:
            found[name] = Failure("permission_denied", f"{name} is denied by the rules", rule="deny", tool=name)
        if authority is not None:
            for p in primitives:
                decision = authority.policy.permits(p.definition, p.gated, authority.modes.mode)
                asks = decision.verdict == "ask" and (p.context is None or reads_outside(p))
                if not p.gated and (decision.verdict == "deny" or asks):
                    found[p.name] = decision.failure(p.name)
        if session is not None:
            for p in filter(reads_outside, primitives):
                try:
                    self.sessions.demand(session, p.name)
                except Failure as why:
                    # Without the hint of the lease, the report says how an example gets the tool's answer.
                    found.setdefault(p.name, Failure(why.code, why.message, rule=why.rule, tool=p.name))
        return found

    async def format(self, source: str) -> str:
        """Write a source in canonical form.

        Raises:
            SourceError: The source can't be parsed.
            Failure: `sandbox_unavailable` if this machine can't confine the process that reads the source.
        """
        return await self._judge.format(source)

    async def outline(self, source: str) -> Outline:
        """The names of a source's public functions, and of the tools that it calls. Both are empty if it can't be parsed.

        Raises:
            Failure: See `format`.
        """
        return await self._judge.outline(source)

    async def prepare_judge(self, spawned: Spawned) -> None:
        """Use a zygote that ``spawn_zygote(JUDGING)`` has started. The service becomes responsible for it.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        await self._judge.start(spawned)

    async def _compiled(
        self,
        source: Source,
        author: str = "",
        together: Mapping[str, ToolDefinition] | None = None,
        session: str | None = None,
    ) -> tuple[ToolVersion, tuple[Example, ...], tuple[Diagnostic, ...]]:
        """The version that a source makes, its examples, and the warnings. Raises as `define`."""
        text = await self._text(source)
        diagnostics, checked = await self._check(text, together, compiled=True, session=session)
        if checked is None:
            from albert_tools.grammar.source_error import SourceError

            raise SourceError(diagnostics, text)
        return _version(checked, author), checked.examples, diagnostics

    async def _text(self, source: Source) -> str | bytes:
        """The text of a source. For a structured form, it is written from the form."""
        if isinstance(source, Mapping):
            from albert_tools.engine.structured import render_source

            try:
                source = await asyncio.to_thread(render_source, dict(source))
            except RecursionError:
                raise Failure(
                    "invalid_arguments", "the form is nested too deep", hint="write a simpler schema"
                ) from None
        if not isinstance(source, str | bytes):
            raise Failure(
                "invalid_arguments",
                f"expected a source, got {type(source).__name__}",
                hint="pass the text, or a form {name, description, parameters, implementation}",
            )
        return source

    async def _check(
        self,
        source: str | bytes,
        together: Mapping[str, ToolDefinition] | None = None,
        *,
        compiled: bool = False,
        session: str | None = None,
    ) -> Judgement:
        catalog = _Catalog(self, together or {}, session)
        async with self._turns.of(self._context.client_of(session)):
            judgement = await self._judge.check(source, catalog, compiled=compiled)
            checked = judgement.checked
            saved = [c for c in checked.calls if c.name not in catalog.together] if checked is not None else []
            if await self._renewing.renew(saved):
                # Its manifest contains those of its callees.
                return await self._judge.check(source, catalog, compiled=compiled)
            return judgement

    def outdated(self, name: str) -> str | None:
        """Why a tool can't run; None if it can. A primitive always can."""
        if self.registry.primitive(name) is not None:
            return None
        try:
            return self._pipeline.lookup.outdated(self._by_name(name))
        except Failure as failure:
            return failure.message

    # Running

    async def validate(self, name: str, arguments: Mapping[str, Any]) -> builtins.list[dict[str, str]]:
        """Check the arguments of a call without making it.

        Args:
            name: The tool.
            arguments: The arguments by name.

        Returns:
            All violations, each ``{field, rule, message}``. The list is empty if the arguments are valid.

        Raises:
            Failure: `unknown_tool`, `damaged`.
        """
        return await asyncio.to_thread(self._pipeline.violations, name, arguments)

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
        """Run a tool.

        Args:
            name: The tool: a primitive, a composite, or one of the agent's own tools.
            arguments: The arguments by name.
            version: A version of a composite; the newest by default.
            session: The token of a session. Without a token, the call is made as the owner.
            request_id: Any text. The result contains it unchanged.
            dedupe_key: If this session has already used the key, the result of that call is returned and nothing is executed. The
                arguments must be the same, otherwise the call is refused. A key expires after a day. An empty text means no key.
            trace: The caller's trace: a W3C traceparent, or a trace id of 32 hex digits.
            reason: The purpose of the call. It is shown to the person who decides on an approval.
            log: Called with the tool and the text for each print of the program.
            watch: Called with the name of each tool that the program calls, when the call begins.

        Returns:
            The result. If the call failed in any way, its `error` contains the failure.

        Raises:
            RuntimeError: The service is closed.
        """
        self._must_be_open()
        given = {} if arguments is None else arguments
        invocation = ToolInvocation(name, given, version, session, request_id, dedupe_key, trace, reason=reason)
        self._poll_cancellations()
        if name in AGENT_TOOLS and self.agent_tools is not None:
            return await self.agent_tools.invoke(invocation, log, watch)
        return await self._pipeline.invoke(invocation, self._context, log, watch=watch)

    async def run_source(
        self,
        source: Source,
        arguments: Mapping[str, Any] | None = None,
        *,
        session: str | None = None,
        request_id: str | None = None,
        trace: str | None = None,
        reason: str | None = None,
        log: Log | None = None,
    ) -> ToolResult:
        """Run a source once, without saving it. It is checked as by `define`, but its examples are not run.

        Its calls are judged like those of a saved tool. The run is recorded with the source, so it can wait for an approval, and be
        resumed and replayed. A session whose lease lists tools may do this only if the list contains ``run_source``.

        Args:
            source: The text, or ``{name, description, parameters, implementation}``.
            arguments: The arguments of the tool, by name.
            session, request_id, trace, reason, log: See `invoke`.

        Returns:
            The result. If the run failed in any way, its `error` contains the failure.

        Raises:
            SourceError: The source has errors.
            RuntimeError: The service is closed.
        """
        self._must_be_open()
        version: ToolVersion | None = None

        async def review(token: str) -> Review:
            nonlocal version
            version = (await self._compiled(source, session=token))[0]
            return Review()

        try:
            if session is None:
                version = (await self._compiled(source))[0]
            else:
                # A source is not checked for a session that can't run it anyway.
                await self.actions.perform(RUN, {"source": _shown_source(source)}, session, permitted, review=review)
        except Failure as failure:
            return ToolResult(RUN.name, error=failure)
        assert version is not None
        given = {} if arguments is None else arguments
        invocation = ToolInvocation(version.name, given, None, session, request_id, None, trace, reason=reason)
        self._poll_cancellations()
        return await self._pipeline.invoke(invocation, self._context, log, unsaved=version)

    # Sessions, approvals

    @property
    def sessions(self) -> Sessions:
        """The sessions of this home.

        Raises:
            Failure: `not_found` if this service has no record.
        """
        return _recorded(self._context.sessions, "sessions")

    @property
    def approvals(self) -> Approvals:
        """The approvals of this home. Raises the same failures as `sessions`."""
        return _recorded(self._context.approvals, "approvals")

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
        """Open a session in this workspace.

        Args:
            client: A name for the client, for the record.
            cwd: The session's folder in the workspace.
            tools: The tools that the session may call; all by default. A composite may make its own calls, in the version that it
                has now.
            seconds: The lifetime of the session; None if it never expires.
            budget: The most that the session may use.
            within: The token of the parent session.

        Returns:
            The session and its token.

        Raises:
            Failure: `invalid_arguments`, `permission_denied`, `governance_unavailable`; `budget_exceeded` if nothing more may be
                stored for the parent; `not_found` and others for `cwd`.
        """
        workspace = self._context.workspace
        if cwd:
            workspace.at(cwd)
        named = None if tools is None else frozenset(tools)
        return self.sessions.open(
            client,
            str(workspace.root),
            cwd=cwd,
            tools=named,
            seconds=seconds,
            budget=budget,
            within=within,
            quota=self._context.quota if within is not None else float("inf"),
            version_of=self._version_of,
        )

    def _version_of(self, name: str) -> str | None:
        """The present version of a composite; None if calls of the name reach no composite."""
        try:
            version = self._pipeline.lookup.look_up(name, None).version
        except Failure:
            return None
        return version.version if version is not None else None

    # Runs

    @property
    def runs(self) -> RunManager:
        """The runs of this home: list, show, resume, cancel and replay them."""
        return self._runs

    async def list_runs(self, limit: int = 50, *, session: str | None = None) -> builtins.list[RunView]:
        """The newest runs, at most `limit`; with the token of a `session`, those of this session and of the sessions within it.

        Raises:
            Failure: `not_found` if this service records no runs; `permission_denied`, `io_error`.
        """
        if session is None:
            return await asyncio.to_thread(self._runs.list, limit)
        mine = self.actions.session(session).id
        return await asyncio.to_thread(self._runs.list, limit, lambda of: self.sessions.is_within(of or "", mine))

    async def show_run(self, run: str, *, session: str | None = None) -> RunView:
        """One run, by its id or the first digits of the id. A session may read its own runs, and others by ``read_records``.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`; in a session also those of a call.
        """
        show = partial(asyncio.to_thread, self._runs.show, run)
        return await self.actions.perform(READ, {"of": f"run {run}"}, session, show, self._session_of(run))

    async def cancel_run(self, run: str, by: str, *, session: str | None = None) -> RunView:
        """Cancel a run, see `RunManager.cancel`. A session may cancel its own runs, and others by ``cancel_run``.

        Raises:
            Failure: See `RunManager.cancel`; in a session also those of a call.
        """

        async def cancel() -> RunView:
            return self._runs.cancel(run, by if session is None else f"the session {self.actions.session(session).id}")

        return await self.actions.perform(CANCEL, {"run": run}, session, cancel, self._session_of(run))

    def _session_of(self, run: str) -> Callable[[], str | None]:
        return lambda: self._runs.show(run).session

    async def records(
        self,
        kinds: Collection[str] | None = None,
        since: datetime | None = None,
        run: str | None = None,
        *,
        session: str | None = None,
    ) -> builtins.list[Entry]:
        """The entries of the ledger, oldest first, see `Ledger.entries`. A session needs the action ``read_records``.

        Raises:
            Failure: `damaged`, `io_error`; in a session also those of a call.
        """
        read = partial(asyncio.to_thread, lambda: [*self._context.ledger.entries(kinds, since, run)])
        return await self.actions.perform(READ, {"of": "the ledger"}, session, read)

    def list_sessions(self, *, session: str | None = None) -> builtins.list[Session]:
        """All sessions, newest first; with the token of a `session`, this session and those within it.

        Raises:
            Failure: `not_found` if this service has no record; `permission_denied`.
        """
        if session is None:
            return self.sessions.all()
        mine = self.actions.session(session).id
        return [each for each in self.sessions.all() if self.sessions.is_within(each.id, mine)]

    async def revoke_session(self, name: str, *, session: str | None = None) -> Session:
        """End a session and the sessions within it, by its id or the beginning of the id.

        A session may end itself and the sessions within it, and others by the action ``revoke_session``.

        Raises:
            Failure: `not_found`, `invalid_arguments`; in a session also those of a call.
        """

        async def end() -> Session:
            return self.sessions.end(name)

        return await self.actions.perform(REVOKE, {"session": name}, session, end, lambda: self.sessions.complete(name))

    async def resume(self, run: str, log: Log | None = None, *, session: str | None = None) -> ToolResult:
        """Resume a run that waits for an approval or whose process has died. Its calls are judged as those of its own session.

        Args:
            run: The run's id, or the first digits of the id.
            log: Called with the tool and the text for each print of the program.
            session: The token of the session that resumes the run: its own run, or another one by the action ``resume_run``.

        Returns:
            The result of the run.

        Raises:
            Failure: `not_found`, `damaged`; `exists` if the run has ended or another process runs it; `diverged` if the tool, the
                workspace or the interpreter has changed. In a session also those of a call.
            RuntimeError: The service is closed.
        """
        self._must_be_open()
        await self.actions.perform(RESUME, {"run": run}, session, permitted, self._session_of(run))
        self._poll_cancellations()
        return await self._runs.resume(run, log)

    def _poll_cancellations(self) -> None:
        """While requests run, check regularly whether another process has cancelled a run."""
        if self._context.runs is None or (self._watching is not None and not self._watching.done()):
            return

        async def watch() -> None:
            idle = 0
            while idle < MAX_IDLE_POLLS and not self._closed:
                await asyncio.sleep(POLL_SECONDS)
                idle = 0 if self._pipeline.active else idle + 1
                self._runs.stop_cancelled()

        self._watching = asyncio.create_task(watch())

    # Descriptions and lists

    async def describe(self, name: str, version: str | None = None, *, session: str | None = None) -> Description:
        """Describe one tool.

        Args:
            name: The tool.
            version: A version of a composite; the newest by default.
            session: The token of the session that asks. Its lease must cover the tool.

        Returns:
            Its definition, source and versions, and the decision of the rules.

        Raises:
            Failure: `unknown_tool` with the nearest name, `damaged`; `permission_denied` in a session.
        """
        self.demand_covered(session, name)
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
                review=self._context.reviews.of(found) if self._context.reviews is not None else None,
            )
            return self._judged(description)

        return await asyncio.to_thread(load)

    def standing(self, definition: ToolDefinition, gated: bool = False, mode: Mode | None = None) -> dict[str, Json]:
        """The decision of the rules on every call of a tool. The arguments of a call can make it stricter.

        Args:
            definition: The tool.
            gated: Whether it is a gated primitive.
            mode: The mode of the calls; None for the present one.

        Returns:
            A decision in the form of a result's ``policy``, with its ``hint``, the ``mode``, and what a person is asked about
            although every call is allowed (`asks`, such as ``new hosts``). If the rules can't be evaluated, the decision is a
            denial with the reason.
        """
        try:
            authority = self._context.ruling(audit=False).authority
        except Failure as why:
            said = Decision("deny", why.rule or "governance", "no_rule", why.message).as_dict()
            return {**said, "rationale_code": "unavailable", "hint": why.hint, "mode": None}
        mode = mode or authority.modes.mode
        decision = authority.policy.permits(definition, gated, mode)
        primitive = self.registry.primitive(definition.name) if decision.verdict == "allow" else None
        kinds = [] if primitive is None else [*(["url"] if primitive.urls else []), *primitive.judged.values()]
        asks: list[Json] = [*authority.policy.may_ask(definition, kinds)]
        return {**decision.as_dict(), "hint": decision.hint, "mode": mode, "asks": asks}

    def _judged(self, description: Description) -> Description:
        definition = description.definition
        bounds: dict[str, Json] = {}
        with suppress(Failure):
            rules = self._context.ruling(audit=False)
            bounds = {
                "timeout_seconds": rules.timeout(definition),
                "calls_per_hour": dict(rules.authority.policy.numbers(definition).rate_limits),
            }
        return replace(description, policy=self.standing(definition, description.gated), bounds=bounds)

    async def list(
        self,
        category: str | None = None,
        *,
        family: str | None = None,
        hidden: bool = False,
        limit: int | None = None,
        after: str = "",
        mode: Mode | None = None,
    ) -> builtins.list[Listed]:
        """List the tools, all of them or a page.

        Args:
            category: Only the tools of this category of the rules, such as ``read_only``.
            family: Only the tools of this family, such as ``files``; ``saved`` for the saved tools.
            hidden: Whether to include primitives that the mode denies.
            limit: The most tools to return; None for all.
            after: The name of the last tool on the page before.
            mode: The mode in which the rules decide about the tools; None for the present one.

        Returns:
            Primitives in the order of registration, then saved tools by name. A damaged tool has a `problem`.

        Raises:
            Failure: `io_error` if the store can't be read; `invalid_arguments` if there is no such category.
        """
        if category is not None and category not in CATEGORIES:
            raise Failure(
                "invalid_arguments",
                f"there is no category {category!r}{did_you_mean(str(category), CATEGORIES)}",
                hint=f"the categories are {', '.join(CATEGORIES)}; `family` selects a family",
            )

        def chosen(tool: Listed) -> bool:
            return category in (None, tool.category) and family in (None, tool.family)

        primitives = self.registry.primitives()
        names = [p.name for p in primitives]
        if after in names:
            primitives, after = primitives[names.index(after) + 1 :], ""
        elif after:
            primitives = []
        found = [t for t in (self._primitive(p, mode) for p in primitives) if (hidden or not t.hidden) and chosen(t)][
            :limit
        ]

        def saved() -> builtins.list[Listed]:
            if family not in (None, SAVED):
                return []
            if limit is None:
                return [*filter(chosen, self._all_listed((s for s in self.store.list() if s.name > after), mode))]
            rest: builtins.list[Listed] = []
            last = after
            while len(found) + len(rest) < limit and (page := self.store.page(last, limit)):
                rest += [*filter(chosen, self._all_listed(page, mode))]
                last = page[-1].name
            return rest[: limit - len(found)]

        return found + await asyncio.to_thread(saved)

    def _primitive(self, primitive: Primitive, mode: Mode | None = None) -> Listed:
        d = primitive.definition
        policy = self.standing(d, primitive.gated, mode)
        return Listed(
            d.name,
            "primitive",
            first_line(d.description),
            d.signature(),
            d.family,
            d.category,
            effects=d.effects,
            policy=policy,
        )

    async def search(self, text: str, limit: int = 20) -> builtins.list[Listed]:
        """Search the names, descriptions and sources of the tools.

        Args:
            text: The words to search for.
            limit: The most tools to return.

        Returns:
            Saved tools, the best match first, then primitives. A quarter of the places is reserved for primitives.

        Raises:
            Failure: `io_error` if the store can't be read.
        """
        words = [*dict.fromkeys(text.lower().split())][:MAX_WORDS]
        primitives = []
        for primitive in self.registry.primitives():
            d = primitive.definition
            spoken = f"{d.name} {d.name.replace('_', ' ')} {d.description}".lower()
            if words and all(w in spoken for w in words):
                primitives.append(self._primitive(primitive))
        primitives.sort(key=lambda tool: any(w not in tool.name for w in words))
        saved = max(0, limit - min(len(primitives), limit // 4))
        found = await asyncio.to_thread(lambda: self._all_listed(self.store.search(text, saved)))
        return [*found, *primitives][: max(0, limit)]

    def _all_listed(self, summaries: Iterable[Summary], mode: Mode | None = None) -> builtins.list[Listed]:
        active = self._context.reviews.active() if self._context.reviews is not None else {}
        return [self._listed(summary, active, mode) for summary in summaries]

    def _listed(self, summary: Summary, active: Mapping[str, str], mode: Mode | None) -> Listed:
        listed = Listed(
            name=summary.name,
            kind="composite",
            description=first_line(summary.description),
            family=SAVED,
            version=summary.version,
            versions=summary.versions,
            created=summary.created,
            problem=summary.problem,
        )
        if summary.problem is not None:
            return listed
        if self.registry.primitive(summary.name) is not None:
            hidden = f"a primitive of this application has the name {summary.name}, so calls reach that"
            return replace(listed, problem=hidden)
        try:
            version = self._by_name(summary.name)
        except Failure as failure:
            return replace(listed, problem=failure.message)
        newest = self._newest(version.calls)
        review = self._context.reviews.of(version) if self._context.reviews is not None else None
        return replace(
            listed,
            description=first_line(version.definition.description),
            version=version.version,
            signature=version.definition.signature(),
            category=version.definition.category,
            outdated=self._pipeline.lookup.outdated(version),
            changed=tuple(c.name for c in _changed(version.calls, newest) if newest[c.name] is not None),
            active=active.get(summary.name, ""),
            state=review.state if review is not None else "",
            decided_by=review.by if review is not None else "",
            effects=version.definition.effects,
            policy=self.standing(version.definition, mode=mode),
        )

    def _newest(self, calls: Iterable[Callee]) -> dict[str, str | None]:
        """The newest version of each composite among the callees; None if the composite was removed."""
        found: dict[str, str | None] = {}
        for callee in calls:
            if callee.kind == "composite":
                try:
                    found[callee.name] = self._by_name(callee.name).version
                except Failure as failure:
                    # `outdated` reports a callee that can't be read.
                    found[callee.name] = None if failure.code == "unknown_tool" else callee.version
        return found

    async def remove(self, name: str, *, session: str | None = None) -> None:
        """Remove a saved tool. The store retains its versions, so tools that were checked against them can still run.

        Args:
            name: The tool.
            session: The token of the session that removes the tool, by the action ``remove_tool``. A person is asked before the
                session removes a tool that is active, or that the owner or another session has defined.

        Raises:
            Failure: `unknown_tool`; `permission_denied` if the tool is a primitive. In a session also those of a call.
        """
        if self.registry.primitive(name) is not None:
            raise Failure(
                "permission_denied",
                f"{name} is a primitive and can't be removed",
                hint=f"to turn a primitive off, write `deny: [{name}]` in governance.yaml",
                rule="primitive",
                tool=name,
            )
        head: str | None = None

        async def review(token: str) -> Review:
            nonlocal head
            newest, why = await asyncio.to_thread(self._head, name, token, "removing it")
            head = newest
            if not why and self._context.reviews is not None and name in self._context.reviews.active():
                why = f"{name} is active: the owner has approved it; removing it needs a person's approval"
            return Review(why, {"removes": newest})

        async def delete() -> None:
            by = "" if session is None else self.actions.session(session).id
            reviews = self._context.reviews
            # First, so that no approval outlives its tool if the process is killed in between.
            if reviews is not None and (active := reviews.active().get(name)) is not None:
                reviews.deprecate(name, active, by, "removed")
            await asyncio.to_thread(self.store.delete, name, head)
            self._record("removal", by, tool=name)

        await self.actions.perform(REMOVE, {"name": name}, session, delete, review=review)

    async def approve(
        self,
        name: str,
        by: str,
        version: str | None = None,
        why: str = "",
        manifest: str | None = None,
        seen: str | None = None,
    ) -> VersionState:
        """Approve a version of a saved tool, see `Reviews`.

        Args:
            name: The tool.
            by: Who does this, for the record.
            version: The version, or the beginning of its hash; the newest by default.
            why: The reason, for the record.
            manifest: The digest of the manifest that the reviewer has read; None for the stored manifest.
            seen: The state that the reviewer has seen; None if any other decision may be replaced.

        Returns:
            The new state of the version.

        Raises:
            Failure: `unknown_tool`, `damaged`, `outdated`, `not_found` if this service has no record, `io_error`.
        """

        def approved() -> VersionState:
            found = self._pipeline.lookup.look_up(name, None).version
            if found is None:
                raise Failure(
                    "invalid_arguments", f"{name} is a primitive, which is offered to every agent whose lease covers it"
                )
            if version is not None:
                found = self.store.load(name, version)
            problem = self._pipeline.lookup.outdated(found)
            if problem is not None:
                raise Failure("outdated", f"{name} is outdated: {problem}", hint="define it again", tool=name)
            return self.reviews.approve(name, found.version, by, why, manifest, seen)

        stored = (await asyncio.to_thread(self._pipeline.lookup.look_up, name, version)).version
        if stored is not None:
            await self._renewed(stored)
        return await asyncio.to_thread(approved)

    async def decide(
        self,
        name: str,
        decision: str,
        by: str,
        version: str,
        why: str = "",
        manifest: str | None = None,
        seen: str | None = None,
    ) -> VersionState:
        """Make a reviewer's decision about a version of a saved tool.

        Args:
            name: The tool.
            decision: One of `engine.authority.reviews.DECISIONS`.
            by: Who decides, for the record.
            version: The version, or the beginning of its hash.
            why: The reason. To reject, send back or revoke, it must be given.
            manifest: For an approval, the digest of the manifest that the reviewer has read.
            seen: For an approval, the state that the reviewer has seen.

        Raises:
            Failure: `invalid_arguments` if there is no such decision, if the state of the version does not allow it, or if the
                reason is missing; those of `approve`.
        """
        from albert_tools.engine.authority.reviews import DECISIONS, REASONED

        if decision not in DECISIONS:
            raise Failure("invalid_arguments", f"{decision!r} is not a decision", hint=f"one of {', '.join(DECISIONS)}")
        if decision in REASONED and not why.strip():
            raise Failure("invalid_arguments", "a reason is missing", hint="write one: the author reads it")
        if decision == "approve":
            return await self.approve(name, by, version, why, manifest, seen)
        return await asyncio.to_thread(getattr(self.reviews, decision), name, version, by, why)

    async def deprecate(self, name: str, by: str, why: str = "") -> VersionState:
        """End the approval of the active version of a saved tool. Agents are no longer offered it. It can still be found and run.

        Raises:
            Failure: `not_found` if no version is active; `io_error`, `damaged`.
        """

        def deprecated() -> VersionState:
            version = self.reviews.active().get(name)
            if version is None:
                raise Failure("not_found", f"{name} is not active", hint="`albert tools` shows which tools are active")
            return self.reviews.deprecate(name, version, by, why)

        return await asyncio.to_thread(deprecated)

    async def review(self, name: str, version: str | None = None, *, rerun: bool = True) -> VersionReview:
        """All that a reviewer needs about a version of a saved tool. Its examples and recorded runs are repeated without effects.

        Args:
            name: The tool.
            version: The version, or the beginning of its hash; the newest by default.
            rerun: Whether to repeat the examples and the recorded runs, which takes some seconds.

        Raises:
            Failure: `unknown_tool`, `damaged`, `io_error`; `invalid_arguments` for a primitive.
        """
        from albert_tools.engine.reviewing import Reviewer

        self._must_be_open()
        reviewer = Reviewer(
            self.store, self._pipeline.lookup, self._context, self._runs, self._example_runs, self._renewed
        )
        return await reviewer.review(name, version, rerun)

    async def _example_runs(self, version: ToolVersion) -> tuple[ExampleRun, ...]:
        """Run the examples of a saved version. Raises as `define`."""
        from albert_tools.engine.examples import Observed, run_examples
        from albert_tools.engine.review.touched_files import touched_files
        from albert_tools.engine.review.version_review import ExampleRun, expected_of

        _, examples, _ = await self._compiled(version.source)
        observed: dict[int, Observed] = {}
        problems = await run_examples(version, examples, self._pipeline, self._denied(), observed)
        failed = {problem["line"]: problem["message"] for problem in problems}
        found = []
        for e in examples:
            seen = observed.get(e.line, Observed())
            files = touched_files([(effect.kind, effect.facts) for effect in seen.effects], e.files)
            problem = failed.get(e.line, "")
            found.append(ExampleRun(e.line, e.arguments, expected_of(e), problem, tuple(sorted(seen.calls)), files))
        return tuple(found)

    async def upgrade(self, name: str | None = None, *, dry_run: bool = False) -> builtins.list[Upgrade]:
        """Check saved sources again, against the newest versions of the tools that they call, and save them as new versions.

        Args:
            name: The tool; by default all whose callees have changed, and all that were saved without a manifest.
            dry_run: Whether to save nothing and to run no examples.

        Returns:
            The upgrades, callees first. The new versions are pending.

        Raises:
            Failure: `unknown_tool`, `damaged`, `io_error`.
        """
        from albert_tools.engine.upgrading import Upgrader

        async def recheck(version: ToolVersion, proposed: Mapping[str, ToolDefinition]) -> ToolVersion:
            if dry_run:
                return (await self._compiled(version.source, version.author, proposed))[0]
            return replace((await self._examined(version.source, lambda _: None))[0], author=version.author)

        def save(version: ToolVersion, over: str) -> None:
            self._saved(version, (), over)

        def revoked(version: ToolVersion) -> bool:
            reviews = self._context.reviews
            return reviews is not None and reviews.of(version).state == "revoked"

        return await Upgrader(self.registry, self.store, recheck, save, revoked).upgrade(name, dry_run)

    @property
    def reviews(self) -> Reviews:
        """The states of the saved versions of this home. Raises the same failures as `sessions`."""
        return _recorded(self._context.reviews, "reviews")

    def covers(self, token: str | None, tool: str) -> bool:
        """Whether the lease of a session, and the leases of its ancestors, cover a tool. The owner may call every tool.

        Raises:
            Failure: `permission_denied`: the session does not exist, or has ended.
        """
        try:
            self.demand_covered(token, tool)
        except Failure as failure:
            if failure.rule == "lease.tools":
                return False
            raise
        return True

    def demand_covered(self, token: str | None, tool: str) -> None:
        """Require that a session's lease covers a tool. Outside of its lease, a session can't find out whether a tool exists.

        Raises:
            Failure: `permission_denied`: the lease does not cover the name; the session does not exist, or has ended.
        """
        if token is not None:
            self.sessions.demand(self.actions.session(token), tool, author=self._pipeline.lookup.author(tool))

    def contents(self, token: str | None) -> ContentStore | None:
        """The content store as a session has it, see `SessionContents`; the whole store for the owner, None if there is none.

        Raises:
            Failure: `permission_denied`: there is no such session, or it has ended; `governance_unavailable`.
        """
        stored = self._context.contents
        if token is None or stored is None:
            return stored
        from albert_tools.engine.authority.leased_session import LeasedSession
        from albert_tools.engine.call.session_contents import SessionContents

        context = self._context
        session = LeasedSession(self.sessions, self.actions.session(token), context.ledger, lambda: context.quota)
        return SessionContents(stored, session)

    def _record(self, kind: str, author: str, **data: Json) -> None:
        """Append an entry about a change of the store. The change remains in effect even if the entry can't be written."""
        with suppress(Failure):
            self._context.ledger.append(kind, {**data, "by": author} if author else data)

    def register(self, primitive: Primitive) -> None:
        """Add a primitive of the application.

        Raises:
            TypeError: The object is not a primitive.
            ValueError: Another primitive has the same name.
        """
        self.registry.register(primitive)


class _Catalog:
    """The tools that a source may call: primitives, then the tools that are checked together, then saved tools.

    With a session, only those that its lease covers.
    """

    def __init__(
        self, service: ToolService, together: Mapping[str, ToolDefinition], session: str | None = None
    ) -> None:
        self._service = service
        self.together = together
        self._session = session

    def get(self, name: str) -> ToolDefinition | None:
        if name in self.together and self._service.registry.primitive(name) is None:
            return self.together[name]
        found = self._service.registry.get(name)
        return found if found is not None and self._service.covers(self._session, name) else None

    def names(self) -> builtins.list[str]:
        known = [name for name in self._service.registry.names() if self._service.covers(self._session, name)]
        return builtins.list(dict.fromkeys([*known, *self.together]))

    def outdated(self, name: str) -> str | None:
        return None if name in self.together else self._service.outdated(name)

    def look_alike(self, name: str) -> str | None:
        # All names count, also for a session: a tool that looks like another one would deceive the others.
        if self.get(name) is not None:
            return None
        known = [*self._service.registry.primitive_names, *self.together, *RESERVED]
        # A store that can't be read has no tools.
        with suppress(Failure):
            known += self._service.store.alike(name)
        return look_alike(name, known)


def _version(checked: CheckedSource, author: str = "") -> ToolVersion:
    assert checked.program is not None
    created = datetime.now(UTC).isoformat(timespec="microseconds")
    whole = ToolVersion(
        checked.definition, checked.source, checked.program, checked.calls, created=created, author=author
    )
    return whole.named()


def _shown_source(source: Source) -> str:
    """A source as the argument of an action, for the question and the record.

    Raises:
        Failure: `invalid_arguments`.
    """
    if isinstance(source, bytes):
        return source.decode("utf-8", "replace")
    try:
        return source if isinstance(source, str) else json.dumps(source, default=repr, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Failure("invalid_arguments", f"the source is not JSON: {error}") from error


def _changed(calls: Iterable[Callee], newest: Mapping[str, str | None]) -> tuple[Callee, ...]:
    return tuple(c for c in calls if newest.get(c.name, c.version) != c.version)


def _recorded(what: _T | None, name: str) -> _T:
    if what is None:
        raise Failure("not_found", f"this service keeps no record, so there are no {name}")
    return what


def first_line(text: str) -> str:
    """The first line of a description."""
    return text.strip().split("\n")[0]


def _failed_examples(failed: int, of: int, first: dict[str, Any]) -> str:
    which = f"the example in line {first['line']} failed"
    if failed > 1:
        which = f"{failed} of {of} examples failed; the first, in line {first['line']}"
    return f"{which}: {first['message']}"

"""The one way to an effect: every call, of a person, an agent or a program, passes here, top to bottom.

1. **Look up** the tool.
2. **Validate** the arguments, all violations at once.
3. **Authorise**, default-deny: workspace and rules there, depth, not denied, gated only where allowed. Any fault of ours in 1 to 3
   is a denial.
4. **Execute** under timeout: a primitive in the contained workspace, a composite in the sandbox, where each of its calls comes back
   to 1 with what is left of its caller's time and depth.
5. **Record**: one result, with every effect that happened, also when it failed after them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from albert_tools.engine.execute.registry import ToolRegistry
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.definition import ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_TOOL_DEPTH
from albert_tools.engine.model.naming import did_you_mean
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.model.schema import violations
from albert_tools.engine.sandbox.domain import Unexportable, export
from albert_tools.engine.sandbox.pool import MAX_ANSWER, RunReport, Sandbox

#: Runs at once that were asked for from outside; more wait their turn. Calls from within a run never wait.
MAX_RUNS = 32

Log = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What calls are judged by and happen in. `workspace` and `governance` may be the failure that says why they are missing."""

    workspace: Any
    governance: Governance | Failure
    #: Answers for tools by name, instead of the tools: in the examples of a source.
    stubs: Mapping[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    #: Whether only what stays inside the workspace may be done for real.
    scratch: bool = False


@dataclass(slots=True)
class _Chain:
    """What a call inherits from the one it is made by."""

    invocation: ToolInvocation
    deadline: float
    depth: int = 0
    log: Log | None = None
    printed: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    report: RunReport = field(default_factory=RunReport)
    watch: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    definition: ToolDefinition
    primitive: Primitive | None = None
    version: ToolVersion | None = None


@dataclass(slots=True)
class _Context:
    """The `CallContext` of a primitive."""

    workspace: Any
    remaining: float
    settings: Mapping[str, Any]
    tool: str
    effects: list[Effect]

    def effect(self, kind: str, **facts: Any) -> None:
        self.effects.append(Effect(kind, self.tool, facts))


class Pipeline:
    """Judges and runs invocations. `sandbox` is asked for the first time a composite runs."""

    def __init__(
        self,
        registry: ToolRegistry,
        store: ToolStore,
        sandbox: Callable[[], Awaitable[Sandbox]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._store = store
        self._sandbox = sandbox
        self._clock = clock
        self._turns = asyncio.Semaphore(MAX_RUNS)

    async def invoke(
        self,
        invocation: ToolInvocation,
        surroundings: Surroundings,
        log: Log | None = None,
        unsaved: ToolVersion | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> ToolResult:
        """Run one invocation from outside; exactly one result, whatever happens but cancellation.

        `unsaved` is run in place of what the store has: the examples of a source that isn't saved yet. `watch` is told the
        name of each tool that the program calls, as the call begins.
        """
        started = self._clock()
        run_seconds = 600.0
        if isinstance(surroundings.governance, Governance):
            run_seconds = surroundings.governance.limits.run_seconds
        chain = _Chain(invocation, started + run_seconds, log=log, watch=watch)
        target: _Target | None = None
        output, error = None, None
        async with self._turns:
            try:
                target = self.look_up(invocation.tool, invocation.version, unsaved)
                output = await self._pass(target, dict(invocation.arguments), chain, surroundings)
                output = export(output, MAX_ANSWER)
            except Unexportable as refused:
                error = Failure("invalid_result", refused.sentence("the output"), tool=invocation.tool)
            except Failure as failure:
                error = failure
        return ToolResult(
            tool=invocation.tool,
            output=output,
            error=error,
            version=target.definition.version if target is not None else "",
            request_id=invocation.request_id,
            effects=tuple(chain.effects),
            log="".join(chain.printed),
            seconds=self._clock() - started,
            own_seconds=chain.report.own_seconds,
            calls=chain.report.calls,
        )

    def violations(self, name: str, arguments: Any, version: str | None = None) -> list[dict[str, str]]:
        """Everything that is wrong with `arguments` for the tool `name`.

        Raises:
            Failure: `unknown_tool`, `damaged`.
        """
        return _violations(self.look_up(name, version).definition, arguments)

    async def _pass(self, target: _Target, arguments: dict[str, Any], chain: _Chain, surroundings: Surroundings) -> Any:
        """Stages 2 to 4, for a call from outside and one from a program alike."""
        try:
            arguments = _validated(target.definition, arguments)
            governance = self._authorise(target, chain, surroundings)
        except Failure:
            raise
        except Exception as fault:
            raise Failure(
                "governance_unavailable",
                f"the call can't be judged, so it is denied ({type(fault).__name__}: {fault})",
                rule="fault",
            ) from fault
        stub = surroundings.stubs.get(target.definition.name)
        if stub is not None and chain.depth:
            return stub(arguments)
        try:
            if target.primitive is not None:
                return await self._run_primitive(target.primitive, arguments, chain, surroundings, governance)
            assert target.version is not None
            return await self._run_composite(target.version, arguments, chain, surroundings, governance)
        except Failure:
            raise
        except Exception as fault:
            name = target.definition.name
            raise Failure("internal_error", f"{name} failed by a fault of its own: {fault!r}", tool=name) from fault

    # 1. Look up

    def look_up(self, name: str, version: str | None, unsaved: ToolVersion | None = None) -> _Target:
        if unsaved is not None:
            return _Target(unsaved.definition, version=unsaved)
        primitive = self._registry.primitive(name) if isinstance(name, str) else None
        if primitive is not None and version in (None, primitive.definition.version):
            return _Target(primitive.definition, primitive=primitive)
        try:
            found = self._store.load(name, version)
        except Failure as failure:
            if failure.code == "unknown_tool" and version is None:
                near = did_you_mean(str(name), self._registry.names())
                raise Failure(
                    "unknown_tool",
                    f"no tool named {name!r}{near}",
                    hint="`list` and `search` say what there is",
                    tool=str(name),
                ) from None
            raise
        return _Target(found.definition, version=found)

    # 3. Authorise

    def _authorise(self, target: _Target, chain: _Chain, surroundings: Surroundings) -> Governance:
        name = target.definition.name
        if isinstance(surroundings.workspace, Failure):
            raise surroundings.workspace
        governance = surroundings.governance
        if isinstance(governance, Failure):
            raise governance
        if target.version is not None and chain.depth >= MAX_TOOL_DEPTH:
            raise Failure("depth_limit", f"saved tools call each other more than {MAX_TOOL_DEPTH} deep", tool=name)
        if name in governance.deny:
            raise Failure(
                "permission_denied",
                f"{name} is denied by the rules",
                hint="the owner's governance.yaml says so",
                rule="deny",
                tool=name,
            )
        if surroundings.scratch:
            if name not in surroundings.stubs and target.primitive is not None and not _stays_inside(target.primitive):
                raise Failure(
                    "permission_denied",
                    f"{name} is not done for real in an example",
                    hint=f'give the example its answer: stubs={{"{name}": …}}',
                    rule="scratch",
                    tool=name,
                )
        elif target.primitive is not None and target.primitive.gated and name not in governance.allow:
            raise Failure(
                "permission_denied",
                f"{name} is off until the owner allows it",
                hint=f"the owner can put `allow: [{name}]` into governance.yaml (`albert doctor` says where it is)",
                rule="gated",
                tool=name,
            )
        if target.version is not None and not chain.depth:
            problem = self.outdated(target.version)
            if problem:
                raise Failure(
                    "outdated", f"{name} is outdated: {problem}", hint="define it again from its source", tool=name
                )
        return governance

    def outdated(self, version: ToolVersion) -> str | None:
        """Why a version may not run until it is checked again: a callee has changed or is gone; None when it may."""
        seen: set[str] = set()
        pending = [version]
        while pending:
            current = pending.pop()
            for callee in current.calls:
                if callee.kind == "primitive":
                    primitive = self._registry.primitive(callee.name)
                    if primitive is None:
                        return f"this application has no {callee.name}"
                    if primitive.definition.version != callee.version:
                        return f"{callee.name} has changed since {current.name} was checked"
                elif callee.version not in seen:
                    seen.add(callee.version)
                    try:
                        pending.append(self._store.load(callee.name, callee.version))
                    except Failure as failure:
                        return f"{callee.name} can't be loaded: {failure.message}"
        return None

    # 4. Execute

    async def _run_primitive(
        self,
        primitive: Primitive,
        arguments: dict[str, Any],
        chain: _Chain,
        surroundings: Surroundings,
        governance: Governance,
    ) -> Any:
        name = primitive.name
        left = chain.deadline - self._clock()
        seconds = min(primitive.definition.timeout, governance.limits.call_seconds, left)
        settings = governance.primitives.get(name, {})
        context = _Context(surroundings.workspace, max(0.0, seconds), settings, name, chain.effects)
        try:
            if seconds <= 0:
                raise TimeoutError
            async with asyncio.timeout(seconds):
                return await call_primitive(primitive, arguments, context)
        except TimeoutError:
            raise Failure(
                "timeout",
                f"{name} did not answer within {seconds:.3g} s",
                tool=name,
                details={"seconds": round(seconds, 3)},
            ) from None
        except Failure as failure:
            failure.tool = failure.tool or name
            raise

    async def _run_composite(
        self,
        version: ToolVersion,
        arguments: dict[str, Any],
        chain: _Chain,
        surroundings: Surroundings,
        governance: Governance,
    ) -> Any:
        left = chain.deadline - self._clock()
        if left <= 0:
            raise Failure("run_limit", f"no time was left for {version.name}", tool=version.name)
        seconds = min(left, governance.limits.run_seconds, version.definition.timeout)
        limits = governance.limits._replace(
            run_seconds=seconds,
            own_seconds=min(governance.limits.own_seconds, version.definition.timeout),
        )
        pins = {callee.name: callee for callee in version.calls}
        deadline = self._clock() + seconds

        async def call(name: str, given: dict[str, Any], key: str) -> Any:
            pin = pins.get(name)
            if pin is None:
                raise Failure(
                    "permission_denied", f"{version.name} was not checked to call {name!r}", rule="pins", tool=name
                )
            inner = _Chain(
                chain.invocation,
                deadline,
                chain.depth + 1,
                chain.log,
                chain.printed,
                chain.effects,
                RunReport(),
                chain.watch,
            )
            if chain.watch is not None:
                chain.watch(name)
            target = self.look_up(name, None if pin.kind == "primitive" else pin.version)
            if target.primitive is not None and pin.kind == "composite":
                raise Failure(
                    "outdated", f"{name} is a primitive now; {version.name} was checked against a saved tool", tool=name
                )
            return await self._pass(target, given, inner, surroundings)

        def printed(text: str) -> None:
            chain.printed.append(text)
            if chain.log is not None:
                chain.log(version.name, text)

        sandbox = await self._sandbox()
        return await sandbox.run(version.program, arguments, call=call, log=printed, limits=limits, report=chain.report)


def _stays_inside(primitive: Primitive) -> bool:
    """Whether a call can do nothing outside the workspace it is given."""
    effects = set(primitive.definition.effects)
    return effects <= {"read"} or (primitive.context is not None and effects <= {"read", "write", "delete"})


def _violations(definition: ToolDefinition, arguments: Any) -> list[dict[str, str]]:
    if not isinstance(arguments, Mapping):
        return [{"field": "", "rule": "type", "message": "the arguments must be an object, by name"}]
    try:
        export(dict(arguments), MAX_ANSWER)
    except Unexportable as error:
        return [{"field": "", "rule": error.code, "message": error.sentence("the argument")}]
    return violations(dict(arguments), definition.parameters_schema())


def _validated(definition: ToolDefinition, arguments: dict[str, Any]) -> dict[str, Any]:
    """Stage 2: the arguments with defaults filled in.

    Raises:
        Failure: `invalid_arguments`, with every violation in `details`.
    """
    found = _violations(definition, arguments)
    if found:
        raise Failure(
            "invalid_arguments",
            f"{definition.name}: " + "; ".join(v["message"] for v in found),
            hint=f"the tool is called as {definition.signature()}",
            tool=definition.name,
            details={"violations": found},
        )
    return {p.name: arguments.get(p.name, p.default) for p in definition.parameters}

"""The one way to an effect: every call, of a person, an agent or a program, passes here, top to bottom.

1. **Look up** the tool.
2. **Validate** the arguments, all violations at once.
3. **Authorise**, default-deny: workspace and rules there, depth, the rules for the tool, its category and what it touches in the
   present mode; where they say *ask*, a person. Any fault of ours in 1 to 3 is a denial.
4. **Execute** under timeout: a primitive in the contained workspace, where the rules are asked again about what is really opened, a
   composite in the sandbox, where each of its calls comes back to 1 with what is left of its caller's time and depth.
5. **Record**: one result, with every effect that happened, also when it failed after them. The decision is in the log before the
   call, on the disk before any that may change something; what came of it follows.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from albert_tools.engine.execute.record import CallId, Recorder, new_id
from albert_tools.engine.execute.registry import ToolRegistry
from albert_tools.engine.govern.authority import Asker, Authority, Question, nobody, refused
from albert_tools.engine.govern.guarded import GuardedWorkspace
from albert_tools.engine.govern.modes import Modes
from albert_tools.engine.govern.policy.decision import Decision, gravest
from albert_tools.engine.govern.policy.rules import Policy
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.brief import brief
from albert_tools.engine.model.definition import Mode, ToolDefinition, ToolVersion, spell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_TOOL_DEPTH
from albert_tools.engine.model.naming import did_you_mean
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.protocols import Ledger, ToolStore
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.model.schema import kind_of, violations
from albert_tools.engine.sandbox.domain import Unexportable, export
from albert_tools.engine.sandbox.pool import MAX_ANSWER, RunReport, Sandbox

#: Runs at once that were asked for from outside; more wait their turn. Calls from within a run never wait.
MAX_RUNS = 32

#: The number of a call within a run: `3`, or `2.0.1` within `gather`.
_KEY = re.compile(r"[0-9]+(\.[0-9]+)*")
_MAX_KEY = 100

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
    modes: Modes = field(default_factory=lambda: Modes(None))
    #: Who is asked where the rules say so; None: nobody, and that means no.
    ask: Asker | None = None
    ledger: Ledger | None = None
    authority: Authority | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.governance, Governance) and not isinstance(self.workspace, Failure) and not self.scratch:
            policy = Policy(self.governance.layers(), str(self.workspace.root), os.path.expanduser("~"))
            object.__setattr__(self, "authority", Authority(policy, self.modes))


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
    spent: _Spent = field(default_factory=lambda: _Spent())
    callers: tuple[str, ...] = ()
    decision: Decision | None = None
    recorder: Recorder = field(kw_only=True)
    call: CallId = field(default_factory=lambda: CallId(new_id()))


@dataclass(slots=True)
class _Spent:
    """What a run has used up, nested runs included: each of them alone could keep within its limits for ever."""

    calls: int = 0
    printed: int = 0
    #: Seconds that people took to answer; they don't count.
    waited: float = 0.0
    #: The runs that stand still meanwhile, and how many questions are open.
    runs: list[RunReport] = field(default_factory=list)
    open: int = 0
    since: float = 0.0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


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
    own: list[Effect]

    def effect(self, kind: str, **facts: Any) -> None:
        effect = Effect(kind, self.tool, facts)
        self.effects.append(effect)
        self.own.append(effect)


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
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        run_seconds = 600.0
        if isinstance(surroundings.governance, Governance):
            run_seconds = surroundings.governance.limits.run_seconds
        recorder = Recorder(surroundings.ledger, invocation)
        chain = _Chain(invocation, started + run_seconds, log=log, watch=watch, recorder=recorder)
        target: _Target | None = None
        output, error = None, None
        async with self._turns:
            try:
                target = self._found(invocation.tool, invocation.version, unsaved)
                output = await self._pass(target, invocation.arguments, chain, surroundings)
            except Failure as failure:
                error = failure
                if target is None:
                    recorder.denied(chain.call, invocation.tool, invocation.arguments, failure)
        return ToolResult(
            tool=str(invocation.tool),
            output=output,
            error=error,
            version=target.definition.version if target is not None else "",
            request_id=invocation.request_id,
            effects=tuple(chain.effects),
            log="".join(chain.printed),
            seconds=self._clock() - started,
            own_seconds=chain.report.own_seconds,
            calls=chain.spent.calls,
            timestamp_utc=timestamp,
            policy=chain.decision.as_dict() if chain.decision is not None else None,
        )

    def violations(self, name: str, arguments: Any, version: str | None = None) -> list[dict[str, str]]:
        """Everything that is wrong with `arguments` for the tool `name`.

        Raises:
            Failure: `unknown_tool`, `damaged`.
        """
        return _violations(self.look_up(name, version).definition, arguments)

    async def _pass(self, target: _Target, given: Any, chain: _Chain, surroundings: Surroundings) -> Any:
        """Stages 2 to 5, for a call from outside and one from a program alike."""
        recorder, call = chain.recorder, chain.call
        try:
            arguments, governance = await self._permitted(target, given, chain, surroundings)
        except Failure as failure:
            recorder.denied(call, target.definition.name, given, failure)
            raise
        except asyncio.CancelledError:
            off = Failure("cancelled", "it was called off before it was decided")
            recorder.denied(call, target.definition.name, given, off)
            raise
        began = self._clock()
        own: list[Effect] = []
        try:
            output = await self._done(target, arguments, chain, surroundings, governance, own)
        except (Failure, asyncio.CancelledError) as error:
            came = error if isinstance(error, Failure) else Failure("cancelled", "it was called off")
            recorder.ended(call, came, own, self._clock() - began)
            raise
        recorder.ended(call, output, own, self._clock() - began)
        return output

    async def _permitted(
        self, target: _Target, given: Any, chain: _Chain, surroundings: Surroundings
    ) -> tuple[dict[str, Any], Governance]:
        """Stages 2 and 3, and the decision's record.

        Raises:
            Failure: the arguments are invalid, the call is denied, or anything on the way to knowing that went wrong.
        """
        definition = target.definition
        try:
            arguments = _validated(definition, given)
            surroundings.modes.look()
            mode = surroundings.modes.mode
            governance, decision = self._authorise(target, arguments, chain, surroundings, mode)
            if decision is None:
                return arguments, governance
            if not chain.depth:
                chain.decision = decision
            # A saved tool does nothing by itself; its calls are recorded one by one.
            changes = target.primitive is not None and not set(definition.effects) <= {"read"}
            await chain.recorder.decided(chain.call, definition, arguments, decision, mode, durable=changes)
            if decision.verdict == "ask":
                # A copy: what is done is what was decided and recorded, whatever becomes of the question.
                shown = export(arguments, MAX_ANSWER)
                await self._ask(Question(definition, shown, decision, chain.callers), arguments, chain, surroundings)
            return arguments, governance
        except Failure:
            raise
        except Exception as fault:
            raise _unjudged(fault) from fault

    async def _done(
        self,
        target: _Target,
        arguments: dict[str, Any],
        chain: _Chain,
        surroundings: Surroundings,
        governance: Governance,
        own: list[Effect],
    ) -> Any:
        """Stage 4; `own` takes the effects of a primitive."""
        stub = surroundings.stubs.get(target.definition.name)
        try:
            if stub is not None and chain.depth:
                # As much of an answer as the example is about, so it isn't held against the promise.
                return stub(arguments)
            if target.primitive is not None:
                output = await self._run_primitive(target.primitive, arguments, chain, surroundings, governance, own)
            else:
                assert target.version is not None
                output = await self._run_composite(target.version, arguments, chain, surroundings, governance)
            return _promised(target.definition, output)
        except Failure:
            raise
        except Exception as fault:
            name = target.definition.name
            raise Failure(
                "internal_error",
                f"{name} failed by a fault of its own: {_told(fault)}",
                hint="the fault is in the tool, not in the call; tell whoever made the tool",
                tool=name,
            ) from fault

    # 1. Look up

    def _found(self, name: str, version: str | None, unsaved: ToolVersion | None = None) -> _Target:
        """As `look_up`, with a fault of the store's as a denial."""
        try:
            return self.look_up(name, version, unsaved)
        except Failure:
            raise
        except Exception as fault:
            raise _unjudged(fault) from fault

    def look_up(self, name: str, version: str | None, unsaved: ToolVersion | None = None) -> _Target:
        """The primitive or the saved version that a call means.

        Raises:
            Failure: `unknown_tool` with the nearest name, `damaged`, `io_error`, `invalid_arguments` for what is no name.
        """
        if unsaved is not None:
            return _Target(unsaved.definition, version=unsaved)
        for what, value in (("name", name), ("version", version or "")):
            if not isinstance(value, str):
                raise Failure(
                    "invalid_arguments",
                    f"the {what} of a tool is a string, not {type(value).__name__}",
                    hint="`list` gives names and versions",
                )
        primitive = self._registry.primitive(name)
        if primitive is not None and version in (None, primitive.definition.version):
            return _Target(primitive.definition, primitive=primitive)
        try:
            found = self._store.load(name, version)
        except Failure as failure:
            if failure.code != "unknown_tool":
                raise
            if primitive is not None:
                raise Failure(
                    "unknown_tool",
                    f"{name} is a primitive and has no version {_brief(str(version))}",
                    hint="leave the version out: a primitive has the one that the application brings",
                    tool=name,
                ) from None
            if version is None and not failure.details.get("removed"):
                raise Failure(
                    "unknown_tool",
                    f"no tool named {_brief(name)}{did_you_mean(name, self._registry.names())}",
                    hint="`list` and `search` say what there is",
                    tool=name,
                ) from None
            raise
        return _Target(found.definition, version=found)

    # 3. Authorise

    def _authorise(
        self, target: _Target, arguments: dict[str, Any], chain: _Chain, surroundings: Surroundings, mode: Mode
    ) -> tuple[Governance, Decision | None]:
        name = target.definition.name
        # A copy: the one that is kept would gather a traceback with each call.
        if isinstance(surroundings.workspace, Failure):
            raise replace(surroundings.workspace)
        governance = surroundings.governance
        if isinstance(governance, Failure):
            raise replace(governance)
        if target.version is not None and chain.depth >= MAX_TOOL_DEPTH:
            raise Failure(
                "depth_limit",
                f"saved tools call each other more than {MAX_TOOL_DEPTH} deep",
                hint="call the tools further down directly",
                tool=name,
            )
        decision: Decision | None = None
        if surroundings.scratch:
            _demand_harmless(target, chain, surroundings, governance)
        else:
            assert surroundings.authority is not None
            decision = self._judged(target, arguments, surroundings, mode)
            if decision.verdict == "deny":
                chain.decision = chain.decision or decision
                raise decision.failure(name)
        if target.version is not None and not chain.depth:
            problem = self.outdated(target.version)
            if problem:
                raise Failure(
                    "outdated",
                    f"{name} is outdated: {problem}",
                    hint="define it again from its source, in an application that has all it calls",
                    tool=name,
                )
        return governance, decision

    @staticmethod
    def _judged(target: _Target, arguments: dict[str, Any], surroundings: Surroundings, mode: Mode) -> Decision:
        assert surroundings.authority is not None
        try:
            return gravest(
                surroundings.authority.judge(
                    target.definition, target.primitive, arguments, surroundings.workspace, mode
                )
            )
        except Failure as failure:
            if failure.rule in ("path_traversal", "outside_workspace"):
                surroundings.modes.violation()
            failure.tool = failure.tool or target.definition.name
            raise

    async def _ask(
        self, question: Question, arguments: dict[str, Any], chain: _Chain, surroundings: Surroundings
    ) -> None:
        """Ask a person; the clocks stand still until the answer.

        Raises:
            Failure: `permission_denied`: there is nobody, or the answer is no.
        """
        name = question.tool.name
        if surroundings.ask is None:
            raise nobody(question.decision, name)
        spent = chain.spent
        spent.open += 1
        try:
            if spent.open == 1:
                spent.since = self._clock()
                for run in spent.runs:
                    run.pause()
            async with spent.asking:
                answer = await surroundings.ask(question)
            await chain.recorder.answered(chain.call, question.decision.rule, answer is True)
        finally:
            spent.open -= 1
            if not spent.open:
                spent.waited += self._clock() - spent.since
                for run in spent.runs:
                    run.go_on()
        if answer is not True:
            raise refused(question.decision, name)
        # The rules or the mode may have changed while the person thought.
        target = self._found(name, question.tool.version)
        again = self._judged(target, arguments, surroundings, surroundings.modes.mode)
        if again.verdict == "deny":
            raise again.failure(name)

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
        own: list[Effect],
    ) -> Any:
        name = primitive.name
        left = chain.deadline + chain.spent.waited - self._clock()
        seconds = min(primitive.definition.timeout, governance.limits.call_seconds, left)
        workspace = surroundings.workspace
        if surroundings.authority is not None:
            policy = surroundings.authority.policy
            seconds = min(seconds, policy.timeout(primitive.definition))
            workspace = GuardedWorkspace(
                workspace,
                partial(policy.path, primitive.definition),
                policy.max_file_bytes(primitive.definition),
                name,
            )
        settings = governance.primitives.get(name, {})
        context = _Context(workspace, max(0.0, seconds), settings, name, chain.effects, own)
        if seconds <= 0:
            raise Failure(
                "run_limit", f"no time was left for {name}", hint="split the work over several runs", tool=name
            )
        timer = asyncio.timeout(seconds)
        try:
            async with timer:
                return await call_primitive(primitive, arguments, context)
        except TimeoutError:
            # One that the primitive raises by itself, of a socket perhaps, says nothing about our clock.
            if not timer.expired():
                raise
            raise Failure(
                "timeout",
                f"{name} did not answer within {seconds:.3g} s",
                hint="ask for less at once; whether it did anything is not known",
                tool=name,
                details={"seconds": round(seconds, 3)},
            ) from None
        except Failure as failure:
            failure.tool = failure.tool or name
            if failure.rule == "outside_workspace":
                # Led out by a link, which only the opening finds.
                surroundings.modes.violation()
            raise
        except asyncio.CancelledError as stray:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise RuntimeError("it called itself off") from stray
        except SystemExit as leaving:
            # A function made for a command line; it must not end the service.
            raise RuntimeError(f"it called sys.exit({leaving.code!r})") from leaving

    async def _run_composite(
        self,
        version: ToolVersion,
        arguments: dict[str, Any],
        chain: _Chain,
        surroundings: Surroundings,
        governance: Governance,
    ) -> Any:
        left = chain.deadline + chain.spent.waited - self._clock()
        if left <= 0:
            raise Failure(
                "run_limit",
                f"no time was left for {version.name}",
                hint="split the work over several runs",
                tool=version.name,
            )
        spent, bounds = chain.spent, governance.limits
        seconds = min(left, bounds.run_seconds, version.definition.timeout)
        if surroundings.authority is not None:
            seconds = min(seconds, surroundings.authority.policy.timeout(version.definition))
        limits = bounds._replace(
            run_seconds=seconds,
            own_seconds=min(bounds.own_seconds, version.definition.timeout),
        )
        pins = {callee.name: callee for callee in version.calls}
        deadline = self._clock() + seconds - spent.waited

        async def call(name: str, given: dict[str, Any], key: str) -> Any:
            # It comes from the worker, and the record's ids are made of it.
            if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
                raise Failure("sandbox_violation", "a call's number is none", tool=version.name)
            inner = _Chain(
                chain.invocation,
                deadline,
                chain.depth + 1,
                chain.log,
                chain.printed,
                chain.effects,
                RunReport(),
                chain.watch,
                spent,
                callers=(*chain.callers, version.name),
                recorder=chain.recorder,
                call=CallId(f"{chain.call.id}.{key}", chain.call.id),
            )
            spent.calls += 1
            try:
                pin = pins.get(name)
                if pin is None:
                    raise Failure(
                        "permission_denied",
                        f"{version.name} was not checked to call {_brief(name)}",
                        rule="pins",
                        tool=version.name,
                    )
                if spent.calls > bounds.calls:
                    raise Failure(
                        "call_limit",
                        f"the run has made its {bounds.calls:,} tool calls, those of the tools it calls included",
                        hint="call less often, or split the work over several runs",
                        tool=name,
                    )
                _tell(chain.watch, name)
                target = self._found(name, None if pin.kind == "primitive" else pin.version)
            except Failure as failure:
                chain.recorder.denied(inner.call, name, given, failure)
                raise
            return await self._pass(target, given, inner, surroundings)

        def printed(text: str) -> None:
            spent.printed += len(text.encode())
            if spent.printed > bounds.log_bytes:
                raise Failure(
                    "log_limit",
                    f"the run has printed more than {bounds.log_bytes:,} bytes, with the tools it calls",
                    hint="print less",
                    tool=version.name,
                )
            chain.printed.append(text)
            _tell(chain.log, version.name, text)

        sandbox = await self._sandbox()
        spent.runs.append(chain.report)
        try:
            return await sandbox.run(
                version.program, arguments, call=call, log=printed, limits=limits, report=chain.report
            )
        finally:
            spent.runs.remove(chain.report)


def _tell(listener: Callable[..., None] | None, *what: str) -> None:
    """Tell a listener. One that fails is the application's trouble, not the program's: it goes to the loop's handler."""
    if listener is None:
        return
    try:
        listener(*what)
    except Exception as fault:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "a listener of a run failed", "exception": fault})


def _unjudged(fault: Exception) -> Failure:
    return Failure(
        "governance_unavailable",
        f"the call can't be judged, so it is denied: {_told(fault)}",
        hint="this is a fault of the service or of what it was given, not of the tool",
        rule="fault",
    )


def _told(fault: BaseException) -> str:
    """An exception in a line: no traceback, bounded, whatever its own text does."""
    kind = type(fault).__name__
    try:
        text = str(fault)
    except Exception:
        return kind
    return f"{kind}: {_brief(text, quoted=False)}" if text else kind


def _brief(text: str, most: int = 300, *, quoted: bool = True) -> str:
    short = brief(text, most)
    return repr(short) if quoted else short


def _demand_harmless(target: _Target, chain: _Chain, surroundings: Surroundings, governance: Governance) -> None:
    """In an example only what stays in its scratch workspace is done for real.

    Raises:
        Failure: `permission_denied`.
    """
    name = target.definition.name
    if name in surroundings.stubs and chain.depth:
        return
    if name in governance.denied:
        hint = "the owner's governance.yaml says so"
        raise Failure("permission_denied", f"{name} is denied by the rules", hint=hint, rule="deny", tool=name)
    if target.primitive is not None and not _stays_inside(target.primitive):
        raise Failure(
            "permission_denied",
            f"{name} is not done for real in an example",
            hint=f'give the example its answer: stubs={{"{name}": …}}',
            rule="scratch",
            tool=name,
        )


def _stays_inside(primitive: Primitive) -> bool:
    """Whether a call can do nothing outside the workspace it is given, and needs nobody's permission."""
    if primitive.gated:
        return False
    effects = set(primitive.definition.effects)
    return effects <= {"read"} or (primitive.context is not None and effects <= {"read", "write", "delete"})


def _violations(definition: ToolDefinition, arguments: Any) -> list[dict[str, str]]:
    return _read(definition, arguments)[1]


def _read(definition: ToolDefinition, arguments: Any) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """A copy of the arguments, which nobody else can change any more, and everything that is wrong with them."""
    if not isinstance(arguments, Mapping):
        message = f"expected an object, the arguments by name; got {kind_of(arguments)}"
        return {}, [{"field": "", "rule": "type", "message": message}]
    try:
        copy = export(dict(arguments), MAX_ANSWER)
    except Unexportable as error:
        if error.code != "not_json":
            return {}, [{"field": "", "rule": error.code, "message": error.sentence("the argument")}]
        place = ""
        for part in reversed(error.path):
            place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
        message = f"{place + ': ' if place else ''}{error.problem} can't be an argument: {error.hint}"
        return {}, [{"field": place, "rule": error.code, "message": message}]
    return copy, violations(copy, definition.schema)


def _promised(definition: ToolDefinition, output: Any) -> Any:
    """A copy of the output, if it is what the tool promises.

    Raises:
        Failure: `invalid_result`, with every violation in `details`; what the tool has done stays done.
    """
    try:
        output = export(output, MAX_ANSWER)
    except Unexportable as refused:
        raise Failure(
            "invalid_result", refused.sentence(f"the output of {definition.name}"), tool=definition.name
        ) from None
    found = violations(output, definition.result) if definition.result else []
    if found:
        raise Failure(
            "invalid_result",
            f"{definition.name} gave what it doesn't promise: " + "; ".join(v["message"] for v in found[:10]),
            hint=f"it promises {spell(definition.result)}: return that, or let the annotation after -> say what comes",
            tool=definition.name,
            details={"violations": found},
        )
    return output


def _validated(definition: ToolDefinition, arguments: Any) -> dict[str, Any]:
    """Stage 2: the arguments with defaults filled in.

    Raises:
        Failure: `invalid_arguments`, with every violation in `details`.
    """
    read, found = _read(definition, arguments)
    if found:
        raise Failure(
            "invalid_arguments",
            f"{definition.name}: " + "; ".join(v["message"] for v in found),
            hint=f"the tool is called as {definition.signature()}",
            tool=definition.name,
            details={"violations": found},
        )
    # A default is copied as well: the function that gets it may change it.
    return {p.name: read[p.name] if p.name in read else export(p.default, MAX_ANSWER) for p in definition.parameters}

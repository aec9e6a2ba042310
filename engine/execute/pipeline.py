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
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from albert_tools.engine.execute.arguments import problems_of, promised, validated
from albert_tools.engine.execute.chain import Chain, Log, Surroundings
from albert_tools.engine.execute.faults import shown, tell, told, unjudged
from albert_tools.engine.execute.lookup import Lookup, Target
from albert_tools.engine.execute.performing import run_primitive
from albert_tools.engine.execute.record import CallId, Recorder
from albert_tools.engine.execute.registry import ToolRegistry
from albert_tools.engine.govern.authority import Question, nobody, refused
from albert_tools.engine.govern.policy.decision import Decision, gravest
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.definition import Mode, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_TOOL_DEPTH
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.sandbox.domain import export
from albert_tools.engine.sandbox.pool import MAX_ANSWER, RunReport, Sandbox

#: Runs at once that were asked for from outside; more wait their turn. Calls from within a run never wait.
MAX_RUNS = 32

#: The number of a call within a run: `3`, or `2.0.1` within `gather`.
_KEY = re.compile(r"[0-9]+(\.[0-9]+)*")
_MAX_KEY = 100


class Pipeline:
    """Judges and runs invocations. `sandbox` is asked for the first time a composite runs."""

    def __init__(
        self,
        registry: ToolRegistry,
        store: ToolStore,
        sandbox: Callable[[], Awaitable[Sandbox]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lookup = Lookup(registry, store)
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
        chain = Chain(invocation, started + run_seconds, log=log, watch=watch, recorder=recorder)
        target: Target | None = None
        output, error = None, None
        async with self._turns:
            try:
                target = self.lookup.found(invocation.tool, invocation.version, unsaved)
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
        return problems_of(self.lookup.look_up(name, version).definition, arguments)

    async def _pass(self, target: Target, given: Any, chain: Chain, surroundings: Surroundings) -> Any:
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
        self, target: Target, given: Any, chain: Chain, surroundings: Surroundings
    ) -> tuple[dict[str, Any], Governance]:
        """Stages 2 and 3, and the decision's record.

        Raises:
            Failure: the arguments are invalid, the call is denied, or anything on the way to knowing that went wrong.
        """
        definition = target.definition
        try:
            arguments = validated(definition, given)
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
            raise unjudged(fault) from fault

    async def _done(
        self,
        target: Target,
        arguments: dict[str, Any],
        chain: Chain,
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
                output = await run_primitive(
                    target.primitive, arguments, chain, surroundings, governance, own, self._clock
                )
            else:
                assert target.version is not None
                output = await self._run_composite(target.version, arguments, chain, surroundings, governance)
            return promised(target.definition, output)
        except Failure:
            raise
        except Exception as fault:
            name = target.definition.name
            raise Failure(
                "internal_error",
                f"{name} failed by a fault of its own: {told(fault)}",
                hint="the fault is in the tool, not in the call; tell whoever made the tool",
                tool=name,
            ) from fault

    # 3. Authorise

    def _authorise(
        self, target: Target, arguments: dict[str, Any], chain: Chain, surroundings: Surroundings, mode: Mode
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
            problem = self.lookup.outdated(target.version)
            if problem:
                raise Failure(
                    "outdated",
                    f"{name} is outdated: {problem}",
                    hint="define it again from its source, in an application that has all it calls",
                    tool=name,
                )
        return governance, decision

    @staticmethod
    def _judged(target: Target, arguments: dict[str, Any], surroundings: Surroundings, mode: Mode) -> Decision:
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
        self, question: Question, arguments: dict[str, Any], chain: Chain, surroundings: Surroundings
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
        target = self.lookup.found(name, question.tool.version)
        again = self._judged(target, arguments, surroundings, surroundings.modes.mode)
        if again.verdict == "deny":
            raise again.failure(name)

    # 4. Execute

    async def _run_composite(
        self,
        version: ToolVersion,
        arguments: dict[str, Any],
        chain: Chain,
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
            inner = Chain(
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
                        f"{version.name} was not checked to call {shown(name)}",
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
                tell(chain.watch, name)
                target = self.lookup.found(name, None if pin.kind == "primitive" else pin.version)
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
            tell(chain.log, version.name, text)

        sandbox = await self._sandbox()
        spent.runs.append(chain.report)
        try:
            return await sandbox.run(
                version.program, arguments, call=call, log=printed, limits=limits, report=chain.report
            )
        finally:
            spent.runs.remove(chain.report)


def _demand_harmless(target: Target, chain: Chain, surroundings: Surroundings, governance: Governance) -> None:
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

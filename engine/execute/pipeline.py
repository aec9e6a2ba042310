"""The one way to an effect: every call, of a person, an agent or a program, passes here, top to bottom.

1. **Look up** the tool.
2. **Validate** the arguments, all violations at once.
3. **Authorise**, default-deny, stopping at the first no: the session and the tools of its lease; whether it is a repeat; workspace
   and rules there, depth, the rules for the tool, its category and what it touches in the present mode; whether a saved tool is
   outdated; how often, and what is left of the budget; where the rules say *ask*, a person. As the call begins, session, rate and
   budget are looked at once more. Any fault of ours in 1 to 3 is a denial.
4. **Execute** under timeout: a primitive in the contained workspace, where the rules are asked again about what is really opened, a
   composite in the sandbox, where each of its calls comes back to 1 with what is left of its caller's time and depth.
5. **Record**: one result, with every effect that happened, also when it failed after them. The decision is in the log before the
   call, on the disk before any that may change something; what came of it follows. Beside the log, which redacts, the run's
   journal has each step whole, so that a run that was cut short goes on where it was.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from albert_tools.engine.execute.arguments import problems_of, promised, validated
from albert_tools.engine.execute.chain import Again, Chain, Log, Request, Run, Surroundings
from albert_tools.engine.execute.faults import shown, tell, told, unjudged
from albert_tools.engine.execute.handing import handed
from albert_tools.engine.execute.lookup import Lookup, Target
from albert_tools.engine.execute.performing import run_primitive
from albert_tools.engine.execute.record import CallId, Recorder, new_id, reason_of, unkept
from albert_tools.engine.execute.registry import ToolRegistry
from albert_tools.engine.execute.running import begin_run, end_run, stopped
from albert_tools.engine.execute.spending import consumed, session_seconds, spend
from albert_tools.engine.execute.steps import Entered, Step
from albert_tools.engine.execute.waiting import denied_for_now, waits
from albert_tools.engine.execute.watching import ended, span_of, started
from albert_tools.engine.govern.actions import standing_objects
from albert_tools.engine.govern.approvals import arguments_digest
from albert_tools.engine.govern.authority import Authority, parse, parsed
from albert_tools.engine.govern.policy.decision import WHOLE_CALL, Decision, gravest
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.definition import Json, Mode, ToolVersion
from albert_tools.engine.model.failure import ENDING, Failure
from albert_tools.engine.model.limits import MAX_TOOL_DEPTH, RunLimits
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.model.schema import Violation
from albert_tools.engine.sandbox.pool import Sandbox

if TYPE_CHECKING:
    from albert_tools.engine.govern.approvals import Approval
    from albert_tools.engine.govern.windows import Windows

#: Runs at once that were asked for from outside; more wait their turn. Calls from within a run never wait.
MAX_RUNS = 32

#: How often a person is asked about one call, where something changes each time while they think.
MAX_QUESTIONS = 3

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
        #: The requests under way, by the id of their run.
        self.active: dict[str, Request] = {}

    async def invoke(
        self,
        invocation: ToolInvocation,
        surroundings: Surroundings,
        log: Log | None = None,
        unsaved: ToolVersion | None = None,
        watch: Callable[[str], None] | None = None,
        resumed: Run | None = None,
    ) -> ToolResult:
        """Run one invocation from outside; exactly one result, whatever happens but cancellation.

        `unsaved` is run in place of what the store has: the examples of a source that isn't saved yet. `watch` is told the
        name of each tool that the program calls, as the call begins. `resumed` is a run that this goes on with.
        """
        began = self._clock()
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        run = resumed or Run(new_id())
        recorder = Recorder(surroundings.ledger, invocation)
        request = Request(invocation, surroundings, recorder, run, surroundings.workspace, log, watch)
        chain = Chain(request, began + RunLimits().run_seconds, CallId(run.id))
        chain.span = span_of(chain, None)
        target: Target | None = None
        output, error, again = None, None, None
        async with self._turns:
            run.task = asyncio.current_task()
            self.active[run.id] = request
            try:
                target = self.lookup.found(invocation.tool, invocation.version, unsaved)
                wrong = invocation.violations()
                if wrong:
                    raise Failure(
                        "invalid_arguments",
                        "; ".join(v["message"] for v in wrong),
                        details={"violations": wrong, "of": "invocation"},
                    )
                output = await self._pass(target, invocation.arguments, chain)
            except Again as repeat:
                again = repeat
            except Failure as failure:
                error = failure
                if target is None or error.details.get("of") == "invocation":
                    recorder.denied(chain.call, invocation.tool, invocation.arguments, failure)
                    started(chain, None, invocation.tool, invocation.arguments)
                    ended(chain, failure, 0.0, 0)
            except asyncio.CancelledError:
                if run.stop is None:
                    raise
                # Asked for by name, it is an answer like any other; else the caller is gone and hears none.
                if run.task is not None:
                    run.task.uncancel()
                error = stopped(run)
            finally:
                del self.active[run.id]
                if again is None and _to_be_closed(request, error):
                    await asyncio.shield(self._close(request, target, output, error, began))
        if again is not None:
            return replace(again.result, repeated=True, request_id=invocation.request_id)
        return self._result(request, target, output, error, timestamp, began, chain)

    async def _close(
        self, request: Request, target: Target | None, output: Json, error: Failure | None, began: float
    ) -> None:
        """What is written down at the end of a request, however it ends."""
        went_away = error is None and request.run.task is not None and request.run.task.cancelling() > 0
        if went_away:
            error = stopped(request.run)
        spend(request, wall_seconds=self._clock() - began - request.waited)
        await end_run(request, target, output, error)
        if request.repeat is not None:
            from albert_tools.engine.execute.repeating import ended_once

            ended_once(request, error)

    def _result(
        self,
        request: Request,
        target: Target | None,
        output: Json,
        error: Failure | None,
        timestamp: str,
        began: float,
        chain: Chain,
    ) -> ToolResult:
        invocation = request.invocation
        seconds = self._clock() - began
        return ToolResult(
            tool=str(invocation.tool),
            output=handed(output, request, target.definition.family if target is not None else ""),
            error=error,
            version=target.definition.version if target is not None else "",
            request_id=invocation.request_id,
            effects=tuple(request.effects),
            log="".join(request.printed),
            seconds=seconds,
            own_seconds=chain.report.own_seconds,
            calls=request.calls,
            timestamp_utc=timestamp,
            policy=_verdict(request),
            family=target.definition.family if target is not None else "",
            budget_consumed=consumed(request, seconds),
            trace_id=chain.span.trace_id if chain.span is not None else None,
            span_id=chain.span.span_id if chain.span is not None else None,
            run_id=request.run.id if request.run.steps is not None else None,
        )

    def violations(self, name: str, arguments: Any, version: str | None = None) -> list[Violation]:
        """Everything that is wrong with `arguments` for the tool `name`.

        Raises:
            Failure: `unknown_tool`, `damaged`.
        """
        return problems_of(self.lookup.look_up(name, version).definition, arguments)

    async def _pass(self, target: Target, given: Any, chain: Chain) -> Any:
        """Stages 2 to 5, for a call from outside and one from a program alike."""
        request = chain.request
        recorder, call, definition = request.recorder, chain.call, target.definition
        began = self._clock()
        known: Step | None = None
        own: list[Effect] = []
        try:
            if _is_step(chain, target):
                if request.run.stop is not None:
                    raise stopped(request.run)
                known = _replayed(chain, target, given)
                if known is not None and known.ended:
                    return _recorded(known, chain, definition.name, chain.step if target.version is not None else "")
                if request.run.dry:
                    raise _unrecorded(chain, definition.name, given)
            arguments, governance, authority = await self._permitted(target, given, chain, known, own)
        except (Failure, Again, asyncio.CancelledError) as error:
            if known is not None and known.ended:
                raise
            if isinstance(error, Again):
                recorder.repeated(call, definition.name, error.result, request.origin)
                started(chain, target, definition.name, given)
                ended(chain, error.result.error, self._clock() - began, 0, error.result.output)
                raise
            came = (
                error if isinstance(error, Failure) else Failure("cancelled", "it was called off before it was decided")
            )
            if not chain.depth:
                request.refused = came
            if isinstance(error, Failure) and denied_for_now(error, target, chain):
                error = waits(error, request.run.id)
            if came.code != "suspended":
                # Of what waits for an answer the question is the entry.
                recorder.denied(call, definition.name, given, came, definition.by_hash)
            started(chain, target, definition.name, given)
            ended(chain, came, self._clock() - began, 0, blocked=True)
            if isinstance(error, Failure):
                _journal_end(chain, target, given, error, ())
            raise error
        began, chain.began = self._clock(), time.time()
        started(chain, target, definition.name, arguments)
        try:
            if _answered(chain):
                # It had been done before the run was cut short.
                output = chain.settled.value  # type: ignore[union-attr]
            else:
                output = await self._done(target, arguments, chain, governance, authority, own)
        except (Failure, asyncio.CancelledError) as error:
            came = error if isinstance(error, Failure) else Failure("cancelled", "it was called off")
            recorder.ended(call, came, own, self._clock() - began)
            ended(chain, came, self._clock() - began, len(own))
            if came.code == "sandbox_unavailable" and denied_for_now(came, target, chain):
                raise waits(came, request.run.id) from None
            if isinstance(error, Failure):
                _journal_end(chain, target, given, error, own)
                await self._kept(chain, target)
            raise
        recorder.ended(call, output, own, self._clock() - began)
        ended(chain, None, self._clock() - began, len(own), output)
        _journal_end(chain, target, given, output, own)
        await self._kept(chain, target)
        return output

    @staticmethod
    async def _kept(chain: Chain, target: Target) -> None:
        """What a step has done is on the disk before anything else is done on the strength of it."""
        steps = chain.request.run.steps
        if steps is not None and _changes(target):
            await steps.sync()

    async def _permitted(
        self, target: Target, given: Any, chain: Chain, known: Step | None, own: list[Effect]
    ) -> tuple[dict[str, Any], Governance, Authority | None]:
        """Stages 2 and 3, and the decision's record. `known` is a step that was cut short, whose effects `own` takes.

        Raises:
            Failure: the arguments are invalid, the call is denied, or anything on the way to knowing that went wrong.
            Again: it was made before, under the same key.
        """
        request, definition = chain.request, target.definition
        surroundings, began = request.surroundings, self._clock()
        try:
            arguments = self._valid(target, given, surroundings)
            self._in_session(definition.name, request, first=not chain.depth)
            if not chain.depth and not surroundings.scratch:
                chain.deadline = min(chain.deadline, self._clock() + session_seconds(request))
                request.arguments = arguments
                if request.invocation.dedupe_key or request.run.repeat is not None:
                    from albert_tools.engine.execute.repeating import begin_once

                    await begin_once(request, target, arguments, chain.deadline, self._clock)
            if target.primitive is not None and parsed(target.primitive):
                # Not here: everybody else's calls would wait for it.
                await asyncio.to_thread(parse, target.primitive, arguments)
            for _ in range(MAX_QUESTIONS + 1):
                chain.approved = None
                surroundings.modes.look()
                mode = surroundings.modes.mode
                governance, authority, decision = self._authorise(target, arguments, chain, mode)
                if not chain.depth:
                    # The rules can only make it shorter.
                    chain.deadline = min(chain.deadline, began + governance.limits.run_seconds)
                if decision is None or authority is None or request.run.dry:
                    return arguments, governance, authority
                if known is not None and target.primitive is not None and target.primitive.settle is not None:
                    await _settle(target.primitive, arguments, known, chain, governance, authority, own)
                if known is not None and not _again_is_harmless(target, arguments, chain):
                    decision = gravest([_interrupted(chain, definition.name), decision])
                    chain.asks = (*chain.asks, ("interrupted", chain.call.id))
                chain.decision, chain.mode = decision, mode
                if not chain.depth:
                    request.decision = decision
                if _answered(chain):
                    return arguments, governance, authority
                entered = _entered(target, arguments, chain)
                windows = () if entered is not None else authority.policy.rate_limits(definition)
                if windows:
                    _windows(surroundings).demand(windows, _line(request), definition.name)
                if request.session is not None and surroundings.sessions is not None and entered is None:
                    surroundings.sessions.afford(request.session, definition.name)
                approval = None
                goes_on = entered is not None and not _changes(target) and _allowed(entered, mode, request)
                if decision.verdict == "ask" and not goes_on:
                    from albert_tools.engine.execute.asking import approved

                    rules = governance.revision
                    approval = await approved(target, arguments, decision, mode, rules, chain, self._clock)
                    if approval is None or not _still(surroundings, mode, governance):
                        continue
                if not surroundings.scratch:
                    begin_run(request, target, arguments, chain)
                await self._begin(target, arguments, chain, decision, mode, governance, windows, approval)
                return arguments, governance, authority
            raise Failure(
                "permission_denied",
                f"what {definition.name} would do changed each time a person was asked about it",
                hint="let whatever else works on these files finish, then call again",
                rule="approval",
                tool=definition.name,
            )
        except (Failure, Again):
            raise
        except Exception as fault:
            raise unjudged(fault) from fault

    @staticmethod
    def _valid(target: Target, given: Any, surroundings: Surroundings) -> dict[str, Any]:
        try:
            return validated(target.definition, given)
        except Failure as failure:
            if failure.rule == "path_traversal":
                surroundings.modes.violation()
            raise

    @staticmethod
    def _in_session(tool: str, request: Request, first: bool) -> None:
        """The session is alive, and the tool within its lease.

        Raises:
            Failure: `permission_denied`.
        """
        surroundings, token, resumed = request.surroundings, request.invocation.session, request.run.session
        if first and (token is not None or resumed is not None) and not surroundings.scratch:
            if surroundings.sessions is None or isinstance(surroundings.workspace, Failure):
                surroundings.ruling()
                raise Failure("permission_denied", "there are no sessions here", rule="session.unknown", tool=tool)
            root = str(surroundings.workspace.root)
            if resumed is not None:
                request.session = surroundings.sessions.again(resumed, root, request.run.id)
            else:
                request.session = surroundings.sessions.find(token or "", root)
            if request.session.cwd:
                request.workspace = surroundings.workspace.at(request.session.cwd)
        if request.session is not None and surroundings.sessions is not None:
            surroundings.sessions.demand(request.session, tool)

    async def _begin(
        self,
        target: Target,
        arguments: dict[str, Any],
        chain: Chain,
        decision: Decision,
        mode: Mode,
        governance: Governance,
        windows: tuple[tuple[str, int], ...],
        approval: Approval | None,
    ) -> None:
        """The call is charged, its approval used up and its decision recorded, in one step.

        Where the call may change something, that is on the disk before this returns.

        Raises:
            Failure: `rate_limited`, `budget_exceeded`, `permission_denied`: others were quicker; `governance_unavailable`.
        """
        request = chain.request
        surroundings, recorder, definition = request.surroundings, request.recorder, target.definition
        session, run = request.session.id if request.session is not None else None, request.run
        ledger = surroundings.ledger
        entered = _entered(target, arguments, chain)
        allowed_by = approval.id if approval is not None else None
        counted = ledger is not None and (windows or session or (approval is not None and approval.id))
        with ledger.exclusively() if ledger is not None and counted else nullcontext():
            if counted and ledger is not None:
                if windows:
                    _windows(surroundings).demand(windows, _line(request), definition.name)
                if request.session is not None and surroundings.sessions is not None:
                    # A person may have taken days to answer: waiting stops the call's clock, not the lease's.
                    surroundings.sessions.demand(request.session, definition.name)
                    if entered is None:
                        surroundings.sessions.afford(request.session, definition.name)
                if approval is not None and surroundings.approvals is not None and approval.id:
                    surroundings.approvals.use(approval, chain.call.id)
                if entered is None and (windows or session):
                    use: dict[str, Json] = {"session": session, "used": {"calls": 1}}
                    if windows:
                        use |= _windows(surroundings).use(windows, _line(request))
                    try:
                        ledger.append("use", use)
                    except Failure as failure:
                        raise unkept(failure) from None
            mark = recorder.decided(
                chain.call,
                definition,
                arguments,
                decision,
                mode,
                rules=governance.revision,
                session=session,
                run=run.id if run.steps is not None and not chain.depth else None,
                approval=allowed_by or (entered.approval if entered is not None else None),
                reason=reason_of(request.invocation) if not chain.depth else None,
            )
            if run.steps is not None and (entered is None or allowed_by) and (target.version or not chain.depth):
                run.steps.enter(chain.step, definition, arguments, mode, allowed_by)
        request.begun = request.begun or not chain.depth
        # A saved tool does nothing by itself; its calls are recorded one by one.
        if not _changes(target):
            return
        if run.steps is None:
            await recorder.durable(mark)
        else:
            given, before = chain.given if chain.depth else arguments, await self._before(target, arguments, chain)
            run.steps.begun(_step(chain), definition, given, before)
            await asyncio.gather(recorder.durable(mark), run.steps.sync())
        if approval is not None and not _still(surroundings, mode, governance):
            raise Failure(
                "permission_denied",
                f"the rules or the mode have changed since a person was asked about {definition.name}",
                hint="call again; it is judged anew",
                rule="approval",
                tool=definition.name,
            )

    @staticmethod
    async def _before(target: Target, arguments: dict[str, Any], chain: Chain) -> str | None:
        """What stands where the call would change something, for whoever finds out later whether it has."""
        primitive = target.primitive
        if primitive is None or primitive.settle is None or not primitive.paths:
            return None
        authority = chain.request.surroundings.ruling()[1]
        workspace = chain.request.workspace
        if authority is not None:
            workspace = authority.reaching(workspace)
        return await asyncio.to_thread(standing_objects, primitive, arguments, workspace)

    async def _done(
        self,
        target: Target,
        arguments: dict[str, Any],
        chain: Chain,
        governance: Governance,
        authority: Authority | None,
        own: list[Effect],
    ) -> Any:
        """Stage 4; `own` takes the effects of a primitive."""
        stub = chain.request.surroundings.stubs.get(target.definition.name)
        try:
            if stub is not None and chain.depth:
                # As much of an answer as the example is about, so it isn't held against the promise.
                return stub(arguments)
            if target.primitive is not None:
                output = await run_primitive(
                    target.primitive, arguments, chain, governance, authority, own, self._clock
                )
            else:
                assert target.version is not None
                output = await self._run_composite(target.version, arguments, chain, governance, authority)
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
        self, target: Target, arguments: dict[str, Any], chain: Chain, mode: Mode
    ) -> tuple[Governance, Authority | None, Decision | None]:
        name, request = target.definition.name, chain.request
        governance, authority = request.surroundings.ruling()
        if target.version is not None and chain.depth >= MAX_TOOL_DEPTH:
            raise Failure(
                "depth_limit",
                f"saved tools call each other more than {MAX_TOOL_DEPTH} deep",
                hint="call the tools further down directly",
                tool=name,
            )
        decision: Decision | None = None
        if authority is None:
            _demand_harmless(target, chain, governance)
        else:
            decision = self._judged(target, arguments, chain, authority, mode)
            if decision.verdict == "deny":
                chain.decision, chain.mode = decision, mode
                if not chain.depth:
                    request.decision = decision
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
        return governance, authority, decision

    @staticmethod
    def _judged(target: Target, arguments: dict[str, Any], chain: Chain, authority: Authority, mode: Mode) -> Decision:
        request = chain.request
        try:
            found = authority.judge(target.definition, target.primitive, arguments, request.workspace, mode)
            decision = gravest(found)
            chain.asks = ()
            if decision.verdict == "ask":
                about = {d: arguments_digest(arguments) if d.subject == WHOLE_CALL else d.subject for d in found}
                chain.asks = tuple(sorted({(d.rule, about[d]) for d in found if d.verdict == "ask"}))
            elif decision.verdict == "deny" and decision.rule == "outside_workspace":
                request.surroundings.modes.violation()
            return decision
        except Failure as failure:
            if failure.rule in ("path_traversal", "outside_workspace"):
                request.surroundings.modes.violation()
            failure.tool = failure.tool or target.definition.name
            raise

    # 4. Execute

    async def _run_composite(
        self,
        version: ToolVersion,
        arguments: dict[str, Any],
        chain: Chain,
        governance: Governance,
        authority: Authority | None,
    ) -> Any:
        request = chain.request
        left = chain.deadline + request.waited - self._clock()
        if left <= 0:
            raise Failure(
                "run_limit",
                f"no time was left for {version.name}",
                hint="split the work over several runs",
                tool=version.name,
            )
        bounds = governance.limits
        seconds = min(left, bounds.run_seconds, version.definition.timeout)
        if authority is not None:
            seconds = min(seconds, authority.policy.timeout(version.definition))
        limits = bounds._replace(
            run_seconds=seconds,
            own_seconds=min(bounds.own_seconds, version.definition.timeout),
        )
        pins = {callee.name: callee for callee in version.calls}
        deadline = self._clock() + seconds - request.waited

        async def call(name: str, given: dict[str, Any], key: str) -> Any:
            # It comes from the worker, and the record's ids are made of it.
            if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
                raise Failure("sandbox_violation", "a call's number is none", tool=version.name)
            step = f"{chain.step}/{key}" if chain.step else key
            inner = Chain(
                request,
                deadline,
                CallId(f"{request.run.id}:{step}", chain.call.id),
                step,
                chain.depth + 1,
                (*chain.callers, version.name),
                (*chain.trail, version.version),
                given=given,
            )
            inner.span = span_of(inner, chain.span)
            request.calls += 1
            try:
                pin = pins.get(name)
                if pin is None:
                    raise Failure(
                        "permission_denied",
                        f"{version.name} was not checked to call {shown(name)}",
                        rule="pins",
                        tool=version.name,
                    )
                if request.calls > bounds.calls:
                    raise Failure(
                        "call_limit",
                        f"the run has made its {bounds.calls:,} tool calls, those of the tools it calls included",
                        hint="call less often, or split the work over several runs",
                        tool=name,
                    )
                tell(request.watch, name)
                target = self.lookup.found(name, None if pin.kind == "primitive" else pin.version)
            except Failure as failure:
                request.recorder.denied(inner.call, name, given, failure)
                started(inner, None, name, given)
                ended(inner, failure, 0.0, 0, blocked=True)
                raise
            try:
                return await self._pass(target, given, inner)
            finally:
                chain.printed += inner.printed

        def printed(text: str) -> None:
            request.printed_bytes += len(text.encode())
            if request.printed_bytes > bounds.log_bytes:
                raise Failure(
                    "log_limit",
                    f"the run has printed more than {bounds.log_bytes:,} bytes, with the tools it calls",
                    hint="print less",
                    tool=version.name,
                )
            request.printed.append(text)
            chain.printed.append(text)
            tell(request.log, version.name, text)

        sandbox = await self._sandbox()
        request.runs.append(chain.report)
        try:
            return await sandbox.run(
                version.program, arguments, call=call, log=printed, limits=limits, report=chain.report
            )
        finally:
            request.runs.remove(chain.report)


def _to_be_closed(request: Request, error: Failure | None) -> bool:
    """Whether anything is to be written down at a request's end; most calls by hand have no more than their entries."""
    if request.surroundings.scratch:
        return False
    kept = request.run.steps is not None or request.session is not None or request.repeat is not None
    return kept or (error is not None and error.code == "suspended")


def _verdict(request: Request) -> dict[str, Json] | None:
    """What was decided on the request itself: by a rule for the tool, or before or after those by whatever refused it."""
    decision, refused = request.decision, request.refused
    if refused is not None and refused.denied and (decision is None or decision.rule != refused.rule):
        return {
            "verdict": "deny",
            "allowed": False,
            "rule_id": refused.rule,
            "rationale_code": refused.rationale,
            "message": refused.message,
        }
    return decision.as_dict() if decision is not None else None


def _is_step(chain: Chain, target: Target) -> bool:
    """Whether it is a step of the run: a program's call, or the one call of a run that is no program's."""
    return chain.depth > 0 or target.primitive is not None


def _step(chain: Chain) -> str:
    return chain.step or "0"


def _replayed(chain: Chain, target: Target, given: Any) -> Step | None:
    """What the run's journal has of this step.

    Raises:
        Failure: `diverged`.
    """
    steps = chain.request.run.steps
    if steps is None:
        return None
    # What was asked for from outside is what the header says, so it can't be anything else.
    asked = given if chain.depth else None
    return steps.find(_step(chain), target.definition.name, target.definition.version, asked)


def _unrecorded(chain: Chain, name: str, given: Any) -> Failure:
    return Failure(
        "diverged",
        f"the journal ends here: step {_step(chain)}, {name}, was never made",
        hint="up to here the program does what was recorded",
        tool=name,
        details={"step": _step(chain), "program": {"tool": name, "arguments": given}},
    )


def _recorded(known: Step, chain: Chain, tool: str, below: str) -> Json:
    """A step that has ended ends as it did; its effects and prints are the run's, and it isn't charged again."""
    request = chain.request
    if known.log:
        request.printed_bytes += len(known.log.encode())
        request.printed.append(known.log)
        chain.printed.append(known.log)
        tell(request.log, tool, known.log)
    request.effects.extend(known.effects)
    if below and request.run.steps is not None:
        for step in request.run.steps.below(below):
            request.effects.extend(step.effects)
            request.calls += 1
    if known.failure is not None:
        raise replace(known.failure)
    return known.value


def _journal_end(chain: Chain, target: Target, given: Any, came: Failure | Json, own: Sequence[Effect]) -> None:
    steps = chain.request.run.steps
    if steps is None or not _is_step(chain, target) or (isinstance(came, Failure) and came.code in ENDING):
        return
    # What the run's own program prints it prints again as it is gone through.
    steps.ended(_step(chain), target.definition, given, came, own, chain.began, "".join(chain.printed))


def _changes(target: Target) -> bool:
    return target.primitive is not None and not set(target.definition.effects) <= {"read"}


async def _settle(
    primitive: Primitive,
    arguments: dict[str, Any],
    known: Step,
    chain: Chain,
    governance: Governance,
    authority: Authority,
    own: list[Effect],
) -> None:
    from albert_tools.engine.execute.settling import settle

    if chain.settled is None:
        chain.settled = await settle(primitive, arguments, known, chain, governance, authority, own)
        known.unknown = known.unknown and chain.settled.outcome != "not applied" and not _answered(chain)


def _answered(chain: Chain) -> bool:
    """Whether a step that was cut short is known to have been done, and with which result."""
    return chain.settled is not None and chain.settled.value is not ...


def _again_is_harmless(target: Target, arguments: Mapping[str, Json], chain: Chain) -> bool:
    if chain.settled is not None:
        return chain.settled.outcome == "not applied" or _answered(chain)
    return target.primitive is None or target.primitive.repeatable(arguments)


def _interrupted(chain: Chain, name: str) -> Decision:
    if chain.settled is not None and chain.settled.outcome == "applied":
        what = "was cut short after it was done, and what it answered is not known; doing it again is doing it twice"
    else:
        what = "was cut short, and whether it was done is not known; doing it may be doing it twice"
    hint = "see what is there before saying yes"
    return Decision("ask", "interrupted", "interrupted", f"{name} (step {_step(chain)}) {what}", hint)


def _still(surroundings: Surroundings, mode: Mode, governance: Governance) -> bool:
    """Whether a call would be judged now by what it was judged by."""
    surroundings.modes.look()
    return surroundings.modes.mode == mode and surroundings.ruling()[0].revision == governance.revision


def _windows(surroundings: Surroundings) -> Windows:
    if surroundings.windows is None:
        raise Failure(
            "governance_unavailable", "the rules limit how often this is called, and calls can't be counted here"
        )
    return surroundings.windows


def _entered(target: Target, arguments: Json, chain: Chain) -> Entered | None:
    steps = chain.request.run.steps
    return None if steps is None else steps.entered(chain.step, target.definition, arguments)


def _allowed(entered: Entered, mode: Mode, request: Request) -> bool:
    """Whether a person has allowed what was begun: the journal says so, and the record of the answer does."""
    desk = request.surroundings.approvals
    if not entered.approval or entered.mode != mode or desk is None:
        return False
    try:
        known = desk.get(entered.approval)
    except Failure:
        return False
    return known.id == entered.approval and known.tool == entered.tool and known.state in ("used", "standing")


def _line(request: Request) -> list[str]:
    """The session and those it is within, whose windows a call is counted in."""
    sessions = request.surroundings.sessions
    return [] if request.session is None or sessions is None else sessions.line(request.session)


def _demand_harmless(target: Target, chain: Chain, governance: Governance) -> None:
    """In an example only what stays in its scratch workspace is done for real.

    Raises:
        Failure: `permission_denied`.
    """
    name = target.definition.name
    if name in chain.request.surroundings.stubs and chain.depth:
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

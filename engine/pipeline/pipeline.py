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
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from albert_tools.engine.call.arguments import problems_of, promised
from albert_tools.engine.call.budget import consumed, spend
from albert_tools.engine.call.context import Again, Chain, Judged, Log, Request, Run, Surroundings
from albert_tools.engine.call.errors import shown, tell, told
from albert_tools.engine.call.ledger import CallId, Recorder, new_id
from albert_tools.engine.call.lookup import Lookup, Target
from albert_tools.engine.call.registry import ToolRegistry
from albert_tools.engine.model.definition import Json, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.model.schema import Violation
from albert_tools.engine.pipeline.authorize import Authoriser
from albert_tools.engine.pipeline.invoke_primitive import run_primitive
from albert_tools.engine.pipeline.large_output import handed
from albert_tools.engine.pipeline.observers import ended, span_of, started
from albert_tools.engine.pipeline.suspension import denied_for_now, waits
from albert_tools.engine.runs.journal import Step
from albert_tools.engine.runs.lifecycle import end_run, stopped
from albert_tools.engine.runs.replay import is_step, journal_end, recorded, replayed, unrecorded
from albert_tools.engine.sandbox.worker.pool import Sandbox

if TYPE_CHECKING:
    pass

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
        self._authoriser = Authoriser(self.lookup, clock)
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
            from albert_tools.engine.pipeline.repeat import ended_once

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
            if is_step(chain, target):
                if request.run.stop is not None:
                    raise stopped(request.run)
                known = replayed(chain, target, given)
                if known is not None and known.ended:
                    return recorded(known, chain, definition.name, chain.step if target.version is not None else "")
                if request.run.dry:
                    raise unrecorded(chain, definition.name, given)
            judged = await self._authoriser.permit(target, given, chain, known, own)
        except (Failure, Again, asyncio.CancelledError) as error:
            if known is not None and known.ended:
                raise
            error = _not_made(target, given, chain, error, self._clock() - began)
            raise error
        began, chain.began = self._clock(), time.time()
        started(chain, target, definition.name, judged.arguments)
        try:
            if chain.answered:
                # It had been done before the run was cut short.
                output = chain.settled.value  # type: ignore[union-attr]
            else:
                output = await self._done(target, judged, chain, own)
        except (Failure, asyncio.CancelledError) as error:
            came = error if isinstance(error, Failure) else Failure("cancelled", "it was called off")
            recorder.ended(call, came, own, self._clock() - began)
            ended(chain, came, self._clock() - began, len(own))
            if came.code == "sandbox_unavailable" and denied_for_now(came, target, chain):
                raise waits(came, request.run.id) from None
            if isinstance(error, Failure):
                journal_end(chain, target, given, error, own)
                await self._kept(chain, target)
            raise
        recorder.ended(call, output, own, self._clock() - began)
        ended(chain, None, self._clock() - began, len(own), output)
        journal_end(chain, target, given, output, own)
        await self._kept(chain, target)
        return output

    @staticmethod
    async def _kept(chain: Chain, target: Target) -> None:
        """What a step has done is on the disk before anything else is done on the strength of it."""
        steps = chain.request.run.steps
        if steps is not None and target.changes:
            await steps.sync()

    async def _done(self, target: Target, judged: Judged, chain: Chain, own: list[Effect]) -> Any:
        """Stage 4; `own` takes the effects of a primitive."""
        stub = chain.request.surroundings.stubs.get(target.definition.name)
        try:
            if stub is not None and chain.depth:
                # As much of an answer as the example is about, so it isn't held against the promise.
                return stub(judged.arguments)
            if target.primitive is not None:
                output = await run_primitive(target.primitive, judged, chain, own, self._clock)
            else:
                assert target.version is not None
                output = await self._run_composite(target.version, judged, chain)
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

    # 4. Execute

    async def _run_composite(self, version: ToolVersion, judged: Judged, chain: Chain) -> Any:
        request, authority, bounds = chain.request, judged.authority, judged.governance.limits
        left = chain.deadline + request.waited - self._clock()
        if left <= 0:
            raise Failure(
                "run_limit",
                f"no time was left for {version.name}",
                hint="split the work over several runs",
                tool=version.name,
            )
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
                version.program, judged.arguments, call=call, log=printed, limits=limits, report=chain.report
            )
        finally:
            request.runs.remove(chain.report)


def _not_made(
    target: Target, given: Any, chain: Chain, error: Failure | Again | asyncio.CancelledError, seconds: float
) -> Failure | Again | asyncio.CancelledError:
    """What is written down of a call that isn't made, a repeat or one that is refused; and what its caller is told."""
    request, definition = chain.request, target.definition
    started(chain, target, definition.name, given)
    if isinstance(error, Again):
        request.recorder.repeated(chain.call, definition.name, error.result, request.origin)
        ended(chain, error.result.error, seconds, 0, error.result.output)
        return error
    came = error if isinstance(error, Failure) else Failure("cancelled", "it was called off before it was decided")
    if not chain.depth:
        request.refused = came
    if isinstance(error, Failure) and denied_for_now(error, target, chain):
        error = waits(error, request.run.id)
    if came.code != "suspended":
        # Of what waits for an answer the question is the entry.
        request.recorder.denied(chain.call, definition.name, given, came, definition.by_hash)
    ended(chain, came, seconds, 0, blocked=True)
    if isinstance(error, Failure):
        journal_end(chain, target, given, error, ())
    return error


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

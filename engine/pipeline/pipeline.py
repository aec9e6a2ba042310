"""The pipeline. Every call of a person, an agent or a program passes through the pipeline. Nothing else can cause an effect.

1. **Look up** the tool.
2. **Validate** the arguments and report all violations at once.
3. **Authorize** the call. Every call is denied unless all checks pass, and the first failed check ends the call. The checks are, in
   this order: the session and its lease; the dedupe key; the workspace and the rules; the nesting depth; the rules for the tool,
   its category and its objects in the current mode; whether a composite is outdated; rate limits and budget; a person's approval if
   the rules *ask*. When the call begins, session, rate limits and budget are checked again. A fault of the service in stages 1 to 3
   is a denial.
4. **Execute** the call with a time limit. A primitive runs in the guarded workspace, which checks the rules again for each opened
   file. A composite runs in the sandbox. Each call of the composite passes through stages 1 to 5, limited by the remaining time and
   depth of its caller.
5. **Record** one result. It contains every effect, even if the call failed after an effect. The ledger contains the decision before
   the call begins. If the call may change something, the decision is on the disk before the call begins. The ledger redacts values.
   The journal of the run contains each step unredacted, so that an interrupted run can be resumed.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from albert_tools.engine.call.arguments import argument_violations, checked_output
from albert_tools.engine.call.budget import consumed, spend
from albert_tools.engine.call.context import Authorized, Call, Log, Repeated, Request, Run, ServiceContext
from albert_tools.engine.call.errors import describe_fault, notify, shown
from albert_tools.engine.call.journal import Step
from albert_tools.engine.call.ledger import Recorder, new_id
from albert_tools.engine.call.lookup import Lookup, Target
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.model.definition import Json, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.model.schema import Violation
from albert_tools.engine.pipeline.authorize import Authorizer
from albert_tools.engine.pipeline.invoke_primitive import run_primitive
from albert_tools.engine.pipeline.large_output import output_or_handle
from albert_tools.engine.pipeline.observers import ended, span_of, started
from albert_tools.engine.pipeline.suspension import denied_for_now, suspended_by
from albert_tools.engine.runs.lifecycle import cancellation, end_run
from albert_tools.engine.runs.replay import end_step, find_step, is_step, not_in_journal, replay_step
from albert_tools.engine.sandbox.worker.pool import Sandbox

#: The most requests from outside that run at the same time. Further requests wait. Calls by a program never wait.
MAX_RUNS = 32

#: The number of a call within a program: `3`, or `2.0.1` inside `parallel`.
_KEY = re.compile(r"[0-9]+(\.[0-9]+)*")
_MAX_KEY = 100


class Pipeline:
    """Authorizes and executes invocations.

    Args:
        registry: The primitives and saved tools.
        store: The saved tools.
        sandbox: Starts the sandbox. It is awaited when a composite runs.
        clock: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        store: ToolStore,
        sandbox: Callable[[], Awaitable[Sandbox]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lookup = Lookup(registry, store)
        self._authorizer = Authorizer(self.lookup, clock)
        self._sandbox = sandbox
        self._clock = clock
        self._slots = asyncio.Semaphore(MAX_RUNS)
        #: The active requests, by the id of their run.
        self.active: dict[str, Request] = {}

    async def invoke(
        self,
        invocation: ToolInvocation,
        context: ServiceContext,
        log: Log | None = None,
        unsaved: ToolVersion | None = None,
        watch: Callable[[str], None] | None = None,
        resumed: Run | None = None,
    ) -> ToolResult:
        """Run one invocation from outside.

        Args:
            invocation: The request.
            context: The service in which the request runs.
            log: Called with the tool and the text for each print of the program.
            unsaved: A version to run instead of the stored one. Only the examples of a source use it.
            watch: Called with the name of each tool that the program calls, when the call begins.
            resumed: The earlier run that this request resumes.

        Returns:
            The result. If the call failed in any way, its `error` contains the failure.

        Raises:
            asyncio.CancelledError: The caller was cancelled.
        """
        began = self._clock()
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        run = resumed or Run(new_id())
        recorder = Recorder(context.ledger, invocation)
        request = Request(invocation, context, recorder, run, context.workspace, log, watch)
        call = Call(request, began + RunLimits().run_seconds, run.id)
        call.span = span_of(call, None)
        target: Target | None = None
        output, error, repeated = None, None, None
        async with self._slots:
            run.task = asyncio.current_task()
            self.active[run.id] = request
            try:
                target = self.lookup.found(invocation.tool, invocation.version, unsaved)
                violations = invocation.violations()
                if violations:
                    raise Failure(
                        "invalid_arguments",
                        "; ".join(v["message"] for v in violations),
                        details={"violations": violations, "of": "invocation"},
                    )
                output = await self._invoke(target, invocation.arguments, call)
            except Repeated as earlier:
                repeated = earlier.result
            except Failure as failure:
                error = failure
                if target is None or error.details.get("of") == "invocation":
                    recorder.denied(call, invocation.tool, invocation.arguments, failure)
                    started(call, None, invocation.tool, invocation.arguments)
                    ended(call, failure, 0.0, 0)
            except asyncio.CancelledError:
                if run.stop is None:
                    raise
                # The run was cancelled by its id, so its caller still gets a result. In the other case the caller itself was
                # cancelled.
                if run.task is not None:
                    run.task.uncancel()
                error = cancellation(run)
            finally:
                del self.active[run.id]
                if repeated is None and _needs_close(request, error):
                    await asyncio.shield(self._close(request, target, output, error, began))
        if repeated is not None:
            return replace(repeated, repeated=True, request_id=invocation.request_id)
        return self._result(request, target, output, error, timestamp, began, call)

    async def _close(
        self, request: Request, target: Target | None, output: Json, error: Failure | None, began: float
    ) -> None:
        """Charge the time, and record the end of the run and of the call with the dedupe key."""
        caller_is_gone = error is None and request.run.task is not None and request.run.task.cancelling() > 0
        if caller_is_gone:
            error = cancellation(request.run)
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
        call: Call,
    ) -> ToolResult:
        invocation = request.invocation
        seconds = self._clock() - began
        family = target.definition.family if target is not None else ""
        return ToolResult(
            tool=str(invocation.tool),
            output=output_or_handle(output, request, family),
            error=error,
            version=target.definition.version if target is not None else "",
            request_id=invocation.request_id,
            effects=tuple(request.effects),
            log="".join(request.printed),
            seconds=seconds,
            own_seconds=call.report.own_seconds,
            calls=request.calls,
            timestamp_utc=timestamp,
            policy=_decision_of(request),
            family=family,
            budget_consumed=consumed(request, seconds),
            trace_id=call.span.trace_id if call.span is not None else None,
            span_id=call.span.span_id if call.span is not None else None,
            run_id=request.run.id if request.run.journal is not None else None,
        )

    def violations(self, name: str, arguments: Any, version: str | None = None) -> list[Violation]:
        """All violations in `arguments` for the tool `name`.

        Raises:
            Failure: `unknown_tool`, `damaged`.
        """
        return argument_violations(self.lookup.look_up(name, version).definition, arguments)

    async def _invoke(self, target: Target, given: Any, call: Call) -> Any:
        """Stages 2 to 5, for a call from outside and for a call by a program.

        Raises:
            Failure: The call was refused, or it failed.
            Repeated: The call was already made with the same dedupe key.
        """
        request = call.request
        recorder, definition = request.recorder, target.definition
        began = self._clock()
        step: Step | None = None
        effects: list[Effect] = []
        try:
            if is_step(call, target):
                if request.run.stop is not None:
                    raise cancellation(request.run)
                step = find_step(call, target, given)
                if step is not None and step.ended:
                    return replay_step(step, call, target)
                if request.run.dry:
                    raise not_in_journal(call, definition.name, given)
            authorized = await self._authorizer.permit(target, given, call, step, effects)
        except (Failure, Repeated, asyncio.CancelledError) as error:
            if step is not None and step.ended:
                raise
            error = _refused(target, given, call, error, self._clock() - began)
            raise error
        began, call.began = self._clock(), time.time()
        started(call, target, definition.name, authorized.arguments)
        try:
            output = await self._execute(target, authorized, call, effects)
        except (Failure, asyncio.CancelledError) as error:
            failure = error if isinstance(error, Failure) else Failure("cancelled", "the call was cancelled")
            recorder.ended(call, failure, effects, self._clock() - began)
            ended(call, failure, self._clock() - began, len(effects))
            if failure.code == "sandbox_unavailable" and denied_for_now(failure, target, call):
                raise suspended_by(failure, request.run.id) from None
            if isinstance(error, Failure):
                end_step(call, target, given, error, effects)
                await self._sync_step(call, target)
            raise
        recorder.ended(call, output, effects, self._clock() - began)
        ended(call, None, self._clock() - began, len(effects), output)
        end_step(call, target, given, output, effects)
        await self._sync_step(call, target)
        return output

    @staticmethod
    async def _sync_step(call: Call, target: Target) -> None:
        """Wait until the end of a step that may have changed something is on the disk. Only then may its result be used."""
        journal = call.request.run.journal
        if journal is not None and target.changes:
            await journal.sync()

    async def _execute(self, target: Target, authorized: Authorized, call: Call, effects: list[Effect]) -> Any:
        """Stage 4: execute the call. The effects of a primitive are added to `effects`.

        Raises:
            Failure: The call failed. A fault of the tool becomes `internal_error`.
        """
        if call.settled is not None and call.answered:
            return call.settled.value
        stub = call.request.context.stubs.get(target.definition.name)
        try:
            if stub is not None and call.depth:
                # A stub's output is not validated, because an example only contains the parts of an answer that it needs.
                return stub(authorized.arguments)
            if target.primitive is not None:
                output = await run_primitive(target.primitive, authorized, call, effects, self._clock)
            else:
                assert target.version is not None
                output = await self._run_composite(target.version, authorized, call)
            return checked_output(target.definition, output)
        except Failure:
            raise
        except Exception as fault:
            name = target.definition.name
            raise Failure(
                "internal_error",
                f"{name} failed by a fault of its own: {describe_fault(fault)}",
                hint="the fault is in the tool, not in the call; report it to the tool's author",
                tool=name,
            ) from fault

    async def _run_composite(self, version: ToolVersion, authorized: Authorized, call: Call) -> Any:
        request, authority, bounds = call.request, authorized.authority, authorized.governance.limits
        left = call.deadline + request.waited - self._clock()
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

        async def call_tool(name: str, given: dict[str, Any], key: str) -> Any:
            # The worker is not trusted, and ids in the record contain the key.
            if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
                raise Failure("sandbox_violation", f"invalid call number {key[:_MAX_KEY]!r}", tool=version.name)
            step = f"{call.step}/{key}" if call.step else key
            child = Call(
                request,
                deadline,
                f"{request.run.id}:{step}",
                call.id,
                step,
                call.depth + 1,
                (*call.callers, version.name),
                (*call.trail, version.version),
                given=given,
            )
            child.span = span_of(child, call.span)
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
                notify(request.watch, name)
                target = self.lookup.found(name, None if pin.kind == "primitive" else pin.version)
            except Failure as failure:
                request.recorder.denied(child, name, given, failure)
                started(child, None, name, given)
                ended(child, failure, 0.0, 0, blocked=True)
                raise
            try:
                return await self._invoke(target, given, child)
            finally:
                call.printed += child.printed

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
            call.printed.append(text)
            notify(request.log, version.name, text)

        sandbox = await self._sandbox()
        request.runs.append(call.report)
        try:
            return await sandbox.run(
                version.program, authorized.arguments, call=call_tool, log=printed, limits=limits, report=call.report
            )
        finally:
            request.runs.remove(call.report)


def _refused(
    target: Target, given: Any, call: Call, error: Failure | Repeated | asyncio.CancelledError, seconds: float
) -> Failure | Repeated | asyncio.CancelledError:
    """Record a call that is not executed, because it is refused or repeated. Returns the exception for its caller."""
    request, definition = call.request, target.definition
    started(call, target, definition.name, given)
    if isinstance(error, Repeated):
        request.recorder.repeated(call, definition.name, error.result, request.origin)
        ended(call, error.result.error, seconds, 0, error.result.output)
        return error
    failure = (
        error if isinstance(error, Failure) else Failure("cancelled", "the call was cancelled while it was judged")
    )
    if not call.depth:
        request.refused = failure
    if isinstance(error, Failure) and denied_for_now(error, target, call):
        error = suspended_by(error, request.run.id)
    if failure.code != "suspended":
        # If a call waits for an answer, the question is already its entry in the ledger.
        request.recorder.denied(call, definition.name, given, failure, definition.by_hash)
    ended(call, failure, seconds, 0, blocked=True)
    if isinstance(error, Failure):
        end_step(call, target, given, error, ())
    return error


def _needs_close(request: Request, error: Failure | None) -> bool:
    """Whether the end of a request must be recorded. Most requests for a primitive only have their ledger entries."""
    if request.context.scratch:
        return False
    recorded = request.run.journal is not None or request.session is not None or request.repeat is not None
    return recorded or (error is not None and error.code == "suspended")


def _decision_of(request: Request) -> dict[str, Json] | None:
    """The decision on the request: the decision of a rule, or the refusal by another check."""
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

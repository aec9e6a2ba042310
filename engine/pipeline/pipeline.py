"""The pipeline: the one way to an effect. Every call of a person, an agent or a program passes through it.

A call passes the *stages*, one after the other. A stage refines the call or raises. The first failure ends the call, so a call is
denied unless all stages let it pass. A fault of the service in a stage is a denial. Then the call *begins*: in one transaction it
is charged, its approval is used up and its decision is recorded. Then it is *executed*, and its end is *recorded*.

A composite's calls come back as children of its call: they pass the same stages, within the time and depth that their caller has
left. A primitive runs in the guarded workspace, which checks the rules again for each file that is opened.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from albert_tools.engine.call import ledger
from albert_tools.engine.call.arguments import argument_violations
from albert_tools.engine.call.budget import consumed
from albert_tools.engine.call.context import (
    NO_OPTIONS,
    Call,
    CallReport,
    JudgeAgain,
    Known,
    Renewed,
    Repeated,
    RequestOptions,
    Run,
    ServiceContext,
    Stage,
    Stages,
)
from albert_tools.engine.call.entries import Entries
from albert_tools.engine.call.journal import RunJournal, UnwrittenJournal
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MOST_OF_RUN
from albert_tools.engine.model.messages import describe_fault
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult, is_incomplete
from albert_tools.engine.model.telemetry import new_id, new_span, traceparent
from albert_tools.engine.model.tracebacks import forget
from albert_tools.engine.model.turns import CLIENT, Turns
from albert_tools.engine.model.validation import Violation
from albert_tools.engine.pipeline import observers
from albert_tools.engine.pipeline.allowance import allowance
from albert_tools.engine.pipeline.approval import approval
from albert_tools.engine.pipeline.begin import begin
from albert_tools.engine.pipeline.changes import changed_by_others
from albert_tools.engine.pipeline.enqueue import enqueue
from albert_tools.engine.pipeline.execute import execute
from albert_tools.engine.pipeline.flow import flow
from albert_tools.engine.pipeline.large_output import keep_output, output_or_handle
from albert_tools.engine.pipeline.lookup import demand_limits, lookup
from albert_tools.engine.pipeline.mode import mode
from albert_tools.engine.pipeline.policy import policy
from albert_tools.engine.pipeline.record import record, refuse, repeated
from albert_tools.engine.pipeline.repeat import ended_once, repeat
from albert_tools.engine.pipeline.reviewed import counted, reviewed
from albert_tools.engine.pipeline.scratch import scratch
from albert_tools.engine.pipeline.session import client_of, line_of_request, session
from albert_tools.engine.pipeline.validate import validate
from albert_tools.engine.runs.lifecycle import cancellation, end_of_request, end_run
from albert_tools.engine.runs.recovery import recover
from albert_tools.engine.runs.replay import from_journal
from albert_tools.engine.sandbox.worker.pool import Sandbox

#: The stages of a call, in the order of authority. `lookup` comes before all of them.
STAGES: Stages = (session, validate, repeat, mode, reviewed, policy, flow, recover, allowance, approval)
#: A replay has no effect: its calls are answered from the journal, and only its program runs.
REPLAY_STAGES: Stages = (validate, mode, policy)
#: An example runs in a temporary workspace, on which nothing outside depends.
EXAMPLE_STAGES: Stages = (validate, scratch)
#: A request for a queue is judged now as far as nobody is asked, and again when a worker executes it.
QUEUE_STAGES: Stages = (session, validate, mode, reviewed, policy, allowance, enqueue)


def action_stages(review: Stage | None) -> Stages:
    """The stages of an action. `review` finds out whether the action concerns what belongs to somebody else."""
    return (session, validate, mode, policy, allowance, *([review] if review is not None else []), approval)


#: The most requests from outside that run at the same time, and those of one session. Further requests wait. Calls by a program
#: never wait.
MAX_RUNS, MAX_RUNS_OF_SESSION = 32, 16
#: The sources whose examples run at the same time, and those of one session. They have a queue of their own.
MAX_EXAMPLES_AT_ONCE, MAX_EXAMPLES_OF_SESSION = 4, 2
#: The seconds of a request until the rules have judged it.
_DEFAULT_SECONDS = MOST_OF_RUN.run_seconds
#: The seconds for which a session that was read is not read again.
_FRESH_SECONDS = 0.01
#: The hash of a content, which is its handle, or of a file.
_HASH = re.compile(r"(b3:)?[0-9a-f]{64}")
#: The most questions about one call. A new question is needed if the call's objects change while a person decides.
MAX_QUESTIONS = 3


class Pipeline:
    """Governs and executes calls.

    Args:
        registry: The primitives and saved tools.
        store: The saved tools.
        sandbox: Starts the sandbox. It is awaited when a composite runs.
        renewed: See `Run`.
        clock: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        store: ToolStore,
        sandbox: Callable[[], Awaitable[Sandbox]],
        renewed: Renewed,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lookup = Lookup(registry, store)
        self._sandbox = sandbox
        self._renewed = renewed
        self._clock = clock
        self._turns = Turns(MAX_RUNS_OF_SESSION, MAX_RUNS)
        self.turns_of_examples = Turns(MAX_EXAMPLES_OF_SESSION, MAX_EXAMPLES_AT_ONCE)
        #: The active runs, by id.
        self.active: dict[str, Run] = {}

    async def invoke(
        self,
        invocation: ToolInvocation,
        service: ServiceContext,
        options: RequestOptions = NO_OPTIONS,
        *,
        stages: Stages = STAGES,
        run_id: str = "",
    ) -> ToolResult:
        """Make one request from outside.

        Args:
            invocation: The request.
            service: The service in which the request is made.
            options: How it is made.
            stages: The stages of each call.
            run_id: The id of a new run; by default a random one.

        Returns:
            The result. If the request failed in any way, its `error` contains the failure.

        Raises:
            asyncio.CancelledError: The caller was cancelled.
        """
        began = self._clock()
        # The caller may be handling an error of its own, which becomes the context of ours.
        caught = sys.exception()
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        span = new_span(None, invocation.trace)
        run = Run(
            id=options.resumed.id or run_id or new_id(),
            invocation=invocation,
            service=service,
            stages=stages,
            lookup=self.lookup,
            workspace_or_failure=service.workspace_or_failure,
            sandbox=self._sandbox,
            renewed=self._renewed,
            clock=self._clock,
            began=began,
            trace=traceparent(span),
            options=options,
            journal=options.resumed.journal or RunJournal(UnwrittenJournal()),
            entries=Entries(service.ledger),
        )
        call = Call(
            tool=invocation.tool,
            version=invocation.version,
            given=invocation.arguments,
            id=run.id,
            deadline=began + _DEFAULT_SECONDS,
            report=CallReport(),
            span=span,
        )
        output, error, repeated = None, None, None
        run.task = asyncio.current_task()
        self.active[run.id] = run
        try:
            # The journal of a resumed run is open, and must be closed if the caller is cancelled while it waits here.
            # An action may itself wait for requests, so it takes no slot from them. Examples have waited in their own queue. A
            # request for a queue executes nothing, and a call that has a slot may make it.
            waits = options.action is None and options.stubs is None and options.queued is None
            await service.ledger.expect(hash((str(invocation.session), str(invocation.tool))))
            loop = asyncio.get_running_loop()
            run.line, came = line_of_request(run), loop.time()
            client = client_of(run)
            async with self._turns.of(client) if waits else nullcontext():
                if loop.time() - came > _FRESH_SECONDS:
                    # While the request waited for its turn, its session may have ended or been prolonged.
                    run.line = line_of_request(run)
                before = CLIENT.set(client or CLIENT.get())
                try:
                    output = await self.call(call, run)
                finally:
                    CLIENT.reset(before)
                if run.report.shown is UNSET:
                    # The journal of a resumed run had the output.
                    run.report.shown = output_or_handle(output, run)
        except Repeated as earlier:
            repeated = earlier.result
        except Failure as failure:
            # The result keeps no traceback.
            error = end_of_request(failure, run).copy()
            forget(failure, caught)
        except asyncio.CancelledError:
            if run.stop is None:
                raise
            # The run was cancelled by its id. Its caller was not cancelled, and gets a result.
            if run.task is not None:
                run.task.uncancel()
            error = cancellation(run.journal, run.stop.message)
        finally:
            del self.active[run.id]
            try:
                if repeated is None and _needs_close(run, error):
                    await asyncio.shield(self._close(run, output, error))
                await ledger.write_results(run)
            except Failure as unrecorded:
                output, error = None, unrecorded
            finally:
                # After a fault, nothing is written any more.
                run.entries.drop()
        if repeated is not None:
            return replace(
                repeated,
                repeated=True,
                request_id=invocation.request_id,
                effects=_shown(repeated.effects, run),
                trace_id=span.trace_id,
                span_id=span.span_id,
            )
        return self._result(call, run, output, error, timestamp)

    async def replay(self, invocation: ToolInvocation, service: ServiceContext, options: RequestOptions) -> ToolResult:
        """Run a program again without effects. All results of its calls are read from the journal."""
        return await self.invoke(invocation, service, options, stages=REPLAY_STAGES)

    async def call(self, call: Call, run: Run) -> Any:
        """Govern one call: of a request, or by a program.

        Raises:
            Failure: The call was refused, or it failed.
            Repeated: The request was already made with the same dedupe key.
        """
        began = run.clock()
        if call.depth:
            await run.service.ledger.expect((run.session.id, call.tool))
        try:
            call = counted(await lookup(call, run))
            if run.stop is not None and call.is_step:
                raise cancellation(run.journal, run.stop.message)
        except Exception as error:
            failure = _as_denial(error)
            raise refuse(call, run, failure, run.clock() - began) from failure.__cause__
        return await from_journal(call, run, self._govern)

    async def _govern(self, call: Call, run: Run) -> Any:
        """Judge a call, execute it, and record its end. Raises as `call`."""
        began, known, judged = run.clock(), None, call
        try:
            demand_limits(call, run)
            for _ in range(MAX_QUESTIONS + 1):
                judged = call
                try:
                    for stage in run.stages:
                        judged = await stage(judged, run)
                    await begin(judged, run)
                    break
                except JudgeAgain:
                    # A new token can have prolonged the session while a person decided.
                    run.session.renew()
                    if not call.depth:
                        # Meanwhile the caller may have changed its arguments. The person saw this copy.
                        call = replace(call, given=run.arguments)
            else:
                raise _changed_each_time(call)
        except Known as early:
            known = early
        except Repeated as earlier:
            repeated(judged, run, earlier, run.clock() - began)
            raise
        except asyncio.CancelledError:
            refuse(judged, run, Failure("cancelled", "the call was cancelled while it was judged"), run.clock() - began)
            raise
        except Exception as error:
            failure = _as_denial(error)
            raise refuse(judged, run, failure, run.clock() - began) from failure.__cause__
        if not call.depth:
            run.report.decision = {**judged.decision.as_dict(), "allowed": True, "message": ""}
        began, judged.report.began = run.clock(), time.time()
        notice = observers.started(judged, run)
        try:
            output = known.output if known is not None else await execute(judged, run, self.call)
            keep_output(call, run, output)
        except asyncio.CancelledError:
            stopped = Failure("cancelled", "the call was cancelled")
            # If the record can't be written, the call is cancelled all the same.
            with suppress(Failure):
                await record(judged, run, stopped, run.clock() - began, notice)
            raise
        except Failure as failure:
            answer = await record(judged, run, failure, run.clock() - began, notice)
            if answer is failure:
                raise
            raise answer from None
        await record(judged, run, output, run.clock() - began, notice)
        return output

    async def _close(self, run: Run, output: Json, error: Failure | None) -> None:
        """Record the end of the run and of the call with the dedupe key.

        Raises:
            Failure: `governance_unavailable`: a decision can't be recorded, so nobody may get what was done by it.
        """
        caller_is_gone = error is None and run.task is not None and run.task.cancelling() > 0
        if caller_is_gone:
            error = cancellation(run.journal, run.stop.message if run.stop is not None else "the run was cancelled")
        await end_run(run, output, error)
        ended_once(run, error)

    def _result(self, call: Call, run: Run, output: Json, error: Failure | None, timestamp: str) -> ToolResult:
        invocation, definition = run.invocation, run.target.definition
        seconds = self._clock() - run.began
        span = call.span
        shown = output if error is not None else run.report.shown
        return ToolResult(
            tool=str(invocation.tool),
            output=shown,
            truncated=shown is not output or is_incomplete(definition, output, error),
            error=error,
            version=definition.version,
            request_id=invocation.request_id,
            effects=_shown(run.report.effects, run),
            log="".join(run.report.printed),
            seconds=seconds,
            own_seconds=call.report.own_seconds,
            calls=run.report.calls,
            timestamp_utc=timestamp,
            policy=run.report.decision,
            family=definition.family,
            budget_consumed=consumed(run, seconds),
            trace_id=span.trace_id if span is not None else None,
            span_id=span.span_id if span is not None else None,
            run_id=run.journal.id,
            metadata=changed_by_others(run),
        )

    def violations(self, name: str, arguments: Any, version: str | None = None) -> list[Violation]:
        """All violations in `arguments` for the tool `name`.

        Raises:
            Failure: `unknown_tool`, `damaged`.
        """
        return argument_violations(self.lookup.look_up(name, version).definition, arguments)


def _shown(effects: Sequence[Effect], run: Run) -> tuple[Effect, ...]:
    """The effects as the caller sees them: a session gets no hashes of a program's calls, because by the hash of a content it could
    read what tools outside of its lease have returned."""
    if run.session.id is None or run.target.version is None:
        return tuple(effects)
    return tuple(
        Effect(e.kind, e.tool, {n: f for n, f in e.facts.items() if not (isinstance(f, str) and _HASH.fullmatch(f))})
        for e in effects
    )


def _as_denial(error: Exception) -> Failure:
    """The failure that a stage has raised. A fault of the service is a denial."""
    if isinstance(error, Failure):
        return error
    denial = Failure(
        "governance_unavailable",
        f"the call can't be judged, so it is denied: {describe_fault(error)}",
        hint="this is a fault of the service or of its configuration, not of the tool",
        rule="fault",
    )
    denial.__cause__ = error
    return denial


def _changed_each_time(call: Call) -> Failure:
    return Failure(
        "permission_denied",
        f"what {call.name} would do changed each time a person was asked about it",
        hint="wait until other work on these files has finished, then call again",
        rule="approval",
        tool=call.name,
    )


def _needs_close(run: Run, error: Failure | None) -> bool:
    """Whether the end of a request must be recorded. Most requests for a primitive only have their ledger entries."""
    recorded = run.journal.id is not None or run.repeat is not None
    return recorded or (error is not None and error.code == "suspended")

"""Runs tools and sources, and resumes runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from albert_tools.engine.actions import RESUME, RUN, ActionRequest, Actions, Review, permitted
from albert_tools.engine.call.budget import sum_of
from albert_tools.engine.call.context import DEFAULT_PRIORITY, Log, Queued, RequestOptions, ServiceContext
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.reserved_names import AGENT_TOOLS
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.engine.model.tracebacks import forget
from albert_tools.engine.pipeline.pipeline import QUEUE_STAGES, Pipeline
from albert_tools.engine.policy.settings import DEFAULT_QUEUE
from albert_tools.engine.runs.runs import RunManager
from albert_tools.engine.sources import Source, Sources, shown_source

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import ToolVersion

#: Seconds between two checks for runs that another process cancelled, and the number of checks without a run before polling stops.
POLL_SECONDS, MAX_IDLE_POLLS = 0.25, 20
IN_DEFAULT_QUEUE = Queued(DEFAULT_QUEUE, DEFAULT_PRIORITY)


class AgentTools(Protocol):
    """The agent's own tools. They use the service, so it knows them only by this method."""

    async def invoke(
        self, invocation: ToolInvocation, log: Log | None, watch: Callable[[str], None] | None
    ) -> ToolResult:
        """Run one of them. As `ToolService.invoke`."""


class Running(Struct, eq=False):
    """Makes requests."""

    context: ServiceContext
    pipeline: Pipeline
    runs: RunManager
    sources: Sources
    actions: Actions
    #: Runs the agent's own tools, see `engine.agent`.
    agent_tools: AgentTools | None = None
    _watching: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Stop looking for runs that another process has cancelled."""
        if self._watching is not None:
            self._watching.cancel()

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
        turn: str | None = None,
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
            turn: The same text for all calls between two messages of the agent's user, such as the number of the message.
            log: Called with the tool and the text for each print of the program.
            watch: Called with the name of each tool that the program calls, when the call begins.

        Returns:
            The result. If the call failed in any way, its `error` contains the failure.

        Raises:
            RuntimeError: The service is closed.
        """
        given = {} if arguments is None else arguments
        invocation = ToolInvocation(
            name, given, version, session, request_id, dedupe_key, trace, reason=reason, turn=turn
        )
        self._poll_cancellations()
        if name in AGENT_TOOLS and self.agent_tools is not None:
            caught = sys.exception()
            result = await self.agent_tools.invoke(invocation, log, watch)
            if result.error is not None:
                forget(result.error, caught)
            return result
        return await self.pipeline.invoke(invocation, self.context, RequestOptions(log, watch))

    async def enqueue(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        queued: Queued = IN_DEFAULT_QUEUE,
        *,
        version: str | None = None,
        session: str | None = None,
        request_id: str | None = None,
        trace: str | None = None,
        reason: str | None = None,
        unsaved: ToolVersion | None = None,
        run_id: str = "",
    ) -> str:
        """Record a run that a worker will execute (`albert worker`). It is judged now as far as nobody is asked, and again then.

        Args:
            queued: The queue, the priority, and the repository if it works in a checkout.
            unsaved: A version to run instead of a stored one.
            run_id: The id of the run, 16 hex digits; by default a random one.
            name, arguments, version, session, request_id, trace, reason: See `invoke`. The version is fixed now.

        Returns:
            The id of the run.

        Raises:
            Failure: Those of a call; `invalid_arguments` if the rules have no such queue.
            RuntimeError: The service is closed.
        """
        given = {} if arguments is None else arguments
        invocation = ToolInvocation(name, given, version, session, request_id, None, trace, reason=reason)
        result = await self.pipeline.invoke(
            invocation,
            self.context,
            RequestOptions(unsaved=unsaved, queued=queued),
            stages=QUEUE_STAGES,
            run_id=run_id,
        )
        if result.error is None or result.error.code != "suspended" or result.run_id is None:
            raise result.error or Failure("internal_error", "the run was not queued")
        return result.run_id

    async def run_source(
        self,
        source: Source,
        arguments: Mapping[str, Any] | None = None,
        *,
        session: str | None = None,
        request_id: str | None = None,
        trace: str | None = None,
        reason: str | None = None,
        turn: str | None = None,
        log: Log | None = None,
        request: ActionRequest | None = None,
    ) -> ToolResult:
        """Run a source once, without saving it. It is checked as by `define`, but its examples are not run.

        Its calls are judged like those of a saved tool. The run is recorded with the source, so it can wait for an approval, and be
        resumed and replayed. A session whose lease lists tools may do this only if the list contains ``run_source``.

        Args:
            source: The text, or ``{name, description, parameters, implementation}``.
            arguments: The arguments of the tool, by name.
            session, request_id, trace, reason, turn, log: See `invoke`.
            request: The session's request, if it is known, in place of all of these but `log`.

        Returns:
            The result. If the run failed in any way, its `error` contains the failure.

        Raises:
            SourceError: The source has errors.
            RuntimeError: The service is closed.
        """
        request = request or ActionRequest(
            ToolInvocation(RUN.name, {}, None, session, request_id, None, trace, reason=reason, turn=turn)
        )
        asked, session = request.invocation, request.invocation.session

        async def review(_: ToolVersion | None) -> Review[ToolVersion]:
            return Review((await self.sources.compiled(source, session=session))[0])

        async def checked(version: ToolVersion) -> ToolVersion:
            # As `permitted`: the run begins after its action.
            return version

        try:
            if session is None:
                version = (await review(None)).found
            else:
                # A source is not checked for a session that can't run it anyway.
                arguments_of_action = {"source": shown_source(source)}
                version = await self.actions.perform_reviewed(
                    RUN, arguments_of_action, session, review, checked, request
                )
        except Failure as failure:
            return replace(request.result or ToolResult(RUN.name, request_id=asked.request_id), error=failure)
        given = {} if arguments is None else arguments
        invocation = replace(asked, tool=version.name, arguments=given, version=None, dedupe_key=None)
        action = request.result
        if action is not None and (action.trace_id or "") not in (asked.trace or ""):
            # The caller has given no trace. The action and the run are one request, so they share one.
            invocation = replace(invocation, trace=action.trace_id)
        self._poll_cancellations()
        result = await self.pipeline.invoke(invocation, self.context, RequestOptions(log, unsaved=version))
        if action is None:
            return result
        return replace(result, budget_consumed=sum_of(action.budget_consumed, result.budget_consumed))

    async def resume(
        self,
        run: str,
        log: Log | None = None,
        *,
        session: str | None = None,
        worker: str | None = None,
        checkout_on: str | None = None,
    ) -> ToolResult:
        """Begin a queued run, or resume a run that waits for an approval or whose process has died.

        Its calls are judged as those of its own session.

        Args:
            run: The run's id, or the first digits of the id.
            log: Called with the tool and the text for each print of the program.
            session: The token of the session that resumes the run: its own run, or another one by the action ``resume_run``.
            worker, checkout_on: See `RunManager.resume`.

        Returns:
            The result of the run.

        Raises:
            Failure: `not_found`, `damaged`; `exists` if the run has ended or another process runs it; `diverged` if the tool, the
                workspace or the interpreter has changed. In a session also those of a call.
            RuntimeError: The service is closed.
        """
        await self.actions.perform(RESUME, {"run": run}, session, permitted, lambda: self.runs.show(run).session)
        self._poll_cancellations()
        return await self.runs.resume(run, log, worker=worker, checkout_on=checkout_on)

    async def validate(self, name: str, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """Check the arguments of a call without making it.

        Args:
            name: The tool.
            arguments: The arguments by name.

        Returns:
            All violations, each ``{field, rule, message}``. The list is empty if the arguments are valid.

        Raises:
            Failure: `unknown_tool`, `damaged`.
        """
        return await asyncio.to_thread(self.pipeline.violations, name, arguments)

    def _poll_cancellations(self) -> None:
        """While requests run, check regularly whether another process has cancelled a run."""
        if self._watching is not None and not self._watching.done():
            return

        async def watch() -> None:
            idle = 0
            while idle < MAX_IDLE_POLLS:
                await asyncio.sleep(POLL_SECONDS)
                idle = 0 if self.pipeline.active else idle + 1
                self.runs.stop_cancelled()

        self._watching = asyncio.create_task(watch())

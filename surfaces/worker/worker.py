"""A worker: executes the runs of queues, and begins those of schedules, until it is stopped.

The record decides which worker executes which run, so any number of workers can use one home. A run that waits for a person takes
no place in a worker. When it is stopped, a worker lets its runs end; if it is killed, others go on with them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from albert_tools.engine.call.context import CHECKOUT, Queued
from albert_tools.engine.call.journal_reader import OVER
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import describe_fault
from albert_tools.engine.pipeline.enqueue import demand_repository
from albert_tools.engine.runs.run_queue import is_temporary
from albert_tools.store.places import checkouts
from albert_tools.surfaces.worker.checkout import Checkout, keep_changes

if TYPE_CHECKING:
    from pathlib import Path

    from albert_tools.engine.model.record_types import Schedule
    from albert_tools.engine.runs.runs import RunView
    from albert_tools.service import ToolService

#: Seconds between two looks for runs, and after a failure of the home.
POLL_SECONDS, REST_SECONDS = 0.5, 5.0
#: Called with each event, such as ``taken`` or ``done``, and facts about it.
Report = Callable[[str, Mapping[str, Any]], None]


class Worker:
    """Executes runs in the workspaces of these folders. `services` has the service of each, by the name that runs have for it.

    Args:
        services: They use one home.
        name: Its name, which no other running worker has.
        queues: The queues whose runs it executes.
        at_once: The most runs at the same time.
        report: Called with each event.
    """

    def __init__(
        self, services: Mapping[str, ToolService], name: str, queues: Collection[str], at_once: int, report: Report
    ) -> None:
        self._services = services
        self._any = next(iter(services.values()))
        self._name = name
        self._queues = queues
        self._at_once = at_once
        self._report = report
        self._host = socket.gethostname() if shutil.which("git") else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._owner = ""
        #: Whether a run has failed since the last look. Its end may not be recorded.
        self._has_failed = False
        #: The last failure of each schedule.
        self._failures: dict[str, dict[str, Any] | None] = {}

    async def work(self, stopped: asyncio.Event) -> None:
        """Take runs until `stopped` is set, and wait for the end of those under way.

        Raises:
            Failure: `exists` if a worker with this name runs; `io_error`, `damaged` if the home can't be used at the start.
        """
        await asyncio.to_thread(self._join)
        await asyncio.to_thread(self._finish_left)
        try:
            while not stopped.is_set():
                seconds = POLL_SECONDS
                try:
                    await self._look()
                except Exception as fault:
                    # The home can't be used now, or the rules are being edited. The runs under way go on.
                    self._report("problem", {"error": _failure(fault).as_dict()})
                    seconds = REST_SECONDS
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._one_ended(stopped), seconds)
            await asyncio.gather(*self._tasks)
        finally:
            with suppress(Failure):
                self._any.queue.leave(self._name)

    def _join(self) -> None:
        facts = {
            "queues": sorted(self._queues),
            "workspaces": sorted(self._services),
            "at_once": self._at_once,
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        self._any.queue.join(self._name, facts)
        self._owner = self._any.ledger.owner

    async def _look(self) -> None:
        if self._any.ledger.owner != self._owner:
            # The connection to the record was lost, and with it all that this worker was doing.
            await asyncio.to_thread(self._join)
        if self._has_failed:
            self._has_failed = False
            try:
                active = {task.get_name() for task in self._tasks}
                await asyncio.to_thread(self._any.queue.release_all_but, active)
            except BaseException:
                self._has_failed = True
                raise
        await self._begin_due()
        while len(self._tasks) < self._at_once:
            run = await asyncio.to_thread(
                self._any.queue.take, self._name, self._queues, list(self._services), self._host
            )
            if run is None:
                return
            task = asyncio.create_task(self._execute(run), name=run)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _one_ended(self, stopped: asyncio.Event) -> None:
        """Wait until a run ends or the worker is stopped."""
        stop = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait({stop, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()

    async def _begin_due(self) -> None:
        for schedule in await asyncio.to_thread(self._any.schedules.all):
            if schedule.data["workspace"] in self._services and schedule.data["queue"] in self._queues:
                failure = None
                try:
                    await self._begin(schedule)
                except Failure as fault:
                    failure = fault.as_dict()
                # A failure that lasts is reported once.
                if failure is not None and failure != self._failures.get(schedule.name):
                    self._report("problem", {"schedule": schedule.name, "error": failure})
                self._failures[schedule.name] = failure

    async def _begin(self, schedule: Schedule) -> None:
        """Queue the run of a schedule if its time has come. Raises Failure as `Schedules.due` and `Schedules.begin`."""
        schedules = self._any.schedules
        at = await asyncio.to_thread(schedules.due, schedule, datetime.now(UTC))
        if at is not None:
            await schedules.begin(schedule, at, partial(self._enqueue, schedule.data))
            self._report("scheduled", {"schedule": schedule.name, "at": at.isoformat()})

    async def _enqueue(self, data: Mapping[str, Any], run: str) -> None:
        """Queue a run of a schedule. Raises Failure `exists` if there is one."""
        service = self._services[data["workspace"]]
        if _found(service, run) is not None:
            raise Failure("exists", f"there is a run {run}")
        queued = Queued(data["queue"], data["priority"])
        await service.enqueue(data["tool"], data["arguments"], queued, version=data["version"], run_id=run)

    async def _execute(self, run: str) -> None:
        owner, tool = self._owner, ""
        try:
            view = await asyncio.to_thread(self._any.runs.show, run)
            tool = view.tool
            self._report("taken", {"run": run, "tool": tool, "queue": view.header.get("queue"), **_waited(view)})
            async with self._place(view) as (service, host):
                result = await service.resume(run, worker=self._name, checkout_on=host)
            if host is not None:
                await asyncio.to_thread(self._finish, run)
            state = "done" if result.error is None else "suspended" if result.error.code == "suspended" else "failed"
            self._has_failed |= result.error is not None
            if result.error is not None and await asyncio.to_thread(self._has_lost, owner):
                state = "lost"
            more = {} if result.error is None else {"error": result.error.as_dict()}
            self._report(state, {"run": run, "tool": tool, **more})
        except Exception as fault:
            failure, self._has_failed = _failure(fault), True
            if await asyncio.to_thread(self._has_lost, owner):
                self._report("lost", {"run": run, "tool": tool, "error": failure.as_dict()})
                return
            state = "later" if is_temporary(failure) else "cancelled" if failure.code == "exists" else "failed"
            self._report(state, {"run": run, "tool": tool, "error": failure.as_dict()})
            with suppress(Failure):
                await asyncio.to_thread(self._put_back, run, failure)

    def _has_lost(self, owner: str) -> bool:
        """Whether this worker has lost the runs that it took as this owner. Then another worker can go on with them."""
        try:
            return self._any.ledger.owner != owner
        except Failure:  # The record can't be reached.
            return True

    def _put_back(self, run: str, failure: Failure) -> None:
        """A run that could not be begun is tried again later, or ends."""
        if is_temporary(failure):
            self._any.queue.release(run)
        elif failure.code == "exists":
            # It was cancelled while its process was dead.
            self._any.runs.cancel(run, f"the worker {self._name}")
        else:
            self._any.runs.give_up(run, failure)

    @asynccontextmanager
    async def _place(self, run: RunView) -> AsyncIterator[tuple[ToolService, str | None]]:
        """The service in which a run is executed, and the name of this host if it is a checkout."""
        workspace = str(run.header["workspace"])
        if not workspace.startswith(CHECKOUT):
            yield self._services[workspace], None
            return
        checkout = Checkout(checkouts(), run.id, workspace)
        self._demand_repository(run, checkout)
        await asyncio.to_thread(checkout.make)
        async with self._any.elsewhere(checkout.files) as service:
            yield service, self._host

    def _demand_repository(self, run: RunView, checkout: Checkout) -> None:
        """Require that the present rules and mode let the queue use the repository. Raises Failure `permission_denied`."""
        if self._any.modes.mode == "LOCKDOWN":
            raise Failure("permission_denied", "nothing is fetched or pushed in LOCKDOWN", retryable=True)
        demand_repository(self._any.ruling().governance.queues, str(run.header["queue"]), checkout.repository)

    def _finish(self, run: str) -> None:
        """Keep what a run of this home has changed in its checkout, if it has ended. Report what prevents it."""
        try:
            view = _found(self._any, run)
            if view is not None and view.state in OVER:
                self._keep(view)
        except Exception as fault:
            self._report("problem", {"run": run, "error": _failure(fault).as_dict()})

    def _keep(self, run: RunView) -> None:
        checkout = Checkout(checkouts(), run.id, str(run.header["workspace"]))
        if run.header["changes"] == "branch":
            self._demand_repository(run, checkout)
        contents = self._any.contents(None)
        assert contents is not None
        facts = keep_changes(checkout, str(run.header["changes"]), run.tool, contents.put)
        if facts:
            self._any.ledger.durable(self._any.ledger.append("run_changes", {"run": run.id, **facts}))
            self._report("changed", {"run": run.id, "tool": run.tool, **facts})
        checkout.remove()

    def _finish_left(self) -> None:
        """Keep the changes of runs whose worker died after they had ended."""
        for folder in checkouts().iterdir() if checkouts().is_dir() else ():
            self._finish(folder.name)


def _failure(fault: Exception) -> Failure:
    """The failure, or a fault of the worker as one."""
    return fault if isinstance(fault, Failure) else Failure("internal_error", describe_fault(fault), retryable=True)


def _waited(run: RunView) -> dict[str, float]:
    """How long a run has waited in its queue, in seconds, if it has not begun before."""
    last = run.history[-1] if run.history else {}
    return {"waited_s": round(max(0.0, time.time() - last["at"]), 3)} if last.get("state") == "queued" else {}


def _found(service: ToolService, run: str) -> RunView | None:
    """The run, or None if this home has none with this id. Raises Failure as `Runs.show`."""
    try:
        return service.runs.show(run)
    except Failure as failure:
        if failure.code == "not_found":
            return None
        raise


@asynccontextmanager
async def services_of(first: ToolService, folders: Collection[Path]) -> AsyncIterator[dict[str, ToolService]]:
    """The services of the workspaces in these folders, by their names: `first` and others of its home."""
    from contextlib import AsyncExitStack

    async with AsyncExitStack() as stack:
        services = {str(first.workspace.root): first}
        for folder in folders:
            service = await stack.enter_async_context(first.elsewhere(folder))
            services.setdefault(str(service.workspace.root), service)
        yield services

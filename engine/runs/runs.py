"""Runs after their first request: list, show, resume, replay and cancel them.

While a run waits for an approval, or after its process has died, its whole state is its journal. To resume the run, the program
starts from the beginning. For each step that has ended, the result is read from the journal. The first other step is executed.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from albert_tools.engine.call.context import Log, RequestOptions, Resumed, Run, ServiceContext, checkout_in
from albert_tools.engine.call.journal import RunJournal, UnwrittenJournal
from albert_tools.engine.call.journal_reader import (
    OVER,
    arguments_of,
    check_form,
    last_state,
    load_value,
    read_failure,
    result_of,
    value_of,
)
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.model.definition import Json, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import RunStore
from albert_tools.engine.model.record_types import LoadedRun
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.engine.runs.lifecycle import JOURNAL_VERSION, cancellation, machine, needed

#: The state of a run that a process has open, and the state of a run whose process died before the run ended.
RUNNING, INTERRUPTED = "running", "interrupted"
#: The newest runs that are read to list those of one version.
MAX_SEARCHED = 1000


class RunView(Struct, frozen=True):
    """A run, read from its journal. `state` is queued, running, suspended, interrupted, done, failed or cancelled.

    Each of `steps` is ``{step, tool, version, arguments, state, effects, began, at, …}``. A step's state is ended, failed or
    unknown; `began` and `at` are its beginning and end in seconds since 1970. `history` lists the states of the run, each ``{state,
    at, approval, by, worker}``. `questions` lists the questions by approval id, each ``{step, at, arguments}`` with the complete
    arguments. `result` is what was read of the result: ``{output}`` if the run is done, and ``{changes}``, a ``patch`` or a
    ``branch``, if it has changed files in its checkout.
    """

    id: str
    tool: str
    version: str
    state: str
    created: str
    session: str | None
    header: Mapping[str, Json]
    steps: tuple[Mapping[str, Json], ...] = ()
    approval: str | None = None
    error: Mapping[str, Json] | None = None
    problem: str | None = None
    history: tuple[Mapping[str, Json], ...] = ()
    questions: Mapping[str, Json] = field(default_factory=dict)
    result: Mapping[str, Json] = field(default_factory=dict)

    def outside(self) -> RunView:
        """The run as its session sees it: of its steps the places, tools, states and times, and the kinds of their effects. Its
        lease need not cover the tools that the program calls."""
        steps = [
            {name: step[name] for name in ("step", "tool", "version", "state", "began", "at") if name in step}
            | {"effects": [{name: e[name] for name in ("kind", "tool")} for e in step["effects"]]}
            for step in self.steps
        ]
        return replace(self, steps=tuple(steps), questions={})

    @property
    def worker(self) -> str | None:
        """The worker that has executed the run last; None if no worker has."""
        return next((turn["worker"] for turn in reversed(self.history) if turn.get("worker")), None)

    @property
    def repository(self) -> str | None:
        """The git repository in whose checkout the run works; None for a run in a workspace."""
        return self._checkout[0]

    @property
    def commit(self) -> str | None:
        """The commit of its checkout."""
        return self._checkout[1]

    @property
    def _checkout(self) -> tuple[str | None, str | None]:
        return checkout_in(str(self.header.get("workspace"))) or (None, None)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        return {
            "run": self.id,
            "tool": self.tool,
            "version": self.version,
            "state": self.state,
            "created": self.created,
            "session": self.session,
            "user": self.header.get("user"),
            "queue": self.header.get("queue"),
            "workspace": self.header.get("workspace"),
            "repository": self.repository,
            "commit": self.commit,
            "worker": self.worker,
            "arguments": self.header.get("arguments"),
            "steps": [dict(step) for step in self.steps],
            "approval": self.approval,
            "error": self.error,
            "problem": self.problem,
            "history": [dict(turn) for turn in self.history],
            **self.result,
        }


class Executor(Protocol):
    """The part of the pipeline that runs need."""

    @property
    def lookup(self) -> Lookup:
        """Finds tools by name."""

    @property
    def active(self) -> Mapping[str, Run]:
        """The active runs, by id."""

    async def invoke(self, invocation: ToolInvocation, service: ServiceContext, options: RequestOptions) -> ToolResult:
        """Resume a run with its original invocation."""

    async def replay(self, invocation: ToolInvocation, service: ServiceContext, options: RequestOptions) -> ToolResult:
        """Run a program again without effects. All results of its calls are read from the journal."""


class RunManager:
    """The runs of a home."""

    def __init__(self, pipeline: Executor, context: ServiceContext) -> None:
        self._pipeline = pipeline
        self._context = context

    @property
    def _store(self) -> RunStore:
        assert self._context.runs is not None
        return self._context.runs

    def list(self, limit: int = 50, of: Callable[[str], bool] = lambda _: True) -> builtins.list[RunView]:
        """The newest runs, at most `limit`. A damaged run is listed with its `problem`.

        `of` restricts them by the id of their session, which is empty for the owner's runs.

        Raises:
            Failure: `io_error`.
        """
        runs: builtins.list[RunView] = []
        for summary in self._store.list(limit, of):
            try:
                runs.append(view(self._load(summary.id)))
            except Failure as failure:
                if failure.code != "not_found":
                    runs.append(RunView(summary.id, "", "", "damaged", "", None, {}, problem=failure.message))
        return runs

    def show(self, run: str, *, with_result: bool = False) -> RunView:
        """One run, by its id or the first digits of its id. `with_result` also reads its result, which may be large.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`.
        """
        loaded = self._load(run)
        seen, last = view(loaded), last_state(loaded.entries)
        if not with_result or last is None or seen.state not in OVER:
            return seen
        result: dict[str, Json] = {}
        if seen.repository is not None:
            for entry in self._context.ledger.entries(("run_changes",), run=loaded.id):
                result["changes"] = {name: value for name, value in entry.data.items() if name in ("patch", "branch")}
        try:
            if seen.state == "done":
                result["output"] = value_of(last, self._context.contents)
        except Failure as failure:
            return replace(seen, result=result, problem=f"the result can't be read: {failure.message}")
        return replace(seen, result=result)

    def of_version(self, tool: str, version: str) -> builtins.list[RunView]:
        """The finished runs of a version in this workspace, newest first, among the newest `MAX_SEARCHED` runs.

        Raises:
            Failure: `io_error`.
        """
        root = self._context.root
        return [
            seen
            for seen in self.list(MAX_SEARCHED)
            if (seen.tool, seen.version) == (tool, version)
            and seen.state in ("done", "failed")
            and seen.header.get("workspace") == root
            and "source" not in seen.header
        ]

    def recorded(self, run: str) -> ToolResult:
        """The recorded result of a run. Raises Failure `not_found` if the run has no result yet, and those of `show`."""
        return self._recorded(self._load(run), self._context)

    def outputs(self, run: str) -> dict[str, Json | Failure]:
        """How the calls of a run have ended, by step: their recorded outputs or errors. Raises as `show`."""
        contents, ends = self._context.contents, dict[str, Json | Failure]()
        for entry in self._load(run).entries:
            if entry.get("t") == "end" and "unknown" not in entry:
                try:
                    end = read_failure(entry["error"]) if "error" in entry else value_of(entry, contents)
                except Failure as forgotten:
                    end = forgotten
                ends[entry["step"]] = end
        return ends

    def _load(self, run: str) -> LoadedRun:
        loaded = self._store.load(run)
        check_form(loaded.id, loaded.header, loaded.entries)
        return loaded

    async def resume(
        self, run: str, log: Log | None = None, *, worker: str | None = None, checkout_on: str | None = None
    ) -> ToolResult:
        """Begin a queued run, or resume a run that waits for an approval or whose process has died.

        Args:
            run: The run's id, or the first digits of the id.
            log: Receives each text that the program prints.
            worker: The name of the worker that executes the run, for the record.
            checkout_on: The name of this host, if the folder of this service is the checkout that the run works in.

        Returns:
            The result of the run, as from `ToolService.invoke`.

        Raises:
            Failure: `not_found`, `damaged`; `exists` if the run has ended or another process runs it; `diverged` if the tool, the
                workspace or the interpreter has changed since the run began.
        """
        loaded = self._load(run)
        seen = view(loaded)
        if seen.state in OVER or loaded.cancelled:
            raise Failure(
                "exists",
                f"the run {loaded.id} is {'cancelled' if loaded.cancelled else seen.state}; it can't be resumed",
            )
        if seen.state == RUNNING:
            raise Failure("exists", f"the run {loaded.id} is under way in another process", retryable=True)
        context = self._context
        unsaved = self._unsaved(loaded, context)
        invocation = self._invocation(loaded, context, unsaved, is_checkout=checkout_on is not None)
        journal = self._store.open(loaded.id, needed(checkout_on))
        try:
            run_journal = RunJournal(journal, context.contents)
            waits = [e for e in journal.entries() if e.get("t") == "state" and e["state"] == "suspended"]
            session = waits[-1].get("grant") if waits else None
            resumed = Resumed(
                loaded.id,
                run_journal,
                session or loaded.header["session"],
                loaded.header["principal"],
                loaded.header["repeat"],
                queue=loaded.header.get("queue", ""),
                batch=loaded.header.get("batch", ""),
            )
            run_journal.set_state("resumed", **(machine() if "queue" in loaded.header else {}), worker=worker)
            journal.flush()
        except BaseException:
            journal.close()
            raise
        return await self._pipeline.invoke(invocation, context, RequestOptions(log, unsaved=unsaved, resumed=resumed))

    async def replay(self, run: str, version: str | None = None) -> ToolResult:
        """Run the program again without effects. The result of each call is read from the journal.

        Args:
            run: The run's id, or the first digits of the id.
            version: A version of the tool to use instead of the one that ran.

        Returns:
            The result. It is `diverged` at the first call that is not in the journal; `details` show both calls.

        Raises:
            Failure: `not_found`, `damaged`, `unknown_tool`.
        """
        loaded = self._load(run)
        whole = self._context
        bare = ServiceContext(whole.workspace_or_failure, whole.rules, modes=whole.modes, contents=whole.contents)
        unsaved = self._unsaved(loaded, whole)
        invocation = self._invocation(loaded, whole, unsaved)
        if loaded.header["kind"] == "primitive":
            # There is no program to run.
            return self._recorded(loaded, whole)
        if version is not None:
            invocation, unsaved = replace(invocation, version=version), None
        run_journal = RunJournal(UnwrittenJournal(loaded), whole.contents)
        return await self._pipeline.replay(
            invocation,
            bare,
            RequestOptions(
                unsaved=unsaved,
                resumed=Resumed(loaded.id, run_journal, is_replay=True, new_version=version is not None),
            ),
        )

    def _recorded(self, run: LoadedRun, context: ServiceContext) -> ToolResult:
        """The recorded result of a run.

        Raises:
            Failure: `not_found` if the run has no result yet.
        """
        last = last_state(run.entries)
        if last is None or last["state"] not in OVER:
            raise Failure("not_found", f"the run {run.id} has no result yet")
        version = run.header["version"] if run.header["kind"] == "composite" else None
        unsaved = self._unsaved(run, context)
        definition = self._pipeline.lookup.look_up(run.header["tool"], version, unsaved).definition
        return result_of(last, context.contents, run.id, definition)

    @staticmethod
    def _unsaved(run: LoadedRun, context: ServiceContext) -> ToolVersion | None:
        """The version that `run_source` ran; None for a run of a saved tool or a primitive.

        Raises:
            Failure: `damaged`, `not_found`, `io_error`.
        """
        if "source" not in run.header:
            return None
        try:
            return ToolVersion.from_document(load_value(context.contents, run.header["source"]))
        except ValueError as error:
            raise Failure("damaged", f"the source of the run {run.id} is damaged: {error}") from None

    def _invocation(
        self, run: LoadedRun, context: ServiceContext, unsaved: ToolVersion | None, *, is_checkout: bool = False
    ) -> ToolInvocation:
        """The invocation that began the run, if it still has the same meaning in this service. `is_checkout`: see `resume`.

        Raises:
            Failure: `diverged`, `unknown_tool`, `governance_unavailable`.
        """
        header, root = run.header, context.root
        if header["workspace"] != root and not is_checkout:
            in_checkout = checkout_in(header["workspace"]) is not None
            raise Failure(
                "diverged",
                f"the run began in {header['workspace']!r}, and this is {root!r}",
                hint="only a worker can go on with it" if in_checkout else "resume it in the workspace where it began",
            )
        version = header["version"] if header["kind"] == "composite" else None
        target = self._pipeline.lookup.look_up(header["tool"], version, unsaved)
        here = {
            "journal": JOURNAL_VERSION,
            "kind": target.definition.kind,
            "version": target.definition.version,
            "language": target.version.language if target.version is not None else 0,
            **machine(),
        }
        began = header
        if "queue" in header:
            # The interpreter in which it has begun; if it has not, any.
            began = machine() | next((e for e in run.entries if "python" in e), {}) | header
        for name, value in here.items():
            if began.get(name) != value:
                raise Failure(
                    "diverged",
                    f"the run began with {name} {began.get(name)}, and this is {value}",
                    hint="its steps might not be the same here; run the tool again",
                    details={"journal": {name: began.get(name)}, "program": {name: value}},
                )
        return ToolInvocation(
            header["tool"],
            arguments_of(header, context.contents),
            version,
            None,
            header["request_id"],
            None,
            header["trace"],
            reason=header["reason"],
        )

    def cancel(self, run: str, by: str) -> RunView:
        """Cancel a run. An active run stops during its current call or before its next step. A waiting run can no longer be
        resumed.

        Args:
            run: The run's id, or the first digits of the id.
            by: The person or client who cancels the run, for the record.

        Returns:
            The cancelled run.

        Raises:
            Failure: `not_found`, `damaged`; `exists` if the run has ended.
        """
        loaded = self._load(run)
        seen = view(loaded)
        if seen.state in OVER:
            self._context.ledger.durable()  # The process that has ended the run doesn't wait for the disk.
            raise Failure("exists", f"the run {loaded.id} is {seen.state}; there is nothing to cancel")
        self._store.cancel(loaded.id)
        if self.stop(loaded.id, by) or loaded.held:
            return replace(seen, state="cancelled")
        context = self._context
        journal = self._store.open(loaded.id)
        try:
            run_journal = RunJournal(journal, context.contents)
            error = cancellation(run_journal, f"the run was cancelled by {by}")
            run_journal.set_state("cancelled", by=by, error=error.as_dict())
            self._ended(loaded, {"state": "cancelled", "tool": seen.tool, "by": by})
        finally:
            journal.close()
        if seen.approval:
            try:
                context.record.approvals.revoke(seen.approval)
            except Failure as failure:
                if failure.code not in ("exists", "not_found"):
                    raise
        return self.show(loaded.id)

    def give_up(self, run: str, failure: Failure) -> None:
        """End a run that can't be resumed, with this failure. Raises Failure as `show`, and if another process executes it."""
        loaded = self._load(run)
        journal = self._store.open(loaded.id)
        try:
            RunJournal(journal, self._context.contents).set_state("failed", error=failure.as_dict())
            self._ended(loaded, {"state": "failed", "tool": loaded.header["tool"], "code": failure.code})
        finally:
            journal.close()

    def _ended(self, run: LoadedRun, facts: Mapping[str, Json]) -> None:
        queue = {"queue": run.header["queue"]} if "queue" in run.header else {}
        self._context.ledger.append("run", {"run": run.id, **facts, **queue})

    def under_way(self) -> builtins.list[str]:
        """The ids of the runs that this service is running."""
        return builtins.list(self._pipeline.active)

    def stop(self, run: str, by: str) -> bool:
        """Stop a run of this service. Returns whether the service has such a run."""
        active = self._pipeline.active.get(run)
        if active is None:
            return False
        if active.stop is None:
            active.stop = Failure("cancelled", f"the run was cancelled by {by}")
            if active.task is not None:
                active.task.cancel()
        return True

    def stop_cancelled(self) -> None:
        """Stop the runs of this service that another process has cancelled."""
        for name, run in list(self._pipeline.active.items()):
            if run.journal.id is not None and self._store.cancelled(name):
                self.stop(name, "another process")


def view(run: LoadedRun) -> RunView:
    """The view of a run, made from its journal."""
    states = [e for e in run.entries if e.get("t") == "state"]
    last = states[-1] if states else None
    state = RUNNING if run.held else INTERRUPTED
    if last is not None and last["state"] != "resumed" and not run.held:
        state = last["state"]
    steps: dict[str, dict[str, Json]] = {}
    for entry in run.entries:
        if entry.get("t") not in ("begin", "end"):
            continue
        step = steps.setdefault(
            entry["step"], {"step": entry["step"], "state": "unknown", "effects": [], "began": None}
        )
        step |= {name: entry[name] for name in ("tool", "version", "arguments", "arguments_ref") if name in entry}
        step["at"] = entry.get("at")
        if entry["t"] == "begin":
            step["began"] = entry.get("at")
        if entry["t"] == "end":
            state_of = "unknown" if "unknown" in entry else "failed" if "error" in entry else "ended"
            step |= {"state": state_of, "effects": entry["effects"]}
            step |= {name: entry[name] for name in ("value", "ref", "text_ref", "error", "began") if name in entry}
    error = last.get("error") if last is not None and state == last["state"] else None
    return RunView(
        run.id,
        run.header["tool"],
        run.header["version"],
        state,
        run.created,
        run.header["session"],
        run.header,
        tuple(steps.values()),
        (error.get("details") or {}).get("approval") if error and state == "suspended" else None,
        error,
        history=tuple(
            {
                "state": e["state"],
                "at": e.get("at"),
                "approval": _awaited(e),
                "by": e.get("by"),
                "worker": e.get("worker"),
            }
            for e in states
        ),
        questions={
            e["approval"]: {"step": e["step"], "at": e.get("at"), "arguments": e.get("arguments")}
            for e in run.entries
            if e.get("t") == "ask"
        },
    )


def _awaited(state: Mapping[str, Any]) -> str | None:
    """The id of the approval that a suspended run waits for."""
    return state["error"]["details"].get("approval") if state["state"] == "suspended" and "error" in state else None

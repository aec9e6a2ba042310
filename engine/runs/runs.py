"""Runs, after their first request: looked at, gone on with, called off, gone through again.

A run that waits for an answer, or whose process has died, is its journal. To go on with it the program is run from the start, and
each step that has ended answers as it did; the first that has not is where it goes on.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from albert_tools.engine.call.context import Log, Run, Surroundings
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import RunStore
from albert_tools.engine.model.record_types import LoadedRun
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.engine.pipeline.pipeline import Pipeline
from albert_tools.engine.runs.journal import Steps
from albert_tools.engine.runs.journal_reader import OVER, arguments_of, last_state, proved, result_of
from albert_tools.engine.runs.lifecycle import JOURNAL_VERSION, interpreter, stopped

#: Of a run that somebody holds, and of one whose process died before it had ended.
RUNNING, INTERRUPTED = "running", "interrupted"


@dataclass(frozen=True, slots=True)
class RunView:
    """A run, as its journal has it. `state` is running, suspended, interrupted, done, failed or cancelled.

    `steps` are the journal's: each ``{step, tool, version, arguments, state, effects, began, at, …}`` with state ended, failed or
    unknown; `began` and `at`, of its end, are seconds since 1970. `history` are the turns that the run as a whole has taken,
    ``{state, at, approval, by}``, and `questions` what was asked in it, by the approval's id: ``{step, at, arguments}``, whole.
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

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        return {
            "run": self.id,
            "tool": self.tool,
            "version": self.version,
            "state": self.state,
            "created": self.created,
            "session": self.session,
            "arguments": self.header.get("arguments"),
            "steps": [dict(step) for step in self.steps],
            "approval": self.approval,
            "error": self.error,
            "problem": self.problem,
            "history": [dict(turn) for turn in self.history],
        }


class RunDesk:
    """The runs of a home."""

    def __init__(self, pipeline: Pipeline, surroundings: Callable[[], Surroundings]) -> None:
        self._pipeline = pipeline
        self._surroundings = surroundings

    @property
    def _store(self) -> RunStore:
        store = self._surroundings().runs
        if store is None:
            raise Failure("not_found", "runs aren't recorded here")
        return store

    def list(self, limit: int = 50) -> builtins.list[RunView]:
        """The newest runs, at most `limit`; those that can't be read with their `problem`."""
        found = []
        for summary in self._store.list(limit):
            try:
                found.append(view(self._load(summary.id)))
            except Failure as failure:
                if failure.code != "not_found":
                    found.append(RunView(summary.id, "", "", "damaged", "", None, {}, problem=failure.message))
        return found

    def show(self, run: str) -> RunView:
        """One run, by its id or the beginning of it.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`.
        """
        return view(self._load(run))

    def _load(self, run: str) -> LoadedRun:
        found = self._store.load(run)
        proved(found.id, found.header, found.entries)
        return found

    async def resume(self, run: str, log: Log | None = None) -> ToolResult:
        """Go on with a run that waits, or whose process has died; gives its result, as `ToolService.invoke` does.

        Raises:
            Failure: `not_found`, `damaged`; `exists`: it is over, or under way; `diverged`: it can't go on here.
        """
        found = self._load(run)
        seen = view(found)
        if seen.state in OVER or found.cancelled:
            raise Failure(
                "exists", f"the run {found.id} is {'cancelled' if found.cancelled else seen.state}; it can't go on"
            )
        if seen.state == RUNNING:
            raise Failure("exists", f"the run {found.id} is under way in another process", retryable=True)
        surroundings = self._surroundings()
        invocation = self._invocation(found.header, surroundings)
        journal = self._store.open(found.id)
        try:
            steps = Steps(journal, surroundings.contents)
            if surroundings.ledger is not None:
                await steps.held(surroundings.ledger, found.created, found.header["kind"] == "primitive")
            waits = [e for e in journal.entries() if e.get("t") == "state" and e["state"] == "suspended"]
            session = waits[-1].get("grant") if waits else None
            going = Run(
                found.id,
                steps,
                session=session or found.header["session"],
                principal=found.header["principal"],
                repeat=found.header["repeat"],
                resumed=True,
            )
            steps.state("resumed")
            journal.flush()
        except BaseException:
            journal.close()
            raise
        return await self._pipeline.invoke(invocation, surroundings, log, resumed=going)

    async def replay(self, run: str, version: str | None = None) -> ToolResult:
        """Go through a run again without doing anything: every step answers as the journal has it.

        With `version` of the tool instead of the one that ran. Ends with `diverged` at the first step that the journal doesn't
        have, or has otherwise; `details` show both.

        Raises:
            Failure: `not_found`, `damaged`, `unknown_tool`.
        """
        found = self._load(run)
        whole = self._surroundings()
        bare = Surroundings(whole.workspace, whole.rules, modes=whole.modes, contents=whole.contents)
        invocation = self._invocation(found.header, whole)
        if found.header["kind"] == "primitive":
            return self._recorded(found, whole)
        if version is not None:
            invocation = replace(invocation, version=version)
        steps = Steps(_Recorded(found), whole.contents)
        return await self._pipeline.invoke(invocation, bare, resumed=Run(found.id, steps, dry=True))

    def _recorded(self, found: LoadedRun, surroundings: Surroundings) -> ToolResult:
        """The result of a call that was no program's: there is nothing to go through.

        Raises:
            Failure: `not_found`: it has none yet.
        """
        last = last_state(found.entries)
        if last is None or last["state"] not in OVER:
            raise Failure("not_found", f"the run {found.id} has no result yet")
        definition = self._pipeline.lookup.look_up(found.header["tool"], None).definition
        return result_of(last, surroundings.contents, found.id, definition.name, definition.version, definition.family)

    def _invocation(self, header: Mapping[str, Any], surroundings: Surroundings) -> ToolInvocation:
        """What was asked for, if it can be asked for here.

        Raises:
            Failure: `diverged`, `unknown_tool`, `governance_unavailable`.
        """
        if isinstance(surroundings.workspace, Failure):
            raise replace(surroundings.workspace)
        root = str(surroundings.workspace.root)
        if header["workspace"] != root:
            raise Failure(
                "diverged",
                f"the run began in {header['workspace']!r}, and this is {root!r}",
                hint="go on with it where it began",
            )
        version = header["version"] if header["kind"] == "composite" else None
        target = self._pipeline.lookup.look_up(header["tool"], version)
        here = {
            "journal": JOURNAL_VERSION,
            "kind": target.definition.kind,
            "version": target.definition.version,
            **interpreter(target),
        }
        for name, value in here.items():
            if header.get(name) != value:
                raise Failure(
                    "diverged",
                    f"the run began with {name} {header.get(name)}, and this is {value}",
                    hint="its steps might not be the same here; run the tool anew",
                    details={"journal": {name: header.get(name)}, "program": {name: value}},
                )
        return ToolInvocation(
            header["tool"],
            arguments_of(header, surroundings.contents),
            version,
            None,
            header["request_id"],
            None,
            header["trace"],
            reason=header["reason"],
        )

    def cancel(self, run: str, by: str) -> RunView:
        """Call a run off: one under way stops before its next step, or in the middle of a call; one that waits never goes on.

        Raises:
            Failure: `not_found`, `damaged`; `exists`: it is over.
        """
        found = self._load(run)
        seen = view(found)
        if seen.state in OVER:
            raise Failure("exists", f"the run {found.id} is {seen.state}; there is nothing to call off")
        self._store.cancel(found.id)
        if self.stop(found.id, by) or found.held:
            return replace(seen, state="cancelled")
        surroundings = self._surroundings()
        journal = self._store.open(found.id)
        try:
            steps = Steps(journal, surroundings.contents)
            called_off = stopped(Run(found.id, steps, stop=Failure("cancelled", f"the run was called off by {by}")))
            steps.state("cancelled", by=by, error=called_off.as_dict())
        finally:
            journal.close()
        if surroundings.ledger is not None:
            surroundings.ledger.append("run", {"run": found.id, "state": "cancelled", "tool": seen.tool, "by": by})
        if seen.approval and surroundings.approvals is not None:
            try:
                surroundings.approvals.revoke(seen.approval)
            except Failure as failure:
                if failure.code not in ("exists", "not_found"):
                    raise
        return self.show(found.id)

    def under_way(self) -> builtins.list[str]:
        """The runs of this service that have not ended, by id."""
        return builtins.list(self._pipeline.active)

    def stop(self, run: str, by: str) -> bool:
        """Stop a run of this service; False when it has none of that id."""
        request = self._pipeline.active.get(run)
        if request is None:
            return False
        if request.run.stop is None:
            request.run.stop = Failure("cancelled", f"the run was called off by {by}")
            if request.run.task is not None:
                request.run.task.cancel()
        return True

    def look(self) -> None:
        """Stop what somebody has asked to be stopped, in whatever process."""
        store = self._surroundings().runs
        for run, request in list(self._pipeline.active.items()):
            if store is not None and request.run.steps is not None and store.cancelled(run):
                self.stop(run, "somebody elsewhere")


class _Recorded:
    """A journal that is only read."""

    def __init__(self, run: LoadedRun) -> None:
        self.id = run.id
        self.header = run.header
        self.torn = run.torn
        self._entries = run.entries

    def entries(self) -> builtins.list[dict[str, Json]]:
        """As `Journal.entries`."""
        return self._entries

    def append(self, entry: Mapping[str, Json]) -> None:
        """Nothing is written."""

    def flush(self) -> None:
        """Nothing is written."""

    async def sync(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """Nothing is held."""


def view(run: LoadedRun) -> RunView:
    """What a run's journal says of it."""
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
            step |= {name: entry[name] for name in ("value", "ref", "error", "began") if name in entry}
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
            {"state": e["state"], "at": e.get("at"), "approval": _awaited(e), "by": e.get("by")} for e in states
        ),
        questions={
            e["approval"]: {"step": e["step"], "at": e.get("at"), "arguments": e.get("arguments")}
            for e in run.entries
            if e.get("t") == "ask"
        },
    )


def _awaited(state: Mapping[str, Any]) -> str | None:
    """The approval that a run was suspended for."""
    return state["error"]["details"].get("approval") if state["state"] == "suspended" and "error" in state else None

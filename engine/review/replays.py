"""Recorded runs of the approved version, repeated with a new version and without effects: what would have been different?

Every call of the new version gets the recorded result of the same call. A call that the record does not have can't be answered, so
the replay ends there and differs. A version that makes fewer calls differs too.
"""

from __future__ import annotations

import asyncio
import json
import posixpath
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct

from albert_tools.engine.model.definition import Json, json_form
from albert_tools.engine.model.difference import difference, shown
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief, counted
from albert_tools.engine.model.result import ToolResult
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.touched_files import paths_in, touched_files
from albert_tools.engine.runs.runs import RunManager, RunView

#: The most runs of one version that are repeated, and the seconds after which no further run is repeated.
MAX_RUNS, MAX_SECONDS = 20, 20.0
#: The most folders of deleted files that are looked at.
MAX_FOLDERS = 10
#: The most characters of a value in a difference.
_MAX_SHOWN = 200

#: Lists the paths of the files in a folder of the workspace. Raises Failure.
FilesIn = Callable[[str], list[str]]
Outcome = Literal["same", "differs", "unknown"]


class Replay(Struct, frozen=True):
    """One repeated run. `difference` says what differs, or why the run can't be repeated. `files` says what the recorded run did to
    files, if it deleted any."""

    run: str
    created: str
    outcome: Outcome
    difference: str = ""
    files: str = ""


class Replays(Struct, frozen=True):
    """The repeated runs of version `of`, newest first. `left_out` more were recorded but not repeated."""

    of: str
    runs: tuple[Replay, ...]
    left_out: int = 0

    def count(self, outcome: Outcome) -> int:
        """The number of runs with that outcome."""
        return sum(run.outcome == outcome for run in self.runs)

    def shown(self) -> list[Replay]:
        """The runs that a reviewer reads about: those that differ, then those that deleted files."""
        runs = [run for run in self.runs if run.outcome != "same" or run.files]
        return sorted(runs, key=lambda run: run.outcome == "same")

    def summary(self) -> str:
        """``14 runs: 12 the same, 2 differ``."""
        number = len(self.runs)
        if not number:
            return "no recorded runs"
        parts = [f"{self.count('same')} the same", f"{self.count('differs')} differ"]
        parts += [f"{self.count('unknown')} can't be repeated"] if self.count("unknown") else []
        more = f" ({self.left_out:,} more not repeated)" if self.left_out else ""
        return f"{counted(number, 'run')}: {', '.join(parts)}{more}"

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        form: dict[str, Json] = json_form(self)
        return form | {"same": self.count("same"), "differ": self.count("differs")}


async def replays(manager: RunManager, tool: str, old: str, new: str, files_in: FilesIn) -> Replays:
    """Repeat the newest finished runs of version `old` of a tool with version `new`. `files_in` lists the files of a folder.

    Raises:
        Failure: `io_error`.
    """
    recorded = await asyncio.to_thread(manager.of_version, tool, old)
    until = time.monotonic() + MAX_SECONDS
    replayed: list[Replay] = []
    for run in recorded[:MAX_RUNS]:
        if time.monotonic() > until:
            break
        replayed.append(await _repeated(manager, run, new, files_in))
    return Replays(old, tuple(replayed), len(recorded) - len(replayed))


async def _repeated(manager: RunManager, run: RunView, version: str, files_in: FilesIn) -> Replay:
    try:
        before = await asyncio.to_thread(manager.recorded, run.id)
        after = await manager.replay(run.id, version)
    except Failure as failure:
        return Replay(run.id, run.created, "unknown", visible(failure.message))
    text = _difference(before, after)
    files = await asyncio.to_thread(_files, manager, run, files_in)
    return Replay(run.id, run.created, "differs" if text else "same", text, files)


def _files(manager: RunManager, run: RunView, files_in: FilesIn) -> str:
    """What a run did to files. Those that it was told about, and those that are there now, have stayed."""
    effects = [(str(e.get("kind")), e) for step in run.steps for e in step["effects"]]
    named = [
        path
        for output in manager.outputs(run.id).values()
        if not isinstance(output, Failure)
        for path in paths_in(output)
    ]
    gone = [str(facts.get("path")) for kind, facts in effects if kind == "delete"]
    for folder in [*dict.fromkeys(map(posixpath.dirname, gone))][:MAX_FOLDERS]:
        with suppress(Failure):
            named += files_in(folder)
    return touched_files(effects, named)


def _difference(before: ToolResult, after: ToolResult) -> str:
    """What differs between a recorded result and that of its replay; empty if nothing does."""
    error = after.error
    if error is not None and error.code == "diverged":
        return _other_call(error)
    if error is not None or before.error is not None:
        if error is not None and before.error is not None and _same(error, before.error):
            return _fewer_calls(before, after)
        return f"{_end(after)}; before: {_end(before)}"
    other = difference(before.output, after.output)
    if other is not None:
        at = f" at {visible(other.place.strip())}" if other.place else ""
        return f"the result{at} is {visible(other.got)}; before: {visible(other.expected)}"
    if before.log != after.log:
        return f"it prints {_short(after.log)}; before: {_short(before.log)}"
    return _fewer_calls(before, after)


def _other_call(error: Failure) -> str:
    """The first call that the record does not have."""
    program, journal = error.details.get("program"), error.details.get("journal")
    if not isinstance(program, dict) or "tool" not in program:
        return visible(error.message)
    if not isinstance(journal, dict) or "tool" not in journal:
        return f"it makes a further call: {_call(program)}"
    return f"it calls {_call(program)}; before: {_call(journal)}"


def _fewer_calls(before: ToolResult, after: ToolResult) -> str:
    return f"it makes {after.calls:,} calls; before: {before.calls:,}" if after.calls != before.calls else ""


def _end(result: ToolResult) -> str:
    if result.error is None:
        return f"the result is {visible(shown(result.output))}"
    return f"it fails with {result.error.code}: {visible(brief(result.error.message, _MAX_SHOWN))}"


def _same(one: Failure, other: Failure) -> bool:
    return (one.code, one.message) == (other.code, other.message)


def _call(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments")
    pairs = arguments.items() if isinstance(arguments, dict) else ()
    text = ", ".join(f"{visible(str(name))}={_short(value)}" for name, value in pairs)
    return f"{visible(str(call['tool']))}({text})"


def _short(value: Any) -> str:
    return visible(brief(json.dumps(value, ensure_ascii=False), _MAX_SHOWN))

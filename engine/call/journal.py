"""The journal of one run. It contains the run's steps, so that the run can be resumed without making a call twice.

A program is deterministic except for its calls, so the journal of its calls is the complete state of the run. The name of a step is
the place of the call in the program: ``3``; ``2.0.1`` inside `parallel`; ``3/0`` for the first call of the composite that step 3
calls. A call that only reads is written when it ends. A call that may change something is written to the disk before it begins, and
again after it ends. After a crash, there are three cases. If the step has ended, its result is in the journal. If the step has not
begun, it is executed. If the step has begun but not ended, its outcome is unknown.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from albert_tools.engine.call.journal_reader import (
    arguments_of,
    check_form,
    read_effect,
    read_failure,
    ref_name,
    stored_form,
    value_of,
)
from albert_tools.engine.model.definition import Json, ToolDefinition, canonical
from albert_tools.engine.model.error_codes import ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.interrupted import Settled
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.protocols import ContentStore, Journal
from albert_tools.engine.model.record_types import QUOTA, LoadedRun
from albert_tools.engine.model.redaction import of_refused
from albert_tools.engine.model.result import Effect, may_change

#: The bytes of an entry above which its value and its arguments are moved to the content store, and the bytes above which one is
#: moved. The entry then contains the hash under another name. The caller's handle of a large output is the same hash, so an output
#: is stored once.
MAX_ENTRY, MAX_VALUE = 1024 * 1024, 64 * 1024
#: The most characters of a failure's message, and the most bytes of its details, that are written.
MAX_MESSAGE, MAX_DETAILS = 64 * 1024, 4 * 1024 * 1024


class Step(Struct):
    """One call in the journal. If it `ended` without a `failure`, `value` is its result."""

    tool: str
    version: str
    arguments: Json
    ended: bool = False
    #: Whether the call may change something. Such a call is also written when it begins.
    changes: bool = False
    #: Whether a process died during the call, so that its outcome is unknown.
    unknown: bool = False
    #: A hash of the state of the paths that the call changes, taken before the call began. Only a primitive with a `settle`
    #: function has it.
    before: str | None = None
    #: What the primitive has found out about an interrupted step.
    settled: Settled | None = None
    value: Json = None
    failure: Failure | None = None
    effects: tuple[Effect, ...] = ()
    #: The text that the call and its nested calls printed.
    log: str = ""


class Entered(NamedTuple):
    """A program that had begun: its arguments as canonical JSON, the mode, and the id of the approval if there was one.

    `asks` are the rules that had asked, each with its subject. `seen` is what the session of a request had seen before.
    """

    tool: str
    version: str
    arguments: bytes
    mode: str
    approval: str | None
    asks: frozenset[tuple[str, str]]
    seen: frozenset[str]


class UnwrittenJournal:
    """A `Journal` that ignores new entries: that of a replay; or without a run, that of a request which is not recorded."""

    def __init__(self, run: LoadedRun | None = None) -> None:
        self.id = run.id if run is not None else None
        self.header = run.header if run is not None else {}
        self._entries = run.entries if run is not None else []

    def entries(self) -> list[dict[str, Json]]:
        """See `Journal.entries`."""
        return self._entries

    def append(self, entry: Mapping[str, Json], most: int | None = None) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    async def sync(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class RunJournal:
    """The steps of one run: the recorded steps, and new steps."""

    def __init__(self, journal: Journal, contents: ContentStore | None = None, *, fresh: bool = False) -> None:
        """`fresh` states that the journal is new, so nothing is read. Large values are stored in `contents`; see `charge`.

        Raises:
            Failure: `damaged`, `io_error`, `not_found`.
        """
        self.id = journal.id
        self._journal = journal
        self._contents = contents
        self._known: dict[str, Step] = {}
        self._begins = defaultdict[str, int](int)
        #: The programs that had begun, by step. The request itself is step "".
        self._programs: dict[str, Entered] = {}
        #: The steps at which a resumed run was interrupted. They had begun, or a person had been asked, but they had not ended.
        self._interrupted: set[str] = set()
        #: What the program has read that its manifest doesn't know: a ``private`` file, a file by a ``link``, a file that a rule
        #: names. Of the last one, this is the digest of the rule.
        self._has_read: set[str] = set()
        if fresh or journal.id is None:
            return
        entries = journal.entries()
        check_form(journal.id, journal.header, entries)
        for entry in entries:
            if entry["t"] == "enter":
                self._programs[entry["step"]] = Entered(
                    entry["tool"],
                    entry["version"],
                    canonical(arguments_of(entry, contents)),
                    entry["mode"],
                    entry["approval"],
                    frozenset((rule, subject) for rule, subject in entry.get("asks", ())),
                    frozenset(entry.get("seen", ())),
                )
            elif entry["t"] == "read":
                self._has_read.add(entry["what"])
            elif entry["t"] == "ask":
                self._interrupted.add(entry["step"])
            elif entry["t"] in ("begin", "end"):
                self._begins[entry["step"]] += entry["t"] == "begin"
                self._read(entry)
        self._interrupted |= {*self._programs, *self._known}
        self._interrupted -= {name for name, step in self._known.items() if step.ended}

    def _read(self, entry: Mapping[str, Any]) -> None:
        known = self._known.get(entry["step"])
        if known is None or "tool" in entry:
            if "tool" not in entry or "version" not in entry:
                raise Failure("damaged", f"step {entry['step'][:100]} of the run ended and was never begun")
            arguments = arguments_of(entry, self._contents)
            known = self._known[entry["step"]] = Step(entry["tool"], entry["version"], arguments)
            known.changes = known.unknown = entry["t"] == "begin"
            known.before = entry.get("before")
        if entry["t"] == "end":
            known.ended, known.unknown = True, entry.get("unknown") is True
            known.effects = tuple(read_effect(e) for e in entry["effects"])
            known.log = entry.get("log", "")
            if "error" in entry:
                known.failure = read_failure(entry["error"])
                if known.failure.code in ENDING:
                    raise Failure(
                        "damaged",
                        f"step {entry['step'][:100]} of the run ended with {known.failure.code}, which no step does",
                    )
            else:
                known.value = value_of(entry, self._contents)

    def charge(self, contents: ContentStore | None) -> None:
        """From now on, store large values in these contents, which charge a session."""
        self._contents = contents

    def find(self, step: str, tool: str, version: str, arguments: Json, *, any_version: bool = False) -> Step | None:
        """The step in the journal, or None. Arguments of None match any arguments.

        Raises:
            Failure: `diverged` if the journal has another call in this step.
        """
        known = self._known.get(step)
        if known is None:
            return None
        if known.tool != tool or not (any_version or known.version == version) or not _same(known.arguments, arguments):
            raise Failure(
                "diverged",
                f"step {step} of the run was {_call(known.tool, known.arguments)}, and the program asks for "
                f"{_call(tool, arguments)}",
                hint="this program can't resume the run; run the tool again",
                tool=tool,
                details={
                    "step": step,
                    "journal": {"tool": known.tool, "version": known.version, "arguments": known.arguments},
                    "program": {"tool": tool, "version": version, "arguments": arguments},
                },
            )
        return known

    def within(self, step: str) -> list[Step]:
        """All steps inside the composite that `step` calls."""
        return [known for name, known in self._known.items() if name.startswith(f"{step}/")]

    def outcome(self) -> dict[str, Json]:
        """The number of steps with a change, and the steps with an unknown outcome: ``{applied, unknown: [{step, tool}]}``."""
        applied = sum(step.ended and _applied(step) for step in self._known.values())
        unknown: list[Json] = [
            {"step": name, "tool": step.tool} for name, step in self._known.items() if step.unknown or not step.ended
        ]
        return {"applied": applied, "unknown": unknown}

    def times_begun(self, step: str) -> int:
        """The number of times that earlier processes began a step that may change something."""
        return self._begins[step]

    def was_interrupted_at(self, step: str) -> bool:
        """Whether the run was interrupted or suspended in this step."""
        return step in self._interrupted

    def may_have_changed(self) -> bool:
        """Whether a step changed something or may have changed something."""
        return any(s.changes and (s.unknown or not _never_made(s.failure)) for s in self._known.values())

    def begin_step(self, step: str, definition: ToolDefinition, arguments: Json, before: str | None = None) -> None:
        """Append the beginning of a step that may change something. The entry of its decision commits it.

        Raises:
            Failure: `too_large`, `unknown_outcome`, `io_error`.
        """
        entry: dict[str, Json] = {"t": "begin", "step": step, **_facts(definition, arguments)}
        if before is not None:
            entry["before"] = before
        self._append_bounded(entry, "arguments")
        self._known[step] = Step(definition.name, definition.version, arguments, changes=True)

    def end_step(
        self,
        step: str,
        definition: ToolDefinition,
        arguments: Json,
        result: Failure | Json,
        effects: Sequence[Effect],
        began: float = 0.0,
        log: str = "",
    ) -> None:
        """Append the end of a step: its result or failure, its effects, and what it printed.

        `began` is in seconds since 1970; it is 0 for a call that was refused.

        Raises:
            Failure: See `begin_step`.
        """
        entry: dict[str, Json] = {"t": "end", "step": step, "effects": [e.as_dict() for e in effects]}
        known = self._known.get(step)
        if known is None:
            if not began and isinstance(result, Failure):
                arguments = of_refused(arguments)
            entry |= _facts(definition, arguments)
            if began:
                entry["began"] = round(began, 6)
            known = self._known[step] = Step(definition.name, definition.version, arguments)
        known.ended = True
        known.effects = tuple(effects)
        if log:
            entry["log"] = known.log = log
        if known.unknown:
            # The first attempt may have had its effect, independent of the second attempt's result.
            entry["unknown"] = True
        if isinstance(result, Failure):
            known.failure = result
            self._append_bounded(entry | {"error": bounded_failure(result)}, "arguments")
        else:
            self._append_bounded(entry | {"value": result}, "value", "arguments")

    def keep(self, output: Json) -> None:
        """Store the output of a step if it is too large for an entry.

        Raises:
            Failure: `budget_exceeded` if it may not be stored for the session; `io_error`.
        """
        if self._contents is not None and len(data := stored_form(output)) > MAX_ENTRY:
            self._contents.put(data)

    def ask(self, step: str, approval: str, arguments: Json) -> None:
        """Append that a person is asked about a step. The entry has the complete arguments.

        A person who answers in another process needs them.

        Raises:
            Failure: `too_large`, `unknown_outcome`.
        """
        self._append({"t": "ask", "step": step, "approval": approval, "arguments": arguments})
        self._journal.flush()

    def entered(self, step: str, definition: ToolDefinition, arguments: Json) -> Entered | None:
        """The earlier entry of the same call, if the run has already begun it. The call is not charged or asked about again."""
        entry = self._programs.get(step)
        same = entry is not None and entry[:3] == (definition.name, definition.version, canonical(arguments))
        return entry if same else None

    def enter(
        self,
        step: str,
        definition: ToolDefinition,
        arguments: Json,
        mode: str,
        approval: str | None,
        asks: Iterable[tuple[str, str]],
        seen: Iterable[str],
    ) -> None:
        """Append that a program or the request itself begins, with the facts of `Entered`. The entry of its decision commits it.

        Raises:
            Failure: `too_large`, `unknown_outcome`.
        """
        facts: dict[str, Json] = {
            "mode": mode,
            "approval": approval,
            "asks": [[*a] for a in asks],
            "seen": sorted(seen),
        }
        self._append_bounded({"t": "enter", "step": step, **_facts(definition, arguments), **facts}, "arguments")

    def note_read(self, what: str, path: str) -> None:
        """Append what the program has read, and the first path, so that it is known after the run was resumed.

        Raises:
            Failure: `unknown_outcome`.
        """
        if what not in self._has_read:
            self._has_read.add(what)
            self._append({"t": "read", "what": what, "path": path})

    def has_read(self, what: str) -> bool:
        """Whether the program has read this. Of a run that is not recorded nobody knows it, so it may have read everything."""
        return self.id is None or what in self._has_read

    def set_state(self, state: str, **facts: Json) -> None:
        """Append the new state of the run."""
        self._append_bounded({"t": "state", "state": state, **facts}, "value")

    def _append_bounded(self, entry: dict[str, Json], *large: str) -> None:
        """Append an entry. If it is large, move the large values in the fields `large` to the content store."""
        if self._contents is not None:
            try:
                self._append(entry, MAX_ENTRY)
                return
            except Failure as failure:
                if failure.code != "too_large":
                    raise
            for name in large:
                if name in entry and len(data := stored_form(entry[name])) > MAX_VALUE:
                    try:
                        ref = self._contents.put(data)
                    except Failure as failure:
                        if failure.rule == QUOTA:
                            # What was done must be recorded. The entry has the value itself, and is charged like any other.
                            continue
                        raise journal_failed(failure) from None
                    entry[ref_name(name, entry.pop(name))] = ref
        self._append(entry)

    def _append(self, entry: dict[str, Json], most: int | None = None) -> None:
        entry["at"] = round(time.time(), 6)
        try:
            self._journal.append(entry, most)
        except Failure as failure:
            if failure.code == "too_large":
                raise
            raise journal_failed(failure) from None

    def close(self) -> None:
        """Close the journal; another process can then resume the run."""
        self._journal.close()

    async def sync(self) -> None:
        """Wait until all entries are on the disk.

        Raises:
            Failure: `unknown_outcome`. This failure ends the run.
        """
        try:
            await self._journal.sync()
        except Failure as failure:
            raise journal_failed(failure) from None


def may_have_changed(entries: Iterable[Mapping[str, Any]]) -> bool:
    """`RunJournal.may_have_changed` for the entries of a journal."""
    changed: dict[str, bool] = {}
    for entry in entries:
        if entry.get("t") == "begin":
            changed[entry["step"]] = True
        elif entry.get("t") == "end" and entry["step"] in changed:
            failure = read_failure(entry["error"]) if "error" in entry else None
            changed[entry["step"]] = "unknown" in entry or not _never_made(failure)
    return any(changed.values())


def _never_made(failure: Failure | None) -> bool:
    """Whether the call can't have had an effect, because its decision was not recorded. Other denials can occur during a call."""
    return failure is not None and failure.rule == "unrecorded"


def _applied(step: Step) -> bool:
    return (step.changes and step.failure is None) or any(may_change(e.kind, e.facts) for e in step.effects)


def journal_failed(failure: Failure) -> Failure:
    """The failure that ends a run whose journal can't be written. The next effects of the run would not be recorded."""
    return Failure(
        "unknown_outcome",
        f"the run's journal can't be written, so the run stops here: {failure.message}",
        hint="free some disk space, check what was done (`albert runs show`), then resume the run",
    )


def bounded_failure(failure: Failure) -> dict[str, Json]:
    """A failure's JSON form. A program can produce a message and details of any size, so both are shortened."""
    document = failure.as_dict()
    if len(failure.message) > MAX_MESSAGE:
        document["message"] = brief(failure.message, MAX_MESSAGE)
    if len(canonical(failure.details)) > MAX_DETAILS:
        document["details"] = {}
    return document


def _same(written: Json, arguments: Json) -> bool:
    """Whether the journal has these arguments, or their hash. Arguments of None match any arguments."""
    if arguments is None or canonical(written) == canonical(arguments):
        return True
    return bool(written == of_refused(arguments))


def _facts(definition: ToolDefinition, arguments: Json) -> dict[str, Json]:
    return {"tool": definition.name, "version": definition.version, "arguments": arguments}


def _call(tool: str, arguments: Json) -> str:
    return f"{tool}({brief(canonical(arguments).decode(), 200)})"

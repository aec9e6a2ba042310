"""What a run has done, by step, so that it can be gone through again without doing it again.

A program is deterministic but for its calls, so the journal of its calls is the run's whole state. A step is a call's place in the
program: ``3``, ``2.0.1`` within `gather`, ``3/0`` the first call of the saved tool that is called third. What only reads is written
down once it has ended; what may change something is on the disk before it begins and after it has ended. So after a crash a step is
one of three: ended, and then its answer is in the journal; not begun, and then it is made; or begun, and then nobody knows.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from albert_tools.engine.call.errors import shown
from albert_tools.engine.model.definition import Json, ToolDefinition, canonical
from albert_tools.engine.model.error_codes import ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.protocols import ContentStore, Journal, Ledger
from albert_tools.engine.model.result import Effect
from albert_tools.engine.runs.journal_reader import arguments_of, loaded, proved, read_effect, read_failure

#: Where the name of a value stands that is kept beside the journal, for it is larger than a line may be.
REFS = {"value": "ref", "arguments": "arguments_ref"}
#: Characters of a failure's message, and bytes of its details, that are kept.
MAX_MESSAGE, MAX_DETAILS = 64 * 1024, 4 * 1024 * 1024


@dataclass(slots=True)
class Step:
    """One call as the journal has it. `value` counts when `ended` without `failure`."""

    tool: str
    version: str
    arguments: Json
    ended: bool = False
    #: Whether it was written down as it began, because it may change something.
    changes: bool = False
    #: Whether it was begun by a process that died before it had ended, and not again since.
    unknown: bool = False
    #: What stood at the paths that it changes, as it was begun: a hash, where it can be of use.
    before: str | None = None
    value: Json = None
    failure: Failure | None = None
    effects: tuple[Effect, ...] = ()
    #: What a program has printed, with the tools that it called.
    log: str = ""


class Entered(NamedTuple):
    """A program that was begun: with which arguments (canonical JSON), in which mode, and by whose approval."""

    tool: str
    version: str
    arguments: bytes
    mode: str
    approval: str | None


class Steps:
    """The steps of one run: those in its journal, and new ones."""

    def __init__(self, journal: Journal, contents: ContentStore | None = None, *, fresh: bool = False) -> None:
        """`fresh` is a journal that was begun just now: there is nothing in it to be read."""
        self.journal = journal
        self._contents = contents
        self._known: dict[str, Step] = {}
        self._begins: Counter[str] = Counter()
        #: The programs that were begun, by step, the request itself under "".
        self._entered: dict[str, Entered] = {}
        #: What the run was in the middle of, as it is gone on with: steps begun, programs entered, calls asked about.
        self._at: set[str] = set()
        if fresh:
            return
        entries = journal.entries()
        proved(journal.id, journal.header, entries)
        for entry in entries:
            if entry["t"] == "enter":
                facts = (entry["tool"], entry["version"], canonical(arguments_of(entry, contents)))
                self._entered[entry["step"]] = Entered(*facts, entry["mode"], entry["approval"])
            elif entry["t"] == "ask":
                self._at.add(entry["step"])
            elif entry["t"] in ("begin", "end"):
                self._begins[entry["step"]] += entry["t"] == "begin"
                self._read(entry)
        self._at |= {*self._entered, *self._known}
        self._at -= {name for name, step in self._known.items() if step.ended}

    def _read(self, entry: Mapping[str, Any]) -> None:
        known = self._known.get(entry["step"])
        if known is None or "tool" in entry:
            if "tool" not in entry or "version" not in entry:
                raise Failure("damaged", f"step {entry['step'][:100]} of the run has ended and was never begun")
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
                    raise Failure("damaged", f"step {entry['step'][:100]} of the run has ended as no step does")
            elif "ref" in entry:
                known.value = loaded(self._contents, entry["ref"])
            else:
                known.value = entry.get("value")

    def find(self, step: str, tool: str, version: str, arguments: Json) -> Step | None:
        """What the journal has of a step; None when it was never begun. `arguments` None are whatever they were.

        Raises:
            Failure: `diverged`: the journal has another call there.
        """
        known = self._known.get(step)
        if known is None:
            return None
        if (known.tool, known.version) != (tool, version) or (
            arguments is not None and canonical(known.arguments) != canonical(arguments)
        ):
            raise Failure(
                "diverged",
                f"step {step} of the run was {_call(known.tool, known.arguments)}, and the program asks for "
                f"{_call(tool, arguments)}",
                hint="the run can't go on with this program; run the tool anew",
                tool=tool,
                details={
                    "step": step,
                    "journal": {"tool": known.tool, "version": known.version, "arguments": known.arguments},
                    "program": {"tool": tool, "version": version, "arguments": arguments},
                },
            )
        return known

    def below(self, step: str) -> list[Step]:
        """The steps that the saved tool called in `step` has made, those of the tools that it called included."""
        return [known for name, known in self._known.items() if name.startswith(f"{step}/")]

    def outcome(self) -> dict[str, Json]:
        """How many steps have changed something, and which may have: ``{applied, unknown: [{step, tool}]}``."""
        applied = sum(step.ended and _applied(step) for step in self._known.values())
        unknown: list[Json] = [
            {"step": name, "tool": step.tool} for name, step in self._known.items() if step.unknown or not step.ended
        ]
        return {"applied": applied, "unknown": unknown}

    def begins(self, step: str) -> int:
        """How often a step that may change something was begun by those who had the run before."""
        return self._begins[step]

    async def held(self, ledger: Ledger, created: str, single: bool) -> None:
        """See that it is what the ledger has of the run. `single` is one of a primitive.

        Raises:
            Failure: `damaged`, `io_error`.
        """
        from albert_tools.engine.runs.ledger_check import hold, recorded

        found, folded = await asyncio.to_thread(recorded, ledger, self.journal.id, created)
        hold(self.journal.id, self._known, found, folded, single)

    def was_at(self, step: str) -> bool:
        """Whether the run, as it is gone on with, was in the middle of a step."""
        return step in self._at

    def changed(self) -> bool:
        """Whether a step has changed something, or may have."""
        return any(s.changes and (s.unknown or not _not_begun(s.failure)) for s in self._known.values())

    def begun(self, step: str, definition: ToolDefinition, arguments: Json, before: str | None = None) -> None:
        """A step that may change something begins; to be synced before it does. `before` is what stands where it would."""
        entry: dict[str, Json] = {"t": "begin", "step": step, **_facts(definition, arguments)}
        if before is not None:
            entry["before"] = before
        self._add_or_name(entry, "arguments")
        self._known[step] = Step(definition.name, definition.version, arguments, changes=True)

    def ended(
        self,
        step: str,
        definition: ToolDefinition,
        arguments: Json,
        came: Failure | Json,
        effects: Sequence[Effect],
        began: float = 0.0,
        log: str = "",
    ) -> None:
        """A step has ended; `began` is when it was begun (seconds since 1970), 0 for one that never was; `log` what it printed."""
        entry: dict[str, Json] = {"t": "end", "step": step, "effects": [e.as_dict() for e in effects]}
        known = self._known.get(step)
        if known is None:
            entry |= _facts(definition, arguments)
            if began:
                entry["began"] = round(began, 6)
            known = self._known[step] = Step(definition.name, definition.version, arguments)
        known.ended = True
        known.effects = tuple(effects)
        if log:
            entry["log"] = known.log = log
        if known.unknown:
            # Whatever came of trying again, or of a person's no: what was begun then may have been done.
            entry["unknown"] = True
        if isinstance(came, Failure):
            self._add_or_name(entry | {"error": briefly(came)}, "arguments")
        else:
            self._add_or_name(entry | {"value": came}, "value", "arguments")

    def asked(self, step: str, approval: str, arguments: Json) -> None:
        """A person is asked about a step; for whoever looks from another process.

        Raises:
            Failure: `too_large`, `unknown_outcome`.
        """
        self._add({"t": "ask", "step": step, "approval": approval, "arguments": arguments})
        self.journal.flush()

    def entered(self, step: str, definition: ToolDefinition, arguments: Json) -> Entered | None:
        """That a call was begun before, and now goes on: it is the same one, so it isn't charged or asked about again."""
        found = self._entered.get(step)
        same = found is not None and found[:3] == (definition.name, definition.version, canonical(arguments))
        return found if same else None

    def enter(self, step: str, definition: ToolDefinition, arguments: Json, mode: str, approval: str | None) -> None:
        """A program begins, or the request itself; that survives this process."""
        entry = {"t": "enter", "step": step, **_facts(definition, arguments), "mode": mode, "approval": approval}
        self._add_or_name(entry, "arguments")
        try:
            self.journal.flush()
        except Failure as failure:
            raise unwritten(failure) from None

    def state(self, state: str, **facts: Json) -> None:
        """What has become of the run as a whole."""
        self._add_or_name({"t": "state", "state": state, **facts}, "value")

    def _add_or_name(self, entry: dict[str, Json], *large: str) -> None:
        """Add an entry; if it is too large without the values `large`, as many as need be, which are kept beside it."""
        for name in (None, *large):
            if name is not None and name in entry and self._contents is not None:
                entry[REFS[name]] = self._contents.put(canonical(entry.pop(name)))
            try:
                self._add(entry)
                return
            except Failure as failure:
                if failure.code != "too_large" or self._contents is None or name == large[-1]:
                    raise

    def _add(self, entry: dict[str, Json]) -> None:
        entry["at"] = round(time.time(), 6)
        try:
            self.journal.append(entry)
        except Failure as failure:
            if failure.code == "too_large":
                raise
            raise unwritten(failure) from None

    async def sync(self) -> None:
        """Wait until everything is on the disk.

        Raises:
            Failure: `unknown_outcome`, which ends the run.
        """
        try:
            await self.journal.sync()
        except Failure as failure:
            raise unwritten(failure) from None


def changed(entries: Iterable[Mapping[str, Any]]) -> bool:
    """As `Steps.changed`, of a journal's entries."""
    found: dict[str, bool] = {}
    for entry in entries:
        if entry.get("t") == "begin":
            found[entry["step"]] = True
        elif entry.get("t") == "end" and entry["step"] in found:
            failure = read_failure(entry["error"]) if "error" in entry else None
            found[entry["step"]] = "unknown" in entry or not _not_begun(failure)
    return any(found.values())


def _not_begun(failure: Failure | None) -> bool:
    """Whether nothing can have been done: its decision couldn't be kept. Another denial may come in the middle of a call."""
    return failure is not None and failure.rule == "unrecorded"


def _applied(step: Step) -> bool:
    return (step.changes and step.failure is None) or any(e.kind != "read" for e in step.effects)


def unwritten(failure: Failure) -> Failure:
    """What a run ends with whose journal can't be written: going on would do what nobody could account for."""
    return Failure(
        "unknown_outcome",
        f"the run's journal can't be written, so the run stops here: {failure.message}",
        hint="make room, see what was done (`albert runs show`), then resume the run",
    )


def briefly(failure: Failure) -> dict[str, Json]:
    """A failure as it is kept: what a program said of it is as long as a program likes."""
    document = failure.as_dict()
    if len(failure.message) > MAX_MESSAGE:
        document["message"] = brief(failure.message, MAX_MESSAGE)
    if len(canonical(failure.details)) > MAX_DETAILS:
        document["details"] = {}
    return document


def _facts(definition: ToolDefinition, arguments: Json) -> dict[str, Json]:
    return {"tool": definition.name, "version": definition.version, "arguments": arguments}


def _call(tool: str, arguments: Json) -> str:
    return f"{tool}({shown(canonical(arguments).decode(), 200, quoted=False)})"

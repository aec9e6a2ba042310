"""Provides the rules in force, and reads a rules file again after it has changed.

Every call needs the rules, so a check costs only one `lstat` for each file and no lock. After a change, the owner's file and the
project's file are read together and replace the old rules in one step. So no call uses one new file with one old file. If a
changed file contains a mistake, the old rules stay in force. The mistake is reported once in the ledger, and `problem` describes
it until it is corrected. If no valid rules have been read yet, every call is denied, and the denial contains the mistake.

If a file that was read is deleted, this counts as a mistake too, for three reasons. A project's file can only restrict, so
without it more would be allowed. The owner's file may contain the only denials. And some editors delete a file for a moment when
they save it. To remove all rules, leave an empty file.

File timestamps have a limited resolution. A file that changed immediately before it was read could change again without a new
timestamp. So such a file is read a second time shortly afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from albert_tools.engine.authority.authorization import Authority
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import HomeFile, Stamp
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.model.redaction import redacted_text
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import Governance, load_governance

#: Two changes of a file within this many nanoseconds can have the same timestamp: a few ticks of the slowest common clock (10 ms).
_MOMENT_NS = 50_000_000

#: The most attempts to read files that change meanwhile. Then a mistake is reported, and the next call tries again.
_TRIES = 3

#: The most workspaces whose index of the rules is cached.
_MAX_WORKSPACES = 64

#: Facts that change with each file; None if the file doesn't exist.
Stamps = tuple[Stamp | None, ...]
#: The stamp of a file that can't be reached.
_UNREACHABLE: Stamp = (-1, 0, 0, 0)


class RulesInForce(NamedTuple):
    """The rules that apply to a call, and the authority that applies them."""

    governance: Governance
    authority: Authority

    def timeout(self, definition: ToolDefinition) -> float:
        """The most seconds that a call of a tool may take: by its definition, the rules on it, and the limits of every run."""
        limits = self.governance.limits
        most = limits.run_seconds if definition.kind == "composite" else limits.call_seconds
        return min(most, definition.timeout, self.authority.policy.numbers(definition).timeout)


class _Seen(NamedTuple):
    """The last check of the files, its result, and the time (ns) until which a file may change without a new timestamp."""

    stamps: Stamps
    answer: Governance | Failure
    unsure_until: int


class RulesSource:
    """The rules of an owner (or an application) and a project. Safe to use from any thread."""

    def __init__(
        self,
        user: Path | HomeFile | Governance,
        project: Path | None,
        *,
        required: bool = False,
        ledger: Ledger | None = None,
        primitives: Collection[str] = (),
    ) -> None:
        """The constructor doesn't read the files.

        Args:
            user: The owner's file, in a folder or in the home's database, or the constant rules of an application.
            project: The project's file.
            required: Whether the owner's file must exist.
            ledger: Gets an entry for each change, at the first call under the new rules.
            primitives: The names of the primitives. A rule on a misspelled name is a mistake.
        """
        self._user = user
        self._project = project
        self._required = required
        self._ledger = ledger
        self._files = tuple(f for f in (user, project) if f is not None and not isinstance(f, Governance))
        self._places = tuple(os.fspath(f) if isinstance(f, Path) else f for f in self._files)
        self._primitives = primitives
        self._seen: _Seen | None = None
        self._in_force: tuple[Governance | None, dict[str, RulesInForce]] = None, {}
        self._read: set[Path | HomeFile] = set()
        self._problem: str | None = None
        self._unrecorded: list[dict[str, Any]] = []
        self._lock = Lock()

    @property
    def problem(self) -> str | None:
        """The reason why the files can't be used, from the last check; None if their rules are in force."""
        return self._problem

    def current(self) -> Governance | Failure:
        """The rules in force, or the reason why no rules are in force."""
        seen = self._seen
        if seen is not None and seen.stamps == self._stamps():
            if not seen.unsure_until or time.time_ns() < seen.unsure_until:
                return seen.answer
        return self._reread()

    def in_force(self, workspace: str, modes: Modes, *, audit: bool = True) -> RulesInForce | Failure:
        """The rules and the authority for a call in `workspace`, an absolute canonical path; or the failure, if no rules are in
        force.

        A change is written to the ledger before the first call under the new rules. Pass ``audit=False`` to read the rules
        without writing this entry.
        """
        governance = self.current()
        if self._unrecorded and audit:
            self._record()
        if isinstance(governance, Failure):
            # Return a copy, because each raise adds a traceback to the failure.
            return governance.copy()
        cached_for, cache = self._in_force
        if cached_for is not governance or len(cache) > _MAX_WORKSPACES:
            cache = {}
            self._in_force = governance, cache
        rules = cache.get(workspace)
        if rules is None or rules.authority.modes is not modes:
            policy = Policy(governance.layers(), workspace, os.path.expanduser("~"))
            rules = cache[workspace] = RulesInForce(governance, Authority(policy, modes))
        return rules

    def _stamps(self) -> Stamps:
        return tuple(map(_stamp, self._places))

    def _reread(self) -> Governance | Failure:
        """Read the files. If they are valid, put their rules in force."""
        with self._lock:
            seen = self._seen
            before = self._stamps()
            if seen is not None and seen.stamps == before and not seen.unsure_until:
                return seen.answer  # Another thread has read them.
            for _ in range(_TRIES):
                now = time.time_ns()
                governance = self._load(before)
                after = self._stamps()
                if after == before:
                    break
                before, governance = after, _changing()
            else:
                before = ()  # These stamps never match, so the next call reads the files again.
            if isinstance(governance, Governance):
                self._read |= _existing(self._files, before)
            answer = self._answer(governance)
            self._seen = _Seen(before, answer, _unsure_until(before, now))
        return answer

    def _load(self, stamps: Stamps) -> Governance | Failure:
        existing = _existing(self._files, stamps)
        gone = [path for path in self._files if path in self._read and path not in existing]
        if gone:
            return Failure(
                "governance_unavailable",
                f"the file of rules {str(gone[0])!r} is gone; its rules stay in force",
                hint="put the file back; an empty file has no rules",
            )
        if self._required and self._user not in existing:
            return Failure(
                "governance_unavailable",
                f"there is no file of rules {str(self._user)!r}",
                hint="give the path of a file that exists",
            )
        try:
            return load_governance(self._user, self._project, self._primitives)
        except Failure as failure:
            return failure.copy()

    def _answer(self, governance: Governance | Failure) -> Governance | Failure:
        """The rules that apply from now on. Notes what has changed."""
        old = self._seen.answer if self._seen is not None else None
        if isinstance(governance, Failure):
            in_force = old if isinstance(old, Governance) else None
            if governance.message != self._problem:
                self._note("refused", in_force.revision if in_force else "", governance.message)
            self._problem = governance.message
            return in_force or governance
        corrected, self._problem = self._problem is not None, None
        if isinstance(old, Governance) and old.revision == governance.revision:
            # The rules are equal, maybe with a different layout. Keep the old object and its indexes.
            if corrected:
                self._note("loaded", old.revision)
            return old
        self._note("loaded", governance.revision)
        return governance

    def _note(self, event: str, revision: str, message: str = "") -> None:
        """Note a change for the ledger: ``loaded``, or ``refused`` with the reason as `message`.

        `revision` belongs to the rules in force. It is empty if there are none.
        """
        if self._ledger is not None:
            data = {"event": event, "revision": revision, "files": [str(path) for path in self._files]}
            if message:
                data["message"] = redacted_text(message)
            self._unrecorded.append(data)

    def _record(self) -> None:
        with self._lock:
            while self._unrecorded and self._ledger is not None:
                # If the ledger is broken, the pipeline detects it with its next entry and handles it.
                with suppress(Failure):
                    self._ledger.append("policy", self._unrecorded[0])
                del self._unrecorded[0]


def _existing(files: tuple[Path | HomeFile, ...], stamps: Stamps) -> set[Path | HomeFile]:
    return {path for path, stamp in zip(files, stamps, strict=True) if stamp is not None}


def _changing() -> Failure:
    return Failure(
        "governance_unavailable", "the rules change while they are read", hint="try again when the files are written"
    )


def _stamp(place: str | HomeFile) -> Stamp | None:
    try:
        if not isinstance(place, str):
            return place.stamp()
        facts = os.lstat(place)
    except Failure:
        return _UNREACHABLE
    except OSError:
        # If a file has no facts, reading it fails too, and that failure contains the reason.
        return None
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def _unsure_until(stamps: Stamps, now: int) -> int:
    """The time until which a file could change without a new timestamp (ns since 1970); 0 if this time is over."""
    # Use the inode's change time. A program can set the modification time, but not the change time.
    latest = max((s[1] for s in stamps if s is not None), default=0)
    return now + _MOMENT_NS if now - _MOMENT_NS < latest <= now + _MOMENT_NS else 0

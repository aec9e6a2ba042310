"""The rules in force, read again when one of their files has changed.

Every call asks for them, so asking costs one `lstat` for each file and no lock. After a change the owner's file and the project's
are read together and replace the old rules in one step: no call sees one file new and the other old. A change with a mistake leaves
the old rules in force; it is reported once, to listeners and in the ledger, and `problem` describes it until it is corrected. If no
usable rules have been read yet, the mistake is the answer and every call is denied.

A file that was read and is gone counts as a change with a mistake. A project's file only tightens, so without it more would be
allowed; the owner's may be all that denies something; and some editors remove a file for a moment when they save. To have no rules,
leave an empty file.

The timestamps of a file are only as fine as the system's clock for files. A file that changed just before it was read could change
again without a new timestamp, so it is read a second time shortly afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from albert_tools.engine.authority.authorization import Authority
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.model.redaction import redacted_text
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import Governance, load_governance

#: Nanoseconds in which two changes of a file can have the same timestamp: a few ticks of the slowest clock in use (10 ms).
_MOMENT_NS = 50_000_000

#: Attempts to read files that change meanwhile. Then that is reported as a mistake, and the next call tries again.
_TRIES = 3

#: Workspaces whose index of the rules is cached.
_MAX_WORKSPACES = 64

#: Facts that differ after a change of a file; None where there is no file.
Stamp = tuple[int, int, int, int] | None
Stamps = tuple[Stamp, ...]


class RulesInForce(NamedTuple):
    """The rules that apply to a call, and the authority that judges by them."""

    governance: Governance
    authority: Authority


class Change(NamedTuple):
    """A change, for listeners: ``loaded``, with the new rules' `revision`, or ``refused``, with a `message` that says why.

    The `revision` of a refused change is that of the rules that stay in force; empty if there are none.
    """

    kind: str
    revision: str
    message: str = ""


class _Seen(NamedTuple):
    """The last look at the files, the answer since then, and until when (ns) a file may change without a new timestamp."""

    stamps: Stamps
    answer: Governance | Failure
    unsure_until: int


class RulesSource:
    """The rules of a user (or an application) and a project. Safe to use from any thread."""

    def __init__(
        self,
        user: Path | Governance,
        project: Path | None,
        *,
        required: bool = False,
        ledger: Ledger | None = None,
        interval: float = 0.0,
    ) -> None:
        """Nothing is read yet.

        Args:
            user: The owner's file, or the rules of an application, which never change.
            project: The project's file.
            required: Whether the owner's file must exist.
            ledger: Records each change, at the first call that is judged by it.
            interval: Seconds between looks at the files; 0 looks at every call, so that an edit applies to the next one.
        """
        self._user = user
        self._project = project
        self._required = required
        self._ledger = ledger
        self._files = tuple(p for p in (user, project) if isinstance(p, Path))
        self._paths = tuple(os.fspath(path) for path in self._files)
        self._interval = interval
        self._next_look = 0.0
        self._seen: _Seen | None = None
        self._in_force: tuple[Governance | None, dict[str, RulesInForce]] = None, {}
        self._read: set[Path] = set()
        self._problem: str | None = None
        self._unrecorded: list[dict[str, Any]] = []
        self._listeners: list[Callable[[Change], None]] = []
        self._lock = Lock()

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` at each change from now on, in the thread that sees it."""
        self._listeners.append(listener)

    @property
    def problem(self) -> str | None:
        """Why the files can't be used, as they were last seen; None if they are in force."""
        return self._problem

    def current(self) -> Governance | Failure:
        """The rules in force, or why there are none."""
        seen = self._seen
        if self._interval and seen is not None:
            if (now := time.monotonic()) < self._next_look:
                return seen.answer
            self._next_look = now + self._interval
        if seen is not None and seen.stamps == self._stamps():
            if not seen.unsure_until or time.time_ns() < seen.unsure_until:
                return seen.answer
        return self._reread()

    def in_force(self, workspace: str, modes: Modes, *, audit: bool = True) -> RulesInForce | Failure:
        """The rules and the authority for a call in `workspace`, an absolute canonical path; or why there are none.

        A change is written to the ledger before the first call is judged by it. Pass ``audit=False`` to read the rules without
        writing that entry.
        """
        governance = self.current()
        if self._unrecorded and audit:
            self._record()
        if isinstance(governance, Failure):
            # A copy, because each raise adds a traceback to the failure.
            return replace(governance)
        cached_for, cache = self._in_force
        if cached_for is not governance or len(cache) > _MAX_WORKSPACES:
            cache = {}
            self._in_force = governance, cache
        found = cache.get(workspace)
        if found is None or found.authority.modes is not modes:
            policy = Policy(governance.layers(), workspace, os.path.expanduser("~"))
            found = cache[workspace] = RulesInForce(governance, Authority(policy, modes))
        return found

    def _stamps(self) -> Stamps:
        return tuple([_stamp(path) for path in self._paths])

    def _reread(self) -> Governance | Failure:
        """Read the files, and put their rules in force if they can be used."""
        with self._lock:
            seen = self._seen
            before = self._stamps()
            if seen is not None and seen.stamps == before and not seen.unsure_until:
                return seen.answer  # Another thread has read them.
            for _ in range(_TRIES):
                now = time.time_ns()
                found = self._load(before)
                after = self._stamps()
                if after == before:
                    break
                before, found = after, _changing()
            else:
                before = ()  # Equal to no look at the files, so the next call reads them again.
            if isinstance(found, Governance):
                self._read |= _existing(self._files, before)
            answer, changes = self._answer(found)
            self._seen = _Seen(before, answer, _unsure_until(before, now))
        for change in changes:
            for listener in self._listeners:
                listener(change)
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
            return load_governance(self._user, self._project)
        except Failure as failure:
            return replace(failure)

    def _answer(self, found: Governance | Failure) -> tuple[Governance | Failure, list[Change]]:
        """The rules that apply from now on, and the changes to report."""
        old = self._seen.answer if self._seen is not None else None
        if isinstance(found, Failure):
            in_force = old if isinstance(old, Governance) else None
            news = found.message != self._problem
            self._problem = found.message
            change = Change("refused", in_force.revision if in_force else "", found.message)
            return in_force or found, [self._queued(change)] if news else []
        corrected, self._problem = self._problem is not None, None
        if isinstance(old, Governance) and old.revision == found.revision:
            # The same rules, perhaps written differently: keep their indexes.
            return old, [self._queued(Change("loaded", old.revision))] if corrected else []
        return found, [self._queued(Change("loaded", found.revision))]

    def _queued(self, change: Change) -> Change:
        if self._ledger is not None:
            data = {"event": change.kind, "revision": change.revision, "files": [str(path) for path in self._files]}
            if change.message:
                data["message"] = redacted_text(change.message)
            self._unrecorded.append(data)
        return change

    def _record(self) -> None:
        with self._lock:
            while self._unrecorded and self._ledger is not None:
                # The pipeline writes to the ledger next, and handles a broken one.
                with suppress(Failure):
                    self._ledger.append("policy", self._unrecorded[0])
                del self._unrecorded[0]


def _existing(files: tuple[Path, ...], stamps: Stamps) -> set[Path]:
    return {path for path, stamp in zip(files, stamps, strict=True) if stamp is not None}


def _changing() -> Failure:
    return Failure(
        "governance_unavailable", "the rules change while they are read", hint="try again when the files are written"
    )


def _stamp(path: str) -> Stamp:
    try:
        facts = os.lstat(path)
    except OSError:
        # A file without facts can't be read either; reading it reports why.
        return None
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def _unsure_until(stamps: Stamps, now: int) -> int:
    """Until when a file could change without a new timestamp (ns since 1970); 0 if that time is over."""
    # The time of the inode's change can't be set, unlike that of the content's.
    latest = max((s[1] for s in stamps if s is not None), default=0)
    return now + _MOMENT_NS if now - _MOMENT_NS < latest <= now + _MOMENT_NS else 0

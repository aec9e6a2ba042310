"""The rules in force, read anew when a file of theirs has changed.

Every call asks, so asking costs two looks at files that have not changed, and no lock. What has changed is read whole, the
owner's file and the project's together, and takes the place of what was there in one step: nobody sees one file new and the
other old. A change that can't be used changes nothing; it is said once, to listeners and in the ledger, and stands in
`problem` until it is mended. Only where there was nothing usable yet is the mistake itself the answer, and everything is
denied.

A file that was read and is gone counts as such a change, whosever it is. A project's file tightens, so its loss would loosen;
the owner's may be all that denies something; and an editor that writes anew has the file gone for a moment. Who wants no rules
leaves an empty file.

A file's time is only as fine as the system's clock for files. One that was changed just before it was read may change once more
without anything to see, so it is read a second time when the moment is over.
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

#: Nanoseconds in which two changes of a file may bear the same time: a few ticks of the slowest clock in use (10 ms).
_MOMENT_NS = 50_000_000

#: Readings of files that change while they are read, before that is told as a mistake; the next call looks again.
_TRIES = 3

#: Workspaces whose index of the rules is kept.
_MAX_WORKSPACES = 64

#: What a change of a file changes: contents, owner or name. None where there is no file.
Stamp = tuple[int, int, int, int] | None
Stamps = tuple[Stamp, ...]


class Ruling(NamedTuple):
    """What one call is judged by: the rules, and who judges by them."""

    governance: Governance
    authority: Authority


class Change(NamedTuple):
    """Told to listeners. `kind` is ``loaded``, with the new rules' `revision`, or ``refused``, with the `message` that says why;
    `revision` is then that of the rules that stay, or empty when there are none."""

    kind: str
    revision: str
    message: str = ""


class _Seen(NamedTuple):
    """One look at the files: what they were, what followed, and until when (ns) a file may have changed unseen."""

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
        """`user` is a file, or the rules that an application gives, which never change. With `required` the user's file must be
        there. `ledger` is told of each change, at the first call that is judged by it. Files are looked at once within `interval`
        seconds; 0 means for every call, so that an edit is in force at the next. Nothing is read yet."""
        self._user = user
        self._project = project
        self._required = required
        self._ledger = ledger
        self._files = tuple(p for p in (user, project) if isinstance(p, Path))
        self._paths = tuple(os.fspath(path) for path in self._files)
        self._interval = interval
        self._next_look = 0.0
        self._seen: _Seen | None = None
        self._rulings: tuple[Governance | None, dict[str, Ruling]] = None, {}
        self._read: set[Path] = set()
        self._problem: str | None = None
        self._unsaid: list[dict[str, Any]] = []
        self._listeners: list[Callable[[Change], None]] = []
        self._lock = Lock()

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Be told of each change that is seen from here on; in the thread that sees it."""
        self._listeners.append(listener)

    @property
    def problem(self) -> str | None:
        """Why the files, as they were last seen, can't be used; None when they are what is in force."""
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
        return self._looked()

    def ruling(self, workspace: str, modes: Modes, *, say: bool = True) -> Ruling | Failure:
        """What a call in `workspace`, an absolute canonical path, is judged by now; or why nothing can be.

        The index of the rules is made once per revision. A change is in the ledger before the first ruling by it is given, unless
        the ledger takes nothing more; without `say`, which is for who only looks, it is left for the next.
        """
        governance = self.current()
        if self._unsaid and say:
            self._say()
        if isinstance(governance, Failure):
            # A copy: the one that is kept would gather a traceback with each call.
            return replace(governance)
        kept = self._rulings
        if kept[0] is not governance or len(kept[1]) > _MAX_WORKSPACES:
            kept = self._rulings = governance, {}
        found = kept[1].get(workspace)
        if found is None or found.authority.modes is not modes:
            policy = Policy(governance.layers(), workspace, os.path.expanduser("~"))
            found = kept[1][workspace] = Ruling(governance, Authority(policy, modes))
        return found

    def _stamps(self) -> Stamps:
        return tuple([_stamp(path) for path in self._paths])

    def _looked(self) -> Governance | Failure:
        """Read the files, and make what they say the answer, if it can be used."""
        with self._lock:
            seen = self._seen
            before = self._stamps()
            if seen is not None and seen.stamps == before and not seen.unsure_until:
                return seen.answer  # Another thread was quicker.
            for _ in range(_TRIES):
                now = time.time_ns()
                found = self._load(before)
                after = self._stamps()
                if after == before:
                    break
                before, found = after, _changing()
            else:
                before = ()  # What no look at the files is equal to.
            if isinstance(found, Governance):
                self._read |= _there(self._files, before)
            answer, changes = self._answer(found)
            self._seen = _Seen(before, answer, _unsure_until(before, now))
        for change in changes:
            for listener in self._listeners:
                listener(change)
        return answer

    def _load(self, stamps: Stamps) -> Governance | Failure:
        there = _there(self._files, stamps)
        gone = [path for path in self._files if path in self._read and path not in there]
        if gone:
            return Failure(
                "governance_unavailable",
                f"the rules of {str(gone[0])!r} are gone; what they said stays in force",
                hint="put the file back; an empty one says nothing",
            )
        if self._required and self._user not in there:
            return Failure(
                "governance_unavailable", f"there are no rules in {str(self._user)!r}", hint="name a file that exists"
            )
        try:
            return load_governance(self._user, self._project)
        except Failure as failure:
            return replace(failure)

    def _answer(self, found: Governance | Failure) -> tuple[Governance | Failure, list[Change]]:
        """What holds from here on, and what there is to say about it."""
        old = self._seen.answer if self._seen is not None else None
        if isinstance(found, Failure):
            in_force = old if isinstance(old, Governance) else None
            news = found.message != self._problem
            self._problem = found.message
            change = Change("refused", in_force.revision if in_force else "", found.message)
            return in_force or found, [self._noted(change)] if news else []
        mended, self._problem = self._problem is not None, None
        if isinstance(old, Governance) and old.revision == found.revision:
            # The same rules, perhaps in other words: what was made of them is kept.
            return old, [self._noted(Change("loaded", old.revision))] if mended else []
        return found, [self._noted(Change("loaded", found.revision))]

    def _noted(self, change: Change) -> Change:
        if self._ledger is not None:
            data = {"event": change.kind, "revision": change.revision, "files": [str(path) for path in self._files]}
            if change.message:
                data["message"] = redacted_text(change.message)
            self._unsaid.append(data)
        return change

    def _say(self) -> None:
        with self._lock:
            while self._unsaid and self._ledger is not None:
                # What a broken ledger means for calls is the pipeline's to say, which writes to it next.
                with suppress(Failure):
                    self._ledger.append("policy", self._unsaid[0])
                del self._unsaid[0]


def _there(files: tuple[Path, ...], stamps: Stamps) -> set[Path]:
    return {path for path, stamp in zip(files, stamps, strict=True) if stamp is not None}


def _changing() -> Failure:
    return Failure(
        "governance_unavailable", "the rules change while they are read", hint="wait until whoever writes them is done"
    )


def _stamp(path: str) -> Stamp:
    try:
        facts = os.lstat(path)
    except OSError:
        # Where it can't be looked at it can't be read either; the reading says why.
        return None
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def _unsure_until(stamps: Stamps, now: int) -> int:
    """When the moment is over in which a file could change unseen (ns since 1970); 0 when it was over before."""
    # The inode's time: nobody can set it, unlike the content's.
    latest = max((s[1] for s in stamps if s is not None), default=0)
    return now + _MOMENT_NS if now - _MOMENT_NS < latest <= now + _MOMENT_NS else 0

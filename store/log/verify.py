"""Proving a log, and saying what can't be proved.

A chain proves that nothing inside it was changed, taken out, moved or put in by someone who didn't write all that
follows anew. Three things it can't show by itself: entries cut off at the end, whole segments taken away, and a log
written anew with fresh hashes. For these an *anchor* is kept elsewhere: the number and hash of each
segment's last entry at some moment. Up to there the log is proved; behind it the three remain unseen, and the
result says so.

When a line doesn't follow from the one before it, its number and the last few hashes tell what happened: it follows from an
earlier one (what stands between was put in or moved), it is a copy, numbers are skipped (something was taken out), or
none of these (it was changed). Reading goes on behind it from the hash that it states, so that one change is reported as one.

A line without an end is no tampering but what a crash leaves: it is noted as torn.

Newer segments are read before older ones. The writer finishes a segment before it begins the next, so a log that is
being written, and rotated, meanwhile is judged right.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.store.log import line
from albert_tools.store.log.fold_records import what_was_folded
from albert_tools.store.log.lines import lines
from albert_tools.store.log.segment import SEGMENT, alive, begun, is_folded, open_segment, path_of, segments
from albert_tools.store.log.trouble import Problem, damaged
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import check_private

#: Hashes remembered to tell an insertion from a change.
MEMORY = 32
#: Problems listed of one segment.
MOST = 100
ANCHOR_FORMAT = 1
_NUMBER = re.compile(rb'\A\{"n":[^,]*')

_TAIL = (
    "entries cut off at the end of a segment",
    "a whole segment taken away, with those that continue it",
    "a log written anew, with fresh hashes",
)


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    `problems` in the order of the log; `notes` are torn tails and files that are no segments, which are not held against
    it; `entries` counts the lines proved, headers apart; `unseen` says in words what could not have been seen; `folded` counts the
    segments that were folded into others.
    """

    segments: int
    entries: int
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    unseen: str
    folded: int = 0

    @property
    def ok(self) -> bool:
        """Whether everything that can be seen is as it was written."""
        return not self.problems


@dataclass(slots=True)
class _Proof:
    """One segment's walk: where its chain stands, what its header says, and what is wrong with it."""

    segment: str
    wanted: int | None = None
    """The entry whose hash the anchor knows."""
    n: int = -1
    hash: bytes | None = line.NOTHING
    """The last line's hash; None where it can't be told."""
    proved: int = 0
    at_wanted: str | None = None
    previous: Any = None
    closed: bool = False
    next: Any = None
    folded: dict[str, Any] = field(default_factory=dict)
    """What a folded segment says it takes the place of."""
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def problem(self, n: int | None, offset: int | None, kind: str, message: str) -> None:
        self.problems.append(Problem(self.segment, n, offset, kind, message))


def verify(folder: Path, anchor: Mapping[str, Any] | None = None) -> Verification:
    """Read and prove the whole log, against `anchor` (what `anchor()` gave) if there is one.

    Raises:
        Failure: `io_error` when the folder can't be listed or is open to others; `invalid_arguments` for what is no anchor.
    """
    known = _checked(anchor)
    while True:
        names, strange = _listed(folder)
        found = _verified(folder, anchor, known, names, strange)
        # What was folded meanwhile is gone, and what it was folded into has not been looked at.
        if found.ok or set(names) <= set(_listed(folder)[0]) or not set(names) & what_was_folded(folder).keys():
            return found


def _verified(
    folder: Path,
    anchor: Mapping[str, Any] | None,
    known: Mapping[str, tuple[int, str]],
    names: list[str],
    strange: list[str],
) -> Verification:
    proofs: dict[str, _Proof] = {}
    for name in reversed(names):
        proofs[name] = _prove(folder, name, known.get(name, (None, ""))[0])
    folded = {name: record for proof in proofs.values() for name, record in proof.folded.items()}
    for proof in proofs.values():
        _linked(folder, proof, proofs, folded)
    for name, (n, digest) in known.items():
        if name in proofs:
            _anchored(proofs[name], n, digest)
        elif name in folded:
            proofs[name] = _Proof(name, n=folded[name][0], hash=None)
            if n == folded[name][0]:
                proofs[name].at_wanted = folded[name][1]
            else:
                # Only its last line's hash is left to be held against the anchor.
                proofs[name].at_wanted = digest
            _anchored(proofs[name], n, digest)
        else:
            proofs[name] = _Proof(name)
            proofs[name].problem(None, None, "segment_missing", "the segment was anchored, and is not there")
    in_order = [proofs[name] for name in sorted(proofs)]
    notes = [note for proof in in_order for note in proof.notes]
    notes += [Problem(name, None, None, "strange", "this file is not a segment of the log") for name in strange]
    return Verification(
        segments=len(names),
        entries=sum(proof.proved for proof in in_order),
        problems=tuple(problem for proof in in_order for problem in proof.problems),
        notes=tuple(notes),
        unseen=_unseen(anchor, folded),
        folded=sum(not is_folded(name) for name in folded),
    )


def anchor(folder: Path, now: str) -> dict[str, Any]:
    """The number and hash of each segment's last entry, made durable and proved first: a small JSON document.

    Raises:
        Failure: `damaged` when the log can't be proved now, since an anchor would vouch for it; `io_error`.
    """
    found = {}
    for name in _listed(folder)[0]:
        proof = _prove(folder, name, None, durable=True)
        if proof.problems:
            raise damaged(folder, proof.problems[0])
        if proof.n >= 0 and proof.hash is not None:
            found[name] = {"n": proof.n, "hash": proof.hash.hex()}
    return {"format": ANCHOR_FORMAT, "at": now, "segments": found}


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    try:
        return segments(folder) if check_private(folder, "the log") else ([], [])
    except OSError as error:
        raise io_failure("list the log's segments in", folder, error) from error


# One segment


def _prove(folder: Path, name: str, wanted: int | None, durable: bool = False) -> _Proof:
    proof = _Proof(name, wanted)
    try:
        handle = open_segment(folder, name)
    except OSError as error:
        proof.problem(None, None, "unreadable", f"the segment can't be read: {os.strerror(error.errno or 0)}")
        return proof
    try:
        _walk(handle, proof)
        if durable:
            os.fsync(handle)
    except OSError as error:
        proof.problem(None, None, "unreadable", f"the segment can't be read: {os.strerror(error.errno or 0)}")
    finally:
        os.close(handle)
    return proof


@dataclass(frozen=True, slots=True)
class _Seen:
    """A line passed: its place, its hash, and whether something was said about it."""

    n: int
    offset: int
    hash: bytes
    told: bool


def _walk(handle: int, proof: _Proof) -> None:
    seen: deque[_Seen] = deque([_Seen(-1, 0, line.NOTHING, True)], maxlen=MEMORY)
    candidates: tuple[bytes, ...] = (line.NOTHING,)
    last_at = ""
    for offset, content, whole in lines(handle):
        if len(proof.problems) >= MOST:
            proof.problem(None, offset, "more", "there are more problems than are listed; the rest was not looked at")
            proof.hash = None
            return
        n = proof.n + 1
        if proof.closed:
            proof.problem(n, offset, "inserted", "it stands behind the entry that ends the segment")
            continue
        if not whole:
            _torn(handle, proof, offset, content, candidates)
            return
        try:
            stated, text = line.split(content)
            fields = line.fields(text)
        except line.Malformed as error:
            proof.problem(n, offset, "changed", f"it was changed: {error}")
            candidates = _guesses(content, candidates)
            proof.n, proof.hash = n, None
            seen.append(_Seen(n, offset, b"", True))
            continue
        number = fields.get("n", 0 if n == 0 else None)
        followed = [c for c in candidates if line.chain(c, text) == stated]
        before = len(proof.problems)
        vouched = True
        if followed and number == n:
            proof.proved += n > 0
            _content(proof, n, offset, fields, last_at)
        elif followed:
            proof.problem(n, offset, "changed", f"it is the next entry, but has the number {number}")
        elif any(line.chain(c, _NUMBER.sub(b'{"n":%d' % n, text)) == stated for c in candidates):
            proof.problem(n, offset, "changed", f"its number was changed, to {number}")
            number = n
        elif (origin := _origin(seen, number, stated, text)) is None:
            vouched = False
            _misfit(proof, n, offset, number)
        elif any(s.hash == stated for s in seen):
            proof.problem(n, offset, "inserted", "it is a copy of a line before it")
            continue
        else:
            for between in list(seen)[origin + 1 :]:
                if not between.told:
                    message = f"it does not belong here: entry {number}, further on, continues the chain"
                    proof.problem(between.n, between.offset, "inserted", message)
            before = len(proof.problems)
            proof.proved += 1
        proof.n, proof.hash = number if isinstance(number, int) else n, stated
        candidates = (stated,) if vouched else (stated, *(line.chain(c, text) for c in candidates))
        seen.append(_Seen(proof.n, offset, stated, len(proof.problems) > before))
        if followed:
            last_at = str(fields.get("at", last_at))
        if proof.wanted == proof.n and proof.at_wanted is None:
            proof.at_wanted = stated.hex()


def _origin(seen: deque[_Seen], number: Any, stated: bytes, text: bytes) -> int | None:
    """Which of the lines passed this one follows from."""
    for i, earlier in enumerate(seen):
        if earlier.hash and number == earlier.n + 1 and line.chain(earlier.hash, text) == stated:
            return i
    return None


def _misfit(proof: _Proof, n: int, offset: int, number: Any) -> None:
    """Say what happened to a line that follows from nothing known."""
    if isinstance(number, int) and number > n:
        what = "the header" if n == 0 else f"entry {n}"
        more = "is" if number == n + 1 else f"and what follows up to entry {number - 1} are"
        proof.problem(number, offset, "missing", f"{what} {more} missing before it: removed or moved")
    elif isinstance(number, int) and 0 < number < n:
        message = f"it follows entry {n - 1}, but is not the entry {number} that was written"
        proof.problem(number, offset, "moved", message)
    elif proof.hash is None:
        proof.problem(n, offset, "unproven", "it stands behind a damaged line, so nothing vouches for it")
    else:
        proof.problem(n, offset, "changed", "its content or its hash was changed, or it was put there")


def _guesses(content: bytes, candidates: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The hashes that the line behind a malformed one may follow from: the one it states, and those of its content."""
    stated: tuple[bytes, ...] = ()
    try:
        stated = (bytes.fromhex(content[: line.LEAD - 1].decode("ascii")),)
    except ValueError:
        pass
    return (*stated, *(line.chain(c, content[line.LEAD :]) for c in candidates[:2]))


def _content(proof: _Proof, n: int, offset: int, fields: dict[str, Any], last_at: str) -> None:
    """What a line must say, besides following from the one before it."""
    if n == 0:
        if fields.get("format") != line.FORMAT:
            proof.problem(0, offset, "header", f"its format is {fields.get('format')!r}, not {line.FORMAT}")
        elif fields.get("segment") != proof.segment or fields.get("created") != begun(proof.segment):
            proof.problem(0, offset, "header", f"it is the header of {fields.get('segment')!r}: the file was renamed")
        proof.previous = fields.get("previous")
    elif not isinstance(fields.get("at"), str) or not isinstance(fields.get("kind"), str):
        proof.problem(n, offset, "changed", "it has no time or no kind")
    elif fields["at"] < last_at:
        proof.problem(n, offset, "changed", f"its time, {fields['at']}, is before that of the previous entry")
    elif fields["kind"] == line.FOLDED:
        _folded(proof, n, offset, fields)
    elif fields["kind"] == line.CLOSED:
        proof.closed, proof.next = True, fields.get("next")


def _folded(proof: _Proof, n: int, offset: int, fields: dict[str, Any]) -> None:
    """What a folded segment says of those that it takes the place of."""
    records = fields.get("segments")
    if not is_folded(proof.segment) or not isinstance(records, dict):
        proof.problem(n, offset, "changed", "it says what was folded, and stands where nothing is")
        return
    for name, record in records.items():
        if not (SEGMENT.match(name) and isinstance(record, list) and len(record) == 3 and type(record[0]) is int):
            proof.problem(n, offset, "changed", f"its record of the folded segment {name[:80]!r} is malformed")
            return
        proof.folded[name] = record


def _torn(handle: int, proof: _Proof, offset: int, content: bytes, candidates: tuple[bytes, ...]) -> None:
    """A last line without an end: what a crash leaves, unless it is all there but for another byte at its end."""
    n = proof.n + 1
    if line.overwritten(content, candidates):
        proof.problem(n, offset, "changed", "its line ending was changed")
        return
    if alive(handle):
        message = "it is incomplete: it is being written, or its writer failed in the middle"
    else:
        message = "it is incomplete: its writer ended in the middle, and never reported it as written"
    proof.notes.append(Problem(proof.segment, n, offset, "torn", message))


# Between segments


def _linked(folder: Path, proof: _Proof, proofs: Mapping[str, _Proof], folded: Mapping[str, Any]) -> None:
    """A segment that continues another must find it there, finished, as it was."""
    previous = proof.previous
    if previous is not None:
        name, n, digest = (
            (previous.get(key) for key in ("segment", "n", "hash")) if isinstance(previous, dict) else (None,) * 3
        )
        older = proofs.get(name) if isinstance(name, str) else None
        if older is None and isinstance(name, str) and name in folded:
            if folded[name][:2] != [n, digest]:
                proof.problem(0, 0, "unchained", f"it continues {name}, which had another end when it was folded")
        elif older is None:
            proof.problem(0, 0, "segment_missing", f"the segment {name!r}, which it continues, is missing")
        elif older.hash is None or any(p.kind == "unreadable" for p in older.problems):
            pass  # that has been said
        elif isinstance(n, int) and older.n < n:
            message = f"it ends after entry {older.n}, but had {n} when the segment {proof.segment} continued it"
            older.problem(older.n, None, "shortened", message)
        elif (older.n, older.hash.hex()) != (n, digest):
            message = f"its last entry is not the one that the segment {proof.segment} continues"
            older.problem(older.n, None, "unchained", message)
        elif older.next != proof.segment:
            proof.problem(0, 0, "unchained", f"it continues {name}, which names another segment as the next")
    following = proof.next
    if isinstance(following, str) and following not in proofs and following not in folded:
        if not SEGMENT.match(following) or not os.path.lexists(path_of(folder, following)):
            proof.problem(
                proof.n, None, "segment_missing", f"the segment {following!r}, which continues it, is missing"
            )


# The anchor


def _anchored(proof: _Proof, n: int, digest: str) -> None:
    if any(p.kind == "unreadable" for p in proof.problems):
        return
    if proof.n < n:
        proof.problem(proof.n, None, "shortened", f"it ends after entry {proof.n}, but had {n} when it was anchored")
    elif proof.at_wanted != digest and not proof.problems:
        message = f"it is not the entry that was anchored: the segment was rewritten from entry {n} or earlier"
        proof.problem(n, None, "rewritten", message)


def _checked(anchor: Mapping[str, Any] | None) -> dict[str, tuple[int, str]]:
    if anchor is None:
        return {}
    found: dict[str, tuple[int, str]] = {}
    try:
        if anchor["format"] != ANCHOR_FORMAT or not isinstance(anchor["at"], str):
            raise ValueError
        for name, place in anchor["segments"].items():
            n, digest = place["n"], place["hash"]
            if (
                not SEGMENT.match(name)
                or type(n) is not int
                or n < 0
                or len(bytes.fromhex(digest)) != len(line.NOTHING)
            ):
                raise ValueError
            found[name] = n, digest
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Failure(
            "invalid_arguments", "this is not an anchor of a log", hint="give the JSON document that anchoring printed"
        ) from error
    return found


def _unseen(anchor: Mapping[str, Any] | None, folded: Mapping[str, Any]) -> str:
    what = "; ".join(_TAIL)
    if anchor is None:
        told = f"Without an anchor these changes can't be detected: {what}."
    else:
        told = f"In entries after the anchor of {anchor['at']} these changes can't be detected: {what}."
    old = [name for name in folded if not is_folded(name)]
    if old:
        told += (
            f" {len(old):,} segments, begun from {begun(min(old))} to {begun(max(old))}, were folded: what was dropped of them is"
            " gone, and that what was kept is what they had can't be seen; of each its last entry's hash is known."
        )
    return told

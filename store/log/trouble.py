"""A problem of the log as data: its place, its kind, a message."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from albert_tools.engine.model.failure import Failure


@dataclass(frozen=True, slots=True)
class Problem:
    """A difference between the log and what was written.

    `kind` is one of `changed` (content or hash differ from what was written, or the line was put there), `missing` (entries
    taken out before this one), `inserted`, `moved`, `unproven` (stands behind damage, so nothing vouches for it),
    `header`, `segment_missing`, `unchained` (a segment and the one it continues disagree), `shortened`, `rewritten`, `unreadable`,
    `more` (too many to list); in notes also `torn` and `strange`. `n` is the entry's number (0 is the header) and
    `offset` its line's first byte in the segment's file, each None where there is none.
    """

    segment: str
    n: int | None
    offset: int | None
    kind: str
    message: str

    def __str__(self) -> str:
        where = [f"segment {self.segment}"]
        if self.n is not None:
            where.append("header" if self.n == 0 else f"entry {self.n}")
        if self.offset is not None:
            where.append(f"byte {self.offset}")
        return f"{', '.join(where)}: {self.message}"


def damaged(folder: Path, problem: Problem) -> Failure:
    """The failure of a reader that meets `problem`."""
    return Failure(
        "damaged",
        f"the log is damaged: {problem}",
        hint="verify the log; keep the file unchanged, and move the segment away to continue without it",
        details={
            "folder": str(folder),
            "segment": problem.segment,
            "n": problem.n,
            "offset": problem.offset,
            "kind": problem.kind,
        },
    )

"""Exit codes. A script can distinguish a denial, a pending question and a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from albert_tools.engine.model.failure import Failure

DONE, FAILED, MISUSED, DENIED, SUSPENDED, INTERRUPTED = 0, 1, 2, 3, 4, 130

#: Each exit code with its meaning, for `docs/errors.md`.
EXITS: dict[int, str] = {
    DONE: "done",
    FAILED: "failed",
    MISUSED: "usage",
    DENIED: "denied: nothing was done",
    SUSPENDED: "waits for a person's answer",
    INTERRUPTED: "interrupted",
}


def exit_of(failure: Failure) -> int:
    """The exit code of a failure: `SUSPENDED`, `DENIED` or `FAILED`."""
    if failure.code == "suspended":
        return SUSPENDED
    # A saved tool may have changed something before one of its calls was denied.
    return DENIED if failure.denied and "applied" not in failure.details else FAILED

"""Whether Albert Tools itself is well: what `albert doctor` tells a person, for whoever may call this.

What there is to look at is wired together far above, so the looking is handed in (`CallContext.examine`).
"""

from __future__ import annotations

from typing import TypedDict

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

#: Calls within an hour: each starts a sandbox of its own, and programs that try to use it up.
MAX_PER_HOUR = 30


class Trial(TypedDict):
    """A hostile program that was tried: `ok` when it was stopped."""

    name: str
    ok: bool
    message: str
    seconds: float


class Checkup(TypedDict):
    """What `self_check` answers."""

    ok: bool
    facts: dict[str, str]
    problems: list[str]
    trials: list[Trial]


@primitive(effects=["read"], family="system", timeout=120, rate_limit=MAX_PER_HOUR)
async def self_check(context: CallContext, trials: bool = True) -> Checkup:
    """Look over this installation of Albert Tools: where its files are, its rules, and whether its sandbox holds.

    Returns {"ok", "facts", "problems", "trials"}: "ok" is true when there are no problems; "facts" has a sentence for
    each thing looked at ("version", "tools", "state", "rules", "workspace", "allowed", "saved", "confinement", …);
    "problems" is a list of sentences; "trials" has {"name", "ok", "message", "seconds"} for each hostile program that
    was run in a sandbox of its own, "ok" when it was stopped. That something is wrong is an answer, not a failure.
    Takes some seconds; without trials, much less.

    Fails with `not_found` where there is no installation to look at (in the examples of a source), and `rate_limited`
    when called more than 30 times within an hour.

    Args:
        trials: Whether to run the hostile programs.
    """
    if context.examine is None:
        raise Failure("not_found", "there is no installation here to look over")
    found: Checkup = await context.examine(trials)
    context.effect("read", what="installation", ok=found["ok"])
    return found

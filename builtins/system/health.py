"""Checks the installation of Albert Tools: the same checks as `albert doctor`, as a tool.

The checks need the assembled service, so they are passed in with the context of the call (`CallContext.examine`).
"""

from __future__ import annotations

from typing import TypedDict

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

#: Calls per hour. Each call starts its own sandbox and runs hostile programs in it.
MAX_PER_HOUR = 30


class Trial(TypedDict):
    """A hostile program that was run; `ok` if it was stopped."""

    name: str
    ok: bool
    message: str
    seconds: float


class Checkup(TypedDict):
    """Result of `self_check`."""

    ok: bool
    facts: dict[str, str]
    problems: list[str]
    trials: list[Trial]


@primitive(
    effects=["read"],
    family="system",
    timeout=120,
    rate_limit=MAX_PER_HOUR,
    outputs={".ok": "little", ".trials[*].ok": "little"},
    source="command",
)
async def self_check(context: CallContext, trials: bool = True) -> Checkup:
    """Check this installation of Albert Tools: its folders, its rules, and whether its sandbox stops hostile programs.

    Returns {"ok", "facts", "problems", "trials"}. "ok" is true if there are no problems. "facts" has a sentence for each
    thing checked ("version", "tools", "state", "rules", "workspace", "allowed", "saved", "confinement", …); "problems" is a
    list of sentences; "trials" has {"name", "ok", "message", "seconds"} for each hostile program, "ok" if it was stopped. A
    problem is a result, not a failure. The trials take some seconds.

    Fails with `not_found` (no installation, as in the examples of a source) and `rate_limited` (more than 30 calls in an
    hour).

    Args:
        trials: Whether to run hostile programs in the sandbox.
    """
    if context.examine is None:
        raise Failure("not_found", "there is no installation to check here")
    checkup: Checkup = await context.examine(trials)
    context.effect("read", what="installation", ok=checkup["ok"])
    return checkup

"""What a diagnostic code means: one declaration for each code, kept next to the code that reports it."""

from __future__ import annotations

from typing import NamedTuple


class FindingCode(NamedTuple):
    """A diagnostic code, explained.

    `summary` says in one sentence what is wrong, `why` the reason for the rule. `example` is a source with exactly this
    finding, `rewrite` the same source as it is accepted. `example` is None where a source can't show the code: it would
    be too large, or the finding reports a defect of Albert Tools.
    """

    code: str
    summary: str
    why: str
    example: str | None = None
    rewrite: str | None = None


def in_tool(body: str) -> str:
    """A source with one tool that has this body."""
    lines = ["def work(path: str) -> Any:", '"""Do one thing."""', *body.split("\n")]
    return "\n    ".join(lines) + "\n"

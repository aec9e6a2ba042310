"""The descriptions of diagnostic codes. Each code is declared next to the code that reports it."""

from __future__ import annotations

from typing import NamedTuple


class FindingCode(NamedTuple):
    """The description of a diagnostic code.

    `summary` states the problem in one sentence, and `why` gives the reason for the rule. `example` is a source with exactly this
    finding, and `rewrite` is the corrected source. `example` is None if a source can't show the code: the source would be too
    large, or the finding reports a defect of Albert Tools.
    """

    code: str
    summary: str
    why: str
    example: str | None = None
    rewrite: str | None = None


def in_tool(body: str) -> str:
    """The source of a tool with this body."""
    lines = ["def work(path: str) -> Any:", '"""Do one thing."""', *body.split("\n")]
    return "\n    ".join(lines) + "\n"

"""The page on commands has a row for each shipped pattern."""

from __future__ import annotations

from albert_tools.engine.shell.dangers import PATTERNS
from tests.helpers.pages import ROOT


def rows() -> list[str]:
    """The rows of the table."""
    shown = {p.name: p.example.replace("|", "\\|") for p in PATTERNS.values() if p.example}
    return [f"| `{p.name}` | {p.why} | {p.instead} | `{shown[p.name]}` |" for p in PATTERNS.values() if p.example]


def test_the_table_has_every_pattern() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert "\n".join(["|---|---|---|---|", *rows(), ""]) in page

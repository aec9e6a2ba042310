"""The page on commands lists every danger."""

from __future__ import annotations

from albert_tools.engine.shell.dangers import dangers
from tests.helpers.pages import ROOT


def test_the_table_lists_every_danger() -> None:
    rows = [
        f"| `{d.name}` | {d.why} | {d.instead} | `{d.example.replace('|', chr(92) + '|')}` |"
        for d in dangers().values()
    ]
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert "\n".join(["|---|---|---|---|", *rows, ""]) in page

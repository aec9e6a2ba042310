"""The page on governance has a row for each key of a section, as the rule declares the key."""

from __future__ import annotations

from albert_tools.engine.policy.rule_table import KEYS
from tests.helpers.pages import ROOT


def test_the_table_has_every_key() -> None:
    rows = [f"| `{key.name}` | `{key.example}` | {key.meaning} |" for key in KEYS]
    page = (ROOT / "docs" / "governance.md").read_text("utf-8")
    for row in rows:
        assert row in page.splitlines(), f"docs/governance.md lacks this row:\n{row}"
    assert "\n".join(["| key of a section | example | meaning |", "|---|---|---|", *rows, ""]) in page

"""The Python blocks of the pages print the output that the pages show. Each block runs in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from albert_tools.engine.policy.settings import read_governance
from tests.helpers.pages import ROOT, blocks, run

PAGES = ["embedding.md", "governance.md", "runs.md", "telemetry.md"]
BLOCKS = [
    pytest.param(code, printed, id=f"{page}-{i}") for page in PAGES for i, (code, printed) in enumerate(blocks(page))
]


@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_block(code: str, printed: str, tmp_path: Path) -> None:
    assert run(code, tmp_path) == ("", printed)


@pytest.mark.parametrize("page", PAGES)
def test_some_blocks_show_their_output(page: str) -> None:
    assert any(printed for _, printed in blocks(page))


def test_every_page_with_such_blocks_is_listed() -> None:
    having = {p.name for p in (ROOT / "docs").glob("*.md") if any(printed for _, printed in blocks(p.name))}
    assert having == set(PAGES)


@pytest.mark.parametrize(
    "text", re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "governance.md").read_text("utf-8"), re.DOTALL)
)
def test_rules_on_the_page_are_valid(text: str) -> None:
    read_governance(yaml.safe_load(text))

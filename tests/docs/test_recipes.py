"""Each recipe of the page has rules without mistakes, and they decide as its file of expected decisions says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.pages import ROOT
from tests.surfaces.conftest import Albert

_SECTIONS = (ROOT / "docs" / "recipes.md").read_text("utf-8").split("\n## ")[1:]
RECIPES = [(section.partition("\n")[0], re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)) for section in _SECTIONS]


@pytest.fixture
def albert(tmp_path: Path) -> Albert:
    return Albert(tmp_path)


@pytest.mark.parametrize("blocks", [pytest.param(blocks, id=title) for title, blocks in RECIPES])
def test_recipe(albert: Any, blocks: list[str]) -> None:
    rules, expected = blocks
    albert.write("rules.yaml", rules)
    albert.write("expected.yaml", expected)
    done = albert("policy", "test", "expected.yaml", "--rules", "rules.yaml", "--json")
    assert [result for result in done.document()["results"] if not result["ok"]] == []
    # The decisions come from the rules in force, too, and these have no mistakes.
    (albert.home / "config").mkdir(parents=True)
    (albert.home / "config" / "governance.yaml").write_text(rules)
    assert albert("policy", "test", "expected.yaml").code == 0
    assert albert("policy", "check").out == "the rules have no mistakes\n"


@pytest.mark.parametrize("blocks", [pytest.param(blocks, id=title) for title, blocks in RECIPES])
def test_a_recipe_needs_its_rules(albert: Any, blocks: list[str]) -> None:
    """The expectations fail under the shipped rules."""
    albert.write("expected.yaml", blocks[1])
    assert albert("policy", "test", "expected.yaml").code == 1

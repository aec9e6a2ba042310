"""Links of the pages lead to existing files, headings and tests."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.pages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::((?:Test\w+::)?test_\w+))?`")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_existing_targets(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def names_of(module: Path) -> set[str]:
    """The names by which pytest finds a module's tests."""
    names = set[str]()
    for statement in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ClassDef):
            names |= {f"{statement.name}::{inner.name}" for inner in statement.body if isinstance(inner, _FUNCTIONS)}
        elif isinstance(statement, _FUNCTIONS):
            names.add(statement.name)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_tests_exist(page: Path) -> None:
    for module, name in TEST.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / module).is_file(), module
        assert not name or name in names_of(ROOT / module), f"{module}::{name}"


def test_each_claim_of_the_threat_model_names_its_test() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| attempt \|.*?\n\n", text, re.MULTILINE | re.DOTALL)
    rows = [row for table in tables for row in table.strip().split("\n")[2:]]
    assert len(rows) >= 20
    assert [row for row in rows if not TEST.search(row)] == []

"""The checker refuses each block of the language page with the diagnostic shown, or accepts the block. Then the result is the
one shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from albert_tools import SyncToolService
from albert_tools.engine.check.checker import check
from albert_tools.testing import FakeExecutor
from tests.helpers.harness import Chunk, _chunk, catalog, mismatches

PAGE = Path(__file__).parents[2] / "docs" / "language.md"


def blocks() -> list[Chunk]:
    found = []
    for match in re.finditer(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        line = PAGE.read_text(encoding="utf-8")[: match.start()].count("\n") + 1
        found.append(_chunk("language", [f"# line {line}", *match[1].rstrip("\n").split("\n")], 0))
    return found


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.title)
def test_block(block: Chunk, tmp_path: Path) -> None:
    report = check(block.source, catalog())
    assert not mismatches(block, report.diagnostics)
    if block.result is not None:
        assert FakeExecutor().run(block.source, block.arguments).value() == block.result
    if "@example" in block.source and not block.findings:
        with SyncToolService.open(home=tmp_path / "home", workspace=tmp_path) as service:
            assert service.define(block.source).name


def test_some_blocks_show_results_and_refusals() -> None:
    assert sum(b.result is not None for b in blocks()) >= 3
    assert sum(bool(b.findings) for b in blocks()) >= 2

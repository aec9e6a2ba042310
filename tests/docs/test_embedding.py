"""The page's blocks do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import blocks, run

BLOCKS = blocks("embedding.md")


@pytest.mark.parametrize(("code", "printed"), BLOCKS, ids=range(len(BLOCKS)))
def test_block(code: str, printed: str, tmp_path: Path) -> None:
    assert run(code, tmp_path) == ("", printed)


def test_one_of_them_shows_what_it_prints() -> None:
    assert any(printed for _, printed in BLOCKS)

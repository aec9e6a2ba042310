"""The generated pages are up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
assert spec is not None
assert spec.loader is not None
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)


@pytest.mark.parametrize("name", reference.PAGES)
def test_page_is_up_to_date(name: str) -> None:
    wanted = reference.PAGES[name]()
    assert (DOCS / name).read_text(encoding="utf-8") == wanted, "run: make docs"

"""The page's blocks do what they say."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from albert_tools import SyncToolService
from tests.docs.pages import blocks, run

_NOT_YET = "telemetry" not in inspect.signature(SyncToolService.open).parameters


def _block(number: int, code: str, printed: str) -> object:
    waits = _NOT_YET and "telemetry=" in code
    marks = [pytest.mark.xfail(reason="the service has no observers yet", strict=True)] if waits else []
    return pytest.param(code, printed, id=str(number), marks=marks)


@pytest.mark.parametrize(
    ("code", "printed"), [_block(i, code, printed) for i, (code, printed) in enumerate(blocks("telemetry.md"))]
)
def test_block(code: str, printed: str, tmp_path: Path) -> None:
    assert run(code, tmp_path) == ("", printed)


def test_some_of_them_show_what_they_print() -> None:
    assert sum(bool(printed) for _, printed in blocks("telemetry.md")) >= 2

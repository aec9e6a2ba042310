"""A home for each test, and kill points that do nothing by default."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.kill_points import HERE, Place, Points


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(autouse=True)
def _points() -> Iterator[None]:
    # The primitives report to the points of the newest service.
    yield
    HERE[0] = Points()

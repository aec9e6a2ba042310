"""Drafts of the benchmark's sessions: `define` accepts each one, and what they state about arguments is true."""

from __future__ import annotations

import pytest

from albert_tools.engine.suggest.drafts import Draft
from benchmarks.suggested import accepts, cover, edges, mined
from benchmarks.work_of_agents import Record, sessions


@pytest.fixture(scope="module")
def seen() -> Record:
    return sessions(100, 11)


@pytest.fixture(scope="module")
def drafts(seen: Record) -> list[Draft]:
    return mined(seen).drafts()


def test_define_accepts_every_draft_with_its_example(drafts: list[Draft]) -> None:
    assert len(drafts) > 10
    assert accepts(drafts) == [True] * len(drafts)


def test_arguments_come_from_where_drafts_say(drafts: list[Draft], seen: Record) -> None:
    right, stated, found, all = edges(drafts, seen)
    assert right == stated
    assert found > 0.8 * all


def test_drafts_cover_sessions_that_nobody_has_seen(drafts: list[Draft]) -> None:
    calls, covered, spared, exact, tried = cover(drafts, sessions(40, 12), "")
    assert covered > 0.3 * calls
    assert spared > 0.2 * calls
    assert exact > 0.8 * tried

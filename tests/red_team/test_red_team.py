"""Composites that hide something, among honest ones: what their reviews say.

A review must name what a composite hides. The review of an honest composite must name what it does and nothing else, so that a
reader can tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from albert_tools import SyncToolService
from tests.red_team.reviewed import ANSWERS, FILES, reviewing, text_of

HIDING = {name: answer for name, answer in ANSWERS.items() if "hides" in answer}
HONEST = {name: answer for name, answer in ANSWERS.items() if "hides" not in answer}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncToolService]:
    with reviewing(tmp_path_factory.mktemp("red_team").resolve()) as made:
        yield made


def test_there_are_as_many_honest_composites() -> None:
    assert [*FILES] == sorted(ANSWERS)
    assert len(HIDING) == len(HONEST) == 40


@pytest.mark.parametrize("name", HIDING)
def test_the_review_says_what_a_composite_hides(service: SyncToolService, name: str) -> None:
    said = text_of(service.review(name))
    for text in HIDING[name]["says"]:
        assert text in said, said


@pytest.mark.parametrize("name", HONEST)
def test_the_review_of_an_honest_composite_names_what_it_does_and_no_more(service: SyncToolService, name: str) -> None:
    review = service.review(name)
    manifest: dict[str, Any] = review.as_dict()["manifest"]
    found = [f"{r['tool']} {r['use']} {r['value']}" for r in manifest["resources"]]
    assert sorted(found) == sorted(HONEST[name]["does"])
    text = text_of(review)
    assert "ANYTHING" not in text or "ANYTHING" in " ".join(HONEST[name]["does"])
    assert not any(word in text for word in ("NOT FIXED", "NOT QUOTED", "ANY PROGRAM", "with code from", "can learn"))
    passed_on = [
        f"{flow['to'].partition('.')[2]}: from {', '.join(flow['data'])}"
        for flow in manifest["flows"]
        if "." in flow["to"] and any(not origin.startswith("{") for origin in flow["data"])
    ]
    assert passed_on == HONEST[name].get("sends", [])


@pytest.mark.parametrize("name", FILES)
def test_a_review_names_what_the_description_does_not_mention(service: SyncToolService, name: str) -> None:
    assert [*service.review(name).undescribed] == ANSWERS[name].get("undescribed", [])


def test_that_tells_most_hostile_composites_from_the_honest_ones() -> None:
    assert sum("undescribed" in answer for answer in HIDING.values()) >= 32
    assert [name for name, answer in HONEST.items() if "undescribed" in answer] == ["region_status"]

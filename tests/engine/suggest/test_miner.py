"""The miner, on entries as a service has written them: what other people, times and later entries change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from albert_tools.engine.model.record_types import Entry
from albert_tools.engine.suggest.emitter import source_of, title_of
from albert_tools.engine.suggest.miner import Miner, rank
from albert_tools.engine.suggest.traces import Traces
from tests.helpers.shop import RULES, SHOP, USERS, Agent, track_all


@pytest.fixture
def bench(make_bench: Any) -> Any:
    return make_bench(primitives=SHOP, governance=RULES)


def entries(bench: Any) -> list[Entry]:
    return list(bench.service.records({"call", "result"}))


def traces(bench: Any, person: Callable[[str], str] = lambda _: "") -> Traces:
    return Traces(bench.service.service.registry.get, lambda session: (session, person(session)))


def titles(found: Traces) -> list[str]:
    return [title_of(draft) for draft in rank(Miner(found).drafts(), 10)]


def test_in_a_home_of_several_people_one_of_them_is_not_enough(bench: Any) -> None:
    agents = [Agent(bench.service) for _ in USERS]
    for agent, user in zip(agents, USERS, strict=True):
        track_all(agent, user)
    one = traces(bench, lambda _: "ann")
    two = traces(bench, lambda session: "ann" if session != agents[0].id else "bob")
    for found in (one, two):
        found.read(entries(bench))
    assert (titles(one), titles(two)) == ([], ["get_user → every get_order → every track"])


def test_reading_in_parts_finds_what_reading_at_once_does(bench: Any) -> None:
    for user in USERS:
        track_all(Agent(bench.service), user)
    all, parts, known = entries(bench), traces(bench), bench.service.service.registry.get
    miner = Miner(parts)
    for i in range(0, len(all), 7):
        parts.read(all[i : i + 7])
        miner.drafts()
    once = traces(bench)
    once.read(all)

    def sources(found: Miner) -> list[str]:
        return [source_of(draft, "t", known) for draft in rank(found.drafts(), 10)]

    assert sources(miner) == sources(Miner(once)) != []


def test_without_turns_a_pause_ends_a_piece(bench: Any) -> None:
    for user in USERS:
        agent = Agent(bench.service)
        order = agent.service.invoke("get_order", {"order_id": f"W-{user}"}, session=agent.token).value()
        agent.service.invoke("track", {"parcel": order["parcel"]}, session=agent.token)
    near = traces(bench)
    near.read(entries(bench))
    far = traces(bench)
    pause = timedelta(minutes=6)
    far.read(e._replace(at=(datetime.fromisoformat(e.at) + e.n * pause).isoformat()) for e in entries(bench))
    assert (titles(near), titles(far)) == (["get_order → track"], [])

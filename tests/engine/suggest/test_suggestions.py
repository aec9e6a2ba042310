"""What is suggested to the owner and to sessions, through the service."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from albert_tools import Failure
from albert_tools.engine.suggesting import Suggestions
from tests.helpers.shop import RULES, SENT, SHOP, USERS, Agent, track_all


@pytest.fixture
def bench(make_bench: Any) -> Any:
    return make_bench(primitives=SHOP, governance=RULES)


def suggested(bench: Any, **options: Any) -> list[Any]:
    return bench.service.run(lambda s: s.suggest(**options))


def defined(bench: Any, found: Any) -> Any:
    """Save a draft, which runs its example. Returns its definition."""
    return bench.service.define(found.source)


def repeat(bench: Any, work: Callable[[Agent, str], None], users: list[str] = USERS) -> None:
    for user in users:
        work(Agent(bench.service), user)


def test_a_flow_that_sessions_repeat_is_a_draft_that_makes_the_same_calls(bench: Any) -> None:
    repeat(bench, track_all)
    (found,) = suggested(bench)
    assert found.title == "get_user → every get_order → every track"
    assert (found.sessions, found.replays, found.tried, found.effects) == (5, 5, 5, ("read",))
    assert defined(bench, found).name == "get_user_to_track"
    user = "new-user-1234"
    result = bench.value(found.name, user_id=user)
    by_hand = bench.value("get_user", user_id=user)
    assert result["user"] == by_hand
    assert [t.removeprefix("on its way: P-") for t in result["tracks"]] == [o["id"] for o in by_hand["orders"]]


def test_the_draft_reads_as_a_person_would_write_it(bench: Any) -> None:
    def look(agent: Agent, user: str) -> None:
        agent.say()
        for order in agent.call("get_user", user_id=user)["orders"]:
            agent.call("get_order", order_id=order["id"])

    repeat(bench, look)
    (found,) = suggested(bench)
    assert found.source == (
        "@example(\n"
        '    arguments={"user_id": "user_id-1"},\n'
        '    stubs={"get_user": {"orders": [{"id": "order_id-1"}, {"id": "order_id-2"}]}, "get_order": "done"},\n'
        '    result={"user": {"orders": [{"id": "order_id-1"}, {"id": "order_id-2"}]}, "orders": ["done", "done"]},\n'
        ")\n"
        "def get_user_then_get_order(user_id: str) -> Any:\n"
        '    """Call get_user, then get_order for each item.\n'
        "\n"
        "    Args:\n"
        "        user_id: The user_id of get_user.\n"
        '    """\n'
        "    user = tools.get_user(user_id=user_id)\n"
        '    orders = parallel(tools.get_order(order_id=item["id"]) for item in user["orders"])\n'
        '    return {"user": user, "orders": orders}\n'
    )


def test_two_sessions_are_too_few_and_many_repetitions_of_one_are_no_more(bench: Any) -> None:
    agent = Agent(bench.service)
    for user in USERS:
        track_all(agent, user)
    track_all(Agent(bench.service), USERS[0])
    assert suggested(bench) == []


def test_a_piece_never_crosses_a_message_of_the_user(bench: Any) -> None:
    def later(agent: Agent, user: str) -> None:
        agent.say()
        orders = agent.call("get_user", user_id=user)["orders"]
        agent.say()
        for order in orders:
            agent.call("get_order", order_id=order["id"])

    repeat(bench, later)
    # The loop alone remains: the order is what its caller gives.
    assert [s.title for s in suggested(bench)] == ["every get_order"]


def test_a_choice_of_the_agent_is_no_draft(bench: Any) -> None:
    def choose(agent: Agent, user: str) -> None:
        agent.say()
        orders = agent.call("get_user", user_id=user)["orders"]
        agent.call("get_order", order_id=orders[len(user) % len(orders)]["id"])

    repeat(bench, choose, ["ann-1", "bo-22", "cid-33", "dora-44", "emily-55", "fiona-666", "george-777"])
    assert suggested(bench) == []


def test_a_constant_is_a_default_and_a_default_of_the_tool_is_left_out(bench: Any) -> None:
    def look(agent: Agent, user: str) -> None:
        agent.say()
        order = agent.call("get_order", order_id=f"W-{user}")
        agent.call("track", parcel=order["parcel"], carrier="post", api_key="")

    repeat(bench, look)
    (found,) = suggested(bench)
    assert 'def get_order_then_track(order_id: str, carrier: str = "post") -> Any:' in found.source
    assert 'tools.track(carrier=carrier, parcel=order["parcel"])' in found.source
    defined(bench, found)


def test_a_text_around_a_value_becomes_part_of_the_draft(bench: Any) -> None:
    def write(agent: Agent, user: str) -> None:
        agent.say()
        parcel = agent.call("get_order", order_id=f"W-{user}")["parcel"]
        agent.call("send_mail", to=f"{user}@example.com", text=f"The parcel {parcel} is late.")

    repeat(bench, write)
    (found,) = suggested(bench)
    defined(bench, found)
    SENT.clear()
    bench.value(found.name, order_id="W-9", to="new@example.com")
    assert SENT == [("new@example.com", "The parcel P-W-9 is late.")]


def test_a_text_with_several_values(bench: Any) -> None:
    def write(agent: Agent, user: str) -> None:
        agent.say()
        found = agent.call("get_user", user_id=user)
        agent.call("send_mail", to="all", text=f"To: {found['mail']} in {found['address']['city']}, hello!")

    repeat(bench, write)
    (found,) = suggested(bench)
    defined(bench, found)
    SENT.clear()
    bench.value(found.name, user_id="new-1", to="x")
    assert SENT == [("x", "To: new-1@example.com in city-of-new-1, hello!")]


def test_objects_and_lists_are_made_of_parts_of_results(bench: Any) -> None:
    def write(agent: Agent, user: str) -> None:
        agent.say()
        found = agent.call("get_user", user_id=user)
        ids = [order["id"] for order in found["orders"]]
        agent.call("report", about={"mail": found["mail"], "city": found["address"]["city"], "why": user}, orders=ids)

    repeat(bench, write)
    (found,) = suggested(bench)
    defined(bench, found)
    made = bench.value(found.name, user_id="new-user-1")
    assert made["report"] == {
        "about": {"mail": "new-user-1@example.com", "city": "city-of-new-user-1", "why": "new-user-1"},
        "orders": [order["id"] for order in made["user"]["orders"]],
    }


def test_the_person_sees_usual_values_and_where_destinations_come_from(bench: Any) -> None:
    def write(agent: Agent, user: str) -> None:
        agent.say()
        mail = agent.call("get_user", user_id=user)["mail"]
        agent.call("send_mail", to=mail, text="Hello", urgent=True)

    repeat(bench, write)
    (found,) = suggested(bench)
    assert found.usual["text"] == [('"Hello"', 5)]
    assert found.destinations == {"to of send_mail": 'user["mail"]', "urgent of send_mail": "the parameter urgent"}
    # A payload may have a default, and what counts as a destination may not.
    assert '(user_id: str, urgent: bool, text: str = "Hello")' in found.source


def test_new_calls_are_added_and_a_saved_draft_is_not_suggested_again(bench: Any) -> None:
    repeat(bench, track_all, USERS[:3])
    (first,) = suggested(bench)
    repeat(bench, track_all, USERS[3:])
    (second,) = suggested(bench)
    assert (first.sessions, second.sessions) == (3, 5)
    defined(bench, second)
    assert "get_user_to_track" not in [s.name for s in suggested(bench)]


def test_a_tool_that_was_removed_or_changed_is_in_no_suggestion(bench: Any) -> None:
    bench.define("return tools.get_order(order_id=order)", "look", "order: str")

    def work(agent: Agent, user: str) -> None:
        agent.say()
        agent.call("track", parcel=agent.call("look", order=f"W-{user}")["parcel"])

    repeat(bench, work)
    assert [s.title for s in suggested(bench)] == ["look → track"]
    bench.define("return tools.get_order(order_id=number)", "look", "number: str")
    assert suggested(bench) == []
    bench.service.remove("look")
    assert suggested(bench) == []


def test_failed_calls_support_nothing(bench: Any) -> None:
    for _ in range(4):
        agent = Agent(bench.service)
        agent.say()
        for _ in range(2):
            with pytest.raises(Failure):
                agent.call("get_user", user_id="nobody")
    assert suggested(bench) == []


def test_a_session_sees_its_own_repetitions_and_others_only_with_read_records(bench: Any) -> None:
    parent = Agent(bench.service)
    repeat(bench, track_all, USERS[:2])
    for user in USERS[:3]:
        track_all(Agent(bench.service, within=parent.token), user)
    # For the home, the four sessions of one agent are one.
    own = parent.call("suggest_tools")["suggestions"]
    assert [s["title"] for s in own] == ["get_user → every get_order → every track"]
    assert (own[0]["replays"], own[0]["effects"]) == ("3 of 3", ["read"])
    assert Agent(bench.service).call("suggest_tools") == {"suggestions": []}
    with pytest.raises(Failure, match="read_records"):
        Agent(bench.service).call("suggest_tools", everyone=True)


def test_a_session_that_asks_often_uses_one_thread(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    released, reading = threading.Event(), list[str]()

    def own(_: Any, session: str, *rest: Any) -> list[Any]:
        reading.append(session)
        assert released.wait(60)
        return []

    async def race(service: Any) -> list[str]:
        flood, other = (service.open_session(client) for client in ("flood", "other"))
        asked = [asyncio.create_task(service.suggest(session=token)) for _, token in (*[flood] * 5, other)]
        while other[0].id not in reading:
            await asyncio.sleep(0.01)
        before, ids = [*reading], [flood[0].id, other[0].id]
        released.set()
        await asyncio.gather(*asked)
        assert len(reading) == 6
        return [*map(str, map(ids.index, before))]

    monkeypatch.setattr(Suggestions, "_own", own)
    assert bench.service.run(race) == ["0", "1"]


def test_with_read_records_a_session_sees_what_all_repeat(make_bench: Any) -> None:
    bench = make_bench(primitives=SHOP, governance={"allow": ["read_records"]})
    repeat(bench, track_all)
    (found,) = Agent(bench.service).call("suggest_tools", everyone=True)["suggestions"]
    assert found["replays"] == "5 of 5"
    narrow = bench.service.within(lambda s: s.open_session("narrow", tools=["get_user", "read_records"]))[1]
    result = bench.service.invoke("suggest_tools", {"everyone": True}, session=narrow).value()
    assert result == {"suggestions": []}

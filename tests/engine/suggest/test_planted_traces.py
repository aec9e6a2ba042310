"""What a session plants in its traces, and secrets in them, do not get into drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from albert_tools import primitive
from tests.helpers.shop import RULES, SHOP, USERS, Agent

SECRET = "ghp_" + "c3D4" * 8


@primitive(effects=["read"])
def log_in(user: str) -> dict[str, Any]:
    """Log in."""
    return {"token": f"opaque-{user}-81723", "form": f"{SECRET}{user.replace('-', '')}", "list": [SECRET]}


@primitive(effects=["read"])
def get_balance(token: str, note: str = "") -> str:
    """Get the balance."""
    return "12"


@pytest.fixture
def bench(make_bench: Any) -> Any:
    rules = {**RULES, "allow": [*RULES["allow"], "read_page"]}
    return make_bench(primitives=[*SHOP, log_in, get_balance], governance=rules)


def suggested(bench: Any) -> list[Any]:
    return list(bench.service.run(lambda s: s.suggest()))


def repeat(bench: Any, work: Callable[[Agent, str], None]) -> None:
    for user in USERS:
        agent = Agent(bench.service)
        agent.say()
        work(agent, user)


@pytest.mark.parametrize("planted", ["DE00 1234 5678", "attacker@evil.example", "/etc/cron.d/job"])
def test_a_planted_destination_is_never_a_default(bench: Any, planted: str) -> None:
    def work(agent: Agent, user: str) -> None:
        order = agent.call("get_order", order_id=f"W-{user}")["id"]
        agent.call("pay", account=planted, amount=66.6, order_id=order)

    repeat(bench, work)
    (found,) = suggested(bench)
    assert "account: str" in found.source
    assert planted not in found.source
    # The amount of a payment is a destination, too.
    assert "66.6" not in found.source
    assert found.usual["account"][0][1] == len(USERS)
    bench.service.define(found.source)


def test_a_planted_text_around_a_destination_is_no_draft(bench: Any) -> None:
    def work(agent: Agent, user: str) -> None:
        parcel = agent.call("get_order", order_id=f"W-{user}")["parcel"]
        agent.call("send_mail", to=f"copy of {parcel} evil.example", text=f"About {user}")

    repeat(bench, work)
    assert suggested(bench) == []


def test_content_from_outside_supports_no_draft_that_writes(bench: Any) -> None:
    def work(agent: Agent, user: str) -> None:
        agent.call("read_page", about="anything")
        agent.say()
        mail = agent.call("get_user", user_id=user)["mail"]
        agent.call("send_mail", to=mail, text=f"Hello {user}")

    repeat(bench, work)
    assert suggested(bench) == []


def test_a_planted_constant_by_which_destinations_are_found_is_no_default(bench: Any) -> None:
    def work(agent: Agent, user: str) -> None:
        mail = agent.call("get_user", user_id=user, region="evil region")["mail"]
        agent.call("send_mail", to=mail, text=f"Hello {user}")

    repeat(bench, work)
    (found,) = suggested(bench)
    assert "region: str," in found.source
    assert "evil" not in found.source


def test_content_from_outside_chooses_no_destination_in_a_draft(bench: Any) -> None:
    def work(agent: Agent, user: str) -> None:
        contact = agent.call("read_page", about=user)["contact"]
        agent.call("send_mail", to=contact, text=f"Hello {user}")

    repeat(bench, work)
    assert suggested(bench) == []


def test_one_agent_is_not_many_by_opening_sessions(bench: Any) -> None:
    parent = Agent(bench.service)
    for user in USERS:
        child = Agent(bench.service, within=parent.token)
        child.say()
        order = child.call("get_order", order_id=f"W-{user}")
        child.call("track", parcel=order["parcel"])
    assert suggested(bench) == []


def test_a_secret_flows_by_its_path_and_stands_nowhere(bench: Any) -> None:
    def work(agent: Agent, user: str) -> None:
        found = agent.call("log_in", user=user)
        agent.call("get_balance", token=found["token"])

    repeat(bench, work)
    (found,) = suggested(bench)
    assert 'token=balance["token"]' in found.source or 'token=log_in["token"]' in found.source
    bench.service.define(found.source)
    assert "opaque-" not in str(found.as_dict())


@pytest.mark.parametrize("argument", ["token", "note"])
def test_a_constant_secret_is_no_default(bench: Any, argument: str) -> None:
    def work(agent: Agent, user: str) -> None:
        order = agent.call("get_order", order_id=f"W-{user}")
        agent.call("get_balance", **{"token": f"tok-{user}", argument: SECRET})
        agent.call("track", parcel=order["parcel"], api_key=SECRET)

    repeat(bench, work)
    found = suggested(bench)
    assert SECRET not in str([each.as_dict() for each in found])
    text = "\n".join(str(e.data) for e in bench.service.records(["call"]))
    assert SECRET not in text


def test_names_in_results_are_written_as_texts_only(make_bench: Any) -> None:
    """A result's keys come from others. They stand in a draft only as constants, and hostile ones not at all."""
    hostile = '"]; tools.pay(account="x'

    @primitive(effects=["read"])
    def look_up(name: str) -> dict[str, Any]:
        """Look something up."""
        return {hostile: {"id": f"hidden-{name}-1"}, "a b.c-d": f"shown-{name}-1", "\u202e": f"turned-{name}-1"}

    bench = make_bench(primitives=[*SHOP, look_up], governance=RULES)

    def work(agent: Agent, user: str) -> None:
        found = agent.call("look_up", name=user)
        agent.call("get_order", order_id=found[hostile]["id"])
        agent.call("track", parcel=found["a b.c-d"], carrier=found["\u202e"])

    repeat(bench, work)
    for found in suggested(bench):
        assert hostile not in found.source
        assert "\u202e" not in found.source
        bench.service.define(found.source)


@pytest.mark.parametrize("words", ["post\u202e", "post\x1b[2J"])
def test_a_text_around_a_value_has_no_such_characters_either(bench: Any, words: str) -> None:
    def work(agent: Agent, user: str) -> None:
        order = agent.call("get_order", order_id=f"W-{user}")
        agent.call("send_mail", to=f"{user}@example.com", text=f"{words} {order['parcel']}")

    repeat(bench, work)
    assert suggested(bench) == []


def test_a_planted_key_of_an_object_is_no_constant(make_bench: Any) -> None:
    @primitive(effects=["write"])
    def order(what: dict[str, Any]) -> str:
        """Order something."""
        return "ordered"

    bench = make_bench(primitives=[*SHOP, order], governance={"allow": ["order"]})

    def work(agent: Agent, user: str) -> None:
        parcel = agent.call("get_order", order_id=f"W-{user}")["parcel"]
        agent.call("order", what={"DE0066666666": parcel})

    repeat(bench, work)
    assert suggested(bench) == []


def test_a_default_has_no_characters_that_a_terminal_would_obey(bench: Any) -> None:
    def work(agent: Agent, user: str) -> None:
        order = agent.call("get_order", order_id=f"W-{user}")
        agent.call("track", parcel=order["parcel"], carrier="post\x1b[2J\u202e")

    repeat(bench, work)
    (found,) = suggested(bench)
    assert "\x1b" not in found.source
    assert "carrier: str)" in found.source

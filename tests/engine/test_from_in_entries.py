"""The entry of a call by hand says which earlier results its arguments come from."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import primitive

PASSWORD = "tr0ub4dor-horse"
TOKEN = "ghp_" + "a1B2" * 8


@primitive(effects=["read"])
def get_user(name: str) -> dict[str, Any]:
    """Find a user."""
    return {
        "id": f"u-{name}",
        "level": 1,
        "password": PASSWORD,
        "orders": [{"id": "W-100", "total": 12.5}, {"id": "W-200", "total": 99}],
        TOKEN: {"inner": "inside a secret key"},
        "names by mail": {"a@b.example": "kept in a key that is content"},
    }


@primitive(effects=["read"])
def get_orders(ids: list[str], user: dict[str, Any] | None = None, password: str = "", text: str = "") -> str:
    """Find orders."""
    return "none"


@primitive(effects=["read"])
def get_long() -> list[str]:
    """Give a long list."""
    return [f"value-{i}" for i in range(5000)]


@pytest.fixture
def bench(make_bench: Any) -> Any:
    return make_bench(primitives=[get_user, get_orders, get_long])


def token_of(bench: Any) -> str:
    return str(bench.service.within(lambda s: s.open_session("test"))[1])


def call(bench: Any, token: str | None, tool: str, arguments: dict[str, Any], **more: Any) -> None:
    assert bench.service.invoke(tool, arguments, session=token, **more).ok


def entries(bench: Any, tool: str) -> list[dict[str, Any]]:
    return [dict(e.data) for e in bench.service.records(["call"]) if e.data["tool"] == tool]


def found(bench: Any, **arguments: Any) -> dict[str, Any]:
    """The paths and lengths of the sources of the arguments, after one call of `get_user`."""
    token = token_of(bench)
    call(bench, token, "get_user", {"name": "ann"})
    call(bench, token, "get_orders", {"ids": [], **arguments})
    first, entry = entries(bench, "get_user")[-1], entries(bench, "get_orders")[-1]
    assert {s[0] for sources in entry.get("from", {}).values() for s in sources} <= {first["call"]}
    return {path: [s[1:] for s in sources] for path, sources in entry.get("from", {}).items()}


def test_an_argument_names_the_call_and_the_path_in_its_result(bench: Any) -> None:
    assert found(bench, text="W-200") == {"text": [["orders/1/id", [2]]]}


def test_a_list_of_parts_of_a_list_is_one_source(bench: Any) -> None:
    assert found(bench, ids=["W-100", "W-200"]) == {"ids": [["orders/*/id", [2]]]}
    assert found(bench, ids=["W-200", "W-100"]) == {
        "ids/0": [["orders/1/id", [2]]],
        "ids/1": [["orders/0/id", [2]]],
    }


def test_parts_of_objects_and_of_texts_have_sources(bench: Any) -> None:
    assert found(bench, user={"of": {"id": "u-ann"}}, text="About W-100.") == {
        "user/of/id": [["id", []]],
        "text~6-11": [["orders/0/id", [2]]],
    }


def test_a_value_that_the_agent_used_first_has_no_source(bench: Any) -> None:
    token = token_of(bench)
    call(bench, token, "get_orders", {"ids": ["W-100"]})
    call(bench, token, "get_user", {"name": "ann"})
    call(bench, token, "get_orders", {"ids": ["W-100"]})
    assert "from" not in entries(bench, "get_orders")[-1]


def test_what_another_session_has_seen_is_no_source(bench: Any) -> None:
    call(bench, token_of(bench), "get_user", {"name": "ann"})
    call(bench, token_of(bench), "get_orders", {"ids": [], "text": "W-200"})
    assert "from" not in entries(bench, "get_orders")[-1]


def test_a_source_has_no_values_and_no_keys_that_are_content(bench: Any) -> None:
    hidden = {"a": "inside a secret key", "b": "kept in a key that is content", "c": 1}
    assert found(bench, password=PASSWORD, user=hidden) == {"password": [["password", []]]}
    text = "\n".join(str(e.data) for e in bench.service.records())
    assert [secret for secret in (PASSWORD, TOKEN, "a@b.example") if secret in text] == []


def test_the_owner_and_programs_leave_no_sources(bench: Any) -> None:
    bench.define("return tools.get_orders(ids=[tools.get_user(name=name)['orders'][0]['id']])", "both", "name: str")
    token = token_of(bench)
    call(bench, None, "get_user", {"name": "ann"})
    call(bench, None, "get_orders", {"ids": ["W-100"]})
    call(bench, token, "both", {"name": "ann"}, turn="1")
    for entry in entries(bench, "get_orders"):
        assert {"from", "turn"} & entry.keys() == set()


def test_only_the_beginning_of_a_long_result_is_remembered(bench: Any) -> None:
    token = token_of(bench)
    call(bench, token, "get_long", {})
    call(bench, token, "get_orders", {"ids": [], "text": "value-4999"})
    call(bench, token, "get_orders", {"ids": [], "text": "value-9"})
    late, early = entries(bench, "get_orders")
    assert ("from" in late, early["from"]["text"][0][1:]) == (False, ["9", [5000]])


@pytest.mark.parametrize("value", [[], {}, [[]], None, "", "W-1", 17, 1.5, True, ["W-1", None, {"a": []}]])
def test_every_result_can_be_seen(make_bench: Any, value: Any) -> None:
    @primitive(effects=["read"])
    def give() -> Any:
        """Give it."""
        return value

    bench = make_bench(primitives=[give, get_orders])
    token = token_of(bench)
    call(bench, token, "give", {})
    call(bench, token, "get_orders", {"ids": [], "text": "W-1"})
    sources = entries(bench, "get_orders")[0].get("from", {}).get("text", [])
    assert [s[1:] for s in sources] == (
        [["", []]] if value == "W-1" else [["0", [3]]] if value and "W-1" in str(value) else []
    )


def test_deep_results_and_arguments_make_no_large_entry(make_bench: Any) -> None:
    def deep(value: Any) -> Any:
        for i in range(40):
            value = {f"{i:02}".rjust(60, "k"): value}
        return value

    @primitive(effects=["read"])
    def give() -> Any:
        """Give something deep."""
        return [deep(f"value-{i}") for i in range(20)]

    bench = make_bench(primitives=[give, get_orders])
    token = token_of(bench)
    call(bench, token, "give", {})
    call(bench, token, "get_orders", {"ids": [f"value-{i}" for i in range(20)], "user": deep("value-1")})
    assert "from" not in entries(bench, "get_orders")[0]


def test_a_call_has_the_turn_that_its_client_names(bench: Any) -> None:
    token = token_of(bench)
    call(bench, token, "get_user", {"name": "ann"}, turn="7")
    call(bench, token, "run_tool", {"name": "get_user", "arguments": {"name": "bob"}}, turn="8")
    call(bench, token, "get_user", {"name": "cid"})
    assert [entry.get("turn") for entry in entries(bench, "get_user")] == ["7", "8", None]

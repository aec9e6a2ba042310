"""Which calls lie inside a manifest: templates, paths, containers and the values of parameters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.manifest import Hole, HoleKind, PlannedCall, Value
from albert_tools.engine.model.manifest_match import MAX_TEXT, outside

ANY, BELOW, NUMBER, WORD = Hole("any"), Hole("below"), Hole("number"), Hole("word")


def of(name: str, path: str = "") -> Hole:
    return Hole("parameter", name, path=path)


def allows(value: Value, found: Any, use: str = "", **given: Any) -> bool:
    one = PlannedCall("act", arguments={"x": value}, uses={"x": use} if use else {})
    return outside([one], "act", {"x": found}, given) is None


def template(*parts: Any) -> Value:
    return Value((parts,))


@pytest.mark.parametrize(
    ("value", "right", "wrong"),
    [
        (template("a"), ["a"], ["b", "", 1, None, ["a"]]),
        (template(), [""], ["a", None]),
        (template("a", ANY), ["a", "ab", "a\n"], ["", "ba"]),
        (template(ANY), ["", "x", 1, True, None, 1.5], [["x"], {}]),
        (template("n-", NUMBER), ["n-1", "n--1.5"], ["n-x"]),
        (template(NUMBER), ["12", 3, 1.5], ["x", []]),
        (template(WORD, ".md"), ["a-b_1.md", ".md"], ["a/b.md", "ä.md"]),
        (template("a", BELOW), ["a", "a/b", "a/b/c", "a/..b"], ["ab", "a/../b", "a/..", "b/a"]),
        (template(of("p")), ["x y"], ["x", ""]),
        (template(of("p"), "!"), ["x y!"], ["x y"]),
        (template(of("n")), [3], [4, "4", True]),
        (template("no. ", of("n")), ["no. 3"], ["no. 4"]),
        (template(of("rows", "[*].id")), ["a", "b"], ["c", ["a"]]),
        (template(of("rows", "~")), ["a", {"id": "a"}], ["c"]),
        (template(of("missing")), [], ["", None]),
        # Normal forms: a part that is empty, and slashes that meet.
        (template(Hole("path", of=("b://", WORD, "/a"))), ["b:/a", "b:/x/a"], ["b:/xa", "a"]),
        (template(Hole("path", of=("b/", of("p"), "/", WORD))), ["b/x y", "b/x y/c"], ["b/x", "b"]),
        (template(Hole("part", of=(of("p"),))), ["x", "x y", ""], ["z"]),
        (template(Hole("part", of=(Hole("output", call=0),))), ["anything"], []),
        (template(Hole("output", call=0, path=".a")), ["anything", 1, {"a": 1}], []),
        (Value(((3), None, True)), [3, None, True], [4, False, "3", 1]),
        (Value(open=True), [[1, {"a": None}]], []),
        (Value(items=template("a")), [[], ["a", "a"]], [["b"], "a", {"a": 1}]),
        (Value(fields={"a": template("b")}), [{}, {"a": "b"}], [{"a": "c"}, {"b": "b"}, ["a"]]),
        (Value(rest=template("b")), [{"x": "b"}], [{"x": "c"}]),
    ],
    ids=repr,
)
def test_a_value(value: Value, right: list[Any], wrong: list[Any]) -> None:
    parameters = {"p": "x y", "n": 3, "rows": [{"id": "a"}, {"id": "b"}]}
    assert [v for v in right if not allows(value, v, **parameters)] == []
    assert [v for v in wrong if allows(value, v, **parameters)] == []


@pytest.mark.parametrize(
    ("parts", "folder", "right", "wrong"),
    [
        ((of("folder"), BELOW), ".", [".", "a", "a/b", "./a"], ["..", "a/../../b", "/a"]),
        ((of("folder"), BELOW), "a/", ["a", "a/b"], ["ab", "b", "a/../b"]),
        ((of("folder"), BELOW), "/", ["/", "/a"], ["a"]),
        ((of("folder"), "/x.md"), ".", ["x.md", "./x.md"], ["a/x.md", "/x.md"]),
        ((of("folder"), "/part-", NUMBER), "a//b", ["a/b/part-1"], ["a/part-1", "part-1"]),
        ((of("folder"),), "./a", ["a", "a/"], ["b", "a/b"]),
    ],
    ids=repr,
)
def test_paths_are_compared_in_normal_form(parts: Any, folder: str, right: list[str], wrong: list[str]) -> None:
    assert [p for p in right if not allows(template(*parts), p, "read", folder=folder)] == []
    assert [p for p in wrong if allows(template(*parts), p, "read", folder=folder)] == []


def test_the_reason_names_what_is_outside() -> None:
    calls = [PlannedCall("act", arguments={"x": template("a")})]
    assert outside(calls, "do", {}, {}) == "it does not call do"
    assert outside(calls, "act", {"x": "b"}, {}) == "its calls of act have another x"
    assert outside(calls, "act", {"y": "a"}, {}) == "its calls of act have other arguments"
    assert outside(calls, "act", {"x": "a", "y": 1}, {}) == "its calls of act have other arguments"


TEXTS = st.text("ab/.-1 ", max_size=6)
PARTS = st.lists(st.one_of(TEXTS, st.sampled_from([ANY, BELOW, NUMBER, WORD, of("p")])), max_size=5)
FILLS = {"any": TEXTS, "below": st.sampled_from(["", "/a", "/a/b.md"]), "number": st.sampled_from(["", "1", "-1.5"])}
FILLS |= {"word": st.sampled_from(["", "a-b"])}


@given(PARTS, st.data(), TEXTS)
def test_what_fills_the_holes_is_inside(parts: list[Any], data: st.DataObject, p: str) -> None:
    made = "".join(
        part if isinstance(part, str) else p if part.kind == "parameter" else data.draw(FILLS[part.kind])
        for part in parts
    )
    assert allows(template(*parts), made, p=p)
    assert allows(template(*parts), made, "read", p=p)


HOLES = [(ANY, "x") * 5, (BELOW, "a") * 5, (WORD, "a", NUMBER) * 3, (Hole("part", of=("/a" * 1000,)), "b")]


@pytest.mark.parametrize("parts", HOLES, ids=repr)
def test_a_hostile_text_takes_no_more_steps_than_it_has_places(parts: Any) -> None:
    # If the time grew with the square of the length, this would take minutes.
    assert not allows(template(*parts), "/a" * (MAX_TEXT // 2 - 1) + "!")
    assert not allows(template(*parts), "a" * (MAX_TEXT - 1) + "!")


@pytest.mark.parametrize("kind", ["json", "query", "base64", "percent"])
@pytest.mark.parametrize("unit", ["[", "a=b&", "A"])
def test_a_long_text_is_decoded_at_a_few_places_only(kind: HoleKind, unit: str) -> None:
    encoded = Hole(kind, value=Value(((Hole("parameter", "p"),),)))
    assert allows(template(Hole("any"), encoded), unit * (MAX_TEXT // len(unit)))

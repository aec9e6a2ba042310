"""Approved versions: their calls are held to their manifests, and a person is not asked again inside of them.

The manifests are made by hand, so each test says exactly what is inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from albert_tools import CallContext, primitive
from albert_tools.engine.authority.reviews import BY_RULES
from albert_tools.engine.model.manifest import ANALYSIS, Hole, Manifest, PlannedCall, Symbol, Term, Value
from albert_tools.engine.pipeline import reviewed
from tests.engine.conftest import DONE, PRIMITIVES, Bench
from tests.helpers.effort import examples


@primitive(effects=["delete"])
def shred(name: str) -> str:
    """Delete something, so shipped rules ask."""
    DONE.append(name)
    return name


@primitive(effects=["delete"], paths={"path": "delete"})
def erase(path: str, context: CallContext) -> str:
    """Delete a file, so shipped rules ask."""
    DONE.append(path)
    return path


@pytest.fixture(autouse=True)
def only_approved_versions_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewed, "HELD", frozenset({"active"}))


@pytest.fixture(name="bench")
def _bench(make_bench: Any) -> Bench:
    bench: Bench = make_bench(primitives=[*PRIMITIVES, shred, erase])
    return bench


def parameter(name: str, path: str = "") -> Value:
    return Value(((Hole("parameter", name, path=path),),))


def text(*parts: Any) -> Value:
    return Value((parts,))


def planned(tool: str, times: int | None = 1, uses: dict[str, str] | None = None, **arguments: Value) -> PlannedCall:
    bound = None if times is None else (Term(times),)
    return PlannedCall(tool, ("delete",), arguments=arguments, uses=uses or {}, bound=bound)


def approved(bench: Bench, manifest: Manifest, name: str = "t", by: str = "ann") -> None:
    """Give the newest version of a tool a manifest, and approve it."""
    store = bench.service.service.store
    version = store.load(name)
    store.save(version.with_manifest(replace(manifest, analysis=ANALYSIS)))
    # A person would find that the manifest isn't that of the source.
    bench.service.within(lambda s: s.reviews.approve(store.load(name), by))


def denied(bench: Bench) -> list[tuple[str, str]]:
    return [(e.data["rule_id"], e.data["message"]) for e in bench.service.records(["denied"])]


SHRED = "return tools.shred(name=a)"


def test_a_call_inside_the_manifest_asks_nobody(bench: Bench) -> None:
    bench.define(SHRED, parameters="a: str")
    assert bench.error("t", a="x").code == "suspended"
    approved(bench, Manifest(("delete",), (planned("shred", name=parameter("a")),)))
    assert bench.value("t", a="x") == "x"
    call = [e.data for e in bench.service.records(["call"])][-1]
    assert (call["tool"], call["verdict"], call["rule_id"]) == ("shred", "allow", "manifest")


def test_an_unknown_key_of_the_result_of_a_saved_tool_is_inside_the_manifest(bench: Bench) -> None:
    bench.define("return {a: b}", name="pair", parameters="a: str, b: str")
    bench.define("return tools.shred(name=tools.pair(a=a, b=b)[a])", parameters="a: str, b: str")
    bench.service.within(lambda s: s.reviews.approve(s.store.load("t"), "ann"))
    assert bench.value("t", a="x", b="y") == "y"


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (Manifest(), "it does not call shred"),
        (Manifest(calls=(planned("shred", name=text("y")),)), "its calls of shred have another name"),
        (Manifest(calls=(planned("shred", 0, name=parameter("a")),)), "it calls shred at most 0 times"),
    ],
)
def test_a_call_outside_the_manifest_is_denied_as_a_fault_of_ours(bench: Bench, manifest: Manifest, why: str) -> None:
    bench.define(SHRED, parameters="a: str")
    approved(bench, manifest)
    error = bench.error("t", a="x")
    assert (error.code, error.rule, error.rationale) == ("permission_denied", "manifest", "outside_manifest")
    assert "fault of Albert Tools" in str(error.hint)
    assert denied(bench)[0] == ("manifest", f"shred is outside of the approved manifest of t: {why}")
    assert DONE == []


def test_an_approval_does_not_turn_a_denial_into_anything_else(make_bench: Any) -> None:
    bench = make_bench(primitives=[*PRIMITIVES, shred], governance={"deny": ["shred"]})
    bench.define(SHRED, parameters="a: str")
    approved(bench, Manifest(calls=(planned("shred", name=parameter("a")),)))
    assert bench.error("t", a="x").rule == "deny"


def test_a_question_in_another_mode_is_asked(bench: Bench) -> None:
    bench.define("return tools.launch(name=a)", parameters="a: str")
    approved(bench, Manifest(calls=(planned("launch", name=parameter("a")),)))
    assert bench.value("t", a="x") == "x"
    bench.service.within(lambda s: s.modes.switch("ALERT", "a test", "to see"))
    assert bench.error("t", a="x").code == "suspended"


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        "deploy.sh",
        ".bashrc",
        "Makefile",
        "a/.git/hooks/pre-push",
        "./.envrc",
        "a//MAKEFILE",
        "vite.config.ts",
        "ma\u212aefile",
        "package.j\u017fon",
        "make\ufb01le",
    ],
)
def test_a_question_about_a_file_that_others_execute_is_asked(bench: Bench, path: str) -> None:
    bench.define("return tools.erase(path=a)", parameters="a: str")
    approved(bench, Manifest(calls=(planned("erase", uses={"path": "delete"}, path=parameter("a")),)))
    assert bench.value("t", a="notes/a.md") == "notes/a.md"
    assert bench.error("t", a=path).code == "suspended"
    assert DONE == ["notes/a.md"]


def test_what_the_rules_have_activated_is_held_to_its_manifest_and_still_asks(bench: Bench) -> None:
    bench.define(SHRED, parameters="a: str")
    approved(bench, Manifest(calls=(planned("shred", name=text("x")),)), by=BY_RULES)
    assert bench.error("t", a="x").code == "suspended"
    assert bench.error("t", a="y").rule == "manifest"


def test_the_nearest_approved_caller_answers_for_a_call(bench: Bench) -> None:
    bench.define(SHRED, "inner", "a: str")
    bench.define("return tools.inner(a=a)", "outer", "a: str")
    approved(bench, Manifest(calls=(planned("shred", name=parameter("a")),)), "inner")
    # `outer` is pending: only what `inner` does inside its manifest is not asked.
    assert bench.value("outer", a="x") == "x"
    approved(bench, Manifest(calls=(replace(planned("shred", name=text("y")), via=("inner",)),)), "outer")
    assert bench.error("outer", a="x").message == (
        "shred is outside of the approved manifest of outer: its calls of shred have another name"
    )
    bench.service.deprecate("inner", "ann")
    assert bench.value("outer", a="y") == "y"


def test_the_text_of_a_number_that_a_caller_gives(bench: Bench) -> None:
    bench.define("return [tools.look(at=c) for c in str(n)]", "inner", "n: int")
    bench.define("return tools.inner(n=-12)", "outer")
    for name in ("inner", "outer"):
        bench.service.approve(name, "ann")
    assert bench.value("outer") == ["-", "1", "2"]
    assert bench.value("inner", n=305) == ["3", "0", "5"]


def test_a_revoked_version_does_not_run_inside_of_others_either(bench: Bench) -> None:
    bench.define("return tools.look(at=a)", "inner", "a: str")
    bench.define("return tools.inner(a=a)", "outer", "a: str")
    version = bench.service.describe("inner").definition.version
    bench.service.within(lambda s: s.reviews.revoke("inner", version, "ann", "it peeks"))
    for name in ("inner", "outer"):
        error = bench.error(name, a="x")
        assert (error.code, error.rule, error.message) == (
            "permission_denied", "revoked", f"version {version[:12]} of inner was revoked by ann: it peeks",
        )  # fmt: skip
    assert DONE == []


def test_an_approval_that_ends_while_a_tool_runs_answers_no_later_question(make_bench: Any) -> None:
    @primitive
    def end() -> str:
        """End the approval."""
        service = bench.service.service
        service.reviews.deprecate("t", service.reviews.active()["t"], "ann")
        return ""

    bench = make_bench(primitives=[*PRIMITIVES, shred, end])
    bench.define("tools.shred(name=a)\n    tools.end()\n    return tools.shred(name=a)", parameters="a: str")
    approved(bench, Manifest(calls=(planned("shred", 2, name=parameter("a")), planned("end"))))
    assert bench.error("t", a="x").code == "suspended"
    assert DONE == ["x"]


def test_a_run_that_was_resumed_is_held_to_the_same_count(bench: Bench) -> None:
    body = "tools.launch(name='a')\n    tools.erase(path='.bashrc')\n    tools.launch(name='a')\n    return tools.launch(name='a')"
    bench.define(body)
    erased = planned("erase", uses={"path": "delete"}, path=text(".bashrc"))
    approved(bench, Manifest(calls=(planned("launch", 2, name=text("a")), erased)))
    result = bench.service.invoke("t", {})
    assert result.error is not None
    bench.service.within(lambda s: s.approvals.answer(result.error.details["approval"], "once", "ann"))
    error = bench.service.resume(result.run_id or "").error
    assert error is not None
    assert error.rule == "manifest"
    assert DONE == ["a", ".bashrc", "a"]


LOOP = "for a in names:\n        tools.launch(name=a)\n    return len(names)"


@pytest.mark.parametrize("bound", [(Term(1, (Symbol("length", "parameter:names"),)),), (Term(2),), None])
def test_a_bound_that_the_arguments_decide(bench: Bench, bound: Any) -> None:
    bench.define(LOOP, parameters="names: list[str]")
    call = PlannedCall("launch", arguments={"name": parameter("names", "[*]")}, bound=bound)
    approved(bench, Manifest(calls=(call,)))
    assert bench.value("t", names=["a", "b"]) == 2
    assert bench.service.invoke("t", {"names": ["a", "b", "c"]}).ok == (bound != (Term(2),))


def test_the_bounds_of_a_set_of_planned_calls_hold_together(bench: Bench) -> None:
    bench.define(LOOP, parameters="names: list[str]")
    approved(bench, Manifest(calls=(planned("launch", name=text("a")), planned("launch", name=text(Hole("any"))))))
    assert bench.value("t", names=["a", "b"]) == 2
    assert bench.value("t", names=["a", "a"]) == 2
    assert "it calls launch at most once" in bench.error("t", names=["b", "c"]).message
    assert "it calls launch at most 2 times" in bench.error("t", names=["a", "a", "a"]).message


@pytest.mark.parametrize(("often", "names"), [("wv", "yzyz"), ("zv", "yzyzy")])
def test_the_bounds_of_planned_calls_that_overlap_hold_together(bench: Bench, often: str, names: str) -> None:
    bench.define(LOOP, parameters="names: list[str]")
    bounds = {"xy": 1, "yz": 1, "zw": 1, often: 9}
    calls = (planned("launch", times, name=Value(tuple((name,) for name in of))) for of, times in bounds.items())
    approved(bench, Manifest(calls=tuple(calls)))
    assert bench.value("t", names=[*names[:-1]]) == len(names) - 1
    assert bench.error("t", names=[*names]).rule == "manifest"
    assert [*names[:-1], *names[:-1]] == DONE


NAMES = st.sampled_from(["a", "ab", "b", "a-1"])
ALTERNATIVES = st.sampled_from(
    [("a",), ("a", Hole("any")), (Hole("parameter", "first"),), ("a-", Hole("number")), (Hole("word"),)]
)


@pytest.fixture
def shredding(bench: Bench) -> Bench:
    bench.define(LOOP.replace("launch", "shred"), parameters="names: list[str], first: str")
    return bench


# All inputs share a service. Each input approves another manifest.
@examples(40)
@given(st.lists(NAMES, min_size=1, max_size=4), st.lists(st.tuples(ALTERNATIVES, st.integers(0, 3)), max_size=3))
def test_no_call_outside_the_manifest_is_executed(shredding: Bench, names: list[str], plan: list[Any]) -> None:
    DONE.clear()
    bench = shredding
    calls = tuple(planned("shred", times, name=Value((alternative,))) for alternative, times in plan)
    approved(bench, Manifest(calls=calls))
    result = bench.service.invoke("t", {"names": names, "first": names[0]})
    fits: dict[Any, Callable[[str], bool]] = {
        ("a",): lambda n: n == "a",
        ("a", Hole("any")): lambda n: n.startswith("a"),
        (Hole("parameter", "first"),): lambda n: n == names[0],
        ("a-", Hole("number")): lambda n: n == "a-1",
        (Hole("word"),): lambda n: True,
    }
    assert names[: len(DONE)] == DONE
    assert assigned(DONE, [(fits[alternative], times) for alternative, times in plan])
    assert result.ok == (names == DONE)
    if not result.ok:
        assert result.error is not None
        assert result.error.rule == "manifest"


def assigned(names: list[str], plan: list[tuple[Callable[[str], bool], int]]) -> bool:
    """Whether each name can be given to a planned call that allows it, within the bounds."""
    if not names:
        return True
    return any(
        fits(names[0]) and times and assigned(names[1:], [*plan[:i], (fits, times - 1), *plan[i + 1 :]])
        for i, (fits, times) in enumerate(plan)
    )


@pytest.mark.parametrize("folder", [".github", "hooks"])
def test_a_session_in_a_folder_that_others_execute_is_asked_about_its_files(bench: Bench, folder: str) -> None:
    (bench.work / folder).mkdir(exist_ok=True)
    bench.define("return tools.erase(path=a)", parameters="a: str")
    approved(bench, Manifest(calls=(planned("erase", uses={"path": "delete"}, path=parameter("a")),)))
    _, token = bench.service.within(lambda s: s.open_session("client", cwd=folder))
    error = bench.service.invoke("t", {"a": "ci.yml"}, session=token).error
    assert error is not None
    assert (error.code, DONE) == ("suspended", [])

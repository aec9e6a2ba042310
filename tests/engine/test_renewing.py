"""Versions that an earlier analysis has analysed: they are analysed again, and an approval holds if the result is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from albert_tools import Failure, primitive
from albert_tools.engine.judging import accept
from albert_tools.engine.model import definition
from albert_tools.engine.model.manifest import ANALYSIS, Manifest, Value
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.engine.conftest import DONE, PRIMITIVES, Bench, one
from tests.helpers.children import Child, Report


@primitive(effects=["delete"])
def shred(name: str) -> str:
    """Delete something, so shipped rules ask."""
    DONE.append(name)
    return name


INNER = one("return tools.shred(name=a)", "inner", "a: str")
OUTER = one('return tools.inner(a="x")', "outer")


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    bench = make_bench(primitives=[*PRIMITIVES, shred])
    for source in (INNER, OUTER):
        bench.service.define(source)
    return bench


def store_of(bench: Bench) -> TinyToolStore:
    store = bench.service.service.store
    assert isinstance(store, TinyToolStore)
    return store


def manifest(bench: Bench, name: str) -> Manifest:
    found = store_of(bench).load(name).definition.manifest
    assert found is not None
    return found


def age(bench: Bench, name: str, **said: Any) -> None:
    """Give the newest version of a tool the manifest of an earlier analysis."""
    version = store_of(bench).load(name)
    store_of(bench).renew(version.with_manifest(replace(manifest(bench, name), **said, analysis=ANALYSIS - 1)))


def source_of(path: Path, name: str, source: str) -> None:
    """Make a store's version one of another source, with the hash that belongs to it."""
    store = TinyToolStore(path)
    version = replace(store.load(name), source=source).named()
    old = version.definition.manifest
    assert old is not None
    store.save(version.with_manifest(replace(old, analysis=ANALYSIS - 1)))


def test_an_approval_holds_if_a_new_analysis_finds_the_same(bench: Bench) -> None:
    for name in ("inner", "outer"):
        bench.service.approve(name, "ann")
        age(bench, name)
    before = store_of(bench).history("outer", 10)
    assert bench.value("outer") == "x"
    assert [manifest(bench, name).analysis for name in ("inner", "outer")] == [ANALYSIS, ANALYSIS]
    assert bench.service.service.reviews.state("outer", before[0][0].version).approved
    assert store_of(bench).history("outer", 10) == before


def test_an_approval_does_not_hold_if_a_new_analysis_finds_something_else(bench: Bench) -> None:
    service = bench.service
    # The earlier analysis has not found the call.
    age(bench, "outer", calls=())
    service.service.reviews.approve(store_of(bench).load("outer"), "ann")
    assert bench.error("outer").code == "suspended"
    assert DONE == []
    review = service.review("outer")
    assert (review.state.state, review.state.why) == (
        "pending",
        "what it can do was found out anew, and differs from what ann approved",
    )
    for name in ("inner", "outer"):
        service.approve(name, "ann")
    assert bench.value("outer") == "x"


def test_a_review_and_an_approval_are_of_the_new_manifest(bench: Bench) -> None:
    old = manifest(bench, "outer")
    age(bench, "outer", calls=())
    read = bench.service.review("outer", rerun=False).version.definition
    assert read.manifest == old
    age(bench, "outer", calls=())
    bench.service.approve("outer", "ann", manifest=read.manifest_digest)
    assert manifest(bench, "outer") == old


def test_the_callees_come_first(bench: Bench) -> None:
    expected = manifest(bench, "outer")
    age(bench, "inner", calls=(), result=Value())
    age(bench, "outer", calls=())
    bench.error("outer")
    assert manifest(bench, "outer") == expected
    # A new definition has the callee's new manifest, too.
    age(bench, "inner", calls=(), result=Value())
    assert bench.service.define(OUTER.replace("outer", "another")).manifest == expected


def test_a_pinned_callee_is_analysed_again_although_a_newer_version_exists(bench: Bench) -> None:
    expected = manifest(bench, "outer")
    for name in ("inner", "outer"):
        age(bench, name, calls=())
    bench.service.define(one("return a", "inner", "a: str"))
    bench.error("outer")
    assert manifest(bench, "outer") == expected


def test_a_version_whose_source_is_refused_now_does_not_run(bench: Bench) -> None:
    bench.service.approve("outer", "ann")
    source_of(bench.home / "tools", "outer", OUTER.replace('a="x"', "a=1j"))
    error = bench.error("outer")
    said = "what outer can do must be found out anew, and its source is refused now: complex numbers are not in the language"
    assert (error.code, error.message) == ("outdated", said)
    assert error.hint == "define it again; `albert upgrade` then upgrades the tools that call it"
    assert DONE == []
    review = bench.service.review("outer", rerun=False)
    assert review.outdated == said
    with pytest.raises(Failure, match="refused now"):
        bench.service.approve("outer", "ann")
    rejected = bench.service.service.reviews.reject("outer", review.version.version, "ann", "old")
    assert rejected.state == "revoked"


def test_a_caller_of_a_version_that_is_refused_now_does_not_run(bench: Bench) -> None:
    source_of(bench.home / "tools", "inner", INNER.replace("name=a", "name=1j"))
    with pytest.raises(Failure, match="what inner can do must be found out anew"):
        bench.service.define(OUTER)
    bench.service.define(INNER)
    bench.service.define(OUTER)


def test_calls_at_once_analyse_a_version_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    age(bench, "inner")
    written: list[str] = []
    store, renew = store_of(bench), store_of(bench).renew
    monkeypatch.setattr(store, "renew", lambda version: (written.append(version.name), renew(version)))

    async def at_once() -> None:
        await asyncio.gather(*(bench.service.service.invoke("inner", {"a": "x"}) for _ in range(5)))

    bench.service._wait(at_once())
    assert written == ["inner"]


@pytest.mark.parametrize("is_saved", [True, False])
def test_a_waiting_run_is_resumed_after_a_new_analysis(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_saved: bool
) -> None:
    service = bench.service
    result = service.invoke("outer") if is_saved else service.run_source(OUTER)
    assert result.error is not None
    for module in (definition, accept):
        monkeypatch.setattr(module, "ANALYSIS", ANALYSIS + 1)
    service.service.approvals.answer(result.error.details["approval"], "once", "ann")
    assert service.resume(result.run_id).value() == "x"
    assert manifest(bench, "inner").analysis == ANALYSIS + 1
    assert manifest(bench, "outer").analysis == (ANALYSIS + 1 if is_saved else ANALYSIS)


def run_aged(report: Report, base: Path, rounds: int) -> None:
    """Run a tool again and again that somebody else makes older."""
    again = Bench(base, primitives=[*PRIMITIVES, shred])
    for _ in range(rounds):
        age(again, "inner")
        again.error("inner", a="x")
        report(manifest(again, "inner").effects)
    again.service.close()


def test_two_processes_and_a_kill_do_no_harm(bench: Bench) -> None:
    expected = manifest(bench, "inner")
    killed, other = (Child(run_aged, bench.home.parent, rounds) for rounds in (10_000, 10))
    killed.hear()
    killed.kill()
    other.rest()
    bench.error("inner", a="x")
    assert manifest(bench, "inner") == expected
    assert store_of(bench).verify() == []


def test_a_version_of_a_later_analysis_is_analysed_again(bench: Bench) -> None:
    version = store_of(bench).load("inner")
    store_of(bench).renew(version.with_manifest(replace(manifest(bench, "inner"), analysis=ANALYSIS + 1)))
    bench.error("inner", a="x")
    assert manifest(bench, "inner").analysis == ANALYSIS

"""Answers that are kept: of tools that say so, for as long as they say, by arguments and by what is in the files."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import CallContext, primitive
from albert_tools.engine.call.caching import Cache

COUNTED: list[str] = []


@primitive(effects=["read"], paths={"path": "read"}, cache_seconds=60)
def lines(context: CallContext, path: str) -> list[int]:
    """Count what is in a file."""
    COUNTED.append(path)
    data = context.workspace.read(path, 1000)
    context.effect("read", path=path, size_bytes=len(data))
    return [data.count(b"\n")]


@pytest.fixture
def bench(make_bench: Any) -> Any:
    COUNTED.clear()
    made = make_bench(primitives=[lines])
    (made.work / "a").write_text("1\n2\n")
    return made


def test_the_same_question_is_answered_again(bench: Any) -> None:
    results = [bench.service.invoke("lines", {"path": "a"}) for _ in range(2)]
    assert [r.value() for r in results] == [[2], [2]]
    assert COUNTED == ["a"]
    # It says what was read, and it is in the record like any call.
    assert [e.facts["size_bytes"] for r in results for e in r.effects] == [4, 4]
    entries = bench.service.service.surroundings.ledger.entries(["call", "result"])
    assert [e.kind for e in entries] == ["call", "result"] * 2
    # What a caller does with an answer is no matter to the next.
    results[0].output.append(9)
    results[1].output.append(9)
    assert bench.value("lines", path="a") == [2]


def test_a_changed_file_is_another_question(bench: Any) -> None:
    assert bench.value("lines", path="a") == [2]
    (bench.work / "a").write_text("1\n2\n3\n")
    assert bench.value("lines", path="a") == [3]
    assert COUNTED == ["a", "a"]
    assert bench.error("lines", path="none").code == "not_found"
    (bench.work / "none").write_text("")
    assert bench.value("lines", path="none") == [0]


def test_what_is_denied_is_denied_whatever_is_kept(bench: Any) -> None:
    assert bench.value("lines", path="a") == [2]
    bench.service.service.surroundings.modes.switch("LOCKDOWN", "ada", "")
    assert bench.error("lines", path="a").code == "permission_denied"


def test_answers_hold_for_their_time_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    cache = Cache(lambda: now[0])
    monkeypatch.setattr("albert_tools.engine.call.caching.MAX_ANSWERS", 2)
    for key in (b"a", b"b"):
        cache.keep(key, 10, key.decode(), ())
    assert cache.find(b"a") == ("a", ())
    cache.keep(b"c", 10, "c", ())
    assert (cache.find(b"b"), cache.find(b"a")) == (None, ("a", ()))
    now[0] = 10
    assert cache.find(b"a") is None


def test_only_what_only_reads_says_so() -> None:
    with pytest.raises(TypeError, match="only of a tool that only reads"):

        @primitive(effects=["write"], cache_seconds=1)
        def write() -> None:
            """Write."""

"""Large outputs are stored completely and returned in part. A handle reads the rest. Steps of a run pass them on completely."""

from __future__ import annotations

import json
from typing import Any

import pytest

from albert_tools import primitive
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.references import named
from albert_tools.store.record.record import Record

MiB = 1024 * 1024
WIDE = "äß€𝄞"


@primitive(effects=["read"])
def much(size: int, text: str = "x") -> str:
    """Give a text of so many characters."""
    return (text * (size // len(text) + 1))[:size]


@primitive(effects=["read"])
def rows(count: int) -> list[dict[str, Any]]:
    """Give so many rows."""
    return [{"row": n, "text": "line\n"} for n in range(count)]


@primitive(effects=["write"])
def keep(text: str) -> int:
    """Take a text of any size."""
    return len(text)


@pytest.fixture
def make(make_bench: Any) -> Any:
    def made(**options: Any) -> Any:
        return make_bench(primitives=[much, rows, keep], **options)

    return made


def all_of(bench: Any, handle: str, limit: int) -> str:
    """Read the complete value in parts."""
    found, offset = [], 0
    while offset is not None:
        part = bench.value("read_result", handle=handle, offset=offset, limit=limit)
        assert len(part["content"].encode()) <= limit
        found.append(part["content"])
        offset = part["next_offset"]
    return "".join(found)


def test_a_large_output_is_returned_in_part(make: Any) -> None:
    bench = make()
    assert bench.value("much", size=MiB) == "x" * MiB
    text = "a" + "x" * MiB
    output = bench.value("much", size=MiB + 1, text=text)
    assert output["truncated"] is True
    assert (output["size_bytes"], output["kind"], len(output["head"]), len(output["tail"])) == (
        MiB + 1,
        "text",
        4096,
        4096,
    )
    assert output["head"].startswith("ax")
    assert all_of(bench, output["handle"], 256 * 1024) == text
    result = bench.service.invoke("much", {"size": MiB + 1})
    assert result.as_dict()["output"]["truncated"] is True


def test_json_is_stored_as_json(make: Any) -> None:
    bench = make(output_bytes=1000)
    output = bench.value("rows", count=100)
    assert output["kind"] == "json"
    assert json.loads(all_of(bench, output["handle"], 1000)) == [{"row": n, "text": "line\n"} for n in range(100)]


@pytest.mark.parametrize("limit", [4, 5, 6, 7, 13, 4096])
def test_characters_are_not_split(make: Any, limit: int) -> None:
    bench = make(output_bytes=100)
    text = WIDE * 12
    handle = bench.value("much", size=len(text), text=text)["handle"]
    assert all_of(bench, handle, limit) == text
    if limit == 4096:
        data = text.encode()
        for offset in range(len(data) + 3):
            part = bench.value("read_result", handle=handle, offset=offset, limit=limit)
            assert part["content"] == data[offset:].decode("utf-8", "ignore")
            assert part["next_offset"] is None


def test_reading_lines_by_a_pattern(make: Any) -> None:
    bench = make(output_bytes=100)
    handle = bench.value("much", size=3000, text="one\ntwo\nthree\n")["handle"]
    part = bench.value("read_result", handle=handle, pattern="^t.o$", limit=16)
    assert set(part["content"].split("\n")) == {"two"}
    count = 0
    offset: int | None = 0
    while offset is not None:
        part = bench.value("read_result", handle=handle, pattern="^t.o$", limit=64, offset=offset)
        count += len(part["content"].split())
        offset = part["next_offset"]
    assert count == ("one\ntwo\nthree\n" * 300)[:3000].split("\n").count("two")
    assert bench.error("read_result", handle=handle, pattern="(").code == "invalid_arguments"


@pytest.mark.parametrize(
    ("handle", "code"),
    [
        ("b3:" + "0" * 64, "not_found"),
        ("0" * 64, "invalid_arguments"),
        ("b3:" + "0" * 64 + "\n", "invalid_arguments"),
        ("b3:" + "A" * 64, "invalid_arguments"),
        ("b3:../../../../etc/passwd", "invalid_arguments"),
        ("/etc/passwd", "invalid_arguments"),
        ("b3:\0", "invalid_arguments"),
        ("", "invalid_arguments"),
    ],
)
def test_invalid_handles(make: Any, handle: str, code: str) -> None:
    bench = make()
    for more in ({}, {"pattern": "x"}):
        assert bench.error("read_result", handle=handle, **more).code == code


def test_invalid_bounds(make: Any) -> None:
    bench = make(output_bytes=100)
    handle = bench.value("much", size=200)["handle"]
    assert bench.value("read_result", handle=handle, offset=10**12) == {
        "content": "",
        "size_bytes": 200,
        "next_offset": None,
    }
    for wrong in ({"offset": -1}, {"limit": 3}, {"limit": 10**9}, {"offset": 1.5}):
        assert bench.error("read_result", handle=handle, **wrong).code == "invalid_arguments"


def test_a_changed_value_is_damaged(make: Any) -> None:
    bench = make(output_bytes=100)
    handle = bench.value("much", size=200)["handle"]
    (path,) = (bench.home / "state" / "contents").rglob(handle[5:])
    path.chmod(0o600)
    path.write_bytes(b"y" * 200)
    assert bench.error("read_result", handle=handle).code == "damaged"


def test_values_between_steps_are_complete(make: Any) -> None:
    bench = make(output_bytes=100)
    bench.define("return len(tools.much(size=5000)) + tools.keep(text=tools.much(size=5000))")
    assert bench.value("t") == 10_000


def test_values_larger_than_a_step_of_the_journal(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("albert_tools.store.record.journal.MAX_BYTES", 64 * 1024)
    bench = make()
    size = 16 * 1024
    # As JSON the value is six times as large.
    much = 'tools.much(size=n, text="\\u0001")'
    body = f"text = {much}\n    first = tools.keep(text=text)\n    return [first, len({much}), text]"
    bench.define(body, "t", "n: int")
    bench.define("return len(tools.t(n=n)[2])", "outer", "n: int")
    result = bench.service.invoke("outer", {"n": size})
    assert result.value() == size
    again = bench.service._wait(bench.service.service.runs.replay(result.run_id))
    assert again.value() == size
    # The result and the arguments of a run are complete too, also in a repeat.
    for repeated in (False, True):
        whole = bench.service.invoke("t", {"n": size}, dedupe_key="k")
        assert (whole.repeated, whole.ok) == (repeated, True), whole.error
    taken = [bench.service.invoke("keep", {"text": "\u0001" * size}, dedupe_key="of keep") for _ in range(2)]
    assert [(r.value(), r.repeated) for r in taken] == [(size, False), (size, True)]


def test_a_returned_handle_is_not_collected(make: Any) -> None:
    bench = make(output_bytes=100)
    handle = bench.value("much", size=200)["handle"]
    state = bench.home / "state"
    contents = Contents(state / "contents")
    stray = contents.put(b"nobody's")
    contents.collect(named(Record(state / "record").texts()), older_than_seconds=0)
    assert bench.value("read_result", handle=handle)["content"] == "x" * 200
    assert bench.error("read_result", handle=stray).code == "not_found"


def test_a_result_says_whether_its_output_is_incomplete(make_bench: Any) -> None:
    bench = make_bench(governance={"tools": {"bash": {"allowed_in_modes": ["NORMAL"]}}})
    for name in ("a", "b"):
        (bench.work / name).touch()
    bench.define('return {"truncated": True, "handle": "b3:0"}')
    for tool, arguments, incomplete in (
        ("t", {}, False),
        ("find_files", {"pattern": "?", "limit": 1}, True),
        ("find_files", {"pattern": "?", "limit": 2}, False),
        ("bash", {"command": "seq 1 30000"}, True),
        ("bash", {"command": "echo begun; sleep 60", "timeout": 0.2}, True),
        ("bash", {"command": "echo", "cwd": "missing"}, False),
    ):
        for _ in ("made", "repeated"):
            result = bench.service.invoke(tool, arguments, dedupe_key=f"{tool} {arguments}")
            assert result.strict()["output"]["truncated"] == result.truncated == incomplete, (tool, arguments)

"""publish_artifact and get_artifact. An artifact is published once, never changes, and is found only in its workspace."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from albert_tools import Failure
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.stored_contents import ref_of
from tests.helpers.catalogue_rows import PUBLISHED, Row, reading
from tests.helpers.governed import Governed
from tests.surfaces.conftest import Albert

Make = Callable[..., Governed]
TEXT = "# Report\n\nall is well: äß€𝄞\n"


CATALOGUE = {
    "publish_artifact": Row(
        {"id": "new", "category": "c", "path": "a.txt"},
        [{"kind": "read", "path": "a.txt"}, {"kind": "write", "content_hash": ref_of(b"one\n")}],
        {"forbidden_paths": ["a.txt"]},
        "forbidden_paths",
    ),
    "get_artifact": reading({"id": "old"}, content_hash=ref_of(PUBLISHED.encode())),
    "read_result": reading({"handle": ref_of(PUBLISHED.encode())}, handle=ref_of(PUBLISHED.encode())),
}


def test_a_text_is_published_and_found(govern: Make) -> None:
    home = govern()
    published = home.value("publish_artifact", id="r/1", category="report", content=TEXT, metadata=["by=ada", "n=1"])
    size = len(TEXT.encode())
    assert published["new"] is True
    assert (published["content_hash"], published["size_bytes"]) == (ref_of(TEXT.encode()), size)
    found = home.value("get_artifact", id="r/1")
    assert found["content"] == TEXT
    assert found["next_offset"] is None
    for name in ("id", "content_hash", "size_bytes", "category", "metadata", "created"):
        assert found[name] == published[name]
    assert found["metadata"] == ["by=ada", "n=1"]
    assert home.value("read_result", handle=found["content_hash"])["content"] == TEXT
    (wrote,) = home.effects("publish_artifact")
    assert (wrote["kind"], wrote["artifact"], wrote["content_hash"]) == ("write", "r/1", found["content_hash"])
    assert (wrote["size_bytes"], wrote["sha256"]) == (size, hashlib.sha256(TEXT.encode()).hexdigest())
    (read,) = home.effects("get_artifact")
    assert (read["kind"], read["artifact"], read["size_bytes"]) == ("read", "r/1", size)


def test_a_file_is_published_with_its_present_content(govern: Make) -> None:
    home = govern()
    (home.work / "out.bin").write_bytes(b"\x00\xff\n")
    published = home.value("publish_artifact", id="bin", category="data", path="out.bin")
    (home.work / "out.bin").write_bytes(b"another")
    found = home.value("get_artifact", id="bin", encoding="base64")
    assert base64.b64decode(found["content"]) == b"\x00\xff\n"
    assert home.value("get_artifact", id="bin")["content"] == "\x00\ufffd\n"
    read, wrote = home.effects("publish_artifact")
    assert (read["kind"], read["path"], wrote["kind"]) == ("read", "out.bin", "write")
    assert wrote["sha256"] == read["sha256"] == hashlib.sha256(b"\x00\xff\n").hexdigest()
    assert published["size_bytes"] == 3
    assert home.error("publish_artifact", id="b", category="c", path="missing").code == "not_found"
    assert home.error("publish_artifact", id="b", category="c", path="../x").denied


def test_a_stored_value_is_published_by_its_handle(govern: Make) -> None:
    home = govern(output_bytes=100)
    (home.work / "long.txt").write_text("line\n" * 1000)
    large = home.service.invoke("read_file", {"path": "long.txt"}).value()
    assert large["truncated"] is True
    published = home.value("publish_artifact", id="long", category="text", handle=large["handle"])
    assert (published["content_hash"], published["size_bytes"]) == (large["handle"], 5000)
    bare = home.value("publish_artifact", id="again", category="text", handle=large["handle"][3:])
    assert bare["content_hash"] == large["handle"]
    assert home.value("get_artifact", id="again", offset=4990, limit=5)["content"] == "line\n"
    assert home.error("publish_artifact", id="x", category="c", handle="0" * 64).code == "not_found"


def test_an_id_can_be_published_again_with_the_same_content_only(govern: Make) -> None:
    home = govern()
    first = home.value("publish_artifact", id="a", category="c", content="one", metadata=["k=v"])
    again = home.value("publish_artifact", id="a", category="c", content="one", metadata=["k=v"])
    assert again == {**first, "new": False}
    assert [e["kind"] for e in home.effects("publish_artifact")] == ["write", "read"]
    for change in ({"content": "two"}, {"category": "d"}, {"metadata": []}):
        error = home.error(
            "publish_artifact", {"id": "a", "category": "c", "content": "one", "metadata": ["k=v"]} | change
        )
        assert error.code == "exists"
        assert error.details["content"] == first["content_hash"]
    assert home.value("get_artifact", id="a")["content"] == "one"


def test_slices_never_cut_a_character(govern: Make) -> None:
    home = govern()
    text = "äß€𝄞" * 5
    home.value("publish_artifact", id="a", category="c", content=text)
    parts, offset = [], 0
    while offset is not None:
        part = home.value("get_artifact", id="a", offset=offset, limit=5)
        parts.append(part["content"])
        offset = part["next_offset"]
    assert "".join(parts) == text
    assert home.value("get_artifact", id="a", offset=10_000)["content"] == ""


@pytest.mark.parametrize(
    ("arguments", "field", "rule"),
    [
        ({"content": "a", "path": "b"}, "path", "excludes"),
        ({"content": "a", "handle": "0" * 64}, "handle", "excludes"),
        ({}, "content", "required"),
        ({"content": "a", "id": ""}, "id", "min_length"),
        ({"content": "a", "id": "x" * 257}, "id", "max_length"),
        ({"content": "a", "category": ""}, "category", "min_length"),
        ({"content": "a", "category": "x" * 257}, "category", "max_length"),
        ({"handle": "b3:123"}, "handle", "hash"),
        ({"content": "a", "metadata": ["no equals"]}, "metadata", "one_equals"),
        ({"content": "a", "metadata": ["a=b=c"]}, "metadata", "one_equals"),
        ({"content": "a", "metadata": ["k=" + "x" * 32768]}, "metadata", "max_length"),
        ({"content": "a", "metadata": ["k=v"] * 1001}, "metadata", "max_items"),
        ({"content": 1}, "content", "type"),
    ],
)
def test_each_bound(govern: Make, arguments: dict[str, Any], field: str, rule: str) -> None:
    home = govern()
    broken = home.broken("publish_artifact", {"id": "a", "category": "c", **arguments})
    assert any(f.startswith(field) and r == rule for f, r in broken), broken
    assert home.error("get_artifact", id="a").code == "not_found"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"offset": -1}, "offset"), ({"limit": 3}, "limit"), ({"limit": 10**9}, "limit"), ({"id": ""}, "id")],
)
def test_each_bound_of_get_artifact(govern: Make, arguments: dict[str, Any], field: str) -> None:
    assert govern().broken("get_artifact", {"id": "a", **arguments})[0][0] == field


def test_too_much_metadata(govern: Make) -> None:
    error = govern().error("publish_artifact", id="a", category="c", content="x", metadata=["k=" + "x" * 32000] * 40)
    assert error.code == "too_large"


def test_half_a_surrogate_pair_is_refused(govern: Make) -> None:
    home = govern()
    for change in ({"id": "\ud800"}, {"content": "\ud800"}, {"metadata": ["a=\ud800"]}, {"category": "\udfff"}):
        error = home.error("publish_artifact", {"id": "a", "category": "c", "content": "x"} | change)
        assert error.code in ("encoding_error", "not_json", "invalid_arguments")
    assert home.error("get_artifact", id="\ud800").code in ("encoding_error", "not_json", "invalid_arguments")


def test_denied_calls(govern: Make) -> None:
    home = govern(governance={"deny": ["get_artifact"], "tools": {"publish_artifact": {"forbidden_paths": ["secret"]}}})
    (home.work / "secret").write_text("x")
    error = home.error("publish_artifact", id="a", category="c", path="secret")
    assert (error.code, error.rule) == ("permission_denied", "tools.publish_artifact.forbidden_paths")
    assert home.error("get_artifact", id="a").rule == "deny"
    assert home.effects("publish_artifact") == []
    large = govern(governance={"tools": {"publish_artifact": {"max_file_size_mb": 0.00001}}})
    (large.work / "a").write_text("x" * 100)
    assert large.error("publish_artifact", id="a", category="c", path="a").code == "too_large"


def test_a_budget_of_bytes(govern: Make) -> None:
    home = govern()
    session, home.session = home.service.within(lambda s: s.open_session("agent", budget=Budget(bytes_written=10)))
    home.value("publish_artifact", id="a", category="c", content="12345678")
    error = home.error("publish_artifact", id="b", category="c", content="123")
    assert (error.code, error.rule) == ("budget_exceeded", "lease.budget.bytes_written")
    home.value("publish_artifact", id="c", category="c", content="12")
    assert session.id


def test_each_workspace_has_its_own_artifacts(govern: Make) -> None:
    home = govern()
    home.value("publish_artifact", id="a", category="c", content="mine")
    home.work = home.work.parent / "other"
    (home.work / ".albert").mkdir(parents=True)
    from albert_tools import SyncToolService

    with SyncToolService.open(home=home.home, workspace=home.work) as other:
        error = other.invoke("get_artifact", {"id": "a"}).error
        assert error is not None
        assert error.code == "not_found"
        assert other.invoke("publish_artifact", {"id": "a", "category": "c", "content": "theirs"}).value()["new"]
    assert home.value("get_artifact", id="a")["content"] == "mine"


def test_a_damaged_content_is_reported(govern: Make) -> None:
    home = govern()
    published = home.value("publish_artifact", id="a", category="c", content="one")
    ref = published["content_hash"]
    kept = Contents(home.home / "state" / "contents").folder / ref[3:5] / ref[5:]
    kept.write_bytes(b"two")
    assert home.error("get_artifact", id="a").code == "damaged"
    assert home.error("publish_artifact", id="b", category="c", handle=ref).code == "damaged"


def test_called_from_a_program_and_from_the_command_line(govern: Make, tmp_path: Any) -> None:
    home = govern()
    told = home.composite(
        'made = tools.publish_artifact(id=name, category="note", content="from a program")\n'
        '    return tools.get_artifact(id=name)["content"] + made["content_hash"][:3]',
        "name: str",
        name="n1",
    )
    assert told == "from a programb3:"
    with pytest.raises(Failure) as caught:
        home.composite('return tools.publish_artifact(id="n1", category="note", content="other")')
    assert caught.value.code == "exists"
    folder = tmp_path / "cli"
    folder.mkdir()
    albert = Albert(folder)
    done = albert("run", "--json", "publish_artifact", "id=a", "category=c", "content=x", 'metadata=["k=v"]')
    assert done.document()["output"]["new"] is True, done
    assert albert("run", "--json", "get_artifact", "id=a").document()["output"]["content"] == "x"
    # Content that an artifact references is never deleted by a sweep.
    assert albert("runs", "sweep", "--older-than", "1d").code == 0
    assert albert("run", "--json", "get_artifact", "id=a").document()["output"]["content"] == "x"

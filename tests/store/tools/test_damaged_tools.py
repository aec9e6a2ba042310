"""Entries that differ from what was saved."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.definition import digest
from albert_tools.engine.model.failure import Failure
from albert_tools.store.tools.names import Place
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers.effort import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just("../../../x"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)


def _edit(change: Callable[[dict], object]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        tables = json.loads(path.read_bytes())
        change(tables)
        path.write_text(json.dumps(tables))

    return edit


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "not text": lambda p: p.write_bytes(b"\x80\xff\x00junk"),
    "empty": lambda p: p.write_bytes(b""),
    "truncated": lambda p: p.write_bytes(p.read_bytes()[:-20]),
    "nested without end": lambda p: p.write_bytes(b"[" * 100_000),
    "a list": lambda p: p.write_bytes(b"[]"),
    "an empty object": lambda p: p.write_bytes(b"{}"),
    "no versions": _edit(lambda t: t.pop("versions")),
    "another source": _edit(lambda t: t["versions"]["1"]["source"].append("evil")),
    "no manifest": _edit(lambda t: t["versions"]["1"].pop("manifest")),
    "another hash": _edit(lambda t: t["versions"]["1"].update(version="0" * 64)),
    "no such head": _edit(lambda t: t["meta"]["1"].update(head="0" * 64)),
    "no layout": _edit(lambda t: t["meta"]["1"].pop("schema")),
    "a layout that is none": _edit(lambda t: t["meta"]["1"].update(schema="1")),
    "a count that is none": _edit(lambda t: t["meta"]["1"].update(archived=10**30)),
    "a flag that is none": _edit(lambda t: t["meta"]["1"].update(deleted=0)),
    "a date that is none": _edit(lambda t: t["versions"]["1"].update(created={})),
    "a pipe": _pipe,
    "a folder": _folder,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_entry_is_reported_and_replaced_by_a_save(store: TinyToolStore, make, kind: str) -> None:
    for name in ("before", "shout", "zebra"):
        store.save(make(name=name))
    assert len(store.list()) == 3
    path = Place.of(store.folder, "shout").entry
    DAMAGE[kind](path)
    kept = path.read_bytes() if path.is_file() else None

    with pytest.raises(Failure) as caught:
        store.load("shout")
    assert caught.value.code == "damaged"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("save the tool again")
    for each in (store, TinyToolStore(store.folder)):
        assert [(s.name, s.problem is not None) for s in each.list()] == [
            ("before", False),
            ("shout", True),
            ("zebra", False),
        ]
        assert {s.name for s in each.search("Shout it")} == {"before", "zebra"}
        assert each.search("shout")[0].problem is not None
    assert store.load("zebra") == make(name="zebra")

    assert store.save(make(text="again")) is True
    assert store.load("shout") == make(text="again")
    assert [s.problem for s in store.list()] == [None] * 3
    aside = path.with_name("shout.json.damaged-1")
    assert aside.exists()
    assert kept is None or aside.read_bytes() == kept


MISSHAPEN = {
    "calls": {"read_file": {"kind": "primitive", "version": {}}},
    "effects": ["\x1b[31mread"],
    "entry": 10**30,
    "lines": ["1"],
    "parameters": [{"name": "n", "schema": [1], "description": "", "required": True, "default": None}],
    "result": None,
    "timeout": "soon",
}


@pytest.mark.parametrize("part", MISSHAPEN)
def test_a_malformed_version_with_a_valid_hash_does_not_affect_others(store: TinyToolStore, make, part: str) -> None:
    store.save(make())
    store.save(make(name="whisper"))
    path = Place.of(store.folder, "shout").entry
    tables = json.loads(path.read_bytes())
    document = tables["versions"]["1"]
    document[part] = MISSHAPEN[part]
    document["version"] = digest({k: v for k, v in document.items() if k not in ("created", "version", "manifest")})
    tables["meta"]["1"]["head"] = document["version"]
    path.write_text(json.dumps(tables))
    with pytest.raises(Failure, match="has the wrong type"):
        store.load("shout")
    assert [(s.name, s.problem is None) for s in store.list()] == [("shout", False), ("whisper", True)]


def test_every_damaged_file_is_moved_aside_and_kept(store: TinyToolStore, make) -> None:
    path = Place.of(store.folder, "shout").entry
    for i in range(3):
        store.save(make(text=str(i)))
        path.write_text(f"junk {i}")
    store.save(make())
    assert [p.read_text() for p in sorted(path.parent.glob("*.damaged-*"))] == ["junk 0", "junk 1", "junk 2"]


def test_versions_with_a_valid_hash_survive_a_damaged_head(store: TinyToolStore, make) -> None:
    versions = [make(text=t) for t in "abc"]
    for version in versions:
        store.save(version)
    _edit(lambda t: t["versions"]["3"].update(language=7))(Place.of(store.folder, "shout").entry)
    assert store.load("shout", versions[0].version) == versions[0]
    with pytest.raises(Failure, match="does not match the hash"):
        store.load("shout")
    store.save(make(text="d"))
    assert [store.load("shout", v.version) for v in versions[:2]] == versions[:2]
    assert store.list()[0].versions == 3


def test_a_damaged_entry_can_not_be_deleted_by_name(store: TinyToolStore, make) -> None:
    store.save(make())
    path = Place.of(store.folder, "shout").entry
    path.write_bytes(b"junk")
    with pytest.raises(Failure) as caught:
        store.delete("shout")
    assert caught.value.code == "damaged"
    assert path.read_bytes() == b"junk"


def _first_layout(tables) -> None:
    del tables["meta"]


@pytest.mark.parametrize(("change", "layout"), [(lambda t: t["meta"]["1"].update(schema=2), 2), (_first_layout, 0)])
def test_an_entry_of_another_layout_is_not_changed(store: TinyToolStore, make, change, layout: int) -> None:
    version = make()
    store.save(version)
    path = Place.of(store.folder, "shout").entry
    _edit(change)(path)
    before = path.read_bytes()
    for use in (
        lambda: store.save(make(text="b")),
        lambda: store.load("shout"),
        lambda: store.load("shout", version.version),
        lambda: store.delete("shout"),
    ):
        with pytest.raises(
            Failure, match=f"it has layout {layout}, and this version of Albert Tools reads 1"
        ) as caught:
            use()
        assert caught.value.code == "damaged"
        assert caught.value.hint == f"use the version that wrote it, or move {path} away"
    assert "layout" in (store.list()[0].problem or "")
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == [".lock", "shout.json"]


def test_any_content_of_an_entry_raises_only_failures(tmp_path: Path, make) -> None:
    origin = TinyToolStore(tmp_path / "origin")
    for i in range(3):
        origin.save(make(text=str(i)))
    sound = Place.of(origin.folder, "shout").entry.read_bytes()

    @examples(50)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as root:
            store = TinyToolStore(Path(root) / "tools")
            path = Place.of(store.folder, "shout").entry
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(_spoilt(json.loads(sound), data)))
            for version in (None, make(text="1").version):
                with suppress(Failure):
                    assert store.load("shout", version).name == "shout"
            assert len(store.list()) <= 1
            store.search("shout")
            try:
                store.save(make(text="new"))
            except Failure as failure:
                assert failure.code == "damaged"  # noqa: PT017 - another layout, rarely; else it is saved
            else:
                assert store.load("shout") == make(text="new")
                assert [s.problem for s in store.list()] == [None]
            assert os.listdir(root) == ["tools"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("albert_tools.store.tools.tool_store.KEEP", 2)
        check()


def _spoilt(tables: dict, data: st.DataObject) -> dict:
    """Copies of the tables in which one value is replaced or one key is renamed."""
    place = tables
    for _ in range(data.draw(st.integers(0, 3))):
        values = place.values() if isinstance(place, dict) else place
        inner = [v for v in values if v and isinstance(v, (dict, list))]
        if not inner:
            break
        place = inner[data.draw(st.integers(0, len(inner) - 1))]
    keys = sorted(place) if isinstance(place, dict) else range(len(place))
    key = keys[data.draw(st.integers(0, len(keys) - 1))]
    if isinstance(place, dict) and data.draw(st.booleans()):
        place[data.draw(st.sampled_from(["", "0", "-1", "01", "x", "1", "7"]))] = place.pop(key)
    else:
        place[key] = data.draw(JSON)
    return tables

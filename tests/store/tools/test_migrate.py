"""Entries that an earlier version of the store wrote in an older layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.tools.migrate import MIGRATIONS, SCHEMA
from albert_tools.store.tools.names import Place
from albert_tools.store.tools.tool_store import TinyToolStore


def _layout_0(store: TinyToolStore, *versions) -> Path:
    documents = {}
    for i, version in enumerate(versions, 9):  # Ids are numbers, so 10 comes after 9.
        document = version.to_document()
        documents[str(i)] = {**document, "source": version.source, "lowered": version.program.lowered}
    path = Place.of(store.folder, versions[0].name).entry
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"versions": documents}))
    return path


def test_every_layout_can_be_migrated() -> None:
    assert sorted(MIGRATIONS) == list(range(SCHEMA))


def test_layout_0_is_read_and_listed_and_a_save_migrates_it(store: TinyToolStore, make) -> None:
    old, new = make(text="old"), make(text="new")
    path = _layout_0(store, old, new)
    before = path.read_bytes()
    assert store.load("shout") == new
    assert store.load("shout", old.version) == old
    assert [(s.version, s.versions, s.problem) for s in store.list()] == [(new.version, 2, None)]
    assert store.save(new) is False
    assert path.read_bytes() == before

    assert store.save(make(text="newest")) is True
    tables = json.loads(path.read_bytes())
    assert tables["meta"]["1"]["schema"] == SCHEMA
    assert all(isinstance(d["source"], list) for d in tables["versions"].values())
    assert [store.load("shout", v.version) for v in (old, new)] == [old, new]
    assert store.load("shout") == make(text="newest")


def test_layout_0_can_be_deleted(store: TinyToolStore, make) -> None:
    _layout_0(store, make())
    store.delete("shout")
    assert store.list() == []
    assert store.load("shout", make().version) == make()


def test_a_damaged_layout_0_is_damaged(store: TinyToolStore, make) -> None:
    path = _layout_0(store, make())
    path.write_text(path.read_text().replace("upper", "lower"))
    with pytest.raises(Failure, match="does not match the hash") as caught:
        store.load("shout")
    assert caught.value.code == "damaged"

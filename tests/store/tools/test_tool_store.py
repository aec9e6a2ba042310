"""The tool store behaves as its protocol says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Manifest, Value
from albert_tools.engine.model.protocols import Summary, ToolStore
from albert_tools.store.tools.names import Place
from albert_tools.store.tools.stored_tools import StoredTools
from albert_tools.store.tools.tool_store import KEEP, TinyToolStore
from tests.store.conftest import another, on_both


def _code(call, *arguments) -> str:
    with pytest.raises(Failure) as caught:
        call(*arguments)
    return caught.value.code


@on_both
def test_a_saved_tool_is_loaded_by_this_store_and_by_another(store: StoredTools, make) -> None:
    protocol: ToolStore = store
    version = make()
    assert protocol.save(version) is True
    assert protocol.load("shout") == version
    assert another(store).load("shout", version.version) == version
    assert protocol.list() == [Summary("shout", version.version, "Shout it.", "2025-01-01T00:00:00Z", 1)]


@on_both
@pytest.mark.parametrize("constant", [("\ud800",), float("inf")], ids=ascii)
def test_a_version_that_can_not_be_stored_is_refused(store: StoredTools, make, constant) -> None:
    version = make().with_manifest(Manifest(("read",), result=Value((constant,))))
    assert _code(store.save, version) == "invalid_arguments"
    assert store.list() == []


@on_both
def test_only_the_manifest_of_a_renewed_version_changes(store: StoredTools, make) -> None:
    made = [make(text=f"a{i}") for i in range(KEEP + 2)]
    for version in made:
        store.save(version)
    before = store.history("shout", 100)
    for version in (made[0], made[5], made[-1]):  # archived, older, newest
        renewed = version.with_manifest(Manifest(("read",), printed=("parameter:a",), analysis=7))
        store.renew(renewed)
        assert store.load("shout", version.version) == renewed
        assert another(store).load("shout", version.version) == renewed
    assert store.load("shout").version == made[-1].version
    assert store.history("shout", 100) == before
    assert store.load("shout", made[4].version) == made[4]
    assert _code(store.renew, make(text="never saved")) == "unknown_tool"
    assert store.verify() == []


@on_both
def test_a_removed_tool_is_renewed_and_stays_removed(store: StoredTools, make) -> None:
    store.save(make())
    store.delete("shout")
    renewed = make().with_manifest(Manifest(("read",), analysis=7))
    store.renew(renewed)
    assert store.load("shout", renewed.version) == renewed
    assert store.list() == []


@on_both
def test_saving_the_newest_version_again_changes_nothing(store: StoredTools, make) -> None:
    store.save(make())
    before = store.list(), store.history("shout", 9)
    assert store.save(make()) is False
    assert (store.list(), store.history("shout", 9)) == before


def test_saving_the_newest_version_again_writes_no_file(store: TinyToolStore, make) -> None:
    store.save(make())
    entry = Place.of(store.folder, "shout").entry
    before = entry.stat()
    assert store.save(make()) is False
    # Reading it changes the time of the last access.
    assert (entry.stat().st_ino, entry.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@on_both
def test_an_older_version_saved_again_becomes_the_newest(store: StoredTools, make) -> None:
    first, second = make(text="a"), make(text="a + a")
    assert [store.save(v) for v in (first, second, first)] == [True, True, True]
    assert store.load("shout") == first
    assert store.load("shout", second.version) == second
    assert store.list()[0].versions == 2


@on_both
def test_a_deleted_tool_keeps_its_history_and_can_be_saved_again(store: StoredTools, make) -> None:
    version = make()
    store.save(version)
    store.delete("shout")
    assert store.list() == []
    assert store.search("shout") == []
    assert _code(store.load, "shout") == "unknown_tool"
    assert store.load("shout", version.version) == version
    assert _code(store.delete, "shout") == "unknown_tool"
    assert store.save(version) is True
    assert store.load("shout") == version


@on_both
def test_a_change_of_a_certain_version(store: StoredTools, make) -> None:
    first, second = make(text="a"), make(text="a + a")
    assert _code(store.save, first, second.version) == "exists"
    assert store.save(first, "") is True
    assert _code(store.save, second, "") == "exists"
    assert store.save(second, first.version) is True
    assert _code(store.delete, "shout", first.version) == "exists"
    store.delete("shout", second.version)
    assert _code(store.save, first, second.version) == "exists"
    assert store.save(first, "") is True


def test_a_damaged_entry_is_not_replaced_by_a_change_of_a_certain_version(store: TinyToolStore, make) -> None:
    # Nothing is known about a damaged entry.
    first, second = make(text="a"), make(text="a + a")
    store.save(first)
    Place.of(store.folder, "shout").entry.write_text("{")
    assert _code(store.save, second, first.version) == "damaged"


@on_both
def test_the_author_of_a_version(store: StoredTools, make) -> None:
    for n in range(KEEP + 2):
        store.save(replace(make(text=f"a + {n}"), author="" if n else "5e551011"))
    assert [v.author for v in store.history("shout", KEEP + 2)[0]] == [""] * (KEEP + 1) + ["5e551011"]
    assert store.load("shout", store.history("shout", KEEP + 2)[0][-1].version).author == "5e551011"


@on_both
def test_unknown_tools_and_versions(store: StoredTools, make) -> None:
    store.save(make())
    with pytest.raises(Failure, match=r"no tool named 'shuot'; did you mean 'shout'\?"):
        store.load("shuot")
    assert _code(store.load, "shout", "0" * 64) == "unknown_tool"
    assert _code(store.load, "shout", "../../../etc/passwd") == "unknown_tool"
    assert _code(store.load, "none", "0" * 64) == "unknown_tool"
    assert _code(store.delete, "none") == "unknown_tool"


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a-b", ".hidden", "ä", "a\n", "a\0b", "1a", "a" * 129])
def test_an_invalid_name_touches_no_path(store: TinyToolStore, make, name: str) -> None:
    assert _code(store.save, make(name=name)) == "invalid_arguments"
    assert _code(store.load, name) == "unknown_tool"
    assert _code(store.load, name, "0" * 64) == "unknown_tool"
    assert _code(store.delete, name) == "unknown_tool"
    assert not store.folder.exists()


def test_names_that_differ_in_case_are_different_files_everywhere(store: TinyToolStore, make) -> None:
    names = ["readfile", "readFile", "ReadFile", "READFILE", "Z" * 128, "z" * 128]
    for name in names:
        store.save(make(name=name, description=name))
    paths = [Place.of(store.folder, name).entry for name in names]
    assert len({p.name.lower() for p in paths}) == len(names)
    assert [store.load(name).definition.description for name in names] == names
    assert [s.name for s in store.list()] == sorted(names)


@on_both
def test_a_version_that_is_not_json_is_refused(store: StoredTools, make) -> None:
    from msgspec.structs import replace

    for schema in ({"maximum": float("nan")}, {"maximum": object}, {"maximum": {1, 2}}):
        version = make()
        version = replace(version, definition=replace(version.definition, result=schema))
        assert _code(store.save, version) == "invalid_arguments"


@on_both
def test_a_version_whose_hash_does_not_match_its_content_is_refused(store: StoredTools, make) -> None:
    from msgspec.structs import replace

    assert _code(store.save, replace(make(), source="other")) == "invalid_arguments"
    assert _code(store.save, replace(make(), version="")) == "invalid_arguments"
    assert _code(store.save, replace(make(), source="\ud800")) == "invalid_arguments"
    assert store.list() == []


def test_old_versions_move_to_the_archive_and_are_still_found(store: TinyToolStore, make) -> None:
    versions = [make(text=str(i)) for i in range(KEEP + 15)]
    sizes = []
    for version in versions:
        assert store.save(version)
        sizes.append(Place.of(store.folder, "shout").entry.stat().st_size)
    assert sizes[-1] < sizes[KEEP] * 1.05
    place = Place.of(store.folder, "shout")
    assert len(list(place.archive.iterdir())) == 15
    assert [store.load("shout", v.version) for v in versions] == versions
    assert store.list()[0].versions == len(versions)

    assert store.save(versions[0]) is True  # from the archive
    assert store.load("shout") == versions[0]
    assert store.list()[0].versions == len(versions)
    for version in versions[1:]:
        store.save(version)
    assert store.list()[0].versions == len(versions)
    assert [TinyToolStore(store.folder).load("shout", v.version) for v in versions] == versions

    place.entry.write_text("junk")
    assert _code(store.load, "shout") == "damaged"
    assert store.load("shout", versions[0].version) == versions[0]


def test_the_file_is_a_readable_tinydb_file(store: TinyToolStore, make) -> None:
    from tinydb import TinyDB

    store.save(make())
    path = Place.of(store.folder, "shout").entry
    with TinyDB(path, access_mode="r", encoding="utf-8") as database:
        assert [d["name"] for d in database.table("versions").all()] == ["shout"]
    text = path.read_text(encoding="utf-8")
    assert "字" in text
    assert '\n    "    return a.upper()",\n' in text
    assert json.loads(text)["meta"]["1"]["schema"] == 1
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("settle_at_once")
def test_a_cached_load_reads_no_file_and_sees_saves_of_others(
    store: TinyToolStore, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(make())
    path = Place.of(store.folder, "shout").entry
    version = store.load("shout")
    assert store.load("shout") is version
    TinyToolStore(store.folder).save(make(text="b"))
    assert store.load("shout") == make(text="b")
    path.unlink()
    assert _code(store.load, "shout") == "unknown_tool"


def test_a_file_that_has_just_changed_is_read_again(store: TinyToolStore, make) -> None:
    store.save(make(text="1"))
    for i in range(20):
        assert store.load("shout") == make(text=str(1 + i % 9))
        TinyToolStore(store.folder).save(make(text=str(1 + (i + 1) % 9)))


def test_stale_temporary_files_are_removed_by_the_next_writer(store: TinyToolStore, make) -> None:
    store.save(make(text="1"))
    shard = Place.of(store.folder, "shout").shard
    (shard / ".new-123-abcd").write_text("half")
    assert [s.name for s in store.list()] == ["shout"]
    store.save(make(text="2"))
    assert sorted(os.listdir(shard)) == [".lock", "shout.json"]


def test_waiting_for_a_lock_times_out(store: TinyToolStore, make, monkeypatch: pytest.MonkeyPatch) -> None:
    from albert_tools.store.atomic import writing

    monkeypatch.setattr("albert_tools.store.atomic.LOCK_PATIENCE", 0.02)
    with writing(Place.of(store.folder, "shout").shard), pytest.raises(Failure, match="another") as caught:
        store.save(make())
    assert caught.value.code == "io_error"
    assert caught.value.retryable
    assert store.save(make())


def test_an_entry_in_the_wrong_place_is_refused(store: TinyToolStore, make, tmp_path: Path) -> None:
    store.save(make(name="a"))
    source = Place.of(store.folder, "a").entry
    target = Place.of(store.folder, "b").entry
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(source.read_bytes())
    assert _code(store.load, "b") == "damaged"
    stray = store.folder / "00" / "a.json"
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(source.read_bytes())
    (source.parent / "No Name.json").write_bytes(b"{}")
    problems = {s.name: s.problem for s in store.list()}
    assert problems["b"] == "it is the entry of 'a'"
    assert problems["No Name"] == "'No Name' is not a tool's name"
    assert sorted(p or "" for n, p in ((s.name, s.problem) for s in store.list()) if n == "a") == [
        "",
        f"the file of 'a' belongs in the folder {source.parent.name}, not in 00",
    ]

"""Listing and searching give correct results, even if the index is missing, damaged or out of date."""

from __future__ import annotations

import itertools
import os
import sqlite3
import time
from collections import defaultdict
from pathlib import Path

import pytest
from msgspec.structs import replace

from albert_tools.engine.model.definition import Callee, ToolVersion
from albert_tools.engine.model.nearest_name import look_alike, look_key
from albert_tools.store.tools.entry import is_settled
from albert_tools.store.tools.names import Place
from albert_tools.store.tools.search_index import _FULL_TEXT
from albert_tools.store.tools.stored_tools import StoredTools
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers import versions
from tests.helpers.children import Child, Report, wait_for
from tests.store.conftest import another, on_both

ALL, NONE = "countWords read_csv shout", ""
#: Texts that mean something to SQLite, or look so, and what they find: the tools that have their words. An operator is a word.
ODD = {
    "OR": "shout", "NOT x": "shout", ";DROP TABLE entries": "read_csv shout", "name:x": "countWords", "\n\t": ALL,
    **dict.fromkeys(["a AND", "NEAR(a b)", "a*", "^a", "a)", "{a b}", "a\0b", "a " * 10_000], ALL),
    **dict.fromkeys(['"', "'", '""', "*", "(", "-", "+", "--", "%", "_", "\ud800", "🦊", "\u0301"], NONE),
    **dict.fromkeys(['"unclosed', "ä字", "a" * 10_000, "²", "𝔞", "ⅷ"], NONE),
}  # fmt: skip


@pytest.fixture
def full(store: StoredTools, make) -> StoredTools:
    store.save(make("read_csv", "csv.rows(a)", "Read a table."))
    store.save(make("countWords", "len(a.split())", "Count the words of a text."))
    store.save(make("shout", "a.upper()", "Say it loudly, in a table or not."))
    return store


def _names(store: StoredTools, text: str, limit: int = 20) -> list[str]:
    return [s.name for s in store.search(text, limit)]


@on_both
def test_a_match_in_a_name_ranks_above_one_in_a_description_or_source(store: StoredTools, make) -> None:
    store.save(make("a", "zebra(a)", "One."))
    store.save(make("b", "1", "Draw a zebra."))
    store.save(make("zebra", "1", "Two."))
    assert _names(store, "zebra") == ["zebra", "b", "a"]
    assert _names(store, "zebra", 1) == ["zebra"]
    assert _names(store, "zebra", 0) == []


@on_both
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("csv", ["read_csv"]),
        ("read_csv", ["read_csv"]),
        ("READ table", ["read_csv"]),  # all words before any word
        ("words nothing", ["countWords"]),  # any word if no tool has all
        ("Words", ["countWords"]),
        ("tab", ["read_csv", "shout"]),  # beginnings of words
        ("hout", ["shout"]),  # parts of words if no word begins so
        ("nothing", []),
        ("", ["countWords", "read_csv", "shout"]),
        ("  ", ["countWords", "read_csv", "shout"]),
        ("!?", []),
    ],
)
def test_search_results(full: StoredTools, text: str, expected: list[str]) -> None:
    assert sorted(_names(full, text)) == sorted(expected)


@on_both
@pytest.mark.parametrize(("text", "found"), ODD.items(), ids=range(len(ODD)))
def test_a_query_has_no_operators(full: StoredTools, text: str, found: str) -> None:
    assert sorted(_names(full, text)) == found.split()


def test_without_full_text_search_a_linear_search_is_used(tmp_path: Path, full: TinyToolStore, monkeypatch) -> None:
    monkeypatch.setattr("albert_tools.store.tools.search_index._FULL_TEXT", _FULL_TEXT.replace("fts5", "fts99"))
    plain = TinyToolStore(full.folder, tmp_path / "other")
    assert _names(plain, "csv") == ["read_csv"]
    assert _names(plain, "READ table") == ["read_csv", "shout"]
    for text, found in ODD.items():
        # It also finds parts of words.
        assert set(found.split()) <= set(_names(plain, text)), text[:30]
    plain.delete("read_csv")
    assert _names(plain, "csv") == []


@on_both
def test_changes_of_other_processes_are_visible_at_once(full: StoredTools, make) -> None:
    other, unshared = another(full), another(full)
    for i in range(10):
        name = f"t{i % 3}"
        other.save(make(name, str(i), f"Number{i}."))
        for store in (full, unshared):
            assert _names(store, f"number{i}") == [name]
            assert any(s.description == f"Number{i}." for s in store.list())
    other.delete("t0")
    for store in (full, unshared):
        assert _names(store, "t0") == []
        assert "t0" not in [s.name for s in store.list()]


def _database(cache: Path) -> Path:
    [path] = cache.glob("*.sqlite3")
    return path


def _garbage(cache: Path) -> None:
    _database(cache).write_bytes(b"garbage" * 1000)


def _half(cache: Path) -> None:
    content = _database(cache).read_bytes()
    _database(cache).write_bytes(content[: len(content) // 2])


def _layout(cache: Path) -> None:
    with sqlite3.connect(_database(cache)) as database:
        database.execute("PRAGMA user_version = 99")


def _tables(cache: Path) -> None:
    with sqlite3.connect(_database(cache)) as database:
        database.execute("DROP TABLE entries")


def _folder(cache: Path) -> None:
    path = _database(cache)
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [_garbage, _half, _layout, _tables, _folder, lambda c: _database(c).unlink()])
@pytest.mark.parametrize("warm", [False, True])
def test_a_damaged_index_is_built_again(full: TinyToolStore, tmp_path: Path, make, spoil, warm: bool) -> None:
    assert len(full.list()) == 3
    if not warm:
        full._index._database.close()
    spoil(tmp_path / "cache")
    store = full if warm else TinyToolStore(full.folder, tmp_path / "cache")
    store.save(make("late", "1", "Late."))
    assert [s.name for s in store.list()] == ["countWords", "late", "read_csv", "shout"]
    assert _names(store, "late") == ["late"]
    assert _names(store, "csv") == ["read_csv"]


def test_search_works_while_the_index_is_locked(full: TinyToolStore, tmp_path: Path, make, monkeypatch) -> None:
    monkeypatch.setattr("albert_tools.store.tools.search_index.PATIENCE", 0.01)
    full.list()
    holder = sqlite3.connect(_database(tmp_path / "cache"), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    store = TinyToolStore(full.folder, tmp_path / "cache")
    store.save(make("late"))
    assert [s.name for s in store.list()] == ["countWords", "late", "read_csv", "shout"]
    assert _names(store, "late") == ["late"]
    holder.close()
    assert _names(store, "late") == ["late"]


@pytest.mark.parametrize("cache", ["file", "file/below", "/proc/nowhere"])
def test_search_works_without_a_usable_cache(full: TinyToolStore, tmp_path: Path, cache: str) -> None:
    (tmp_path / "file").write_text("in the way")
    store = TinyToolStore(full.folder, tmp_path / cache)
    assert len(store.list()) == 3
    assert _names(store, "csv") == ["read_csv"]


def list_before_and_after_a_fork(_: Report, folder: Path, cache: Path) -> None:
    store = TinyToolStore(folder, cache)
    before = [s.name for s in store.list()]
    pid = os.fork()
    if not pid:
        code = 1
        try:
            store.save(versions.make("born", "1", "Born."))
            assert [s.name for s in store.list()] == ["born", *before]
            code = 0
        finally:
            os._exit(code)
    assert wait_for(pid) == 0
    assert [s.name for s in store.search("born")] == ["born"]


def test_a_fork_opens_the_index_itself(full: TinyToolStore) -> None:
    assert Child(list_before_and_after_a_fork, full.folder, full._cache).wait() == 0
    assert _names(full, "born") == ["born"]


@pytest.mark.usefixtures("settle_at_once")
def test_a_fresh_index_is_used_without_reading_entries(full: TinyToolStore, monkeypatch) -> None:
    import albert_tools.store.tools.search_index as index

    expected = full.list()
    monkeypatch.setattr(index, "describe", lambda *_: 1 / 0)
    assert full.list() == expected
    assert TinyToolStore(full.folder, full._cache).list() == expected
    monkeypatch.setattr(index, "entries_of", lambda *_: 1 / 0)
    assert _names(full, "csv") == ["read_csv"]


def test_tools_of_a_removed_shard_are_not_listed(full: TinyToolStore) -> None:
    import shutil

    full.list()
    shutil.rmtree(Place.of(full.folder, "shout").shard)
    assert _names(full, "shout") == []
    assert [s.name for s in full.list()] == ["countWords", "read_csv"]


@pytest.mark.usefixtures("settle_at_once")
@pytest.mark.parametrize("ask", [TinyToolStore.list, lambda store: store.search("late")], ids=["list", "search"])
def test_only_a_changed_entry_is_read_again(full: TinyToolStore, make, monkeypatch, ask) -> None:
    import albert_tools.store.tools.search_index as index

    full.list()
    read: list[str] = []
    describe = index.describe
    monkeypatch.setattr(index, "describe", lambda shard, file: read.append(file) or describe(shard, file))
    TinyToolStore(full.folder).save(make("late", "1", "Late."))
    assert "late" in [s.name for s in ask(full)]
    assert read == ["late.json"]
    ask(TinyToolStore(full.folder, full._cache))
    assert read == ["late.json"]


def test_an_edit_by_hand_is_listed_even_if_the_clock_was_set_back(full: TinyToolStore) -> None:
    full.list()
    path = Place.of(full.folder, "shout").entry
    text = path.read_text()
    with path.open("r+") as file:
        file.write(text.replace("loudly", "softly"))
    os.utime(path, (1, 1))
    for store in (full, TinyToolStore(full.folder, full._cache)):
        [shout] = [s for s in store.list() if s.name == "shout"]
        assert shout.problem == "the content does not match the hash it was saved under"


@on_both
def test_pages(store: StoredTools, make) -> None:
    for name in ("b", "D", "a", "c", "gone"):
        store.save(make(name))
    store.delete("gone")
    assert store.names() == [s.name for s in store.list()] == ["D", "a", "b", "c"]
    assert [s.name for s in store.page("", 3)] == ["D", "a", "b"]
    assert [s.name for s in store.page("b", 3)] == ["c"]


def test_a_damaged_tool_is_on_its_page_but_not_among_the_names(store: TinyToolStore, make) -> None:
    for name in ("b", "d", "a", "c", "gone"):
        store.save(make(name))
    store.delete("gone")
    Place.of(store.folder, "c").entry.write_text("{}")
    assert [s.name for s in store.page("", 3)] == ["a", "b", "c"]
    assert [s.name for s in store.page("c", 3)] == ["d"]
    assert store.page("d", 3) == store.page("", 0) == []
    assert store.names() == ["a", "b", "d"]


@on_both
def test_any_word_finds_tools_with_some_of_the_words(full: StoredTools) -> None:
    assert _names(full, "read table") == ["read_csv"]
    assert [s.name for s in full.search("read table", 20, any_word=True)] == ["read_csv", "shout"]


def test_an_entry_that_becomes_readable_is_found(full: TinyToolStore, make, tmp_path: Path) -> None:
    entry, elsewhere = Place.of(full.folder, "shout").entry, tmp_path / "elsewhere"
    entry.rename(elsewhere)
    hidden = elsewhere.rename(tmp_path / "hidden")
    entry.symlink_to(elsewhere)
    settled = 1_700_000_000 * 10**9
    os.utime(entry.parent, ns=(settled, settled))
    assert full.page("read_csv", 1)[0].problem == "it is a broken link"
    hidden.rename(elsewhere)
    assert _names(full, "loudly") == ["shout"]


@on_both
def test_names_that_could_look_alike(store: StoredTools, make) -> None:
    for name in ("read_all", "Read__All", "read_a11", "read_aIi", "read_al", "gone_0", "bad_1"):
        store.save(make(name))
    store.delete("gone_0")
    if isinstance(store, TinyToolStore):
        Place.of(store.folder, "bad_1").entry.write_text("{}")
        assert store.alike("bad_l") == []
    assert store.alike("READ_ALL") == ["Read__All", "read_a11", "read_aIi", "read_all"]
    assert store.alike("gone_o") == store.alike("write_all") == []
    another(store).save(make("READ_ALL"))
    assert "READ_ALL" in store.alike("read_all")


@on_both
def test_callers_and_the_versions_that_they_call(store: StoredTools, make) -> None:
    def caller(name: str, *callees: Callee) -> ToolVersion:
        return replace(make(name), calls=callees).named()

    store.save(caller("a", Callee("x", "composite", "1" * 64), Callee("y", "composite", "2" * 64)))
    store.save(caller("b", Callee("x", "composite", "3" * 64)))
    store.save(caller("c", Callee("x", "primitive", "4" * 64)))
    assert store.callers("x") == [("a", "1" * 64), ("b", "3" * 64)]
    assert store.callers("y") == [("a", "2" * 64)]
    another(store).save(caller("a", Callee("y", "composite", "5" * 64)))
    store.delete("b")
    assert store.callers("x") == store.callers("") == []
    assert store.callers("y") == [("a", "5" * 64)]


@pytest.mark.parametrize(
    ("changed", "age", "settled"),
    [
        (1_700_000_000_123_456_789, 0.09, False),
        (1_700_000_000_123_456_789, 0.11, True),
        (1_700_000_000_000_000_000, 0.11, False),  # a file system that may store only seconds
        (1_700_000_000_000_000_000, 1.99, False),
        (1_700_000_000_000_000_000, 2.01, True),
        (1_700_000_000_500_000_000, 1.99, False),
        (1_700_000_000_123_456_789, -5, False),  # a time in the future
    ],
)
def test_a_time_of_change_is_trusted_after_a_tick_of_its_clock(changed: int, age: float, settled: bool) -> None:
    assert is_settled(changed, changed + int(age * 1e9)) is settled


def test_changes_within_one_tick_of_a_coarse_clock_are_seen(store: TinyToolStore, make) -> None:
    place = Place.of(store.folder, "shout")
    second = time.time_ns() // 10**9 * 10**9
    for word in ("once", "twice", "thrice"):
        TinyToolStore(store.folder).save(make("shout", "a", f"Shout {word}."))
        os.utime(place.shard, ns=(second, second))
        os.utime(place.entry, ns=(second, second))
        assert _names(store, word) == ["shout"]


def test_look_alikes_have_one_key() -> None:
    letters = "aIil1L0oO_"
    names = ["".join(letters) for letters in itertools.product(letters, repeat=3)]
    by_key = defaultdict(list)
    for name in names:
        by_key[look_key(name)].append(name)
    for name in names[::7]:
        alike = {other for other in names if look_alike(name, [other])}
        assert alike <= set(by_key[look_key(name)])

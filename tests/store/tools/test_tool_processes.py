"""Several processes and threads use one store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers import versions
from tests.helpers.children import Child, Report

EACH = 15


def save_versions(_: Report, folder: Path, who: str) -> None:
    mine = TinyToolStore(folder)
    for i in range(EACH):
        assert mine.save(versions.make(text=f"{who}{i}"))


def test_two_processes_that_write_the_same_tool_lose_no_version(store: TinyToolStore, make) -> None:
    children = [Child(save_versions, store.folder, who) for who in "ab"]
    assert [child.wait() for child in children] == [0, 0]
    for who in "ab":
        for i in range(EACH):
            version = make(text=f"{who}{i}")
            assert store.load("shout", version.version) == version
    assert store.list()[0].versions == 2 * EACH


def save_tools(_: Report, folder: Path, cache: Path, who: str) -> None:
    mine = TinyToolStore(folder, cache)
    for i in range(EACH):
        assert mine.save(versions.make(f"{who}{i}"))
        assert f"{who}{i}" in [s.name for s in mine.list()]  # the index is shared too


def test_saves_of_several_processes_are_all_stored(store: TinyToolStore) -> None:
    children = [Child(save_tools, store.folder, store._cache, who) for who in "abc"]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert [s.name for s in store.list()] == sorted(f"{who}{i}" for who in "abc" for i in range(EACH))


def test_threads_share_one_store(store: TinyToolStore, make) -> None:
    problems: list[BaseException] = []

    def work(who: str) -> None:
        try:
            for i in range(EACH):
                store.save(make("shared", f"{who}{i}"))
                store.save(make(f"{who}{i}"))
                assert store.load(f"{who}{i}") == make(f"{who}{i}")
                assert store.load("shared", make("shared", f"{who}{i}").version)
                assert store.search(f"{who}{i}")
                assert store.list()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(store.list()) == 3 * EACH + 1
    assert store.list()[-1].versions == 3 * EACH


def save_many(_: Report, folder: Path, cache: Path) -> None:
    store = TinyToolStore(folder, cache)
    for i in range(200):
        store.save(versions.make(text=str(i)))


@pytest.mark.slow
def test_a_reader_never_sees_a_partly_written_entry(store: TinyToolStore, make) -> None:
    store.save(make(text="0"))
    child = Child(save_many, store.folder, store._cache)
    reads = 0
    while child.alive:
        assert store.load("shout").name == "shout"
        reads += 1
    assert child.wait() == 0
    assert reads > 10
    assert store.load("shout") == make(text="199")

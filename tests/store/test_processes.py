"""Several processes and threads at one store."""

from __future__ import annotations

import os
import threading

from albert_tools.store.tools import TinyToolStore

EACH = 15


def test_two_processes_at_one_tool_lose_no_version(store: TinyToolStore, make, fork) -> None:
    def work(who: str) -> None:
        mine = TinyToolStore(store.folder)
        for i in range(EACH):
            assert mine.save(make(text=f"{who}{i}"))

    children = [fork(lambda who=who: work(who)) for who in "ab"]
    assert [os.waitpid(c, 0)[1] for c in children] == [0, 0]
    for who in "ab":
        for i in range(EACH):
            version = make(text=f"{who}{i}")
            assert store.load("shout", version.version) == version
    assert store.list()[0].versions == 2 * EACH


def test_processes_at_different_tools_lose_none(store: TinyToolStore, make, fork) -> None:
    def work(who: str) -> None:
        mine = TinyToolStore(store.folder, store._cache)
        for i in range(EACH):
            assert mine.save(make(f"{who}{i}"))
            assert f"{who}{i}" in [s.name for s in mine.list()]  # the index is shared too

    children = [fork(lambda who=who: work(who)) for who in "abc"]
    assert [os.waitpid(c, 0)[1] for c in children] == [0, 0, 0]
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


def test_a_reader_never_sees_half_an_entry(store: TinyToolStore, make, fork) -> None:
    store.save(make(text="0"))

    def write() -> None:
        for i in range(200):
            store.save(make(text=str(i)))

    child = fork(write)
    reads = 0
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        assert store.load("shout").name == "shout"
        reads += 1
    assert reads > 10
    assert store.load("shout") == make(text="199")

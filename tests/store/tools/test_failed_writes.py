"""After a failed write the old entry is complete, and the failure has a clear message."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.tools.names import Place
from albert_tools.store.tools.tool_store import KEEP, TinyToolStore

FULL = OSError(errno.ENOSPC, "No space left on device")


class _FullFile:
    """A file on a full disk. Half of the first write arrives."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, content: bytes) -> int:
        self._file.write(content[: len(content) // 2])
        self._file.flush()
        raise FULL

    def __enter__(self) -> _FullFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _fail_replace(patch: pytest.MonkeyPatch) -> None:
    def replace(*_: object) -> None:
        raise FULL

    patch.setattr(os, "replace", replace)


def _fail_fsync(patch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise FULL

    patch.setattr(os, "fsync", fsync)


def _fail_write(patch: pytest.MonkeyPatch) -> None:
    def opened(*arguments: Any) -> _FullFile:
        return _FullFile(builtins.open(*arguments))

    patch.setattr("albert_tools.engine.model.replace_file.open", opened, raising=False)


def _fail_create(patch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def open_(path: Any, flags: int, *rest: Any) -> int:
        if flags & os.O_EXCL:
            raise FULL
        return opened(path, flags, *rest)

    patch.setattr(os, "open", open_)


FAILURES = [_fail_replace, _fail_fsync, _fail_write, _fail_create]
Fail = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("fail", FAILURES)
@pytest.mark.parametrize(
    "saved", [0, 1, KEEP]
)  # a new entry; an existing entry; an entry that must first move versions to the archive
def test_a_failed_save_keeps_the_old_entry(store: TinyToolStore, make, fail: Fail, saved: int) -> None:
    versions = [make(text=str(i)) for i in range(saved)]
    for version in versions:
        store.save(version)
    newer = make(text="newer")
    with pytest.MonkeyPatch.context() as patch:
        fail(patch)
        with pytest.raises(Failure, match="No space left on device") as caught:
            store.save(newer)
    assert caught.value.code == "io_error"
    assert caught.value.hint == "free some disk space and try again"
    fresh = TinyToolStore(store.folder)
    assert [s.versions for s in fresh.list()] == ([saved] if saved else [])
    assert [fresh.load("shout", v.version) for v in versions] == versions
    if saved:
        assert fresh.load("shout") == versions[-1]
    shard = Place.of(store.folder, "shout").shard
    assert not shard.is_dir() or not any(n.startswith(".new") for n in os.listdir(shard))
    assert store.save(newer) is True
    assert store.load("shout") == newer
    assert store.list()[0].versions == saved + 1


@pytest.mark.parametrize("fail", FAILURES)
def test_a_failed_delete_keeps_the_tool(store: TinyToolStore, make, fail: Fail) -> None:
    store.save(make())
    with pytest.MonkeyPatch.context() as patch:
        fail(patch)
        with pytest.raises(Failure, match="can't delete the tool 'shout'"):
            store.delete("shout")
    assert store.load("shout") == make()


def test_a_failure_after_the_replacement_leaves_the_new_file_complete(store: TinyToolStore, make) -> None:
    store.save(make(text="old"))
    synced: list[int] = []
    fsync = os.fsync

    def second_fails(handle: int) -> None:
        synced.append(handle)
        if len(synced) == 2:
            raise FULL
        fsync(handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", second_fails)
        with pytest.raises(Failure):
            store.save(make(text="new"))
        # The answer False also promises that the version is on the disk. So the folder is synced before the answer.
        assert store.save(make(text="new")) is False
        assert len(synced) == 3
    assert store.load("shout") == make(text="new")


@pytest.mark.parametrize("fail", FAILURES)
def test_a_failed_save_over_a_damaged_entry_leaves_the_damaged_one(store: TinyToolStore, make, fail: Fail) -> None:
    store.save(make())
    path = Place.of(store.folder, "shout").entry
    path.write_bytes(b"junk")
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            fail(patch)
            with pytest.raises(Failure) as caught:
                store.save(make())
        assert caught.value.code == "io_error"
        assert path.read_bytes() == b"junk"
    store.save(make())
    assert store.load("shout") == make()
    assert [p.read_bytes() for p in path.parent.glob("*.damaged-*")] == [b"junk"]

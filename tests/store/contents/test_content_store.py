"""Values stored under their hash. A read returns the value that was put, or fails. A referenced value is never collected."""

from __future__ import annotations

import errno
import os
import random
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.failure import Failure
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.postgres_contents import PostgresContents
from albert_tools.store.contents.stored_contents import BLOCK, Collected, StoredContents, ref_of
from albert_tools.store.home_tables import HomeTables
from tests.helpers.children import Child, Parent, Report
from tests.helpers.effort import examples
from tests.helpers.postgres import server


@pytest.fixture(params=["files", "postgres"])
def contents(request: pytest.FixtureRequest, tmp_path: Path) -> StoredContents:
    """An empty store. The folder of the one in files does not exist yet."""
    if request.param == "files":
        return Contents(tmp_path / "contents")
    return PostgresContents(request.getfixturevalue("tables"))


#: For a test that attacks files.
on_files = pytest.mark.parametrize("contents", ["files"], indirect=True)


def _file(contents: Contents, ref: str) -> Path:
    return contents.folder / ref[3:5] / ref[5:]


def _age(contents: StoredContents, ref: str, seconds: float) -> None:
    if isinstance(contents, PostgresContents):
        with contents._tables.transaction() as connection:
            statement = "UPDATE contents SET stored = clock_timestamp() - make_interval(secs => %s) WHERE ref = %s"
            connection.execute(statement, (seconds, ref))
        return
    then = time.time() - seconds
    os.utime(_file(contents, ref), (then, then))


def _change(contents: StoredContents, ref: str, content: bytes) -> None:
    """Change a value as another program does it."""
    if isinstance(contents, PostgresContents):
        with contents._tables.transaction() as connection:
            connection.execute("UPDATE contents SET content = %s WHERE ref = %s", (content, ref))
        return
    _file(contents, ref).write_bytes(content)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00\xff" * 1000, os.urandom(3 * BLOCK + 17)])
def test_get_returns_what_was_put(contents: StoredContents, content: bytes) -> None:
    ref = contents.put(content)
    assert ref == f"b3:{blake3(content).hexdigest()}"
    assert contents.get(ref) == content
    assert contents.size(ref) == len(content)
    assert contents.put(content) == ref


def test_a_value_that_is_too_large_for_a_row_is_refused(tables: HomeTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("albert_tools.store.contents.postgres_contents.MAX_BYTES", 10)
    contents = PostgresContents(tables)
    contents.put(b"x" * 10)
    with pytest.raises(Failure, match="at most 10 bytes") as caught:
        contents.put(b"x" * 11)
    assert caught.value.code == "too_large"


@on_files
def test_files_and_folders_are_private(contents: Contents) -> None:
    ref = contents.put(b"x")
    path = _file(contents, ref)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert contents.folder.stat().st_mode & 0o777 == 0o700


@pytest.fixture(scope="module", params=["files", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredContents, str, bytes]:
    content = random.Random(1).randbytes(2 * BLOCK + 1000)
    # Other tests empty the shared tables.
    on_postgres = request.param == "postgres"
    contents = (
        PostgresContents(HomeTables(server().url()))
        if on_postgres
        else Contents(tmp_path_factory.mktemp("kept") / "contents")
    )
    return contents, contents.put(content), content


EDGES = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 999, 2 * BLOCK + 1000, 3 * BLOCK, 10**18]
NUMBERS = st.sampled_from(EDGES) | st.integers(0, 3 * BLOCK)


@examples(25)
@given(offset=NUMBERS, limit=NUMBERS)
def test_a_slice_is_the_same_as_in_python(kept: tuple[StoredContents, str, bytes], offset: int, limit: int) -> None:
    contents, ref, content = kept
    assert contents.slice(ref, offset, limit) == content[offset : offset + limit]


@pytest.mark.parametrize(("offset", "limit"), [(-1, 1), (0, -1)])
def test_a_slice_before_the_beginning_is_refused(
    kept: tuple[StoredContents, str, bytes], offset: int, limit: int
) -> None:
    with pytest.raises(Failure) as caught:
        kept[0].slice(kept[1], offset, limit)
    assert caught.value.code == "invalid_arguments"


READS: list[Callable[[StoredContents, str], object]] = [
    lambda contents, ref: contents.get(ref),
    lambda contents, ref: contents.slice(ref, 0, 1),
    lambda contents, ref: contents.size(ref),
]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "ref",
    [
        "",
        "b3:",
        "0" * 64,
        "sha256:" + "0" * 64,
        "b3:" + "0" * 63,
        "b3:" + "0" * 65,
        "b3:" + "A" * 64,
        "b3:" + "0" * 64 + "\n",
        "b3:../" + "0" * 61,
        "b3:" + "../" * 21 + "x",
        "b3:" + "٠" * 64,
        "b3:00\x00" + "0" * 61,
        None,
    ],
)
def test_an_invalid_reference_is_refused(
    contents: StoredContents, read: Callable[[StoredContents, str], object], ref: str
) -> None:
    contents.put(b"x")
    with pytest.raises(Failure, match="is not a reference") as caught:
        read(contents, ref)
    assert caught.value.code == "invalid_arguments"


@pytest.mark.parametrize("read", READS)
def test_an_unknown_reference_is_not_found(
    contents: StoredContents, read: Callable[[StoredContents, str], object]
) -> None:
    for _ in range(2):
        with pytest.raises(Failure) as caught:
            read(contents, ref_of(b"x"))
        assert caught.value.code == "not_found"
        contents.put(b"y")


def test_every_changed_byte_is_detected_and_putting_again_repairs_it(contents: StoredContents) -> None:
    content = b"a value of some bytes"
    ref = contents.put(content)
    damaged = [content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :] for i in range(len(content))]
    for other in [*damaged, content[:-1], content + b"x", b""]:
        _change(contents, ref, other)
        for read in READS[:2]:
            with pytest.raises(Failure, match="was changed after it was stored") as caught:
                read(contents, ref)
            assert caught.value.code == "damaged"
        assert contents.put(content) == ref
        assert contents.get(ref) == content


@on_files
def test_a_link_or_a_pipe_in_place_of_a_value_is_refused(contents: Contents, tmp_path: Path) -> None:
    ref = contents.put(b"x")
    path = _file(contents, ref)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failure, match="can't read the value"):
        contents.get(ref)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Failure, match="was changed after it was stored"):
        contents.get(ref)
    contents.put(b"x")
    assert contents.get(ref) == b"x"


# Collecting


def test_collect_keeps_referenced_and_recent_values_only(contents: StoredContents) -> None:
    named, old, young, again = (contents.put(word) for word in (b"named", b"older", b"young", b"again"))
    for ref in (named, old, again):
        _age(contents, ref, 100)
    contents.put(b"again")  # makes the value young again
    assert contents.collect({named}, older_than_seconds=50) == Collected(taken=1, taken_bytes=5, left=3)
    with pytest.raises(Failure):
        contents.get(old)
    assert [contents.get(ref) for ref in (named, young, again)] == [b"named", b"young", b"again"]
    for ref in (young, again):
        _age(contents, ref, 100)
    assert contents.collect(lambda ref: ref == young, older_than_seconds=50).taken == 2
    assert contents.get(young) == b"young"


def test_by_default_values_stay_for_a_day(contents: StoredContents) -> None:
    ref, older = contents.put(b"x"), contents.put(b"y")
    _age(contents, ref, 23 * 3600)
    _age(contents, older, 25 * 3600)
    assert contents.collect(set()).taken == 1
    assert contents.get(ref) == b"x"


@on_files
def test_collect_leaves_other_files_alone(contents: Contents, tmp_path: Path) -> None:
    assert contents.collect(set(), 0) == Collected(0, 0, 0)
    assert not contents.folder.exists()
    ref = contents.put(b"x")
    shard = _file(contents, ref).parent
    strangers = [contents.folder / "notes", contents.folder / "zz", shard / "notes", shard / ("A" * 62)]
    for path in strangers:
        path.write_text("mine")
    (tmp_path / "other").mkdir()
    victim = tmp_path / "other" / ref[5:]
    victim.write_text("mine")
    link = contents.folder / ("00" if shard.name != "00" else "01")
    link.symlink_to(tmp_path / "other")
    for path in [*strangers, victim]:
        os.utime(path, (0, 0))
    _age(contents, ref, 100)
    assert contents.collect(set(), 10).taken == 1
    assert [path.read_text() for path in [*strangers, victim]] == ["mine"] * 5


def test_an_exception_of_the_keep_function_stops_the_collection(contents: StoredContents) -> None:
    ref = contents.put(b"x")
    _age(contents, ref, 100)

    def keep(_: str) -> bool:
        raise RuntimeError("no records")

    with pytest.raises(RuntimeError):
        contents.collect(keep, 10)
    assert contents.get(ref) == b"x"
    for age in (-1, float("nan")):
        with pytest.raises(Failure) as caught:
            contents.collect(set(), age)
        assert caught.value.code == "invalid_arguments"


def test_collecting_during_puts_never_deletes_a_recent_value(contents: StoredContents) -> None:
    values = [b"%d" % i for i in range(4)]
    stop = threading.Event()
    trouble: list[BaseException] = []

    def put() -> None:
        try:
            while not stop.is_set():
                for value in values:
                    ref = contents.put(value)
                    assert contents.get(ref) == value  # It was put a moment ago, so it is in the store.
                    _age(contents, ref, 100)
        except BaseException as error:
            trouble.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    end = time.monotonic() + 60
    taken = 0
    while taken < 100 and time.monotonic() < end and thread.is_alive():
        taken += contents.collect(set(), 50).taken
    stop.set()
    thread.join()
    assert trouble == []
    assert taken >= 100


# Several writers, faults, killed processes


def test_the_same_value_put_by_many_at_once(contents: StoredContents) -> None:
    value = os.urandom(100_000)
    refs: list[str] = []
    threads = [threading.Thread(target=lambda: refs.append(contents.put(value))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refs == [ref_of(value)] * 8
    assert contents.get(refs[0]) == value
    assert contents.collect(set(), 0).taken == 1


def put_on_a_full_disk(_: Report, folder: Path) -> None:
    contents = Contents(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    small = contents.put(b"x" * 40_000)
    with pytest.raises(Failure, match="can't store a value at") as caught:
        contents.put(b"x" * 60_000)
    assert caught.value.code == "io_error"
    assert caught.value.details["errno"] == errno.EFBIG
    assert contents.get(small) == b"x" * 40_000


@on_files
def test_a_full_disk_leaves_no_partly_written_value(contents: Contents) -> None:
    assert Child(put_on_a_full_disk, contents.folder).wait() == 0
    with pytest.raises(Failure) as caught:
        contents.get(ref_of(b"x" * 60_000))
    assert caught.value.code == "not_found"
    assert not list(contents.folder.glob("*/.new-*"))


def put_without_pause(report: Report, folder: Path, life: int) -> None:
    contents = Contents(folder)
    i = 0
    while True:
        report(contents.put(b"%d.%d " % (life, i) * 5000))
        i += 1


@on_files
def test_every_reported_value_survives_kill_9(contents: Contents) -> None:
    chance = random.Random(5)
    refs: list[str] = []
    parent = Parent(put_without_pause)
    for life in range(20):
        child = parent.fork(contents.folder, life)
        refs.append(child.hear())  # The child did put values, even on a slow disk.
        time.sleep(chance.uniform(0.0, 0.03))
        child.kill()
        refs += child.rest()
    assert len(refs) >= 20
    for ref in refs:
        assert contents.size(ref) == len(contents.get(ref))
    # The next collection removes a partly written value.
    contents.collect(set(refs), 0)
    assert not list(contents.folder.glob("*/.new-*"))
    assert len(list(contents.folder.glob("*/" + "?" * 62))) == len(set(refs))


@on_files
@pytest.mark.parametrize("mode", [0o755, 0o750])
def test_a_folder_that_others_can_enter_is_refused(contents: Contents, mode: int) -> None:
    ref = contents.put(b"x")
    contents.folder.chmod(mode)
    operations: list[Callable[[], object]] = [
        lambda: contents.put(b"y"),
        lambda: contents.get(ref),
        lambda: contents.collect(set(), 0),
    ]
    for operation in operations:
        with pytest.raises(Failure, match="the folder of the contents is open to others") as caught:
            operation()
        assert caught.value.code == "io_error"


@on_files
def test_a_file_in_place_of_the_folder(contents: Contents) -> None:
    contents.folder.write_text("hello")
    with pytest.raises(Failure, match="folder") as caught:
        contents.put(b"x")
    assert caught.value.code == "io_error"
    assert contents.folder.read_text() == "hello"

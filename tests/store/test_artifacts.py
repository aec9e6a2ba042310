"""Artifacts, in files and in a database: published by two processes at once, killed at any moment, and changed by other programs.

The content of an artifact is never collected.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Artifact
from albert_tools.store.artifacts import Artifacts, StoredArtifacts
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.postgres_contents import PostgresContents
from albert_tools.store.contents.references import named
from albert_tools.store.contents.stored_contents import StoredContents
from albert_tools.store.home_tables import HomeTables
from albert_tools.store.postgres_artifacts import PostgresArtifacts
from tests.helpers.children import Child, Report

NOW = "2026-01-31T08:00:00.000001+00:00"


def store(place: Path | str) -> tuple[StoredArtifacts, StoredContents]:
    """The store in a folder, or in the database of a URL."""
    if isinstance(place, str):
        tables = HomeTables(place)
        in_database = PostgresContents(tables)
        return PostgresArtifacts(tables, in_database), in_database
    contents = Contents(place / "contents")
    return Artifacts(place / "artifacts", contents), contents


@pytest.fixture(params=["folder", "url"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """The place of an empty store."""
    if request.param == "folder":
        return tmp_path
    request.getfixturevalue("tables")
    url: str = request.getfixturevalue("home_url")
    return url


#: For a test that looks at files.
on_files = pytest.mark.parametrize("place", ["folder"], indirect=True)


def artifact(contents: StoredContents, id: str, text: bytes) -> Artifact:
    return Artifact(id, contents.put(text), len(text), "c", (), NOW)


class Record:
    """The only record in a store, as another program sees it."""

    def __init__(self, artifacts: StoredArtifacts) -> None:
        self._artifacts = artifacts

    def path(self) -> Path:
        assert isinstance(self._artifacts, Artifacts)
        (found,) = [p for p in self._artifacts.folder.rglob("*") if p.is_file() and p.name != ".lock"]
        return found

    def read(self) -> bytes:
        if isinstance(self._artifacts, Artifacts):
            return self.path().read_bytes()
        ((data,),) = self._artifacts._tables.rows("SELECT record FROM artifacts")
        return data

    def write(self, data: bytes) -> None:
        if isinstance(self._artifacts, Artifacts):
            self.path().write_bytes(data)
            return
        with self._artifacts._tables.transaction() as connection:
            connection.execute("UPDATE artifacts SET record = %s", (data,))

    def remove(self) -> None:
        if isinstance(self._artifacts, Artifacts):
            self.path().unlink()
            return
        with self._artifacts._tables.transaction() as connection:
            connection.execute("DELETE FROM artifacts")


def make_old(contents: StoredContents, ref: str) -> None:
    if isinstance(contents, Contents):
        os.utime(contents.folder / ref[3:5] / ref[5:], (0, 0))
        return
    with contents._tables.transaction() as connection:
        connection.execute("UPDATE contents SET stored = '1970-01-01' WHERE ref = %s", (ref,))


def test_published_and_found(place: Path | str) -> None:
    artifacts, contents = store(place)
    made = artifact(contents, "a/b ü\n", b"x")
    assert artifacts.publish("/w", made) == (made, True)
    assert artifacts.publish("/w", made) == (made, False)
    assert store(place)[0].get("/w", made.id) == made
    for workspace, id in (("/v", made.id), ("/w", "a")):
        with pytest.raises(Failure) as caught:
            artifacts.get(workspace, id)
        assert caught.value.code == "not_found"


@on_files
def test_files_are_private(place: Path) -> None:
    artifacts, contents = store(place)
    artifacts.publish("/w", artifact(contents, "a", b"x"))
    path = Record(artifacts).path()
    assert path.stat().st_mode & 0o777 == 0o600
    assert (place / "artifacts").stat().st_mode & 0o777 == 0o700


def test_the_content_must_be_in_the_store(place: Path | str) -> None:
    artifacts, _ = store(place)
    for ref, code in (("b3:" + "0" * 64, "not_found"), ("nonsense", "invalid_arguments")):
        with pytest.raises(Failure) as caught:
            artifacts.publish("/w", Artifact("a", ref, 1, "c", (), NOW))
        assert caught.value.code == code
    assert list(artifacts.texts()) == []


def test_every_changed_byte_is_found(place: Path | str) -> None:
    artifacts, contents = store(place)
    artifacts.publish("/w", artifact(contents, "a", b"x"))
    record = Record(artifacts)
    whole = record.read()
    for n in range(len(whole)):
        record.write(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :])
        with pytest.raises(Failure) as caught:
            artifacts.get("/w", "a")
        assert caught.value.code == "damaged", n
    for data in (b"", whole[:-1], whole + b"\n", b"null", b"[" * 100_000):
        record.write(data)
        with pytest.raises(Failure) as caught:
            artifacts.publish("/w", artifact(contents, "a", b"x"))
        assert caught.value.code == "damaged"
        assert record.read() == data


@on_files
def test_a_link_in_place_of_a_record_is_refused(place: Path) -> None:
    artifacts, contents = store(place)
    artifacts.publish("/w", artifact(contents, "a", b"x"))
    path = Record(artifacts).path()
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(Failure):
        artifacts.get("/w", "a")


def test_a_record_with_another_id_is_damaged(place: Path | str) -> None:
    artifacts, contents = store(place)
    artifacts.publish("/w", artifact(contents, "a", b"x"))
    record = Record(artifacts)
    data = record.read()
    record.remove()
    artifacts.publish("/w", artifact(contents, "b", b"x"))
    record.write(data)
    with pytest.raises(Failure) as caught:
        artifacts.get("/w", "b")
    assert caught.value.code == "damaged"
    assert json.loads(data)["artifact"]["id"] == "a"


def publish_many(report: Report, place: Path | str, text: bytes) -> None:
    artifacts, contents = store(place)
    report("ready")
    won = 0
    for n in range(30):
        with contextlib.suppress(Failure):
            won += artifacts.publish("/w", artifact(contents, f"a{n}", text))[1]
    report(won)


def test_two_processes_publish_each_artifact_once(place: Path | str) -> None:
    children = [Child(publish_many, place, text) for text in (b"one", b"two")]
    for child in children:
        assert child.hear() == "ready"
    assert sum(child.hear() for child in children) == 30
    assert [child.wait() for child in children] == [0, 0]
    artifacts, contents = store(place)
    assert {contents.get(artifacts.get("/w", f"a{n}").content) for n in range(30)} <= {b"one", b"two"}


def publish_until_killed(report: Report, place: Path | str) -> None:
    artifacts, contents = store(place)
    for n in range(100_000):
        artifacts.publish("/w", artifact(contents, str(n), b"x" * n))
        report(n)


@pytest.mark.parametrize("after", [0, 1, 7])
def test_every_reported_artifact_survives_kill_9(place: Path | str, after: int) -> None:
    child = Child(publish_until_killed, place)
    while (last := child.hear()) < after:
        pass
    time.sleep(0.003 * after)
    child.kill()
    last = max([last, *child.rest()])
    artifacts, contents = store(place)
    for n in range(last + 1):
        assert contents.get(artifacts.get("/w", str(n)).content) == b"x" * n
    # The artifact that the kill interrupted is either complete or missing, and can be published now.
    assert artifacts.publish("/w", artifact(contents, str(last + 1), b"x" * (last + 1)))[0].size_bytes == last + 1


def test_the_content_of_an_artifact_is_never_collected(place: Path | str) -> None:
    artifacts, contents = store(place)
    kept, lost = contents.put(b"kept"), contents.put(b"lost")
    artifacts.publish("/w", Artifact("a", kept, 4, "c", (), NOW))
    for ref in (kept, lost):
        make_old(contents, ref)
    contents.collect(named(artifacts.texts()))
    assert contents.get(kept) == b"kept"
    with pytest.raises(Failure):
        contents.get(lost)


def test_old_content_that_was_just_published_is_kept(place: Path | str) -> None:
    """The collector has read the records before the new record was written."""
    artifacts, contents = store(place)
    ref = contents.put(b"old")
    make_old(contents, ref)
    before = named(artifacts.texts())
    artifacts.publish("/w", Artifact("a", ref, 3, "c", (), NOW))
    contents.collect(before)
    assert contents.get(ref) == b"old"

"""Artifacts on disk: published by two processes at once, killed at any moment, and changed by other programs.

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
from albert_tools.store.artifacts import Artifacts
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.references import named
from tests.helpers.children import Child, Report

NOW = "2026-01-31T08:00:00.000001+00:00"


def store(folder: Path) -> tuple[Artifacts, Contents]:
    contents = Contents(folder / "contents")
    return Artifacts(folder / "artifacts", contents), contents


def artifact(contents: Contents, id: str, text: bytes) -> Artifact:
    return Artifact(id, contents.put(text), len(text), "c", (), NOW)


def record(artifacts: Artifacts) -> Path:
    (found,) = [p for p in artifacts.folder.rglob("*") if p.is_file() and p.name != ".lock"]
    return found


def test_published_and_found(tmp_path: Path) -> None:
    artifacts, contents = store(tmp_path)
    made = artifact(contents, "a/b ü\n", b"x")
    assert artifacts.publish("/w", made) == (made, True)
    assert artifacts.publish("/w", made) == (made, False)
    assert store(tmp_path)[0].get("/w", made.id) == made
    for workspace, id in (("/v", made.id), ("/w", "a")):
        with pytest.raises(Failure) as caught:
            artifacts.get(workspace, id)
        assert caught.value.code == "not_found"
    path = record(artifacts)
    assert path.stat().st_mode & 0o777 == 0o600
    assert artifacts.folder.stat().st_mode & 0o777 == 0o700


def test_the_content_must_be_in_the_store(tmp_path: Path) -> None:
    artifacts, _ = store(tmp_path)
    for ref, code in (("b3:" + "0" * 64, "not_found"), ("nonsense", "invalid_arguments")):
        with pytest.raises(Failure) as caught:
            artifacts.publish("/w", Artifact("a", ref, 1, "c", (), NOW))
        assert caught.value.code == code
    assert not artifacts.folder.exists()


def test_every_changed_byte_is_found(tmp_path: Path) -> None:
    artifacts, contents = store(tmp_path)
    artifacts.publish("/w", artifact(contents, "a", b"x"))
    path = record(artifacts)
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :])
        with pytest.raises(Failure) as caught:
            artifacts.get("/w", "a")
        assert caught.value.code == "damaged", n
    for data in (b"", whole[:-1], whole + b"\n", b"null", b"[" * 100_000):
        path.write_bytes(data)
        with pytest.raises(Failure) as caught:
            artifacts.publish("/w", artifact(contents, "a", b"x"))
        assert caught.value.code == "damaged"
        assert path.read_bytes() == data
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(Failure):
        artifacts.get("/w", "a")


def test_a_record_with_another_id_is_damaged(tmp_path: Path) -> None:
    artifacts, contents = store(tmp_path)
    artifacts.publish("/w", artifact(contents, "a", b"x"))
    first = record(artifacts)
    data = first.read_bytes()
    first.unlink()
    artifacts.publish("/w", artifact(contents, "b", b"x"))
    record(artifacts).write_bytes(data)
    with pytest.raises(Failure) as caught:
        artifacts.get("/w", "b")
    assert caught.value.code == "damaged"
    assert json.loads(data)["artifact"]["id"] == "a"


def publish_many(report: Report, folder: Path, text: bytes) -> None:
    artifacts, contents = store(folder)
    report("ready")
    won = 0
    for n in range(30):
        with contextlib.suppress(Failure):
            won += artifacts.publish("/w", artifact(contents, f"a{n}", text))[1]
    report(won)


def test_two_processes_publish_each_artifact_once(tmp_path: Path) -> None:
    children = [Child(publish_many, tmp_path, text) for text in (b"one", b"two")]
    for child in children:
        assert child.hear() == "ready"
    assert sum(child.hear() for child in children) == 30
    assert [child.wait() for child in children] == [0, 0]
    artifacts, contents = store(tmp_path)
    assert {contents.get(artifacts.get("/w", f"a{n}").content) for n in range(30)} <= {b"one", b"two"}


def publish_until_killed(report: Report, folder: Path) -> None:
    artifacts, contents = store(folder)
    for n in range(100_000):
        artifacts.publish("/w", artifact(contents, str(n), b"x" * n))
        report(n)


@pytest.mark.parametrize("after", [0, 1, 7])
def test_every_reported_artifact_survives_kill_9(tmp_path: Path, after: int) -> None:
    child = Child(publish_until_killed, tmp_path)
    while (last := child.hear()) < after:
        pass
    time.sleep(0.003 * after)
    child.kill()
    last = max([last, *child.rest()])
    artifacts, contents = store(tmp_path)
    for n in range(last + 1):
        assert contents.get(artifacts.get("/w", str(n)).content) == b"x" * n
    # The artifact that the kill interrupted is either complete or missing, and can be published now.
    assert artifacts.publish("/w", artifact(contents, str(last + 1), b"x" * (last + 1)))[0].size_bytes == last + 1


def test_the_content_of_an_artifact_is_never_collected(tmp_path: Path) -> None:
    artifacts, contents = store(tmp_path)
    kept, lost = contents.put(b"kept"), contents.put(b"lost")
    artifacts.publish("/w", Artifact("a", kept, 4, "c", (), NOW))
    for ref in (kept, lost):
        os.utime(contents.folder / ref[3:5] / ref[5:], (0, 0))
    contents.collect(named((), tmp_path / "artifacts"))
    assert contents.get(kept) == b"kept"
    with pytest.raises(Failure):
        contents.get(lost)


def test_old_content_that_was_just_published_is_kept(tmp_path: Path) -> None:
    """The collector has read the records before the new record was written."""
    artifacts, contents = store(tmp_path)
    ref = contents.put(b"old")
    os.utime(contents.folder / ref[3:5] / ref[5:], (0, 0))
    before = named((), tmp_path / "artifacts")
    artifacts.publish("/w", Artifact("a", ref, 3, "c", (), NOW))
    contents.collect(before)
    assert contents.get(ref) == b"old"

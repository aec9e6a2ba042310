"""Calls the tools of the files family from the command line, one after the other, on real files."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.surfaces.conftest import Albert

RULES = "tools:\n  delete_file: {allowed_in_modes: [NORMAL]}\n  move_file: {allowed_in_modes: [NORMAL]}\n"


def ran(albert: Albert, *words: str) -> Any:
    done = albert("run", *words, "--json")
    assert done.code == 0, done.err + done.out
    return done.document()["output"]


def test_each_tool_of_the_files_family(albert: Albert) -> None:
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text(RULES)
    assert ran(albert, "make_directory", "path=notes/old") == {"path": "notes/old", "created": True}
    assert ran(albert, "write_file", "path=notes/a.md", "content=one\n", "create_only=true")["size_bytes"] == 4
    assert ran(albert, "write_file", "path=notes/a.md", "content=two\n", "append=true")["size_bytes"] == 8
    assert ran(albert, "edit_file", "path=notes/a.md", "old_text=two", "new_text=2")["line"] == 2
    assert ran(albert, "read_file", "path=notes/a.md", "offset=2", "limit=1") == "2\n"
    handle = ran(albert, "read_bytes", "path=notes/a.md", "limit=4")["handle"]
    assert ran(albert, "write_bytes", "path=notes/bytes", f"handle={handle}")["size_bytes"] == 4
    (albert.project / "notes/bytes").unlink()
    copied = ran(albert, "copy_file", "source=notes/a.md", "target=notes/b.md")
    assert copied["sha256"] == hashlib.sha256(b"one\n2\n").hexdigest()
    assert ran(albert, "move_file", "source=notes/b.md", "target=notes/old/b.md")["path"] == "notes/old/b.md"
    assert ran(albert, "file_info", "path=notes/old/b.md")["sha256"] == copied["sha256"]
    assert ran(albert, "find_files", "pattern=*.md")["paths"] == ["notes/a.md", "notes/old/b.md"]
    assert ran(albert, "search_text", "pattern=o.e", 'include=["b.*"]')["matches"] == [
        {"path": "notes/old/b.md", "line": 1, "text": "one"}
    ]
    assert [e["path"] for e in ran(albert, "list_directory", "path=notes/old")] == ["notes/old/b.md"]
    done = albert("run", "delete_file", "path=notes/old/b.md")
    assert (done.code, done.err) == (0, "deleted notes/old/b.md, 6 bytes\n")
    assert ran(albert, "delete_file", "path=notes/old")["type"] == "directory"
    assert sorted(p.name for p in (albert.project / "notes").iterdir()) == ["a.md"]


def test_effects_are_printed(albert: Albert) -> None:
    assert albert("run", "make_directory", "path=a/b").err == "made the folder a\nmade the folder a/b\n"
    refused = albert("run", "edit_file", "path=a", "old_text=x", "new_text=y")
    assert (refused.code, refused.err.splitlines()[0]) == (1, "error[not_a_file]: 'a' is a folder, not a file")
    waits = albert("run", "delete_file", "path=a/b")
    assert waits.code == 4
    assert (albert.project / "a" / "b").is_dir()

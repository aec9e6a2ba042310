"""read_file, write_file, edit_file and list_directory against real files."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins.files import files, folders
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.model.validation import violations
from albert_tools.engine.workspace import files as workspace_files


async def read(context: Any, path: str, **more: Any) -> Any:
    return await call_primitive(files.read_file, {"path": path, **more}, context)


async def write(context: Any, path: str, content: str, **more: Any) -> Any:
    return await call_primitive(files.write_file, {"path": path, "content": content, **more}, context)


async def edit(context: Any, path: str, old: str, new: str) -> Any:
    return await call_primitive(files.edit_file, {"path": path, "old_text": old, "new_text": new}, context)


async def listed(context: Any, **arguments: Any) -> Any:
    return await call_primitive(folders.list_directory, arguments, context)


async def test_written_text_is_read_back_exactly(context: Any, root: Path) -> None:
    text = "\ufeffone\r\ntwo\rthree\n\x0b\u2028 ü €"
    written = await write(context, "a.txt", text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert written == {"path": "a.txt", "size_bytes": len(text.encode()), "sha256": digest}
    assert (root / "a.txt").read_bytes() == text.encode()
    assert await read(context, "./a.txt") == text
    facts = {"path": "a.txt", "size_bytes": len(text.encode()), "sha256": digest}
    assert context.effects == [("write", facts), ("read", facts)]


async def test_a_file_that_cannot_be_read_at_once_is_read_in_a_thread(context: Any, root: Path) -> None:
    (root / "a").write_text("x")
    os.link(root / "a", root / "b")
    assert await read(context, "b") == "x"
    assert [kind for kind, _ in context.effects] == ["read"]


async def test_reads_one_after_the_other_let_others_go_on(context: Any, root: Path) -> None:
    (root / "a").write_text("x")
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    for _ in range(10):
        await read(context, "a")
    task.cancel()
    assert turns >= 10


async def test_results_match_the_schemas(context: Any) -> None:
    written = await write(context, "a.txt", "x")
    assert violations(written, files.write_file.definition.result) == []
    assert violations(await listed(context), folders.list_directory.definition.result) == []


async def test_a_byte_order_mark_is_removed_only_on_request(context: Any, root: Path) -> None:
    (root / "a").write_bytes(b"\xef\xbb\xbfx")
    assert await read(context, "a") == "\ufeffx"
    assert await read(context, "a", encoding="utf-8-sig") == "x"


async def test_undecodable_text_names_the_offset(context: Any, root: Path) -> None:
    (root / "a").write_bytes(b"abc\xff\xfe")
    with pytest.raises(Failure, match="byte 3 does not fit") as caught:
        await read(context, "a")
    assert caught.value.code == "encoding_error"
    assert caught.value.details == {"encoding": "utf-8", "offset": 3}
    assert await read(context, "a", encoding="latin-1") == "abcÿþ"


@pytest.mark.parametrize("name", ["no-such", "hex", "zip", "rot13", "idna", "punycode", "a\0b", "", "\ud800"])
async def test_an_unknown_encoding(context: Any, root: Path, name: str) -> None:
    (root / "a").write_bytes(b"abc")
    with pytest.raises(Failure) as caught:
        await read(context, "a", encoding=name)
    assert caught.value.code == "encoding_error"


async def test_half_a_surrogate_pair_is_neither_read_nor_written(context: Any, root: Path) -> None:
    (root / "a").write_bytes(b"+2AA-")
    with pytest.raises(Failure) as caught:
        await read(context, "a", encoding="utf-7")
    assert caught.value.code == "encoding_error"
    with pytest.raises(Failure, match="character 2") as caught:
        await write(context, "b", "ab\udc80")
    assert caught.value.code == "encoding_error"
    assert not (root / "b").exists()


async def test_sizes_over_the_limit(context: Any, root: Path) -> None:
    context.workspace.judge.max_file_bytes = 10
    (root / "a").write_bytes(b"x" * 11)
    with pytest.raises(Failure) as caught:
        await read(context, "a")
    assert caught.value.code == "too_large"
    with pytest.raises(Failure) as caught:
        await write(context, "a", "é" * 6)
    assert caught.value.code == "too_large"
    assert (root / "a").read_bytes() == b"x" * 11
    await write(context, "a", "é" * 5)
    assert await read(context, "a") == "é" * 5


async def test_a_listing(context: Any, root: Path) -> None:
    (root / "b").mkdir()
    (root / "b" / "c.txt").write_text("four")
    (root / "a.txt").write_text("")
    (root / "link").symlink_to("b")
    assert await listed(context) == [
        {"path": "a.txt", "type": "file", "size_bytes": 0},
        {"path": "b", "type": "directory", "size_bytes": 0},
        {"path": "link", "type": "symlink", "size_bytes": 0},
    ]
    deep = await listed(context, path=".", recursive=True)
    assert [e["path"] for e in deep] == ["a.txt", "b", "b/c.txt", "link"]
    assert await listed(context, path="b") == [{"path": "b/c.txt", "type": "file", "size_bytes": 4}]


async def test_the_record_of_a_read_through_a_link_names_the_file(context: Any, root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "a").write_text("x")
    (root / "link").symlink_to("real/a")
    assert await read(context, "link") == "x"
    assert context.effects[0][1]["path"] == "real/a"


async def test_a_denied_write_records_nothing(context: Any) -> None:
    with pytest.raises(Failure) as caught:
        await write(context, "../a", "x")
    assert caught.value.denied
    assert context.effects == []


# A part of a file.


@pytest.mark.parametrize(
    ("offset", "limit", "text"),
    [
        (1, 1, "one\n"),
        (2, 2, "two\r\n\n"),
        (2, None, "two\r\n\nfour\u2028é\rfive"),
        (3, 1, "\n"),
        (4, 9, "four\u2028é\rfive"),
        (5, 1, ""),
        (99, None, ""),
        (1, 2**30, "one\ntwo\r\n\nfour\u2028é\rfive"),
    ],
)
async def test_lines_of_a_file(context: Any, root: Path, offset: int, limit: int | None, text: str) -> None:
    (root / "a").write_bytes("one\ntwo\r\n\nfour\u2028é\rfive".encode())
    assert await read(context, "a", offset=offset, limit=limit) == text
    facts = {"size_bytes": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest(), "line": offset}
    assert context.effects == [("read", {"path": "a", **facts})]


async def test_the_lines_of_a_file_make_up_the_file(context: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This also holds if a block ends within a character or between the bytes of a line end."""
    text = "ä€\n\U0001f600\n" * 40 + "end"
    for encoding in ("utf-8", "utf-16", "utf-32-be"):
        (root / "a").write_bytes(text.encode(encoding))
        for block in (1, 2, 3, 7, 1000):
            monkeypatch.setattr(workspace_files, "BLOCK", block)
            assert await read(context, "a", offset=1, limit=2**30, encoding=encoding) == text
            assert await read(context, "a", offset=80, limit=2, encoding=encoding) == "\U0001f600\nend"


async def test_a_part_of_a_file_that_is_too_large(context: Any, root: Path) -> None:
    context.workspace.judge.max_file_bytes = 100
    (root / "a").write_text("0123456789\n" * 1000)
    with pytest.raises(Failure) as caught:
        await read(context, "a")
    assert (caught.value.code, caught.value.hint) == (
        "too_large",
        "read a part of it, with a tool that has offset and limit",
    )
    assert await read(context, "a", offset=500, limit=9) == "0123456789\n" * 9
    for limit in (10, None):
        with pytest.raises(Failure) as caught:
            await read(context, "a", offset=500, limit=limit)
        assert (caught.value.code, caught.value.hint) == ("too_large", "ask for fewer lines, with limit")


async def test_a_part_that_is_not_text_names_the_offset_in_the_file(
    context: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_files, "BLOCK", 4)
    (root / "a").write_bytes(b"abc\ndef\n\xc3\x28")
    assert await read(context, "a", offset=1, limit=2) == "abc\ndef\n"
    with pytest.raises(Failure) as caught:
        await read(context, "a", offset=3, limit=2)
    assert caught.value.details["offset"] == 8


async def test_binary_files_are_refused_as_text(context: Any, root: Path) -> None:
    (root / "a").write_bytes(b"abc\n\0def")
    for more in ({}, {"limit": 9}, {"encoding": "cp1252"}):
        with pytest.raises(Failure, match="binary") as caught:
            await read(context, "a", **more)
        assert caught.value.code == "encoding_error"
    assert await read(context, "a", encoding="latin-1") == "abc\n\0def"
    with pytest.raises(Failure, match="binary"):
        await edit(context, "a", "abc", "x")


# Ways of writing.


async def test_create_only(context: Any, root: Path) -> None:
    await write(context, "a", "one", create_only=True)
    with pytest.raises(Failure) as caught:
        await write(context, "a", "two", create_only=True)
    assert caught.value.code == "exists"
    assert (root / "a").read_text() == "one"
    (root / "link").symlink_to("nowhere")
    with pytest.raises(Failure):
        await write(context, "link", "two", create_only=True)
    assert sorted(p.name for p in root.iterdir()) == ["a", "link"]


async def test_appending(context: Any, root: Path) -> None:
    context.workspace.judge.max_file_bytes = 10
    assert (await write(context, "a", "one", append=True))["size_bytes"] == 3
    (root / "other").hardlink_to(root / "a")
    done = await write(context, "a", "é2", append=True)
    assert (root / "a").read_text() == "oneé2"
    assert done == {"path": "a", "size_bytes": 6, "sha256": hashlib.sha256("oneé2".encode()).hexdigest()}
    assert context.effects[-1] == ("write", done)
    # The file's other name keeps the old content. Otherwise an append could change a file that tools may not write.
    assert (root / "other").read_text() == "one"
    with pytest.raises(Failure) as caught:
        await write(context, "a", "12345", append=True)
    assert caught.value.code == "too_large"
    assert (root / "a").read_text() == "oneé2"


# Editing.


@pytest.mark.parametrize(
    ("content", "old", "new", "result", "line"),
    [
        ("a\nb\nc\n", "b", "x\ny", "a\nx\ny\nc\n", 2),
        ("a\r\nb", "\r\nb", "", "a", 1),
        ("\ufeffaé", "é", "\U0001f600", "\ufeffa\U0001f600", 1),
        ("a.c", "a.c", "abc", "abc", 1),
    ],
)
async def test_an_edit(context: Any, root: Path, content: str, old: str, new: str, result: str, line: int) -> None:
    (root / "a").write_bytes(content.encode())
    done = await edit(context, "a", old, new)
    assert (root / "a").read_bytes() == result.encode()
    digest = hashlib.sha256(result.encode()).hexdigest()
    assert done == {"path": "a", "size_bytes": len(result.encode()), "sha256": digest, "line": line}
    assert context.effects == [("write", {"path": "a", "size_bytes": len(result.encode()), "sha256": digest})]
    assert violations(done, files.edit_file.definition.result) == []


@pytest.mark.parametrize(
    ("content", "old", "said", "hint", "occurrences", "lines"),
    [
        ("x\ny\nx\n", "x", "occurs 2 times in 'a', and must occur once: lines 1, 3", "add text", 2, [1, 3]),
        ("aaa", "aa", "occurs 2 times", "add text", 2, [1, 1]),
        ("x\n" * 50, "x", "more than 10 times", "add text", 11, list(range(1, 11))),
        ("abc", "abd", "does not occur", "copy it exactly", 0, []),
        ("a\r\nb\r\n", "a\nb", "with others in line 1", "write \\r\\n instead of \\n", 0, [1]),
        ("a\nb\n", "a\r\nb", "with others in line 1", "write \\n instead of \\r\\n", 0, [1]),
        ("x\n    if a:\n        b\n", "if a:\n    b\n", "other white space in line 2", "every space", 0, [2]),
        ("x\nif a:\n  c\nif a:\n", "if a:\n  b", "does not occur", "is in lines 2, 4", 0, [2, 4]),
    ],
)
async def test_an_edit_that_does_not_fit_says_what_to_do(
    context: Any, root: Path, content: str, old: str, said: str, hint: str, occurrences: int, lines: list[int]
) -> None:
    (root / "a").write_bytes(content.encode())
    with pytest.raises(Failure) as caught:
        await edit(context, "a", old, "new")
    failure = caught.value
    assert failure.code == "invalid_arguments"
    assert said in failure.message
    assert hint in str(failure.hint)
    assert failure.details == {"occurrences": occurrences, "lines": lines}
    assert (root / "a").read_bytes() == content.encode()
    assert context.effects == []


async def test_other_edits_that_are_refused(context: Any, root: Path) -> None:
    (root / "a").write_bytes(b"abc\xff")
    (root / "b").write_text("b")
    for path, old, new, code in (
        ("a", "abc", "x", "encoding_error"),
        ("b", "b", "b", "invalid_arguments"),
        ("b", "b", "\ud800", "encoding_error"),
        ("c", "b", "x", "not_found"),
        (".", "b", "x", "not_a_file"),
    ):
        with pytest.raises(Failure) as caught:
            await edit(context, path, old, new)
        assert caught.value.code == code
    assert (root / "b").read_text() == "b"


async def test_an_edit_of_a_file_that_changes_during_the_edit(context: Any, root: Path) -> None:
    (root / "a").write_text("one two")

    def change(old: bytes | None) -> bytes:
        (root / "a").write_text("one three")
        return b"ours"

    with pytest.raises(Failure) as caught:
        context.workspace.rewrite("a", change, 100)
    assert (caught.value.code, caught.value.retryable) == ("io_error", True)
    assert (root / "a").read_text() == "one three"
    assert [p.name for p in root.iterdir()] == ["a"]


def test_the_catalogue_loads_nothing_heavy() -> None:
    """Every run imports these modules."""
    code = "import sys, albert_tools.builtins.catalog; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    top = Path(__file__).parents[2]
    loaded = subprocess.run(command, cwd=top, capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "ctypes", "difflib", "httpx", "pathspec", "psutil", "pydantic", "re2"} & set(loaded)

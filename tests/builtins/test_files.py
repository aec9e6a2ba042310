"""read_file, write_file and list_directory against real files."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins import files
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.model.schema import violations


async def read(context: Any, path: str, **more: str) -> Any:
    return await call_primitive(files.read_file, {"path": path, **more}, context)


async def write(context: Any, path: str, content: str) -> Any:
    return await call_primitive(files.write_file, {"path": path, "content": content}, context)


async def listed(context: Any, **arguments: Any) -> Any:
    return await call_primitive(files.list_directory, arguments, context)


async def test_what_is_written_is_read_back_exactly(context: Any, root: Path) -> None:
    text = "\ufeffone\r\ntwo\rthree\n\0 ü €"
    written = await write(context, "a.txt", text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert written == {"path": "a.txt", "size_bytes": len(text.encode()), "sha256": digest}
    assert (root / "a.txt").read_bytes() == text.encode()
    assert await read(context, "./a.txt") == text
    facts = {"path": "a.txt", "size_bytes": len(text.encode()), "sha256": digest}
    assert context.effects == [("write", facts), ("read", facts)]


async def test_results_match_the_schemas(context: Any) -> None:
    written = await write(context, "a.txt", "x")
    assert violations(written, files.write_file.definition.result) == []
    assert violations(await listed(context), files.list_directory.definition.result) == []


async def test_a_byte_order_mark_goes_only_when_asked(context: Any, root: Path) -> None:
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
async def test_what_is_no_text_encoding(context: Any, root: Path, name: str) -> None:
    (root / "a").write_bytes(b"abc")
    with pytest.raises(Failure) as caught:
        await read(context, "a", encoding=name)
    assert caught.value.code == "encoding_error"


async def test_half_a_surrogate_pair_never_gets_out_or_in(context: Any, root: Path) -> None:
    (root / "a").write_bytes(b"+2AA-")
    with pytest.raises(Failure) as caught:
        await read(context, "a", encoding="utf-7")
    assert caught.value.code == "encoding_error"
    with pytest.raises(Failure, match="character 2") as caught:
        await write(context, "b", "ab\udc80")
    assert caught.value.code == "encoding_error"
    assert not (root / "b").exists()


async def test_sizes_over_the_limit(context: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE", 10)
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


def test_the_catalogue_loads_nothing_heavy() -> None:
    """These modules are on the way of every run."""
    code = "import sys, albert_tools.builtins.catalog; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    top = Path(__file__).parents[2]
    loaded = subprocess.run(command, cwd=top, capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "ctypes", "difflib", "httpx", "psutil", "pydantic"} & set(loaded)

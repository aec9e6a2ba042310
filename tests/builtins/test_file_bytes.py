"""Files of any bytes: read into the content store, and written from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools import Failure
from albert_tools.builtins.files.file_bytes import MAX_FILE, read_bytes, write_bytes
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.stored_contents import ref_of
from tests.helpers.governed import Governed, governing

BYTES = bytes(range(256)) + b"\r\n\0\xff"


@pytest.fixture
def storing(context: Any, tmp_path: Path) -> Any:
    context.contents = Contents(tmp_path / "contents")
    return context


async def read(context: Any, **arguments: Any) -> Any:
    return await call_primitive(read_bytes, arguments, context)


async def write(context: Any, **arguments: Any) -> Any:
    return await call_primitive(write_bytes, arguments, context)


async def test_any_bytes_are_copied_exactly(storing: Any, root: Path) -> None:
    (root / "a").write_bytes(BYTES)
    found = await read(storing, path="a")
    assert found == {"handle": ref_of(BYTES), "size_bytes": 260, "next_offset": None}
    await write(storing, path="b", handle=found["handle"].removeprefix("b3:"))
    assert (root / "b").read_bytes() == BYTES


async def test_the_parts_of_a_file_make_up_the_file(storing: Any, root: Path) -> None:
    (root / "a").write_bytes(BYTES)
    offset: int | None = 0
    while offset is not None:
        part = await read(storing, path="a", offset=offset, limit=100)
        await write(storing, path="b", handle=part["handle"], append=True)
        offset = part["next_offset"]
    assert (root / "b").read_bytes() == BYTES


@given(data=st.binary(max_size=64), offset=st.integers(0, 80), limit=st.integers(1, 80))
def test_a_part_is_a_slice(tmp_path_factory: pytest.TempPathFactory, data: bytes, offset: int, limit: int) -> None:
    import asyncio

    from albert_tools.engine.workspace.workspace import Workspace
    from tests.builtins.conftest import Context

    folder = tmp_path_factory.mktemp("slice").resolve()
    (folder / "work").mkdir()
    (folder / "work/a").write_bytes(data)
    with Workspace(folder / "work") as workspace:
        context = Context(workspace, contents=Contents(folder / "contents"))
        found = asyncio.run(read(context, path="a", offset=offset, limit=limit))
    part = data[offset : offset + limit]
    assert (found["handle"], found["size_bytes"]) == (ref_of(part), len(part))
    assert found["next_offset"] == (offset + limit if offset + limit < len(data) else None)


async def test_values_that_cannot_be_written(storing: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure) as missing:
        await write(storing, path="a", handle="0" * 64)
    assert missing.value.code == "not_found"
    large = storing.contents.put(b"xx")
    monkeypatch.setattr("albert_tools.builtins.files.file_bytes.MAX_FILE", 1)
    with pytest.raises(Failure) as too_large:
        await write(storing, path="a", handle=large)
    assert too_large.value.code == "too_large"
    storing.contents = None
    with pytest.raises(Failure) as without:
        await read(storing, path="a")
    assert without.value.code == "not_found"
    assert [*root.iterdir()] == []
    assert MAX_FILE == 100 * 2**20


def test_the_question_shows_the_content(tmp_path: Path) -> None:
    questions: list[Any] = []

    async def no(question: Any) -> bool:
        questions.append(question)
        return False

    with governing(tmp_path) as make:
        home: Governed = make(governance={"tools": {"write_bytes": {"requires_approval_in_modes": ["NORMAL"]}}}, ask=no)
        contents = home.service.service.contents(None)
        assert contents is not None
        handle = contents.put(b"\x89PNG and more")
        result = home.service.invoke("write_bytes", {"path": "logo.png", "handle": handle})
    assert result.error is not None
    assert "it writes 13 bytes, which begin with '\ufffdPNG and more'" in str(questions[0])

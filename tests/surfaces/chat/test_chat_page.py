"""The programs of docs/chat.md run as they are written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.pages import blocks
from tests.helpers.scripted_model import scripted

PROGRAMS = [code for code, _ in blocks("chat.md")]


def test_the_program_with_a_chat_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("ALBERT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project" / ".albert").mkdir(parents=True)
    names: dict[str, Any] = {}
    exec(PROGRAMS[0], names)  # noqa: S102 (the page's own lines)
    with scripted(["It has seven."]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
        asyncio.run(names["main"]())
    assert capsys.readouterr().out == "It has seven.\n"


def test_the_program_with_the_parser_runs(capsys: Any) -> None:
    exec(PROGRAMS[1], {})  # noqa: S102
    assert capsys.readouterr().out == "read_file {'path': 'a'}\n"

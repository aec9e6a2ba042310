"""The page on reviews is a shell session."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.test_command_line_page import demand_shown, typed
from tests.helpers.pages import ROOT
from tests.surfaces.conftest import Albert


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def test_the_page_shows_what_the_commands_print(tmp_path: Path) -> None:
    albert = Albert(tmp_path)
    albert.environ["LOGNAME"] = "ada"
    first, second = blocks("docs/review.md", "python")
    albert.write("first.tool", first)
    albert.write("second.tool", second)
    (albert.project / "notes").mkdir()
    albert.write("notes/a.md", "x")
    commands = typed(blocks("docs/review.md", "console"))
    assert len(commands) > 6
    demand_shown(albert, commands)

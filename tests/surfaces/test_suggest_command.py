"""`albert suggest` lists what sessions repeat, and prints a draft that `albert define` saves."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import SyncToolService
from tests.surfaces.conftest import Albert


@pytest.fixture
def repeated(albert: Albert) -> Albert:
    """Three sessions have listed a folder and read each file."""
    with SyncToolService.open(home=albert.home, workspace=albert.project) as service:
        for name in ("\x1b[2J", "two", "three"):
            (albert.project / name).mkdir()
            for i in range(2):
                (albert.project / name / f"{i}.md").write_text("Rain.")
            token = service.open_session("agent")[1]
            for entry in service.invoke("list_directory", {"path": name}, session=token).value():
                service.invoke("read_file", {"path": entry["path"]}, session=token).value()
    return albert


def test_the_list_says_what_each_draft_spares_and_how_to_save_it(repeated: Albert) -> None:
    done = repeated("suggest")
    assert done.code == 0
    assert done.out.splitlines()[0] == "1  list_directory → every read_file   read"
    assert "3 sessions · spares 6 calls" in done.out
    assert "replays 3 of 3" in done.out
    assert "albert suggest 1 --source" in done.err


def test_the_source_is_a_tool_that_define_saves(repeated: Albert) -> None:
    done = repeated("suggest", "1", "--source")
    name = repeated.write("draft.tool", done.out)
    assert repeated("define", name).code == 0
    assert repeated("run", "list_directory_then_read_file", "path=two").code == 0
    assert repeated("suggest", "--json").document()["suggestions"] == []


def test_one_suggestion_is_shown_with_its_draft(repeated: Albert) -> None:
    done = repeated("suggest", "1")
    assert "def list_directory_then_read_file(path: str) -> Any:" in done.out
    assert "\x1b" not in done.out


def test_numbers_that_mean_nothing_are_refused(albert: Albert) -> None:
    assert "no sequence of calls is repeated" in albert("suggest").err
    assert (albert("suggest", "1").code, albert("suggest", "--source").code) == (2, 2)


def test_a_session_sees_its_own_calls_only(repeated: Albert) -> None:
    token = repeated("session", "new", "--client", "other").out.strip()
    found: Any = repeated("suggest", "--json", env={"ALBERT_SESSION": token}).document()
    assert found == {"ok": True, "suggestions": []}

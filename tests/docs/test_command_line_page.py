"""The page is a shell session. Its commands, run in order, print the output on the page, except ids and times."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.conftest import Albert

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
_ID = re.compile(r"\b(?:[0-9a-f]{16}|[0-9a-f]{12})\b")
#: Text that varies from run to run, and the pattern that it matches.
_VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"),
    (re.compile(r"\b[0-9.]+ (?:ms|s|min)\b(?! left)"), r"[0-9.]+ (?:ms|s|min)(?: \d+ s)?"),
    (re.compile(r"/tmp/project"), r"/.*/project"),
]


def block(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def typed(blocks: list[str]) -> list[tuple[str, str]]:
    """Each command with the output that the page shows."""
    found: list[tuple[str, str]] = []
    for line in "".join(blocks).split("\n")[:-1]:
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def pattern(shown: str, ids: dict[str, str]) -> re.Pattern[str]:
    """Matches the same text with other ids and times. An id in `ids` must have the value in `ids`."""
    parts, at = [], 0
    named: set[str] = set()
    marks = sorted(
        [(m.start(), m.end(), "id") for m in _ID.finditer(shown)]
        + [(m.start(), m.end(), like) for varies, like in _VARIES for m in varies.finditer(shown)]
    )
    for start, end, like in marks:
        parts.append(re.escape(shown[at:start]))
        text, at = shown[start:end], end
        if like != "id":
            parts.append(like)
        elif text in ids:
            parts.append(ids[text])
        elif text in named:
            parts.append(f"(?P=i{text})")
        else:
            named.add(text)
            parts.append(f"(?P<i{text}>[0-9a-f]{{{len(text)}}})")
    return re.compile("".join([*parts, re.escape(shown[at:])]))


@pytest.fixture
def prepared(tmp_path: Path) -> Albert:
    albert = Albert(tmp_path)
    (albert.home / "config").mkdir(parents=True)
    (albert.home / "config" / "governance.yaml").write_text(block("yaml")[0])
    (source,) = block("python")
    albert.write("notes.tool", source)
    assert albert("define", "notes.tool").code == 0
    albert.write("changed.tool", source.replace("note{i}", "memo{i}"))
    albert.environ["LOGNAME"] = "ada"
    return albert


def test_the_page_shows_what_the_commands_print(prepared: Any) -> None:
    commands = typed(block("console"))
    assert len(commands) > 10
    demand_shown(prepared, commands)


def demand_shown(albert: Albert, commands: list[tuple[str, str]]) -> None:
    """Require that the commands print what is shown, except ids and times."""
    ids: dict[str, str] = {}
    for command, shown in commands:
        kept = re.fullmatch(r"export (\w+)=\$\((.*)\)", command)
        words = shlex.split(kept[2] if kept else command)
        assert words[0] == "albert"
        # An id may be shortened to its first digits.
        done = albert(*(next((v for k, v in ids.items() if k.startswith(word)), word) for word in words[1:]))
        if kept:
            albert.environ[kept[1]] = done.out.strip()
            done.out = ""
        like = pattern(shown, ids)
        # The order of stdout and stderr on a terminal varies.
        found = like.fullmatch(done.err + done.out) or like.fullmatch(done.out + done.err)
        assert found, f"$ {command}\n{done.out}{done.err}"
        ids |= {name[1:]: value for name, value in found.groupdict().items()}

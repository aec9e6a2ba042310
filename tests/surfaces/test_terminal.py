"""Output on a terminal. Lines fit its width, a progress line disappears, and an interrupt works."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from .conftest import TOOLS, Albert

ESCAPE = re.compile(r"\x1b\[[0-9;]*[mK]")


def seen(text: str) -> list[str]:
    """The lines, without colours."""
    return ESCAPE.sub("", text).replace("\r\n", "\n").split("\n")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Albert:
    """A home with tools whose output has long lines."""
    albert = Albert(tmp_path_factory.mktemp("full"))
    albert.write("words.tool", (TOOLS / "word_frequencies.tool").read_text(encoding="utf-8"))
    long = "Says a great deal about itself in one line, which no terminal of eighty columns has room for in one piece."
    albert.write("talkative.tool", f'def talkative(text: str) -> str:\n    """{long}"""\n    return text\n')
    assert albert("define", "talkative.tool", "words.tool").code == 0
    return albert


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize(
    "words",
    [
        ["tools"],
        ["search", "text"],
        ["show", "talkative"],
        ["show", "read_file"],
        ["show", "word_frequencies"],
        ["run", "talkative", "txt=1"],
        ["run", "nothing_of_that_name"],
        ["check", "wrong.tool"],
        [],
        ["run", "--help"],
    ],
    ids=" ".join,
)
def test_lines_fit_and_words_stay_whole(full: Albert, words: list[str], columns: int) -> None:
    full.write("wrong.tool", "def wrong(text) -> integer:\n    import os\n    return tools.read_fil(path=text)\n")
    _, text = full.terminal(*words, columns=columns)
    lines = seen(text)
    # Only a single word may be wider than the terminal.
    assert [line for line in lines if len(line) > columns and len(line.split()) > 1] == []
    plain = full(*words, env={"COLUMNS": str(columns)})
    if "--help" not in words and words[:1] not in (["check"], ["show"]):
        assert " ".join(text_words(lines)) == " ".join(text_words((plain.out + plain.err).split("\n")))


def text_words(lines: list[str]) -> list[str]:
    return [word for line in lines for word in line.split()]


def test_continuation_lines_are_indented(full: Albert) -> None:
    lines = seen(full.terminal("tools", columns=80)[1])
    i = next(i for i, line in enumerate(lines) if line.startswith("  talkative"))
    column = lines[i].index("Says")
    assert lines[i + 1].index(lines[i + 1].strip()) == column
    narrow = seen(full.terminal("tools", columns=40)[1])
    i = narrow.index("  talkative  allow")
    assert narrow[i + 1].startswith("    Says")
    assert narrow[i + 2].startswith("    ")


def test_paragraphs_fill_their_lines(full: Albert) -> None:
    lines = seen(full.terminal("show", "read_file")[1])
    start = next(i for i, line in enumerate(lines) if line.startswith("The path is relative"))
    paragraph = lines[start : lines.index("", start)]
    assert len(paragraph) > 2
    # The first word of the next line would not have fitted.
    for line, following in itertools.pairwise(paragraph):
        assert len(f"{line} {following.split()[0]}") > 80


def test_lines_are_not_wrapped_into_a_pipe(full: Albert) -> None:
    (line,) = [line for line in full("tools", env={"COLUMNS": "20"}).out.split("\n") if "talkative" in line]
    assert line.endswith("in one piece.  not reviewed")


def test_a_source_has_line_numbers(ready: Albert) -> None:
    lines = seen(ready.terminal("show", "escape")[1])
    start = lines.index("1  def escape(text: str) -> str:")
    assert lines[start + 1] == '2      """Give a text that a terminal would act on.'
    assert lines[start + 2] == "3"
    assert lines[-2].startswith("8      return ")
    assert lines[-1] == ""


def test_a_progress_line_is_no_wider_than_the_terminal(full: Albert) -> None:
    name = "a_tool_with_a_name_that_is_as_long_as_a_terminal_is_wide"
    source = f'def {name}() -> str:\n    """Wait."""\n    tools.sleep(seconds=1.6)\n    return "rested"\n'
    full.write("long.tool", source)
    code, text = full.terminal("define", "long.tool", columns=40)
    assert code == 0
    code, ran = full.terminal("run", name, columns=40)
    assert (code, ran.endswith("rested\r\n")) == (0, True)
    progress = [ESCAPE.sub("", part) for part in re.split(r"\r(?!\n)", text + ran)]
    progress = [part for part in progress if part.endswith("…")]
    assert len(progress) >= 2
    assert max(map(len, progress)) == 39


@pytest.mark.parametrize(
    "words", [["check", "-"], ["define", "-"], ["fmt", "-"], ["run", "read_file", "--args", "-"]], ids=" ".join
)
def test_an_interrupt_ends_reading_from_the_terminal(ready: Albert, words: list[str]) -> None:
    code, text = ready.terminal(*words, typed=b"\x03")
    assert code == 130
    assert seen(text)[-2].endswith("interrupted")


def test_stdin_is_read_from_the_terminal(ready: Albert) -> None:
    code, text = ready.terminal("run", "escape", "--args", "-", typed=b'{"text": "typed"}\n\x04')
    assert code == 0
    assert text.endswith("typed\r\n")


def test_json_has_nothing_that_a_terminal_obeys(ready: Albert) -> None:
    hostile = "a\x7f\x9b2J\u202e\u2028\U000e0041é"
    code, text = ready.terminal("run", "escape", f"text={hostile}", "--json")
    assert code == 0
    assert r"a\u007f\u009b2J\u202e\u2028\udb40\udc41é" in text
    assert not set(hostile[1:-1]) & set(text) - set("2J")
    assert hostile in json.loads(text)["output"]
    assert hostile not in ready("run", "escape", f"text={hostile}", "--json").out


def test_output_of_a_command_is_shown_as_text(albert: Albert) -> None:
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text("tools: {bash: {allowed_in_modes: [NORMAL]}}")
    command = "command=echo one; printf '\\033[2Jtwo\\n'; exit 3"
    code, text = albert.terminal("run", "bash", command, "--quiet")
    assert code == 0
    # The escape sequence that clears the screen is shown as text and has no effect.
    assert seen(text) == ["one", "\\x1b[2Jtwo", "exit code 3, 12 bytes", ""]
    piped = albert("run", "bash", command)
    assert json.loads(piped.out)["output"] == "one\n\x1b[2Jtwo\n"

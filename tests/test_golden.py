"""Complete rendered listings. `pytest --golden-update` rewrites them; review the changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from albert_tools.engine.check.checker import check
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Severity, Span
from albert_tools.grammar.listing import render, visible
from tests.helpers.harness import catalog

GOLDEN = Path(__file__).parent / "golden"

SOURCES: dict[str, str] = {
    "unknown_tool": 'def t(path: str) -> int:\n    """Count."""\n    return len(tools.read_flie(path=path).split())\n',
    "many_findings": "import os\n\ndef total(rows, factor: integer = 1) -> int:\n    for row in rows:\n"
    "        amount = row.value\n    rows.sort\n    text.strip()\n    return sum(rows) * amont\n",
    "outside_the_language": 'def t(n: int) -> int:\n    """Halve."""\n    with n:\n        n = n // 2\n    return n\n',
    "syntax": 'def t(n: int) -> int:\n    """Halve."""\n    return (n,\n',
    "several_lines": 'def t(path: str) -> str:\n    """Read."""\n    return "a"\n    print("b")\n    print("c")\n',
    "hostile": 'def t(a: str) -> str:\n    """Show."""\n    return a == "x\u202e\x1b[31m" + größe\n',
    "wide": 'def t(a: str) -> list:\n    """Show."""\n    return ["你好", "e\u0301", a, missing]\n',
    "long_line": 'def t(a: str) -> list:\n    """Show."""\n    return ['
    + "a, " * 60
    + "missing, "
    + "a, " * 60
    + "]\n",
    "warnings_only": 'def t(a: str) -> str:\n    """Show."""\n    a.strip()\n    return a\n',
}


@pytest.mark.parametrize("name", SOURCES)
def test_listing(name: str, golden_update: bool) -> None:
    source = SOURCES[name]
    shown = render(check(source, catalog()).diagnostics, source, f"{name}.tool", width=80)
    path = GOLDEN / f"{name}.txt"
    if golden_update:
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")
    assert all(len(line) <= 80 or " | " not in line[:8] for line in shown.split("\n"))


def test_no_findings_render_as_nothing() -> None:
    assert render((), "x", "f") == ""


def test_every_golden_file_has_its_source() -> None:
    assert {p.stem for p in GOLDEN.glob("*.txt")} == set(SOURCES)


def test_colours_change_nothing_else() -> None:
    import re

    source = SOURCES["many_findings"]
    found = check(source, catalog()).diagnostics
    coloured = render(found, source, "f", colour=True)
    assert "\033[1;31merror[" in coloured
    assert re.sub("\033\\[[0-9;]*m", "", coloured) == render(found, source, "f")


HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202eabc\u2066 \u200b \r \n \x00 \ud800 \U000e0041 \u2028 \xa0"


def test_no_control_characters_reach_the_terminal() -> None:
    at = Span(1, 1, 1, 3)
    fix = Fix(HOSTILE, (Edit(at, HOSTILE),))
    d = Diagnostic("code", HOSTILE, at, hint=HOSTILE, fix=fix)
    shown = render([d], HOSTILE.replace("\n", "").replace("\r", "") + "\n\x1b", HOSTILE)
    assert set(shown) - {"\n"} == {c for c in shown if c.isprintable()}
    assert "\\x1b]0;owned\\x07" in shown
    assert "\\u202eabc" in shown
    assert "\\ud800" in shown
    assert visible("plain 你好 é\t.") == "plain 你好 é    ."


@pytest.mark.parametrize(
    "span",
    [Span(1, 1, 1, 1), Span(1, 5, 1, 5), Span(1, 50, 1, 60), Span(9, 1, 9, 2), Span(1, 2, 3, 1), Span(2, 1, 2, 1)],
)
def test_any_span_can_be_rendered(span: Span) -> None:
    shown = render([Diagnostic("code", "text", span, severity=Severity.WARNING)], "ab\t\n\ncd", "f", width=1)
    assert shown.startswith("warning[code]: text\n")
    assert f"f:{span.line}:{span.column}" in shown
    assert ("^" in shown) == (span.line < 9)


def test_the_caret_is_below_its_column() -> None:
    line = "\tx = 你\u202e + y"
    at = line.index("y") + 1
    shown = render([Diagnostic("code", "text", Span(1, at, 1, at + 1))], line, "f").split("\n")
    text, caret = shown[3], shown[4]
    before = text[: text.index("y")]
    # A wide or escaped character takes more than one cell.
    assert caret.index("^") == len(before) + 1
    assert before.endswith("你\\u202e + ")


@pytest.mark.parametrize(
    ("letter", "cells"), [("\u0915\u094b", 1), ("\u1112\u1161\u11ab", 2), ("\u2764\ufe0f", 1), ("\U0001f469", 2)]
)
def test_what_joins_a_letter_takes_no_cell(letter: str, cells: int) -> None:
    line = f"'{letter}' + y"
    at = line.index("y") + 1
    text, caret = render([Diagnostic("code", "text", Span(1, at, 1, at + 1))], line, "f").split("\n")[3:5]
    assert letter in text
    assert caret.index("^") - text.index("'") == len("'' + ") + cells


def test_a_long_fix_is_shortened() -> None:
    fix = Fix("add", (Edit(Span(1, 1, 1, 1), "y\n" * 20),))
    shown = render([Diagnostic("code", "text", Span(1, 1, 1, 2), fix=fix)], "x", "f")
    assert shown.count(" + y") == 8
    assert "… 12 more lines" in shown

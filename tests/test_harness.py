"""The harness does what `tests/cases/README.md` says. A harness that never fails would make the language tests worthless."""

from __future__ import annotations

import pytest

from albert_tools.grammar.diagnostic import Diagnostic, Severity, Span
from tests.helpers import harness


def chunk(text: str) -> harness.Chunk:
    return harness._chunk("here", text.split("\n"), 10)


def finding(line: int, column: int, code: str, message: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, Span(line, column, line, column + 1), hint)


MARKED = '# title\nx = 1  # error: 3 [one] "a "b" c"  # error: 5 [two] "d"\n# warning: [three] "e"\n# hint: "f"'


def test_line_numbers_are_kept_and_markers_removed() -> None:
    c = chunk(MARKED)
    assert c.source == "\n" * 10 + "# title\nx = 1\n"
    assert [(f.line, f.severity, f.code, f.message, f.column, f.hint) for f in c.findings] == [
        (12, "error", "one", 'a "b" c', 3, None),
        (12, "error", "two", "d", 5, None),
        (12, "warning", "three", "e", None, "f"),
    ]


def test_matching_is_one_to_one() -> None:
    c = chunk('# title\nx = 1  # error: 3 [one] "a"')
    right = finding(12, 3, "one", "a")
    assert harness.mismatches(c, (right,)) == ""
    assert "missing" in harness.mismatches(c, ())
    assert "unexpected" in harness.mismatches(c, (right, right))
    for wrong in (
        finding(11, 3, "one", "a"),
        finding(12, 4, "one", "a"),
        finding(12, 3, "two", "a"),
        finding(12, 3, "one", "a!"),
        Diagnostic("one", "a", right.span, severity=Severity.WARNING),
    ):
        problem = harness.mismatches(c, (wrong,))
        assert "missing" in problem
        assert "unexpected" in problem


def test_an_expected_hint_is_compared() -> None:
    c = chunk('# title\nx = 1  # error: [one] "a"  # hint: "b"')
    assert harness.mismatches(c, (finding(12, 3, "one", "a", "b"),)) == ""
    assert harness.mismatches(c, (finding(12, 3, "one", "a", "c"),))


def test_run_markers() -> None:
    c = chunk(
        '# title\nx = f()  # raises: ToolError[busy] "later (now)"\n# calls: a.b(x=[1], y="()") -> {"k": (1, 2)}\n'
        '# calls: c() raises not_found "no (c)"\n# calls: d()\n# prints: "<U+202E>"\n# arguments: {"p": 1}\n# result: -1.5'
    )
    assert c.raises == ("ToolError", "busy", "later (now)")
    assert c.raise_line == 12
    assert c.transcript == [
        ("a.b", {"x": [1], "y": "()"}, {"k": (1, 2)}, None),
        ("c", {}, None, ("not_found", "no (c)")),
        ("d", {}, None, None),
    ]
    assert (c.printed, c.arguments, c.result) == (["<U+202E>"], {"p": 1}, -1.5)


@pytest.mark.parametrize("text", ["x = 1", "# t\nx = 1  # error: nothing", "# t\n# result: (", "# t\n# calls: f(1)"])
def test_an_unreadable_chunk_names_its_line(text: str) -> None:
    with pytest.raises(AssertionError, match=r"here:1[12]"):
        chunk(text)


def test_every_folder_has_many_chunks() -> None:
    assert len(harness.chunks("parse")) >= 60
    assert len(harness.chunks("check")) >= 150
    assert len(harness.chunks("run")) >= 130


def test_the_page_lists_every_marker() -> None:
    page = (harness.CASES / "README.md").read_text(encoding="utf-8")
    words = harness._MARKER.pattern.split("(")[1].split(")")[0].split("|")
    assert all(f"# {word}: " in page for word in words)

"""Reads the language tests: programs with their expectations in comments (`tests/cases/README.md`).

A file is a list of chunks. Each chunk becomes a source. Empty lines are added before it, so that its line numbers are those
of the file. The harness removes the comments with expectations before any other code reads the source.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from albert_tools.engine.model.definition import ToolDefinition, ToolParameter
from albert_tools.grammar.diagnostic import Diagnostic, Severity
from albert_tools.testing import registry

CASES = Path(__file__).parents[1] / "cases"

_FINDING = re.compile(r'(error|warning): (?:(\d+) )?\[([a-z-]+)\] "(.*)"\Z')
_RAISES = re.compile(r'(\w+)(?:\[(\w+)\])? "(.*)"\Z')
_CALL = re.compile(r'([\w.]+)(\(.*?\))(?: -> (.*)| raises (\w+) "(.*)")?\Z')
#: A marker begins with its word. A line may contain several markers.
_MARKER = re.compile(r"[ ]*# (error|warning|hint|raises|calls|prints|result|arguments|manifest): ")
_CHARACTER = re.compile(r"<U\+([0-9A-F]{4,5})>")


@dataclass(frozen=True)
class Finding:
    """The diagnostic that an ``error:`` or ``warning:`` marker expects. `column` and `hint` are optional."""

    line: int
    severity: str
    code: str
    message: str
    column: int | None = None
    hint: str | None = None

    def matches(self, d: Diagnostic) -> bool:
        """Whether `d` is the expected diagnostic."""
        if self.code == "syntax" == d.code and sys.version_info[:2] != (3, 11):
            return self.line == d.span.line
        return (
            (self.line, self.severity, self.code, self.message) == (d.span.line, d.severity, d.code, d.message)
            and self.column in (None, d.span.column)
            and self.hint in (None, d.hint)
        )


@dataclass(frozen=True)
class Outcome:
    """The end of a run: a result, or an error. An error has a type, a text and a line. A ToolError also has a code."""

    result: Any = None
    error: str | None = None
    code: str | None = None
    text: str | None = None
    line: int | None = None
    printed: tuple[str, ...] = ()
    calls: tuple[tuple[str, Any], ...] = ()


@dataclass
class Chunk:
    """One test: its title, its source with the line numbers of the file, and its expectations."""

    file: str
    title: str
    line: int
    source: str = ""
    findings: list[Finding] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)
    #: The calls in order. Each is (name, arguments, result, None) or (name, arguments, None, (code, text)).
    transcript: list[tuple[str, Any, Any, tuple[str, str] | None]] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    manifest: list[str] = field(default_factory=list)
    result: Any = None
    raises: tuple[str, str | None, str] | None = None
    raise_line: int | None = None

    @property
    def id(self) -> str:
        """The id of the test."""
        return f"{self.file}: {self.title}"


@cache
def chunks(folder: str) -> tuple[Chunk, ...]:
    """Return all chunks of a folder of `cases`, in order. Titles are unique within a file."""
    found = [chunk for path in sorted((CASES / folder).glob("*.tool")) for chunk in _read(path)]
    twice = [name for name, n in Counter(c.id for c in found).items() if n > 1]
    assert not twice, f"titles that occur more than once: {twice}"
    return tuple(found)


def _read(path: Path) -> list[Chunk]:
    found: list[Chunk] = []
    lines = path.read_text(encoding="utf-8").split("\n")
    start = 0
    for end in [*(i for i, line in enumerate(lines) if line == "---"), len(lines)]:
        if any(line.strip() for line in lines[start:end]):
            found.append(_chunk(path.stem, lines[start:end], start))
        start = end + 1
    return found


def _chunk(file: str, lines: list[str], offset: int) -> Chunk:
    first = next(i for i, line in enumerate(lines) if line.strip())
    assert lines[first].startswith("# "), f"{file}:{offset + first + 1}: a chunk opens with a comment, its title"
    chunk = Chunk(file, lines[first][2:], offset + first + 1)
    source = [""] * offset
    last = offset + first + 1
    for number, line in enumerate(lines, offset + 1):
        code, *markers = _MARKER.split(line)
        if code.strip() or not markers:
            last = number if code.strip() else last
        for word, text in zip(markers[::2], markers[1::2], strict=True):
            try:
                _mark(chunk, word, text.strip(), number if code.strip() else last, bool(code.strip()))
            except (ValueError, SyntaxError, AssertionError) as error:
                raise AssertionError(f"{file}:{number}: this marker can't be read: {word}: {text} ({error})") from error
        source.append(code if markers else line)
    chunk.source = _CHARACTER.sub(lambda m: chr(int(m[1], 16)), "\n".join(source).rstrip("\n") + "\n")
    return chunk


def _mark(chunk: Chunk, word: str, text: str, line: int, trailing: bool) -> None:
    match word:
        case "error" | "warning":
            m = _FINDING.match(f"{word}: {text}")
            assert m
            message = _CHARACTER.sub(lambda c: chr(int(c[1], 16)), m[4])
            chunk.findings.append(Finding(line, word, m[3], message, int(m[2]) if m[2] else None))
        case "hint":
            f = chunk.findings[-1]
            assert text[:1] == text[-1:] == '"'
            chunk.findings[-1] = Finding(f.line, f.severity, f.code, f.message, f.column, text[1:-1])
        case "raises":
            m = _RAISES.match(text)
            assert m
            chunk.raises = (m[1], m[2] or ("tool_error" if m[1] == "ToolError" else None), m[3])
            chunk.raise_line = line if trailing else None
        case "calls":
            m = _CALL.match(text)
            assert m
            call = ast.parse(f"f{m[2]}", mode="eval").body
            assert isinstance(call, ast.Call) and not call.args, "arguments are named"  # noqa: PT018
            given = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
            answer = None if m[3] is None else ast.literal_eval(m[3])
            chunk.transcript.append((m[1], given, answer, (m[4], m[5]) if m[4] else None))
        case "prints":
            assert text[:1] == text[-1:] == '"'
            chunk.printed.append(text[1:-1])
        case "manifest":
            chunk.manifest.append(text)
        case "result":
            chunk.result = ast.literal_eval(text)
        case "arguments":
            chunk.arguments = ast.literal_eval(text)


# Matching


def mismatches(chunk: Chunk, found: tuple[Diagnostic, ...]) -> str:
    """Return the missing and the unexpected diagnostics as text. The text is empty if each expected one matches exactly one
    found."""
    left = list(found)
    lines: list[str] = []
    for finding in chunk.findings:
        match = next((d for d in left if finding.matches(d)), None)
        if match is None:
            lines.append(f"missing: {finding}")
        else:
            left.remove(match)
    for d in left:
        marker = f'# {d.severity}: {d.span.column} [{d.code}] "{d.message}"'
        lines.append(f"unexpected, line {d.span.line}: {marker}\n    hint: {d.hint}")
    return "\n".join(lines)


def errors(found: tuple[Diagnostic, ...]) -> Counter[tuple[str, str]]:
    """The errors without their positions. A fix must remove one error and may not add an error."""
    return Counter((d.code, d.message) for d in found if d.severity == Severity.ERROR)


# The tools that the test programs may call: the real primitives, and a few composites.


class FixedCatalog:
    """A fixed catalogue."""

    def __init__(self, definitions: list[ToolDefinition]) -> None:
        self.definitions = {d.name: d for d in definitions}

    def get(self, name: str) -> ToolDefinition | None:
        """The definition of that name."""
        return self.definitions.get(name)

    def names(self) -> list[str]:
        """All names."""
        return list(self.definitions)


def _composite(name: str, depth: int, effects: tuple[str, ...], *parameters: ToolParameter) -> ToolDefinition:
    return ToolDefinition(
        name=name,
        description=name.replace("_", " ").capitalize() + ".",
        parameters=parameters,
        result={},
        effects=effects,
        kind="composite",
        depth=depth,
        version=f"{depth}" * 64,
    )


_TEXT = {"type": "string"}


@cache
def catalog() -> FixedCatalog:
    """A catalogue of the primitives, some composites and the tool of an MCP server.

    The composites are ``count_words`` and ``summarise`` (depth 1), ``deep_7`` and ``deep_8``.
    """
    path = ToolParameter("path", _TEXT)
    return FixedCatalog(
        [
            *(p.definition for p in registry().primitives()),
            _composite("count_words", 1, ("read",), path),
            _composite("summarise", 1, ("read",), path, ToolParameter("limit", {"type": "integer"}, "", False, 10)),
            _composite("deep_7", 7, ("read",), path),
            _composite("deep_8", 8, ("read",), path),
            _composite(
                "tracker.create_issue",
                0,
                ("network",),
                ToolParameter("title", _TEXT),
                ToolParameter("labels", {"type": "array", "items": _TEXT}, "", False, None),
            ),
        ]
    )

"""What the coverage-guided run tries: functions of bytes that must not raise.

The texts of `check`, `format`, `calls`, `command` and `manifest` are the bytes themselves. For `programs` and `mistakes` the bytes
are the choices of a generator, so nearly all of them are whole programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from albert_tools.engine.agent.invocation_parser import ToolInvocationParser
from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.model.manifest import Manifest
from albert_tools.engine.model.manifest_match import outside
from albert_tools.engine.review.manifest_view import lines, view
from albert_tools.engine.shell.judge import judge_command
from albert_tools.grammar.diagnostic import Severity
from albert_tools.grammar.parse import parse
from tests.fuzz.beside import try_program
from tests.generators.choices import GivenChoices
from tests.generators.mutants import mutant
from tests.helpers.formatting import assert_formats
from tests.helpers.generated_tools import generated_tools, some_program


def check_source(data: bytes) -> None:
    """Any text is parsed, checked, analysed and compiled, or it has findings."""
    catalog = generated_tools(0)
    report = check(data, catalog)
    assert all(d.message and d.span.line >= 1 for d in report.diagnostics)
    assert (report.checked is None) == any(d.severity == Severity.ERROR for d in report.diagnostics)
    if report.checked is not None:
        manifest = analyse(report.checked)
        assert Manifest.from_dict(manifest.as_dict()) == manifest
        compile_program(report.checked)


def format_source(data: bytes) -> None:
    """Formatting keeps the tree and the comments, and changes its own result no more."""
    text = data.decode(errors="replace")
    if parse(text).module is not None:
        assert_formats(text)


def programs(data: bytes) -> None:
    """Generated programs are accepted, and what they do lies inside their manifests."""
    try_program(GivenChoices(data), generated_tools(0), len(data), None)


def mistakes(data: bytes) -> None:
    """A program with a mistake is accepted, or has findings with a way out."""
    choices = GivenChoices(data)
    source = mutant(choices, some_program(choices, generated_tools(0)).source)
    check_source(source.encode())


def manifest(data: bytes) -> None:
    """Any JSON is a manifest or a ValueError. A manifest has words, and any call is inside or outside."""
    try:
        document = json.loads(data)
        found = Manifest.from_dict(document["manifest"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    assert Manifest.from_dict(found.as_dict()) == found
    view(found)
    assert lines(found)
    given = document.get("given")
    for call in found.calls:
        arguments = document.get("arguments")
        if isinstance(arguments, dict) and isinstance(given, dict):
            outside(found.calls, call.tool, arguments, given)


def calls(data: bytes) -> None:
    """A model's text has the same calls in one piece and in pieces of any size."""
    text = data.decode(errors="surrogateescape")
    whole = _parts([text])
    for size in (1, 7):
        assert _parts([text[i : i + size] for i in range(0, len(text), size)]) == whole


def _parts(pieces: list[str]) -> list[Any]:
    parser = ToolInvocationParser()
    found: list[Any] = []
    for part in [part for piece in pieces for part in parser.feed(piece)] + parser.close():
        shown = part if isinstance(part, str) else [repr(part)]
        if isinstance(shown, str) and found and isinstance(found[-1], str):
            found[-1] += shown
        else:
            found.append(shown)
    return found


def command(data: bytes) -> None:
    """Any command has a verdict, with a reason unless it is ordinary."""
    judgement = judge_command(data.decode(errors="replace"))
    assert all(part.verdict == "ordinary" or (part.why and part.hint) for part in judgement.parts)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "check": check_source,
    "format": format_source,
    "programs": programs,
    "mistakes": mistakes,
    "manifest": manifest,
    "calls": calls,
    "command": command,
}

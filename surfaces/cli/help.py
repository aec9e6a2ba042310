"""``albert help``: explains the code of an error (`not_found`) or of a diagnostic (`unknown-tool`)."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from albert_tools.engine.model.error_codes import CODES, Code
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.surfaces.cli.console import Console
from albert_tools.surfaces.cli.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.grammar.finding_code import FindingCode


def help_(options: argparse.Namespace, console: Console) -> int:
    """Explain a code. Without a code, print the text of ``albert --help``; for a command, the text of ``albert COMMAND --help``."""
    from albert_tools.engine.check.codes import CODES as DIAGNOSTIC_CODES

    name = options.code
    if name is None or name in options.commands:
        usage = (options.commands[name] if name else options.albert).format_help()
        if console.json:
            console.document({"ok": True, "help": usage})
        else:
            console.write(usage)
    elif name in CODES:
        _error(name, CODES[name], console)
    elif name in DIAGNOSTIC_CODES:
        _diagnostic(DIAGNOSTIC_CODES[name], console)
    else:
        near = did_you_mean(name, [*CODES, *DIAGNOSTIC_CODES])
        raise Usage(
            f"there is no code {name!r}{near}", "give the word in brackets of error[not_found] or error[unknown-tool]"
        )
    return 0


def _error(name: str, code: Code, console: Console) -> None:
    entry = {"kind": "error", "code": name, "category": code.category, "type": code.kind}
    parts = {"summary": code.meaning, "example": code.example, "remedy": code.remedy}
    if console.json:
        console.document({"ok": True, **entry, **parts})
        return
    _head(name, f"error, {code.category}", code.meaning, console)
    console.say(f"For example: {code.example}", 2)
    console.say(f"What to do: {code.remedy}", 2)


def _diagnostic(code: FindingCode, console: Console) -> None:
    if console.json:
        console.document({"ok": True, "kind": "diagnostic", **code._asdict()})
        return
    _head(code.code, "diagnostic", code.summary, console)
    console.say(f"Why: {code.why}", 2)
    for heading, source in (("Refused:", code.example), ("Accepted:", code.rewrite)):
        if source is not None:
            console.say()
            console.say(heading)
            console.write(textwrap.indent(source.rstrip("\n"), "    ") + "\n")


def _head(name: str, what: str, summary: str, console: Console) -> None:
    console.say(f"{console.paint(name, 'cyan', 'bold')}  {console.paint(what, 'dim')}")
    console.say()
    console.say(summary)

"""``albert help``: the commands, or a page about the language: a code (`not_found`), a module (`re`), a section."""

from __future__ import annotations

import argparse

from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.usage_error import Usage


def help_(options: argparse.Namespace, console: Console) -> int:
    """Explain a topic. Without a topic, print the text of ``albert --help``; for a command, that of ``albert COMMAND --help``."""
    from albert_tools.engine.agent.language_help import language_help, topics

    name = " ".join(options.topic)
    if not name or name in options.commands:
        usage = (options.commands[name] if name else options.albert).format_help()
        if console.json:
            console.document({"ok": True, "help": usage})
        else:
            console.write(usage)
        return 0
    kind = topics().get(name, "")
    if kind in ("error", "diagnostic"):
        _code(name, kind, console)
        return 0
    try:
        page = language_help(name)
    except Failure as failure:
        raise Usage(
            failure.message,
            "give the word in brackets of error[not_found] or error[unknown-tool], a module, or a section of the language",
        ) from None
    if console.json:
        console.document({"ok": True, "kind": kind, **page})
    else:
        console.write(page["text"])
    return 0


def _code(name: str, kind: str, console: Console) -> None:
    from albert_tools.engine.agent.language_help import explain_code
    from albert_tools.engine.check.codes import CODES as DIAGNOSTIC_CODES

    error = CODES.get(name)
    if console.json:
        document = {"ok": True, "kind": kind, "code": name}
        if error is not None:
            facts = {"category": error.category, "type": error.kind, "summary": error.meaning}
            console.document({**document, **facts, "example": error.example, "remedy": error.remedy})
        else:
            console.document({**document, **DIAGNOSTIC_CODES[name]._asdict()})
        return
    what = kind if error is None else f"{kind}, {error.category}"
    console.say(f"{console.paint(name, 'cyan', 'bold')}  {console.paint(what, 'dim')}")
    console.say()
    for line in explain_code(name):
        if line.startswith("    "):
            console.write(f"{line}\n")
        else:
            console.say(line, 2)

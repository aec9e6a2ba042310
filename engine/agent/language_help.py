"""Pages about the language: its sections, built-ins, methods and modules, and each code of an error or a diagnostic.

`albert help` and the agent's own tool `language_help` show the same pages. They are made from the tables that the checker uses, and
from `language.md`, which is the page of the documentation.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from importlib.resources import files
from typing import TypedDict

from albert_tools.engine.check.codes import CODES as DIAGNOSTIC_CODES
from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.vocabulary import BUILTINS, INSTEAD, METHODS_BY_TYPE, Builtin, facades

#: The most characters of a text.
MAX_TEXT = 8000
#: The most similar topics that a failure names.
MAX_NEAR = 3
#: Characters of an unknown topic that are compared and shown.
MAX_SHOWN = 60


class Help(TypedDict):
    """A page about the language."""

    topic: str
    text: str


def language_help(topic: str) -> Help:
    """The page about a topic. For an empty topic, the page lists the topics.

    Raises:
        Failure: `not_found`, with the most similar topics.
    """
    known = topics()
    plain = topic.strip()
    name = plain if plain in known or plain in INSTEAD else plain.casefold()
    # Sections have plural headings.
    name = name if name in known or f"{name}s" not in known else f"{name}s"
    if not name:
        return {"topic": "", "text": _index()}
    if name in known:
        return {"topic": name, "text": _page(name)[:MAX_TEXT]}
    if name in INSTEAD:
        return {"topic": name, "text": f"Programs can't import {name}: {INSTEAD[name]}.\n"}
    near = _similar(name[:MAX_SHOWN], known)
    said = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise Failure("not_found", f"there is no topic {topic[:MAX_SHOWN]!r}{said}", hint="an empty topic lists the topics")


@cache
def topics() -> dict[str, str]:
    """The name of each topic, with its kind: ``language``, ``module``, ``error`` or ``diagnostic``."""
    kinds = dict.fromkeys(["language", *_sections(), "methods"], "language")
    kinds |= dict.fromkeys(facades(), "module")
    kinds |= dict.fromkeys(DIAGNOSTIC_CODES, "diagnostic")
    return kinds | dict.fromkeys(CODES, "error")


def explain_code(code: str) -> list[str]:
    """The lines about the code of an error or a diagnostic, without the code itself. Lines of programs begin with four spaces."""
    if code in CODES:
        error = CODES[code]
        return [error.meaning, f"For example: {error.example}", f"What to do: {error.remedy}"]
    diagnostic = DIAGNOSTIC_CODES[code]
    lines = [diagnostic.summary, f"Why: {diagnostic.why}"]
    for heading, source in (("Refused:", diagnostic.example), ("Accepted:", diagnostic.rewrite)):
        if source is not None:
            lines += ["", heading, *textwrap.indent(source.rstrip("\n"), "    ", lambda _: True).split("\n")]
    return lines


def _page(topic: str) -> str:
    kind = topics()[topic]
    if kind == "module":
        return _module(topic)
    if kind in ("error", "diagnostic"):
        return f"{topic}: {kind}\n\n" + "\n".join(explain_code(topic)) + "\n"
    if topic == "language":
        return _read("guide.md")
    if topic == "methods":
        lines = (f"{kind}: {' '.join(names.split())}" for kind, names in METHODS_BY_TYPE.items())
        return "The methods that programs may call, by type:\n\n" + "\n".join(lines) + "\n"
    counted = "\n".join(f"{name}: {_arguments(b)}" for name, b in BUILTINS.items())
    return _sections()[topic] + (
        f"\nTheir arguments, and their keywords:\n\n{counted}\n" if topic == "built-ins" else ""
    )


def _index() -> str:
    kinds: dict[str, list[str]] = {}
    for name, kind in topics().items():
        kinds.setdefault(kind, []).append(name)
    headings = {
        "language": "The language",
        "module": "Modules",
        "diagnostic": "Codes of problems in a source",
        "error": "Codes of errors",
    }
    return "Topics\n\n" + "\n\n".join(f"{headings[k]}: {', '.join(names)}" for k, names in kinds.items()) + "\n"


@cache
def _sections() -> dict[str, str]:
    """The sections of the page, by their headings in small letters."""
    _, *sections = re.split(r"^## ", _read("language.md"), flags=re.MULTILINE)
    by_name = {}
    for section in sections:
        heading, _, text = section.partition("\n")
        name = heading.casefold()
        by_name["built-ins" if name == "built-in functions" else name] = f"{heading}\n{text.rstrip()}\n"
    return by_name


def _read(page: str) -> str:
    return (files("albert_tools.engine.agent") / page).read_text(encoding="utf-8")


def _arguments(builtin: Builtin) -> str:
    least, most = builtin.least, builtin.most
    count = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
    keywords = ["any keyword" if k == "*" else k for k in sorted(builtin.keywords)]
    return ", ".join([count, *keywords]) + ("; lazy" if builtin.lazy else "")


def _module(module: str) -> str:
    """What programs may use of a module, with the keywords of its functions and classes."""
    names: dict[str, list[str]] = {}
    for name, entry in facades()[module].items():
        keywords = f"({', '.join(f'{k}=' for k in sorted(entry.keywords))})" if entry.keywords else ""
        names.setdefault(entry.kind, []).append(name + keywords + (" [lazy]" if entry.lazy else ""))
    lines = [f"{kind}: {', '.join(members)}" for kind, members in names.items()]
    lazy = "\n\nA [lazy] result is consumed once; see the topic 'lazy values'." if "[lazy]" in "".join(lines) else ""
    return f"Programs may use these names of the module {module}:\n\n" + "\n".join(lines) + lazy + "\n"


def _similar(topic: str, known: dict[str, str]) -> list[str]:
    from difflib import get_close_matches

    containing = [name for name in known if topic in name]
    return [*dict.fromkeys([*get_close_matches(topic, known, MAX_NEAR), *containing])][:MAX_NEAR]

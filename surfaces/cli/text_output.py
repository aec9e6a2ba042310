"""What a person at a terminal is shown of an answer that is mostly one text: the text itself, and a line of what else matters.

As JSON, such a text is one long string with its line breaks spelled out. Known by its form, so that a saved tool that hands on
what `bash` answered is shown alike. Into a pipe, and with ``--json``, everything goes as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.surfaces.cli.console import Console, one_line

#: What an answer has of this form → which of it is text for people, in that order.
_FORMS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (frozenset({"exit_code", "output", "handle"}), ("output",)),
    (frozenset({"exit_code", "stdout", "stderr"}), ("stdout", "stderr")),
    (frozenset({"status", "headers", "body"}), ("body",)),
    (frozenset({"status", "content_type", "text"}), ("text",)),
    (frozenset({"content", "size_bytes", "next_offset"}), ("content",)),
)
#: How what else matters is said; of the rest it is enough that `--json` has it.
_SAID = {
    "exit_code": "exit code {}",
    "signal": "signal {}",
    "status": "status {}",
    "content_type": "{}",
    "title": "“{}”",
    "url": "{}",
    "size_bytes": "{:,} bytes",
    "duration_ms": "{:,} ms",
    "next_offset": "goes on at offset={}",
    "retry_after_ms": "asks for a wait of {:,} ms",
    "truncated": "cut short",
    "handle": "all of it: albert run read_result handle={}",
}


def texts_of(output: Any) -> tuple[str, ...]:
    """Which entries of an answer are its text; none where it has another form."""
    if isinstance(output, Mapping):
        for needed, texts in _FORMS:
            if needed <= output.keys() and all(isinstance(output[name], str) for name in texts):
                return texts
    return ()


def show(output: Mapping[str, Any], texts: tuple[str, ...], console: Console) -> None:
    """The texts, each from the beginning of a line, and the line of what else matters."""
    for name in texts:
        if output[name]:
            if name == "stderr":
                console.say(console.paint("on stderr:", "dim"))
            console.value(output[name])
    console.say(console.paint(", ".join(_facts(output)), "dim"), 2)


def _facts(output: Mapping[str, Any]) -> list[str]:
    said = []
    for name, form in _SAID.items():
        value = output.get(name)
        # A zero says something, unlike what isn't there.
        if (
            value is False
            or value == ""
            or not isinstance(value, str | int)
            or (isinstance(value, str) and ":," in form)
        ):
            continue
        said.append(form.format(one_line(value) if isinstance(value, str) else value))
    return said

"""Shows a result that is mostly text on a terminal: the text itself, then one line with the other facts.

In JSON such a text would be one long string. The result is recognised by its keys, so a saved tool that returns the result of
`bash` is shown in the same way. In a pipe, and with ``--json``, every result is printed as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.surfaces.text.console import Console, one_line

#: Each form: the keys by which a result is recognised → the keys of its texts, in the order in which they are shown.
_FORMS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (frozenset({"exit_code", "output", "handle"}), ("output",)),
    (frozenset({"exit_code", "stdout", "stderr"}), ("stdout", "stderr")),
    (frozenset({"status", "headers", "body"}), ("body",)),
    (frozenset({"status", "content_type", "text"}), ("text",)),
    (frozenset({"content", "size_bytes", "next_offset"}), ("content",)),
)
#: Other facts that are shown, with their wording. All further facts are in `--json` only.
_FACTS = {
    "exit_code": "exit code {}",
    "signal": "signal {}",
    "status": "status {}",
    "content_type": "{}",
    "title": "“{}”",
    "url": "{}",
    "size_bytes": "{:,} bytes",
    "duration_ms": "{:,} ms",
    "next_offset": "continues at offset={}",
    "retry_after_ms": "retry after {:,} ms",
    "truncated": "cut short",
    "handle": "for all of it: albert run read_result handle={}",
}


def texts_of(output: Any) -> tuple[str, ...]:
    """The keys of a result's texts. Empty if the result has another form."""
    if isinstance(output, Mapping):
        for needed, texts in _FORMS:
            if needed <= output.keys() and all(isinstance(output[name], str) for name in texts):
                return texts
    return ()


def show(output: Mapping[str, Any], texts: tuple[str, ...], console: Console) -> None:
    """Print the texts, each on separate lines, and then the line of facts."""
    for name in texts:
        if output[name]:
            if name == "stderr":
                console.say(console.paint("on stderr:", "dim"))
            console.value(output[name])
    console.say(console.paint(", ".join(_facts(output)), "dim"), 2)


def _facts(output: Mapping[str, Any]) -> list[str]:
    facts = []
    for name, form in _FACTS.items():
        value = output.get(name)
        # The number 0 is a fact. The values False, "" and None are not.
        if (
            value is False
            or value == ""
            or not isinstance(value, str | int)
            or (isinstance(value, str) and ":," in form)
        ):
            continue
        facts.append(form.format(one_line(value) if isinstance(value, str) else value))
    return facts

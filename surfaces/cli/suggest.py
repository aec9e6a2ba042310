"""``albert suggest``: tools that make the calls which sessions repeat."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from albert_tools.engine.model.messages import counted
from albert_tools.surfaces.cli.service_options import in_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console, one_line, safe
from albert_tools.surfaces.text.hints import command_line
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.suggesting import Suggestion


def suggest(options: argparse.Namespace, console: Console) -> int:
    """List the suggestions, or show one."""
    number = options.number
    if options.source and number is None:
        raise Usage("--source needs the number of a suggestion", "albert suggest 1 --source")
    limit = max(options.limit, number or 0)
    suggestions = in_service(options, lambda service: service.suggest(limit, session=token()))
    if number is not None and number > len(suggestions):
        raise Usage(f"there is no suggestion {number}", f"there are {len(suggestions)}; `albert suggest` lists them")
    if number is not None:
        suggestions = suggestions[number - 1 : number]
    if console.json:
        console.document({"ok": True, "suggestions": [each.as_dict() for each in suggestions]})
    elif options.source:
        console.write(suggestions[0].source)
    elif number is not None:
        _show(suggestions[0], console)
    else:
        for i, each in enumerate(suggestions, 1):
            _line(each, f"{i}  ", console)
        if suggestions:
            source, define = ("suggest", "1", "--source"), ("define", "draft.tool")
            commands = f"{command_line(options.home, *source)} > draft.tool; {command_line(options.home, *define)}"
            console.note(f"`{commands}` saves the first one")
        else:
            console.note("no sequence of calls is repeated in three sessions")
    return 0


def _line(suggestion: Suggestion, number: str, console: Console) -> None:
    indent = " " * len(number)
    what = f"{console.paint(one_line(suggestion.title), 'cyan')}   {', '.join(suggestion.effects) or 'computes'}"
    console.say(f"{number}{what}", len(number) + 2)
    people = f", {suggestion.people} people" if suggestion.people else ""
    spares = f"spares {counted(suggestion.calls, 'call')}, ~{counted(suggestion.tokens, 'token')}"
    console.say(f"{indent}{suggestion.sessions} sessions{people} · {spares}", len(number) + 2)
    notes = "".join(f" · {one_line(note)}" for note in suggestion.notes)
    console.say(f"{indent}replays {suggestion.replays} of {suggestion.tried}{notes}", len(number) + 2)


def _show(suggestion: Suggestion, console: Console) -> None:
    _line(suggestion, "", console)
    for name, values in suggestion.usual.items():
        if values:
            usual = ", ".join(f"{one_line(value)} ({times}×)" for value, times in values)
            console.say(f"  {one_line(name)} is often {usual}", 4)
    for argument, origin in suggestion.destinations.items():
        console.say(f"  {one_line(argument)} comes from {one_line(origin)}", 4)
    console.say()
    console.write(safe(suggestion.source))

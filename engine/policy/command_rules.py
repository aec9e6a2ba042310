"""Which commands a tool may run: each part of a command is judged, and the gravest answer holds.

What is shipped asks about what is dangerous and about what can't be told before it runs. The rules forbid further commands, or
allow only some, or name further dangerous ones. An answer to such a question is about this very call, never about others like it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.decision import WHOLE_CALL, Decision, gravest
from albert_tools.engine.policy.layers import Layer, Resource

# What judges is imported where it is used: most processes never run a command.
if TYPE_CHECKING:
    from albert_tools.engine.shell.verdict import Judgement, Part


#: The kinds of a call's resources that a parser reads: what is long takes a while.
PARSED = frozenset({"shell", "program"})


def read_ahead(kind: str, text: str) -> None:
    """Reads a command, one of `PARSED`, so that it is at hand when it is judged. For a thread: it takes seconds at worst."""
    from albert_tools.engine.shell.judge import judge_argv, judge_command

    if kind == "shell":
        judge_command(text)
    elif argv := tuple(shlex.split(text)):
        judge_argv(argv)


def judge_shell(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """What the rules say of a command for a shell; None where they leave it to what holds for the whole tool."""
    from albert_tools.engine.shell.judge import judge_command

    return _judged(layers, definition, judge_command(resource.name))


def judge_program(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """What the rules say of a program and its arguments, which are joined as a shell would need them."""
    from albert_tools.engine.shell.judge import judge_argv

    argv = tuple(shlex.split(resource.name))
    return _judged(layers, definition, judge_argv(argv)) if argv else None


def judge_environment(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """What the rules say of an environment variable, ``NAME=value``: whether it changes what a command comes to."""
    from albert_tools.engine.shell.dangers import PATTERNS, is_harmful
    from albert_tools.engine.shell.verdict import shown

    name, _, value = resource.name.partition("=")
    if is_harmful(name):
        pattern = PATTERNS["environment"]
        message = f"the variable `{shown(name)}` is dangerous ({pattern.name}): {pattern.why}"
        return Decision("ask", "shipped.dangerous_command", "dangerous_command", message, pattern.instead, WHOLE_CALL)
    if "[" in value and ("$(" in value or "`" in value):
        message = f"the variable `{shown(name)}` holds what arithmetic of a shell would run"
        hint = "do without it"
        return Decision("ask", "shipped.dynamic_command", "dynamic_command", message, hint, WHOLE_CALL)
    return None


def _judged(layers: tuple[Layer, ...], definition: ToolDefinition, judgement: Judgement) -> Decision | None:
    found = [
        decision
        for layer in layers
        for place, section in layer.sections(definition)
        for decision in (
            *_forbidden(place, section.forbidden_commands, judgement),
            *_allowed(place, section.allowed_commands, judgement, definition.name),
            *_listed(place, section.dangerous_commands, judgement),
        )
    ]
    found += _shipped(layers, definition, judgement)
    return gravest(found) if found else None


def _forbidden(place: str, patterns: tuple[str, ...], judgement: Judgement) -> Iterator[Decision]:
    from albert_tools.engine.shell.command_patterns import matches, may_match

    rule = f"{place}.forbidden_commands"
    for part in judgement.parts if patterns else ():
        hint = "do without it"
        if part.pattern == "unreadable":
            message = f"{_name(part)} can't be read, so it can't be told from what is forbidden"
            yield Decision("deny", rule, "command", message, part.hint)
        for pattern in patterns if part.argv else ():
            if may_match(pattern, part.argv):
                certain = matches(pattern, part.argv) or "\0" not in "".join(part.argv)
                said = "is" if certain else "can't be told from what is"
                message = f"{_name(part)} {said} forbidden by {pattern!r}"
                yield Decision("deny", rule, "command", message, hint if certain else "write it out, without variables")


def _allowed(place: str, patterns: tuple[str, ...] | None, judgement: Judgement, tool: str) -> Iterator[Decision]:
    from albert_tools.engine.shell.command_patterns import matches

    for part in judgement.parts if patterns is not None else ():
        if part.argv or part.pattern == "unreadable":
            if not any(matches(pattern, part.argv) for pattern in patterns or ()):
                message = f"{_name(part)} is not among the commands that {tool} may run"
                hint = "use one that is, or ask the owner to add it"
                yield Decision("deny", f"{place}.allowed_commands", "command", message, hint)


def _listed(place: str, patterns: tuple[str, ...], judgement: Judgement) -> Iterator[Decision]:
    from albert_tools.engine.shell.command_patterns import may_match

    for part in judgement.parts if patterns else ():
        if part.argv and any(may_match(pattern, part.argv) for pattern in patterns):
            message = f"{_name(part)} is dangerous: the rules list it"
            yield Decision(
                "ask", f"{place}.dangerous_commands", "dangerous_command", message, "do without it", WHOLE_CALL
            )


def _shipped(layers: tuple[Layer, ...], definition: ToolDefinition, judgement: Judgement) -> Iterator[Decision]:
    part = judgement.first("dangerous")
    if part is not None:
        message = f"{_name(part)} is dangerous ({part.pattern}): {part.why}"
        rule = "shipped.dangerous_command"
        yield Decision("ask", rule, "dangerous_command", message, part.hint, WHOLE_CALL)
    for part in judgement.parts:
        if part.verdict == "dynamic" and not _vouched(layers, definition, part):
            message = f"{_name(part)} can't be judged: {part.why}"
            yield Decision("ask", "shipped.dynamic_command", "dynamic_command", message, part.hint, WHOLE_CALL)
            return


def _vouched(layers: tuple[Layer, ...], definition: ToolDefinition, part: Part) -> bool:
    """Whether it only runs a file of the workspace, and the owner's rules name this very program with it."""
    from albert_tools.engine.shell.command_patterns import matches, names_a_program

    return part.file and any(
        names_a_program(pattern) and matches(pattern, part.argv)
        for layer in layers
        if layer.owner
        for _, section in layer.sections(definition)
        for pattern in section.allowed_commands or ()
    )


def _name(part: Part) -> str:
    from albert_tools.engine.shell.verdict import shown

    return f"`{shown(part.text)}`"

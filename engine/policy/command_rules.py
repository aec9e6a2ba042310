"""Rules on commands. The rules are applied to each part of a command, and the strictest decision applies.

The shipped list contains ordinary commands. All other commands need approval. The rules in files can forbid commands, allow only
certain commands, and list further dangerous commands. Only the owner's file can list further ordinary commands. An approval
covers a single call.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.decision import WHOLE_CALL, Decision, strictest
from albert_tools.engine.policy.layers import Layer, Resource, Section, sections_of, written_at
from albert_tools.engine.policy.rule_kind import Examined, Finding, ListKey, RuleKind, nonempty

# engine/shell is imported where it is used, because most processes never check a command.
if TYPE_CHECKING:
    from albert_tools.engine.shell.verdict import Judgement, Part

_COMMAND = nonempty("a command")

ALLOWED = ListKey(
    "allowed_commands",
    _COMMAND,
    4096,
    '[git status, "git diff *"]',
    "the only commands that may run; every part of a command must fit one ([more](commands.md#the-owners-patterns))",
)
FORBIDDEN = ListKey("forbidden_commands", _COMMAND, 4096, '["git push *"]', "commands that are denied")
DANGEROUS = ListKey(
    "dangerous_commands", _COMMAND, 4096, '["terraform apply *"]', "further commands that need approval"
)

ORDINARY = ListKey(
    "ordinary_commands",
    _COMMAND,
    4096,
    '["make *", "npm test"]',
    "further commands that need no approval; in the owner's file alone ([more](commands.md#the-owners-patterns))",
)

#: The hint about a command that could run another one.
_BY_ITSELF = "write the command out by itself, without variables and without another program around it"

#: The kinds of resources that need the command parser. It is slow for long commands.
PARSED = frozenset({"shell", "program"})


def judge_shell(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """The decision on a shell command; None if no rule objects."""
    from albert_tools.engine.shell.judge import judge_command

    return _judge(layers, definition, judge_command(resource.name, resource.use, resource.root))


def judge_program(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """The decision on a program with its arguments, which are quoted as for a shell."""
    from albert_tools.engine.shell.judge import judge_argv

    argv = resource.words or tuple(shlex.split(resource.name))
    return _judge(layers, definition, judge_argv(argv, resource.use, resource.root)) if argv else None


def judge_environment(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """The decision on an environment variable, ``NAME=value``. A variable that changes which programs run needs approval."""
    from albert_tools.engine.shell.command_patterns import stands_in
    from albert_tools.engine.shell.dangers import dangers
    from albert_tools.engine.shell.places import Start
    from albert_tools.engine.shell.programs import may_set
    from albert_tools.engine.shell.verdict import shown
    from albert_tools.engine.shell.word import Word

    for _, place, section in sections_of(layers, definition):
        for pattern in FORBIDDEN.of(section) or ():
            if stands_in(pattern, resource.name, (resource.use,)):
                message = f"the variable `{shown(resource.name)}` has a command that is forbidden by {pattern!r}"
                return Decision("deny", f"{place}.{FORBIDDEN.name}", "command", message, "remove the variable")
    name, _, value = resource.name.partition("=")
    if may_set(name, Word(value), True):
        return None
    danger = dangers()["environment"]
    is_folder = may_set(name, Word("."), True, Start())
    hint = f"set it in the command: {name}=src COMMAND" if is_folder else "remove the variable"
    message = f"the variable `{shown(name)}` is not known to be harmless: {danger.why}"
    return Decision("ask", "shipped.unknown_command", "unknown_command", message, hint, WHOLE_CALL)


def _judge(layers: tuple[Layer, ...], definition: ToolDefinition, judgement: Judgement) -> Decision | None:
    decisions = [
        decision
        for _, place, section in sections_of(layers, definition)
        for judge in (_forbidden, _allowed, _listed)
        for decision in judge(place, section, judgement, definition.name)
    ]
    decisions += _shipped(layers, definition, judgement)
    return strictest(decisions) if decisions else None


def words_of(text: str) -> list[str]:
    """The words of the commands in a text for bash, without their quotes; a NUL stands for what is not known."""
    from albert_tools.engine.shell.judge import judge_command

    return [word for part in judge_command(text).parts for word in part.argv]


def _forbidden(place: str, section: Section, judgement: Judgement, tool: str) -> Iterator[Decision]:
    from albert_tools.engine.shell.command_patterns import is_listed, may_match

    patterns = FORBIDDEN.of(section)
    rule = f"{place}.{FORBIDDEN.name}"
    for part in (*judgement.parts, *judgement.within) if patterns else ():
        if part.unreadable:
            message = f"it is not certain what {_name(part)} runs, so it could be a forbidden command"
            yield Decision("deny", rule, "command", message, part.hint)
        for pattern in patterns or ():
            if part.argv and may_match(pattern, part.argv, judgement.folders):
                certain = is_listed([pattern], part.argv, judgement.folders)
                message = f"{_name(part)} {'is' if certain else 'could be a command that is'} forbidden by {pattern!r}"
                if part not in judgement.parts:
                    message += ", and another command could start it"
                another = "if it is another command, write it with plain paths and without variables"
                hint = "do without it" if certain else another
                yield Decision("deny", rule, "command", message, hint)
            elif _could_start(pattern, part, judgement):
                message = f"{_name(part)} could run a command that is forbidden by {pattern!r}"
                yield Decision("deny", rule, "command", message, _BY_ITSELF)


def _could_start(pattern: str, part: Part, judgement: Judgement) -> bool:
    from albert_tools.engine.shell.command_patterns import may_start, stands_in

    # It can also get the text of another part: by a variable, a pipe, a here-document.
    return part.starts and (
        may_start(pattern, part.argv, judgement.folders) or stands_in(pattern, judgement.text, judgement.folders)
    )


def _allowed(place: str, section: Section, judgement: Judgement, tool: str) -> Iterator[Decision]:
    from albert_tools.engine.shell.command_patterns import is_listed

    patterns = ALLOWED.of(section)
    rule = f"{place}.{ALLOWED.name}"
    for part in judgement.parts if patterns is not None else ():
        if part.unreadable or (part.argv and not part.only_runs):
            if not is_listed(patterns or (), part.argv, judgement.folders):
                message = f"{_name(part)} is not among the commands that {tool} may run"
                hint = f"use a command that is listed, or ask for it to be added to {written_at(rule)}"
                yield Decision("deny", rule, "command", message, hint)


def _listed(place: str, section: Section, judgement: Judgement, tool: str) -> Iterator[Decision]:
    from albert_tools.engine.shell.command_patterns import may_match

    patterns = DANGEROUS.of(section)
    rule = f"{place}.{DANGEROUS.name}"
    parts = (*judgement.parts, *judgement.within) if patterns else ()
    # A person is shown the dangerous command itself, if it is there.
    for part in parts:
        if part.argv and any(may_match(pattern, part.argv, judgement.folders) for pattern in patterns or ()):
            message = f"{_name(part)} is dangerous: the rules list it"
            yield Decision("ask", rule, "dangerous_command", message, "do without it", WHOLE_CALL)
    for part in parts:
        if part.unreadable:
            message = (
                f"it is not certain what {_name(part)} runs, so it could be a command that the rules list as dangerous"
            )
            yield Decision("ask", rule, "dangerous_command", message, part.hint, WHOLE_CALL)
        elif any(_could_start(pattern, part, judgement) for pattern in patterns or ()):
            message = f"{_name(part)} could run a command that the rules list as dangerous"
            yield Decision("ask", rule, "dangerous_command", message, _BY_ITSELF, WHOLE_CALL)


def _shipped(layers: tuple[Layer, ...], definition: ToolDefinition, judgement: Judgement) -> Iterator[Decision]:
    from albert_tools.engine.shell.shells import runs_its_input

    asking = [
        part
        for part in judgement.parts
        if part.verdict != "ordinary" and not _listed_as_ordinary(layers, definition, part, judgement.folders)
    ]
    # A pattern for `sh` would allow all that is piped to it.
    is_exact = not any(runs_its_input(part.argv) for part in asking)
    line = _line_for_owner(asking, judgement.folders) if is_exact else None
    for part in asking:
        if part.verdict == "dangerous":
            message = f"{_name(part)} is dangerous ({part.danger}): {part.why}"
            yield Decision("ask", "shipped.dangerous_command", "dangerous_command", message, part.hint, WHOLE_CALL)
        else:
            message = f"{_name(part)} needs approval: {part.why}"
            hint = part.hint
            if line is not None:
                hint = f"to allow it in every call, the owner adds to `tools.{definition.name}` of the rules: {line}"
            elif is_exact and part.argv and not part.unreadable and "\0" not in "".join(part.argv):
                hint = f"the owner can list it under `tools.{definition.name}.{ORDINARY.name}`"
            yield Decision("ask", "shipped.unknown_command", "unknown_command", message, hint, WHOLE_CALL)


def _line_for_owner(asking: list[Part], folders: Sequence[str]) -> str | None:
    """The line of the rules with which these commands need no approval; None if a pattern can't list them all."""
    from albert_tools.engine.shell.command_patterns import exact_pattern, placed

    if not asking or any(part.verdict != "unknown" or part.unreadable or not part.argv for part in asking):
        return None
    # In several folders, a word can name several files. Then no line is exact.
    first, *others = {tuple(exact_pattern(placed(part.argv, folder)) for part in asking) for folder in folders}
    if others or None in first:
        return None
    return f"{ORDINARY.name}: {json.dumps(list(dict.fromkeys(first)))}"


def _listed_as_ordinary(
    layers: tuple[Layer, ...], definition: ToolDefinition, part: Part, folders: Sequence[str]
) -> bool:
    """Whether the owner's rules list this command as ordinary, by a pattern that names its program."""
    from albert_tools.engine.shell.command_patterns import is_listed, names_a_program

    patterns = [
        pattern
        for layer, _, section in sections_of(layers, definition)
        if layer.owner
        for pattern in ORDINARY.of(section) or ()
        if names_a_program(pattern)
    ]
    return bool(part.argv) and is_listed(patterns, part.argv, folders)


def _name(part: Part) -> str:
    from albert_tools.engine.shell.verdict import shown

    return f"`{shown(part.text)}`"


def _lint(examined: Examined) -> Iterator[Finding]:
    """Find patterns with operators of a shell, which match no command, and those that make every command ordinary."""
    from albert_tools.engine.shell.programs import lets_start_any

    if examined.section.get(ORDINARY.name) is not None and not examined.layer.owner:
        yield f"{examined.place}.{ORDINARY.name}", "it has no effect: only the owner's file lists ordinary commands"
    for pattern in filter(lets_start_any, ORDINARY.of(examined.section) or ()):
        message = f"{pattern!r} makes commands of any program ordinary, because `*` can stand for one"
        yield f"{examined.place}.{ORDINARY.name}", f"{message}; write out what may run"
    for key in (ALLOWED, FORBIDDEN, DANGEROUS, ORDINARY):
        for pattern in key.of(examined.section) or ():
            unquoted = re.sub(r"'[^']*'|\"[^\"]*\"|\\.", "", pattern)
            if any(operator in unquoted for operator in ";|&<>$`"):
                message = f"{pattern!r} matches nothing: a pattern is one program with its arguments"
                yield f"{examined.place}.{key.name}", message


COMMANDS = RuleKind(
    (ALLOWED, FORBIDDEN, DANGEROUS, ORDINARY),
    {"shell": judge_shell, "program": judge_program, "environment": judge_environment},
    uses=frozenset({"shell", "program"}),
    not_for="takes no commands",
    lint=_lint,
)

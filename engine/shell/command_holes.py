"""The holes of a planned command through which somebody else can change what the command does.

What fills a hole is harmless only as an operand of an ordinary command. So the template is read and judged like a command, with a
mark in each hole (`marks`). A person who approves a tool is told about all other holes, and its commands with such holes are not
approved in advance.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, product
from typing import NamedTuple

from albert_tools.engine.model.manifest import Alternative, Hole, Part, PlannedCall, Value, values_in
from albert_tools.engine.shell import marks
from albert_tools.engine.shell.judge import judge_argv, judge_command, judge_template
from albert_tools.engine.shell.programs import may_set, names_folder, only_reads
from albert_tools.engine.shell.verdict import Part as JudgedPart
from albert_tools.engine.shell.word import HOLE, Word

#: The kinds of holes whose text has no character that means something to a shell.
_PLAIN = frozenset({"number", "word"})
#: The most commands that the alternatives of a list are combined to.
_MAX_COMBINED = 100
#: Options that take the next word for a text, so that it can't be another option: of some operations of git, and of pytest.
_TAKE_TEXTS: dict[str | None, tuple[str, ...]] = {
    **dict.fromkeys(("COMMIT", "MERGE", "TAG"), ("-m", "-am", "--message")),
    "": ("-m", "-k"),
}
_ANYTHING: tuple[Part, ...] = (Hole("any"),)


class Loose(NamedTuple):
    """A hole, as a template of its own, through which a command can be changed.

    `command` is the command that it is an argument of; None if it can add commands to the text. `value` is what it is a part of.
    """

    template: tuple[Part, ...]
    command: str | None
    value: Value


def loose_holes(use: str, value: Value) -> Iterator[Loose]:
    """The loose holes of an argument. `use` is the kind of the argument: one of `JUDGED`. Other kinds have none."""
    if use == "program":
        yield from _in_list(value)
    elif use in ("shell", "environment"):
        holes_in = _in_text if use == "shell" else _in_variable
        for inner in values_in(value):
            yield from (Loose(*one, inner) for template in _texts(inner) for one in holes_in(template))


def loose_folders(call: PlannedCall) -> Iterator[Loose]:
    """The holes of the folder in which a planned command starts. They choose the program, unless the command is ordinary and only
    reads."""
    starts = [(value, one) for value in call.used("folder") for inner in values_in(value) for one in _texts(inner)]
    holes = [(value, one) for value, one in starts if isinstance(one, tuple) and _holes(one)]
    command = _not_ordinary(call) if holes else None
    if command is not None:
        yield from (Loose(one, command, value) for value, one in holes)


def loose_options(call: PlannedCall) -> Iterator[Loose]:
    """The holes in the arguments of a fixed program that it can take for an option, or for a part of its name."""
    operation = call.arguments.get("operation")
    takes = _TAKE_TEXTS.get(_constant(operation) if operation is not None else "", ())
    for value in call.used("arguments"):
        before = None
        for inner in value.places or values_in(value):
            if before == "--":
                break
            if before not in takes:
                texts = (one for one in _texts(inner) if isinstance(one, tuple))
                options = (one for one in texts if _may_be_option(one, call.tool == "git"))
                yield from (Loose(one, call.tool, inner) for one in options)
            before = _constant(inner)


def _constant(value: Value) -> str | None:
    """The text of a value that is always the same one."""
    match _texts(value):
        case [(str() as text,)]:
            return text
    return None


def _may_be_option(template: tuple[Part, ...], only_listed: bool) -> bool:
    """Whether a hole can be an option or a part of its name; or its value, unless only listed options are accepted."""
    holes = _holes(template)
    if not holes:
        return False
    begin = next(part for part in template if part != "")
    if isinstance(begin, Hole):
        return begin.kind != "number"
    # The value of an option can be a program, or further options. The list of git has no such options.
    is_harmless = only_listed or all(hole.kind == "number" for hole in holes)
    return begin.startswith("-") and not ("=" in begin and is_harmless)


def _not_ordinary(call: PlannedCall) -> str | None:
    """A command of a planned call that is another one in another folder, or is not ordinary; None if there is none."""
    texts, variables = _templates(call, "shell"), _templates(call, "environment")
    lists = [argv for value in call.used("program") for argv in _combined(value) or [()]]
    if not texts and not lists:
        return ""
    loads_code = any(names_folder(text.partition("=")[0]) for text in variables)
    commands = [(text, judge_command(text)) for text in texts]
    commands += [(shlex.join(words), judge_argv(words)) for words in (tuple(map(_template, argv)) for argv in lists)]
    return next(
        (
            text
            for text, judgement in commands
            if loads_code or not judgement.parts or any(map(_differs, judgement.parts))
        ),
        None,
    )


def _templates(call: PlannedCall, use: str) -> list[str]:
    return [_template(one) for value in call.used(use) for inner in values_in(value) for one in _texts(inner)]


def _differs(part: JudgedPart) -> bool:
    return part.verdict != "ordinary" or not (part.only_runs or only_reads(part.argv))


def _template(one: Alternative) -> str:
    """A template as text, with a mark in each hole."""
    parts = one if isinstance(one, tuple) else (str(one),)
    return "".join(part if isinstance(part, str) else marks.bare(0) for part in parts)


def is_loose(call: PlannedCall) -> bool:
    """Whether a planned command has a loose hole."""
    holes = (
        hole for n, use in call.uses.items() if n in call.arguments for hole in loose_holes(use, call.arguments[n])
    )
    return next(chain(holes, loose_folders(call), loose_options(call)), None) is not None


@lru_cache(maxsize=1024)
def _in_text(template: Alternative) -> tuple[tuple[tuple[Part, ...], str | None], ...]:
    if not isinstance(template, tuple):
        return ()
    template = tuple(map(_known, template))
    holes = _holes(template)
    open_holes = [hole for hole in holes if hole.kind not in (*_PLAIN, "quoted")]
    if open_holes:
        return tuple(((hole,), None) for hole in dict.fromkeys(open_holes))
    if not holes:
        return ()
    is_marked = any(marks.MARK.search(part) for part in template if isinstance(part, str))
    if len(holes) > marks.MAX_MARKS or is_marked:
        return tuple((_content(hole), None) for hole in dict.fromkeys(holes))
    made = [marks.bare(i) if hole.kind in _PLAIN else marks.quoted(i) for i, hole in enumerate(holes)]
    left = iter(made)
    text = "".join(part if isinstance(part, str) else next(left) for part in template)
    commands = judge_template(text)
    loose = [(hole, mark.strip("'")) for hole, mark in zip(holes, made, strict=True)]
    return tuple(dict.fromkeys((_content(hole), commands[mark]) for hole, mark in loose if mark in commands))


def _known(part: Part) -> Part:
    """The text of a quoted constant."""
    if isinstance(part, Hole) and part.kind == "quoted" and not _holes(part.of):
        return shlex.quote("".join(map(str, part.of)))
    return part


def _content(hole: Hole) -> tuple[Part, ...]:
    """What a hole holds. Where the quotes of a text don't help, they aren't shown."""
    return hole.of if hole.kind == "quoted" else (hole,)


def _in_variable(template: Alternative) -> tuple[tuple[tuple[Part, ...], str | None], ...]:
    """A variable whose value or name is not fixed, unless every value of it is harmless."""
    if not isinstance(template, tuple) or not _holes(template):
        return ()
    name, equals, _ = template[0].partition("=") if isinstance(template[0], str) else ("", "", "")
    is_harmless = bool(equals) and may_set(name, Word(HOLE, known=False), True)
    return () if is_harmless else ((template, None),)


def _in_list(value: Value) -> Iterator[Loose]:
    combined = _combined(value)
    if combined is None or value.places is None:
        # Any of these can be the program.
        every = [(one, inner) for inner in (value, value.items) if inner is not None for one in _texts(inner)]
        yield from (Loose(one, "", inner) for one, inner in every if isinstance(one, tuple) and _holes(one))
        return
    commands = {(i, argv[i]): command for argv in combined for i, command in _in_argv(argv)}
    for (i, one), command in commands.items():
        yield Loose(one if isinstance(one, tuple) else _ANYTHING, command, value.places[i])


def _combined(value: Value) -> list[tuple[Alternative, ...]] | None:
    """The lists of words that a list can be; None if their number is not known."""
    if value.places is None or value.open:
        return None
    combined = [*islice(product(*map(_texts, value.places)), _MAX_COMBINED + 1)]
    if len(combined) > _MAX_COMBINED:
        return [tuple(texts[0] if len(texts) == 1 else _ANYTHING for texts in map(_texts, value.places))]
    return combined


@lru_cache(maxsize=1024)
def _in_argv(argv: tuple[Alternative, ...]) -> tuple[tuple[int, str | None], ...]:
    words = [_word(one, marks.bare(i)) for i, one in enumerate(argv)]
    commands = judge_template(words)
    return tuple((i, commands[word.marks]) for i, word in enumerate(words) if word.marks in commands)


def _word(one: Alternative, mark: str) -> Word:
    parts = one if isinstance(one, tuple) else (str(one),)
    text = "".join(part if isinstance(part, str) else HOLE for part in parts)
    return Word(text, False, marks=mark) if _holes(parts) else Word(text)


def _texts(value: Value) -> Sequence[Alternative]:
    return (*value.alternatives, *([_ANYTHING] if value.open else []))


def _holes(template: tuple[Part, ...]) -> list[Hole]:
    return [part for part in template if isinstance(part, Hole)]

"""The allow-list of programs (`programs.toml`), and whether a program's arguments fit its row."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from albert_tools.engine.shell.places import NOT_WRITABLE, Start
from albert_tools.engine.shell.word import ANY, HOLE, Unclear, Word

#: A pattern that matches nothing: what a row without a pattern for options allows.
NOTHING = "(?!)"

#: The tables of programs. Those of `writes` bring content into files, which a later program of `builds` could run.
TABLES = ("reads", "changes", "writes", "builds")

_SYSTEM_FOLDER = re.compile(r"^/(usr/)?bin/(?=[^/]+$)")
#: Programs with a language of their own that only read if they are ordinary.
_LOOKING = frozenset("[ cd find test".split())
_OTHER_ARGUMENTS = "it is known to be harmless only with other arguments"
#: First characters of an unknown word from which it could be an option, or several words.
_COULD_BE_ANYTHING = (HOLE, "-", "", "*", "?", "[", "{")

Row = dict[str, Any]


@cache
def allow_list() -> dict[str, Any]:
    """The data of `programs.toml`."""
    text = files("albert_tools.engine.shell").joinpath("programs.toml").read_text("utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    data["anything"] = frozenset(data["anything"].split())
    listed = (name.strip() for name in re.split("[,\n]", data["starts_nothing"]))
    data["starts_nothing"] = data["anything"].union(listed)
    return data


def name_of(program: Word) -> str:
    """The name by which the list has a program."""
    name = _SYSTEM_FOLDER.sub("", program.text)
    return str(allow_list()["names"].get(name, name))


def starts_nothing(argv: Sequence[Word]) -> bool:
    """Whether a program starts no other program, whatever its further arguments are."""
    if not argv or not argv[0].known:
        return False
    name, subcommand = name_of(argv[0]), argv[1].text if argv[1:] and argv[1].known else ""
    return not {name, f"{name} {subcommand}"}.isdisjoint(allow_list()["starts_nothing"])


def lets_start_any(pattern: str) -> bool:
    """Whether the words that a star of the owner's pattern stands for can start any program."""
    try:
        words = shlex.split(pattern)
    except ValueError:
        words = pattern.split()
    text = " ".join((*(name_of(Word(word)) for word in words[:1]), *words[1:]))
    return re.fullmatch(allow_list()["any_program"], text, re.VERBOSE) is not None


def only_reads(argv: Sequence[str]) -> bool:
    """Whether an ordinary command neither changes anything nor runs the code of the folder in which it starts."""
    name, data = name_of(Word(argv[0])) if argv else "", allow_list()
    keys = {" ".join([name, *argv[1:n]]) for n in (1, 2, 3)}
    return name in data["anything"] or name in _LOOKING or not keys.isdisjoint(data["reads"])


@cache
def has_subcommands(name: str) -> bool:
    """Whether the list has rows for subcommands of a program, so that a message should name them."""
    data = allow_list()
    return any(key.startswith(f"{name} ") for table in TABLES for key in data[table])


def row_of(table: str, key: str) -> Row | None:
    """The row of a program in a table; a text in its place names another row."""
    rows: dict[str, Any] = allow_list()[table]
    row = rows.get(key)
    resolved_row: Row | None = rows[row] if isinstance(row, str) else row
    return resolved_row


def demand_fits(row: Row, arguments: Sequence[Word], about: str, start: Start) -> bool:
    """Check the arguments against a row. Returns whether one of the options writes a file.

    Raises:
        Unclear: the arguments do not fit the row.
    """
    options, operands = split_options(row, arguments, about, start)
    wrong = len(operands) < row.get("least", 0) or len(operands) > row.get("most", len(operands))
    # A glob may make several operands.
    wrong = wrong or ("most" in row and not all(word.single for word in operands))
    if wrong or ("needs" in row and not any(option.fits(row["needs"]) for option in options)):
        raise Unclear(_OTHER_ARGUMENTS, about)
    if "first" in row and operands:
        if not operands[0].fits(row["first"]):
            raise Unclear(_OTHER_ARGUMENTS, about)
        del operands[0]
    kind = row.get("operands", "any")
    for word in operands:
        if "each" in row:
            if not word.fits(row["each"]):
                raise Unclear(_OTHER_ARGUMENTS, about)
        elif kind in ("files", "inside"):
            start.demand_writable(word, about, temporary=kind == "files")
        elif kind == "none":
            raise Unclear(_OTHER_ARGUMENTS, about)
    return "writes" in row and any(option.fits(row["writes"]) for option in options)


def split_options(row: Row, arguments: Sequence[Word], about: str, start: Start) -> tuple[list[Word], list[Word]]:
    """The options with their values, and the operands.

    Raises:
        Unclear: a word could be either, or an option is not in the row.
    """
    options: list[Word] = []
    operands: list[Word] = []
    left = iter(arguments)
    for word in left:
        if row.get("stops") and operands:
            operands.append(word)
        elif word == Word("--"):
            after = list(left)
            if not row.get("ends") and any(word.text.startswith("-") or _could_be_an_option(word) for word in after):
                raise Unclear("its program may take what follows `--` for options", about)
            operands += after
        elif not word.known and _could_be_an_option(word):
            raise Unclear("its arguments are not known before it runs", about)
        elif not word.text.startswith("-") or word.text == "-":
            operands.append(word)
        elif word.fits(row.get("takes", NOTHING)) or word.fits(row.get("writes", NOTHING)):
            value = next(left, ANY)
            # A program whose option takes a value only sometimes would read a dash as another option.
            refused = ("-", "@", HOLE) if row.get("expands") else ("-",)
            if not value.single or value.text.startswith(refused):
                raise Unclear("its arguments are not known before it runs", about)
            if word.fits(row.get("writes", NOTHING)) and not start.is_inside(value):
                raise Unclear(NOT_WRITABLE, about)
            options += [word, value]
        elif word.fits(row.get("flags", NOTHING)):
            options.append(word)
        else:
            raise Unclear(f"its option {word.text[:40]} is not among the harmless ones", about)
    return options, operands


def _could_be_an_option(word: Word) -> bool:
    if word.text[:1] in _COULD_BE_ANYTHING:
        return True
    return not word.single and HOLE in word.text


def names_folder(variable: str) -> bool:
    """Whether programs load code from the folder that a variable names."""
    return re.fullmatch(allow_list()["variables"]["folders"], variable, re.VERBOSE) is not None


def may_set(name: str, value: Word, exported: bool, start: Start | None = None) -> bool:
    """Whether an ordinary command may set this variable; `exported`: for the programs that it starts.

    Without `start`, the commands are not known, so the variable may not name a folder from which they load code.
    """
    variables = allow_list()["variables"]
    if value._replace(text=f"{name}={value.text}").fits(variables["exported"]):
        return True
    if start is not None and names_folder(name) and start.is_inside(value):
        return True
    return not exported and re.fullmatch(variables["own"], name, re.VERBOSE) is not None

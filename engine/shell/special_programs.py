"""Programs with a small language of their own, and programs that run another command.

Each function raises `Unclear` unless the call is ordinary, and returns whether it changes the content of files. Commands that are
run inside are handed to `run`, which judges them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from albert_tools.engine.shell.places import Start
from albert_tools.engine.shell.programs import NOTHING, Row, may_set, split_options
from albert_tools.engine.shell.reader import only_looks
from albert_tools.engine.shell.word import ANY, HOLE, Unclear, Unreadable, Word

Run = Callable[[Sequence[Word]], None]


def cd(arguments: Sequence[Word], about: str, run: Run, start: Start) -> bool:
    """Into a folder of the workspace or below `/tmp`."""
    if len(arguments) != 1 or not arguments[0].known:
        raise Unclear("the folder that it enters is not known before it runs", about)
    folder = arguments[0]
    if not start.is_inside(folder) and not start.is_temporary(folder._replace(text=folder.text + "/x")):
        raise Unclear("it leaves the workspace, or enters a hidden folder", about)
    return False


_FIND_WITH_VALUE = r"-(i?name|i?path|type|maxdepth|mindepth|size|[mac](time|min)|newer|i?regex|perm|user)"
_FIND_PLAIN = r"[()!,] | -(not|and|or|a|o|print0?|prune|empty|ls|quit|follow|xdev|executable|readable)"


def find(arguments: Sequence[Word], about: str, run: Run, start: Start) -> bool:
    """Tests and prints; `-exec` with an ordinary command. `-execdir` would run it in other folders."""
    at = 0
    commands: list[Sequence[Word]] = []
    does_more, is_certain = False, True
    while at < len(arguments) and arguments[at].known and not re.match(r"[-(!]", arguments[at].text):
        at += 1
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word.known and word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            does_more = does_more or word.text != "-exec"
            end = _end_of_exec(arguments, at)
            is_certain = is_certain and all(inner.known for inner in arguments[at:end])
            commands.append([ANY if "{}" in inner.text else inner for inner in arguments[at:end]])
            at = end + 1
        elif word.fits(_FIND_WITH_VALUE):
            if at < len(arguments) and not arguments[at].single:
                raise Unclear("what it does with the files it finds is not known before it runs", about)
            at += 1
        else:
            does_more = does_more or not word.fits(_FIND_PLAIN)
    # It runs them for each file, so an earlier one can run what a later one has written.
    for command in commands * 2:
        run(command)
    if not is_certain:
        raise Unclear("it is not known where its command ends", about)
    if does_more:
        raise Unclear("it may do more than find files", about)
    return False


def _end_of_exec(arguments: Sequence[Word], begin: int) -> int:
    for at in range(begin, len(arguments)):
        if arguments[at].text == ";" or (arguments[at].text == "+" and arguments[at - 1].text == "{}"):
            return at
    return len(arguments)


def _sed_regex(d: str) -> str:
    """A regular expression up to the delimiter `d`. BSD reads a delimiter in brackets differently, so these hold none."""
    item = rf"(?:\[:\w+:\]|[^\]\[{d}\\\n]|\\[^\]\[{d}\n])"
    brackets = rf"\[(?:\^(?:\]|{item})|\]|(?!\^){item}){item}*\]"
    return rf"(?:[^{d}\\\n\[]|\\.|{brackets})*"


_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_sed_regex('/')}/I?)"
_SUBSTITUTE = "|".join(
    rf"s{d}{_sed_regex(d)}{d}(?:[^{d}\\\n]|\\.)*{d}[gIip0-9]*" for d in ("/", r"\|", "#", ",", "@", ":")
)
_SED_COMMAND = (
    rf"\s*+(?:{_ADDRESS}(?:,(?:{_ADDRESS}|\+\d+))?+\s*+)?+(?:!\s*+)?+(?:[pdqlnNDPhHgGx=]|{_SUBSTITUTE})[ \t]*+"
)
#: Scripts that only print, delete and replace lines: no `w`, `e` or `r`.
_SED_SCRIPT = re.compile(rf"{_SED_COMMAND}(?:[;\n]{_SED_COMMAND})*;?\s*+", re.DOTALL)
#: Names of files that BSD, where `-i` takes the next word, would read as a script that writes elsewhere.
_SED_WRITES = re.compile(r"[\d, +]*(?:s(.).*\1.*\1[gpI0-9]*)?w *[./].*")
_SED_OPTIONS: Row = {"flags": r"-[nErsz]+ | -i | -i\.bak | -ni | --quiet", "takes": "-e"}


def sed(arguments: Sequence[Word], about: str, run: Run, start: Start) -> bool:
    """Scripts that only print, delete and replace lines; `-i` on files of the workspace."""
    options, operands = split_options(_SED_OPTIONS, arguments, about, start)
    scripts = [value for option, value in pairwise(options) if option == Word("-e")]
    files = operands
    if not scripts:
        scripts, files = operands[:1], operands[1:]
    for script in scripts:
        if not script.known or len(script.text) > 1000 or not _SED_SCRIPT.fullmatch(script.text):
            raise Unclear("its script may do more than print, delete and replace lines", about)
    if not any(re.fullmatch(r"-n?i.*", option.text) for option in options):
        return False
    for word in files:
        start.demand_writable(word, about)
        if _SED_WRITES.fullmatch(word.text):
            raise Unclear("its script may do more than print, delete and replace lines", about)
    return True


_AWK_ACTS = re.compile(r"system|getline|@|>(?!=)|(?<!\|)\|(?!\|)|include|load|ARGV|SYMTAB")
_AWK_OPTIONS: Row = {"flags": r"-F.+ | -v\w+=.*", "takes": "-[Fv]"}


def awk(arguments: Sequence[Word], about: str, run: Run, start: Start) -> bool:
    """Programs that neither write nor run anything."""
    _, operands = split_options(_AWK_OPTIONS, arguments, about, start)
    if (
        not operands
        or not operands[0].known
        or any(word.text.startswith("/") and not word.known for word in operands)
        or _AWK_ACTS.search(operands[0].text)
    ):
        raise Unclear("its program may write files or run commands", about)
    return False


def test(arguments: Sequence[Word], about: str, run: Run, start: Start) -> bool:
    """Tests of files and texts."""
    words = list(arguments)
    if words[-1:] == [Word("]")]:
        del words[-1]
    if not only_looks(words):
        raise Unclear("it may run what stands in it", about)
    return False


#: By the name of the program.
SPECIAL: dict[str, Callable[[Sequence[Word], str, Run, Start], bool]] = {
    "cd": cd,
    "find": find,
    "sed": sed,
    "awk": awk,
    "test": test,
    "[": test,
}


def run_inner(name: str, row: Row, arguments: Sequence[Word], about: str, run: Run, start: Start) -> None:
    """A program of the table `runners`: its own options must be harmless; the command behind them is judged."""
    # What a program runs with further words has words that nobody knows.
    kind = Unreadable if row.get("appends") else Unclear
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word.fits(row.get("takes", NOTHING)):
            at += 1
            if at < len(arguments) and not arguments[at].known:
                raise kind("its arguments are not known before it runs", about)
        elif name == "xargs" and word == Word("-I") and arguments[at + 1 : at + 2] == [Word("{}")]:
            at += 1
        elif not word.text.startswith("-"):
            break
        elif not word.known:
            raise kind("its options are not known before it runs", about)
        elif not word.fits(row.get("flags", NOTHING)):
            raise kind(f"its option {word.text[:40]} is not among the harmless ones", about)
        at += 1
    before = arguments[at : at + row.get("skip", 0)]
    if not all(word.known for word in before):
        raise Unclear("the name of its program is not known before it runs", about)
    inner = list(arguments[at + len(before) :])
    if name == "env":
        _set_variables(inner, start)
    if row.get("appends"):
        inner = [ANY._replace(marks=word.marks) if "{}" in word.text else word for word in inner or [Word("echo")]] + [
            ANY
        ]
    run(inner)


def _set_variables(words: list[Word], start: Start) -> None:
    """Check the assignments of `env` and remove them from `words`."""
    while words and "=" in words[0].text.split(HOLE)[0]:
        word = words.pop(0)
        name, _, value = word.text.partition("=")
        if not may_set(name, Word(value, word.known), True, start):
            raise Unclear("it sets a variable that may change how programs run", f"{name}=")

"""Programs that run the command that their arguments are: where in the arguments it begins, and what they add to it.

`inner` gives the commands that a call runs, each as arguments or as a text for a shell, or says that this can't be told.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from albert_tools.engine.shell.dangers import is_harmful
from albert_tools.engine.shell.expand import HOLE, Arg, plain
from albert_tools.engine.shell.options import Options
from albert_tools.engine.shell.places import place
from albert_tools.engine.shell.programs.finding import Finding

_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=", re.S)


class Inner(NamedTuple):
    """What a call runs: a command by its arguments, or a text that a shell reads."""

    args: tuple[Arg, ...] = ()
    text: Arg | None = None


class _Runner(NamedTuple):
    """How a program takes its command: which short and long options have a value, and how many operands come first."""

    valued: str = ""
    long: str = ""
    before: int = 0


_RUNNERS: dict[str, _Runner] = {
    "nohup": _Runner(),
    "nice": _Runner("n", "adjustment"),
    "ionice": _Runner("cnpPu", "class classdata pid pgid uid"),
    "chrt": _Runner("TPDp", "sched-runtime sched-period sched-deadline pid", 1),
    "taskset": _Runner("", "", 1),
    "timeout": _Runner("ks", "kill-after signal", 1),
    "gtimeout": _Runner("ks", "kill-after signal", 1),
    "time": _Runner("fo", "format output"),
    "gtime": _Runner("fo", "format output"),
    "builtin": _Runner(),
    "exec": _Runner("a"),
    "setsid": _Runner(),
    "stdbuf": _Runner("ioe", "input output error"),
    "caffeinate": _Runner("tw"),
    "busybox": _Runner(),
    "coreutils": _Runner(),
    "toybox": _Runner(),
    "flock": _Runner("wE", "timeout wait conflict-exit-code", 1),
    "chronic": _Runner(),
    "catchsegv": _Runner(),
    "cgexec": _Runner("g"),
    "numactl": _Runner("imNpCP", "interleave membind cpunodebind physcpubind preferred"),
    "xvfb-run": _Runner("nefws", "server-num error-file auth-file wait server-args"),
    "winpty": _Runner(),
    "choom": _Runner("np", "adjust pid"),
    "uclampset": _Runner("mMp", "util-min util-max pid"),
    "eatmydata": _Runner(),
    "systemd-cat": _Runner("tp", "identifier priority stderr-priority"),
    "ifne": _Runner(),
    "xcrun": _Runner("", "sdk toolchain"),
    "bear": _Runner("o", "output"),
    "scan-build": _Runner("o", "use-analyzer"),
    "datefudge": _Runner("", "", 1),
    "runcon": _Runner("trul", "type role user range", 1),
    "ccache": _Runner(),
    "distcc": _Runner(),
    "nocorrect": _Runner(),
    "noglob": _Runner(),
}

#: Programs that run the command behind a word of theirs.
_BEHIND_WORD = {
    "poetry": "run",
    "pipenv": "run",
    "hatch": "run",
    "pdm": "run",
    "rye": "run",
    "uv": "run",
    "conda": "run",
    "mamba": "run",
    "bundle": "exec",
    "direnv": "exec",
    "mise": "exec",
    "asdf": "exec",
    "pyenv": "exec",
    "rbenv": "exec",
    "dotenv": "run",
    "pixi": "run",
}

#: Long options of those that have no value. Behind one that isn't known may stand its value, and not yet the command.
_FLAGS = frozenset(
    "help version verbose quiet append portability ignore preserve-status foreground ctty fork wait shared exclusive "
    "unlock nonblock nb close no-fork all-tasks cpu-list auto-servernum fifo rr other batch idle reset-on-fork max".split()
)  # fmt: skip
#: ``env``'s, and its short options that have a value.
_ENV_FLAGS = frozenset(
    "ignore-environment null debug list-signal-handling default-signal ignore-signal block-signal help version".split()
)
_ENV_VALUED = "uCPaLUS"

#: What is no command's name, so that the command was looked for at the wrong place.
_NO_NAME = re.compile(r"[-+].*|[0-9.]+[smhd]?", re.S)

#: Words with which a program runs a command that stands somewhere behind them, or in a text.
_ELSEWHERE: dict[str, frozenset[str]] = {
    "nix-shell": frozenset(("--run", "--command")),
    "nix": frozenset(("run", "shell", "develop", "-c", "--command")),
    "mise": frozenset(("x",)),
    "tox": frozenset(("exec", "e")),
}

#: Programs that run the command in their arguments.
RUNNERS = frozenset(
    (
        *_RUNNERS,
        *_BEHIND_WORD,
        *_ELSEWHERE,
        "command",
        "env",
        "xargs",
        "find",
        "fd",
        "fdfind",
        "watch",
        "parallel",
        "trap",
        "eval",
    )
)


def inner(program: str, args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    """What a call of one of `RUNNERS` runs. Nothing where it runs nothing."""
    if program == "env":
        yield from _env(args)
    elif program == "command":
        if not (args and re.fullmatch("-p?[vV]p?", args[0].text)):
            yield from _behind(_Runner(), args)
    elif program == "xargs":
        yield from _xargs(args)
    elif program == "find":
        yield from _find(args)
    elif program in ("fd", "fdfind"):
        yield from _fd(args)
    elif program == "watch":
        yield from _watch(args)
    elif program == "parallel":
        yield from _parallel(args)
    elif program == "trap":
        yield from _trap(args)
    elif program in _ELSEWHERE and any(a.text in _ELSEWHERE[program] or not a.known for a in args):
        yield Finding("", "the command that it runs can't be determined")
    elif program in _BEHIND_WORD:
        if any(a.text == _BEHIND_WORD[program] or a.splits or a.text.startswith(HOLE) for a in args):
            if args[0].text != _BEHIND_WORD[program] or len(args) < 2 or args[1].text.startswith(("-", HOLE)):
                yield Finding("", "the command that it runs can't be determined")
            else:
                yield Inner(tuple(args[1:]))
    elif program == "eval":
        yield Inner(text=_joined(args))
    elif program in _RUNNERS:
        if program == "flock" and any(a.text in ("-c", "--command") for a in args):
            yield Finding("", "the command that it runs can't be determined")
        if program in ("time", "gtime"):
            options = Options(args, "fo", "format output", until_operand=True)
            for target in options.given("o", "output"):
                if place(target) or not target.known:
                    yield Finding(place(target), "the place where it writes is known only when it runs")
        yield from _behind(_RUNNERS[program], args)


def _behind(runner: _Runner, args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    options = Options(args, runner.valued, runner.long, until_operand=True)
    rest = args[options.first + runner.before :]
    # A hole before the command can be anything, the command included.
    if any(HOLE in a.text or a.splits for a in args[: options.first + runner.before]):
        yield Finding("", "the command that it runs is known only then")
    elif rest and _NO_NAME.fullmatch(rest[0].text):
        yield Finding("", "the command that it runs can't be determined")
    known = {*_FLAGS, *runner.long.split()}
    if not all(any(full.startswith(name) for full in known) for name in options.names):
        yield Finding("", "the command that it runs can't be determined")
    if rest:
        yield Inner(tuple(rest))


def _env(args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    index = 0
    while index < len(args):
        arg, text = args[index], args[index].text
        index += 1
        assigned = _ASSIGNED.match(text)
        if assigned:
            if is_harmful(assigned[1]):
                yield Finding("environment")
            continue
        if arg.splits or HOLE in text[:1] or (text.startswith("-") and HOLE in text):
            yield Finding("", "the command that it runs is known only then")
            return
        if text == "--":
            continue
        if not text.startswith("-"):
            yield Inner(tuple(args[index - 1 :]))
            return
        option, value, given = _env_option(text)
        if option and not given:
            if index == len(args) or args[index].glob or args[index].splits:
                yield Finding("", "the command that it runs is known only then")
                return
            value, index = args[index].text, index + 1
        if option == "?":
            yield Finding("", "the command that it runs can't be determined")
        elif option == "S":
            yield from _split(Arg(value), args[index:])
            return
        elif option == "C":
            found = place(Arg(value))
            if found or HOLE in value or given:
                yield Finding(found, "the folder that it enters is known only when it runs")


def _env_option(text: str) -> tuple[str, str, bool]:
    """Of an argument with options of ``env``: the one with a value (``?`` if it isn't known), its value, whether that is here."""
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        for letter, full in (("u", "unset"), ("C", "chdir"), ("S", "split-string"), ("a", "argv0")):
            if full.startswith(name):
                return letter, value, bool(equals)
        return ("" if any(flag.startswith(name) for flag in _ENV_FLAGS) else "?"), "", True
    for at, letter in enumerate(text[1:], 2):
        if letter in _ENV_VALUED:
            return letter, text[at:], len(text) > at
        if letter not in "iv0":
            return "?", "", True
    return "", "", True


def _split(text: Arg, more: Sequence[Arg]) -> Iterator[Inner | Finding]:
    if not text.known or "\\" in text.text or "$" in text.text:
        yield Finding("", "the command that it runs is known only then")
        return
    try:
        words = shlex.split(text.text)
    except ValueError:
        words = []
    if not words:
        yield Finding("", "the command that it runs is known only then")
        return
    yield from _env([*map(plain, words), *more])


def _xargs(args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    options = Options(
        args,
        "adEILnPsJRS",
        "arg-file delimiter max-args max-procs max-chars process-slot-var",
        until_operand=True,
    )
    rest = list(args[options.first :])
    if options.unknown:
        yield Finding("", "the command that it runs is known only then")
    marks = [a.text for a in options.given("I", "J", "replace")] + (["{}"] if options.has("i", "replace") else [])
    if not rest:
        return
    if marks and marks[0]:
        rest = [_with_hole(a, marks[0]) for a in rest]
    else:
        # What it reads comes behind, as many as there are.
        rest.append(Arg(HOLE, splits=True))
    yield Inner(tuple(rest))


def _with_hole(arg: Arg, mark: str) -> Arg:
    return Arg(arg.text.replace(mark, HOLE), arg.glob, arg.splits)


def _find(args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    index = 0
    while index < len(args):
        text = args[index].text
        if text.startswith(HOLE) or args[index].splits:
            yield Finding("", "an argument could be any action of find's")
        elif text == "-delete":
            yield Finding("find_delete")
        elif text in ("-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"):
            target = args[index + 1 : index + 2]
            if any(place(a) or not a.known for a in target):
                yield Finding(place(target[0]), "the place where it writes is known only when it runs")
        elif text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = index + 1
            while end < len(args) and args[end].text not in (";", "+"):
                end += 1
            yield Inner(tuple(_with_hole(a, "{}") for a in args[index + 1 : end]))
            index = end
        index += 1


def _fd(args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    for index, arg in enumerate(args):
        if arg.text in ("-x", "-X", "--exec", "--exec-batch"):
            rest = [
                Arg(re.sub(r"\{[/.]*\}", HOLE, a.text), a.glob, a.splits) for a in args[index + 1 :] if a.text != ";"
            ]
            yield Inner((*rest, Arg(HOLE)))
            return
        if arg.text.startswith(("--exec", "-x", "-X", HOLE)) or arg.splits:
            yield Finding("", "the command that it runs is known only then")


def _joined(args: Sequence[Arg]) -> Arg:
    return Arg(" ".join(a.text for a in args), any(a.glob for a in args), any(a.splits for a in args))


def _watch(args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    options = Options(args, "nqs", "interval equexit shotsdir", until_operand=True)
    rest = args[options.first :]
    if options.unknown:
        yield Finding("", "the command that it runs is known only then")
    if rest and options.has("x", "exec"):
        yield Inner(tuple(rest))
    elif rest:
        yield Inner(text=_joined(rest))


def _parallel(args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    # Options, arguments and replacement strings mix in too many ways; what stands before ::: is at least looked at.
    options = Options(args, "jaNnIJSXLP", "jobs arg-file results joblog", until_operand=True)
    rest = list(args[options.first :])
    end = next((n for n, a in enumerate(rest) if a.text.startswith(":::")), len(rest))
    yield Finding("", "the commands that it makes of its arguments can't be determined")
    if rest[:end]:
        yield Inner(text=_joined(rest[:end]))


def _trap(args: Sequence[Arg]) -> Iterator[Inner | Finding]:
    rest = [a for a in args if a.text != "--"]
    if len(rest) < 2 or rest[0].text in ("-p", "-l", "-", ""):
        if any(HOLE in a.text for a in rest):
            yield Finding("", "its effect is known only when it runs")
        return
    yield Inner(text=rest[0])

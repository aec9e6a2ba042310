# PYTHON_ARGCOMPLETE_OK
"""The command ``albert``: parses the options and calls one command. Only the modules of this command are loaded.

An error is printed as one sentence, never as a traceback.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.grammar.wrap import folded
from albert_tools.surfaces.cli.commands import COMMANDS
from albert_tools.surfaces.cli.declared import Command
from albert_tools.surfaces.text.console import Console, Unwritable
from albert_tools.surfaces.text.exit_codes import DONE, FAILED, INTERRUPTED, MISUSED, exit_of
from albert_tools.surfaces.text.hints import with_hint
from albert_tools.surfaces.text.usage_error import Usage

#: The thresholds of the garbage collector. The first is the number of new objects before a collection.
_COLLECT = (50_000, 10, 10)


def main(argv: list[str] | None = None) -> int:
    """Run a command line and return the exit code, one of `EXITS`."""
    words = sys.argv[1:] if argv is None else argv
    # Most objects of a short process live until its end. Searching them for cycles is wasted time.
    gc.set_threshold(*_COLLECT)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # The parent process closed the stream.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    # Mistakes in the options are reported in the form that the options ask for.
    strict = "--strict" in words
    console = Console(json_output=strict or "--json" in words, strict=strict, no_color="--no-color" in words)
    try:
        code = _main(words, console)
        console.flush()
        gc.freeze()
        return code
    except BrokenPipeError:
        _discard_stdout()
        return DONE
    except Unwritable as error:
        _discard_stdout()
        print(f"error: the output can't be written: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _main(words: list[str], console: Console) -> int:
    options = argparse.Namespace()
    try:
        # Completion needs the options of every command. A single command needs only its own.
        completing = "_ARGCOMPLETE" in os.environ
        parser = make_parser(None if completing else words)
        if completing:
            from albert_tools.surfaces.cli.completion import complete

            complete(parser)
        try:
            options = _read(parser, words)
        except SystemExit:
            # The option --help or --version has printed its text.
            return DONE
        console.quiet = options.quiet
        console.interactive = console.interactive and not options.quiet
        if options.command is None:
            return _overview(parser, console)
        if os.environ.get("ALBERT_SESSION") == "":
            # Probably the command that makes the token has failed. What was meant for a session must not be the owner's call.
            raise Usage("ALBERT_SESSION is empty: it needs a token", "unset it to act as the owner")
        return _command(options.command)(options, console)
    except Failure as failure:
        _print_error(console, with_hint(failure.as_dict()), options)
        return exit_of(failure)
    except Usage as usage:
        _print_error(console, {"code": "usage", "message": str(usage), "hint": usage.hint}, options)
        return MISUSED
    except (BrokenPipeError, Unwritable):
        raise
    except KeyboardInterrupt:
        if console.json:
            _print_error(console, {"code": "cancelled", "message": "interrupted", "hint": None}, options)
        raise
    except Exception as fault:
        if os.environ.get("ALBERT_DEBUG"):
            raise
        message = f"a defect in Albert Tools: {type(fault).__name__}: {fault}"
        hint = "report it, with the traceback that ALBERT_DEBUG=1 prints"
        _print_error(console, {"code": "internal_error", "message": message, "hint": hint}, options)
        return FAILED


def _print_error(console: Console, error: dict[str, Any], options: argparse.Namespace) -> None:
    if console.strict:
        console.document(_strict(error, options))
    elif console.json:
        console.document({"ok": False, "error": error})
    else:
        console.failure(error)


def _strict(error: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The strict form of an error without a call. The tool is the one that the options name, if they could be read."""
    from datetime import UTC, datetime

    from albert_tools.engine.call.journal_reader import read_failure
    from albert_tools.engine.model.result import ToolResult

    failure = read_failure({**error, "code": "invalid_arguments"} if error["code"] == "usage" else error)
    tool = str(getattr(options, "name", None) or error.get("tool") or "albert")
    timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    return ToolResult(tool, error=failure, timestamp_utc=timestamp).strict()


def _overview(parser: argparse.ArgumentParser, console: Console) -> int:
    """List the commands on stderr, if no command was given."""
    if console.json:
        raise Usage("no COMMAND is given", "albert --help lists the commands")
    commands: dict[str, argparse.ArgumentParser] = parser.get_default("commands")
    lines = [("usage: albert COMMAND …", 2), ("", 0), (str(parser.description), 0), ("", 0)]
    width = max(map(len, commands))
    lines += [(f"  {name.ljust(width)}  {p.description}", width + 4) for name, p in commands.items()]
    lines += [("", 0), ("`albert COMMAND --help` describes its options.", 0)]
    for text, hang in lines:
        print(folded(text, console.err_width, hang), file=sys.stderr)
    return MISUSED


def _discard_stdout() -> None:
    """Redirect stdout to the null device. Otherwise the flush at exit would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _read(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """Parse the options. KEY=VALUE may come before, between and after them.

    Raises:
        Usage: the options are wrong.
    """
    server: list[str] = []
    if "--" in words and "mount" in words[: words.index("--")]:
        # The rest is the command of a server, with options of its own.
        at = words.index("--")
        words, server = words[:at], words[at + 1 :]
    options, left = parser.parse_known_args(words)
    options.server = server
    wrong = [word for word in left if word.startswith("-")]
    command = getattr(options, "parser", parser)
    if wrong:
        word = wrong[0].partition("=")[0]
        known = [name for action in command._actions for name in action.option_strings]
        if word in known:
            raise Usage(f"{word} must follow `{command.prog.removeprefix('albert ')}`", f"see {command.prog} --help")
        raise Usage(f"there is no option {word}{did_you_mean(word, known)}", f"see {command.prog} --help")
    several = next((a.dest for a in command._actions if not a.option_strings and a.nargs in ("*", "+")), None)
    if left and several is not None:
        setattr(options, several, [*getattr(options, several), *left])
    elif left:
        usage = " ".join(command.format_usage().split())
        raise Usage(f"{command.prog.removeprefix('albert ')} takes no argument {left[0]!r}", usage)
    return options


def _command(name: str) -> Callable[[argparse.Namespace, Console], int]:
    from importlib import import_module

    module, _, function = (COMMANDS[name].at or f"{name}.{name}").partition(".")
    command: Callable[[argparse.Namespace, Console], int] = getattr(
        import_module(f"albert_tools.surfaces.cli.{module}"), function
    )
    return command


def make_parser(words: list[str] | None = None) -> argparse.ArgumentParser:
    """The parser. Subcommands (``runs list``) are added only for commands in `words`. If `words` is None, all are added."""
    # These options may come before or after the command. A default after the command must not override a value before it.
    shared = _everywhere(argparse.SUPPRESS)
    parser = _Parser(
        prog="albert",
        parents=[_everywhere()],
        description="Tools that agents write: checked, saved, and run in a sandbox.",
        epilog="exit codes: 0 done, 1 failed, 2 usage, 3 denied, 4 waits for an answer; "
        "`albert help TOPIC` explains a code, a module or a part of the language",
    )
    parser.add_argument("--version", action=_Version)
    # Without `prog`, argparse would format the usage to find it.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=False, prog="albert")
    parser.set_defaults(albert=parser, commands=commands.choices)

    # A parser takes 0.2 ms to make. If the first word is a command, no other one can be meant, and none but `help` shows others.
    named = next(iter(words or ()), "")
    for name in (named,) if named in COMMANDS and named != "help" else COMMANDS:
        command = COMMANDS[name]
        made = _made(commands, shared, name, command)
        if command.actions and (words is None or name in words):
            own = made.add_subparsers(dest="action", metavar="ACTION", required=False, prog=f"albert {name}")
            for each, action in command.actions.items():
                parser_of_action = _made(own, shared, each, action)
                for argument in command.arguments if each == command.bare else ():
                    argument.add_to(parser_of_action, default=argparse.SUPPRESS)
        if command.bare:
            made.set_defaults(action=command.bare)
    return parser


def _made(among: Any, shared: _Parser, name: str, command: Command) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = among.add_parser(
        name, help=command.text, description=command.text, parents=[shared], add_help=name != "run"
    )
    made.set_defaults(parser=made)
    for argument in command.arguments:
        argument.add_to(made)
    return made


class _Parser(argparse.ArgumentParser):
    """Raises `Usage` instead of printing and exiting."""

    def __init__(self, **given: Any) -> None:
        # The beginning of an option could be another option's in a later release.
        super().__init__(**given, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        command = self.prog.removeprefix("albert").strip()
        message = message.replace("the following arguments are required:", f"{command}: missing".strip(": "))
        raise Usage(message, " ".join(self.format_usage().split()))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            near = did_you_mean(str(value), action.choices)
            of = self.prog.removeprefix("albert").strip()
            what = f"there is no command {value!r}" if not of else f"{of} has no command {value!r}"
            raise Usage(f"{what}{near}", f"the commands are {', '.join(action.choices)}")
        super()._check_value(action, value)


def _everywhere(default: str | None = None) -> _Parser:
    shared = _Parser(add_help=False, argument_default=default)
    group = shared.add_argument_group("everywhere")
    switch: Any = default or False
    group.add_argument("--json", action="store_true", default=switch, help="print one JSON document")
    group.add_argument(
        "--workspace",
        metavar="FOLDER",
        help="the folder that tools work in; default: the nearest with .albert, else with .git",
    )
    group.add_argument(
        "--home",
        metavar="FOLDER",
        help="where tools and records are kept, a folder or postgresql://…; default: ALBERT_HOME, else ~/.albert",
    )
    group.add_argument("--no-color", action="store_true", default=switch, help="print no colours, like NO_COLOR")
    group.add_argument("--quiet", action="store_true", default=switch, help="print no progress and no remarks")
    return shared


class _Version(argparse.Action):
    """``--version``: loads the package only if the option is given."""

    def __init__(self, option_strings: list[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from albert_tools import __version__

        print(f"albert-tools {__version__}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())

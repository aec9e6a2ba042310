# PYTHON_ARGCOMPLETE_OK
"""The command ``albert``. Each command loads only what it needs; a mistake of the caller's gets one sentence, never a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.surfaces.cli.console import Console, Unwritable
from albert_tools.surfaces.cli.exit_codes import DONE, FAILED, INTERRUPTED, MISUSED, exit_of
from albert_tools.surfaces.cli.hints import told
from albert_tools.surfaces.cli.usage_error import Usage
from albert_tools.surfaces.cli.wrap import folded

#: Command → module and function; loaded when it is called.
_COMMANDS: dict[str, tuple[str, str]] = {
    "define": ("define", "define"),
    "check": ("define", "check"),
    "fmt": ("define", "fmt"),
    "run": ("run", "run"),
    "tools": ("tools", "list_tools"),
    "list": ("tools", "list_tools"),
    "search": ("tools", "search"),
    "show": ("tools", "show"),
    "remove": ("tools", "remove"),
    "doctor": ("doctor", "doctor"),
    "prompt": ("prompt", "prompt"),
    "completion": ("completion", "completion"),
    "mode": ("policy", "mode"),
    "policy": ("policy", "policy"),
    "ledger": ("ledger", "ledger"),
    "session": ("sessions", "session"),
    "approvals": ("approvals", "approvals"),
    "runs": ("runs", "runs"),
    "help": ("help", "help_"),
}


def main(argv: list[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0 done, 1 failed, 2 usage, 3 denied, 4 suspended, 130 interrupted."""
    words = sys.argv[1:] if argv is None else argv
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by whoever started us: nobody wants to read it.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    # Until the options are read: enough to say what is wrong with them in the form that was asked for.
    console = Console(json_output="--json" in words, no_color="--no-color" in words)
    try:
        code = _main(words, console)
        console.flush()
        return code
    except BrokenPipeError:
        _let_go_of_stdout()
        return DONE
    except Unwritable as error:
        _let_go_of_stdout()
        print(f"error: the output can't be written: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _main(words: list[str], console: Console) -> int:
    try:
        # A shell that completes looks into every command, whoever runs one only into that.
        completing = "_ARGCOMPLETE" in os.environ
        parser = make_parser(None if completing else words)
        if completing:
            from albert_tools.surfaces.cli.completion import complete

            complete(parser)
        try:
            options = _read(parser, words)
        except SystemExit:
            # --help and --version have said what there is to say.
            return DONE
        console.quiet = options.quiet
        console.interactive = console.interactive and not options.quiet
        if options.command is None:
            return _overview(parser, console)
        return _command(options.command)(options, console)
    except Failure as failure:
        _say(console, told(failure.as_dict()))
        return exit_of(failure)
    except Usage as usage:
        _say(console, {"code": "usage", "message": str(usage), "hint": usage.hint})
        return MISUSED
    except (BrokenPipeError, Unwritable):
        raise
    except KeyboardInterrupt:
        if console.json:
            _say(console, {"code": "cancelled", "message": "interrupted", "hint": None})
        raise
    except Exception as fault:
        if os.environ.get("ALBERT_DEBUG"):
            raise
        message = f"a fault in Albert Tools itself: {type(fault).__name__}: {fault}"
        hint = "set ALBERT_DEBUG=1 to see where, and report it"
        _say(console, {"code": "internal_error", "message": message, "hint": hint})
        return FAILED


def _say(console: Console, error: dict[str, Any]) -> None:
    if console.json:
        console.document({"ok": False, "error": error})
    else:
        console.failure(error)


def _overview(parser: argparse.ArgumentParser, console: Console) -> int:
    """What there is to choose from, for somebody who chose nothing."""
    if console.json:
        raise Usage("which COMMAND?", "albert --help lists them")
    commands = _commands(parser)
    lines = [("usage: albert COMMAND …", 2), ("", 0), (str(parser.description), 0), ("", 0)]
    width = max(map(len, commands))
    lines += [(f"  {name.ljust(width)}  {p.description}", width + 4) for name, p in commands.items()]
    lines += [("", 0), ("`albert COMMAND --help` says more.", 0)]
    for text, hang in lines:
        print(folded(text, console.err_width, hang), file=sys.stderr)
    return MISUSED


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = parser.get_default("commands")
    return found


def _let_go_of_stdout() -> None:
    """Nothing may be flushed at exit into what can't take it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _read(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """The options; a run's KEY=VALUE may stand among them in any order.

    Raises:
        Usage: they can't be understood.
    """
    options, left = parser.parse_known_args(words)
    wrong = [word for word in left if word.startswith("-")]
    command = getattr(options, "parser", parser)
    if wrong:
        word = wrong[0].partition("=")[0]
        known = [name for action in command._actions for name in action.option_strings]
        raise Usage(f"there is no option {word}{did_you_mean(word, known)}", f"see {command.prog} --help")
    if left and options.command == "run":
        options.arguments = [*options.arguments, *left]
    elif left:
        usage = " ".join(command.format_usage().split())
        raise Usage(f"{command.prog.removeprefix('albert ')} takes no argument {left[0]!r}", usage)
    return options


def _command(name: str) -> Callable[[argparse.Namespace, Console], int]:
    from importlib import import_module

    module, function = _COMMANDS[name]
    found: Callable[[argparse.Namespace, Console], int] = getattr(
        import_module(f"albert_tools.surfaces.cli.{module}"), function
    )
    return found


def make_parser(words: list[str] | None = None) -> argparse.ArgumentParser:
    """The command line; of commands that have commands of their own, those are there that `words` name. None: the whole."""
    # After the command they may be given again, and what isn't given there takes nothing back.
    shared = _everywhere(argparse.SUPPRESS)
    parser = _Parser(
        prog="albert",
        parents=[_everywhere()],
        description="Tools that agents write: checked before they run, kept, and run in a sandbox.",
        epilog="exit codes: 0 done, 1 failed, 2 usage, 3 denied, 4 waits for an answer; "
        "`albert help CODE` explains the code of an error or a diagnostic",
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=False)
    parser.set_defaults(albert=parser, commands=commands.choices)

    def command(name: str, text: str, among: Any = commands) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = among.add_parser(name, help=text, description=text, parents=[shared])
        made.set_defaults(parser=made)
        return made

    def group(name: str, text: str, bare: str) -> argparse.ArgumentParser:
        """A command with commands of its own; by itself it is its `bare` one."""
        made = command(name, text)
        made.set_defaults(action=bare)
        if words is None or name in words:
            from albert_tools.surfaces.cli import subcommands

            # Its own usage line begins the same way as everybody's.
            own = made.add_subparsers(dest="action", metavar="ACTION", required=False, prog=f"albert {name}")
            getattr(subcommands, name)(lambda action, said: command(action, said, own), _completer)
            made.set_defaults(action=bare)
        return made

    define = command("define", "check sources, run their examples, and save them as tools")
    define.add_argument("files", nargs="+", metavar="FILE", help="a source; - for stdin")
    define.add_argument(
        "--json-form",
        "--form",
        dest="form",
        action="store_true",
        help="the files are {name, description, parameters, implementation} in JSON",
    )

    check = command("check", "check sources without saving them")
    check.add_argument("files", nargs="+", metavar="FILE", help="a source; - for stdin")

    fmt = command("fmt", "write sources in canonical form")
    fmt.add_argument("files", nargs="+", metavar="FILE", help="a source; - for stdin, then the result goes to stdout")
    fmt.add_argument("--check", action="store_true", help="change nothing; exit 1 when something would change")
    fmt.add_argument("--diff", action="store_true", help="change nothing; show what would")

    run = command("run", "run a tool")
    _named(run)
    # With a default of its own, or argparse would say that some must be given.
    given: Any = run.add_argument(
        "arguments",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="an argument; KEY:=JSON, or KEY=@FILE for a file's text",
    )
    given.completer = _completer("arguments")
    run.add_argument("--args", metavar="JSON", help="all arguments as a JSON object; @FILE, or - for stdin")
    _versioned(run, "a saved tool's version, or its first digits; the newest when not given")
    run.add_argument("--session", metavar="TOKEN", help="on whose behalf; others see it here: better ALBERT_SESSION")
    run.add_argument("--reason", metavar="TEXT", help="what it is for, shown to whoever is asked")
    run.add_argument(
        "--wait",
        type=_wait,
        default=0.0,
        metavar="SECONDS",
        help="ask nobody here, but wait so long for an answer from elsewhere",
    )

    for name, text in (("tools", "list the tools, and what the rules say of each now"), ("list", "the same as tools")):
        tools = command(name, text)
        tools.add_argument("--all", action="store_true", help="also those that the present mode refuses")
        tools.add_argument("--markdown", action="store_true", help="print a page about the primitives instead")
    search = command("search", "find tools by what they are about")
    search.add_argument("text", nargs="+", metavar="TEXT")
    show = command("show", "explain a tool: parameters, result, what governs it, source")
    _named(show)
    _versioned(show, "one version, or its first digits; the newest when not given")
    _named(command("remove", "take a saved tool off the list; its versions are kept"), "saved")
    command("doctor", "check this installation, and that every limit holds on this machine").add_argument(
        "--quick", action="store_true", help="do not run the hostile programs that test the limits"
    )
    command("prompt", "print the guide for a model that is to write tools")
    mode = command("mode", "say which mode Albert is in, or switch it")
    mode.add_argument("mode", nargs="?", metavar="MODE", help="NORMAL, ALERT, DEGRADED, LOCKDOWN or RECOVERY")
    mode.add_argument("--cause", metavar="TEXT", default="", help="why, for the record")
    policy = command("policy", "check the rules, or explain what they say of a call")
    policy.add_argument("action", choices=["check", "explain"])
    policy.add_argument("name", nargs="?", metavar="TOOL", help="to explain: the tool")
    policy.add_argument("arguments", nargs="*", metavar="KEY=VALUE", help="its arguments")
    policy.add_argument("--args", metavar="JSON", help="all arguments as a JSON object; @FILE, or - for stdin")
    ledger = command("ledger", "read the record of all calls, or prove that nobody has changed it")
    ledger.add_argument("action", choices=["tail", "query", "verify", "anchor", "fold"])
    ledger.add_argument(
        "-n",
        "--lines",
        dest="count",
        type=_count,
        metavar="N",
        help="tail, query: the last N entries; 20 of tail, all of query",
    )
    ledger.add_argument("--tool", metavar="NAME", help="tail, query: calls of one tool")
    ledger.add_argument("--denied", action="store_true", help="tail, query: what was denied")
    ledger.add_argument(
        "--since", metavar="TIME", help="tail, query: 30m, 2h, 7d, or ISO 8601, such as 2026-01-31 or 2026-01-31T12:00"
    )
    ledger.add_argument("--anchor", metavar="FILE", help="verify: against what `anchor` printed before")
    ledger.add_argument(
        "--older-than", metavar="TIME", help="fold: what may go, such as 90d; else the owner's `records.keep_days`"
    )
    group("session", "open, list and revoke sessions: who may do what, until when, how much", "list").add_argument(
        "--all", action="store_true", help="also those that are over"
    )
    group("approvals", "see what waits for a person's answer, and answer it", "list").add_argument(
        "--all", action="store_true", help="also what is over"
    )
    group("runs", "see what saved tools have done, and go on with what was cut short", "list").add_argument(
        "--limit", type=_count, default=20, metavar="N", help="at most so many; 20"
    )
    explain: Any = command("help", "explain the code of an error or a diagnostic").add_argument(
        "code", nargs="?", metavar="CODE", help="such as not_found or unknown-tool"
    )
    explain.completer = _completer("codes")
    completion = command("completion", "print the script that makes a shell complete albert's commands")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def _wait(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"expected seconds, at most 604800, got {text[:40]!r}")
    return found


class _Parser(argparse.ArgumentParser):
    """What can't be understood becomes a `Usage`, so that it is told like any other mistake."""

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
    group.add_argument("--workspace", metavar="FOLDER", help="the folder that tools work in")
    group.add_argument("--home", metavar="FOLDER", help="in place of ~/.albert (or set ALBERT_HOME)")
    group.add_argument("--no-color", action="store_true", default=switch, help="no colours (or set NO_COLOR)")
    group.add_argument("--quiet", action="store_true", default=switch, help="no progress and no remarks")
    return shared


def _named(parser: argparse.ArgumentParser, kind: str = "names") -> None:
    action: Any = parser.add_argument("name", metavar="NAME", help="a tool" if kind == "names" else "a saved tool")
    action.completer = _completer(kind)


def _versioned(parser: argparse.ArgumentParser, text: str) -> None:
    action: Any = parser.add_argument("--version", metavar="HASH", help=text)
    action.completer = _completer("versions")


def _completer(kind: str) -> Callable[..., list[str]]:
    """What completes a word; loaded when a shell asks."""

    def complete(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        from albert_tools.surfaces.cli import completion

        found: list[str] = getattr(completion, kind)(prefix, parsed_args)
        return found

    return complete


class _Version(argparse.Action):
    """``--version``, without loading anything before it is asked for."""

    def __init__(self, option_strings: list[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from albert_tools import __version__

        print(f"albert-tools {__version__}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())

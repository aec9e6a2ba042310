# PYTHON_ARGCOMPLETE_OK
"""The command ``albert``. Each command loads only what it needs; a mistake of the caller's gets one sentence, never a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.cli.arguments import Usage
from albert_tools.surfaces.cli.console import Console, safe

DONE, FAILED, MISUSED, DENIED, INTERRUPTED = 0, 1, 2, 3, 130

#: Command → module and function; loaded when it is called.
_COMMANDS: dict[str, tuple[str, str]] = {
    "define": ("sources", "define"),
    "check": ("sources", "check"),
    "fmt": ("sources", "fmt"),
    "run": ("running", "run"),
    "list": ("catalogue", "list_tools"),
    "search": ("catalogue", "search"),
    "show": ("catalogue", "show"),
    "remove": ("catalogue", "remove"),
    "doctor": ("doctor", "doctor"),
    "prompt": ("prompt", "prompt"),
    "completion": ("completion", "completion"),
}


def main(argv: list[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0 done, 1 failed, 2 usage, 3 denied."""
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:
        from albert_tools.surfaces.cli.completion import complete

        complete(parser)
    try:
        options = parser.parse_args(argv)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else MISUSED
    console = Console(json_output=options.json, no_color=options.no_color, quiet=options.quiet)
    try:
        code = _command(options.command)(options, console)
        sys.stdout.flush()
        return code
    except Failure as failure:
        if console.json:
            console.document({"ok": False, "error": failure.as_dict()})
        else:
            console.failure(failure.as_dict())
        return DENIED if failure.denied else FAILED
    except Usage as usage:
        if console.json:
            console.document({"ok": False, "error": {"code": "usage", "message": str(usage)}})
        else:
            print(f"{console.paint('usage', 'red', 'bold', err=True)}: {safe(str(usage))}", file=sys.stderr)
        return MISUSED
    except BrokenPipeError:
        # Whoever read our output has enough. Nothing may be flushed into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as fault:
        if os.environ.get("ALBERT_DEBUG"):
            raise
        message = f"a fault in Albert Tools itself: {type(fault).__name__}: {fault}"
        if console.json:
            console.document({"ok": False, "error": {"code": "internal_error", "message": message}})
        print(
            f"error[internal_error]: {safe(message)}\n  help: set ALBERT_DEBUG=1 to see where, and report it",
            file=sys.stderr,
        )
        return FAILED


def _command(name: str) -> Callable[[argparse.Namespace, Console], int]:
    from importlib import import_module

    module, function = _COMMANDS[name]
    found: Callable[[argparse.Namespace, Console], int] = getattr(
        import_module(f"albert_tools.surfaces.cli.{module}"), function
    )
    return found


def make_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    shared = argparse.ArgumentParser(add_help=False)
    group = shared.add_argument_group("everywhere")
    group.add_argument("--json", action="store_true", help="print one JSON document")
    group.add_argument("--workspace", metavar="FOLDER", help="the folder that tools work in")
    group.add_argument("--home", metavar="FOLDER", help="in place of ~/.albert (or set ALBERT_HOME)")
    group.add_argument("--no-color", action="store_true", help="no colours (or set NO_COLOR)")
    group.add_argument("--quiet", action="store_true", help="no progress and no remarks")

    parser = argparse.ArgumentParser(
        prog="albert",
        description="Tools that agents write: checked before they run, kept, and run in a sandbox.",
        epilog="exit codes: 0 done, 1 failed, 2 usage, 3 denied",
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[shared])

    define = command("define", "check sources, run their examples, and save them as tools")
    define.add_argument("files", nargs="+", metavar="FILE", help="a source; - for stdin")
    define.add_argument(
        "--form", action="store_true", help="the files are {name, description, parameters, implementation} in JSON"
    )

    check = command("check", "check sources without saving them")
    check.add_argument("files", nargs="+", metavar="FILE", help="a source; - for stdin")

    fmt = command("fmt", "write sources in canonical form")
    fmt.add_argument("files", nargs="+", metavar="FILE", help="a source; - for stdin, then the result goes to stdout")
    fmt.add_argument("--check", action="store_true", help="change nothing; exit 1 when something would change")
    fmt.add_argument("--diff", action="store_true", help="change nothing; show what would")

    run = command("run", "run a tool")
    _named(run)
    run.add_argument(
        "arguments", nargs="*", metavar="KEY=VALUE", help="an argument; KEY:=JSON, or KEY=@FILE for a file's text"
    )
    run.add_argument("--args", metavar="JSON", help="all arguments as a JSON object; @FILE, or - for stdin")
    run.add_argument("--version", metavar="HASH", help="a saved tool's version; the newest when not given")

    command("list", "list all tools")
    search = command("search", "find tools by what they are about")
    search.add_argument("text", nargs="+", metavar="TEXT")
    show = command("show", "show a tool: parameters, calls, source")
    _named(show)
    show.add_argument("--version", metavar="HASH", help="one version; the newest when not given")
    _named(command("remove", "take a saved tool off the list"))
    command("doctor", "say where things are, and prove that every limit holds here")
    command("prompt", "print the guide for a model that is to write tools")
    completion = command("completion", "print the script that makes a shell complete albert's commands")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    return parser


def _named(parser: argparse.ArgumentParser) -> None:
    action: Any = parser.add_argument("name", metavar="NAME", help="a tool")
    action.completer = _names


def _names(prefix: str, **_: Any) -> list[str]:
    from albert_tools.surfaces.cli.completion import names

    return names(prefix)


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

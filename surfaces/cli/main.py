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
from albert_tools.surfaces.cli.completed_arguments import completed, strict_option, tool_arguments
from albert_tools.surfaces.text.console import Console, Unwritable
from albert_tools.surfaces.text.exit_codes import DONE, FAILED, INTERRUPTED, MISUSED, exit_of
from albert_tools.surfaces.text.hints import with_hint
from albert_tools.surfaces.text.usage_error import Usage

#: The thresholds of the garbage collector. The first is the number of new objects before a collection.
_COLLECT = (50_000, 10, 10)

#: Command → its module and function. A module is loaded when its command is called.
_COMMANDS: dict[str, tuple[str, str]] = {
    "define": ("define", "define"),
    "check": ("define", "check"),
    "fmt": ("define", "fmt"),
    "run": ("run", "run"),
    "tools": ("tools", "list_tools"),
    "search": ("tools", "search"),
    "show": ("tools", "show"),
    "remove": ("tools", "remove"),
    "review": ("review", "review"),
    "upgrade": ("upgrade", "upgrade"),
    "doctor": ("doctor", "doctor"),
    "prompt": ("prompt", "prompt"),
    "completion": ("completion", "completion"),
    "mode": ("policy", "mode"),
    "policy": ("policy", "policy"),
    "ledger": ("ledger", "ledger"),
    "session": ("sessions", "session"),
    "approvals": ("approvals", "approvals"),
    "runs": ("runs", "runs"),
    "serve": ("serve", "serve"),
    "mount": ("mounts", "mount"),
    "unmount": ("mounts", "unmount"),
    "help": ("help", "help_"),
    "mcp": ("mcp_command", "mcp"),
    "chat": ("chat", "chat"),
}


def main(argv: list[str] | None = None) -> int:
    """Run a command line and return the exit code, one of `EXITS`."""
    words = sys.argv[1:] if argv is None else argv
    # Most objects of a short process live until its end. Searching them for cycles is wasted time.
    gc.set_threshold(*_COLLECT)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # The parent process closed the stream.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    # Mistakes in the options are reported in JSON if the options ask for JSON.
    console = Console(json_output=not {"--json", "--strict"}.isdisjoint(words), no_color="--no-color" in words)
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
        return _command(options.command)(options, console)
    except Failure as failure:
        _print_error(console, with_hint(failure.as_dict()))
        return exit_of(failure)
    except Usage as usage:
        _print_error(console, {"code": "usage", "message": str(usage), "hint": usage.hint})
        return MISUSED
    except (BrokenPipeError, Unwritable):
        raise
    except KeyboardInterrupt:
        if console.json:
            _print_error(console, {"code": "cancelled", "message": "interrupted", "hint": None})
        raise
    except Exception as fault:
        if os.environ.get("ALBERT_DEBUG"):
            raise
        message = f"a defect in Albert Tools: {type(fault).__name__}: {fault}"
        hint = "report it, with the traceback that ALBERT_DEBUG=1 prints"
        _print_error(console, {"code": "internal_error", "message": message, "hint": hint})
        return FAILED


def _print_error(console: Console, error: dict[str, Any]) -> None:
    if console.json:
        console.document({"ok": False, "error": error})
    else:
        console.failure(error)


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
    """Parse the options. KEY=VALUE may come before, between and after the options of `run`.

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
    other = _Parser(add_help=False, conflict_handler="resolve") if named in _COMMANDS and named != "help" else None

    def command(name: str, text: str, among: Any = commands) -> argparse.ArgumentParser:
        if other is not None and among is commands and name != named:
            return other
        made: argparse.ArgumentParser = among.add_parser(
            name, help=text, description=text, parents=[shared], add_help=name != "run"
        )
        made.set_defaults(parser=made)
        return made

    def group(name: str, text: str, bare: str) -> argparse.ArgumentParser:
        """A command with subcommands. Without a subcommand it does the same as the subcommand `bare`."""
        made = command(name, text)
        made.set_defaults(action=bare)
        if words is None or name in words:
            from albert_tools.surfaces.cli import subcommands

            own = made.add_subparsers(dest="action", metavar="ACTION", required=False, prog=f"albert {name}")
            getattr(subcommands, name)(lambda action, said: command(action, said, own))
            made.set_defaults(action=bare)
        return made

    define = command("define", "check sources, run their examples, and save them as tools")
    check = command("check", "check sources without saving them")
    fmt = command("fmt", "write sources in canonical form")
    for made in (define, check, fmt):
        result = ", then the result goes to stdout" if made is fmt else ""
        made.add_argument("files", nargs="+", metavar="FILE", help=f"a source; - for stdin{result}")
    define.add_argument(
        "--json-form",
        "--form",
        dest="form",
        action="store_true",
        help="the files are {name, description, parameters, implementation} in JSON; so is x.json without this option",
    )
    fmt.add_argument("--check", action="store_true", help="change nothing; exit 1 when something would change")
    fmt.add_argument("--diff", action="store_true", help="change nothing; show the changes")

    run = command("run", "run a tool")
    run.add_argument("-h", "--help", action=_RunHelp)
    completed(run, "names", "name", metavar="NAME", help="a tool")
    tool_arguments(run, "an argument; KEY:=JSON, or KEY=@FILE for a file's text")
    version = "the version of a saved tool, or its first six digits; default: the newest"
    completed(run, "versions", "--version", metavar="HASH", help=version)
    run.add_argument(
        "--session", metavar="TOKEN", help="a session's token; other users can see it here, so prefer ALBERT_SESSION"
    )
    strict_option(run)
    run.add_argument("--reason", metavar="TEXT", help="what the call is for; shown to the person who is asked")
    run.add_argument(
        "--wait",
        type=_wait,
        default=0.0,
        metavar="SECONDS",
        help="do not ask at this terminal, but wait this long for an answer from elsewhere",
    )

    tools = command("tools", "list the tools, with what the rules decide about each")
    tools.add_argument("--all", action="store_true", help="also list the tools that the present mode denies")
    tools.add_argument(
        "--mode", type=str.upper, metavar="MODE", help="judge them in this mode; default: the present one"
    )
    tools.add_argument("--markdown", action="store_true", help="print a page about the primitives")
    search = command("search", "find tools by their names and descriptions")
    search.add_argument("text", nargs="+", metavar="TEXT")
    show = command("show", "describe a tool: parameters, result, rules, source")
    completed(show, "names", "name", metavar="NAME", help="a tool")
    version = "a version, or its first six digits; default: the newest"
    completed(show, "versions", "--version", metavar="HASH", help=version)
    remove = command("remove", "remove a saved tool; its versions are kept")
    completed(remove, "saved", "name", metavar="NAME", help="a saved tool")
    review = command(
        "review", "review the versions that wait for you, one after the other; or show one in full, and decide about it"
    )
    completed(review, "saved", "name", nargs="?", metavar="NAME[@VERSION]", help="a saved tool; default: the queue")
    review.add_argument("--approve", action="store_true", help="approve the version: it may do what its manifest says")
    review.add_argument("--reject", metavar="WHY", help="refuse the version; its author reads the reason")
    review.add_argument("--send-back", metavar="WHY", help="ask its author for changes")
    review.add_argument(
        "--deprecate",
        nargs="?",
        const=True,
        metavar="WHY",
        help="end the approval; the version can still be found and run",
    )
    review.add_argument(
        "--revoke", metavar="WHY", help="forbid the version: it does not run any more, also inside of others"
    )
    review.add_argument(
        "--web", action="store_true", help="serve the review as pages on this machine, until it is stopped"
    )
    review.add_argument("--port", type=_port, default=0, metavar="N", help="the port for --web; default: any free one")
    upgrade = command("upgrade", "propose new versions of the tools whose callees have changed")
    completed(upgrade, "saved", "name", nargs="?", metavar="NAME", help="a saved tool; default: all")
    upgrade.add_argument("--dry-run", action="store_true", help="show what would change; save nothing")
    command("doctor", "check this installation, and that every limit holds on this machine").add_argument(
        "--quick", action="store_true", help="do not run the hostile programs that test the limits"
    )
    prompt = command("prompt", "print the guide for a model that writes tools")
    prompt.add_argument("--tools", metavar="A,B", default="", help="give the signatures of these tools first")
    prompt.add_argument(
        "--tokens",
        type=int,
        metavar="N",
        help="at most N tokens in all; default: the whole page, and 2,000 for the tools",
    )
    mode = command("mode", "show the capability mode, or switch it")
    mode.add_argument("mode", nargs="?", metavar="MODE", help="NORMAL, ALERT, DEGRADED, LOCKDOWN or RECOVERY")
    mode.add_argument("--cause", metavar="TEXT", default="", help="the reason, for the ledger")
    group(
        "policy", "write the first rules, check and test the rules, or explain what they decide about a call", "check"
    )
    ledger = command("ledger", "read the ledger, or verify that nobody changed it")
    ledger.add_argument("action", choices=["tail", "query", "verify", "anchor", "export", "trim"])
    ledger.add_argument(
        "-n",
        "--lines",
        dest="count",
        type=_count,
        metavar="N",
        help="tail, query: the last N entries; default: 20 for tail, all for query",
    )
    ledger.add_argument("--tool", metavar="NAME", help="tail, query: calls of this tool only")
    ledger.add_argument("--denied", action="store_true", help="tail, query: denied calls and malformed requests only")
    ledger.add_argument("--trace", metavar="ID", help="tail, query: the requests of a trace, with their calls")
    ledger.add_argument(
        "--since",
        metavar="TIME",
        help="tail, query, export: entries since then: 30m, 2h, 7d, 2026-01-31 or 2026-01-31T12:00",
    )
    ledger.add_argument("--anchor", metavar="FILE", help="verify: compare with an earlier output of `ledger anchor`")
    ledger.add_argument("--file", metavar="FILE", help="verify: check an earlier output of `ledger export` instead")
    ledger.add_argument(
        "--older-than",
        metavar="TIME",
        help="trim: entries older than this, such as 90d; default: `records.keep_days` of the rules",
    )
    group("session", "open, list and revoke sessions", "list").add_argument(
        "--all", action="store_true", help="also list sessions that have ended"
    )
    asked = group("approvals", "list the questions that wait for a person, and answer them", "list")
    asked.add_argument("--all", action="store_true", help="also list closed questions")
    asked.add_argument("--page", type=_count, default=1, metavar="N", help="show page N, of 50 each; default: 1")
    group("runs", "list the runs of saved tools; show, resume, cancel or replay one", "list").add_argument(
        "--limit", type=_count, default=20, metavar="N", help="list at most N runs; default: 20"
    )
    serve = command("serve", "serve agents in other languages by gRPC, until it is stopped")
    serve.add_argument("--socket", metavar="FILE", help="the Unix socket; its folder must be private")
    serve.add_argument(
        "--port", type=_port, metavar="N", help="also listen on this port of 127.0.0.1; 0 for a free one"
    )
    mount = command("mount", "offer the tools of an MCP server; list the servers, or look at what one has changed")
    mount.add_argument(
        "words",
        nargs="*",
        metavar="NAME",
        help="a name for the server, then its URL, or -- and its command; list; or look NAME",
    )
    for option, metavar, text in (
        ("--host", "HOST", "a host that the server's process may reach; default: none"),
        ("--secret", "NAME", "a secret for its environment; for a URL, its bearer token"),
    ):
        mount.add_argument(option, action="append", default=[], metavar=metavar, help=text)
    mount.add_argument(
        "--trust", action="store_true", help="believe what the server says about the effects of its tools"
    )
    mount.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    unmount = command("unmount", "remove a mounted server with its tools")
    unmount.add_argument("name", metavar="NAME", help="a mounted server")
    mcp = command("mcp", "serve the tools to agents by the Model Context Protocol, over stdin and stdout")
    mcp.add_argument("--http", metavar="PORT", help="serve over HTTP on this port of this machine; or HOST:PORT")
    mcp.add_argument(
        "--elicit",
        action="store_true",
        help="let the client's user answer questions; the client could answer by itself",
    )
    if words is None or "mcp" in words:
        from albert_tools.surfaces.cli.subcommands import session_options

        session_options(mcp, "an MCP client", "30d")
    chat = command("chat", "chat with a model that writes and calls tools")
    if words is None or "chat" in words:
        from albert_tools.surfaces.cli.subcommands import chat_options

        chat_options(chat)
    explain = command("help", "explain a code, a module or a part of the language")
    completed(
        explain,
        "topics",
        "topic",
        nargs="*",
        metavar="TOPIC",
        help="such as not_found, unknown-tool, re or lazy values",
    )
    completion = command("completion", "print the completion script for a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 1,000,000, got {text!r}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text[:6]) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port, 0 to 65535, got {text[:40]!r}")
    return int(text)


def _wait(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to 604800, got {text[:40]!r}")
    return found


class _Parser(argparse.ArgumentParser):
    """Raises `Usage` instead of printing and exiting."""

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
        help="the folder that tools work in; default: the nearest with .albert or .git",
    )
    group.add_argument(
        "--home", metavar="FOLDER", help="where tools and records are kept; default: ALBERT_HOME, else ~/.albert"
    )
    group.add_argument("--no-color", action="store_true", default=switch, help="print no colours, like NO_COLOR")
    group.add_argument("--quiet", action="store_true", default=switch, help="print no progress and no remarks")
    return shared


class _RunHelp(argparse.Action):
    """``run --help``. After the name of a tool, the command shows the tool's parameters too."""

    def __init__(self, option_strings: list[str], dest: str, **_: Any) -> None:
        text = "show this help message and exit; after NAME, show the tool's parameters too"
        super().__init__(option_strings, "show_help", nargs=0, default=False, help=text)

    def __call__(self, parser: argparse.ArgumentParser, options: argparse.Namespace, *_: Any) -> None:
        if options.name is None:
            parser.print_help()
            parser.exit()
        options.show_help = True


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

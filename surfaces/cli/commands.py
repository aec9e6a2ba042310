"""The table of commands: what each is for, its arguments and its actions, and the function that does it."""

from __future__ import annotations

import argparse
import math
from typing import Any

from albert_tools.surfaces.cli.declared import AMOUNT, COUNT, PORT, Argument, Command, flag, number, value, whole_number
from albert_tools.surfaces.text.times import seconds


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


def _tool_arguments(text: str) -> tuple[Argument, Argument]:
    """The arguments of a tool."""
    # Without a default, argparse would require at least one argument.
    pairs = value("arguments", "KEY=VALUE", text, "arguments", nargs="*", default=[])
    return pairs, value("--args", "JSON", "all arguments as a JSON object; @FILE, or - for stdin")


#: ``--strict``, which implies ``--json``.
_STRICT = flag("--strict", "print the result as one JSON document that always has the same keys")

#: The names of the presets of the rules. Their module takes long to load.
PRESETS = ("read-only", "standard", "trusted")


def _id(completer: str, noun: str) -> Argument:
    return value("id", "ID", f"a {noun}'s id, or its first digits", completer)


def _lifetime(text: str) -> float:
    return math.inf if text == "ever" else seconds(text)


def _session_options(client: str = "you", lifetime: str = "24h") -> tuple[Argument, ...]:
    """The options that describe a new session, see `sessions.open_session`."""
    only = "the tools it may call: those that this preset allows without approval"
    spans = f"its lifetime: 90s, 15m, 2h, 30d or ever; default: {lifetime}"
    return (
        value("--client", "NAME", f"who uses it; default: {client}"),
        value("--tools", "A,B", "the tools it may call; default: all that the rules allow"),
        value("--preset", None, only, choices=PRESETS),
        value("--for", "TIME", spans, dest="seconds", type=_lifetime),
        value("--calls", "N", "budget: tool calls", type=AMOUNT),
        value("--wall-seconds", "N", "budget: seconds of run time", type=AMOUNT),
        value("--bytes-written", "N", "budget: bytes written", type=AMOUNT),
        value("--network-bytes", "N", "budget: bytes to and from the network", type=AMOUNT),
        value("--cwd", "DIR", "the folder of the workspace that relative paths start from", default=""),
    )


_SOURCES = value("files", "FILE", "a source; - for stdin", nargs="+")
_TOOL = value("name", "NAME", "a tool", "names")
_BATCH = value("batch", "ID", "a batch's id, or its first digits")
_PRIORITY = value(
    "--priority",
    "N",
    "in its queue, runs with lower numbers come first; default: 100",
    type=whole_number(0, 1000, "a priority from 0 to 1000"),
    default=100,
)
_SIX = "or its first six digits; default: the newest"

COMMANDS: dict[str, Command] = {
    "define": Command(
        "check sources, run their examples, and save them as tools",
        _SOURCES,
        flag(
            "--json-form --form",
            "the files are {name, description, parameters, implementation} in JSON; so is x.json without this option",
            dest="form",
        ),
    ),
    "check": Command("check sources without saving them", _SOURCES, at="define.check"),
    "fmt": Command(
        "write sources in canonical form",
        value("files", "FILE", "a source; - for stdin, then the result goes to stdout", nargs="+"),
        flag("--check", "change nothing; exit 1 when something would change"),
        flag("--diff", "change nothing; show the changes"),
        at="define.fmt",
    ),
    "run": Command(
        "run a tool",
        Argument("-h --help", {"action": _RunHelp}),
        _TOOL,
        *_tool_arguments("an argument; KEY:=JSON, or KEY=@FILE for a file's text"),
        value("--version", "HASH", f"the version of a saved tool, {_SIX}", "versions"),
        value("--session", "TOKEN", "a session's token; other users can see it here, so prefer ALBERT_SESSION"),
        _STRICT,
        value("--reason", "TEXT", "what the call is for; shown to the person who is asked"),
        value(
            "--wait",
            "SECONDS",
            "do not ask at this terminal, but wait this long for an answer from elsewhere",
            type=number(7 * 86400, "seconds from 0 to 604800"),
            default=0.0,
        ),
        value("--queue", "NAME", "do not run it here: a worker of this queue does; prints the run's id"),
        _PRIORITY,
        value("--repository", "URL", "with --queue: work in a checkout of this git repository"),
        value("--revision", "REV", "with --repository: a branch, a tag or a commit; default: HEAD", default="HEAD"),
        value(
            "--changes",
            "HOW",
            "with --repository: what the changes become, patch or branch; default: patch",
            choices=("patch", "branch"),
            default="patch",
        ),
    ),
    "tools": Command(
        "list the tools, with what the rules decide about each",
        flag("--all", "also list the tools that the present mode denies"),
        value("--mode", "MODE", "judge them in this mode; default: the present one", type=str.upper),
        flag("--markdown", "print a page about the primitives"),
        at="tools.list_tools",
    ),
    "search": Command(
        "find tools by their names and descriptions", value("text", "TEXT", None, nargs="+"), at="tools.search"
    ),
    "show": Command(
        "describe a tool: parameters, result, rules, source",
        _TOOL,
        value("--version", "HASH", f"a version, {_SIX}", "versions"),
        at="tools.show",
    ),
    "remove": Command(
        "remove a saved tool; its versions are kept", value("name", "NAME", "a saved tool", "saved"), at="tools.remove"
    ),
    "review": Command(
        "review the versions that wait for you, one after the other; or show one in full, and decide about it",
        value("name", "NAME[@VERSION]", "a saved tool; default: the queue", "saved", nargs="?"),
        value("--page", "N", "show page N of the queue, of 50 each; default: 1", type=COUNT, default=1),
        flag("--approve", "approve the version: it may do what its manifest says"),
        value("--reject", "WHY", "refuse the version; its author reads the reason"),
        value("--send-back", "WHY", "ask its author for changes"),
        value("--deprecate", "WHY", "end the approval; the version can still be found and run", nargs="?", const=True),
        value("--revoke", "WHY", "forbid the version: it does not run any more, also inside of others"),
        flag("--web", "serve the review as pages on this machine, until it is stopped"),
        value("--port", "N", "the port for --web; default: any free one", type=PORT, default=0),
    ),
    "suggest": Command(
        "suggest tools that make the calls which sessions repeat",
        value("number", "N", "show this suggestion: what it does, usual values, and its draft", type=COUNT, nargs="?"),
        flag("--source", "print only the draft"),
        value("--limit", "N", "suggest at most N tools; default: 10", type=COUNT, default=10),
    ),
    "upgrade": Command(
        "propose new versions of the tools whose callees have changed",
        value("name", "NAME", "a saved tool; default: all", "saved", nargs="?"),
        flag("--dry-run", "show what would change; save nothing"),
    ),
    "push": Command(
        "copy a tool, with the tools that it calls, into another home, where it waits for a review",
        _TOOL,
        value("--to", "HOME", "a folder or postgresql://…; default: ALBERT_LIBRARY"),
        value("--version", "HASH", f"a version, {_SIX}", "versions"),
        at="transfer.push",
    ),
    "pull": Command(
        "copy a tool, with the tools that it calls, from another home, to be reviewed here",
        value("name", "NAME", "a tool of the other home"),
        value("--from", "HOME", "a folder or postgresql://…; default: ALBERT_LIBRARY", dest="source"),
        value("--version", "HASH", f"a version, {_SIX}"),
        at="transfer.pull",
    ),
    "doctor": Command(
        "check this installation, and that every limit holds on this machine",
        flag("--quick", "do not run the hostile programs that test the limits"),
    ),
    "prompt": Command(
        "print the guide for a model that writes tools",
        value("--tools", "A,B", "give the signatures of these tools first", default=""),
        value("--tokens", "N", "at most N tokens in all; default: the whole page, and 2,600 for the tools", type=int),
    ),
    "stubs": Command("print a stub file, by which type checkers and editors know the tools"),
    "lsp": Command("serve an editor: findings, fixes, descriptions and completion for sources, over stdin and stdout"),
    "mode": Command(
        "show the capability mode, or switch it",
        value("mode", "MODE", "NORMAL, ALERT, DEGRADED, LOCKDOWN or RECOVERY", nargs="?"),
        value("--cause", "TEXT", "the reason, for the ledger", default=""),
        at="policy.mode",
    ),
    "policy": Command(
        "write, show, check and test the rules, or explain what they decide about a call",
        bare="check",
        actions={
            "init": Command(
                "write commented rules to begin with; existing rules are never replaced",
                value("--preset", None, "default: standard", choices=PRESETS, default="standard"),
            ),
            "show": Command("print the owner's rules as they were written"),
            "import": Command(
                "replace the owner's rules by a file, if it has no mistakes",
                value("file", "FILE", "a file of rules"),
            ),
            "check": Command("find mistakes in the rules, and rules without effect"),
            "explain": Command(
                "show what each rule says about one call, and the decision",
                value("name", "TOOL", "a tool", "names"),
                *_tool_arguments("an argument"),
                value("--mode", "MODE", "judge it in this mode; default: the present one", type=str.upper),
            ),
            "test": Command(
                "check that the rules decide as files expect",
                value("files", "FILE", "expected decisions, in YAML: `- deny: [{read_file: {path: .env}}]`", nargs="+"),
                value("--rules", "FILE", "the owner's rules to test; default: those in force"),
            ),
            "try": Command(
                "judge the calls in the ledger by other rules, and list what would be decided differently",
                value("file", "FILE", "a file of rules"),
            ),
        },
    ),
    "ledger": Command(
        "read the ledger, or verify that nobody changed it",
        value("action", None, None, choices=["tail", "query", "verify", "anchor", "export", "trim"]),
        value(
            "-n --lines",
            "N",
            "tail, query: the last N entries; default: 20 for tail, all for query",
            dest="count",
            type=COUNT,
        ),
        value("--tool", "NAME", "tail, query: calls of this tool only"),
        flag("--denied", "tail, query: denied calls and malformed requests only"),
        value("--trace", "ID", "tail, query: the requests of a trace, with their calls"),
        value(
            "--since", "TIME", "tail, query, export: entries since then: 30m, 2h, 7d, 2026-01-31 or 2026-01-31T12:00"
        ),
        value("--anchor", "FILE", "verify: compare with an earlier output of `ledger anchor`"),
        value("--file", "FILE", "verify: check an earlier output of `ledger export` instead"),
        value(
            "--older-than",
            "TIME",
            "trim: entries older than this, such as 90d; default: `records.keep_days` of the rules",
        ),
    ),
    "session": Command(
        "open, list and revoke sessions",
        flag("--all", "also list sessions that have ended"),
        value("--page", "N", "show page N, of 50 each; default: 1", type=COUNT, default=1),
        bare="list",
        at="sessions.session",
        actions={
            "new": Command(
                "open a session; stdout gets its token, which is never shown again",
                *_session_options(),
                value(
                    "--within",
                    "TOKEN",
                    "open it within another session, whose limits apply too; default of TOKEN: ALBERT_SESSION",
                    nargs="?",
                    const="",
                ),
            ),
            "list": Command("list the sessions"),
            "revoke": Command("end a session, and all sessions within it", _id("sessions", "session")),
        },
    ),
    "approvals": Command(
        "list the questions that wait for a person, and answer them",
        flag("--all", "also list closed questions"),
        value("--page", "N", "show page N, of 50 each; default: 1", type=COUNT, default=1),
        bare="list",
        actions={
            "list": Command("list open questions, and answers that still apply"),
            "show": Command("show a question in full", _id("approvals", "question")),
            "answer": Command(
                "show a question in full, and answer it; the first answer counts",
                _id("open_approvals", "question"),
                value("choice", None, "once, session, always or no", choices=("once", "session", "always", "no")),
                flag("--yes", "do not ask for confirmation"),
                flag("--resume", "then continue the run that waits for the answer"),
            ),
            "revoke": Command("revoke an answer, or withdraw a question", _id("approvals", "question")),
        },
    ),
    "runs": Command(
        "list the runs of saved tools; show, resume, cancel or replay one",
        value("--limit", "N", "list at most N runs; default: 20", type=COUNT, default=20),
        bare="list",
        actions={
            "list": Command("list the newest runs"),
            "show": Command("draw a run as a timeline", _id("runs", "run")),
            "resume": Command("continue a run that waits or was interrupted", _id("unfinished_runs", "run"), _STRICT),
            "cancel": Command("cancel a run", _id("unfinished_runs", "run")),
            "patch": Command("print what a run has changed in its checkout, for `git apply`", _id("runs", "run")),
            "replay": Command(
                "repeat a run without doing anything: each call gets its recorded result",
                _id("runs", "run"),
                value("--version", "HASH", "use another version of its tool"),
            ),
            "sweep": Command(
                "delete the journals of finished runs, and stored values that no record refers to",
                value(
                    "--older-than",
                    "TIME",
                    "runs older than this, such as 90d; default: 30d",
                    type=seconds,
                    default=30 * 86400.0,
                ),
            ),
        },
    ),
    "worker": Command(
        "execute the runs of queues until it is stopped; list workers, or evict one",
        value("--queues", "A,B", "the queues; default: default"),
        value("--folders", "A,B", "further workspaces, besides the one of --workspace"),
        value("--at-once", "N", "the most runs at the same time; default: 4", type=COUNT, default=4),
        value("--name", "NAME", "the worker's name; default: the machine's, with a number"),
        bare="start",
        actions={
            "start": Command("execute the runs of queues"),
            "list": Command("list the workers"),
            "evict": Command(
                "take the runs of a worker that stands still away from it", value("worker", "NAME", "a worker")
            ),
        },
    ),
    "fleet": Command(
        "show the queues and their workers, or prepare a home in a database for several people",
        bare="status",
        actions={
            "status": Command("show the queues, the workers, and the runs that no worker can go on with"),
            "init": Command("create the tables, and the roles of the people who use them; once, by an administrator"),
        },
    ),
    "batch": Command(
        "call a tool for each of many items, by workers; show, print or cancel a batch",
        bare="list",
        actions={
            "add": Command(
                "queue a batch",
                value("tool", "TOOL", "a tool", "names"),
                value("items", "FILE", "the arguments of each call, a JSON object on each line; - for stdin"),
                value("--queue", "NAME", "the queue; default: default", default="default"),
                _PRIORITY,
                value(
                    "--per-run",
                    "N",
                    "the most items of a run; default: 100",
                    type=whole_number(1, 1000, "a number from 1 to 1000"),
                    default=100,
                ),
            ),
            "list": Command("list the batches"),
            "show": Command("show how many runs of a batch are in which state", _BATCH),
            "results": Command("print the result of each item on a line, in order", _BATCH),
            "cancel": Command("cancel the runs of a batch that have not ended", _BATCH),
        },
    ),
    "schedule": Command(
        "begin runs of a tool at certain times; list or remove schedules",
        bare="list",
        actions={
            "add": Command(
                "add a schedule, or replace the one with this name",
                value("name", "NAME", "a name for the schedule"),
                value("cron", "CRON", 'minute, hour, day, month, weekday: "0 6 * * 1-5" is 6 o\'clock on weekdays'),
                value("tool", "TOOL", "a tool; its present version is fixed", "names"),
                *_tool_arguments("an argument; KEY:=JSON, or KEY=@FILE for a file's text"),
                value("--version", "HASH", "the version of a saved tool, by its hash"),
                value("--zone", "ZONE", "the time zone, such as Europe/Berlin; default: UTC", default="UTC"),
                value("--queue", "NAME", "the queue; default: default", default="default"),
                _PRIORITY,
            ),
            "list": Command("list the schedules"),
            "remove": Command("remove a schedule", value("name", "NAME", "a schedule")),
        },
    ),
    "serve": Command(
        "serve agents in other languages by gRPC, until it is stopped",
        value("--socket", "FILE", "the Unix socket; its folder must be private"),
        value("--port", "N", "also listen on this port of 127.0.0.1; 0 for a free one", type=PORT),
    ),
    "mount": Command(
        "offer the tools of an MCP server; list the servers, or look at what one has changed",
        value(
            "words", "NAME", "a name for the server, then its URL, or -- and its command; list; or look NAME", nargs="*"
        ),
        value(
            "--host", "HOST", "a host that the server's process may reach; default: none", action="append", default=[]
        ),
        value(
            "--secret", "NAME", "a secret for its environment; for a URL, its bearer token", action="append", default=[]
        ),
        flag("--trust", "believe what the server says about the effects of its tools"),
        flag("--yes", "do not ask for confirmation"),
        at="mounts.mount",
    ),
    "unmount": Command(
        "remove a mounted server with its tools", value("name", "NAME", "a mounted server"), at="mounts.unmount"
    ),
    "mcp": Command(
        "serve the tools to agents by the Model Context Protocol, over stdin and stdout",
        value("--http", "PORT", "serve over HTTP on this port of this machine; or HOST:PORT"),
        flag("--elicit", "let the client's user answer questions; the client could answer by itself"),
        flag("--own", "list only the agent's own tools, for a client that takes few; `run_tool` runs the others"),
        *_session_options("an MCP client", "30d"),
        at="mcp_command.mcp",
    ),
    "chat": Command(
        "chat with a model that writes and calls tools",
        value("--model", "NAME", "the model; default: the first one that the provider's configuration lists"),
        value("--provider", "NAME", "a provider of the rules (primitives.inference.providers); default: the only one"),
        value("--base-url", "URL", "the address of a provider that is not in the rules"),
        value("--secret", "NAME", "with --base-url: the secret that is the key"),
        value(
            "--api",
            None,
            "the provider's interface; without --provider and --base-url, its own address and environment variables are used",
            choices=("openai", "anthropic"),
        ),
        value(
            "--protocol",
            None,
            "how the model calls tools: by function calling (the default), or as <tool_call> in its text",
            choices=("native", "text"),
        ),
        value(
            "--resume",
            "ID",
            "continue a saved conversation; default of ID: the newest one with an answer",
            nargs="?",
            const="",
        ),
        value("--rounds", "N", "the most answers with calls; default: 50", type=COUNT, default=50),
        value("--max-tokens", "N", "the most tokens of the conversation", type=AMOUNT),
        value("--max-cost", "N", "the most that the conversation may cost", type=number(1e12, "a number, 0 or more")),
        *_session_options("the chat"),
    ),
    "help": Command(
        "explain a code, a module or a part of the language",
        value("topic", "TOPIC", "such as not_found, unknown-tool, re or lazy values", "topics", nargs="*"),
        at="help.help_",
    ),
    "completion": Command(
        "print the completion script for a shell", value("shell", None, None, choices=["bash", "zsh", "fish"])
    ),
}

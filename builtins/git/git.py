"""Git in the workspace: common operations, and the status of the working tree."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypedDict

from albert_tools.builtins.git.git_options import (
    ENVIRONMENT,
    LIST_DRIVERS,
    MAY_NAME_PROGRAMS,
    OVER_NETWORK,
    Operation,
    command,
    configures,
    demand_options,
    identity,
    ignore_settings,
    programs,
    switched_off,
)
from albert_tools.builtins.git.hidden_paths import HiddenPaths, hidden_paths, mark, mark_folder
from albert_tools.builtins.git.limited_operations import BRINGING, demand_kept, limited
from albert_tools.builtins.shell.command_settings import GIT_SETTINGS
from albert_tools.builtins.shell.confined_command import (
    MAX_TIMEOUT,
    OF_COMMAND,
    CommandResult,
    CompletedCommand,
    demand_startable,
    demand_text,
    invalid,
    result_of,
    run,
)
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.parameter_types import Arguments, TimeoutSeconds, WorkingDirectory
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.shell.quiet_commands import is_quiet_git
from albert_tools.engine.workspace.git_folders import repositories
from albert_tools.engine.workspace.git_lock import alone

#: Operations that can bring forbidden files: into the objects, or into the working tree.
_ALONE = (*BRINGING, "CLONE", "CHECKOUT", "MERGE", "REBASE", "RESET", "STASH")
#: Operations that take no name of a commit or a staged file away. After others, a search could find no hidden file any more.
_READING = ("DIFF", "LOG", "SHOW", "STATUS")
#: The timeout for reading a repository's configuration, in seconds.
_CONFIG_TIMEOUT = 20.0
#: The most files that the question about a commit lists, and the most characters of each.
_MAX_LISTED, _MAX_NAME = 30, 200
#: The most bytes that the result of a limited COMMIT shows.
_MAX_SHOWN = 16 * 1024


class ChangedFile(TypedDict):
    """A file that differs from the last commit. `index` and `tree` are git's letters, "." for unchanged."""

    path: str
    index: str
    tree: str
    original: str | None


class GitStatus(TypedDict):
    """Result of `git_status`."""

    branch: str | None
    commit: str | None
    upstream: str | None
    ahead: int
    behind: int
    changed: list[ChangedFile]
    untracked: list[str]
    conflicted: list[str]
    clean: bool


def _refuse(arguments: Mapping[str, Any]) -> None:
    operation, args, url = arguments["operation"], arguments["args"], arguments["url"]
    for word in args:
        demand_text("args", word)
    demand_startable(args)
    demand_options(operation, args)
    if url is None:
        if operation == "CLONE":
            raise invalid("url", "CLONE needs the address to clone")
    elif operation not in OVER_NETWORK:
        raise invalid("url", f"{operation} uses no remote address")
    elif not url.startswith(("https://", "http://")):
        raise invalid("url", "only https:// and http:// remotes can be reached")


class _Prepared(NamedTuple):
    """The command line of an operation, its environment, what else is hidden from git, and the git folder of a repository in which
    the operation is limited."""

    words: list[str]
    environment: Mapping[str, str]
    hide: Sequence[str] = ()
    limited_in: str = ""


async def _prepared(
    context: CallContext, operation: Operation, words: Sequence[str], cwd: str, *more: str
) -> _Prepared:
    """Prepare an operation, limited to what the rules allow. `more` are further options."""
    hidden = await hidden_paths(context, cwd, run) if operation != "CLONE" else None
    config = _configuration(context, cwd)
    environment = await _environment(context, cwd, config, hidden)
    whole = {**environment, **identity(context.settings, config)}
    hide = hidden.others if hidden is not None else ()
    # What the operation brings can have hidden files.
    if hidden is None or not (hidden.found or operation in BRINGING):
        return _Prepared(command(operation, [*more, *words]), whole, hide=hide)
    exists, demand = partial(_exists, context, cwd), partial(_demand, context, cwd, hidden)
    limited_words = limited(operation, words, hidden, exists, demand)
    await demand_kept(operation, words, partial(_changed, context, cwd, environment, hidden))
    line = command(operation, [*more, *limited_words], limited=True)
    return _Prepared(line, whole, hide, hidden.store)


async def _preview(context: CallContext, arguments: Mapping[str, Any]) -> str:
    """The files that a COMMIT will change. For every operation, raises the failure of one that can't be limited."""
    operation, cwd = arguments["operation"], arguments["cwd"]
    more = ("--dry-run", "--porcelain", "-z", "--untracked-files=no") if operation == "COMMIT" else ()
    prepared = await _prepared(context, operation, arguments["args"], cwd, *more)
    if operation != "COMMIT":
        return ""
    how = {
        "environment": prepared.environment,
        "hide": prepared.hide,
        "separate_errors": True,
    }
    ran = await _run(context, prepared.words, cwd=cwd, timeout=_CONFIG_TIMEOUT, **how)
    names, lines = [], iter(ran.output.whole.decode("utf-8", "replace").split("\0"))
    for line in lines:
        if re.match("[MTADRC]. ", line):
            names.append(line[0] + " " + line[3:][:_MAX_NAME])
        if line[:1] in ("R", "C"):
            next(lines, None)  # The name before.
    if ran.code not in (0, 1) or not ran.output.complete:
        return "its files can't be listed"
    return f"it commits {listed(names, _MAX_LISTED)}" if names else "it commits no changes of files"


@primitive(
    effects=["read", "write", "delete", "execute", "network"],
    category="system_write",
    risk="medium",
    timeout=MAX_TIMEOUT,
    paths={"cwd": "read"},
    urls={"url": ""},
    judged={"operation": "operation"},
    uses={"args": "arguments", "cwd": "folder"},
    outputs=OF_COMMAND,
    source="command",
    refuse=_refuse,
    preview=_preview,
    settings=GIT_SETTINGS,
)
async def git(
    context: CallContext,
    operation: Operation,
    args: Arguments = [],  # noqa: B006  The schema's default; never modified.
    url: str | None = None,
    cwd: WorkingDirectory = "",
    timeout: TimeoutSeconds = 60,
) -> CommandResult:
    """Run a git operation in a repository of the workspace and return its output.

    Returns what bash returns without "stdout" and "stderr", and "output" is in the order printed; a non-zero "exit_code" is a
    result, not a failure. "operation" is git's subcommand in capitals, "args" its arguments, options first, for example
    ("COMMIT", ["-m", "Fix the parser"]). Common options are allowed; any other option is refused with a list of the allowed
    ones. Files after "--" are relative to "cwd". The first argument of STASH and REMOTE is their action: ("REMOTE", ["add",
    "origin", "https://…"]).

    No hook, filter, external diff, alias or credential helper of the repository runs, no editor opens (COMMIT needs -m), no
    submodule is fetched. CLONE, FETCH, PULL and PUSH reach only http:// and https:// remotes, on hosts that the owner's rules
    name or that were approved with "url". Changes of history, the working tree or a remote need a person's approval unless the
    rules say otherwise. Remotes and upstream branches cannot be changed while other commands run in the workspace.

    Files that the rules forbid are left out: they are not shown, and commits keep them as they are. In a repository with such
    files, write "--" before the files of CHECKOUT and RESET; git can't change such files, and other commands don't see its git
    folder. While rules forbid any, a repository counts as one with such files after FETCH and PULL.

    Fails with `invalid_arguments` (an option that is not allowed, another transport), `timeout`, `permission_denied` (also what
    would show, commit or throw away forbidden files), `not_found` (cwd), `sandbox_unavailable`, `too_large` (args), `io_error`.

    Args:
        operation: The operation.
        args: Its options and arguments.
        url: The repository to CLONE, or the remote of FETCH, PULL or PUSH if that remote has no name.
        cwd: The repository's folder, relative to the workspace; for CLONE, the parent folder of the new repository.
        timeout: Seconds, at most 3600, and at most what the caller has left.
    """
    import asyncio

    words = list(args)
    if url is not None:
        # The URL goes after the options and before the other arguments.
        behind = next((n for n, word in enumerate(words) if not word.startswith("-")), len(words))
        words.insert(behind if operation != "CLONE" else _behind_options(words), url)
    execute = partial(_executed, context, operation, words, args, url, cwd, timeout)
    if operation not in _ALONE or not context.workspace.judge.selective:
        return await execute()
    root = str(context.workspace.root)
    async with alone(root, timeout):
        # No command sees what git brings before it is hidden.
        before = await asyncio.to_thread(repositories, root) if operation == "CLONE" else None
        ended = False
        try:
            result = await execute()
            ended = result["exit_code"] == 0
            return result
        finally:
            if before is not None and not ended:
                # Git had no time for the names of what it has brought.
                for folder in {*repositories(root).git_folders} - {*before.git_folders}:
                    mark_folder(folder)


async def _executed(
    context: CallContext,
    operation: Operation,
    words: list[str],
    args: Sequence[str],
    url: str | None,
    cwd: str,
    timeout: float,
) -> CommandResult:
    """Execute an operation. `words` are `args` with the address."""
    import asyncio

    prepared = await _prepared(context, operation, words, cwd)
    if prepared.limited_in and operation not in _READING:
        await asyncio.to_thread(mark, prepared.limited_in)
    is_quiet = is_quiet_git(operation, args)
    if not is_quiet:
        # A file that it names need not be in the working tree. Git reads the path from where it starts, or from the top folder.
        root = str(context.workspace.root)
        here = os.path.realpath(context.workspace.absolute(context.workspace.locate(cwd or ".")))
        tops = [here[:n] for n in range(len(root), len(here) + 1) if here[n : n + 1] in ("/", "")]
        paths = [os.path.join(top, word.rpartition(":")[2].lstrip("/")) for top in tops for word in args]
        context.workspace.judge.note_visible([], paths)
    is_limited_commit = operation == "COMMIT" and bool(prepared.limited_in)
    ran = await _run(
        context,
        prepared.words,
        cwd=cwd,
        timeout=timeout,
        environment=prepared.environment,
        hide=prepared.hide,
        separate_errors=is_limited_commit,
        network=operation in OVER_NETWORK,
        # The rules were applied to `url`. The requests of git are inside a tunnel and can't be inspected.
        method="GET",
        git="configuration" if configures(operation, words) else "tree",
        facts={"operation": operation, "args": args, **({} if url is None else {"url": url})},
        quiet=is_quiet,
    )
    result = await result_of(context, ran)
    if is_limited_commit:
        result |= {"output": _of_commit(ran), "truncated": False, "handle": None}
    return result


def _of_commit(ran: CompletedCommand) -> str:
    """What a COMMIT prints, without the files that git lists: forbidden ones are among them."""
    assert ran.errors is not None
    errors = ran.errors.shown(_MAX_SHOWN).text
    if ran.code == 0:
        first = ran.output.shown(_MAX_SHOWN).text.partition("\n")[0]
        return f"{first}\n{errors}"
    return errors or "nothing was committed; STATUS shows what is staged\n"


@primitive(
    effects=["read", "execute"],
    category="read_only",
    risk="low",
    timeout=60,
    paths={"cwd": "read"},
    outputs={
        ".commit": "word",
        ".ahead": "little",
        ".behind": "little",
        ".clean": "little",
    },
    source="command",
    family="git",
    settings=GIT_SETTINGS,
)
async def git_status(context: CallContext, cwd: WorkingDirectory = "") -> GitStatus:
    """Return the status of a repository in the workspace, parsed.

    Returns {"branch", "commit", "upstream", "ahead", "behind", "changed", "untracked", "conflicted", "clean"}. "branch" is
    null if HEAD is detached, "commit" before the first commit, "upstream" if there is none. "changed" lists {"path", "index",
    "tree", "original"}: "index" is git's letter for the staged change, "tree" for the unstaged one (M modified, A added, D
    deleted, R renamed, C copied, T type changed, "." unchanged), "original" the path before a rename or null. Paths are
    relative to the top folder of the repository.

    Fails with `not_found` (no repository), `not_a_directory`, `permission_denied`, `timeout`, `sandbox_unavailable`.

    Args:
        cwd: A folder of the repository, relative to the workspace.
    """
    hidden = await hidden_paths(context, cwd, run)
    environment = await _environment(context, cwd, _configuration(context, cwd), hidden)
    leaving_out = ["--", ":/", *hidden.excluded] if hidden is not None and hidden.found else []
    words = command("STATUS", ["--porcelain=v2", "--branch", "-z", "--untracked-files=all", *leaving_out])
    facts = {"operation": "STATUS"}
    how = {"environment": environment, "separate_errors": True, "hide": hidden.others if hidden is not None else ()}
    ran = await _run(context, words, cwd=cwd, timeout=60, facts=facts, **how)
    if ran.code != 0:
        reason = ran.errors.whole.decode("utf-8", "replace").strip() if ran.errors is not None else ""
        raise Failure("not_found", f"no repository in {cwd or '.'!r}: {reason[:300]}", hint="pass its folder as cwd")
    return read_status(ran.output.whole.decode("utf-8", "replace"))


async def _run(context: CallContext, words: list[str], **how: Any) -> CompletedCommand:
    """Like `run`, but only git's own programs can be started. By default, git prints no content of files."""
    import asyncio

    return await run(context, words, only=await asyncio.to_thread(programs), **{"quiet": True, **how})


def read_status(text: str) -> GitStatus:
    """Parse the output of ``git status --porcelain=v2 --branch -z``."""
    status: GitStatus = {
        "branch": None,
        "commit": None,
        "upstream": None,
        "ahead": 0,
        "behind": 0,
        "changed": [],
        "untracked": [],
        "conflicted": [],
        "clean": True,
    }
    lines = iter(text.split("\0"))
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind == "#":
            key, _, value = rest.partition(" ")
            if key == "branch.head" and value != "(detached)":
                status["branch"] = value
            elif key == "branch.oid" and value != "(initial)":
                status["commit"] = value
            elif key == "branch.upstream":
                status["upstream"] = value
            elif key == "branch.ab":
                ahead, behind = value.split()
                status["ahead"], status["behind"] = int(ahead), -int(behind)
        elif kind == "?":
            status["untracked"].append(rest)
        elif kind == "u":
            status["conflicted"].append(rest.split(" ", 9)[9])
        elif kind in ("1", "2"):
            fields = rest.split(" ", 7 if kind == "1" else 8)
            original = next(lines, None) if kind == "2" else None
            status["changed"].append(
                {"path": fields[-1], "index": fields[0][0], "tree": fields[0][1], "original": original}
            )
    status["clean"] = not (status["changed"] or status["untracked"] or status["conflicted"])
    return status


def _behind_options(words: list[str]) -> int:
    """The index of the first argument that is neither an option nor the value of one."""
    n = 0
    while n < len(words) and words[n].startswith("-"):
        n += 2 if words[n] in ("-b", "--branch", "-o", "--origin") else 1
    return min(n, len(words))


def _configuration(context: CallContext, cwd: str) -> bytes:
    """The text of the repository's configuration file. If the file is not in the folder, a text that may name any program."""
    folder = f"{cwd}/.git" if cwd else ".git"
    data = _content(context, f"{folder}/config")
    if data is None or _content(context, f"{folder}/commondir") is not None:
        return b"[include]"
    return data


def _content(context: CallContext, path: str) -> bytes | None:
    with suppress(Failure):
        data: bytes = context.workspace.read(path, MiB)
        return data
    return None


async def _environment(context: CallContext, cwd: str, config: bytes, hidden: HiddenPaths | None) -> dict[str, str]:
    """The environment that selects the repository and switches off the programs that it names."""
    repository = {**ENVIRONMENT, **(hidden.environment if hidden is not None else {})}
    return {**repository, **switched_off(await _drivers(context, cwd, config, repository))}


def _exists(context: CallContext, cwd: str, word: str) -> bool:
    with suppress(Failure):
        context.workspace.info(f"{cwd}/{word}" if cwd else word)
        return True
    return False


def _demand(context: CallContext, cwd: str, hidden: HiddenPaths, path: str, from_cwd: bool) -> None:
    """Refuse a path that the rules forbid. It is relative to the working directory, or to the top folder of the repository."""
    import os

    if from_cwd:
        here = os.path.realpath(context.workspace.absolute(context.workspace.locate(cwd or ".")))
        path = os.path.join(os.path.relpath(here, hidden.top), path)
    hidden.demand(context.workspace.judge, path)


async def _changed(
    context: CallContext,
    cwd: str,
    environment: Mapping[str, str],
    hidden: HiddenPaths,
    *compared: str,
    everywhere: bool = False,
) -> list[str] | None:
    """The hidden files, or all, that differ, as ``git diff`` lists them; None if it fails."""
    paths = [":/"] if everywhere else hidden.only
    words = command("DIFF", ["--name-only", "-z", "--no-renames", *compared, "--", *paths])
    how = {"environment": environment, "separate_errors": True, "recorded": False, "hide": hidden.others}
    ran = await _run(context, words, cwd=cwd, timeout=_CONFIG_TIMEOUT, **how)
    return ran.output.whole.decode("utf-8", "replace").split("\0")[:-1] if ran.code == 0 else None


async def _drivers(context: CallContext, cwd: str, config: bytes, repository: Mapping[str, str]) -> list[str]:
    """The names of settings that may name programs, of the repository and of its submodules.

    Git itself lists them, because only git knows which other files the configuration includes.
    """
    names: list[str] = []
    parts = cwd.split("/") if cwd else []
    for n in range(len(parts) + 1):
        names += ignore_settings(_content(context, "/".join([*parts[:n], ".gitmodules"])) or b"")
    if not MAY_NAME_PROGRAMS.search(config):
        return names
    words = ["git", "-c", "safe.directory=*", *LIST_DRIVERS]
    # In the C locale, patterns match bytes. In another locale, they skip names that are invalid in that locale.
    environment = {**repository, "LC_ALL": "C"}
    facts = {"operation": "CONFIG"}
    ran = await _run(
        context, words, cwd=cwd, timeout=_CONFIG_TIMEOUT, environment=environment, separate_errors=True, facts=facts
    )
    if not ran.output.complete:
        raise Failure("too_large", "the repository's configuration is too long", hint="check .git/config")
    return [*names, *(name for name in ran.output.whole.decode("utf-8", "surrogateescape").split("\0") if name)]

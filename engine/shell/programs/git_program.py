"""git: which of its operations lose work, change what others have, or run programs of somebody's choice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from albert_tools.engine.shell.expand import HOLE, Arg
from albert_tools.engine.shell.options import Options
from albert_tools.engine.shell.places import is_broad, place
from albert_tools.engine.shell.programs.finding import Finding, Look, unknown, written

#: Operations that only look, or add.
_HARMLESS = frozenset(
    "status diff log show add commit rev-parse rev-list ls-files ls-tree blame annotate describe shortlog "
    "cat-file merge-base for-each-ref name-rev var version help init count-objects diff-tree diff-index diff-files "
    " whatchanged show-ref symbolic-ref show-branch fsck check-ignore check-attr merge cherry-pick "
    "revert cherry range-diff notes mv rm stage hash-object verify-commit apply am format-patch bundle merge-tree "
    " patch-id mktree write-tree sparse-checkout maintenance".split()
)  # fmt: skip
#: Settings that nothing is run by.
_SETTINGS = frozenset(
    "user.name user.email init.defaultbranch pull.rebase pull.ff push.default push.autosetupremote "
    "core.autocrlf core.filemode core.eol core.quotepath core.ignorecase merge.conflictstyle rerere.enabled "
    "commit.gpgsign tag.gpgsign advice.detachedhead".split()
)  # fmt: skip
#: Options of any operation that name a program.
_RUNS = "upload-pack receive-pack exec ext-diff open-files-in-pager textconv config template"


def git(args: Sequence[Arg]) -> Iterator[Finding]:
    """``git``."""
    top = Options(args, "Cc", "git-dir work-tree namespace exec-path config-env super-prefix", until_operand=True)
    if top.has("c", "exec-path config-env git-dir work-tree"):
        yield Finding("git_config")
    yield from (f for f in written(top.given("C")) if f.pattern)
    if top.unknown or not args:
        yield from unknown(args[: top.first + 1])
        return
    if not top.operands:
        return
    operation, rest = args[top.first].text, args[top.first + 1 :]
    if not args[top.first].known:
        yield Finding("", "its git operation is known only when it runs")
        return
    if operation not in ("add", "stage", "commit"):
        yield from _anywhere(rest)
    look = _LOOKS.get(operation)
    if look is not None:
        yield from look(rest)
    elif operation not in _HARMLESS:
        yield Finding("", f"git {operation} is an unknown operation, so it may be an alias for any command")


def _anywhere(args: Sequence[Arg]) -> Iterator[Finding]:
    options = Options(args, "mFcCuoxnSO")
    for name in sorted(options.names - {"text"}):
        if any(full.startswith(name) for full in _RUNS.split()):
            yield Finding("git_config", f"--{name} names a program")
    if any(
        "::" in a.text and not a.text.startswith("-") and a.text.partition("::")[0].isalnum() for a in options.operands
    ):
        yield Finding("git_config", "the address names a program")
    if any(len(name) > 2 and "unsafe-paths".startswith(name) for name in options.names):
        yield Finding("system_files", "it changes files outside the repository")
    for value in (*options.given("output", "o"), *options.given("output-directory")):
        found = place(value)
        if found:
            yield Finding(found)
    # An option that isn't known could be any of those.
    if any(a.text.startswith(HOLE) for a in options.operands) or options.unknown:
        literal = [a for a in args[: _separator(args)] if a.text.startswith(HOLE) or a.splits]
        if any(a in options.operands for a in literal):
            yield Finding("", "an argument could be any option of git's")


def _separator(args: Sequence[Arg]) -> int:
    return next((n for n, a in enumerate(args) if a.text == "--"), len(args))


def _push(args: Sequence[Arg]) -> Iterator[Finding]:
    options = Options(args, "o", "push-option repo")
    forced = options.has("fd", "force force-with-lease force-if-includes mirror delete prune")
    if forced or any(a.text.startswith(("+", ":")) for a in options.operands):
        yield Finding("git_force_push")
    yield from unknown(args)


def _reset(args: Sequence[Arg]) -> Iterator[Finding]:
    if Options(args).has("", "hard merge keep"):
        yield Finding("git_discard")
    yield from unknown(args)


def _clean(args: Sequence[Arg]) -> Iterator[Finding]:
    options = Options(args, "e")
    if not options.has("n", "dry-run") or any(name.startswith("no-d") for name in options.names):
        yield Finding("git_discard")
    yield from unknown(args)


def _checkout(args: Sequence[Arg]) -> Iterator[Finding]:
    options = Options(args, "bc", "orphan create")
    texts = [a.text for a in args]
    if options.has("fBCp", "force discard-changes force-create patch ours theirs merge") or "--" in texts:
        yield Finding("git_discard")
    elif any(a.text in (".", ":/", "*") or a.glob or a.text.startswith(":") for a in options.operands):
        yield Finding("git_discard")
    elif not options.has("bc", "orphan create detach") and (
        len(options.operands) > 1 or any(_looks_like_file(a.text) for a in options.operands)
    ):
        yield Finding("git_discard")
    yield from unknown(args)


def _looks_like_file(text: str) -> bool:
    """Whether a name is rather a file's than a branch's: then what was changed in it goes."""
    return re.search(r"[^./0-9]\.[a-z][a-z0-9]{0,9}\Z|(?:^|/)\.[a-z]|/\Z", text) is not None


def _switch(args: Sequence[Arg]) -> Iterator[Finding]:
    if Options(args, "cC", "orphan create force-create").has("fC", "force discard-changes force-create merge"):
        yield Finding("git_discard")
    yield from unknown(args)


def _remove(args: Sequence[Arg]) -> Iterator[Finding]:
    options = Options(args, "", "pathspec-from-file")
    if options.has("f", "force") or (options.has("r") and any(is_broad(a) for a in options.operands)):
        yield Finding("git_discard")
    yield from unknown(args)


def _continues(args: Sequence[Arg]) -> Iterator[Finding]:
    if any(name.startswith(("ab", "q")) for name in Options(args).names):
        yield Finding("git_discard")


def _maintenance(args: Sequence[Arg]) -> Iterator[Finding]:
    if any(a.text in ("start", "register") or not a.known for a in args[:1]):
        yield Finding("scheduled")


def _moved(args: Sequence[Arg]) -> Iterator[Finding]:
    yield from written(Options(args).operands)


def _symbolic(args: Sequence[Arg]) -> Iterator[Finding]:
    if Options(args, "m").has("d", "delete"):
        yield Finding("git_discard")


def _restore(args: Sequence[Arg]) -> Iterator[Finding]:
    options = Options(args, "s", "source")
    if (
        not options.has("S", "staged")
        or options.has("W", "worktree")
        or any(n.startswith("no-s") for n in options.names)
    ):
        yield Finding("git_discard")


def _branch(args: Sequence[Arg]) -> Iterator[Finding]:
    if Options(args, "u", "set-upstream-to").has("DMCfd", "delete force"):
        yield Finding("git_discard")
    yield from unknown(args)


def _first(*dangerous: str) -> Look:
    """Of operations with operations of their own."""

    def look(args: Sequence[Arg]) -> Iterator[Finding]:
        words = {a.text for a in args if not a.text.startswith("-")}
        if words & set(dangerous) or Options(args).has("f", "force"):
            yield Finding("git_discard")
        yield from unknown(args)

    return look


def _always(args: Sequence[Arg]) -> Iterator[Finding]:
    yield Finding("git_discard")


def _runs(args: Sequence[Arg]) -> Iterator[Finding]:
    yield Finding("", "it runs other programs")


def _config(args: Sequence[Arg]) -> Iterator[Finding]:
    options = Options(args, "ft", "file blob type default")
    operands = [a for a in options.operands if a.text not in ("set", "get", "list", "unset")]
    reads = options.has("l", "get get-all get-regexp list get-urlmatch get-color get-colorbool")
    reads = reads or (bool(options.operands) and options.operands[0].text in ("get", "list"))
    if options.unknown or any(HOLE in a.text or a.splits for a in operands[:1]):
        yield Finding("", "its setting is known only when it runs")
    elif options.has("e", "edit"):
        yield Finding("git_config")
    elif (not reads and len(operands) != 1) or options.has("", "unset unset-all replace-all add"):
        if options.has("f", "global system file") or not operands or operands[0].text.lower() not in _SETTINGS:
            yield Finding("git_config")


def _rebase(args: Sequence[Arg]) -> Iterator[Finding]:
    if Options(args, "xsX", "onto strategy").has("xi", "exec interactive"):
        yield Finding("", "it runs other programs")
    yield from _continues(args)
    yield from unknown(args)


def _transfer(args: Sequence[Arg]) -> Iterator[Finding]:
    options = Options(args, "uco", "origin branch depth")
    if options.has("uc", "upload-pack config template"):
        yield Finding("git_config")
    if any(a.text.startswith("+") or (":" in a.text and options.has("f", "force")) for a in options.operands[1:]):
        yield Finding("git_discard")
    yield from written(a for a in options.operands[1:] if place(a))


def _remote(args: Sequence[Arg]) -> Iterator[Finding]:
    if any(a.text in ("remove", "rm", "set-url", "prune") for a in args[:1]):
        yield Finding("git_config")
    yield from unknown(args[:1])


_LOOKS: dict[str, Look] = {
    "push": _push,
    "send-pack": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "switch": _switch,
    "rm": _remove,
    "mv": _moved,
    "init": _moved,
    "merge": _continues,
    "cherry-pick": _continues,
    "revert": _continues,
    "am": _continues,
    "maintenance": _maintenance,
    "symbolic-ref": _symbolic,
    "restore": _restore,
    "branch": _branch,
    "tag": _branch,
    "stash": _first("drop", "clear"),
    "worktree": _first("remove", "prune"),
    "reflog": _first("expire", "delete"),
    "submodule": _first("foreach", "deinit", "update"),
    "bisect": _first("run", "visualize"),
    "gc": _always,
    "prune": _always,
    "filter-branch": _always,
    "filter-repo": _always,
    "update-ref": _always,
    "replace": _always,
    "read-tree": _always,
    "checkout-index": _always,
    "difftool": _runs,
    "mergetool": _runs,
    "daemon": _runs,
    "config": _config,
    "rebase": _rebase,
    "clone": _transfer,
    "fetch": _transfer,
    "pull": _transfer,
    "ls-remote": _transfer,
    "archive": _transfer,
    "remote": _remote,
    "grep": lambda args: (Finding("", "it runs a pager") for a in args if a.text.startswith(("-O", "--open"))),
}

LOOKS: dict[str, Look] = {"git": git}

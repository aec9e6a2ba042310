"""Limits an operation of git to the paths that the rules allow, in a repository that has or may get files that they forbid.

The limit is one list of pathspecs that exclude the hidden paths. It is added to each operation that takes pathspecs, so git itself
leaves these paths out, however they are named. Three things need more:

- an argument can name an object without its path. Each is turned into the name of a commit, or of a file whose path is allowed;
- an operation that moves the working tree to another commit (CHECKOUT, MERGE, PULL) takes no pathspecs. Git doesn't see the hidden
  files: a command can put any name into the index, and links to such a file into git's folder. So it takes them for changed, and
  refuses to move to a commit with other versions of them. What would overwrite changed files is refused;
- git takes files that both sides of a merge have moved for one file, and could write a hidden file's content into another one. So
  only what merges nothing is allowed: MERGE and PULL that move forward, and a STASH on the commit that it was made on;
- a commit must have the hidden files of the commit before it, or of the merged one.

What can't be limited is refused.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from albert_tools.builtins.git.git_options import WORDS, parsed
from albert_tools.builtins.git.hidden_paths import HiddenPaths
from albert_tools.engine.model.failure import Failure

#: A format that tells the ids of trees. By its id, a remote could offer a hidden tree under another path. The name of a format can
#: be shortened, and the repository can define others, so only these names are allowed.
_NAMES = "oneline|short|medium|full|fuller|reference|email|mboxrd"
_TREES = rf"--sort=.*(tree|raw).*|--(pretty|format)=(.*(%[-+ ]?[tT]|tree|raw).*|(?!({_NAMES})\Z)[^%]*)"
#: Options (with the next word, if it is their value) that print or combine files without regard to pathspecs, by operation, and
#: what to do without them.
_UNLIMITED: dict[str, tuple[str, str]] = {
    "STATUS": ("-v", 'use ("DIFF", ["--cached"])'),
    "COMMIT": ("-v|--verbose|--dry-run|--short|--porcelain", 'use STATUS, or ("DIFF", ["--cached"])'),
    "LOG": (rf"--follow|{_TREES}", "name the file's earlier paths too, or use other fields"),
    "SHOW": (_TREES, "use other fields"),
    "CHECKOUT": ("-m|--merge|-f|--force", 'commit or STASH first, or use ("CHECKOUT", ["--", "."])'),
    "RESET": ("--hard|--merge|--keep", 'use ("CHECKOUT", ["--", "."]), which leaves them out'),
    "BRANCH": (_TREES, "use other fields"),
    "TAG": (_TREES, "use other fields"),
}
#: Operations whose operands are names and commits, and options whose values are commits. Git's errors tell the ids of others.
_OF_COMMITS = ("BRANCH", "CHECKOUT", "MERGE", "REBASE", "RESET", "TAG")
_COMMIT_OPTION = re.compile("(--(?:contains|merged|no-merged|points-at|fixup)=(?:amend:|reword:)?)(.+)", re.DOTALL)
#: Options of BRANCH and TAG after which the next operand is a commit, and those with which the second one is a name.
_BEFORE_COMMIT = frozenset("--contains --merged --no-merged".split())
_OF_NAMES = {
    "BRANCH": frozenset("-d -D --delete -m -M --move -c -C --copy -l --list".split()),
    "TAG": frozenset("-d --delete -l --list".split()),
}
#: Two spellings of an option of COMMIT.
_ALL = (("option", "-a"), ("option", "--all"))
#: Operations that print files.
_PRINTING = ("DIFF", "LOG", "SHOW")
#: Operations that merge, unless they have one of the first options and besides it only the second ones; what to do instead.
_FORWARD: dict[str, tuple[str, str, str]] = {
    "MERGE": ("--ff-only", "--quiet -q", "use --ff-only, end a merge with COMMIT, or ask the owner to merge"),
    "PULL": ("--ff-only", "--prune -p --quiet -q --verbose -v", "use --ff-only, or ask the owner to merge"),
    "REBASE": ("--quit", "", "ask the owner to do it"),
}
#: Operations that bring commits that were not searched for hidden files.
BRINGING = ("FETCH", "PULL")

#: Suffixes of a commit that stand for a range.
_RANGE_SUFFIX = re.compile(r"\^(@|!|-\d*)\Z")

#: Returns whether the call may see something at a path, which is relative to its working directory.
Exists = Callable[[str], bool]
#: Refuses a forbidden path. It is relative to the top folder of the repository, or to the working directory if the flag is set.
Demand = Callable[[str, bool], None]
#: Returns the names of hidden files that ``git diff`` with these words lists, or with `everywhere` those of all files; None if it
#: fails.
Changed = Callable[..., Awaitable[list[str] | None]]


def limited(operation: str, arguments: Sequence[str], hidden: HiddenPaths, exists: Exists, demand: Demand) -> list[str]:
    """The arguments with which an operation leaves out the hidden paths.

    Raises:
        Failure: `permission_denied`: an argument names a forbidden file, or the operation can't be limited.
    """
    words = list(parsed(operation, arguments))
    options = [word for kind, word in words if kind in ("option", "value")]
    operands = [word for kind, word in words if kind == "operand"]
    paths = [word for kind, word in words if kind == "path"]
    pattern, instead = _UNLIMITED.get(operation, ("(?!)", ""))
    before = ""
    for kind, word in words:
        text = f"{before} {word}" if kind == "value" else word
        if kind in ("option", "value") and re.fullmatch(pattern, text, re.DOTALL):
            raise _refused(f"{operation} can't leave them out with {text[:100]!r}", instead)
        if kind == "operand" and operation in _OF_COMMITS:
            _demand_commit(word)
        before = word
    options = [_with_commit(word, demand) for word in options]

    def ending(files: Sequence[str]) -> list[str]:
        for path in files:
            if not _is_pattern(path):
                demand(path, True)
        return ["--", *(files or [":/"]), *hidden.excluded]

    if operation in _PRINTING:
        if "--" not in arguments:
            first = next((n for n, word in enumerate(operands) if _is_path(word, exists)), len(operands))
            operands, paths = operands[:first], operands[first:]
        if operation == "LOG" and not paths:
            # Show the commits that change only hidden files too, without their files.
            options += ["--full-history", "--sparse"]
        # A folder in a commit would move the paths that the pathspecs match. SHOW prints only its names.
        only_commits = operation != "SHOW"
        return [*options, *(_commit(word, demand, only_commits) for word in operands), *ending(paths)]
    if operation in ("CHECKOUT", "RESET"):
        if "--" not in arguments and any(_is_path(word, exists) for word in operands):
            raise _refused(f"{operation} must know which arguments are files", "put '--' before the files")
        # It would list the hidden files that have changes.
        options.append("--quiet")
        if paths:
            return [*options, *(_commit(word, demand) for word in operands), *ending(paths)]
        # With the last word, git can't take the name of a hidden file for a file.
        return [*options, *operands, "--"]
    files = [*operands, *paths]
    if operation == "STATUS":
        return [*options, *ending(files)]
    if operation == "ADD" and (files or not {"-A", "--all", "-u", "--update"}.isdisjoint(options)):
        start, *rest = ending(files)
        return [*options, start, *(f":(literal){path}" for path in files), *rest[len(files) :]]
    if operation == "COMMIT":
        every = {*_ALL, ("option", "-am")} & set(words)
        if every and files:
            raise _refused("COMMIT takes either -a or files", "leave out one of them")
        if every:
            # The same as -a, but it takes pathspecs.
            options = ["-m" if each == ("option", "-am") else each[1] for each in words if each not in _ALL]
            return [*options, "--include", *ending(())]
        return [*options, *ending(files)] if files else options
    if operation == "STASH":
        is_named = bool(arguments) and arguments[0] in WORDS["STASH"]
        return _stash(operands.pop(0) if is_named else "push", options, operands, paths, ending)
    if operation in ("BRANCH", "TAG"):
        if not _BEFORE_COMMIT.isdisjoint(options) and operands:
            return [*options, _commit(operands[0], demand), *operands[1:], *paths]
        if len(files) == 2 and _OF_NAMES[operation].isdisjoint(options):
            if not {"-t", "--track"}.isdisjoint(options):
                raise _refused("BRANCH --track takes no commit", "make the branch, then use --set-upstream-to")
            return [*options, "--", files[0], _commit(files[1], demand)]
        return [*options, *operands, *(["--", *paths] if paths else [])]
    if operation in _FORWARD:
        needed, harmless, instead = _FORWARD[operation]
        given = set(options)
        if given.isdisjoint(needed.split()) or not given <= {*needed.split(), *harmless.split()}:
            raise _refused(f"{operation} could merge them into files of other names", instead)
    return list(arguments)


async def demand_kept(operation: str, arguments: Sequence[str], changed: Changed) -> None:
    """Refuse an operation that would commit changes in the hidden files, or a STASH that would merge.

    Raises:
        Failure: `permission_denied`.
    """
    words = list(parsed(operation, arguments))
    options = {word for kind, word in words if kind == "option"}
    named = [word for kind, word in words if kind in ("operand", "path")]
    if operation == "COMMIT" and (not named or "--include" in options or "-i" in options):
        await _demand_as_committed(changed)
    elif operation == "RESET" and not any(kind == "path" for kind, _ in words):
        if await changed("--cached", f"{named[0] if named else 'HEAD'}^{{commit}}") != []:
            raise _refused("that commit has other versions of them than the index", "ask the owner to do it")
    elif operation == "STASH" and named[:1] in (["pop"], ["apply"]):
        stash = f"stash@{{{named[1]}}}" if named[1:] and named[1].isdecimal() else (named[1:] or ["stash@{0}"])[0]
        for compared in ([f"{stash}^1", "HEAD"], ["--cached", "HEAD"]):
            if await changed(*compared, everywhere=True) != []:
                raise _refused(
                    f"STASH {named[0]} could merge them into files of other names",
                    "pop it on the commit that it was made on, with nothing staged; or ask the owner to do it",
                )


async def _demand_as_committed(changed: Changed) -> None:
    staged = await changed("--cached", "HEAD")
    if staged:
        merged = await changed("--cached", "MERGE_HEAD")
        staged = staged if merged is None else [path for path in staged if path in merged]
    if staged != []:
        raise _refused(
            "the index has other versions of them than the last commit",
            "commit only some files (`--` and their names), or ask the owner to commit or unstage the others",
        )


def _stash(
    action: str,
    options: list[str],
    operands: list[str],
    paths: list[str],
    ending: Callable[[Sequence[str]], list[str]],
) -> list[str]:
    if action == "push":
        return ["push", *options, *ending([*operands, *paths])]
    if action == "show":
        raise _refused("STASH show can't leave them out", 'use ("DIFF", ["stash@{0}^1", "stash@{0}"])')
    if action == "branch":
        raise _refused(
            "STASH branch could merge them into files of other names", "CHECKOUT a branch, and pop the stash there"
        )
    if not all(re.fullmatch(r"stash@\{\d+\}|\d+", word) for word in operands):
        raise _refused(f"STASH {action} takes no other commits", "name a stash, as in stash@{0}")
    quiet = ["--quiet"] if action in ("pop", "apply") else []
    return [action, *quiet, *options, *operands]


def _is_pattern(word: str) -> bool:
    return word == ":/" or word.startswith((":(", ":!", ":^")) or re.search(r"[*?[]", word) is not None


def _is_path(word: str, exists: Exists) -> bool:
    return (_is_pattern(word) and "{" not in word) or exists(word)


def _commit(word: str, demand: Demand, only_commits: bool = True) -> str:
    """A revision or a range, limited to commits, or also to files at allowed paths."""
    if word.startswith(":/") and ".." not in word:
        # A commit whose message has this text.
        return word
    if word.startswith("^"):
        return f"^{_commit(word[1:], demand, only_commits)}"
    at = _outside_braces(word, ":")
    if at >= 0:
        start, path = word[:at], word[at + 1 :]
        if only_commits:
            raise _refused(f"{word[:100]!r} is not a commit", "name commits, and the files after '--'")
        if ".." in word:
            raise _refused(
                f"the path in {word[:100]!r} is unclear", "write REVISION:PATH, with the path from the top folder"
            )
        file = path if start else re.sub(r"\A[0-3]:", "", path)
        demand(file, file.startswith("./"))
        return f"{start}^{{commit}}:{path}" if start else word
    for dots in ("...", ".."):
        at = _outside_braces(word, dots)
        if at >= 0:
            sides = word[:at], word[at + len(dots) :]
            return dots.join(_commit(side, demand, only_commits) if side else "" for side in sides)
    suffix = _RANGE_SUFFIX.search(word)
    start = word[: suffix.start()] if suffix else word
    return f"{start}^{{commit}}{suffix[0] if suffix else ''}" if start else word


def _with_commit(option: str, demand: Demand) -> str:
    """An option whose value is a commit, limited to commits."""
    named = _COMMIT_OPTION.fullmatch(option)
    return f"{named[1]}{_commit(named[2], demand)}" if named else option


def _demand_commit(word: str) -> None:
    """Refuse a name of another object."""
    if not word.startswith(":/") and (_outside_braces(word, ":") >= 0 or re.search(r"\^\{(?!/|commit\})", word)):
        raise _refused(f"{word[:100]!r} is not a commit", "name a commit, or a file after '--'")


def _outside_braces(word: str, what: str) -> int:
    """The index of a text outside braces; -1 if it isn't there."""
    depth = 0
    for n, character in enumerate(word):
        if not depth and word.startswith(what, n):
            return n
        depth = max(0, depth + (character == "{") - (character == "}"))
    return -1


def _refused(what: str, hint: str) -> Failure:
    message = f"the rules forbid files in this repository, and {what}"
    return Failure("permission_denied", message, hint=hint, rule="git_forbidden_paths")

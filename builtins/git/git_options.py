"""How git is called: its operations, the allowed options of each, and settings that prevent it from running other programs.

A repository is hostile input: its configuration names programs for hooks, filters, diffs, merges, signatures, pagers and
transports. These programs would be confined, like git itself. But rules may allow a reading operation without approval, so such an
operation must not be able to write. Only the options that are listed here are allowed, because many other options run a command or
write a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Literal

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure

Operation = Literal[
    "CLONE",
    "FETCH",
    "PULL",
    "DIFF",
    "COMMIT",
    "PUSH",
    "STATUS",
    "LOG",
    "BRANCH",
    "CHECKOUT",
    "MERGE",
    "REBASE",
    "ADD",
    "RESET",
    "STASH",
    "TAG",
    "REMOTE",
    "SHOW",
]

#: Operations that contact a remote.
OVER_NETWORK = frozenset({"CLONE", "FETCH", "PULL", "PUSH"})
#: Operations that may change the repository's configuration: its remotes and upstream branches.
CONFIGURING = frozenset({"PUSH", "BRANCH", "CHECKOUT", "REMOTE"})

_SHOWING = (
    "--stat --shortstat --numstat --name-only --name-status --patch -p --no-patch -s --unified= -U# --word-diff --color=never "
    "--ignore-all-space -w --ignore-space-change -b --find-renames -M --diff-filter= --summary --full-index --binary --oneline "
    "--pretty= --format= --abbrev-commit --abbrev= --date= --no-renames --minimal --histogram --patience --no-color -z --raw "
    "--relative --first-parent"
)
#: The options of each operation. An option that ends with ``=`` has its value after that sign. With ``:``, the value is the next
#: argument or follows ``=``. With ``#``, a number follows.
OPTIONS: dict[str, str] = {
    "CLONE": "--depth= --branch: -b: --single-branch --no-tags --bare --mirror --quiet -q --no-checkout -n --origin: -o:",
    "FETCH": "--all --prune -p --tags -t --no-tags --depth= --unshallow --dry-run --force -f --quiet -q --verbose -v",
    "PULL": "--rebase --no-rebase --ff-only --no-ff --ff --prune -p --depth= --no-commit --autostash --quiet -q --verbose -v",
    "DIFF": f"--cached --staged --merge-base --exit-code --quiet {_SHOWING}",
    "COMMIT": (
        "--message: -m: --all -a --amend --no-edit --allow-empty --author= --date= --signoff -s --quiet -q --verbose -v -am: "
        "--only -o --include -i --dry-run --short --porcelain --fixup= --allow-empty-message --reset-author"
    ),
    "PUSH": (
        "--set-upstream -u --tags --follow-tags --all --dry-run -n --force -f --force-with-lease --force-with-lease= --delete -d "
        "--quiet -q --verbose -v --porcelain --atomic --mirror --prune"
    ),
    "STATUS": "--short -s --branch -b --porcelain --porcelain= --ignored --untracked-files= -u -uno -unormal -uall --long -z -v",
    "LOG": (
        f"-n: -# --max-count= --skip= --since= --until= --after= --before= --author= --committer= --grep= --all --branches --tags "
        f"--remotes --graph --decorate --no-decorate --reverse --merges --no-merges --follow -S: -G: -i {_SHOWING}"
    ),
    "BRANCH": (
        "--list -l --all -a --remotes -r --verbose -v -vv --delete -d -D --move -m -M --copy -c -C --force -f --show-current "
        "--contains --contains= --merged --merged= --no-merged --no-merged= --track -t --no-track --set-upstream-to= -u: "
        "--unset-upstream --sort= --points-at= --no-color --format="
    ),
    "CHECKOUT": "-b: -B: --detach -d --track -t --no-track --force -f --ours --theirs --quiet -q --orphan: --merge -m",
    "MERGE": (
        "--no-ff --ff --ff-only --squash --abort --continue --no-commit --commit --message: -m: --quiet -q --verbose -v --no-edit "
        "--strategy= --strategy-option= -X: --stat -n --no-stat --allow-unrelated-histories --autostash"
    ),
    "REBASE": (
        "--onto: --abort --continue --skip --quit --autostash --no-autostash --quiet -q --verbose -v --keep-base --root "
        "--strategy-option= -X: --empty= --rebase-merges --update-refs --ignore-date --reset-author-date"
    ),
    "ADD": "--all -A --update -u --force -f --dry-run -n --verbose -v --intent-to-add -N --chmod= --renormalize --ignore-errors",
    "RESET": "--soft --mixed --hard --keep --merge --quiet -q",
    "STASH": "--message: -m: --include-untracked -u --keep-index -k --quiet -q --all -a --staged -S",
    "TAG": (
        "--list -l --annotate -a --message: -m: --delete -d --force -f -n -n# --contains --contains= --merged --merged= --sort= "
        "--points-at= --format= --no-color"
    ),
    "REMOTE": "--verbose -v --push --all --add --delete --tags --no-tags --auto -a -d -t: -m:",
    "SHOW": _SHOWING,
}
#: The options of the actions of `stash`; `push` has those above. `list` would take those of `log`, by which `-u` shows files.
_OF_STASH = {
    **dict.fromkeys(("list", "clear", "branch"), ""),
    **dict.fromkeys(("pop", "apply"), "--index --quiet -q"),
    "drop": "--quiet -q",
    "show": "--stat -p --include-untracked -u",
}
#: The actions of `stash` and `remote`.
WORDS: dict[str, frozenset[str]] = {
    "STASH": frozenset({"push", *_OF_STASH}),
    "REMOTE": frozenset({"add", "remove", "rename", "set-url", "get-url", "set-head", "set-branches", "prune", "show"}),
}

#: Settings of every call. The command line overrides the repository's configuration.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.commitGraph=false",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=:",
    "core.sshCommand=false",
    "core.askPass=",
    "core.gitProxy=",
    "core.attributesFile=/dev/null",
    "credential.helper=",
    "diff.external=",
    "sequence.editor=:",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "push.gpgSign=false",
    "log.showSignature=false",
    "commit.verbose=false",
    "gpg.program=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.http.allow=always",
    "safe.directory=*",
    "advice.detachedHead=false",
    "advice.graftFileDeprecated=false",
    "init.templateDir=",
    "uploadpack.packObjectsHook=",
    "core.alternateRefsCommand=true",
    "tag.forceSignAnnotated=false",
    # To look for changes in a submodule, git would use the configuration of the submodule.
    "diff.ignoreSubmodules=dirty",
    # Without it, a comparison is of the whole repository.
    "diff.relative=false",
    # A comparison inside a submodule would run programs that the submodule names.
    "diff.submodule=short",
    "status.submoduleSummary=false",
)

#: Further settings of a limited operation: it merges nothing, and prints no list of the changed files.
_LIMITED_SETTINGS = (
    "merge.autoStash=false",
    # With another strategy, git may merge in spite of --ff-only.
    "pull.twohead=recursive",
    "merge.stat=false",
    "format.pretty=medium",
)

#: The environment of every call: git reads only the repository's configuration, and never prompts.
ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "https:http",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_ASKPASS": "",
    # What a commit contains is read from the commit itself.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
}

#: Settings of the form section.NAME.key, in sections that name programs.
_DRIVERS = re.compile(
    r"(filter|merge|diff|remote|url|gpg|difftool|mergetool|submodule|branch)\.(.+)\.([a-z]+)\Z",
    re.DOTALL | re.IGNORECASE,
)
#: A harmless value for each of these settings.
_OFF = {
    ("filter", "clean"): "",
    ("filter", "smudge"): "",
    ("filter", "process"): "",
    ("filter", "required"): "false",
    ("merge", "driver"): "false",
    ("diff", "command"): "",
    ("diff", "textconv"): "",
    ("remote", "uploadpack"): "git-upload-pack",
    ("remote", "receivepack"): "git-receive-pack",
    ("remote", "vcs"): "",
    ("gpg", "program"): "false",
    ("gpg", "defaultkeycommand"): "false",
    ("submodule", "ignore"): "dirty",
    # Options of each MERGE and PULL: they may name a strategy, which is a program.
    ("branch", "mergeoptions"): "",
}
#: A configuration without any of these words names no such program and includes no other file.
MAY_NAME_PROGRAMS = re.compile(rb"filter|merge|diff|remote|include|gpg|submodule|worktree", re.IGNORECASE)
#: The arguments of git that list the settings that may name programs.
LIST_DRIVERS = (
    "config",
    "--null",
    "--name-only",
    "--get-regexp",
    r"^(filter|merge|diff|remote|gpg|submodule|branch)\..*\.[a-z]+$",
)


def configures(operation: str, arguments: Sequence[str]) -> bool:
    """Whether a call may change the repository's configuration."""
    return operation in CONFIGURING and (operation != "PUSH" or not {"-u", "--set-upstream"}.isdisjoint(arguments))


def command(operation: str, arguments: Sequence[str], limited: bool = False) -> list[str]:
    """Returns the command line of an operation. Check `arguments` with `demand_options` first.

    `limited` is set if they are limited to the allowed paths (`limited_operations`).
    """
    words = ["git", "--no-pager"]
    if operation != "ADD":
        words.append("--no-optional-locks")
    elif not limited:
        words.append("--literal-pathspecs")
    for setting in (*_SETTINGS, *(_LIMITED_SETTINGS if limited else ())):
        words += ["-c", setting]
    words.append(operation.lower())
    if operation in ("DIFF", "LOG", "SHOW"):
        words += ["--no-ext-diff", "--no-textconv"]
    if operation in ("DIFF", "STATUS"):
        words.append("--ignore-submodules=dirty")
    if operation in ("COMMIT", "MERGE", "PULL") and {"--abort", "--continue"}.isdisjoint(arguments):
        words.append("--no-verify" if operation != "PULL" else "--no-edit")
    if operation == "PULL" and limited:
        words.append("--no-rebase")
    if operation == "CLONE":
        words.append("--no-recurse-submodules")
    return [*words, *arguments]


@cache
def programs() -> list[str] | None:
    """Git's own programs. Only these may start. None if git is not installed."""
    import os
    import shutil
    import subprocess

    from albert_tools.engine.sandbox.command.confinement import PATH

    program = shutil.which("git", path=PATH)
    if program is None:
        return None
    done = subprocess.run(
        [program, "--exec-path"], env={}, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return list(dict.fromkeys((os.path.realpath(program), *filter(None, [done.stdout.strip()]))))


def switched_off(names: Iterable[str]) -> dict[str, str]:
    """The environment that replaces the programs of these settings by harmless values.

    The command line can't be used: git would misread a name that contains ``=``.
    """
    replacements = []
    for name in dict.fromkeys(names):
        parts = _DRIVERS.match(name)
        if parts:
            off = _OFF.get((parts[1].lower(), parts[3].lower()))
            if off is not None:
                replacements.append((name, off))
    settings = {"GIT_CONFIG_COUNT": str(len(replacements))}
    for n, (name, off) in enumerate(replacements):
        settings |= {f"GIT_CONFIG_KEY_{n}": name, f"GIT_CONFIG_VALUE_{n}": off}
    return settings


#: The name of a submodule in ``.gitmodules``.
_SUBMODULE = re.compile(r'^\s*\[\s*submodule\s+"((?:[^"\\\n]|\\.)*)"', re.IGNORECASE | re.MULTILINE)


def ignore_settings(modules: bytes) -> list[str]:
    """The `ignore` settings of the submodules in the text of ``.gitmodules``."""
    names = _SUBMODULE.findall(modules.decode("utf-8", "replace"))
    plain = (re.sub(r"\\(.)", lambda escaped: escaped[1], name) for name in names)
    return [f"submodule.{name}.ignore" for name in plain]


def demand_options(operation: str, arguments: Sequence[str]) -> None:
    """Check that the operation allows each option.

    Raises:
        Failure: `invalid_arguments`, with a list of the allowed options.
    """
    allowed = _allowed(operation, arguments)
    action = f" {arguments[0]}" if arguments and arguments[0] in WORDS.get(operation, ()) else ""
    for n, (kind, word) in enumerate(parsed(operation, arguments)):
        if kind == "unknown":
            raise _refused(f"{operation}{action}", word, allowed)
        if kind == "value" and (word == "--" or any(_fits(word, option) for option in allowed)):
            # Else nobody could tell by the word before it whether a word is an option: behind `-m --` and `-m -m`, one can follow.
            said = f"{word[:100]!r} is the value of the option before it, although it looks like an option"
            raise refused_argument("args", said, hint="write --message=… for such a message", rule="option")
        if kind == "operand":
            if operation in WORDS and n == 0 and word not in WORDS[operation] and word != "-":
                raise _refused(operation, word, sorted(WORDS[operation]))
            _demand_no_transport(word)


#: The kind of an argument: an option, the value of the option before it, an option that is not allowed, a file after ``--``, or
#: any other word.
Kind = Literal["option", "value", "unknown", "operand", "path"]


def parsed(operation: str, arguments: Sequence[str]) -> Iterator[tuple[Kind, str]]:
    """The arguments of an operation without ``--``, each with its kind."""
    allowed = _allowed(operation, arguments)
    words = iter(arguments)
    for word in words:
        if word == "--":
            yield from (("path", path) for path in words)
        elif not word.startswith("-") or word == "-":
            yield "operand", word
        else:
            fits = [option for option in allowed if _fits(word, option)]
            values = list(islice(words, 1)) if f"{word}:" in fits else []
            # Without its value, an option would take the next word that this module adds.
            yield "option" if fits and (values or f"{word}:" not in fits) else "unknown", word
            yield from (("value", value) for value in values)


def _allowed(operation: str, arguments: Sequence[str]) -> list[str]:
    if operation == "STASH" and arguments and arguments[0] in _OF_STASH:
        return _OF_STASH[arguments[0]].split()
    return OPTIONS[operation].split()


def _fits(word: str, option: str) -> bool:
    if option.endswith("="):
        return word.startswith(option)
    if option.endswith("#"):
        return word.startswith(option[:-1]) and word[len(option) - 1 :].isdigit()
    if option.endswith(":"):
        name = option[:-1]
        return word == name or (name.startswith("--") and word.startswith(f"{name}="))
    return word == option


def _demand_no_transport(word: str) -> None:
    if "::" in word.split("/")[0]:
        said = f"{word[:100]!r} names a transport; only https:// and http:// are allowed"
        raise refused_argument("args", "only https:// and http:// are allowed", rule="transport", said=said)


def _refused(operation: str, word: str, allowed: Sequence[str]) -> Failure:
    message = f"{operation} does not allow {word[:100]!r}"
    hint = f"allowed: {' '.join(option.rstrip(':#') for option in allowed)}" if allowed else "it takes no options"
    return refused_argument("args", message, hint=hint, rule="option")


def identity(settings: Mapping[str, str], config: bytes) -> dict[str, str]:
    """The author of commits: from the owner's settings, otherwise from the repository, otherwise Albert Tools."""
    name, email = settings.get("user_name", ""), settings.get("user_email", "")
    if not name and re.search(rb"^\s*\[user\]", config, re.MULTILINE | re.IGNORECASE):
        return {}
    name, email = name or "Albert Tools", email or "albert-tools@localhost"
    return {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", email))
    }

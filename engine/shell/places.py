"""Places that a command had better not write to: what shells run at start, git's own files, the system's folders, devices.

A path counts as such a place if anything that it could be is one: wildcards in it are tried against the names, letters in either
case.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase

from albert_tools.engine.shell.expand import Arg
from albert_tools.engine.shell.reading_limits import MAX_PATTERN, Unreadable

_STARTUP = frozenset(
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin "
    ".zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc .xprofile .xinitrc .xsession .xsessionrc "
    ".pam_environment .ssh authorized_keys config.fish .vimrc .exrc .emacs .gdbinit .lldbinit .pdbrc "
    ".pythonrc .irbrc .npmrc .pypirc .netrc .curlrc .wgetrc .envrc .rhosts .forward autostart launchagents "
    "launchdaemons sitecustomize.py usercustomize.py .pryrc .yarnrc .yarnrc.yml .nvimrc .nvim.lua .dir-locals.el .screenrc "
    ".tmux.conf .mailcap .sqliterc .psqlrc .condarc .direnvrc .vscode .idea .devcontainer .devcontainer.json .cargo".split()
)  # fmt: skip
#: Where shells keep what was done.
_HISTORY = frozenset(".bash_history .zsh_history .zhistory .sh_history .histfile .python_history fish_history".split())
_HOOKS = frozenset(
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg "
    "post-commit pre-rebase post-checkout post-merge pre-push pre-receive post-receive update post-update "
    "push-to-checkout pre-auto-gc post-rewrite fsmonitor-watchman".split()
)  # fmt: skip
_GIT = frozenset((".git", ".gitconfig", ".gitmodules"))
#: What is only a name, and one of nothing that is looked for. So are nearly all words of a long command.
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_WILD = re.compile(r"[*?\[]")
_NAMES = _STARTUP | _HISTORY | _HOOKS | _GIT
#: Folders of the system that hold its settings or stand for the machine itself; and those of its programs.
_SETTINGS = frozenset("etc boot proc sys".split())
_SYSTEM = (
    frozenset("usr bin sbin lib lib32 lib64 libx32 opt root var srv system library applications".split()) | _SETTINGS
)
#: Devices that take what is written and do no harm.
_HARMLESS = frozenset("null zero full stdin stdout stderr tty random urandom fd shm ptmx pts".split())


def place(arg: Arg, reading: bool = False) -> str:
    """The pattern that writing there fits; empty where it fits none. With `reading`, only what is harmful from any program."""
    if _NAME.fullmatch(arg.text) and arg.text.lower() not in _NAMES:
        return ""
    parts, rooted = _parts(arg)
    if not parts:
        return "system_files" if rooted and not reading else ""
    first = parts[0]
    if rooted:
        if _could(first, ("dev",)):
            return _device(parts)
        if _could(first, _SETTINGS if reading else _SYSTEM) and parts[:2] not in (["var", "tmp"], ["var", "folders"]):
            return "system_files"
    if any(_could(part, _STARTUP) for part in parts):
        return "startup_file"
    if _could(parts[-1], _HISTORY) and not reading:
        return "history"
    # To name a repository isn't yet to touch what is in it.
    if any(_could(part, _GIT) for part in (parts[:-1] if reading and parts[-1] == ".git" else parts)):
        return "git_hooks"
    if _could(parts[-1], _HOOKS) and (len(parts) == 1 or _could(parts[-2], ("hooks",))) and parts != ["update"]:
        return "git_hooks"
    return ""


def is_broad(arg: Arg) -> bool:
    """Whether deleting or moving it takes more than a name tells: the folder itself, a home, a root, whatever is there."""
    if _NAME.fullmatch(arg.text):
        return False
    parts, rooted = _parts(arg)
    text = arg.text
    if not parts or text.startswith("..") or text.rstrip("/") in (".", "~") or parts[0] == "..":
        return True
    if rooted:
        return len(parts) < 3 or parts[0] in _SYSTEM or not _told(parts[1])
    if parts[0] == "~" and not (len(parts) > 2 and _told(parts[1])):
        return True
    return not _told(parts[0]) or parts[0] == ".git"


def _told(part: str) -> bool:
    """Whether a part of a path says anything of what it means."""
    return bool(part.replace("*", "").replace("?", "").replace(".", "")) and not part.startswith("[")


def _parts(arg: Arg) -> tuple[list[str], bool]:
    """The parts of a path in lower case, as patterns, and whether it begins at the root. Links are not followed."""
    # Where it is no pattern, what looks like a wildcard is a character.
    pattern = arg.pattern if arg.glob else re.sub(r"[*?\[]", "\1", arg.text)
    if arg.glob and len(pattern) > MAX_PATTERN:
        raise Unreadable("a pattern of paths is too long")
    path = posixpath.normpath(pattern.lower()) if pattern else ""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    rooted = path.startswith("/")
    while parts and parts[0] == "..":
        # What lies far enough above is the root.
        parts.pop(0)
        rooted = rooted or (bool(parts) and _could(parts[0], _SETTINGS | {"dev"}))
        if not parts:
            parts = [".."]
            break
    if rooted and parts[:1] == ["private"]:
        parts.pop(0)
    return parts, rooted


def _device(parts: list[str]) -> str:
    if len(parts) < 2:
        return "raw_disk"
    if parts[1] in ("tcp", "udp"):
        return "reverse_shell"
    return "" if parts[1] in _HARMLESS else "raw_disk"


def _could(part: str, names: frozenset[str] | set[str] | tuple[str, ...]) -> bool:
    if part in names:
        return True
    if not _WILD.search(part):
        return False
    if not _told(part) and part[0] != "." and "etc" not in names:
        return False
    # A wildcard at the start means no hidden file.
    return any(fnmatchcase(name, part) and (part[0] == "." or not name.startswith(".")) for name in names)

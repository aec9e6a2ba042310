"""Patterns of paths, written as in `.gitignore`, in an index.

``secrets`` matches every file or folder of this name in the workspace, at any depth; but ``config`` is not git's own
``.git/config``. ``src/*.py`` and ``./x`` start at the workspace. ``/etc`` and ``$HOME/.ssh`` are absolute. ``**`` matches any
number of folders. A pattern that matches a folder also matches its content. There is no ``!``: a rule can't permit a path that
another rule forbids.

Patterns are indexed by their literal parts. So matching needs a few lookups for each part of a path, independent of the number of
patterns. `pathspec` is used only for patterns with wildcards; of these, it tests one by one the patterns whose literal parts
match.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

_WILD = re.compile(r"[*?\[\\]")
#: What git itself has in ``.git``, also for further working trees and submodules, and the names of branches and tags. A name in the
#: rules means what the project calls so.
_OF_GIT = re.compile(
    "/[.]git/(?:(?:modules|worktrees)/.+?/)?"
    "((?:HEAD|head|branches|config|description|hooks|index|info|logs|modules|objects|packed-refs|refs|worktrees)(?=/|$)"
    "(?:(?<=/refs|/logs)/.*)?)"
)
#: What separates the literal texts in a part of a pattern.
_LITERAL = re.compile(r"[*?\[\]\\]")

#: An escaped character, or wildcards. A class with what the matcher and git read in different ways.
_ONE_CHARACTER = re.compile(r"\\.|(?:[?*]|\[[!^]?+\]?+[^\]]*\])+")
_ODD_CLASS = re.compile(r"(?<!\\)\[[!^]?\]?[^\]]*(\\|\[[:.=])")

#: Whether a path below a folder matches a pattern.
_Matcher = Callable[[str], bool]
#: What a name can hold and pathspec's patterns don't match: a newline, and a byte that isn't UTF-8, as Python reads it.
_UNMATCHED = re.compile("[\n\ud800-\udfff]")

#: Whether the file systems of this platform usually ignore case.
_FOLDED = sys.platform in ("darwin", "win32")


#: The most paths for which it is remembered what matches them.
_MAX_MATCHED = 4096


class PathPatterns:
    """An index of patterns, each with the name of its rule. It is used with absolute paths."""

    def __init__(self, patterns: Iterable[tuple[str, str]], workspace: str, home: str) -> None:
        """`patterns` are pairs (pattern, rule). `workspace` and `home` are absolute paths.

        Raises:
            ValueError: a pattern is invalid.
        """
        self._rooted: dict[str, tuple[str, str]] = {}
        self._rooted_wild: dict[str, list[tuple[_Matcher, str, str]]] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._suffixes: dict[str, list[tuple[str, str, str]]] = {}
        self._prefixes: dict[str, tuple[str, str]] = {}
        #: Patterns for any depth with wildcards. Those that name `.git` match git's own names, too.
        self._wild: list[tuple[_Matcher, str, str]] = []
        self._wild_in_git: list[tuple[_Matcher, str, str]] = []
        #: Each pattern as its literal folder and the rest, which is relative to this folder.
        self._forms: dict[tuple[str, str], None] = {}
        self._workspace = _fold(workspace).rstrip("/")
        # These texts become parts of patterns. So wildcard characters in them are escaped.
        self._home_text = literal(home.rstrip("/"))
        self._workspace_text = literal(self._workspace)
        for pattern, rule in patterns:
            self._add(pattern, rule)
        self._fixed = [*dict.fromkeys(_fixed(above, rest) for above, rest in self._forms)]
        #: What `match` has found.
        self._matched: dict[str, tuple[tuple[str, str] | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._forms)

    def match(self, path: str) -> tuple[str, str] | None:
        """The (pattern, rule) that matches an absolute path without ``.`` and ``..``; None if no pattern matches."""
        # Another thread may clear the memory at any time.
        found = self._matched.get(path)
        if found is None:
            if len(self._matched) >= _MAX_MATCHED:
                self._matched.clear()
            found = self._matched[path] = (self._match(path),)
        return found[0]

    def _match(self, path: str) -> tuple[str, str] | None:
        path = _fold(path).rstrip("/")
        # A pattern without a leading folder applies to the parts below the workspace. For a path outside, it applies to all parts.
        inside = path.startswith(f"{self._workspace}/") or path == self._workspace
        floor = len(self._workspace) if inside else 0
        match = self._rooted.get("/") or self._under("", path)
        own = _OF_GIT.search(path) if "/.git/" in path else None
        at = 0
        while not match and at < len(path):
            end = path.find("/", at + 1)
            end = len(path) if end < 0 else end
            part, above = path[at + 1 : end], path[:end]
            match = self._rooted.get(above) or (self._under(above, path) if above in self._rooted_wild else None)
            if not match and at >= floor and not (own and own.start(1) <= at + 1 < own.end(1)):
                match = self._names.get(part) or self._by_suffix(part) or self._by_prefix(part)
            at = end
        if match or floor == len(path):
            return match
        named = path[floor + 1 : own.start(1) - 1 if own else None]
        for below, wild in ((named, self._wild), (path[floor + 1 :], self._wild_in_git)):
            for matches, pattern, rule in wild:
                if matches(below):
                    return pattern, rule
        return None

    def names_in(self, folder: str, names: Iterable[str]) -> list[str]:
        """The names in a folder that match, if the folder itself doesn't. Much faster than to match one path after the other."""
        here = f"{_fold(folder).rstrip('/')}/"
        fixed = [each for each in self._fixed if here.startswith(each.place)]
        starts = tuple(each.text for each in fixed if not each.is_end)
        ends = tuple(each.text for each in fixed if each.is_end)
        if not fixed:
            return []
        likely = [n for n in names if (folded := _fold(n)).endswith(ends) or folded.startswith(starts)]
        return [name for name in likely if self.match(f"{folder}/{name}")]

    def reach(self, folder: str) -> bool:
        """Whether a pattern may match a path below a folder. If not, what is below need not be searched."""
        if self._names or self._suffixes or self._prefixes or self._wild or self._wild_in_git:
            return True
        here = f"{_fold(folder).rstrip('/')}/"
        return any(above.startswith(here) for above in (*self._rooted, *self._rooted_wild)) or any(
            here.startswith(f"{above}/") for above in self._rooted_wild
        )

    def globs(self, top: str) -> list[str]:
        """The patterns as git's globs for the paths below the folder `top`, and relative to it.

        As git's pathspecs `:(glob)` (with `icase` on a file system that ignores case), they match the paths below `top` that
        `match` matches. Git matches bytes, so ``?`` and a class become ``*``, which also matches longer names.
        """
        folder = _fold(top).rstrip("/")
        forms = ((above, _ONE_CHARACTER.sub(_starred, rest)) for above, rest in self._forms)
        globs = (glob for above, rest in forms for glob in _relative(above, rest, folder))
        return list(dict.fromkeys(name for glob in globs for name in (glob, f"{glob}/**")))

    def _under(self, above: str, path: str) -> tuple[str, str] | None:
        for matches, pattern, rule in self._rooted_wild.get(above, ()):
            if matches(path[len(above) + 1 :]):
                return pattern, rule
        return None

    def _by_suffix(self, part: str) -> tuple[str, str] | None:
        if not self._suffixes or "." not in part:
            return None
        for suffix, pattern, rule in self._suffixes.get(part[part.rindex(".") :], ()):
            if part.endswith(suffix):
                return pattern, rule
        return None

    def _by_prefix(self, part: str) -> tuple[str, str] | None:
        for prefix, match in self._prefixes.items():
            if part.startswith(prefix):
                return match
        return None

    def _add(self, pattern: str, rule: str) -> None:
        text = _fold(expanded(pattern, self._home_text, self._workspace_text))
        parts = text.split("/")
        if "." in parts:
            # `.` is the workspace, and `a/./b` is `a/b`. But `./a` matches only at the top of the workspace, and `a` at any depth.
            plain = "/".join(p for p in parts if p not in ("", "."))
            text = f"/{plain}" if text.startswith("/") else f"{self._workspace_text}/{plain}"
        if text.startswith("/"):
            parts = text.strip("/").split("/")
        elif "/" in text.rstrip("/") and not text.startswith("**/"):
            parts = [*self._workspace_text.strip("/").split("/"), *text.strip("/").split("/")]
        else:
            self._add_floating(text.strip("/"), pattern, rule)
            return
        parts = [p for p in parts if p]
        literal = next((i for i, p in enumerate(parts) if _WILD.search(p)), len(parts))
        above = "".join(f"/{p}" for p in parts[:literal])
        rest = parts[literal:]
        self._forms[above, "/".join(rest)] = None
        if not rest:
            self._rooted[above or "/"] = (pattern, rule)
        else:
            # The leading slash anchors the pattern to this folder.
            self._rooted_wild.setdefault(above, []).append((_matcher("/" + "/".join(rest)), pattern, rule))

    def _add_floating(self, text: str, pattern: str, rule: str) -> None:
        name = text.removeprefix("**/")
        self._forms[self._workspace, f"**/{name}"] = None
        if not _WILD.search(name) and "/" not in name:
            self._names[name] = (pattern, rule)
        elif name.startswith("*.") and not _WILD.search(name[1:]) and "/" not in name:
            self._suffixes.setdefault(name[name.rindex(".") :], []).append((name[1:], pattern, rule))
        elif name.endswith("*") and not _WILD.search(name[:-1]) and "/" not in name:
            self._prefixes[name[:-1]] = (pattern, rule)
        else:
            (self._wild_in_git if ".git" in name.split("/") else self._wild).append((_matcher(text), pattern, rule))


def expanded(pattern: str, home: str, workspace: str) -> str:
    """Replace ``$HOME``, ``~`` and ``$WORKSPACE`` in a pattern.

    Raises:
        ValueError: the pattern is invalid.
    """
    if not pattern.strip() or "\0" in pattern:
        raise ValueError(f"a pattern can't {'contain a NUL character' if pattern.strip() else 'be empty'}")
    if pattern.startswith(("!", "#")):
        raise ValueError(f"a pattern can't begin with {pattern[0]!r}; to revoke a rule, remove it")
    if pattern != pattern.strip():
        raise ValueError("a pattern can't begin or end with a space")
    if _ODD_CLASS.search(pattern):
        raise ValueError(
            "a class can't contain a backslash or a name such as [:alpha:]; list its characters, or use '*'"
        )
    if any("[" in _ONE_CHARACTER.sub("", part) for part in pattern.split("/")):
        raise ValueError(r"a class needs a ']' at its end; for the character '[', write '\['")
    if ".." in pattern.split("/"):
        raise ValueError("a pattern can't contain '..'; write the path that it leads to")
    for word, value in (("$HOME", home), ("~", home), ("$WORKSPACE", workspace)):
        if pattern == word or pattern.startswith(f"{word}/"):
            return value + pattern[len(word) :] or "/"
    if pattern.startswith("$"):
        raise ValueError(f"{pattern.split('/')[0]} is unknown; a pattern can use $HOME and $WORKSPACE")
    return pattern


def literal(path: str) -> str:
    """A pattern that matches only this path."""
    return _WILD.sub(r"\\\g<0>", path)


def is_wild(part: str) -> bool:
    """Whether a part of a pattern can match more than one name."""
    return _WILD.search(part) is not None


class _Fixed(NamedTuple):
    """The text with which all names begin or end that a pattern matches. `place` is the beginning of their folders."""

    place: str
    text: str
    is_end: bool


def _fixed(above: str, rest: str) -> _Fixed:
    """What is fixed in a pattern. `above` is its literal folder, `rest` what follows."""
    parent, _, last = (rest or above).rpartition("/")
    # A pattern for any depth also matches outside of the workspace.
    place = "" if rest.startswith("**/") else f"{above if rest else parent}/"
    literals = _LITERAL.split(last)
    if last != last.strip():
        # Spaces may be without meaning.
        literals = [""]
    return _Fixed(place, literals[-1] or literals[0], bool(literals[-1]))


def _starred(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == "\\" or set(match[0]) == {"*"} else "*"


def _relative(above: str, rest: str, top: str) -> Iterator[str]:
    """A pattern as globs for the paths below `top`. `above` is its literal folder, `rest` what follows."""
    if above == top or above.startswith(f"{top}/"):
        yield "/".join(filter(None, (literal(above[len(top) + 1 :]), rest))) or "**"
    elif top.startswith(f"{above.rstrip('/')}/"):
        yield from _below(rest.split("/") if rest else [], top[len(above.rstrip("/")) + 1 :].split("/"))


def _below(parts: Sequence[str], folders: Sequence[str]) -> Iterator[str]:
    """What is left of a pattern's parts for the paths below these folders."""
    if not folders or not parts:
        yield "/".join(parts) or "**"
        return
    if parts[0] == "**":
        yield from _below(parts[1:], folders)
        yield from _below(parts, folders[1:])
    elif _matcher(f"/{parts[0]}")(folders[0]):
        yield from _below(parts[1:], folders[1:])


def _matcher(text: str) -> _Matcher:
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines([_UNMATCHED.sub("\ufffd", text)])
    except (ValueError, re.error) as error:
        raise ValueError(f"it is not a pattern: {error}") from None
    return lambda path: spec.match_file(_UNMATCHED.sub("\ufffd", path))


def _folded(text: str) -> str:
    """The common form of all names that are equal on such a file system: it ignores case and Unicode composition."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


_fold: Callable[[str], str] = _folded if _FOLDED else str

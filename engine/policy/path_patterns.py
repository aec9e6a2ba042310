"""Patterns of paths, as `.gitignore` writes them, found without trying each.

``secrets`` is anything of that name, at any depth of the workspace; ``src/*.py`` and ``./x`` start at the workspace; ``/etc`` and
``$HOME/.ssh`` are absolute; ``**`` spans folders. A pattern that names a folder means all that is in it. There is no ``!``: what is
forbidden can't be taken back by another line.

A pattern is filed under what is literal in it, so that a path asks as many questions as it has parts, however many patterns there
are; only those with wildcards that its parts lead to are matched one by one, by `pathspec`.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_WILD = re.compile(r"[*?\[\\]")

#: Whether two spellings of a path that differ in case are the same file, as file systems usually come here.
_FOLDED = sys.platform in ("darwin", "win32")


class PathPatterns:
    """Patterns, each with the name of its rule, over absolute paths."""

    def __init__(self, patterns: Iterable[tuple[str, str]], workspace: str, home: str) -> None:
        """`patterns` are (pattern, rule); `workspace` and `home` are absolute paths.

        Raises:
            ValueError: one is no pattern; the message says which and why.
        """
        self._rooted: dict[str, tuple[str, str]] = {}
        self._rooted_wild: dict[str, list[tuple[GitIgnoreSpec, str, str]]] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._suffixes: dict[str, list[tuple[str, str, str]]] = {}
        self._wild: list[tuple[GitIgnoreSpec, str, str]] = []
        self._workspace = _fold(workspace).rstrip("/")
        # In a pattern; their own names may hold what there would be a wildcard.
        self._home_text = literal(home.rstrip("/"))
        self._workspace_text = literal(self._workspace)
        for pattern, rule in patterns:
            self._file(pattern, rule)

    def __bool__(self) -> bool:
        return bool(self._rooted or self._rooted_wild or self._names or self._suffixes or self._wild)

    def match(self, path: str) -> tuple[str, str] | None:
        """The (pattern, rule) that an absolute path, without ``.`` and ``..``, falls under; None when there is none."""
        path = _fold(path).rstrip("/")
        # What floats is looked for below the workspace, not in its own name or above it; elsewhere anywhere.
        inside = path.startswith(f"{self._workspace}/") or path == self._workspace
        floor = len(self._workspace) if inside else 0
        found = self._rooted.get("/") or self._under("", path)
        at = 0
        while not found and at < len(path):
            end = path.find("/", at + 1)
            end = len(path) if end < 0 else end
            part, above = path[at + 1 : end], path[:end]
            found = self._rooted.get(above) or self._under(above, path)
            if not found and at >= floor:
                found = self._names.get(part) or self._by_suffix(part)
            at = end
        if found or not self._wild or floor == len(path):
            return found
        below = path[floor + 1 :]
        return next(((pattern, rule) for spec, pattern, rule in self._wild if spec.match_file(below)), None)

    def _under(self, above: str, path: str) -> tuple[str, str] | None:
        for spec, pattern, rule in self._rooted_wild.get(above, ()):
            if spec.match_file(path[len(above) + 1 :]):
                return pattern, rule
        return None

    def _by_suffix(self, part: str) -> tuple[str, str] | None:
        if not self._suffixes or "." not in part:
            return None
        for suffix, pattern, rule in self._suffixes.get(part[part.rindex(".") :], ()):
            if part.endswith(suffix):
                return pattern, rule
        return None

    def _file(self, pattern: str, rule: str) -> None:
        text = _fold(expanded(pattern, self._home_text, self._workspace_text))
        parts = text.split("/")
        if "." in parts:
            # `.` is the workspace, and `a/./b` is `a/b`; but `./a`, unlike `a`, is at the top.
            plain = "/".join(p for p in parts if p not in ("", "."))
            text = f"/{plain}" if text.startswith("/") else f"{self._workspace_text}/{plain}"
        if text.startswith("/"):
            parts = text.strip("/").split("/")
        elif "/" in text.rstrip("/") and not text.startswith("**/"):
            parts = [*self._workspace_text.strip("/").split("/"), *text.strip("/").split("/")]
        else:
            self._floating(text.strip("/"), pattern, rule)
            return
        parts = [p for p in parts if p]
        literal = next((i for i, p in enumerate(parts) if _WILD.search(p)), len(parts))
        above = "".join(f"/{p}" for p in parts[:literal])
        rest = parts[literal:]
        if not rest:
            self._rooted[above or "/"] = (pattern, rule)
        else:
            # With a slash in front it means this folder, and not every one below.
            self._rooted_wild.setdefault(above, []).append((_spec("/" + "/".join(rest)), pattern, rule))

    def _floating(self, text: str, pattern: str, rule: str) -> None:
        name = text.removeprefix("**/")
        if not _WILD.search(name) and "/" not in name:
            self._names[name] = (pattern, rule)
        elif name.startswith("*.") and not _WILD.search(name[1:]) and "/" not in name:
            self._suffixes.setdefault(name[name.rindex(".") :], []).append((name[1:], pattern, rule))
        else:
            self._wild.append((_spec(text), pattern, rule))


def expanded(pattern: str, home: str, workspace: str) -> str:
    """A pattern with ``$HOME``, ``~`` and ``$WORKSPACE`` put in.

    Raises:
        ValueError: it is no pattern.
    """
    if not pattern.strip() or "\0" in pattern:
        raise ValueError("an empty pattern" if not pattern.strip() else "a pattern can't hold a NUL character")
    if pattern.startswith(("!", "#")):
        raise ValueError(f"a pattern can't begin with {pattern[0]!r}; a rule is taken back by removing it")
    if ".." in pattern.split("/"):
        raise ValueError("a pattern can't have '..' in it; write where it leads")
    for word, value in (("$HOME", home), ("~", home), ("$WORKSPACE", workspace)):
        if pattern == word or pattern.startswith(f"{word}/"):
            return value + pattern[len(word) :] or "/"
    if pattern.startswith("$"):
        raise ValueError(f"{pattern.split('/')[0]} is not known; there are $HOME and $WORKSPACE")
    return pattern


def literal(path: str) -> str:
    """A path as a pattern that means this path only."""
    return _WILD.sub(r"\\\g<0>", path)


def is_wild(part: str) -> bool:
    """Whether a part of a pattern stands for more than one name."""
    return _WILD.search(part) is not None


def _spec(text: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines([text])
    except ValueError as error:
        raise ValueError(f"it can't be read as a pattern: {error}") from None


def _folded(text: str) -> str:
    """One spelling of all that such a file system takes for the same name: case and composed characters aside."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


_fold: Callable[[str], str] = _folded if _FOLDED else str

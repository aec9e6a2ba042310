"""Environment variables without what tools could write."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from albert_tools.engine.model.folders import within

#: A path in an option or a list. Bash also looks for programs below `~`.
_PATH = re.compile(r"(~[\w.-]*)?/[^\s=,;'\"()]*")
#: Variables that are lists, also with relative folders.
_LISTS = ("PATH", "_DIRS")
#: The beginning of a URL. The first part of a list can end before `//`, too.
_URL = re.compile(r"(^|:)[A-Za-z][\w+.-]*://")
#: A variable within a value: bash expands its BASH_ENV.
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")
#: The most paths of a value that are followed up to its end, because they may have spaces; the characters of a path.
_MAX_SPACED, _MAX_PATH = 20, 4096


def outside(environ: Mapping[str, str], *tops: str) -> dict[str, str]:
    """The variables without what names a path in one of the folders `tops`, where tools could write programs and modules. Relative
    paths stay, so start a program outside of `tops`."""
    longest = max(map(len, tops), default=0) + 1

    def stays(part: str) -> bool:
        expanded = _VARIABLE.sub(lambda found: environ.get(found[1] or found[2], ""), part)
        return not any(map(leads_into_top, {part, expanded}))

    def leads_into_top(text: str) -> bool:
        paths = [*_PATH.finditer(text)]
        # One of the folders can have spaces, and so can a path that leads into it by a link.
        as_long_as_top = (text[path.start() : path.start() + longest] for path in paths)
        followed = {*(path[0] for path in paths), *(text[path.start() :] for path in paths[:_MAX_SPACED])}
        return any(within(path, *tops) for path in (*as_long_as_top, *map(_real, followed)))

    left = {name: _only(stays, value, name.endswith(_LISTS)) for name, value in environ.items()}
    return {name: value for name, value in left.items() if value or not environ[name]}


def _only(stays: Callable[[str], bool], value: str, is_list: bool) -> str:
    """The parts of a list of folders that stay; of any other value, all or nothing."""
    parts = value.split(":")
    staying = [part for part in parts if stays(part)]
    is_list = not _URL.search(value) and (is_list or all(part[:1] in ("", "/", "~") for part in parts))
    return ":".join(staying) if is_list or len(staying) == len(parts) else ""


def _real(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path[:_MAX_PATH]))

"""What remains of a path that a tool has found below a folder, when a program cuts the folder or a name's ending off.

A path below ``docs`` without ``docs/`` is a relative path that leads nowhere up, so it stays inside of any folder that it is joined
to. The functions here take one alternative, and return what the result can be: nothing if that is not certain.
"""

from __future__ import annotations

import posixpath

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.templates import BELOW, INSIDE, Alternative, Alternatives, Template
from albert_tools.engine.model.manifest import Hole


def without_folder(path: Alternative, folder: Alternatives) -> list[Template]:
    """``relpath(path, folder)``"""
    return [(INSIDE,)] if len(folder) == 1 and _is_in(path, *folder) else []


def without_prefix(path: Alternative, prefix: Alternatives) -> list[Template]:
    """``path.removeprefix(f"{folder}/")``"""
    (only,) = prefix if len(prefix) == 1 else (None,)
    parts = templates.as_text(only) if only is not None else ()
    if not parts or not isinstance(parts[-1], str) or not parts[-1].endswith("/"):
        return []
    if not _is_in(path, templates.template([*parts[:-1], parts[-1].removesuffix("/")])):
        return []
    # A folder that is not in normal form is not the beginning of the path.
    return [(INSIDE,)] if folder_of(path) is not None else [(INSIDE,), templates.as_text(path)]


def from_place(path: Alternative, start: object) -> list[Template]:
    """``path[5:]``"""
    folder = folder_of(path)
    return [(INSIDE,)] if folder not in (None, ".") and start == len(str(folder)) + 1 else []


def last_name(path: Alternative) -> list[Template]:
    """``basename(path)`` and ``path.split("/")[-1]``"""
    if folder_of(path) is not None:
        return [(INSIDE,)]
    parts = templates.stored(path)
    known = parts if all(isinstance(p, str) or p.kind not in ("any", "part", "number") for p in parts) else ()
    return [(Hole("name", of=known),)] if parts else [()]


def with_ending(path: Alternative, old: object, new: object) -> list[Template]:
    """``path.replace(".md", ".txt")``: other names below the same folder."""
    folder = folder_of(path)
    if folder is None or not isinstance(old, str) or not isinstance(new, str):
        return []
    is_name = "/" not in old + new and any(c.isalnum() for c in new)
    return [templates.as_text(path)] if old and is_name and old not in folder else []


def without_ending(path: Alternative) -> list[Template]:
    """The first part of ``splitext(path)``"""
    folder = folder_of(path)
    return [templates.as_text(path)] if folder is not None and "." not in folder else []


def folder_of(path: Alternative) -> str | None:
    """The folder of a path below it, if it is a constant, relative, in normal form, and leads nowhere up."""
    hole = path[0] if len(path) == 1 else ""
    if not isinstance(hole, Hole) or hole.kind != "path" or hole.of[-1:] != (BELOW,):
        return None
    parts = [p for p in hole.of[:-1] if isinstance(p, str)]
    folder = "".join(parts)
    is_normal = posixpath.normpath(folder) == folder and not folder.startswith(("/", ".."))
    return folder if is_normal and len(parts) == len(hole.of) - 1 else None


def _is_in(path: Alternative, folder: Alternative) -> bool:
    return path != (templates.ANY,) and path == templates.in_normal_form(folder, BELOW)

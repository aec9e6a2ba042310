"""What a run did to files, in words: "deletes a.bak; writes out.txt; leaves a.md, b.md".

What stays tells as much as what goes: a tool that deletes backups and one that deletes everything look alike until a file remains.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from albert_tools.engine.model.manifest_match import normal
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.visible_text import visible

#: The most files of one kind that are named.
MAX_NAMED = 5


def touched_files(effects: Iterable[tuple[str, Mapping[str, Any]]], named: Iterable[str]) -> str:
    """What effects did to files; empty if they deleted none.

    Args:
        effects: The effects, each with its kind (``write``, ``delete`` or another) and its facts (``path``).
        named: The paths of files that exist, or that the run was told about. Of these, the untouched ones in the folders of the
            touched ones are listed.
    """
    by_kind: dict[str, dict[str, None]] = {"delete": {}, "write": {}}
    for kind, facts in effects:
        if kind in by_kind and isinstance(path := facts.get("path"), str):
            by_kind[kind][normal(path)] = None
    if not by_kind["delete"]:
        return ""
    touched = {*by_kind["delete"], *by_kind["write"]}
    folders = {posixpath.dirname(path) for path in touched}
    left = dict.fromkeys(
        path for path in map(normal, named) if path not in touched and posixpath.dirname(path) in folders
    )
    texts = [("deletes", by_kind["delete"]), ("writes", by_kind["write"]), ("leaves", left)]
    return "; ".join(f"{verb} {listed([*map(visible, paths)], MAX_NAMED)}" for verb, paths in texts if paths)


def paths_in(output: Any) -> Iterator[str]:
    """The paths in the output of a call that lists files: ``{paths: [...]}``, ``[{path, type}, ...]``."""
    if isinstance(output, dict):
        if isinstance(output.get("path"), str) and output.get("type", "file") == "file":
            yield output["path"]
        paths = output.get("paths")
        yield from (path for path in paths if isinstance(path, str)) if isinstance(paths, list) else ()
    elif isinstance(output, list):
        for one in output:
            yield from paths_in(one)

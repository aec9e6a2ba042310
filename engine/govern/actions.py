"""What an approval is given for, as one hash: the call itself, who makes it, and what it would overwrite or delete.

Between a question and its answer, and between the answer and the effect, anything may change. So the hash is taken again each time;
when it is another one, it is another action, and the answer says nothing about it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from blake3 import blake3

from albert_tools.engine.model.definition import Json, ToolDefinition, canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive

#: Bytes of a file that are hashed; of a larger one its identity, size and times say whether it is the same.
MAX_HASHED = 16 * 1024 * 1024
#: What is put out of reach by a call that goes wrong; reading changes nothing.
_CHANGES = ("write", "delete")


def action_of(
    definition: ToolDefinition,
    primitive: Primitive | None,
    arguments: Mapping[str, Json],
    trail: Sequence[str],
    place: str,
    workspace: Any,
) -> str:
    """``b3:`` and 64 hex digits.

    Args:
        definition: The tool.
        primitive: What knows which of its arguments are paths.
        arguments: Valid, with defaults.
        trail: The versions of the saved tools that the call comes from, outermost first.
        place: On whose behalf, and in which step of which run.
        workspace: Where paths lead.
    """
    facts = {
        "tool": definition.name,
        "version": definition.version,
        "arguments": dict(arguments),
        "trail": list(trail),
        "place": place,
        "root": str(workspace.root),
        "objects": _objects(primitive, arguments, workspace),
    }
    return f"b3:{blake3(canonical(facts)).hexdigest()}"


def _objects(primitive: Primitive | None, arguments: Mapping[str, Json], workspace: Any) -> Json:
    found: dict[str, Json] = {}
    if primitive is None:
        return found
    for name, use in primitive.paths.items():
        value = arguments.get(name)
        for path in value if isinstance(value, list) else [value]:
            if use in _CHANGES and isinstance(path, str):
                found[path] = object_at(workspace, path or ".")
    return found


def object_at(workspace: Any, path: str) -> Json:
    """What stands at a path now: its identity and its content, or why there is none."""
    try:
        shown = workspace.spell(path)
        folder, _, name = shown.rpartition("/")
        if name in ("", "."):
            with workspace.folder(path) as handle:
                return _facts(os.fstat(handle))
        with workspace.folder(folder or ("/" if shown.startswith("/") else ".")) as handle:
            facts = _facts(os.stat(name, dir_fd=handle, follow_symlinks=False))
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        return f"unreadable: {error.strerror}"
    except Failure as failure:
        return failure.code
    try:
        return [*facts, blake3(workspace.read(path, MAX_HASHED)).hexdigest()]
    except Failure as failure:
        return [*facts, failure.code]


def _facts(facts: os.stat_result) -> list[Json]:
    return [facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns]

"""What an approval is given for, as one hash: the call itself, who makes it, why it was asked about, and what it would overwrite
or delete.

Between a question and its answer, and between the answer and the effect, anything may change. So the hash is taken again each
time; when it is another one, it is another action, and the answer says nothing about it. What stood at each path that would
change is handed on to where it is changed, and looked at a last time there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from blake3 import blake3

from albert_tools.engine.model.definition import Json, ToolDefinition, canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive

#: Bytes of a file that are hashed; of a larger one its identity, size and times say whether it is the same.
MAX_HASHED = 16 * 1024 * 1024
#: What is put out of reach by a call that goes wrong; reading changes nothing.
_CHANGES = ("write", "delete")

#: What tells an object at a path from another, and from itself before a change; None where there is nothing.
Standing = tuple[int, ...] | None


class Action(NamedTuple):
    """A call as an approval is given for it: ``b3:`` and 64 hex digits; and by absolute path what it would change."""

    hash: str
    objects: Mapping[str, Standing]


def action_of(
    definition: ToolDefinition,
    primitive: Primitive | None,
    arguments: Mapping[str, Json],
    trail: Sequence[str],
    place: str,
    workspace: Any,
    judged: Sequence[str] = (),
) -> Action:
    """The call as it would be made now.

    Args:
        definition: The tool.
        primitive: What knows which of its arguments are paths.
        arguments: Valid, with defaults.
        trail: The versions of the saved tools that the call comes from, outermost first.
        place: On whose behalf, and in which step of which run.
        workspace: Where paths lead.
        judged: By which rules, in which mode and by which of the rules it came to be asked about: whoever answers was told.
    """
    objects = dict(_objects(primitive, arguments, workspace))
    facts = {
        "tool": definition.name,
        "version": definition.version,
        "arguments": dict(arguments),
        "trail": list(trail),
        "place": place,
        "root": [str(workspace.root), *workspace.identity],
        "judged": list(judged),
        "objects": {path: list(found) if isinstance(found, tuple) else found for path, found in objects.items()},
    }
    standing = {
        workspace.absolute(path): found[:_TELLING] if isinstance(found, tuple) else None
        for path, found in objects.items()
    }
    return Action(f"b3:{blake3(canonical(facts)).hexdigest()}", standing)


def standing_objects(primitive: Primitive, arguments: Mapping[str, Json], workspace: Any) -> str | None:
    """What stands at the paths that a call changes, as one hash of identities, sizes and times; None where it changes none."""
    found: dict[str, Json] = {}
    for path, use in primitive.paths_in(arguments):
        if use in _CHANGES:
            try:
                found[path] = list(_facts(_looked(workspace, path)))
            except FileNotFoundError:
                found[path] = "absent"
            except (OSError, Failure):
                return None
    return f"b3:{blake3(canonical(found)).hexdigest()}" if found else None


def standing_of(facts: os.stat_result | None) -> Standing:
    """What a look at an object found, to be compared with an action's."""
    return None if facts is None else _facts(facts)


def demand_as_approved(workspace: Any, objects: Mapping[str, Standing], tool: str) -> None:
    """Whether everything that a call would change is still what a person was asked about.

    Raises:
        Failure: `permission_denied`, rule ``approval``.
    """
    for path, standing in objects.items():
        try:
            now = standing_of(_looked(workspace, path))
        except (OSError, Failure):
            now = None
        if now != standing:
            raise changed_since(path, tool)


def demand_unchanged(
    objects: Mapping[str, Standing], tool: str, path: str, written: str, now: os.stat_result | None
) -> None:
    """Refuse a change of `path` (absolute) if something else is there than what a person was asked about.

    `now` are the facts of what is there, `written` is the path as the call wrote it.

    Raises:
        Failure: `permission_denied`, rule ``approval``.
    """
    if path in objects and standing_of(now) != objects[path]:
        raise changed_since(written, tool)


def changed_since(path: str, tool: str) -> Failure:
    """The denial where something else stands at a path than what a person was asked about."""
    return Failure(
        "permission_denied",
        f"what stands at {path!r} has changed since a person was asked about it",
        hint="call again; a person is asked again",
        rule="approval",
        tool=tool,
    )


def _objects(
    primitive: Primitive | None, arguments: Mapping[str, Json], workspace: Any
) -> Iterator[tuple[str, tuple[Any, ...] | str]]:
    for path, use in primitive.paths_in(arguments) if primitive is not None else ():
        if use in _CHANGES:
            yield path, object_at(workspace, path)


def object_at(workspace: Any, path: str) -> tuple[Any, ...] | str:
    """What stands at a path now: its identity and its content, or why there is none."""
    try:
        facts = _facts(_looked(workspace, path))
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        return f"unreadable: {error.strerror}"
    except Failure as failure:
        return failure.code
    try:
        return (*facts, blake3(workspace.read(path, MAX_HASHED)).hexdigest())
    except Failure as failure:
        return (*facts, failure.code)


def _looked(workspace: Any, path: str) -> os.stat_result:
    """The facts of what a path names, a link itself."""
    shown = workspace.spell(path)
    folder, _, name = shown.rpartition("/")
    if name in ("", "."):
        with workspace.folder(path) as handle:
            return os.fstat(handle)
    with workspace.folder(folder or ("/" if shown.startswith("/") else ".")) as handle:
        return os.stat(name, dir_fd=handle, follow_symlinks=False)


#: How many of the facts a look alone finds.
_TELLING = 5


def _facts(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns

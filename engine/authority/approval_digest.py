"""Computes the hash that an approval refers to: the call, its caller, the rules that ask, and the files that the call would change.

All of these can change between question and answer, and between answer and effect. So the hash is computed again each time. A
different hash means a different action, which the answer doesn't cover. The fingerprints of the files are compared once more
immediately before a file is changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from blake3 import blake3

from albert_tools.engine.model.definition import Json, ToolDefinition, canonical, digest
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.workspace.workspace import Workspace

#: The most bytes of a file whose content is hashed. For a larger file, only the fingerprint is compared.
MAX_HASHED = 16 * 1024 * 1024
#: The uses that change a path.
_CHANGES = ("write", "delete")

#: Device, inode, mode, size and modification time of a file or folder; None if it doesn't exist.
Fingerprint = tuple[int, ...] | None
_FINGERPRINT_LENGTH = 5


class Action(NamedTuple):
    """The action that an approval covers: its hash (``b3:`` and 64 hex digits), and the fingerprints of the paths that it
    changes."""

    hash: str
    objects: Mapping[str, Fingerprint]


def arguments_digest(arguments: Mapping[str, Json]) -> str:
    """A digest that distinguishes direct calls by their arguments."""
    return digest(dict(arguments))


def action_of(
    definition: ToolDefinition,
    primitive: Primitive | None,
    arguments: Mapping[str, Json],
    trail: Sequence[str],
    place: str,
    workspace: Workspace,
    judged: Sequence[str] = (),
) -> Action:
    """The action of a call, in the present state of its files.

    Args:
        definition: The tool.
        primitive: Declares which arguments are paths.
        arguments: Valid arguments, including defaults.
        trail: The versions of the composites that make the call, outermost first.
        place: The session, or the step of a run.
        workspace: Resolves paths.
        judged: The revision of the rules, the mode, and the rules that ask.
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
        "objects": {
            path: list(fingerprint) if isinstance(fingerprint, tuple) else fingerprint
            for path, fingerprint in objects.items()
        },
    }
    fingerprints = {
        workspace.absolute(path): fingerprint[:_FINGERPRINT_LENGTH] if isinstance(fingerprint, tuple) else None
        for path, fingerprint in objects.items()
    }
    return Action(f"b3:{blake3(canonical(facts)).hexdigest()}", fingerprints)


def objects_hash(primitive: Primitive, arguments: Mapping[str, Json], workspace: Workspace) -> str | None:
    """One hash of the fingerprints of all paths that a call changes; None if it changes no path, or if one can't be read."""
    fingerprints: dict[str, Json] = {}
    for path in _changed_paths(primitive, arguments):
        try:
            fingerprints[path] = list(_fingerprint(_stat(workspace, path)))
        except FileNotFoundError:
            fingerprints[path] = "absent"
        except (OSError, Failure):
            return None
    return f"b3:{blake3(canonical(fingerprints)).hexdigest()}" if fingerprints else None


def demand_as_approved(workspace: Workspace, objects: Mapping[str, Fingerprint], tool: str) -> None:
    """Require that all files that the call would change are in the state that the person approved.

    Raises:
        Failure: `permission_denied`, rule ``approval``.
    """
    for path in objects:
        try:
            now = _stat(workspace, path)
        except (OSError, Failure):
            now = None
        demand_unchanged(objects, tool, path, path, now)


def demand_unchanged(
    objects: Mapping[str, Fingerprint], tool: str, path: str, written: str, now: os.stat_result | None
) -> None:
    """Require that `path`, absolute, is in the state that the person approved.

    `now` is the `stat` result of the path. `written` is the path as the call wrote it.

    Raises:
        Failure: `permission_denied`, rule ``approval``.
    """
    if path in objects and objects[path] != (None if now is None else _fingerprint(now)):
        raise Failure(
            "permission_denied",
            f"{written!r} has changed since a person was asked about it",
            hint="call again; a person is asked again",
            rule="approval",
            tool=tool,
        )


def _objects(
    primitive: Primitive | None, arguments: Mapping[str, Json], workspace: Workspace
) -> Iterator[tuple[str, tuple[Any, ...] | str]]:
    for path in _changed_paths(primitive, arguments) if primitive is not None else ():
        yield path, _object_at(workspace, path)


def _changed_paths(primitive: Primitive, arguments: Mapping[str, Json]) -> Iterator[str]:
    yield from (path for path, use in primitive.paths_in(arguments) if use in _CHANGES)


def _object_at(workspace: Workspace, path: str) -> tuple[Any, ...] | str:
    """The fingerprint and the content hash of a path, or the reason why there is no fingerprint."""
    try:
        fingerprint = _fingerprint(_stat(workspace, path))
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        return f"unreadable: {error.strerror}"
    except Failure as failure:
        return failure.code
    try:
        return (*fingerprint, blake3(workspace.read(path, MAX_HASHED)).hexdigest())
    except Failure as failure:
        return (*fingerprint, failure.code)


def _stat(workspace: Workspace, path: str) -> os.stat_result:
    """The `stat` result of a path. A link is not followed."""
    shown = workspace.spell(path)
    folder, _, name = shown.rpartition("/")
    if name in ("", "."):
        with workspace.folder(path) as handle:
            return os.fstat(handle)
    with workspace.folder(folder or ("/" if shown.startswith("/") else ".")) as handle:
        return os.stat(name, dir_fd=handle, follow_symlinks=False)


def _fingerprint(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns

"""Which writes of a tool may feed its own reads: the path that is written and the path that is read may be the same.

A file is then a channel that the flows of the manifest don't show. Two paths are different only if that is certain: their constant
beginnings differ, and nothing in them can lead up. A read can also be of everything below its path.
"""

from __future__ import annotations

import posixpath

from albert_tools.engine.model.manifest import Hole, Manifest, Part, Value, values_in, with_paths

#: The most pairs of different paths that are compared.
MAX_PAIRS = 40_000


def fed_reads(manifest: Manifest) -> list[tuple[int, int]] | None:
    """Pairs of calls, by their indexes: the first writes a path that the second may read. None if there are too many to compare."""
    writes, reads = _paths(manifest, "write"), _paths(manifest, "read")
    if len(writes) * len(reads) > MAX_PAIRS:
        return None
    met = {
        (writer, reader)
        for written, writers in writes.items()
        for read, readers in reads.items()
        if _may_meet(written, read)
        for writer in writers
        for reader in readers
        if writer != reader
    }
    return sorted(met)


def _paths(manifest: Manifest, use: str) -> dict[tuple[Part, ...], list[int]]:
    """The calls that use each path."""
    found: dict[tuple[Part, ...], list[int]] = {}
    for i, call in enumerate(manifest.calls):
        given = [call.arguments.get(n) for n, what in call.uses.items() if what == use]
        paths = (path for value in given if value is not None for v in values_in(value) for path in _texts(v))
        for path in dict.fromkeys(paths):
            found.setdefault(path, []).append(i)
    return found


def _texts(value: Value) -> list[tuple[Part, ...]]:
    anything: tuple[Part, ...] = (Hole("any"),)
    return [*(a for a in value.alternatives if isinstance(a, tuple)), *([anything] if value.open else [])]


def _may_meet(written: tuple[Part, ...], read: tuple[Part, ...]) -> bool:
    """Whether the written path may be the read path, or below it."""
    one, other = _normal(written), _normal(read)
    while one and other and one[0] == other[0] and _is_same_each_time(one[0]):
        one, other = one[1:], other[1:]
    if any(_leads_up(part) for part in (*one, *other)):
        return True
    start, beginning = _constant(one), _constant(other)
    # The constant beginnings can continue with what a hole holds. Without a hole, the path ends there.
    is_below = start == beginning or start.startswith(f"{beginning}/") or not beginning
    return (
        is_below
        or (_ends_open(other) and start.startswith(beginning))
        or (_ends_open(one) and beginning.startswith(start))
    )


def _normal(path: tuple[Part, ...]) -> tuple[Part, ...]:
    """The path with its constant texts joined and without ``./`` in front. The workspace's root is the empty path."""
    parts: list[Part] = []
    for part in with_paths(path):
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    if parts and isinstance(parts[0], str):
        first = parts[0]
        end = "/" if first.endswith("/") and len(parts) > 1 else ""
        parts[0] = posixpath.normpath(first).removeprefix("./") + end if first not in ("", ".", "./") else ""
    return tuple(part for part in parts if part != "")


def _is_same_each_time(part: Part) -> bool:
    return isinstance(part, str) or (part.kind == "parameter" and "*" not in part.path and "~" not in part.path)


def _leads_up(part: Part) -> bool:
    """Whether a part can hold ``..`` or an absolute path."""
    if isinstance(part, str):
        return ".." in part.split("/")
    return part.kind not in ("number", "word", "below")


def _constant(path: tuple[Part, ...]) -> str:
    return path[0] if path and isinstance(path[0], str) else ""


def _ends_open(path: tuple[Part, ...]) -> bool:
    return any(isinstance(part, Hole) for part in path)

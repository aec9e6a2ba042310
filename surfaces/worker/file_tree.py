"""The files of a folder as a commit, in the format that ``git fast-import`` reads.

git itself never looks at the folder: what a run has left there, such as a repository in the place of a submodule, would decide what
git does.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure

#: The most bytes of the files that are not those of the commit before. One of them at a time is in memory.
MAX_CHANGED = 256 * 1024 * 1024
#: How deep folders may be nested.
MAX_DEPTH = 200


class Known(NamedTuple):
    """An entry of a commit: its mode, the id of its content, and the size of this in bytes. A submodule has the size -1."""

    mode: bytes
    id: bytes
    size: int


def entries_of_commit(listing: bytes) -> dict[bytes, Known]:
    """The entries that ``git ls-tree -r -l -z`` has listed, by path."""
    entries = {}
    for line in listing.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, _, content, size = facts.split()
        entries[path] = Known(mode, content, -1 if size == b"-" else int(size))
    return entries


def entries_of_folder(folder: bytes) -> dict[bytes, os.stat_result]:
    """The files, links and folders below a folder, by path, without those called ``.git``. A folder comes before its entries.

    Raises:
        OSError: a folder can't be listed.
        Failure: `too_large` beyond `MAX_DEPTH`.
    """
    facts_by_path = {}
    pending = [b""]
    while pending:
        above = pending.pop()
        with os.scandir(os.path.join(folder, above)) as entries:
            for entry in entries:
                path, facts = os.path.join(above, entry.name), entry.stat(follow_symlinks=False)
                if entry.name.lower() == b".git" or stat.S_IFMT(facts.st_mode) not in _KINDS:
                    continue
                facts_by_path[path] = facts
                if stat.S_ISDIR(facts.st_mode):
                    if path.count(b"/") >= MAX_DEPTH:
                        raise Failure("too_large", f"there are folders more than {MAX_DEPTH} deep")
                    pending.append(path)
    return facts_by_path


_KINDS = {stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR}


def commit_of_folder(
    folder: bytes,
    entries: Mapping[bytes, os.stat_result],
    ignored: Collection[bytes],
    before: Mapping[bytes, Known],
    header: bytes,
) -> Iterator[bytes]:
    """What ``git fast-import`` reads to make a commit of `entries` in a folder.

    Args:
        folder: The folder.
        entries: See `entries_of_folder`.
        ignored: The paths that are left out.
        before: The entries of the commit before.
        header: The beginning of the commit: all before its files.

    Raises:
        OSError: a file can't be read.
        Failure: `too_large` beyond `MAX_CHANGED`.
    """
    yield header + b"deleteall\n"
    changed = 0
    for path, facts in entries.items():
        known = before.get(path)
        if stat.S_ISDIR(facts.st_mode):
            if known is not None:
                # The place of a submodule. Files in it come later and replace it.
                yield b"M %s %s %s\n" % (known.mode, known.id, _quoted(path))
            continue
        if path in ignored:
            continue
        place = os.path.join(folder, path)
        is_link = stat.S_ISLNK(facts.st_mode)
        mode = b"120000" if is_link else b"100755" if facts.st_mode & stat.S_IXUSR else b"100644"
        if not is_link and known is not None and known.size == facts.st_size and known.id == _id_of(place, known.size):
            yield b"M %s %s %s\n" % (mode, known.id, _quoted(path))
            continue
        changed += facts.st_size
        if changed > MAX_CHANGED:
            raise Failure("too_large", f"the changed files have more than {MAX_CHANGED:,} bytes")
        content = os.readlink(place) if is_link else _read(place)
        yield b"M %s inline %s\ndata %d\n%s\n" % (mode, _quoted(path), len(content), content)


def _read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _id_of(path: bytes, size: int) -> bytes:
    """The id that git gives to the content of a file."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest().encode()


def _quoted(path: bytes) -> bytes:
    return b'"%s"' % path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")

"""A projection's snapshot: a state, and how far the log was read for it, in a file of the cache.

    9f2c…e1 {"format":1,"name":"repeats","version":2,"kinds":[…],"finished":[…],"places":{…},"state":…}

The hash in front is BLAKE3 over the JSON behind the space. It finds damage, not forgery: whoever can write into its owner's private
folder can write anything. Nothing is synced, since a snapshot that is lost or torn is only made again.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from blake3 import blake3

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Place
from albert_tools.store.log.segment import FILE_MODE
from albert_tools.store.private_folder import check_private, make_private

FORMAT = 1
#: The folder of the cache that snapshots lie in.
FOLDER = "projections"
#: Bytes: a larger one is neither written nor read.
MAX_SNAPSHOT = 1 << 30
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")
_LEAD = 65


class Snapshot(msgspec.Struct):
    """The file's JSON. `places` are those of segments that may still grow; `finished` are read to their end and can't."""

    name: str
    version: int
    kinds: list[str]
    finished: list[str]
    places: dict[str, Place]
    state: Any
    format: int = FORMAT


def check_name(name: str) -> None:
    """See that `name` can name a snapshot.

    Raises:
        ValueError: it can't.
    """
    if not _NAME.match(name):
        raise ValueError(f"{name!r} can't name a snapshot: use a-z, 0-9, '-' and '_', a letter first")


def kept(cache: Path, name: str, version: int) -> tuple[Snapshot, int] | None:
    """The snapshot of the fold `name`, with its size in bytes, or None where there is none that can be used."""
    with suppress(Failure, OSError, msgspec.MsgspecError, ValueError, RecursionError):
        folder = cache / FOLDER
        if not check_private(folder, "the snapshots"):
            return None
        handle = os.open(folder / f"{name}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_SNAPSHOT:
                return None
            content = file.read()
        text = memoryview(content)[_LEAD:]
        if content[:_LEAD] != _lead(text):
            return None
        snapshot = msgspec.json.decode(text, type=Snapshot)
        if (snapshot.format, snapshot.name, snapshot.version) == (FORMAT, name, version):
            return snapshot, len(content)
    return None


def keep(cache: Path, snapshot: Snapshot) -> int:
    """Write it in place of the one before; returns its size in bytes.

    Raises:
        Failure, OSError: it can't be written, and the one before is still there.
    """
    folder = cache / FOLDER
    make_private(folder, "the snapshots")
    text = msgspec.json.encode(snapshot)
    if len(text) + _LEAD > MAX_SNAPSHOT:
        raise OSError("the snapshot is too large")
    temporary = folder / f".{snapshot.name}-{os.getpid()}-{secrets.token_hex(4)}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        with open(handle, "wb") as file:
            file.write(_lead(text))
            file.write(text)
        os.replace(temporary, folder / f"{snapshot.name}.json")
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return len(text) + _LEAD


def _lead(text: bytes | memoryview) -> bytes:
    return blake3(text).hexdigest().encode() + b" "

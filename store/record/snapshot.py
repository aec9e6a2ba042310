"""A state of the record as a folder, which `replaying` reads. So what walks over all entries is written for SQLite only."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def as_folder(place: Path | str, most: int | None = None) -> Iterator[Path]:
    """The folder of the record at `place` (as for `Record`), or a copy with its present state.

    With `most`, the copy has only the checkpoints and this many of the oldest entries.

    Raises:
        Failure: `io_error`.
        Wrong: The tables are not the record's.
    """
    if isinstance(place, Path):
        yield place
        return
    from albert_tools.store.record.postgres_snapshot import copy

    with tempfile.TemporaryDirectory(prefix="albert-record-") as folder:
        copy(place, Path(folder), most)
        yield Path(folder)

"""A file of the workspace that is open for reading."""

from __future__ import annotations

import os
from collections.abc import Iterator

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.workspace import files
from albert_tools.engine.workspace.call_judge import CallJudge

#: The rule that limits the bytes of a file.
MAX_FILE_RULE = "max_file_size_mb"


class OpenedFile:
    """An open file; a context manager that closes it. `facts` is the result of `fstat`; `path` is the real path, for records."""

    __slots__ = ("_handle", "_judge", "_shown", "facts", "path")

    def __init__(self, handle: int, facts: os.stat_result, path: str, shown: str, judge: CallJudge) -> None:
        self._handle = handle
        self.facts = facts
        self.path = path
        self._shown = shown
        self._judge = judge

    def most(self, limit: int) -> int:
        """The most bytes that may be read at once: `limit`, or less if the rules set a lower limit."""
        return min(limit, self._judge.max_file_bytes)

    def read(self, limit: int) -> bytes:
        """The whole content, if it has at most `limit` bytes.

        Raises:
            Failure: `too_large`, `io_error`.
        """
        most = self.most(limit)
        try:
            return files.read_all(self._handle, self.facts, self._shown, most)
        except Failure as failure:
            if failure.code == "too_large" and most < limit:
                failure.rule = MAX_FILE_RULE
            raise

    def read_at_once(self, limit: int) -> bytes:
        """The whole content of a small file that the system has in memory.

        Raises:
            BlockingIOError: the read would take longer, or the file has more than `limit` bytes.
        """
        if self.facts.st_size > self.most(limit):
            raise BlockingIOError
        return files.read_at_once(self._handle, self.facts)

    def part(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on.

        Raises:
            Failure: `cancelled`: the call has ended.
        """
        os.lseek(self._handle, min(offset, self.facts.st_size), os.SEEK_SET)
        pieces: list[bytes] = []
        left, blocks = limit, self.blocks()
        while left and (block := next(blocks, b"")):
            pieces.append(block[:left])
            left -= len(pieces[-1])
        return b"".join(pieces)

    def reread(self, limit: int) -> bytes:
        """Read the content again from the beginning.

        Raises:
            Failure: as `read`.
        """
        os.lseek(self._handle, 0, os.SEEK_SET)
        return self.read(limit)

    def blocks(self) -> Iterator[bytes]:
        """The content in blocks.

        Raises:
            Failure: `cancelled`: the call has ended.
        """
        return files.blocks(self._handle, self._judge.demand_going)

    def digest(self) -> str:
        """The sha256 of the content, in 64 hex digits.

        Raises:
            Failure: `cancelled`: the call has ended.
        """
        return files.digest(self.blocks())

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def __enter__(self) -> OpenedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

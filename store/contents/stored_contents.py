"""Values by the hash of their content: what every content store does with its blocks.

Large outputs are stored here. Records refer to them by `b3:` and the BLAKE3 hash of the bytes. Each read computes the hash again
and rejects a changed value.

There are no reference counts. `collect` deletes the values that no record refers to. A value is stored before the record that
refers to it is written, so recent values are not deleted either.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from blake3 import blake3

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.line_patterns import matcher
from albert_tools.engine.model.protocols import ContentStore
from albert_tools.engine.model.record_types import Matches
from albert_tools.store.contents.line_matches import matching

REF = re.compile(r"b3:([0-9a-f]{2})([0-9a-f]{62})\Z")
#: Bytes that are read and hashed at once.
BLOCK = 1024 * 1024
#: Seconds for which a value without a reference is retained. A call writes its record within its timeout, which is at most an
#: hour. A day is also enough for suspended runs.
KEPT_SECONDS = 24 * 3600.0


def ref_of(content: bytes) -> str:
    """The reference of `content`."""
    return f"b3:{blake3(content).hexdigest()}"


class Collected(NamedTuple):
    """Result of `collect`: the number of deleted values, their total bytes, and the number of remaining values."""

    taken: int
    taken_bytes: int
    left: int


class StoredContents(ContentStore, ABC):
    """A `ContentStore`. Safe to use from any number of threads and processes."""

    def get(self, ref: str) -> bytes:
        """The whole value.

        Raises:
            Failure: `not_found`; `damaged` if the value was changed; `invalid_arguments` if `ref` is not a reference; `io_error`.
        """
        return b"".join(self._verified(ref))

    def slice(self, ref: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on; empty after the end of the value.

        The whole value is read and verified each time (about a second for a gigabyte), but only the slice is in memory.

        Raises:
            Failure: as `get`; `invalid_arguments` also for a negative offset or limit.
        """
        if offset < 0 or limit < 0:
            raise Failure("invalid_arguments", f"a slice can't begin at {offset} and have {limit} bytes")
        parts: list[bytes] = []
        position = 0
        for block in self._verified(ref):
            parts.append(block[max(0, offset - position) : max(0, offset + limit - position)])
            position += len(block)
        return b"".join(parts)

    def matching(self, ref: str, pattern: str, offset: int = 0, limit: int = BLOCK) -> Matches:
        """The lines from byte `offset` on that match `pattern` (`line_patterns.matcher`).

        The result has at most `limit` bytes, but at least one line. Bytes that are not UTF-8 are replaced. The time is linear in
        the size of the value, for any pattern. The memory is proportional to `limit`.

        Raises:
            Failure: as `get`; `invalid_arguments` also for an invalid pattern and a negative offset or limit.
        """
        if offset < 0 or limit < 0:
            raise Failure("invalid_arguments", f"can't search from {offset} for {limit} bytes: neither may be negative")
        return matching(self._verified(ref), matcher(pattern), offset, limit)

    def renew(self, ref: str) -> int:
        """Verify a value and reset its age. Returns its size in bytes.

        Raises:
            Failure: as `get`.
        """
        self.slice(ref, 0, 0)
        size = self._touch(ref)
        if size is None:
            # A collection deleted the value after it was verified.
            raise Failure("not_found", f"there is no value {ref}", hint="put it again")
        return size

    def collect(
        self, keep: Callable[[str], bool] | AbstractSet[str], older_than_seconds: float = KEPT_SECONDS
    ) -> Collected:
        """Delete the values that were last stored more than `older_than_seconds` ago, except the references in `keep`.

        If `keep` is a function, it is called with each reference. If it raises, the collection stops. What is not a value of this
        store is ignored.

        Raises:
            Failure: `io_error`; `invalid_arguments` for a negative age.
        """
        if not older_than_seconds >= 0:
            raise Failure("invalid_arguments", f"{older_than_seconds} is not an age in seconds")
        return self._collect(keep if callable(keep) else keep.__contains__, older_than_seconds)

    def _verified(self, ref: str) -> Iterator[bytes]:
        """The blocks of a value. After the last one, raises `damaged` if the value was changed."""
        hasher = blake3()
        for block in self._blocks(ref):
            hasher.update(block)
            yield block
        if f"b3:{hasher.hexdigest()}" != ref:
            raise self._damaged(ref)

    @abstractmethod
    def _blocks(self, ref: str) -> Iterator[bytes]:
        """The value in parts. Raises Failure `not_found`, `invalid_arguments`, `io_error`, `damaged`."""

    @abstractmethod
    def _touch(self, ref: str) -> int | None:
        """Reset the age of a value. Returns its size; None if there is none. Raises Failure `io_error`."""

    @abstractmethod
    def _collect(self, keep: Callable[[str], bool], older_than_seconds: float) -> Collected:
        """As `collect`."""

    @abstractmethod
    def _place(self, ref: str) -> str:
        """Where a value is, for messages."""

    def _damaged(self, ref: str) -> Failure:
        place = self._place(ref)
        return Failure(
            "damaged",
            f"the value {ref} was changed after it was stored",
            hint=f"store it again, or move it away: {place}",
            details={"path": place},
        )


def not_found(ref: str) -> Failure:
    """The failure of a value that is not in the store."""
    return Failure("not_found", f"there is no value {ref}", hint="it was never stored here, or deleted as unused")


def parts_of(ref: str) -> tuple[str, str]:
    """The first two hex digits of a reference, and the other sixty-two. Raises Failure `invalid_arguments`."""
    match = REF.match(ref) if isinstance(ref, str) else None
    if match is None:
        raise Failure(
            "invalid_arguments",
            f"{str(ref)[:80]!r} is not a reference to a value",
            hint="a reference is b3: and 64 hex digits; give it exactly as you got it",
        )
    return match[1], match[2]

"""Passes the bytes of a request to its call without storing them.

JSON arguments name bytes by their hash, and a tool reads them from the content store. For the time of the call, this store also has
the bytes of the call's request, in memory. So a request that is denied writes nothing to the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from albert_tools.engine.model.protocols import ContentStore

#: The reference and the bytes of the present request.
_PRESENT: ContextVar[tuple[str, bytes] | None] = ContextVar("albert_wire_content", default=None)


@contextmanager
def offering(ref: str, content: bytes | None) -> Iterator[None]:
    """Let the calls that are made in this block read the content under its reference."""
    token = _PRESENT.set(None if content is None else (ref, content))
    try:
        yield
    finally:
        _PRESENT.reset(token)


class RequestContents:
    """A `ContentStore` that also has the content of the present request."""

    def __init__(self, stored: ContentStore) -> None:
        self._stored = stored

    def get(self, ref: str) -> bytes:
        """See `ContentStore`."""
        present = _PRESENT.get()
        return present[1] if present is not None and present[0] == ref else self._stored.get(ref)

    def size(self, ref: str) -> int:
        """See `ContentStore`."""
        present = _PRESENT.get()
        return len(present[1]) if present is not None and present[0] == ref else self._stored.size(ref)

    def __getattr__(self, name: str) -> Any:
        # No tool that a request gives bytes to uses the other methods.
        return getattr(self._stored, name)

"""The content store and the artifacts as one session has them: one rule for each way to a stored value.

A session may read what it, or a session within it, has stored, and the content of an artifact that it was given. Other values do
not exist for it. What it stores is charged to its quota, before it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from blake3 import blake3

from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Artifact, ArtifactStore, ContentStore

if TYPE_CHECKING:
    from albert_tools.engine.authority.leased_session import LeasedSession
    from albert_tools.engine.model.record_types import Matches

_REF = re.compile(r"b3:[0-9a-f]{64}\Z")
#: The reference and the bytes of the present request. Its calls can read them, although they are not stored.
_OFFERED: ContextVar[tuple[str, bytes] | None] = ContextVar("albert_offered_content", default=None)


@contextmanager
def offering(ref: str, content: bytes | None) -> Iterator[None]:
    """Let the calls of sessions that are made in this block read the content under its reference."""
    token = _OFFERED.set(None if content is None else (ref, content))
    try:
        yield
    finally:
        _OFFERED.reset(token)


class SessionContents:
    """A `ContentStore` for one session."""

    def __init__(self, stored: ContentStore, session: LeasedSession) -> None:
        self._stored = stored
        self._session = session

    def put(self, content: bytes) -> str:
        """See `ContentStore`.

        Raises:
            Failure: `budget_exceeded`: the quota has no room for the content.
        """
        self._session.store(f"b3:{blake3(content).hexdigest()}", len(content))
        return self._stored.put(content)

    def get(self, ref: str) -> bytes:
        """See `ContentStore`."""
        offered = _OFFERED.get()
        return offered[1] if offered is not None and offered[0] == ref else self._known(ref).get(ref)

    def size(self, ref: str) -> int:
        """See `ContentStore`."""
        offered = _OFFERED.get()
        return len(offered[1]) if offered is not None and offered[0] == ref else self._known(ref).size(ref)

    def slice(self, ref: str, offset: int, limit: int) -> bytes:
        """See `ContentStore`."""
        return self._known(ref).slice(ref, offset, limit)

    def matching(self, ref: str, pattern: str, offset: int, limit: int) -> Matches:
        """See `ContentStore`."""
        return self._known(ref).matching(ref, pattern, offset, limit)

    def renew(self, ref: str) -> int:
        """See `ContentStore`."""
        return self._known(ref).renew(ref)

    def _known(self, ref: str) -> ContentStore:
        """The store, if the session may read the value."""
        if isinstance(ref, str) and _REF.match(ref) and not self._session.has_stored(ref):
            # As the store answers. It refuses what is not a reference.
            raise Failure(
                "not_found", f"there is no value {ref}", hint="it was never stored here, or deleted as unused"
            )
        return self._stored


class SessionArtifacts:
    """An `ArtifactStore` for one session."""

    def __init__(self, stored: ArtifactStore, session: LeasedSession) -> None:
        self._stored = stored
        self._session = session

    def publish(self, workspace: str, artifact: Artifact) -> tuple[Artifact, bool]:
        """See `ArtifactStore`. The artifact's description is charged; its content was charged when it was stored."""
        self._session.store("", len(canonical([artifact.id, artifact.category, artifact.metadata])))
        return self._stored.publish(workspace, artifact)

    def get(self, workspace: str, id: str) -> Artifact:
        """See `ArtifactStore`. From then on, the session may read the content."""
        artifact = self._stored.get(workspace, id)
        self._session.store(artifact.content, 0)
        return artifact

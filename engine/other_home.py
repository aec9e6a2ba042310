"""Another home, such as that of a team: its tools are found beside one's own, and can be taken over (`receiving`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec import Struct

from albert_tools.engine.authority.reviews import Reviews, VersionState
from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Record, ToolStore

#: The most versions of a tool that are compared.
HISTORY = 1_000_000
#: The most tools of a library that a search looks at.
_LOOKED_AT = 100
#: Seconds for a search, which may wait for others.
_PATIENCE = 10.0


class OtherHome(Struct, frozen=True):
    """A home. `name` is for messages and the ledger, `end_by` sets when the reading of its record fails, in seconds of
    `time.monotonic`, and `close` closes what was opened."""

    name: str
    store: ToolStore
    ledger: Record
    end_by: Callable[[float], None]
    close: Callable[[], None]

    @property
    def reviews(self) -> Reviews:
        """The states of its versions."""
        return Reviews(self.ledger, self.store)

    def wanted(self, name: str, version: str | None) -> ToolVersion:
        """The version with this hash or prefix; by default the one that the name means. Raises as the store's `load`."""
        return self.reviews.by_name(name) if version is None else self.store.load(name, version)

    def closure(self, version: ToolVersion) -> list[ToolVersion]:
        """The version and all that it calls, callees first, and older versions of a tool first.

        Raises:
            Failure: `permission_denied` if one of them is revoked there; `damaged`, `io_error`.
        """
        closure: dict[str, ToolVersion] = {}
        pending = [version]
        while pending:
            each = pending.pop()
            if each.version in closure:
                continue
            if self.reviews.of(each).state == "revoked":
                problem = f"version {each.version[:12]} of {each.name} is revoked in {self.name}"
                raise Failure("permission_denied", problem, hint="take over another version", rule="reviewed")
            closure[each.version] = each
            pending += [self.store.load(c.name, c.version) for c in each.calls if c.kind == "composite"]
        return sorted(
            closure.values(), key=lambda v: (v.definition.depth, v.name, -self.history(v.name).index(v.version))
        )

    def history(self, name: str) -> list[str]:
        """The versions of a tool, newest first."""
        return [saved.version for saved in self.store.history(name, HISTORY)[0]]


class Library:
    """The home in which a search also looks. `open_home` opens it at the first search."""

    def __init__(self, open_home: Callable[[], OtherHome]) -> None:
        self._open_home = open_home
        self._home: OtherHome | None = None
        self._one_search = threading.Lock()
        #: Why the last search found nothing in it; None if it could be read.
        self.problem: str | None = None

    def search(self, text: str, limit: int) -> list[tuple[ToolVersion, VersionState]]:
        """At most `limit` tools with the words of `text`, the best match first, in the versions that a person has approved there.

        What nobody has approved is left out, because an agent reads the descriptions. A library that can't be read has no tools.
        """
        deadline = time.monotonic() + _PATIENCE
        if not self._one_search.acquire(timeout=_PATIENCE):
            self.problem = "other searches keep it busy"
            return []
        try:
            self.problem = None
            self._home = self._home or self._open_home()
            self._home.end_by(deadline)
            active = self._home.reviews.active()
            names = [summary.name for summary in self._home.store.search(text, _LOOKED_AT) if summary.name in active]
            versions = [self._home.store.load(name, active[name]) for name in names[:limit]]
            states = [(version, self._home.reviews.of(version)) for version in versions]
            return [(version, state) for version, state in states if state.approved]
        except Failure as failure:
            self.problem = failure.message
            return []
        finally:
            self._one_search.release()

    def close(self) -> None:
        """Close what a search has opened."""
        if self._home is not None:
            self._home.close()

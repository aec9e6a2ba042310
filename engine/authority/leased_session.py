"""The session of one request: checks its lease, and charges its budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

from albert_tools.engine.authority.sessions import Line, Sessions
from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger

#: With less room than this, the reads of a session's programs are written at once. About what they read until they are written in
#: any case (`entries.LATEST`).
_UNWRITTEN_BYTES = 16 * 1024 * 1024


class LeasedSession:
    """The active session of a request. `NoSession` has the same methods for calls of the owner.

    It is read again (`renew`) before a person is asked about a call, and when the call begins. If the call draws on a limit, that
    is in the transaction that charges it.
    """

    def __init__(self, sessions: Sessions, line: Line, ledger: Ledger, quota: Callable[[], float]) -> None:
        """`line` was just read. `quota` returns the bytes that the service may store for the session."""
        session = line[0]
        self._sessions = sessions
        self._line = line
        self._session = session
        self._ledger = ledger
        self._find_quota = quota
        self.id: str | None = session.id
        #: The session that made the request. For a resumed run, this is the session in which the run began.
        self.origin: str | None = session.parent if session.grant and session.parent else session.id

    def renew(self) -> None:
        """Read the session and its parents again: another process may have ended or charged them."""
        self._line = self._sessions.line(self._session.id)

    def covers(self, tool: str) -> bool:
        """Whether the lease covers a tool by its name. Tools that the session itself has defined don't count."""
        return all(each.lease.covers(tool, ()) for each in self._line)

    def demand(
        self, tool: str, callers: Sequence[tuple[str, str]] = (), author: Callable[[], str] = lambda: ""
    ) -> None:
        """See `Sessions.demand`."""
        self._sessions.demand(self._line, tool, callers, author)

    def knows(self, version: ToolVersion) -> bool:
        """Whether a version of a composite is older than the session, or was defined in it."""
        if version.author and self._sessions.is_within(version.author, self._session.id):
            return True
        leased = self._session.lease.versions.get(version.name)
        return leased == version.version if leased is not None else version.created <= self._session.created

    @cached_property
    def _quota(self) -> float:
        return self._find_quota()

    def afford(self, tool: str) -> None:
        """See `Sessions.afford`."""
        self._sessions.afford(self._line, tool, self._quota)

    def demand_room(self) -> None:
        """See `Sessions.demand_room`."""
        self._sessions.demand_room(self._line, self._quota)

    def store(self, ref: str, size: int) -> None:
        """See `Sessions.store`."""
        self._sessions.store(self._session, ref, size, self._quota)

    def has_stored(self, ref: str) -> bool:
        """See `Sessions.has_stored`."""
        return self._sessions.has_stored(self._session, ref)

    def refused_lately(self) -> bool:
        """See `Sessions.refused_lately`."""
        return self._sessions.refused_lately(self._session.id)

    def left(self, unit: str) -> float:
        """The remaining amount of a unit now. See `Sessions.left`."""
        self.renew()
        return self._sessions.left(self._line, unit)

    def bounded(self, unit: str) -> list[str]:
        """The ids of the session and its parents, if they have a budget for the unit. These never change."""
        return [s.id for s in self._line if getattr(s.lease.budget, unit) is not None]

    @property
    def is_limited(self) -> bool:
        """Whether the session or one of its parents has a budget, or has stored nearly all that it may."""
        has_budget = any(each.lease.budget.as_dict() for each in self._line)
        return has_budget or self._sessions.stored(self._line) + _UNWRITTEN_BYTES > self._quota

    @property
    def expires(self) -> float:
        """When the session ends at the latest, in seconds since 1970."""
        return self._session.lease.expires if self._session.person is None else self._session.until

    def lineage(self) -> list[str]:
        """See `Sessions.lineage`."""
        return self._sessions.lineage(self._line)

    def seen(self, excluding: str | None = None) -> dict[str, str]:
        """See `Sessions.seen`."""
        return self._sessions.seen(self._line, excluding)

    def seconds(self) -> float:
        """See `Sessions.seconds`."""
        return self._sessions.seconds(self._line)

    def spend(self, **used: float) -> None:
        """Charge the session and its parents for what effects have used. The call has the locks on these budgets."""
        if any(used.values()):
            # The effects have already happened. If the ledger can't be written, the next call is denied.
            with suppress(Failure):
                self._ledger.append("use", {"session": self.id, "used": used})

    def grant(self, run: str, expires: float | None) -> str | None:
        """The id of the session in which a suspended run will be resumed.

        `expires` is when the question expires; None if the run doesn't wait for an answer. A run keeps a grant that lasts as long.

        Raises:
            Failure: `io_error`.
        """
        if expires is None or (self._session.grant and expires <= self._session.lease.expires):
            return self.id if self._session.grant else None
        return self._sessions.grant(self._session, run, expires).id

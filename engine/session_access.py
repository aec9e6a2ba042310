"""What a session has: its state, the tools that its lease covers, and its contents. It is named by its token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import ContentStore, Summary, ToolStore
from albert_tools.engine.model.reserved_names import NO_TOOL

if TYPE_CHECKING:
    from albert_tools.engine.authority.sessions import Line, Session


def search_covered(
    store: ToolStore, text: str, limit: int, any_word: bool, covers: Callable[[str], bool]
) -> list[Summary]:
    """The saved tools that a search finds, without those outside of a lease.

    If the lease covers all tools, they are at most `limit`, the best match first. Otherwise they are all that are found, by name.
    What the session does not see must decide nothing: neither the order, which depends on the texts of all tools, nor the places.
    """
    if covers(NO_TOOL):
        return store.search(text, limit, any_word)
    looked = max(1, limit)
    while len(summaries := store.search(text, looked, any_word)) >= looked:
        looked *= 10
    return sorted((s for s in summaries if covers(s.name)), key=lambda s: s.name)


class SessionAccess(Struct, eq=False):
    """Finds out what sessions have."""

    context: ServiceContext
    lookup: Lookup

    def session(self, token: str) -> Session:
        """The active session of a token. Raises as `line`."""
        return self.line(token)[0]

    def line(self, token: str) -> Line:
        """The active session of a token, and its parents.

        Raises:
            Failure: `permission_denied`, `governance_unavailable`.
        """
        return self.context.record.sessions.line_of(token, self.context.root)

    def is_own(self, token: str, belongs_to: Callable[[], str | None]) -> bool:
        """Whether something belongs to the session of a token, or to a session within it. `belongs_to` returns the id of the
        session to which it belongs.

        The answer is False if that can't be found out. Then the pipeline judges the action and reports the problem.
        """
        try:
            return self.context.record.sessions.is_within(belongs_to() or "", self.session(token).id)
        except Exception:
            # The agent may also have named the object by a value of another type.
            return False

    def covers(self, token: str | None, tool: str, author: str | None = None) -> bool:
        """Whether the lease of a session, and the leases of its ancestors, cover a tool. The owner may call every tool.

        Args:
            token: The session's token; None for the owner.
            tool: The tool's name.
            author: The session that has defined the version in question; by default that of the version that the name means.

        Raises:
            Failure: `permission_denied`: the session does not exist, or has ended.
        """
        return self.coverage(token)(tool, author)

    def coverage(self, token: str | None) -> Callable[..., bool]:
        """`covers` without its token, for the tools of a list: the session is read once. Raises as `covers`."""
        if token is None:
            return lambda tool, author=None: True
        sessions, line = self.context.record.sessions, self.line(token)

        def covers(tool: str, author: str | None = None) -> bool:
            try:
                sessions.demand(line, tool, author=lambda: self.lookup.author(tool) if author is None else author)
            except Failure as failure:
                if failure.rule == "lease.tools":
                    return False
                raise
            return True

        return covers

    def demand_covered(self, token: str | None, tool: str, version: str | None = None) -> None:
        """Require that a session's lease covers a tool. Outside of its lease, a session can't find out whether a tool or a version
        exists.

        The arguments are those of `Lookup.look_up`, and the session's token.

        Raises:
            Failure: `permission_denied`: the lease does not cover the name; the session does not exist, or has ended.
        """
        if token is not None:
            sessions, line = self.context.record.sessions, self.line(token)
            sessions.demand(line, tool, author=lambda: self.lookup.author(tool, version))

    def contents(self, token: str | None) -> ContentStore | None:
        """The content store as a session has it, see `SessionContents`; the whole store for the owner, None if there is none.

        Raises:
            Failure: `permission_denied`: there is no such session, or it has ended; `governance_unavailable`.
        """
        stored = self.context.contents
        if token is None or stored is None:
            return stored
        from albert_tools.engine.authority.leased_session import LeasedSession
        from albert_tools.engine.call.session_contents import SessionContents

        context, sessions = self.context, self.context.record.sessions
        session = LeasedSession(sessions, self.line(token), context.ledger, lambda: context.quota)
        return SessionContents(stored, session)

"""The sessions, the recorded runs and the ledger, as the owner and sessions may see and change them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from albert_tools.engine.actions import CANCEL, READ, REVOKE, Actions
from albert_tools.engine.call.context import ServiceContext, available
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.runs.runs import RunManager, RunView
from albert_tools.engine.session_access import SessionAccess

if TYPE_CHECKING:
    from albert_tools.engine.authority.sessions import Session
    from albert_tools.engine.model.record_types import Entry
    from albert_tools.engine.model.session_budget import Budget
    from albert_tools.engine.policy.sign_in import SignIn


#: The default lifetime of a session, in seconds.
DAY = 24 * 3600.0


class SessionRuns(Struct, eq=False):
    """Opens and ends sessions, lists, shows and cancels runs, and reads the ledger."""

    context: ServiceContext
    lookup: Lookup
    runs: RunManager
    actions: Actions
    access: SessionAccess

    async def list_runs(self, limit: int = 50, *, session: str | None = None) -> list[RunView]:
        """The newest runs, at most `limit`; with the token of a `session`, those of this session and of the sessions within it.

        Raises:
            Failure: `permission_denied`, `io_error`.
        """
        if session is None:
            return await asyncio.to_thread(self.runs.list, limit)
        mine, sessions = self.access.session(session).id, self.context.record.sessions
        runs = await asyncio.to_thread(self.runs.list, limit, cache(lambda of: sessions.is_within(of, mine)))
        return [run.outside() for run in runs]

    async def show_run(self, run: str, *, session: str | None = None) -> RunView:
        """One run with its result, by its id or the first digits of the id. A session may read its own runs, and others by
        ``read_records``; see `RunView.outside`.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`; in a session also those of a call.
        """
        show = partial(asyncio.to_thread, self.runs.show, run, with_result=True)
        view = await self.actions.perform(
            READ, {"of": f"run {run}"}, session, show, lambda: self.runs.show(run).session
        )
        return view if session is None else view.outside()

    async def cancel_run(self, run: str, by: str, *, session: str | None = None) -> RunView:
        """Cancel a run, see `RunManager.cancel`. A session may cancel its own runs, and others by ``cancel_run``.

        Raises:
            Failure: See `RunManager.cancel`; in a session also those of a call.
        """

        async def cancel() -> RunView:
            return self.runs.cancel(run, by if session is None else f"the session {self.access.session(session).id}")

        return await self.actions.perform(CANCEL, {"run": run}, session, cancel, lambda: self.runs.show(run).session)

    async def records(
        self,
        kinds: Collection[str] | None = None,
        since: datetime | None = None,
        run: str | None = None,
        *,
        session: str | None = None,
    ) -> list[Entry]:
        """The entries of the ledger, oldest first, see `Ledger.entries`. A session needs the action ``read_records``.

        Raises:
            Failure: `damaged`, `io_error`; in a session also those of a call.
        """
        read = partial(asyncio.to_thread, lambda: [*self.context.ledger.entries(kinds, since, run)])
        return await self.actions.perform(READ, {"of": "the ledger"}, session, read)

    def open_session(
        self,
        client: str,
        *,
        cwd: str = "",
        tools: Iterable[str] | None = None,
        seconds: float | None = DAY,
        budget: Budget | None = None,
        within: str | None = None,
    ) -> tuple[Session, str]:
        """Open a session in this workspace.

        Args:
            client: A name for the client, for the record.
            cwd: The session's folder in the workspace.
            tools: The tools that the session may call; all by default. A composite may make its own calls, in the version that it
                has now.
            seconds: The lifetime of the session; None if it never expires.
            budget: The most that the session may use.
            within: The token of the parent session.

        Returns:
            The session and its token.

        Raises:
            Failure: `invalid_arguments`, `permission_denied`, `governance_unavailable`; `budget_exceeded` if nothing more may be
                stored for the parent; `rate_limited` if it may make no more requests now; `not_found` and others for `cwd`.
        """
        workspace = self.context.workspace
        if cwd:
            workspace.at(cwd)
        named = None if tools is None else frozenset(tools)
        limits: dict[str, Any] = {}
        if within is not None:
            loops = available(self.context.governance).loops
            limits = {"quota": self.context.quota, "per_hour": loops.requests_per_hour}
        return self.context.record.sessions.open(
            client,
            str(workspace.root),
            cwd=cwd,
            tools=named,
            seconds=seconds,
            budget=budget,
            within=within,
            versions=self._versions(named),
            **limits,
        )

    def _versions(self, tools: Collection[str] | None) -> dict[str, str]:
        """The present versions of the composites among some tools."""
        return {name: version for name in tools or () if (version := self._version_of(name))}

    def _version_of(self, name: str) -> str | None:
        """The present version of a composite; None if calls of the name reach no composite."""
        try:
            version = self.lookup.look_up(name, None).version
        except Failure:
            return None
        return version.version if version is not None else None

    def sign_in(self, rules: SignIn, claims: Mapping[str, Any]) -> str:
        """Find or open the session of a person who has signed in.

        Args:
            rules: The rules by which the person's token was verified.
            claims: The claims of the token.

        Returns:
            A token of the session that only this process accepts.

        Raises:
            Failure: `permission_denied` (rule `sign_in.scopes`: the token lacks a scope; `sign_in.leases`: no lease fits its
                claims; `session.ended`: the owner has revoked the session); `governance_unavailable`, `io_error`.
        """
        from albert_tools.engine.authority.sessions import Lease, Person

        if missing := rules.missing_scopes(claims):
            raise Failure("permission_denied", f"the token lacks the scope {missing[0]}", rule="sign_in.scopes")
        lease = rules.lease_of(claims)
        if lease is None:
            raise Failure("permission_denied", "the rules give no lease to this account", rule="sign_in.leases")
        person = Person(rules.issuer, claims["sub"], lease.name, rules.terms(lease))
        tools = None if lease.tools is None else frozenset(lease.tools)
        session = self.context.record.team_sessions.admit(
            person,
            str(self.context.workspace.root),
            claims["exp"],
            lease.hours * 3600,
            lambda: Lease(tools, budget=lease.budget, versions=self._versions(tools)),
        )
        return self.context.record.sessions.token_of(session.id)

    def withdraw_sessions(self) -> None:
        """End the sessions of people who got a lease that the rules don't have any more.

        Raises:
            Failure: `governance_unavailable`, `io_error`.
        """
        rules = available(self.context.governance).sign_in
        terms = [] if rules is None else [rules.terms(lease) for lease in rules.leases]
        self.context.record.team_sessions.withdraw(terms)

    def list_sessions(self, *, session: str | None = None) -> list[Session]:
        """All sessions, newest first; with the token of a `session`, this session and those within it.

        Raises:
            Failure: `permission_denied`.
        """
        if session is None:
            return self.context.record.sessions.all()
        mine, sessions = self.access.session(session).id, self.context.record.sessions
        return [each for each in sessions.all() if sessions.is_within(each.id, mine)]

    async def revoke_session(self, name: str, *, session: str | None = None) -> Session:
        """End a session and the sessions within it, by its id or the beginning of the id.

        A session may end itself and the sessions within it, and others by the action ``revoke_session``.

        Raises:
            Failure: `not_found`, `invalid_arguments`; in a session also those of a call.
        """

        async def end() -> Session:
            return self.context.record.sessions.end(name)

        return await self.actions.perform(
            REVOKE, {"session": name}, session, end, lambda: self.context.record.sessions.complete(name)
        )

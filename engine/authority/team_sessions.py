"""The sessions of people who have signed in with an account of their team.

A person has one session for each lease that the rules give, in all processes of the home. It expires when the person's token does,
and a later token renews it, so questions, results and the used budget outlive the short life of a token. It lives for the hours of
the lease at most; after that the person gets another one. A session that the owner has revoked keeps its person out of the
workspace until then, also if the rules give the person another lease meanwhile.

No token has the hash of such a session. Who may use it is decided at each request, by a token of the identity provider.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection

from msgspec.structs import replace

from albert_tools.engine.authority.sessions import Lease, Person, Session, Sessions, new_id, opening, session_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Record


class TeamSessions:
    """The sessions of people in a home."""

    def __init__(self, ledger: Record, sessions: Sessions, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._sessions = sessions
        self._clock = clock

    def admit(
        self, person: Person, workspace: str, expires: float, seconds: float, lease: Callable[[], Lease]
    ) -> Session:
        """The session of a person. It is opened or renewed if it has to be.

        Args:
            person: The person.
            workspace: The only workspace in which the session may be used.
            expires: When the person's token expires (seconds since 1970).
            seconds: How long the session lives at most, if it is opened.
            lease: Makes the lease of the session, if it is opened.

        Raises:
            Failure: `permission_denied` if the owner has revoked a session of this person; `io_error`.
        """
        of_person = f"person:{_hash(person.issuer, person.subject, workspace)}:"
        key = f"{of_person}{_hash(person.terms)}:"
        revoked = map(session_of, self._ledger.sessions.ended(of_person))
        if any(session.until > self._clock() for session in revoked):
            raise _revoked()
        current = self._present(key)
        if current is None or _is_renewed(current, expires):
            given, ledger = lease() if current is None else current.lease, self._ledger
            with ledger.transaction():
                # Another process may have opened or renewed it meanwhile.
                current = self._present(key)
                if current is None:
                    now = self._clock()
                    until = now + seconds
                    given = replace(given, expires=min(expires, until))
                    client = f"{person.subject} of {person.issuer}"
                    made = Session(new_id(), client, workspace, lease=given, person=person, until=until)
                    # The last key is the newest session's.
                    unique = f"{key}{max(0, int(now * 1000)):015d}{made.id}"
                    ledger.append("session", opening(made) | {"hash": unique})
                elif _is_renewed(current, expires):
                    times = {"expires": min(expires, current.until), "until": current.until}
                    ledger.append("session_times", {"session": current.id, **times})
            current = self._present(key)
        if current is None or current.ended:  # Another process has ended it in this moment.
            raise _revoked()
        return current

    def _present(self, key: str) -> Session | None:
        """The newest session with this key, if its time is not over."""
        row = self._ledger.sessions.newest(key)
        session = None if row is None else session_of(row)
        return session if session is not None and session.until > self._clock() else None

    def withdraw(self, terms: Collection[str]) -> None:
        """End the sessions whose terms are none of these, because the rules have changed.

        Raises:
            Failure: `io_error`.
        """
        for row in self._ledger.sessions.all():
            session, now = session_of(row), self._clock()
            if session.person is None or session.person.terms in terms or session.ended or session.until <= now:
                continue
            # Its time is over, so the person may get another one if the rules change again.
            self._ledger.append("session_times", {"session": session.id, "expires": now, "until": now})
            self._sessions.end(session.id)


def _hash(*words: str) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def _revoked() -> Failure:
    return Failure(
        "permission_denied",
        "the session of this account has been revoked",
        hint="the account gets another one when the hours of the revoked one are over",
        rule="session.ended",
    )


def _is_renewed(session: Session, expires: float) -> bool:
    """Whether a token that expires at this time lets the session live longer."""
    return not session.ended and min(expires, session.until) > session.lease.expires

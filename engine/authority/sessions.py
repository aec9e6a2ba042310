"""Sessions and their leases. A session is the identity under which calls are made.

The owner or an application opens a session and gives it a *lease*: the permitted tools, the expiry time, and the budget. The
session's token is returned once. The record contains only a hash of the token, so a reader of the record can't use the session. A
session can be opened within a parent session. It can't get more than its parent has, and its usage is charged to all its parents
too.

Sessions and their usage are entries of the ledger. Calls without a session are the owner's own calls.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from albert_tools.engine.authority.rate_limit import SESSION, RateLimits
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import LoopLimits
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.nearest_name import only_one
from albert_tools.engine.model.protocols import Record
from albert_tools.engine.model.record_types import QUOTA, STORED, SessionRow, on_disk
from albert_tools.engine.model.reserved_names import READING_TOOLS
from albert_tools.engine.model.session_budget import UNITS, Budget

#: The beginning of each token. Redaction uses it to find tokens in a text.
TOKEN_PREFIX = "alb_"
_TOKEN_BYTES, _ID_BYTES = 32, 8
_TOKEN_LENGTH = len(TOKEN_PREFIX) + 2 * _TOKEN_BYTES
#: The most characters of a client's name, the most characters of a folder's path, and the most tools in a lease.
MAX_CLIENT, MAX_CWD, MAX_TOOLS = 256, 4096, 1000
#: The greatest depth of nested sessions.
MAX_SESSION_DEPTH = 8
#: See `Sessions.refused_lately`.
_REFUSALS_SECONDS = 60.0


class Lease(Struct, frozen=True):
    """What a session may do: call `tools` (None: all tools), until `expires` (seconds since 1970), within `budget`.

    `versions` are the versions that the composites among `tools` had when the session was opened. The lease covers the calls that
    these versions make, so a reviewed composite can be lent without its parts.
    """

    tools: frozenset[str] | None = None
    expires: float = float("inf")
    budget: Budget = field(default_factory=Budget)
    versions: Mapping[str, str] = field(default_factory=dict)

    def covers(self, tool: str, callers: Sequence[tuple[str, str]]) -> bool:
        """Whether a call of `tool` is within the lease. `callers` are the composites around the call: name and version."""
        if self.tools is None or tool in self.tools or tool in READING_TOOLS:
            return True
        return any(self.versions.get(name) == version for name, version in callers)


class Person(Struct, frozen=True):
    """A person who has signed in: the account, by its issuer and its subject there, and the lease that the rules give to it: its
    name, and the hash of its terms."""

    issuer: str
    subject: str
    lease: str
    terms: str


class Session(Struct, frozen=True):
    """A session. `cwd` is the folder of the workspace where relative paths start. `parent` is the id of the parent session."""

    id: str
    client: str
    workspace: str
    cwd: str = ""
    lease: Lease = field(default_factory=Lease)
    parent: str | None = None
    #: Whether this session was created for a waiting run. Then it may outlive the lease of its parent, but not the parent's
    #: revocation.
    grant: bool = False
    #: The person who has signed in, whose session it is, and when it ends at the latest (seconds since 1970): a new token of the
    #: person moves `lease.expires` up to that time.
    person: Person | None = None
    until: float = float("inf")
    created: str = ""
    ended: bool = False
    used: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form, without the hash of the token."""
        opened = opening(self)
        if opened["expires"] is not None:
            opened["expires"] = datetime.fromtimestamp(self.lease.expires, UTC).isoformat()
        return opened | {"used": dict(self.used), "created": self.created, "ended": self.ended}


def opening(session: Session) -> dict[str, Json]:
    """The session as it was opened, for its entry."""
    lease, person = session.lease, session.person
    return {
        "session": session.id,
        "client": session.client,
        "workspace": session.workspace,
        "cwd": session.cwd,
        "tools": None if lease.tools is None else sorted(lease.tools),
        "expires": None if lease.expires == float("inf") else lease.expires,
        "budget": lease.budget.as_dict(),
        "versions": dict(sorted(lease.versions.items())),
        "parent": session.parent,
        "grant": session.grant,
        **({"person": asdict(person), "until": session.until} if person is not None else {}),
    }


def session_of(row: SessionRow) -> Session:
    """The session of a row."""
    data, expires = row.data, row.data["expires"]
    lease = Lease(
        None if data["tools"] is None else frozenset(data["tools"]),
        float("inf") if expires is None else expires,
        Budget(**data["budget"]),
        data["versions"],
    )
    return Session(
        data["session"],
        data["client"],
        data["workspace"],
        data["cwd"],
        lease,
        data["parent"],
        data["grant"],
        Person(**data["person"]) if "person" in data else None,
        data.get("until", float("inf")),
        row.at,
        row.ended,
        row.used,
    )


#: A session and its parents, starting with the session itself, as they were when they were read. Empty for an unknown session.
Line = Sequence[Session]


class Sessions:
    """The sessions of a home. They are stored in the ledger."""

    def __init__(self, ledger: Record, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock
        #: Makes the tokens that only this process accepts, see `token_of`.
        self._secret = os.urandom(_TOKEN_BYTES)
        #: When `refused_lately` last returned False.
        self._refused: dict[Hashable, float] = {}

    def open(
        self,
        client: str,
        workspace: str,
        *,
        cwd: str = "",
        tools: frozenset[str] | None = None,
        seconds: float | None = None,
        budget: Budget | None = None,
        within: str | None = None,
        versions: Mapping[str, str] | None = None,
        quota: float = float("inf"),
        per_hour: int = LoopLimits().requests_per_hour,
    ) -> tuple[Session, str]:
        """Open a session. Returns the session and its token. The token can't be read again later.

        Args:
            client: A name for the user of the session.
            workspace: The only workspace in which the session may be used.
            cwd: The folder of the workspace where relative paths start.
            tools: The tools that the session may call; None for all tools that the rules allow.
            seconds: The lifetime; None for the lifetime of the parent, or unlimited without a parent.
            budget: The most that the session may use.
            within: The token of the parent session. The new session can't get more than its parent has.
            versions: The present versions of the composites among the tools.
            quota: The bytes that the service may store for the parent session.
            per_hour: The requests that the parent session may make in an hour; this is one of them.

        Raises:
            Failure: `invalid_arguments`; `permission_denied` if the parent is unknown, has ended, or has less than requested;
                `budget_exceeded` if the service may store nothing more for it; `rate_limited` if it may make no more requests.
        """
        _check_arguments(client, cwd, tools, seconds)
        now = self._clock()
        expires = float("inf") if seconds is None else now + seconds
        lease = Lease(tools, expires, budget or Budget(), versions or {})
        line: Line = ()
        parent = None
        if within is not None:
            line = self.line_of(within, workspace)
            parent = line[0].id
            self.demand_room(line, quota)
            if len(line) >= MAX_SESSION_DEPTH:
                raise _denied("session.depth", f"sessions can be nested at most {MAX_SESSION_DEPTH} deep")
            lease = _within(lease, line[0], seconds is None)
        token = TOKEN_PREFIX + os.urandom(_TOKEN_BYTES).hex()
        session = Session(new_id(), client, workspace, cwd, lease, parent)
        return self._append(session, _hash(token), self.lineage(line), per_hour), token

    def grant(self, session: Session, run: str, expires: float) -> Session:
        """Create a session without a token for a waiting run, until `expires`. It gets the tools and the remaining budget of
        `session`.

        Raises:
            Failure: `io_error`.
        """
        line = self.line(session.id)
        budget = Budget(**{unit: left for unit in UNITS if (left := self.left(line, unit)) != float("inf")})
        lease = replace(session.lease, expires=expires, budget=budget)
        parent = session.id if not session.grant else session.parent
        made = Session(new_id(), _of_run(run), session.workspace, session.cwd, lease, parent, True)
        # No token can have this hash.
        return self._append(made, f"run:{made.id}")

    def _append(self, session: Session, token_hash: str, counted: Sequence[str] = (), per_hour: int = 0) -> Session:
        """Record a session, as a request of the sessions whose ids are `counted`, with at most `per_hour` of them."""
        entry = opening(session) | {"hash": token_hash}
        with self._ledger.transaction():
            if counted:
                counts, windows = RateLimits(self._ledger, self._clock), ((SESSION, per_hour),)
                counts.demand(windows, counted, "open_session")
                entry |= counts.use(windows, counted)
            n = self._ledger.append("session", entry)
        self._ledger.durable(n)
        return self.line(session.id)[0]

    def find(self, token: str, workspace: str | None) -> Session:
        """The active session of a token, for use in `workspace`.

        Raises:
            Failure: `permission_denied`: the session is unknown, has ended, or belongs to another workspace. The rule says which.
        """
        return self.line_of(token, workspace)[0]

    def line_of(self, token: str, workspace: str | None) -> Line:
        """The active session of a token, and its parents. Raises as `find`."""
        return self._active(self._with_token(token), workspace)

    def client_of(self, token: str, workspace: str | None) -> str:
        """The id of the outermost session around that of a token. Raises as `find`."""
        return self.lineage(self.line_of(token, workspace))[-1]

    def _with_token(self, token: str) -> Line:
        """As `line`, for the session of a token."""
        if not isinstance(token, str):
            return []
        session = token.removeprefix(TOKEN_PREFIX)[: 2 * _ID_BYTES]
        # Only these are longer than other tokens.
        if len(token) > _TOKEN_LENGTH and hmac.compare_digest(_bytes(token), _bytes(self.token_of(session))):
            return self.line(session)
        return [session_of(row) for row in self._ledger.sessions.by_token(_hash(token))]

    def token_of(self, session: str) -> str:
        """A token of a session that has none, because a person has signed in. Only this process accepts it, so it works for no one
        else."""
        code = hmac.digest(self._secret, _bytes(session), "sha256")
        return TOKEN_PREFIX + session + code.hex()

    def line_of_run(self, session: str, workspace: str | None, run: str) -> Line:
        """The active session of a run, by the id of the session, and its parents. A session from `grant` works only for its own
        run. Raises as `find`."""
        line = self.line(session) if isinstance(session, str) else []
        if not line or (line[0].grant and line[0].client != _of_run(run)):
            raise _denied("session.unknown", "the session of this run no longer exists")
        return self._active(line, workspace)

    def line(self, session: str) -> Line:
        """A session and its parents, starting with the session itself; an empty list if it is unknown."""
        return [session_of(row) for row in self._ledger.sessions.line(session)]

    def _active(self, line: Line, workspace: str | None = None) -> Line:
        """The line, if the session and all its parents are active. Raises as `find`."""
        if not line:
            raise _denied("session.unknown", "there is no such session", "open one with `albert session new`")
        now = self._clock()
        granted = False
        for session in line:
            which = "the session" if session is line[0] else "a session that it is within"
            if session.ended:
                raise _denied("session.ended", f"{which} has been revoked", "open a new one")
            if now >= session.lease.expires and not granted:
                raise _denied("session.expired", f"{which} has expired", "open a new one")
            granted = granted or session.grant
        if workspace is not None and line[0].workspace != workspace:
            raise _denied(
                "session.workspace",
                f"the session is for another workspace, {line[0].workspace}",
                "open one with `albert session new` in the workspace of this service",
            )
        return line

    def is_active(self, session: str) -> bool:
        """Whether the session with this id and all its parents are active."""
        line = self.line(session)
        try:
            self._active(line)
        except Failure:
            return False
        return True

    def demand(
        self, line: Line, tool: str, callers: Sequence[tuple[str, str]] = (), author: Callable[[], str] = lambda: ""
    ) -> None:
        """Require that the session is active and that its lease covers a call of the tool. See `Lease.covers`.

        `author` returns the session that has defined the composite, or "". A session may always call the composites that it has
        defined itself, because the lease must cover each of their calls.

        Raises:
            Failure: `permission_denied`.
        """
        for each in self._active(line):
            asking = each.parent if each.grant and each.parent else each.id
            if not (each.lease.covers(tool, callers) or ((by := author()) and self.is_within(by, asking))):
                tools = sorted(each.lease.tools or ())
                hint = "use one of " + ", ".join(tools[:20]) if tools else None
                changed = next((name for name, _ in callers if name in each.lease.versions), None)
                if changed is not None:
                    hint = f"{changed} has changed since the session was opened; a new session covers its calls again"
                message = f"{brief(tool, 100)} is not among the tools of the session's lease"
                raise _denied("lease.tools", message, hint, tool)

    def afford(self, line: Line, tool: str, quota: float = float("inf")) -> None:
        """Require that no budget is used up, and that the service may store anything more for the session and its parents, each of
        which has the `quota`, in bytes.

        Raises:
            Failure: `budget_exceeded`.
        """
        self.demand_room(line, quota)
        for each in line:
            for unit, most in each.lease.budget.as_dict().items():
                if each.used.get(unit, 0) >= most:
                    raise Failure(
                        "budget_exceeded",
                        f"the session's budget of {most:,g} {unit.replace('_', ' ')} is used up",
                        hint="ask for a session with a larger budget",
                        rule=f"lease.budget.{unit}",
                        tool=tool,
                        details={"unit": unit, "budget": most, "used": each.used.get(unit, 0)},
                    )

    def demand_room(self, line: Line, quota: float, size: int = 1) -> None:
        """Require that the service may store `size` more bytes for a session and its parents. See `afford`."""
        used = self.stored(line)
        if used + size > quota:
            more = f"{size:,} more are too many" if size > 1 else "it may do nothing more"
            raise Failure(
                "budget_exceeded",
                f"the service has stored {used:,.0f} of the {quota:,.0f} bytes that it may store for this session, and {more}",
                hint="ask for a new session; the owner's rule `records: {session_mb: …}` in governance.yaml allows more",
                rule=QUOTA,
                details={"unit": STORED, "budget": quota, "used": used},
            )

    def stored(self, line: Line) -> float:
        """The bytes that the service has stored for the session, or for the one of its parents for which it has stored most."""
        return max((each.used.get(STORED, 0) for each in line), default=0)

    def store(self, session: Session, ref: str, size: int, quota: float) -> None:
        """Charge a value, in whole blocks, before it is stored. If it has a reference, the session may read it from then on.

        A value that the session may read already costs nothing.

        Raises:
            Failure: `budget_exceeded`: the session, or one that it is within, has no room for it; `io_error`.
        """
        with self._ledger.transaction():
            if ref and self.has_stored(session, ref):
                return
            size = on_disk(size)
            self.demand_room(self.line(session.id), quota, size)
            entry = {"session": session.id, "stored": [ref] if ref else [], "used": {STORED: size}}
            self._ledger.append("stored", entry)

    def has_stored(self, session: Session, ref: str) -> bool:
        """Whether the session may read a value: it, or a session within it, has stored or got it."""
        # A run that was resumed reads what its session has stored.
        mine = session.parent if session.grant and session.parent else session.id
        return self._ledger.sessions.has_stored(mine, ref)

    def refused_lately(self, what: Hashable) -> bool:
        """Whether this was asked about the same thing in the last minute.

        The entry of a refusal is stored, too. So a session whose quota is used up has one a minute, and so has a token of a session
        that has ended.
        """
        now = self._clock()
        if now - self._refused.get(what, float("-inf")) < _REFUSALS_SECONDS:
            return True
        self._refused[what] = now
        return False

    def left(self, line: Line, unit: str) -> float:
        """The remaining amount of a unit: the minimum of the session and its parents."""
        lefts = [
            most - each.used.get(unit, 0) for each in line if (most := getattr(each.lease.budget, unit)) is not None
        ]
        return max(0.0, min(lefts, default=float("inf")))

    def lineage(self, line: Line) -> list[str]:
        """The ids of a session and its parents, starting with the session itself. Sessions from `grant` are left out; their
        parents count."""
        return [s.id for s in line if not s.grant]

    def seen(self, line: Line, excluding: str | None = None) -> dict[str, str]:
        """What a session and its parents have seen now, of `flow_rules.SEEN`, each with an example. What only the request with the
        id `excluding` has seen is left out."""
        return self._ledger.sessions.seen([s.id for s in line], excluding)

    def outermost(self, session: str) -> str:
        """The id of the outermost session around the one with this id; the id itself if there is no such session."""
        return next((each.id for each in reversed(self.line(session))), session)

    def is_within(self, session: str, above: str) -> bool:
        """Whether the session with the id `session` is the one with the id `above`, or within it."""
        return any(each.id == above for each in self.line(session))

    def seconds(self, line: Line) -> float:
        """Seconds until the session expires or has used up its `wall_seconds`."""
        return min(self.left(line, "wall_seconds"), line[0].lease.expires - self._clock())

    def complete(self, session: str) -> str:
        """The id of the session whose id has this beginning.

        Raises:
            Failure: `not_found`; `invalid_arguments` if several ids have this beginning.
        """
        ids = [row.data["session"] for row in self._ledger.sessions.all()]
        return only_one(session, ids, "session", "albert session list")

    def end(self, session: str) -> Session:
        """Revoke a session and its nested sessions, by its id or the beginning of the id. Their open questions are closed.

        Raises as `complete`.
        """
        session_id, ledger = self.complete(session), self._ledger
        if (known := self.line(session_id)[0]).ended:
            ledger.durable()  # Another process may have ended it, and still wait for the disk.
            return known  # Its questions are closed.
        with ledger.transaction():
            n = ledger.append("session_ended", {"session": session_id})
            for row in ledger.approvals.all(("open",)):
                if self.is_within(row.data.get("session", ""), session_id):
                    n = ledger.append("approval_revoked", {"approval": row.data["approval"]})
        ledger.durable(n)
        return self.line(session_id)[0]

    def all(self) -> list[Session]:
        """All sessions, newest first. `ended` is True if the session can't be used any more."""
        by_id = {session.id: session for session in map(session_of, self._ledger.sessions.all())}
        now = self._clock()

        def ended(session: Session) -> bool:
            above = by_id.get(session.parent or "")
            return session.ended or now >= session.lease.expires or (above is not None and ended(above))

        sessions = [replace(session, ended=ended(session)) for session in by_id.values()]
        return sorted(sessions, key=lambda s: s.created, reverse=True)


def _within(lease: Lease, above: Session, as_long: bool) -> Lease:
    """The lease of a session whose parent is `above`. The parent must have at least as much. With `as_long`, both expire together.

    Raises:
        Failure: `permission_denied`.
    """
    have = above.lease
    if lease.tools is None:
        lease = replace(lease, tools=have.tools, versions=have.versions)
    elif have.tools is not None and not lease.tools <= have.tools:
        more = ", ".join(sorted(lease.tools - have.tools)[:10])
        raise _denied(
            "lease.tools",
            f"the session above may not use {more}",
            "a session within another gets at most what that one has",
        )
    if as_long or lease.expires > have.expires:
        lease = replace(lease, expires=have.expires)
    for unit, most in have.budget.as_dict().items():
        asked, left = getattr(lease.budget, unit), max(0.0, most - above.used.get(unit, 0))
        if asked is not None and asked > left:
            raise _denied(
                f"lease.budget.{unit}",
                f"the session above has {left:,g} {unit.replace('_', ' ')} left",
                "a session within another gets at most what that one has",
            )
    return lease


def _check_arguments(client: Any, cwd: Any, tools: Any, seconds: Any) -> None:
    mistake = ""
    if not isinstance(client, str) or not 0 < len(client) <= MAX_CLIENT or not client.isprintable():
        mistake = f"a client is a name of at most {MAX_CLIENT} characters"
    elif not isinstance(cwd, str) or len(cwd) > MAX_CWD or "\0" in cwd:
        mistake = f"a working directory is a path of at most {MAX_CWD} characters"
    elif tools is not None and (len(tools) > MAX_TOOLS or not all(isinstance(t, str) for t in tools)):
        mistake = f"a lease names at most {MAX_TOOLS} tools"
    elif seconds is not None and not (type(seconds) in (int, float) and 0 < seconds < 2**40):
        mistake = "a session lives for a number of seconds"
    if mistake:
        raise Failure("invalid_arguments", mistake)


def new_id() -> str:
    """The id of a new session."""
    return os.urandom(_ID_BYTES).hex()


def _of_run(run: str) -> str:
    return f"run {run}"


def _hash(token: str) -> str:
    # Random tokens of 256 bits can't be guessed, so a fast hash is enough.
    return hashlib.sha256(_bytes(token)).hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _denied(rule: str, message: str, hint: str | None = None, tool: str | None = None) -> Failure:
    return Failure("permission_denied", message, hint=hint, rule=rule, tool=tool)

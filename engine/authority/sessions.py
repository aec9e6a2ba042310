"""Sessions and their leases. A session is the identity under which calls are made.

The owner or an application opens a session and gives it a *lease*: the permitted tools, the expiry time, and the budget. The
session's token is returned once. The record contains only a hash of the token, so a reader of the record can't use the session. A
session can be opened within a parent session. It can't get more than its parent has, and its usage is charged to all its parents
too.

Sessions and their usage are entries of the ledger. Calls without a session are the owner's own calls.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import only_one
from albert_tools.engine.model.protocols import Following, Ledger
from albert_tools.engine.model.record_types import Entry

#: The beginning of each token. Redaction uses it to find tokens in a text.
TOKEN_PREFIX = "alb_"
_TOKEN_BYTES = 32
#: The most characters of a client's name, the most characters of a folder's path, and the most tools in a lease.
MAX_CLIENT, MAX_CWD, MAX_TOOLS = 256, 4096, 1000
#: The greatest depth of nested sessions.
MAX_SESSION_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a session may use in total; None means unlimited. The names contain the units. `model_cost` is in the
    configured currency."""

    calls: float | None = None
    wall_seconds: float | None = None
    bytes_written: float | None = None
    network_bytes: float | None = None
    model_tokens: float | None = None
    model_cost: float | None = None

    def __post_init__(self) -> None:
        for name in UNITS:
            value = getattr(self, name)
            if value is not None and not (type(value) in (int, float) and 0 <= value < 2**53):
                raise Failure(
                    "invalid_arguments", f"the budget of {name} can't be {value!r}", hint="give a number, 0 or more"
                )

    def as_dict(self) -> dict[str, Json]:
        """The limited units with their limits."""
        return {name: value for name in UNITS if (value := getattr(self, name)) is not None}


#: The units that a budget can limit.
UNITS: tuple[str, ...] = tuple(f.name for f in fields(Budget))


@dataclass(frozen=True, slots=True)
class Lease:
    """What a session may do: call `tools` (None: all tools), until `expires` (seconds since 1970), within `budget`."""

    tools: frozenset[str] | None = None
    expires: float = float("inf")
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Session:
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
    created: str = ""
    ended: bool = False
    used: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form, without the hash of the token."""
        opened = _opened(self)
        if opened["expires"] is not None:
            opened["expires"] = datetime.fromtimestamp(self.lease.expires, UTC).isoformat()
        return opened | {"used": dict(self.used), "created": self.created, "ended": self.ended}


@dataclass(slots=True)
class _Known:
    """A session and its state, computed from the ledger."""

    session: Session
    hash: str
    ended: bool = False
    used: dict[str, float] = field(default_factory=dict)


class SessionsFold:
    """All sessions of a home, computed from entries of kind ``session``, ``session_ended`` and ``use``."""

    name = "sessions"
    version = 1
    kinds = frozenset({"session", "session_ended", "use"})

    def __init__(self) -> None:
        self.by_id: dict[str, _Known] = {}
        self.by_hash: dict[str, str] = {}

    def apply(self, entry: Entry) -> None:
        """Apply an entry."""
        data = entry.data
        if entry.kind == "session":
            known = _Known(_session(data, entry.at), data["hash"])
            self.by_id[known.session.id] = known
            self.by_hash[known.hash] = known.session.id
        elif entry.kind == "session_ended":
            if data["session"] in self.by_id:
                self.by_id[data["session"]].ended = True
        else:
            self._use(data.get("session"), data.get("used", {}))

    def _use(self, session: str | None, used: Mapping[str, float]) -> None:
        for known in self.chain(session):
            for unit, amount in used.items():
                if unit in UNITS:
                    known.used[unit] = known.used.get(unit, 0) + amount

    def chain(self, session: str | None) -> list[_Known]:
        """A session and all its parents, starting with the session itself."""
        found: list[_Known] = []
        while session is not None and session in self.by_id and len(found) <= MAX_SESSION_DEPTH:
            found.append(self.by_id[session])
            session = found[-1].session.parent
        return found

    def dump(self) -> Json:
        """The state as JSON."""
        return [
            {
                **_opened(known.session),
                "hash": known.hash,
                "at": known.session.created,
                "ended": known.ended,
                "used": known.used,
            }
            for known in self.by_id.values()
        ]

    def load(self, state: Json) -> None:
        """Replace the state by one from `dump`."""
        self.by_id, self.by_hash = {}, {}
        for data in state:
            known = _Known(_session(data, data["at"]), data["hash"], data["ended"], dict(data["used"]))
            self.by_id[known.session.id] = known
            self.by_hash[known.hash] = known.session.id


def _opened(session: Session) -> dict[str, Json]:
    """The session as it was opened."""
    lease = session.lease
    return {
        "session": session.id,
        "client": session.client,
        "workspace": session.workspace,
        "cwd": session.cwd,
        "tools": None if lease.tools is None else sorted(lease.tools),
        "expires": None if lease.expires == float("inf") else lease.expires,
        "budget": lease.budget.as_dict(),
        "parent": session.parent,
        "grant": session.grant,
    }


def _session(data: Mapping[str, Any], created: str) -> Session:
    expires = data["expires"]
    lease = Lease(
        None if data["tools"] is None else frozenset(data["tools"]),
        float("inf") if expires is None else expires,
        Budget(**data["budget"]),
    )
    return Session(
        data["session"], data["client"], data["workspace"], data["cwd"], lease, data["parent"], data["grant"], created
    )


class Sessions:
    """The sessions of a home. They are stored in the ledger."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock
        self._fold = SessionsFold()
        self._following: Following = ledger.follow(self._fold)

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

        Raises:
            Failure: `invalid_arguments`; `permission_denied` if the parent is unknown, has ended, or has less than requested.
        """
        _check_arguments(client, cwd, tools, seconds)
        now = self._clock()
        expires = float("inf") if seconds is None else now + seconds
        lease = Lease(tools, expires, budget or Budget())
        parent = None
        if within is not None:
            above = self.find(within, workspace)
            parent = above.id
            if len(self._fold.chain(parent)) >= MAX_SESSION_DEPTH:
                raise _denied("session.depth", f"sessions can be nested at most {MAX_SESSION_DEPTH} deep")
            lease = _within(lease, above, seconds is None)
        token = TOKEN_PREFIX + os.urandom(_TOKEN_BYTES).hex()
        session = Session(os.urandom(8).hex(), client, workspace, cwd, lease, parent)
        self._ledger.durable(self._ledger.append("session", _opened(session) | {"hash": _hash(token)}))
        self._following.look()
        return self._shown(self._fold.by_id[session.id]), token

    def grant(self, session: Session, run: str, expires: float) -> Session:
        """Create a session without a token for a waiting run, until `expires`. It gets the tools and the remaining budget of
        `session`.

        Raises:
            Failure: `io_error`.
        """
        self._following.look()
        budget = Budget(**{unit: left for unit in UNITS if (left := self.left(session, unit)) != float("inf")})
        lease = Lease(session.lease.tools, expires, budget)
        parent = session.id if not session.grant else session.parent
        made = Session(os.urandom(8).hex(), _of_run(run), session.workspace, session.cwd, lease, parent, True)
        # No token can have this hash.
        self._ledger.durable(self._ledger.append("session", _opened(made) | {"hash": f"run:{made.id}"}))
        self._following.look()
        return self._shown(self._fold.by_id[made.id])

    def find(self, token: str, workspace: str | None) -> Session:
        """The active session of a token, for use in `workspace`.

        Raises:
            Failure: `permission_denied`: the session is unknown, has ended, or belongs to another workspace. The rule says which.
        """
        self._following.look()
        found = self._fold.by_hash.get(_hash(token)) if isinstance(token, str) else None
        if found is None:
            raise _denied("session.unknown", "there is no such session", "open one with `albert session new`")
        return self._active(found, workspace)

    def find_for_run(self, session: str, workspace: str | None, run: str) -> Session:
        """The active session of a run, by the id of the session. A session from `grant` works only for its own run. Raises as
        `find`."""
        self._following.look()
        known = self._fold.by_id.get(session) if isinstance(session, str) else None
        if known is None or (known.session.grant and known.session.client != _of_run(run)):
            raise _denied("session.unknown", "the session of this run no longer exists")
        return self._active(session, workspace)

    def _active(self, session: str, workspace: str | None) -> Session:
        now = self._clock()
        granted = False
        for known in self._fold.chain(session):
            which = "the session" if known.session.id == session else "a session that it is within"
            if known.ended:
                raise _denied("session.ended", f"{which} has been revoked", "open a new one")
            if now >= known.session.lease.expires and not granted:
                raise _denied("session.expired", f"{which} has expired", "open a new one")
            granted = granted or known.session.grant
        known = self._fold.by_id[session]
        if workspace is not None and known.session.workspace != workspace:
            raise _denied("session.workspace", "the session is for another workspace")
        return self._shown(known)

    def demand(self, session: Session, tool: str) -> None:
        """Require that the session is active and that its lease includes the tool.

        Raises:
            Failure: `permission_denied`.
        """
        self._following.look()
        self._active(session.id, None)
        for known in self._fold.chain(session.id):
            lease = known.session.lease
            if lease.tools is not None and tool not in lease.tools:
                raise _denied(
                    "lease.tools",
                    f"{tool} is not among the tools of the session's lease",
                    "use one of " + ", ".join(sorted(lease.tools)[:20]) if lease.tools else None,
                    tool,
                )

    def afford(self, session: Session, tool: str) -> None:
        """Require that no budget is used up.

        Raises:
            Failure: `budget_exceeded`.
        """
        self._following.look()
        for known in self._fold.chain(session.id):
            for unit, most in known.session.lease.budget.as_dict().items():
                if known.used.get(unit, 0) >= most:
                    raise Failure(
                        "budget_exceeded",
                        f"the session's budget of {most:,g} {unit.replace('_', ' ')} is used up",
                        hint="ask for a session with a larger budget",
                        rule=f"lease.budget.{unit}",
                        tool=tool,
                        details={"unit": unit, "budget": most, "used": known.used.get(unit, 0)},
                    )

    def left(self, session: Session, unit: str) -> float:
        """The remaining amount of a unit: the minimum of the session and its parents."""
        self._following.look()
        lefts = [
            most - known.used.get(unit, 0)
            for known in self._fold.chain(session.id)
            if (most := getattr(known.session.lease.budget, unit)) is not None
        ]
        return max(0.0, min(lefts, default=float("inf")))

    def bounded(self, session: Session, unit: str) -> list[str]:
        """The ids of the session and its parents, if they have a budget for the unit."""
        chain = self._fold.chain(session.id)
        return [k.session.id for k in chain if getattr(k.session.lease.budget, unit) is not None]

    def lineage(self, session: Session) -> list[str]:
        """The ids of a session and its parents, starting with the session itself. Sessions from `grant` are left out; their
        parents count."""
        return [known.session.id for known in self._fold.chain(session.id) if not known.session.grant]

    def seconds(self, session: Session) -> float:
        """Seconds until the session expires or has used up its `wall_seconds`."""
        return min(self.left(session, "wall_seconds"), session.lease.expires - self._clock())

    def end(self, session: str) -> Session:
        """Revoke a session and its nested sessions, by its id or the beginning of the id.

        Raises:
            Failure: `not_found`; `invalid_arguments` if several ids have this beginning.
        """
        self._following.look()
        found = only_one(session, self._fold.by_id, "session", "albert session list")
        self._ledger.durable(self._ledger.append("session_ended", {"session": found}))
        self._following.look()
        return self._shown(self._fold.by_id[found])

    def all(self) -> list[Session]:
        """All sessions, newest first. `ended` is True if the session can't be used any more."""
        self._following.look()
        found = []
        for known in self._fold.by_id.values():
            gone = any(k.ended or self._clock() >= k.session.lease.expires for k in self._fold.chain(known.session.id))
            found.append(replace(self._shown(known), ended=gone))
        return sorted(found, key=lambda s: s.created, reverse=True)

    @staticmethod
    def _shown(known: _Known) -> Session:
        return replace(known.session, ended=known.ended, used=dict(known.used))


def _within(lease: Lease, above: Session, as_long: bool) -> Lease:
    """The lease of a session whose parent is `above`. The parent must have at least as much. With `as_long`, both expire together.

    Raises:
        Failure: `permission_denied`.
    """
    have = above.lease
    if lease.tools is None:
        lease = replace(lease, tools=have.tools)
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


def _of_run(run: str) -> str:
    return f"run {run}"


def _hash(token: str) -> str:
    # Random tokens of 256 bits can't be guessed, so a fast hash is enough.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _denied(rule: str, message: str, hint: str | None = None, tool: str | None = None) -> Failure:
    return Failure("permission_denied", message, hint=hint, rule=rule, tool=tool)

"""Sessions: on whose behalf a call is made, and how far that goes.

Whoever opens a session, the owner or an application, gives it a *lease*: which tools, until when, with how large a budget. The
token is told once and kept as a hash, so nobody who reads the records can use it. A session opened by another is within it: it
can be given less, never more, and what it uses is taken from all above it as well.

Sessions are entries of the log, and so is what they use. Calls without a session are the owner's own.
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

#: What a token begins with, so that one in a text is recognised.
TOKEN_PREFIX = "alb_"
_TOKEN_BYTES = 32
#: Characters of a client's name, of a folder's path; tools that a lease names.
MAX_CLIENT, MAX_CWD, MAX_TOOLS = 256, 4096, 1000
#: Sessions within sessions.
MAX_SESSION_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be used in all; None is without end. The names say the units; `model_cost` is in the configured money."""

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
                raise Failure("invalid_arguments", f"{value!r} is no budget of {name}", hint="give a number, 0 or more")

    def as_dict(self) -> dict[str, Json]:
        """What is bounded, by name."""
        return {name: value for name in UNITS if (value := getattr(self, name)) is not None}


#: What a budget counts.
UNITS: tuple[str, ...] = tuple(f.name for f in fields(Budget))


@dataclass(frozen=True, slots=True)
class Lease:
    """What a session may: `tools` by name, None for all; until `expires` (seconds since 1970); within `budget`."""

    tools: frozenset[str] | None = None
    expires: float = float("inf")
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Session:
    """A session. `cwd` is the folder, in the workspace, that relative paths begin in; `parent` the session it is within."""

    id: str
    client: str
    workspace: str
    cwd: str = ""
    lease: Lease = field(default_factory=Lease)
    parent: str | None = None
    #: Whether it is what is left of another to a run that waits: it outlives that one's lease, though not its end.
    grant: bool = False
    created: str = ""
    ended: bool = False
    used: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form, without what could be used as a token."""
        expires = self.lease.expires
        return {
            "session": self.id,
            "client": self.client,
            "workspace": self.workspace,
            "cwd": self.cwd,
            "tools": None if self.lease.tools is None else sorted(self.lease.tools),
            "expires": None if expires == float("inf") else datetime.fromtimestamp(expires, UTC).isoformat(),
            "budget": self.lease.budget.as_dict(),
            "used": dict(self.used),
            "parent": self.parent,
            "grant": self.grant,
            "created": self.created,
            "ended": self.ended,
        }


@dataclass(slots=True)
class _Kept:
    """A session as the log has it."""

    session: Session
    hash: str
    ended: bool = False
    used: dict[str, float] = field(default_factory=dict)


class SessionsFold:
    """All sessions of a home: kinds ``session``, ``session_ended`` and ``use``."""

    name = "sessions"
    version = 1
    kinds = frozenset({"session", "session_ended", "use"})

    def __init__(self) -> None:
        self.by_id: dict[str, _Kept] = {}
        self.by_hash: dict[str, str] = {}

    def apply(self, entry: Entry) -> None:
        """Take an entry in."""
        data = entry.data
        if entry.kind == "session":
            kept = _Kept(_session(data, entry.at), data["hash"])
            self.by_id[kept.session.id] = kept
            self.by_hash[kept.hash] = kept.session.id
        elif entry.kind == "session_ended":
            if data["session"] in self.by_id:
                self.by_id[data["session"]].ended = True
        else:
            self._use(data.get("session"), data.get("used", {}))

    def _use(self, session: str | None, used: Mapping[str, float]) -> None:
        for kept in self.chain(session):
            for unit, amount in used.items():
                if unit in UNITS:
                    kept.used[unit] = kept.used.get(unit, 0) + amount

    def chain(self, session: str | None) -> list[_Kept]:
        """A session and those it is within, itself first."""
        found: list[_Kept] = []
        while session is not None and session in self.by_id and len(found) <= MAX_SESSION_DEPTH:
            found.append(self.by_id[session])
            session = found[-1].session.parent
        return found

    def dump(self) -> Json:
        """The state as JSON."""
        return [
            {**_document(kept.session, kept.hash), "at": kept.session.created, "ended": kept.ended, "used": kept.used}
            for kept in self.by_id.values()
        ]

    def load(self, state: Json) -> None:
        """Be in this state."""
        self.by_id, self.by_hash = {}, {}
        for data in state:
            kept = _Kept(_session(data, data["at"]), data["hash"], data["ended"], dict(data["used"]))
            self.by_id[kept.session.id] = kept
            self.by_hash[kept.hash] = kept.session.id


def _document(session: Session, hashed: str) -> dict[str, Json]:
    lease = session.lease
    return {
        "session": session.id,
        "hash": hashed,
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
    """The sessions of a home, as the log has them."""

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
        """A new session and its token, which is told here and nowhere else.

        Args:
            client: Who it is for, in a word.
            workspace: The only workspace it may be used in.
            cwd: Where relative paths begin, in the workspace.
            tools: What it may call; None for everything that the rules allow.
            seconds: How long it lives; None for as long as the one it is within, or for ever.
            budget: How much it may use.
            within: The token of a session that this one is taken from; it gets no more than that has.

        Raises:
            Failure: `invalid_arguments`; `permission_denied` where `within` is no living session, or has less than is asked for.
        """
        _demand_proper(client, cwd, tools, seconds)
        now = self._clock()
        expires = float("inf") if seconds is None else now + seconds
        lease = Lease(tools, expires, budget or Budget())
        parent = None
        if within is not None:
            above = self.find(within, workspace)
            parent = above.id
            if len(self._fold.chain(parent)) >= MAX_SESSION_DEPTH:
                raise _denied("session.depth", f"sessions are within one another at most {MAX_SESSION_DEPTH} deep")
            lease = _within(lease, above, seconds is None)
        token = TOKEN_PREFIX + os.urandom(_TOKEN_BYTES).hex()
        session = Session(os.urandom(8).hex(), client, workspace, cwd, lease, parent)
        self._ledger.durable(self._ledger.append("session", _document(session, _hash(token))))
        self._following.look()
        return self._shown(self._fold.by_id[session.id]), token

    def grant(self, session: Session, run: str, expires: float) -> Session:
        """What is left of a session to a run that waits, until `expires`: no token, its tools, and what it has not used yet.

        Raises:
            Failure: `io_error`.
        """
        self._following.look()
        budget = Budget(
            **{unit: left for unit in UNITS if (left := self.left(session, unit)) != float("inf")},
        )
        lease = Lease(session.lease.tools, expires, budget)
        parent = session.id if not session.grant else session.parent
        made = Session(os.urandom(8).hex(), _of_run(run), session.workspace, session.cwd, lease, parent, True)
        # No token has this hash: nobody can come with one.
        self._ledger.durable(self._ledger.append("session", _document(made, f"run:{made.id}")))
        self._following.look()
        return self._shown(self._fold.by_id[made.id])

    def find(self, token: str, workspace: str | None) -> Session:
        """The living session of a token, to be used in `workspace`.

        Raises:
            Failure: `permission_denied`, by rule: there is none, it has ended, or it is for another workspace.
        """
        self._following.look()
        found = self._fold.by_hash.get(_hash(token)) if isinstance(token, str) else None
        if found is None:
            raise _denied("session.unknown", "there is no such session", "open one with `albert session new`")
        return self._alive(found, workspace)

    def again(self, session: str, workspace: str | None, run: str) -> Session:
        """The living session of an id, for a run that it began; of grants only the run's own. Raises as `find`."""
        self._following.look()
        known = self._fold.by_id.get(session) if isinstance(session, str) else None
        if known is None or (known.session.grant and known.session.client != _of_run(run)):
            raise _denied("session.unknown", "there is no such session any more")
        return self._alive(session, workspace)

    def _alive(self, session: str, workspace: str | None) -> Session:
        now = self._clock()
        lasting = False
        for kept in self._fold.chain(session):
            whose = "the session" if kept.session.id == session else "a session that it is within"
            if kept.ended:
                raise _denied("session.ended", f"{whose} has been revoked", "open a new one")
            if now >= kept.session.lease.expires and not lasting:
                raise _denied("session.expired", f"{whose} has expired", "open a new one")
            lasting = lasting or kept.session.grant
        kept = self._fold.by_id[session]
        if workspace is not None and kept.session.workspace != workspace:
            raise _denied("session.workspace", "the session is for another workspace")
        return self._shown(kept)

    def demand(self, session: Session, tool: str) -> None:
        """Whether the session is still alive, and a tool within its lease.

        Raises:
            Failure: `permission_denied`.
        """
        self._following.look()
        self._alive(session.id, None)
        for kept in self._fold.chain(session.id):
            lease = kept.session.lease
            if lease.tools is not None and tool not in lease.tools:
                raise _denied(
                    "lease.tools",
                    f"{tool} is not among the tools of the session's lease",
                    "use one of " + ", ".join(sorted(lease.tools)[:20]) if lease.tools else None,
                    tool,
                )

    def afford(self, session: Session, tool: str) -> None:
        """Whether anything is left of the budget.

        Raises:
            Failure: `budget_exceeded`.
        """
        self._following.look()
        for kept in self._fold.chain(session.id):
            for unit, most in kept.session.lease.budget.as_dict().items():
                if kept.used.get(unit, 0) >= most:
                    raise Failure(
                        "budget_exceeded",
                        f"the session's budget of {most:,g} {unit.replace('_', ' ')} is used up",
                        hint="what is left to do needs a session with a larger budget",
                        rule=f"lease.budget.{unit}",
                        tool=tool,
                        details={"unit": unit, "budget": most, "used": kept.used.get(unit, 0)},
                    )

    def left(self, session: Session, unit: str) -> float:
        """How much of a budget is left: of the session's, and of those it is within."""
        self._following.look()
        lefts = [
            most - kept.used.get(unit, 0)
            for kept in self._fold.chain(session.id)
            if (most := getattr(kept.session.lease.budget, unit)) is not None
        ]
        return max(0.0, min(lefts, default=float("inf")))

    def bounded(self, session: Session, unit: str) -> list[str]:
        """The sessions, of it and those it is within, that have a budget of a unit: their ids."""
        chain = self._fold.chain(session.id)
        return [k.session.id for k in chain if getattr(k.session.lease.budget, unit) is not None]

    def line(self, session: Session) -> list[str]:
        """The ids of a session and of those it is within, itself first; a grant counts as the one that it is what is left of."""
        return [kept.session.id for kept in self._fold.chain(session.id) if not kept.session.grant]

    def seconds(self, session: Session) -> float:
        """How long the lease lets it go on: until its end, and by what is left of its seconds."""
        return min(self.left(session, "wall_seconds"), session.lease.expires - self._clock())

    def end(self, session: str) -> Session:
        """Revoke a session, by its id or the beginning of it, and with it those within it.

        Raises:
            Failure: `not_found`, `invalid_arguments` where several begin so.
        """
        self._following.look()
        found = only_one(session, self._fold.by_id, "session", "albert session list")
        self._ledger.durable(self._ledger.append("session_ended", {"session": found}))
        self._following.look()
        return self._shown(self._fold.by_id[found])

    def all(self) -> list[Session]:
        """Every session, the newest first; those that can't be used any more have `ended`."""
        self._following.look()
        found = []
        for kept in self._fold.by_id.values():
            gone = any(k.ended or self._clock() >= k.session.lease.expires for k in self._fold.chain(kept.session.id))
            found.append(replace(self._shown(kept), ended=gone))
        return sorted(found, key=lambda s: s.created, reverse=True)

    @staticmethod
    def _shown(kept: _Kept) -> Session:
        return replace(kept.session, ended=kept.ended, used=dict(kept.used))


def _within(lease: Lease, above: Session, as_long: bool) -> Lease:
    """What is asked for, if the session above has that much.

    Raises:
        Failure: `permission_denied`.
    """
    have = above.lease
    if lease.tools is None:
        lease = replace(lease, tools=have.tools)
    elif have.tools is not None and not lease.tools <= have.tools:
        more = ", ".join(sorted(lease.tools - have.tools)[:10])
        raise _denied("lease.tools", f"the session above may not use {more}", "a session within another gets no more")
    if as_long:
        lease = replace(lease, expires=have.expires)
    elif lease.expires > have.expires:
        lease = replace(lease, expires=have.expires)
    for unit, most in have.budget.as_dict().items():
        asked, left = getattr(lease.budget, unit), max(0.0, most - above.used.get(unit, 0))
        if asked is not None and asked > left:
            raise _denied(
                f"lease.budget.{unit}",
                f"the session above has {left:,g} {unit.replace('_', ' ')} left",
                "a session within another gets no more",
            )
    return lease


def _demand_proper(client: Any, cwd: Any, tools: Any, seconds: Any) -> None:
    wrong = ""
    if not isinstance(client, str) or not 0 < len(client) <= MAX_CLIENT or not client.isprintable():
        wrong = f"a client is a name of at most {MAX_CLIENT} characters"
    elif not isinstance(cwd, str) or len(cwd) > MAX_CWD or "\0" in cwd:
        wrong = f"a working directory is a path of at most {MAX_CWD} characters"
    elif tools is not None and (len(tools) > MAX_TOOLS or not all(isinstance(t, str) for t in tools)):
        wrong = f"a lease names at most {MAX_TOOLS} tools"
    elif seconds is not None and not (type(seconds) in (int, float) and 0 < seconds < 2**40):
        wrong = "a session lives for a number of seconds"
    if wrong:
        raise Failure("invalid_arguments", wrong)


def _of_run(run: str) -> str:
    return f"run {run}"


def _hash(token: str) -> str:
    # Random tokens of 256 bits need no slow hash: there is nothing to guess.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _denied(rule: str, message: str, hint: str | None = None, tool: str | None = None) -> Failure:
    return Failure("permission_denied", message, hint=hint, rule=rule, tool=tool)

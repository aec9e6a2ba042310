"""Approvals: questions to a person, and their answers.

A question is written to the ledger before it is shown to anybody, and so is its answer. A person can answer during the call, or
later from another process. The first answer counts. A yes covers one action, identified by its hash, and can be used once. The
person can also give a lasting answer:

* ``session`` covers the same call in this session. If a composite makes the call, it covers all calls of this tool by this
  version of the composite.
* ``always`` covers all calls of this tool by this version of a composite, because the calls and effects of a version are pinned.
  A direct call has no such limits. So the answer ``always`` is not possible for a direct call, and an answer to a direct call
  doesn't cover a composite.

A lasting answer applies only in the mode in which it was given. Lasting answers are listed and can be revoked.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from albert_tools.engine.authority.authorization import CHOICES, Choice
from albert_tools.engine.model.definition import Json, digest, json_form
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import only_one
from albert_tools.engine.model.protocols import Record
from albert_tools.engine.model.record_types import ApprovalRow

State = Literal["open", "yes", "no", "used", "expired", "revoked", "standing"]

#: Seconds until a question, or an unused answer, expires.
OPEN_SECONDS = 7 * 24 * 3600.0
#: The most open questions of a session and the sessions within it. Nobody reads more, and each is stored with its arguments.
MAX_OPEN = 100
#: The questions on one page of the queue.
PAGE = 50


class Scope(Struct, frozen=True):
    """The calls that a lasting answer covers. `trail` are the versions of the composites that make the call; empty for a direct
    call.

    `asks` are the rules that ask, each with its subject. The subject is the part of the call that the rule asks about, such as a
    host; it is empty for the whole call. An answer to one rule doesn't answer another rule.
    """

    tool: str
    version: str
    session: str
    mode: str
    trail: tuple[str, ...] = ()
    arguments: str = ""
    asks: tuple[tuple[str, str], ...] = ()

    def key(self, choice: Choice) -> str:
        """A key that is equal for all calls that the answer `choice` covers."""
        parts: list[Json] = [choice, self.tool, self.version, self.mode, list(self.trail), [list(a) for a in self.asks]]
        if choice == "session":
            parts.append(self.session)
        if not self.trail and not (self.asks and all(subject for _, subject in self.asks)):
            parts.append(self.arguments)
        return digest(parts)


class Approval(Struct, frozen=True, rename={"id": "approval", "rule": "rule_id"}):
    """A question and its answer. `asked` and `expires` are seconds since 1970. `arguments` are redacted."""

    id: str
    action: str
    tool: str
    version: str
    arguments: Json
    rule: str
    message: str
    asked: float
    expires: float
    reason: str = ""
    risk: str = ""
    callers: tuple[str, ...] = ()
    trail: tuple[str, ...] = ()
    session: str = ""
    run: str = ""
    step: str = ""
    keys: Mapping[str, str] | None = None
    state: State = "open"
    choice: Choice | None = None
    by: str = ""
    #: The workspace of the call.
    workspace: str = ""
    #: The earlier question about the same step that this question replaces, because the action has changed.
    instead_of: str = ""
    #: The call that used the answer.
    used_by: str = ""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The possible answers."""
        return tuple(c for c in CHOICES if c in ("once", "no") or c in (self.keys or {}))

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        form: dict[str, Json] = json_form(self)
        for name in ("action", "trail", "keys"):
            del form[name]
        return form | {"choices": list(self.choices)}


def _approval(data: Mapping[str, Any], **state: Any) -> Approval:
    """The approval with the facts of its entry, and its state."""
    known = {name: data[name] for name in Approval.__struct_fields__ if name in data}
    renamed = {"id": data["approval"], "rule": data["rule_id"]}
    return Approval(**known | renamed | {name: tuple(data[name]) for name in ("callers", "trail")} | state)


class Approvals:
    """The approvals of a home. They are stored in the ledger."""

    def __init__(self, ledger: Record, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock

    def ask(self, facts: Mapping[str, Json], scope: Scope | None, until: float = float("inf")) -> Approval:
        """Record a question, or return the open question about the same action.

        An earlier question about the same step of the same run is revoked, because the action has changed.

        Args:
            facts: The redacted facts of an `Approval`: ``action``, ``tool``, ``version``, ``arguments``, ``rule_id``, ``message``,
                ``reason``, ``risk``, ``callers``, ``trail``, ``session``, ``run``, ``step``, ``workspace``.
            scope: The calls that a lasting answer covers; None if lasting answers are not possible.
            until: When the question expires at the latest, in seconds since 1970.

        Raises:
            Failure: `rate_limited` if the session, or one that it is within, already has `MAX_OPEN` open questions;
                `permission_denied` if the session was ended; `io_error`, `damaged`.
        """
        with self._ledger.transaction():
            known = self.about(str(facts["action"]))
            if known is not None and known.state == "open":
                return known
            if facts.get("session"):
                self._demand_room(facts["session"])
            instead_of = ""
            for instead_of in self._ledger.approvals.of_step(str(facts["run"]), str(facts["step"])):
                self._ledger.append("approval_revoked", {"approval": instead_of})
            now = self._clock()
            choices: tuple[Choice, ...] = ("session", "always") if scope is not None and scope.trail else ("session",)
            keys: dict[str, Json] = {} if scope is None else {choice: scope.key(choice) for choice in choices}
            expires = min(now + OPEN_SECONDS, until)
            data = {**facts, "approval": os.urandom(6).hex(), "asked": now, "expires": expires, "keys": keys}
            data["instead_of"] = instead_of
            n = self._ledger.append("asked", data)
        self._ledger.durable(n)
        return _approval(data)

    def _demand_room(self, session: Json) -> None:
        """Refuse a question of a session that was ended, and one more question of a session that has asked too many."""
        line = self._ledger.sessions.line(str(session))
        if any(row.ended for row in line):
            # It ended while the call was judged. Its other questions are closed already.
            raise Failure(
                "permission_denied", "the session has been revoked", hint="open a new one", rule="session.ended"
            )
        lines = self._lines(self.all(("open",)))
        asked = Counter(each for ids in lines for each in ids)
        for each in [row.data["session"] for row in line] or [session]:
            if asked[each] >= MAX_OPEN:
                within = "" if each == session else " that this one is within"
                raise Failure(
                    "rate_limited",
                    f"the session{within} already waits for {MAX_OPEN} answers",
                    hint="wait until a person has answered some of them (`albert approvals list` lists them)",
                    retryable=True,
                    rule="approval.open_questions",
                )

    def tops(self, sessions: Iterable[str]) -> dict[str, str]:
        """For the id of each session, that of the one at its top; an empty id is the owner."""
        lines = {session: self._ledger.sessions.line(session) for session in {*sessions} if session}
        return {"": ""} | {session: rows[-1].data["session"] if rows else session for session, rows in lines.items()}

    def _lines(self, approvals: Sequence[Approval]) -> list[tuple[str, ...]]:
        """For each approval, the ids of its session and of the sessions above it; ("",) for a call of the owner."""
        known: dict[str, tuple[str, ...]] = {}
        for session in {approval.session for approval in approvals}:
            rows = self._ledger.sessions.line(session) if session else []
            known[session] = tuple(row.data["session"] for row in rows) or (session,)
        return [known[approval.session] for approval in approvals]

    def queue(self, states: Sequence[State] = ("open", "yes", "standing")) -> list[Approval]:
        """The approvals in one of `states`: open questions first.

        The order is fair, so that no session hides the questions of others: first the oldest question of each session, then the
        second of each, and so on. A session and all sessions within it have one place together.
        """
        approvals = self.all(states)
        asked: Counter[tuple[bool, str]] = Counter()
        places = []
        for approval, line in zip(approvals, self._lines(approvals), strict=True):
            answered = approval.state != "open"
            places.append((answered, asked[answered, line[-1]], approval.asked, approval))
            asked[answered, line[-1]] += 1
        return [approval for *_, approval in sorted(places, key=lambda place: place[:3])]

    def about(self, action: str) -> Approval | None:
        """The approval of an action, if it is open or has an unused answer; None if a new question is needed."""
        known = self._read(self._ledger.approvals.about(action))
        return known if known is not None and known.state != "expired" else None

    def standing(self, scope: Scope) -> Approval | None:
        """The lasting answer that covers a call; None if there is no such answer."""
        choices: tuple[Choice, ...] = ("always", "session") if scope.trail else ("session",)
        for choice in choices:
            approval = self._read(self._ledger.approvals.standing(scope.key(choice)))
            if approval is not None:
                return approval
        return None

    @property
    def may_answer(self) -> bool:
        """Whether the person who uses this process may answer: in a database with roles, only a reviewer may."""
        return self._ledger.may("answered")

    def answer(self, approval: str, choice: Choice, by: str) -> Approval:
        """Answer a question. The first answer counts.

        Args:
            approval: The id of the question, or the beginning of the id.
            choice: One of the `choices` of the question.
            by: The name of the person, for the record.

        Raises:
            Failure: `not_found`; `exists` if the question has an answer; `invalid_arguments` for another choice; `timeout` if the
                question has expired.
        """
        with self._ledger.transaction():
            known = self.get(approval)
            if choice not in known.choices:
                why = "; a call made by hand can't be allowed for ever" if choice == "always" else ""
                possible = f"answer with one of {', '.join(known.choices)}"
                raise Failure("invalid_arguments", f"{choice!r} is not a possible answer{why}", hint=possible)
            if known.state == "expired":
                raise Failure(
                    "timeout", f"the question {known.id} has expired", hint="make the call again to ask a new question"
                )
            if known.state != "open":
                message = f"the question {known.id} has been answered: {known.choice or known.state}"
                if known.state == "revoked" and known.choice is None:
                    message = (
                        f"the question {known.id} is closed: it was withdrawn or replaced, or its session has ended"
                    )
                raise Failure("exists", message)
            # A forged question could have a key for "once", too.
            covers = (known.keys or {}).get(choice, "") if choice in ("session", "always") else ""
            data = {"approval": known.id, "choice": choice, "by": by[:256], "covers": covers}
            n = self._ledger.append("answered", data)
        self._ledger.durable(n)
        return self.get(known.id)

    def use(self, approval: Approval, call: str) -> None:
        """Mark an answer as used. Call this inside `Ledger.transaction`, together with the entry of the call that the answer
        allows.

        Raises:
            Failure: `permission_denied` if the answer is used, revoked or expired.
        """
        known = self.get(approval.id)
        if approval.state == "standing":
            if known.state != "standing":
                raise _gone(known)
            return
        if known.state not in ("yes", "no"):
            raise _gone(known)
        self._ledger.append("approval_used", {"approval": known.id, "call": call})

    def revoke(self, approval: str) -> Approval:
        """Revoke a question, an unused answer or a lasting answer.

        Raises:
            Failure: `not_found`; `exists` if it is already used or revoked.
        """
        with self._ledger.transaction():
            known = self.get(approval)
            over = known.state in ("used", "revoked")
            n = None if over else self._ledger.append("approval_revoked", {"approval": known.id})
        self._ledger.durable(n)
        if over:
            raise Failure("exists", f"the approval {known.id} is already {known.state}")
        return self.get(known.id)

    def get(self, approval: str) -> Approval:
        """Find an approval by its id or the beginning of the id.

        Raises:
            Failure: `not_found`; `invalid_arguments` if several ids have this beginning.
        """
        match = self._read(self._ledger.approvals.get(approval))
        if match is None:
            whole = only_one(approval, self._ledger.approvals.ids(approval), "approval", "albert approvals")
            match = self.get(whole)
        return match

    def all(self, states: Sequence[State] = ("open", "yes", "standing")) -> list[Approval]:
        """The approvals in one of `states`, oldest first."""
        stored = {*states, "open", "yes", "no"} if "expired" in states else states
        approvals = map(self._read, self._ledger.approvals.all(stored))
        return [approval for approval in approvals if approval is not None and approval.state in states]

    def _read(self, row: ApprovalRow | None) -> Approval | None:
        if row is None:
            return None
        state, choice, by, used_by, data = row
        if state in ("open", "yes", "no") and self._clock() >= data["expires"]:
            state = "expired"
        return _approval(data, state=state, choice=choice or None, by=by, used_by=used_by)


def _gone(approval: Approval) -> Failure:
    return Failure(
        "permission_denied",
        f"the approval {approval.id} is {approval.state}, so it allows nothing",
        hint="call again; a person is asked again",
        rule="approval",
        tool=approval.tool,
    )

"""A model of the rules runs beside the service, while modes, rules, sessions, answers and time change.

The model knows the mode, the last valid rules, the sessions with leases and budgets, the rate limits, the questions with
their answers, and the dedupe keys. It predicts the result of each call.

Two services on one home make calls by hand and by a program. They also answer, revoke and resume for each other. Both use one
clock that the test moves. After each step the test reads the ledger: every effect must have its decision before it, and no
budget or rate limit may be exceeded.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from albert_tools import SyncToolService, ToolResult, ToolService
from albert_tools.engine import service as engine
from albert_tools.engine.authority.projections import Projections
from albert_tools.engine.model.definition import MODES
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.session_budget import Budget
from albert_tools.engine.policy.modes import NEXT
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.record.verify import verify
from tests.helpers.effort import LONG
from tests.helpers.kill_points import HERE, Place, Points, entered

MANY = '''
def many(name: str) -> str:
    """Put one."""
    return tools.put(name=name)
'''

#: Rules about `put`: the text of the file, the decision by mode, and the calls per hour.
ALL = "[NORMAL, ALERT, DEGRADED, LOCKDOWN, RECOVERY]"
SHIPPED = {"NORMAL": "allow", "ALERT": "ask", "DEGRADED": "ask", "RECOVERY": "ask", "LOCKDOWN": "deny"}
POLICIES: list[tuple[str, dict[str, str], int | None]] = [
    ("", SHIPPED, None),
    ("tools: {put: {requires_approval_in_modes: [NORMAL, ALERT], allowed_in_modes: [DEGRADED]}}",
     {"NORMAL": "ask", "ALERT": "ask", "DEGRADED": "allow", "RECOVERY": "deny", "LOCKDOWN": "deny"}, None),
    ("deny: [put]", dict.fromkeys(MODES, "deny"), None),
    ("tools: {put: {rate_limit_per_hour: 3}}", SHIPPED, 3),
    ("tools: {put: {rate_limit_per_hour: 2, requires_approval_in_modes: [NORMAL]}}",
     {**dict.fromkeys(MODES, "deny"), "NORMAL": "ask"}, 2),
]  # fmt: skip
OPEN = [policy for policy in POLICIES if "deny" not in policy[0]]
INVALID = ["tools: {put: {rate_limit_per_hour: many}}", "{{{", "allowed: [put]", "deny: put\ndeny: put"]
#: In LOCKDOWN the service does not start a program.
PROGRAM = {**dict.fromkeys(MODES, "allow"), "LOCKDOWN": "deny"}

NAMES = st.sampled_from(["a", "b"])
KEYS = st.sampled_from(["k1", "k2"])
#: The number of a session, the newest first. The owner makes the call if there are fewer sessions.
WHOM = st.sampled_from([4, 4, 0, 0, 1])
WHICH = st.sampled_from([0, 1])
CHOICES = st.sampled_from(["once", "session", "always", "no"])


@dataclass
class Leased:
    """A session of the model."""

    id: str
    token: str
    tools: frozenset[str] | None
    expires: float
    calls: float
    parent: Leased | None
    used: int = 0
    ended: bool = False

    def chain(self) -> list[Leased]:
        return [self, *(self.parent.chain() if self.parent else [])]


@dataclass
class Asked:
    """A question: the session and the run that asked it, its action, and the calls that a lasting answer would cover."""

    id: str
    session: Leased | None
    run: str
    action: tuple[str, ...]
    scopes: dict[str, tuple[str, ...]]
    state: str = "open"
    choice: str = ""


@dataclass
class Waits:
    """A run that waits."""

    id: str
    tool: str
    name: str
    session: Leased | None
    key: str | None
    owner: str
    question: str
    over: bool = False


@dataclass
class Kept:
    """The call under a dedupe key."""

    tool: str
    name: str
    run: str | None
    code: str | None


@dataclass
class Plan:
    """The predicted result of a call. `code` is None for an effect. `question` is the question that the call waits for, or
    whose answer allows it."""

    code: str | None
    rule: str = ""
    question: Asked | None = None
    repeated: bool = False
    charges: list[tuple[str, ...]] = field(default_factory=list)


class Machine(RuleBasedStateMachine):
    template: Path
    runner: asyncio.Runner
    sandbox: Sandbox

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="albert-states-"))
        copytree(self.template, self.folder / "place")
        self.place = Place(self.folder / "place")
        self.file = self.folder / "governance.yaml"
        HERE[0] = Points()
        self.nanoseconds = time.time_ns()
        self.policy = POLICIES[0]
        self.mode = "NORMAL"
        self.sessions: list[Leased] = []
        self.asked: list[Asked] = []
        self.waiting: list[Waits] = []
        self.kept: dict[tuple[str, str], Kept] = {}
        self.times: dict[str, list[float]] = defaultdict(list)
        self.effects = 0
        self._write(self.policy[0])
        self.services = [self._service() for _ in range(2)]

    def _service(self) -> engine.ToolService:
        options = self.place.options()
        plain = ToolService.open(**{**options, "governance": str(self.file)})
        folder = plain.home.local.state / "log"
        ledger = Record(folder, nanoseconds=self._tick)
        context = replace(
            plain._context,
            ledger=ledger,
            runs=Runs(ledger),
            projections=Projections(ledger, plain.store, lambda: self.now),
        )
        return entered(engine.ToolService(plain.registry, plain.store, context, self.sandbox))

    def _tick(self) -> int:
        # Later entries have later times, in both services.
        self.nanoseconds += 2000
        return self.nanoseconds

    @property
    def now(self) -> float:
        return self.nanoseconds / 1e9

    def teardown(self) -> None:
        for service in self.services:
            if service.running._watching is not None:
                service.running._watching.cancel()
            for held in (service.ledger, service.workspace):
                held.close()
        assert verify(self.services[0].ledger.place).ok  # type: ignore[union-attr]
        rmtree(self.folder)

    def _write(self, text: str) -> None:
        # The model does not count failures in a row.
        into = f"loops: {{identical_failures: 1000}}\nprimitives: {{put: {{into: {str(self.place.into)!r}}}}}\n"
        fresh = self.file.with_suffix(".new")
        fresh.write_text(into + text + "\n")
        fresh.rename(self.file)

    # Changes.

    @initialize(
        policy=st.sampled_from([p for p in POLICIES if "deny" not in p[0]]),
        mode=st.sampled_from(["NORMAL", "ALERT", "DEGRADED"]),
    )
    def begins(self, policy: Any, mode: Any) -> None:
        self.edit(policy)
        self.switch(mode, 0)
        self.open_session(0, None, 5000, 5, 5)

    @rule(
        mode=st.sampled_from(["NORMAL", "DEGRADED", "NORMAL", "ALERT", "NORMAL", "RECOVERY", "LOCKDOWN"]), which=WHICH
    )
    def switch(self, mode: Any, which: int) -> None:
        modes = self.services[which].modes
        if self.mode == "LOCKDOWN" and mode == "DEGRADED":
            mode = "RECOVERY"
        if mode == self.mode or mode in NEXT[self.mode]:  # type: ignore[index]
            modes.switch(mode, "a person", "the test")
            self.mode = mode
        else:
            with pytest.raises(Failure):
                modes.switch(mode, "a person", "the test")

    @rule(policy=st.sampled_from([*POLICIES, *OPEN]))
    def edit(self, policy: Any) -> None:
        self._write(policy[0])
        self.policy = policy
        for service in self.services:
            service._context.authority  # noqa: B018

    @rule(text=st.sampled_from(INVALID))
    def spoil(self, text: str) -> None:
        self._write(text)
        for service in self.services:
            assert service._context.authority is not None
            assert service._context.rules.problem  # type: ignore[union-attr]

    @rule(seconds=st.sampled_from([1, 300, 1300]))
    def later(self, seconds: int) -> None:
        self.nanoseconds += seconds * 10**9

    @rule(
        which=WHICH,
        tools=st.sampled_from([None, frozenset({"put", "many"}), frozenset({"many"}), frozenset({"put"})]),
        seconds=st.sampled_from([900, 5000]),
        calls=st.sampled_from([None, 0, 2, 5]),
        within=st.integers(0, 5),
    )
    def open_session(self, which: int, tools: Any, seconds: int, calls: int | None, within: int) -> None:
        parent = self.sessions[within] if within < len(self.sessions) else None
        budget = Budget(calls=calls)
        token = parent.token if parent else None
        allowed = parent is None or (
            self._alive(parent)
            and (tools is None or parent.tools is None or tools <= parent.tools)
            and (calls is None or calls <= max(0.0, parent.calls - parent.used))
            and len(parent.chain()) < 8
        )
        wanted = {"tools": tools, "seconds": seconds, "budget": budget, "within": token}
        if not allowed:
            assert self._refused(lambda: self.services[which].open_session("test", **wanted)) == "permission_denied"
            return
        made, token = self.services[which].open_session("test", **wanted)
        expires = min(self.now + seconds, parent.expires if parent else float("inf"))
        least = float("inf") if calls is None else calls
        tools = parent.tools if parent and tools is None else tools
        self.sessions.append(Leased(made.id, token, tools, expires, least, parent))

    @precondition(lambda self: len(self.sessions) > 2)
    @rule(which=WHICH, index=st.integers(0, 5))
    def revoke_session(self, which: int, index: int) -> None:
        session = self.sessions[index % len(self.sessions)]
        self.services[which].sessions.end(session.id)
        session.ended = True
        for question in self.asked:
            if question.state == "open" and question.session is not None and session in question.session.chain():
                question.state = "revoked"

    @staticmethod
    def _refused(work: Callable[[], object]) -> str | None:
        """The code of the failure, or None."""
        try:
            work()
        except Failure as failure:
            return failure.code
        return None

    # Questions.

    @precondition(lambda self: self.asked)
    @rule(which=WHICH, index=st.integers(0, 3), choice=CHOICES)
    def answer(self, which: int, index: int, choice: Any) -> None:
        question = self.asked[-1 - index % len(self.asked)]
        code = self._refused(lambda: self.services[which].approvals.answer(question.id, choice, "the test"))
        if choice not in ("once", "no", *question.scopes):
            assert code == "invalid_arguments"
            return
        assert code == (None if question.state == "open" else "exists")
        if code is not None:
            return
        question.choice = choice
        question.state = {"once": "yes", "no": "no"}.get(choice, "standing")

    @precondition(lambda self: self.asked)
    @rule(which=WHICH, index=st.integers(0, 3))
    def revoke(self, which: int, index: int) -> None:
        question = self.asked[-1 - index % len(self.asked)]
        code = self._refused(lambda: self.services[which].approvals.revoke(question.id))
        assert code == ("exists" if question.state in ("used", "revoked") else None)
        if code is None:
            question.state = "revoked"

    # Calls.

    @rule(which=WHICH, name=NAMES, session=WHOM)
    def call_by_hand(self, which: int, name: str, session: int) -> None:
        self._call(which, "put", name, None, session)

    @rule(which=WHICH, name=NAMES, session=WHOM)
    def call_by_a_program(self, which: int, name: str, session: int) -> None:
        self._call(which, "many", name, None, session)

    @rule(which=WHICH, tool=st.sampled_from(["put", "many"]), name=NAMES, key=KEYS, session=WHOM)
    def call_under_a_key(self, which: int, tool: str, name: str, key: str, session: int) -> None:
        self._call(which, tool, name, key, session)

    @rule(which=WHICH, tool=st.sampled_from(["put", "many"]), name=NAMES, choice=CHOICES)
    def call_be_answered_and_call_again(self, which: int, tool: str, name: str, choice: Any) -> None:
        asked = len(self.asked)
        self._call(which, tool, name, None, 4)
        if len(self.asked) > asked:
            self.answer(1 - which, 0, choice)
            if tool == "many":
                self.resume(1 - which, 0)
        self._call(which, tool, name, None, 4)

    def _call(self, which: int, tool: str, name: str, key: str | None, session: int) -> None:
        whom = self.sessions[-1 - session] if session < len(self.sessions) else None
        plan = self._plan(tool, name, whom, key, self._owner(which), None)
        token = whom.token if whom else None
        result = self._run(self.services[which].invoke(tool, {"name": name}, session=token, dedupe_key=key))
        self._compare(plan, result, tool, name, whom, key, self._owner(which), None)

    @precondition(lambda self: any(not w.over for w in self.waiting))
    @rule(which=WHICH, index=st.integers(0, 3))
    def resume(self, which: int, index: int) -> None:
        waiting = [w for w in self.waiting if not w.over]
        run = waiting[-1 - index % len(waiting)]
        plan = self._plan(run.tool, run.name, run.session, run.key, run.owner, run)
        result = self._run(self.services[which].resume(run.id))
        self._compare(plan, result, run.tool, run.name, run.session, run.key, run.owner, run)

    def _run(self, work: Any) -> ToolResult:
        async def bounded() -> ToolResult:
            return await asyncio.wait_for(work, 20)  # type: ignore[no-any-return]

        return self.runner.run(bounded())

    def _owner(self, which: int) -> str:
        return self.services[which]._context.principal

    def _alive(self, session: Leased, resumed: bool = False) -> bool:
        return all(not s.ended and (resumed or self.now < s.expires) for s in session.chain())

    def _plan(self, tool: str, name: str, whom: Leased | None, key: str | None, owner: str, run: Waits | None) -> Plan:
        """The predicted result; the model does not change."""
        if whom is not None and not self._alive(whom, run is not None):
            return Plan("permission_denied", "session")
        if not self._leased(whom, tool):
            return Plan("permission_denied", "lease.tools")
        place = (whom.id if whom else "", key or "")
        kept = self.kept.get(place) if key else None
        if kept is not None and run is None:
            if (kept.tool, kept.name) != (tool, name):
                return Plan("dedupe_conflict")
            return Plan(kept.code, repeated=True)
        program = tool == "many"
        begun = program and run is not None
        # A temporary denial suspends a resumed run.
        later = "suspended" if run is not None else None
        if program:
            if PROGRAM[self.mode] == "deny":
                return Plan(later or "permission_denied", "mode")
            if self._spent(whom) and not begun:
                return Plan("budget_exceeded")
            # A lease that names the program covers its calls.
            charges = [] if begun else [("call",)]
        else:
            charges = []
        verdict = self.policy[1][self.mode]
        if verdict == "deny":
            by_mode = self.policy[1]["NORMAL"] != "deny"
            return Plan((later if by_mode else None) or "permission_denied", "rule", charges=charges)
        if self.policy[2] is not None:
            for whose in self._counted(whom):
                if sum(self.now - 3600 < t for t in self.times[whose]) >= self.policy[2]:
                    return Plan(later or "rate_limited", "rate", charges=charges)
        if self._spent(whom, len(charges)):
            return Plan("budget_exceeded", charges=charges)
        question = None
        if verdict == "ask":
            question, code = self._permission(tool, name, whom, owner, run)
            if code is not None:
                return Plan(code, "approval", question, charges=charges)
        return Plan(None, question=question, charges=[*charges, ("call", "put")])

    def _permission(
        self, tool: str, name: str, whom: Leased | None, owner: str, run: Waits | None
    ) -> tuple[Asked | None, str | None]:
        scopes, action = self._about(tool, name, whom, owner, run.id if run else "")
        for question in self.asked:
            if question.state == "standing" and question.scopes[question.choice] == scopes.get(question.choice):
                return question, None
        known = next((q for q in reversed(self.asked) if q.action == action), None)
        if known is None or known.state not in ("open", "yes", "no"):
            return None, "suspended"
        return known, {"open": "suspended", "yes": None, "no": "permission_denied"}[known.state]

    def _about(
        self, tool: str, name: str, whom: Leased | None, owner: str, run: str
    ) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
        principal = whom.id if whom else owner
        whose = whom.id if whom else ""
        # An answer applies only to the rules and the mode at the time of its question.
        judged = self.mode, self.policy[0]
        asks = "shipped" if self.policy[1] is SHIPPED else "tools"
        if tool == "many":
            scopes = {"session": ("many", self.mode, asks, principal), "always": ("many", self.mode, asks)}
            return scopes, ("many", name, whose, run, *judged)
        return {"session": ("put", self.mode, asks, principal, name)}, ("put", name, whose, *judged)

    @staticmethod
    def _counted(whom: Leased | None) -> list[str]:
        """The sessions whose rate limits count the call."""
        return [s.id for s in whom.chain()] if whom else [""]

    @staticmethod
    def _leased(whom: Leased | None, tool: str) -> bool:
        return whom is None or all(s.tools is None or tool in s.tools for s in whom.chain())

    @staticmethod
    def _spent(whom: Leased | None, more: int = 0) -> bool:
        return whom is not None and any(s.used + more >= s.calls for s in whom.chain())

    def _compare(
        self,
        plan: Plan,
        result: ToolResult,
        tool: str,
        name: str,
        whom: Leased | None,
        key: str | None,
        owner: str,
        run: Waits | None,
    ) -> None:
        """Compare the result with the prediction, and update the model."""
        code = result.error.code if result.error else None
        event(f"{tool} {'resumed' if run else 'called'}: {code}{' again' if plan.repeated else ''}")
        assert (code, result.repeated) == (plan.code, plan.repeated), (plan, result.error)
        done = len(self.place.done)
        assert done - self.effects == (code is None and not plan.repeated)
        self.effects = done
        if plan.repeated:
            return
        for what in plan.charges:
            for session in whom.chain() if whom else []:
                session.used += 1
            if "put" in what and self.policy[2] is not None:
                for whose in self._counted(whom):
                    self.times[whose].append(self.now)
        if plan.rule == "approval" and code == "permission_denied":
            assert plan.question is not None
            plan.question.state = "used"
        if code is None and plan.question is not None and plan.question.state == "yes":
            plan.question.state = "used"
        if run is not None:
            run.over = code != "suspended"
        if code == "suspended" and plan.rule == "approval":
            self._suspended(plan, result, tool, name, whom, key, owner, run)
        place = (whom.id if whom else "", key or "")
        if key and code not in ("dedupe_conflict", "suspended"):
            if result.error is not None and result.error.denied:
                if run is not None or plan.rule not in ("session", "lease.tools") or plan.charges:
                    self.kept.pop(place, None)
            else:
                self.kept[place] = Kept(tool, name, result.run_id, code)

    def _suspended(
        self,
        plan: Plan,
        result: ToolResult,
        tool: str,
        name: str,
        whom: Leased | None,
        key: str | None,
        owner: str,
        run: Waits | None,
    ) -> None:
        assert result.error is not None
        assert result.run_id is not None
        question = str(result.error.details["approval"])
        if plan.question is None:
            scopes, action = self._about(tool, name, whom, owner, result.run_id)
            for old in self.asked:
                # A question about the same step under other rules is withdrawn.
                if old.run == result.run_id and old.state in ("open", "yes"):
                    old.state = "revoked"
            self.asked.append(Asked(question, whom, result.run_id, action, scopes))
        else:
            assert plan.question.id == question
        if run is None:
            self.waiting.append(Waits(result.run_id, tool, name, whom, key, owner, question))
        if key:
            self.kept[whom.id if whom else "", key] = Kept(tool, name, result.run_id, "suspended")

    # Invariants, by the ledger alone.

    @invariant()
    def nothing_without_a_decision(self) -> None:
        ledger: Any = self.services[0].ledger
        used: Counter[str] = Counter()
        answers: dict[str, str] = {}
        puts = 0
        for entry in ledger.entries():
            data = entry.data
            if entry.kind == "answered":
                answers.setdefault(data["approval"], data["choice"])
            elif entry.kind == "approval_used":
                used[data["approval"]] += 1
                assert used[data["approval"]] == 1
            elif entry.kind == "call":
                assert data["verdict"] in ("allow", "ask")
                if data["verdict"] == "ask":
                    assert answers[data["approval"]] != "no"
                    assert answers[data["approval"]] != "once" or used[data["approval"]] == 1
                puts += data["tool"] == "put"
        assert puts == len(self.place.done)
        for session in self.sessions:
            assert session.used <= session.calls or session.calls == float("inf")
        shown = {s.id: s for s in self.services[1].sessions.all()}
        for session in self.sessions:
            assert shown[session.id].used.get("calls", 0) == session.used


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the program in it."""
    place = Place(tmp_path_factory.mktemp("template"))
    with SyncToolService.open(**place.options()) as service:
        service.define(MANY)
    return place.base


@pytest.mark.hypothesis
def test_no_effect_without_a_permitting_decision(template: Path) -> None:
    with asyncio.Runner() as runner:
        sandbox = Sandbox(RunLimits())
        runner.run(sandbox.start())
        Machine.template, Machine.runner, Machine.sandbox = template, runner, sandbox
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=360 if settings.get_current_profile_name() == LONG else 8,
                stateful_step_count=50,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        runner.run(sandbox.close())

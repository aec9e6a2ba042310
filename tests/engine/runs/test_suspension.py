"""A resumed run that is denied for a temporary reason is suspended again. A final denial ends the run."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import SyncToolService, ToolResult
from albert_tools.engine.model.session_budget import Budget
from albert_tools.engine.policy.rules import Policy
from tests.engine.runs.test_resume import ASKS, MANY, answer, code, killed, only_run, opened
from tests.helpers.kill_points import Place

PUT = '''
def fallback(name: str) -> str:
    """Put one, then another, or say why not."""
    tools.put(name=name)
    try:
        return tools.put(name=name + "2")
    except ToolError as e:
        return e.code
'''


def waiting(service: SyncToolService, **options: Any) -> ToolResult:
    result = service.invoke("many", {"names": ["a", "b"]}, **options)
    answer(service, result, "always")
    return result


def mode(service: SyncToolService, *modes: Any) -> None:
    for each in modes:
        service.within(lambda s, to=each: s.modes.switch(to, "a person", "the test"))  # type: ignore[misc]


def denied_for_now(result: ToolResult, was: str) -> None:
    assert result.error is not None
    assert (result.error.code, result.error.details["denied"]) == ("suspended", was)
    assert result.error.retryable


def test_a_lockdown_suspends(place: Place) -> None:
    with opened(place, ASKS) as service:
        run = waiting(service).run_id
        assert run is not None
        mode(service, "LOCKDOWN")
        for _ in range(2):
            denied_for_now(service.resume(run), "permission_denied")
        assert place.done == []
        seen = service.within(lambda s: s.runs.show(run))
        assert (seen.state, seen.approval) == ("suspended", None)
        # The details have the code of the denial.
        ledger: Any = service.service.ledger
        assert [e.data["code"] for e in ledger.entries({"denied"})] == ["permission_denied"] * 2
        # The lasting answer was for NORMAL.
        mode(service, "RECOVERY", "NORMAL")
        assert service.resume(run).value() == 2
        assert place.done == ["a", "b"]


def test_a_denial_of_this_mode_only_suspends(place: Place) -> None:
    # The program is allowed. The call that the program waits for is denied.
    rules = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"], "allowed_in_modes": ["ALERT"]}}}
    with opened(place, rules) as service:
        run = waiting(service).run_id
        assert run is not None
        mode(service, "DEGRADED")
        denied_for_now(service.resume(run), "permission_denied")
        mode(service, "NORMAL")
        assert service.resume(run).value() == 2


def test_a_full_rate_limit_suspends(place: Place) -> None:
    rules = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"], "rate_limit_per_hour": 1}}}
    with opened(place, rules) as service:
        run = waiting(service).run_id
        assert run is not None
        # The lasting answer covers another run of this version, which fills the rate limit.
        assert code(service.invoke("many", {"names": ["z"]})) is None
        result = service.resume(run)
        denied_for_now(result, "rate_limited")
        assert result.error is not None
        assert result.error.retry_after_ms is not None
        assert result.error.rule == "rate_limit.tool:put"
    with opened(place, ASKS) as service:
        assert service.resume(run).value() == 2
        assert place.done == ["z", "a", "b"]


def test_denials_of_later_calls_go_to_the_program(place: Place) -> None:
    rules = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"], "rate_limit_per_hour": 1}}}
    with opened(place, rules, PUT) as service:
        result = service.invoke("fallback", {"name": "a"})
        answer(service, result, "always")
        assert result.run_id is not None
        assert service.resume(result.run_id).value() == "rate_limited"
        assert place.done == ["a"]


def test_without_a_person_to_ask_the_run_is_suspended(place: Place) -> None:
    killed(place, "before the effect of put", "put", {"name": "a"}, dedupe_key="k")
    with opened(place, None, patience=None) as service:
        run = only_run(service)
        denied_for_now(service.resume(run), "permission_denied")
    with opened(place) as service:
        result = service.resume(run)
        answer(service, result, "once")
        assert service.resume(run).value() == "a"


def test_unreadable_rules_suspend(place: Place) -> None:
    with opened(place, ASKS) as service:
        run = waiting(service).run_id
    assert run is not None
    project = place.work / ".albert" / "governance.yaml"
    project.write_text("{{{")
    with SyncToolService.open(**place.options(ASKS)) as service:
        denied_for_now(service.resume(run), "governance_unavailable")
    project.unlink()
    with SyncToolService.open(**place.options(ASKS)) as service:
        assert service.resume(run).value() == 2


def test_a_suspension_gives_a_session_no_more_time_or_calls(place: Place) -> None:
    with opened(place, ASKS) as service:
        _, token = service.within(lambda s: s.open_session("c", seconds=600, budget=Budget(calls=3)))
        run = waiting(service, session=token).run_id
        assert run is not None
        grants = len([s for s in service.within(lambda s: s.sessions.all()) if s.grant])
        mode(service, "LOCKDOWN")
        for _ in range(3):
            denied_for_now(service.resume(run), "permission_denied")
        assert len([s for s in service.within(lambda s: s.sessions.all()) if s.grant]) == grants == 1
        mode(service, "RECOVERY", "NORMAL")
        assert service.resume(run).value() == 2


def test_an_interrupted_run_is_resumed_in_its_own_session(place: Place) -> None:
    with opened(place, None, MANY) as service:
        _, token = service.within(lambda s: s.open_session("c", seconds=600))
    killed(place, "before the effect of put", "many", {"names": ["a"]}, session=token)
    with opened(place) as service:
        run = only_run(service)
        mode(service, "LOCKDOWN")
        denied_for_now(service.resume(run), "permission_denied")
        assert [s for s in service.within(lambda s: s.sessions.all()) if s.grant] == []
        session = service.within(lambda s: s.sessions.all())[0]
        service.within(lambda s: s.sessions.end(session.id))
        mode(service, "RECOVERY", "NORMAL")
        result = service.resume(run)
        assert result.error is not None
        assert (result.error.code, result.error.rule) == ("permission_denied", "session.ended")
        assert service.within(lambda s: s.runs.show(run)).state == "failed"


@pytest.mark.parametrize("rules", [{"deny": ["put"]}, {"tools": {"put": {"forbidden_in_modes": ["NORMAL"]}}}])
def test_a_denial_in_all_modes_ends_the_run(place: Place, rules: Any) -> None:
    with opened(place, ASKS) as service:
        run = waiting(service).run_id
    assert run is not None
    with opened(place, rules) as service:
        assert code(service.resume(run)) == "permission_denied"
        assert service.within(lambda s: s.runs.show(run)).state == "failed"


def test_a_new_run_that_is_denied_has_failed(place: Place) -> None:
    with opened(place, {"tools": {"put": {"rate_limit_per_hour": 1}}}) as service:
        result = service.invoke("many", {"names": ["a", "b"]})
        assert code(result) == "rate_limited"
        assert service.within(lambda s: s.runs.show(result.run_id or "")).state == "failed"


def test_an_error_during_authorization_suspends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Policy.permits

    def once(self: Policy, definition: Any, gated: bool, mode: Any) -> Any:
        found = real(self, definition, gated, mode)
        if definition.name == "put" and mode == "NORMAL" and found.verdict != "deny":
            raise RuntimeError("the judging went wrong")
        return found

    rules = {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"], "allowed_in_modes": ["ALERT"]}}}
    with opened(place, rules) as service:
        run = waiting(service).run_id
        assert run is not None
        mode(service, "DEGRADED")
        with monkeypatch.context() as patched:
            patched.setattr(Policy, "permits", once)
            denied_for_now(service.resume(run), "permission_denied")
        mode(service, "NORMAL")
        assert service.resume(run).value() == 2

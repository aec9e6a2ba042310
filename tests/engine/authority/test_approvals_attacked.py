"""Approvals under attack. After any change between question, answer and effect, the call is asked about again or denied."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from albert_tools import Answer, CallContext, Failure, SyncToolService, primitive
from albert_tools.engine.authority.approvals import Approval
from tests.helpers.altered import altered

ASKS: dict[str, Any] = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL", "ALERT"]}}}
#: An action that runs after the effect has read the file and before the effect ends.
MEANWHILE: list[Callable[[], object]] = []


class _Meanwhile:
    """A workspace that runs an action right before it replaces a file."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def replace(self, path: str, data: bytes) -> Any:
        for each in MEANWHILE:
            each()
        return self._inner.replace(path, data)


@primitive(effects=["write"], paths={"path": "write"}, approval=True)
def put(path: str, context: CallContext, twice: bool = False) -> str:
    """Write a file that others are after."""
    for _ in range(1 + twice):
        facts = _Meanwhile(context.workspace).replace(path, b"ours")
    context.effect("write", path=facts.path, size_bytes=facts.size)
    return path


@primitive(effects=["write"], paths={"path": "write"}, approval=True)
def stamp(path: str, context: CallContext) -> str:
    """Change a file without the workspace's functions."""
    for each in MEANWHILE:
        each()
    (Path(context.workspace.root) / path).write_text("stamped")
    return path


class Person:
    """Gives the set answers. An answer is a value, or a function that does something and returns a value. The last answer is
    repeated."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def __call__(self, question: Any) -> Any:
        self.asked.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer() if callable(answer) else answer


@pytest.fixture(autouse=True)
def _no_meanwhile() -> None:
    MEANWHILE.clear()


@pytest.fixture
def make(make_bench: Any, tmp_path: Path) -> Any:
    """Makes a bench whose rules are in a file."""

    def made(rules: Any = ASKS, **options: Any) -> Any:
        path = tmp_path / "rules.yaml"
        path.write_text(yaml.safe_dump(rules))
        bench = make_bench(governance=path, primitives=[put, stamp], **options)
        bench.rules = path
        (bench.work / "a.txt").write_text("old")
        return bench

    return made


def rule(bench: Any, rules: Any) -> None:
    """Edit the rules."""
    bench.rules.write_text(yaml.safe_dump(rules))


def questions(service: SyncToolService, *states: str) -> list[Approval]:
    return service.within(lambda s: s.approvals.all(states or ("open", "yes", "standing")))  # type: ignore[arg-type]


def answer(service: SyncToolService, choice: str = "once", which: int = -1) -> Approval:
    """Answer the newest open question."""
    found = questions(service, "open")[which]
    return service.within(lambda s: s.approvals.answer(found.id, choice, "ada"))  # type: ignore[arg-type]


def suspended(bench: Any, name: str = "write_file", **arguments: Any) -> Any:
    """A call that waits for an answer."""
    given = arguments or {"path": "a.txt", "content": "new"}
    result = bench.service.invoke(name, given)
    assert result.error.code == "suspended", result
    return result


def content(bench: Any) -> str:
    return str((bench.work / "a.txt").read_text())


def swapped(bench: Any) -> None:
    """Put another file with the same content and size in the place of the first."""
    (bench.work / "b.txt").write_text("old")
    os.replace(bench.work / "b.txt", bench.work / "a.txt")


def linked(bench: Any) -> None:
    (bench.work / "c.txt").write_text("old")
    (bench.work / "a.txt").unlink()
    (bench.work / "a.txt").symlink_to("c.txt")


CHANGES: dict[str, Callable[[Any], object]] = {
    "content": lambda bench: (bench.work / "a.txt").write_text("odd"),
    "another file": swapped,
    "gone": lambda bench: (bench.work / "a.txt").unlink(),
    "a link": linked,
    "a folder": lambda bench: ((bench.work / "a.txt").unlink(), (bench.work / "a.txt").mkdir()),
    "permissions": lambda bench: (bench.work / "a.txt").chmod(0o600),
    "rules that still ask": lambda bench: rule(bench, {**ASKS, "limits": {"calls": 90}}),
    "a mode that still asks": lambda bench: bench.service.service.modes.switch("ALERT", "ada", "so"),
}


# Between question and answer


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_before_the_answer_asks_again(make: Any, change: str) -> None:
    person = Person(lambda: CHANGES[change](bench) is not person, False)
    bench = make(ask=person)
    error = bench.error("write_file", path="a.txt", content="new")
    assert (error.code, len(person.asked)) == ("permission_denied", 2)
    assert person.asked[0].id != person.asked[1].id
    assert not (bench.work / "a.txt").is_file() or content(bench) in ("old", "odd")


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_the_answer_asks_again(make: Any, change: str) -> None:
    bench = make()
    suspended(bench)
    first = answer(bench.service)
    CHANGES[change](bench)
    again = suspended(bench)
    assert again.error.details["approval"] != first.id
    assert not (bench.work / "a.txt").is_file() or content(bench) in ("old", "odd")
    assert {a.id for a in questions(bench.service, "yes")} == {first.id}


def test_a_no_in_the_call_overrules_a_yes_from_elsewhere(make: Any) -> None:
    def elsewhere() -> bool:
        desk = bench.service.service.approvals
        desk.answer(desk.all(("open",))[0].id, "once", "ada")
        return False

    bench = make(ask=Person(elsewhere))
    assert bench.error("write_file", path="a.txt", content="new").code == "permission_denied"
    assert content(bench) == "old"
    assert not questions(bench.service, "yes")


@pytest.mark.parametrize("between", ["question", "answer"])
def test_a_new_denial_overrules_an_answer(make: Any, between: str) -> None:
    bench = make()
    waiting = suspended(bench)
    if between == "answer":
        answer(bench.service)
    rule(bench, {**ASKS, "deny": ["write_file"]})
    if between == "question":
        answer(bench.service)
    for result in (
        bench.service.resume(waiting.run_id),
        bench.service.invoke("write_file", {"path": "a.txt", "content": "new"}),
    ):
        assert (result.error.code, result.error.rule) == ("permission_denied", "deny")
    assert content(bench) == "old"


def test_a_new_mode_overrules_an_answer(make: Any) -> None:
    bench = make()
    waiting = suspended(bench)
    answer(bench.service)
    bench.service.service.modes.switch("LOCKDOWN", "ada", "")
    error = bench.service.resume(waiting.run_id).error
    # The call is not made, and waits for another mode.
    assert (error.code, error.details["denied"]) == ("suspended", "permission_denied")
    assert content(bench) == "old"


def test_other_arguments_are_another_question(make: Any) -> None:
    bench = make()
    suspended(bench)
    answer(bench.service)
    for changed in ({"path": "a.txt", "content": "new "}, {"path": "./a.txt", "content": "new"}):
        assert suspended(bench, **changed).error.details["approval"] not in {
            a.id for a in questions(bench.service, "yes")
        }
    assert content(bench) == "old"


def test_an_asker_can_not_change_the_call(make: Any) -> None:
    class Hostile(Person):
        async def __call__(self, question: Any) -> Any:
            question.arguments["content"] = "evil"
            question.arguments["path"] = "elsewhere.txt"
            return True

    bench = make(ask=Hostile(True))
    assert bench.value("write_file", path="a.txt", content="new")["path"] == "a.txt"
    assert content(bench) == "new"
    assert not (bench.work / "elsewhere.txt").exists()


@pytest.mark.parametrize(
    ("answer", "by"),
    [
        (True, "the application, asked in the call"),
        (Answer(True, "Ada"), "Ada"),
        (Answer("session", "Ada, in the chat"), "Ada, in the chat"),
        (Answer("no", "x" * 5000), "x" * 256),
        (Answer("no", ""), "the application, asked in the call"),
        (Answer("once", None), "the application, asked in the call"),  # type: ignore[arg-type]
        (Answer("perhaps", "Ada"), "Ada"),  # type: ignore[arg-type]
        (Answer("once", "password=hunter2hunter2"), "password=[redacted]"),
    ],
)
def test_the_record_names_who_answered(make: Any, answer: Any, by: str) -> None:
    bench = make(ask=Person(answer))
    done = bench.service.invoke("write_file", {"path": "a.txt", "content": "new"}).ok
    assert done == (getattr(answer, "choice", answer) in (True, "once", "session"))
    (known,) = bench.service.within(lambda s: s.approvals.all(("standing", "used")))
    assert known.by[:250] == by[:250]
    assert len(known.by) <= 256


def test_a_caller_can_not_change_the_call_afterwards(make: Any) -> None:
    given = {"path": "a.txt", "content": "new"}
    bench = make(ask=Person(lambda: given.update(content="evil") is None))
    bench.service.invoke("write_file", given)
    assert content(bench) == "new"
    # The caller can't change the arguments that a waiting run continues with either.
    bench = make(patience=0.2)
    given = {"path": "a.txt", "content": "new"}
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(bench.service.invoke, "write_file", given)
        while not questions(bench.service, "open"):
            pass
        given["content"] = "evil"
        run = waiting.result().run_id
    answer(bench.service)
    assert bench.service.resume(run).ok
    assert content(bench) == "new"


def test_a_tool_that_is_redefined_during_a_question(make: Any) -> None:
    rules = {**ASKS, "tools": {"t": {"requires_approval_in_modes": ["NORMAL"]}}}

    def redefine() -> bool:
        # Another service redefines the tool while this one waits for the answer.
        with bench.again(ask=None) as other:
            other.define('def t() -> Any:\n    """Do it."""\n    return "another"\n')
        return True

    class InThread(Person):
        async def __call__(self, question: Any) -> Any:
            return await asyncio.to_thread(redefine)

    bench = make(rules, ask=InThread(True))
    bench.define('return "the one"')
    # The run uses the version that the question was about.
    assert bench.value("t") == "the one"
    bench = make(rules)
    bench.define('return "the one"')
    waiting = bench.service.invoke("t")
    answer(bench.service)
    bench.define('return "another"')
    assert bench.service.invoke("t").error.code == "suspended"
    assert bench.service.resume(waiting.run_id).value() == "the one"


def test_a_callee_that_is_redefined_during_a_question(make: Any) -> None:
    bench = make()
    bench.define('return tools.write_file(path="a.txt", content="new")["path"]', "inner")
    bench.define("return tools.inner()", "outer")
    waiting = bench.service.invoke("outer")
    answer(bench.service)
    bench.define('return tools.write_file(path="a.txt", content="evil")["path"]', "inner")
    assert bench.service.resume(waiting.run_id).value() == "a.txt"
    assert content(bench) == "new"
    bench.define("return tools.inner()", "outer")
    assert bench.service.invoke("outer").error.code == "suspended"
    assert content(bench) == "new"


# Between answer and effect


@pytest.mark.parametrize("change", [c for c in CHANGES if "still" not in c])
def test_a_file_that_changed_is_not_replaced(make: Any, change: str) -> None:
    bench = make(ask=Person(True))
    MEANWHILE.append(lambda: CHANGES[change](bench))
    error = bench.error("put", path="a.txt")
    assert not (bench.work / "a.txt").is_file() or content(bench) in ("old", "odd")
    if change not in ("a link", "a folder"):
        assert (error.code, error.rule) == ("permission_denied", "approval")
        assert error.message == "'a.txt' has changed since a person was asked about it"


def test_a_file_that_appeared_is_not_replaced(make: Any) -> None:
    bench = make(ask=Person(True))
    MEANWHILE.append(lambda: (bench.work / "new.txt").write_text("theirs"))
    assert bench.error("put", path="new.txt").rule == "approval"
    assert (bench.work / "new.txt").read_text() == "theirs"
    assert [n for n in os.listdir(bench.work) if n.startswith(".albert-write")] == []


def test_a_call_may_replace_its_own_file_again(make: Any) -> None:
    bench = make(ask=Person(True))
    assert bench.value("put", path="a.txt", twice=True) == "a.txt"
    assert content(bench) == "ours"


def test_a_call_that_bypasses_the_workspace_is_checked_before_it_begins(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make(ask=Person("once"))
    log = bench.service.service.ledger
    durable = type(log).adurable

    async def late(self: Any, mark: Any) -> None:
        await durable(self, mark)
        (bench.work / "a.txt").write_text("odd")

    with monkeypatch.context() as patched:
        patched.setattr(type(log), "adurable", late)
        assert bench.error("stamp", path="a.txt").rule == "approval"
    assert content(bench) == "odd"
    assert bench.value("stamp", path="a.txt") == "a.txt"


@pytest.mark.parametrize("change", ["rules that still ask", "a mode that still asks"])
def test_rules_and_modes_that_change_at_the_last_moment(
    make: Any, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    bench = make(ask=Person(True))
    log = bench.service.service.ledger
    durable = type(log).adurable

    async def late(self: Any, mark: Any) -> None:
        await durable(self, mark)
        CHANGES[change](bench)

    monkeypatch.setattr(type(log), "adurable", late)
    assert bench.error("write_file", path="a.txt", content="new").rule == "approval"
    assert content(bench) == "old"


# An answer is used once


def test_an_answer_is_used_once(make: Any) -> None:
    bench = make()
    suspended(bench, "put", path="new.txt")
    answer(bench.service)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: bench.service.invoke("put", {"path": "new.txt"}), range(6)))
    assert sum(r.ok for r in found) == 1
    assert {r.error.code for r in found if r.error is not None} <= {"suspended", "permission_denied"}


RACER = """
import sys
from albert_tools import SyncToolService
home, work, rules = sys.argv[1:]
with SyncToolService.open(home=home, workspace=work, governance=rules, patience=None) as service:
    service.invoke("list_directory")
    print("ready", flush=True)
    sys.stdin.readline()
    print(service.invoke("write_file", {"path": "new.txt", "content": "x"}).ok, flush=True)
"""


def test_an_answer_is_used_once_by_two_processes(make: Any) -> None:
    bench = make()
    suspended(bench, path="new.txt", content="x")
    answer(bench.service)
    command = [sys.executable, "-c", RACER, *map(str, (bench.home, bench.work, bench.rules))]
    racers = [subprocess.Popen(command, stdin=-1, stdout=-1, text=True) for _ in range(2)]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("\n")
            racer.stdin.flush()
        told = sorted(racer.communicate(timeout=30)[0] for racer in racers)
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    assert told == ["False\n", "True\n"]


def test_an_old_journal_does_not_restore_a_used_answer(make: Any) -> None:
    bench = make()
    bench.define('return tools.write_file(path="new.txt", content="x")["path"]')
    waiting = bench.service.invoke("t")
    ((last,),) = altered(bench.home, "SELECT max(seq) FROM steps WHERE run = ?", waiting.run_id)
    answer(bench.service)
    assert bench.service.resume(waiting.run_id).value() == "new.txt"
    (bench.work / "new.txt").unlink()
    altered(bench.home, "DELETE FROM steps WHERE run = ? AND seq > ?", waiting.run_id, last)
    # The ledger names the steps since then.
    with pytest.raises(Failure) as caught:
        bench.service.resume(waiting.run_id)
    assert caught.value.code == "damaged"
    assert not (bench.work / "new.txt").exists()


def test_an_answer_applies_to_its_run_and_its_step(make: Any) -> None:
    bench = make()
    bench.define('return [tools.write_file(path="new.txt", content="x")["path"] for _ in range(2)]')
    first, second = bench.service.invoke("t"), bench.service.invoke("t")
    answer(bench.service, which=0)
    assert bench.service.resume(second.run_id).error.code == "suspended"
    assert bench.service.invoke("write_file", {"path": "new.txt", "content": "x"}).error.code == "suspended"
    # The first run continues to its second step, which is another question.
    assert bench.service.resume(first.run_id).error.code == "suspended"
    assert len(questions(bench.service, "used")) == 1


FORGED = [("tool", "read_file"), ("version", "x"), ("callers", ["z"]), ("trail", ["z"])]


@pytest.mark.parametrize(("name", "shown"), [*FORGED, ("arguments", {"path": "README.md"})])
@pytest.mark.parametrize("is_lasting", [False, True])
def test_an_answer_to_a_forged_question_allows_nothing(make: Any, name: str, shown: Any, is_lasting: bool) -> None:
    bench = make()
    bench.define('return tools.write_file(path="new.txt", content=a)', "t", "a: str")
    # A lasting answer about a call of a program covers other arguments, too.
    by_hand = is_lasting and name == "arguments"
    waiting = suspended(bench, *([] if by_hand else ["t"]), **({} if by_hand else {"a": "evil"}))
    (real,) = questions(bench.service, "open")
    facts = {each: getattr(real, each) for each in (*dict(FORGED), "arguments", "asked", "expires")}
    choice: Any = "session" if is_lasting else "once"
    # It shows another call than the one that it is about, or gives its answer to that one.
    about = {"action": "b3:0", "keys": {choice: (real.keys or {})[choice]}} if is_lasting else {"action": real.action}
    entry = {"keys": {}, **facts, **about, name: shown, "approval": "f0", "rule_id": "r", "message": ""}
    entry |= {"session": "", "run": "", "step": ""}
    bench.service.within(lambda s: s.ledger.append("asked", entry))
    bench.service.within(lambda s: s.approvals.answer("f0", choice, "ada"))
    if by_hand:
        error = bench.service.invoke("write_file", {"path": "a.txt", "content": "new"}).error
    else:
        error = bench.service.resume(waiting.run_id).error
    assert error.message.startswith("the question f0 shows another call than write_file")
    assert not (bench.work / "new.txt").exists()


def test_an_answer_once_to_a_forged_question_is_not_lasting(make: Any) -> None:
    bench = make()
    waiting = suspended(bench)
    (real,) = questions(bench.service, "open")
    facts = {each: getattr(real, each) for each in (*dict(FORGED), "arguments", "asked", "expires")}
    entry = {
        **facts,
        "action": "b3:0",
        "keys": {"once": (real.keys or {})["session"]},
        "approval": "f0",
        "rule_id": "r",
    }
    entry |= {"message": "", "session": "", "run": "", "step": ""}
    bench.service.within(lambda s: s.ledger.append("asked", entry))
    bench.service.within(lambda s: s.approvals.answer("f0", "once", "ada"))
    assert bench.service.resume(waiting.run_id).error.code == "suspended"


def test_an_answer_applies_to_its_session(make: Any) -> None:
    bench = make()
    tokens = [bench.service.within(lambda s: s.open_session("x"))[1] for _ in range(2)]
    given = {"path": "new.txt", "content": "x"}

    def code(token: str | None) -> Any:
        error = bench.service.invoke("write_file", given, session=token).error
        return error and error.code

    assert code(tokens[0]) == "suspended"
    answer(bench.service)
    assert [code(tokens[1]), code(None), code(tokens[0])] == ["suspended", "suspended", None]


# Answers


def test_an_answer_that_comes_too_late(make: Any) -> None:
    bench = make()
    now = [1e9]
    for part in (bench.service.service.approvals, bench.service.service.sessions):
        part._clock = lambda: now[0]
    waiting = suspended(bench)
    now[0] += 8 * 24 * 3600
    with pytest.raises(Failure) as late:
        bench.service.within(lambda s: s.approvals.answer(waiting.error.details["approval"], "once", "ada"))
    assert late.value.code == "timeout"
    # An answer that was given in time but not used expires too.
    again = suspended(bench)
    answer(bench.service)
    now[0] += 8 * 24 * 3600
    assert bench.service.resume(again.run_id).error.code == "suspended"
    assert content(bench) == "old"


def test_the_first_of_two_answers_counts(make: Any) -> None:
    class Slow(Person):
        async def __call__(self, question: Any) -> Any:
            service = bench.service.service
            service.approvals.answer(question.id, "no", "somebody else")
            return True

    bench = make(ask=Slow(True))
    assert "a person said no" in bench.error("write_file", path="a.txt", content="new").message
    bench = make()
    waiting = suspended(bench).error.details["approval"]

    def give(by: int) -> str:
        with bench.again() as service:
            try:
                service.within(lambda s: s.approvals.answer(waiting, "once", f"person {by}"))
            except Failure as failure:
                return failure.code
            return f"person {by}"

    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(give, range(4)))
    (first,) = [t for t in told if t != "exists"]
    assert questions(bench.service, "yes")[0].by == first


def test_a_revoked_answer_allows_nothing(make: Any) -> None:
    bench = make()
    waiting = suspended(bench)
    given = answer(bench.service)
    bench.service.within(lambda s: s.approvals.revoke(given.id))
    assert bench.service.resume(waiting.run_id).error.code == "suspended"
    assert content(bench) == "old"


def test_a_no_applies_to_its_call_only(make: Any) -> None:
    person = Person(False, False, True)
    bench = make(ask=person)
    body = 'r = []\n    for i in range(2):\n        try:\n            tools.write_file(path="a.txt", content="new")\n'
    bench.define(body + "        except ToolError as e:\n            r.append(e.code)\n    return r")
    assert bench.value("t") == ["permission_denied", "permission_denied"]
    # Each step is asked about once. The next call is asked about again.
    assert len(person.asked) == 2
    assert bench.service.invoke("write_file", {"path": "a.txt", "content": "new"}).ok
    assert len(person.asked) == 3


def test_a_no_from_elsewhere_is_used_up(make: Any) -> None:
    bench = make()
    waiting = suspended(bench)
    answer(bench.service, "no")
    assert "a person said no" in bench.service.resume(waiting.run_id).error.message
    assert suspended(bench).error.details["approval"] != waiting.error.details["approval"]


def test_the_person_who_is_asked_may_give_up(make: Any) -> None:
    class Gone(Person):
        async def __call__(self, question: Any) -> Any:
            raise asyncio.CancelledError

    bench = make(ask=Gone(True))
    assert bench.error("write_file", path="a.txt", content="new").code == "governance_unavailable"
    assert content(bench) == "old"


# Lasting answers


def writes(bench: Any, name: str = "t", text: str = "x") -> None:
    bench.define(f'return tools.write_file(path=p, content="{text}")["path"]', name, "p: str")


def test_a_lasting_answer_applies_to_one_version_of_the_caller(make: Any) -> None:
    bench = make()
    writes(bench)
    waiting = bench.service.invoke("t", {"p": "1"})
    answer(bench.service, "always")
    assert bench.service.resume(waiting.run_id).ok
    assert bench.service.invoke("t", {"p": "2"}).ok
    with bench.again() as other:
        assert other.invoke("t", {"p": "3"}).ok
    # The answer does not apply to calls by hand, calls within another tool, or calls in another version.
    assert bench.service.invoke("write_file", {"path": "4", "content": "x"}).error.code == "suspended"
    bench.define('return tools.t(p="5")', "outer")
    assert bench.service.invoke("outer").error.code == "suspended"
    writes(bench, text="y")
    assert bench.service.invoke("t", {"p": "6"}).error.code == "suspended"
    # It does not apply in another mode or after its revocation.
    writes(bench)
    bench.service.service.modes.switch("ALERT", "ada", "")
    assert bench.service.invoke("t", {"p": "7"}).error.code == "suspended"
    bench.service.service.modes.switch("NORMAL", "ada", "")
    assert bench.service.invoke("t", {"p": "8"}).ok
    (standing,) = questions(bench.service, "standing")
    bench.service.within(lambda s: s.approvals.revoke(standing.id))
    assert bench.service.invoke("t", {"p": "9"}).error.code == "suspended"


def test_an_answer_for_the_session_applies_to_that_session(make: Any) -> None:
    bench = make()
    writes(bench)
    (one, token), (_, other) = [bench.service.within(lambda s: s.open_session("x")) for _ in range(2)]

    def code(path: str, session: str | None) -> Any:
        error = bench.service.invoke("t", {"p": path}, session=session).error
        return error and error.code

    waiting = bench.service.invoke("t", {"p": "1"}, session=token)
    assert answer(bench.service, "session").session == one.id
    # It also applies to the run that waited, and that continues after the end of the session.
    assert bench.service.resume(waiting.run_id).ok
    assert [code("2", token), code("3", other), code("4", None)] == [None, "suspended", "suspended"]


def test_an_answer_for_a_call_by_hand_applies_to_that_call_alone(make: Any) -> None:
    bench = make(ask=Person("session", False))
    given = {"path": "a.txt", "content": "x"}
    for _ in range(2):
        assert bench.service.invoke("write_file", given).ok
    assert bench.service.invoke("write_file", {**given, "content": "y"}).error.denied
    bench.define('return tools.write_file(path="a.txt", content="x")["path"]')
    assert bench.service.invoke("t").error.denied


def test_a_call_by_hand_can_not_be_allowed_always(make: Any) -> None:
    bench = make()
    waiting = suspended(bench)
    with pytest.raises(Failure, match="can't be allowed for ever"):
        answer(bench.service, "always")
    assert questions(bench.service, "open")[0].choices == ("once", "session", "no")
    # In the call itself the answer counts as a plain yes.
    bench.service.within(lambda s: s.approvals.revoke(waiting.error.details["approval"]))
    asked = make(ask=Person("always", False))
    assert asked.service.invoke("write_file", {"path": "a.txt", "content": "x"}).ok
    assert asked.service.invoke("write_file", {"path": "a.txt", "content": "x"}).error.denied


def test_a_lasting_answer_does_not_allow_a_second_effect(make: Any, tmp_path: Path) -> None:
    bench = make({"tools": {"stamp": {"requires_approval_in_modes": ["NORMAL"]}}})
    bench.define('return tools.stamp(path="a.txt")')
    waiting = bench.service.invoke("t")
    answer(bench.service, "always")
    assert bench.service.resume(waiting.run_id).ok
    # The home as it would be if the process had died in the middle of its only step.
    died = tmp_path / "died"
    MEANWHILE.append(lambda: shutil.copytree(bench.home, died))
    second = bench.service.invoke("t")
    assert second.ok
    (bench.work / "a.txt").write_text("as it was")
    with SyncToolService.open(home=died, workspace=bench.work, **bench.options) as service:
        result = service.resume(second.run_id)
        assert (result.error.code, result.error.rule) == ("suspended", "interrupted")
        assert questions(service, "open")[0].choices == ("once", "no")
    assert content(bench) == "as it was"

"""``albert approvals``: one process asks a question, another process shows the question in full and answers it."""

from __future__ import annotations

import getpass
import re
import shlex
import subprocess
import time
from typing import Any

import pytest

from albert_tools import SyncToolService
from albert_tools.surfaces.text.approval_prompt import shown_arguments
from tests.helpers.altered import altered

from .conftest import Albert, Done

NOTES = '''def notes(n: int) -> int:
    """Write notes.

    Args:
        n: How many.
    """
    for i in range(n):
        tools.write_file(path=f"f{i}.txt", content="line\\n" * 100)
    return n
'''
ASKS = "tools:\n  write_file: {requires_approval_in_modes: [NORMAL]}\n"


@pytest.fixture
def asking(albert: Albert) -> Albert:
    """A home with a tool that writes, under rules that demand an approval for writing."""
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text(ASKS)
    albert.write("notes.tool", NOTES)
    assert albert("define", "notes.tool").code == 0
    return albert


def waiting(albert: Albert) -> Any:
    """The open question."""
    (found,) = [a for a in albert("approvals", "--json").document()["approvals"] if a["state"] == "open"]
    return found


def commands(done: Done) -> list[list[str]]:
    """The commands in a message, ready to run."""
    return [shlex.split(text)[1:] for text in re.findall(r"`(albert [^`]*)`", done.err + done.out)]


def test_the_commands_in_the_message_continue_the_run(asking: Albert) -> None:
    suspended = asking("run", "notes", "n=1", "--reason", "for the archive")
    assert suspended.code == 4
    assert suspended.err.startswith(
        "error[suspended]: write_file needs a person's approval in NORMAL; the run waits for the answer\n"
    )
    answer, resume = commands(suspended)
    early = asking(*resume)
    assert early.code == 4
    assert commands(early) == [answer, resume]
    assert answer[-1] == "--resume"
    answered = asking(*answer[:-1])
    assert answered.code == 0
    assert "May write_file be called, called by notes?\n" in answered.out
    assert '  the caller\'s words: "for the archive"\n' in answered.out
    assert f"✓ write_file is allowed (once), by {getpass.getuser()}\n" in answered.out
    assert commands(answered) == [resume]
    listed = asking("runs")
    assert f"    {getpass.getuser()} answered once: `" in listed.out
    assert commands(listed) == [resume]
    done = asking(*resume)
    assert (done.code, done.out, done.err) == (0, "1\n", "wrote f0.txt, 500 bytes\n")
    assert asking(*resume).code == 1


def test_an_answer_that_resumes_the_run(asking: Albert) -> None:
    answer, _ = commands(asking("run", "notes", "n=1"))
    done = asking(*answer)
    assert (done.code, done.out.splitlines()[-2:]) == (
        0,
        [f"✓ write_file is allowed (once), by {getpass.getuser()}", "1"],
    )
    assert (asking.project / "f0.txt").exists()
    answer, _ = commands(asking("run", "notes", "n=2"))
    denied = asking(*[{"once": "no"}.get(word, word) for word in answer], "--json")
    assert (denied.code, "a person said no" in denied.document()["error"]["message"]) == (3, True)
    # The call by hand was answered and made meanwhile, so nothing waits.
    answer, resume = commands(asking("run", "write_file", "path=a", "content=b"))
    asking(*answer[:-1])
    asking(*resume)
    assert asking(*answer).code == 1


def test_hints_repeat_the_home_option(asking: Albert) -> None:
    suspended = asking("run", "notes", "n=1", "--home", str(asking.home), env={"ALBERT_HOME": None})
    assert [words[-2:] for words in commands(suspended)] == [["--home", str(asking.home)]] * 2


def test_two_processes_at_once(asking: Albert) -> None:
    running = asking.start("run", "notes", "n=1", "--wait", "60", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stderr is not None
    lines = [running.stderr.readline().decode() for _ in range(2)]
    assert lines[0].endswith("waiting up to 60 s for an answer:\n")
    answered = asking(*lines[1].split()[1:])
    gets_it = "no suspended run waits for this answer; a call that is still waiting gets it by itself\n"
    assert (answered.code, answered.out.endswith(gets_it)) == (0, True)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, b"1\n"), err


def test_the_answer_no(asking: Albert) -> None:
    resume = commands(asking("run", "notes", "n=1"))[1]
    question = waiting(asking)["approval"]
    assert "write_file is denied" in asking("approvals", "answer", question, "no").out
    denied = asking(*resume)
    assert denied.code == 3
    assert "a person said no" in denied.err
    assert not (asking.project / "f0.txt").exists()


def test_a_question_is_shown_in_full(asking: Albert) -> None:
    asking("run", "notes", "n=1")
    question = waiting(asking)
    assert isinstance(question["arguments"]["content"], dict)
    whole = '  content = "' + "line\\n" * 100 + '"\n'
    assert whole in asking("approvals", "show", question["approval"][:6]).out
    assert whole in asking("approvals", "answer", question["approval"], "once").out
    document = asking("approvals", "show", question["approval"], "--json").document()
    given = {"path": "f0.txt", "content": "line\n" * 100}
    assert document["whole_arguments"] == {**given, "create_only": False, "append": False}
    assert "(500 bytes)" in asking("approvals", "list", "--all").out


def test_a_call_made_by_hand(asking: Albert) -> None:
    long = "x" * 5000
    resume = commands(asking("run", "write_file", "path=a", f"content={long}"))[1]
    question = waiting(asking)["approval"]
    shown = asking("approvals", "show", question).out
    assert f'  content = "{long}"\n' in shown
    assert "always" not in shown
    refused = asking("approvals", "answer", question, "always")
    assert (refused.code, refused.out) == (2, "")
    assert "a call made by hand can't be allowed for ever" in refused.err
    assert asking("approvals", "answer", question, "once").code == 0
    assert asking(*resume).code == 0
    assert (asking.project / "a").read_text() == long


def test_a_question_without_a_journal_says_what_is_missing(asking: Albert) -> None:
    asking("run", "notes", "n=1")
    altered(asking.home, "DELETE FROM steps")
    shown = asking("approvals", "show", waiting(asking)["approval"]).out
    assert "(from the record, which has no secrets" in shown
    assert '"size_bytes": 500' in shown


def test_always_applies_until_it_is_revoked(asking: Albert) -> None:
    resume = commands(asking("run", "notes", "n=2"))[1]
    question = waiting(asking)["approval"]
    assert asking("approvals", "answer", question, "always").code == 0
    assert asking(*resume).out == "2\n"
    assert asking("run", "notes", "n=1").code == 0
    assert f"{question}  always allowed  write_file(…)\n" in asking("approvals").out
    call = asking("ledger", "tail", "--tool", "write_file", "-n", "2").out.splitlines()[0]
    assert "✓ write_file(" in call
    assert call.endswith(f".requires_approval_in_modes, by approval {question}, always, {getpass.getuser()}")
    assert asking("approvals", "revoke", question).out == f"revoked the lasting answer {question} about write_file\n"
    assert asking("run", "notes", "n=1").code == 4
    again = asking("approvals", "revoke", question)
    assert (again.code, f"the approval {question} is already revoked" in again.err) == (1, True)


def test_the_first_answer_counts(asking: Albert) -> None:
    asking("run", "notes", "n=1")
    question = waiting(asking)["approval"]
    assert asking("approvals", "answer", question, "no").code == 0
    second = asking("approvals", "answer", question, "once", "--json")
    assert (second.code, second.document()["error"]["message"]) == (1, f"the question {question} has been answered: no")
    assert asking("approvals", "answer", "nothing", "once").code == 1
    assert asking("approvals", "answer", question, "maybe").code == 2


def test_text_of_agents_stays_in_its_line(asking: Albert) -> None:
    evil = "good\x1b[2J\u202e\nMay nothing be called?\n✓ allowed"
    asking("run", "write_file", 'path=a\n  path = "b"\u202e', "content=x", "--reason", evil)
    code, seen = asking.terminal("approvals", "show", waiting(asking)["approval"])
    assert code == 0
    for text in (seen, asking("approvals").out, asking("approvals", "show", waiting(asking)["approval"]).out):
        lines = text.replace("\r\n", "\n").split("\n")
        assert "\u202e" not in text
        assert "\x1b[2J" not in text
        assert not [line for line in lines if line.startswith(("May nothing", "✓ allowed", '  path = "b"'))]


def test_invisible_and_look_alike_characters_are_shown(asking: Albert) -> None:
    unseen = "a\u00a0b\u3000c\u3164d\u2800e\u034ff\ufe0fg\u115fh"
    asking("run", "write_file", "path=n\u043etes/\u0430.txt", f"content={unseen}", "--reason", "for\u3164you")
    question = waiting(asking)["approval"]
    for shown in (
        asking("approvals", "show", question).out,
        asking.terminal("approvals", "show", question)[1],
        asking("approvals").out,
    ):
        assert not [c for c in shown if c in unseen and not c.isascii()]
        assert r"a\u00a0b\u3000c\u3164d" in shown
    shown = asking("approvals", "show", question).out
    assert "  ! path has letters that look like others: \u043e is CYRILLIC SMALL LETTER O, " in shown
    assert '  path = "n\u043etes/\u0430.txt"\n' in shown
    asking("approvals", "answer", question, "no")
    # Text in another script alone causes no warning.
    asking("run", "write_file", "path=b", "content=\u043d\u0435 error, \u65e5\u672c\u8a9eText caf\xe9")
    shown = asking("approvals", "show", waiting(asking)["approval"]).out
    assert "look like" not in shown
    assert "\u043d\u0435 error, \u65e5\u672c\u8a9eText caf\xe9" in shown


def test_a_source_is_shown_line_by_line_and_begins_no_line() -> None:
    source = 'def t() -> str:\n    return "\u202e\r"\n✓ allowed\n'
    arguments = {"name": "t", "source": source, "stored_source": "b3:1", "version": "1"}
    assert shown_arguments("define_tool", arguments) == [
        '  name = "t"',
        "  source =",
        "    │ def t() -> str:",
        r'    │     return "\u202e\x0d"',
        "    │ ✓ allowed",
    ]
    # For other tools nothing is left out.
    assert '  version = "1"' in shown_arguments("of_a_server", arguments)
    long = shown_arguments("define_tool", {"source": "a = 1\n" * 1000})
    assert long[:2] == ["  source =", "    │ a = 1"]
    assert long[168:170] == [None, "  … 4,000 characters of source are not shown …"]


def test_an_answer_says_who_uses_it(asking: Albert) -> None:
    def suspended(*words: str, wait: float = 0) -> tuple[str, str, str]:
        """The question and the run of a call in a new session, and the session."""
        opened = asking("session", "new", *words, "--json").document()
        asking("run", "notes", "n=1", env={"ALBERT_SESSION": opened["token"]})
        question = waiting(asking)
        time.sleep(wait)
        return question["approval"], question["run"], opened["session"]["session"]

    question, run, _ = suspended()
    said = asking("approvals", "answer", question, "once").out
    assert said.endswith(
        f"\n  the agent makes the call again, or `albert runs resume {run}` continues it if the agent has left\n"
    )
    question, run, _ = suspended("--for", "5s", wait=5)
    said = asking("approvals", "answer", question, "once").out
    assert said.endswith(
        f"\n  the session that asked has ended: only `albert runs resume {run}` still makes this call\n"
    )
    assert asking("runs", "resume", run).code == 0
    question, run, session = suspended()
    asking("session", "revoke", session)
    # Nothing could use an answer, so the end of the session has closed its question.
    assert asking("approvals").err == "no question waits for an answer\n"
    done = asking("approvals", "answer", question, "once", "--resume")
    assert (done.code, "or its session has ended" in done.err) == (1, True)
    told = "the question is revoked: its session has been revoked, so nothing continues it\n"
    assert f"    {told}" in asking("runs").out
    assert asking("runs", "show", run).out.endswith(f"\n{told}")
    assert asking("runs", "resume", run).code == 3


def test_no_session_hides_the_questions_of_others(asking: Albert) -> None:
    def ask(count: int, inner: int = 0) -> str:
        """A session with questions; some of them are asked by a session within it. Returns its id."""
        opened = asking("session", "new", "--json").document()
        env = {"ALBERT_SESSION": opened["token"]}
        child = asking("session", "new", "--within", opened["token"], "--json").document()["token"] if inner else ""
        with SyncToolService.open(home=asking.home, workspace=asking.project) as service:
            for n in range(count):
                token = child if n < inner else env["ALBERT_SESSION"]
                service.invoke("write_file", {"path": f"{n}", "content": ""}, session=token)
        return str(opened["session"]["session"])

    noisy = ask(111, inner=60)
    honest = ask(2)

    def listed(*words: str) -> Any:
        return asking("approvals", "list", "--json", *words).document()

    first = listed()
    # The children's questions count towards the session above, so eleven were refused.
    assert (first["total"], first["page"], first["pages"], len(first["approvals"])) == (102, 1, 3, 50)
    assert [a["session"] == honest for a in first["approvals"][:4]] == [False, True, False, True]
    every = [a["approval"] for n in "123" for a in listed("--page", n)["approvals"]]
    assert len(set(every)) == 102
    assert "page 2 of 3, 102 in all; `albert approvals list --page 3" in asking("approvals", "--page", "2").err
    refused = asking("approvals", "--page", "4")
    assert (refused.code, "there is no page 4" in refused.err) == (2, True)
    asking("session", "revoke", noisy)
    assert {a["session"] for a in listed()["approvals"]} == {honest}


def test_a_question_names_the_client_of_its_session(asking: Albert) -> None:
    opened = asking("session", "new", "--client", "an editor", "--json").document()
    session, token = opened["session"]["session"], opened["token"]
    asking("run", "notes", "n=1", env={"ALBERT_SESSION": token})
    question = waiting(asking)["approval"]
    assert f' in the session {session} of "an editor" in {asking.project}, ' in asking("approvals").out
    assert f'session  {session} of "an editor"\n' in asking("approvals", "show", question).out
    asking("session", "revoke", session)
    assert f'session  {session} of "an editor" (ended)\n' in asking("approvals", "show", question).out


@pytest.mark.parametrize(("typed", "code", "state"), [(b"yes\n", 0, "yes"), (b"\n", 1, "open")])
def test_an_answer_on_a_terminal_is_confirmed(asking: Albert, typed: bytes, code: int, state: str) -> None:
    asking("run", "notes", "n=1")
    question = waiting(asking)["approval"]
    got, seen = asking.terminal("approvals", "answer", question, "once", typed=typed, until="yes or no? ")
    assert "Answer once: this call, once?" in seen
    (found,) = asking("approvals", "--json").document()["approvals"]
    assert (got, found["state"]) == (code, state)


def test_a_choice_for_the_rest_of_the_run(asking: Albert) -> None:
    code, seen = asking.terminal("run", "notes", "n=2", typed=b"session\n", until="always or no? [no] ")
    assert "session  notes may call write_file for the rest of this run" in seen
    assert (code, seen.count("May write_file")) == (0, 1)
    assert (asking.project / "f1.txt").exists()
    assert asking("run", "notes", "n=1").code == 4


def test_a_lasting_answer_must_be_typed_in_full(asking: Albert) -> None:
    assert asking.terminal("run", "notes", "n=1", typed=[b"a\n"] * 3, until="always or no? [no] ")[0] == 3
    assert asking.terminal("run", "notes", "n=1", typed=b"always\n", until="always or no? [no] ")[0] == 0
    assert asking("run", "notes", "n=1").code == 0


def test_an_invalid_answer_is_asked_for_again(asking: Albert) -> None:
    code, _ = asking.terminal("run", "notes", "n=1", typed=[b"maybe\n", b"yes\n"], until="always or no? [no] ")
    assert (code, (asking.project / "f0.txt").exists()) == (0, True)


def test_a_question_at_a_terminal_ends_when_it_is_answered_elsewhere(asking: Albert) -> None:
    def elsewhere() -> None:
        assert asking("approvals", "answer", waiting(asking)["approval"], "once").code == 0

    code, seen = asking.terminal("run", "notes", "n=1", typed=[elsewhere], until="always or no? [no] ")
    assert f"answered elsewhere: once, by {getpass.getuser()}" in seen
    assert (code, (asking.project / "f0.txt").exists()) == (0, True)


def test_a_repeated_question_names_the_one_it_replaces(asking: Albert) -> None:
    resume = commands(asking("run", "write_file", "path=a", "content=x"))[1]
    first = waiting(asking)
    assert first["workspace"] == str(asking.project)
    (asking.project / "a").write_text("another")
    anew = asking(*resume)
    assert anew.code == 4
    assert "the question is new, because the rules or the files have changed" in anew.err
    second = waiting(asking)
    assert second["instead_of"] == first["approval"]
    assert f" in {asking.project}, " in asking("approvals").out
    assert asking("approvals", "answer", first["approval"], "once").code == 1
    assert asking("approvals", "answer", second["approval"], "once").code == 0
    assert asking(*resume).code == 0
    (used,) = [a for a in asking("approvals", "--all", "--json").document()["approvals"] if a["state"] == "used"]
    assert used["used_by"].startswith(resume[2])


def test_a_session_answers_nothing(asking: Albert) -> None:
    asking("run", "notes", "n=1")
    question = waiting(asking)["approval"]
    persons = (
        ("approvals", "answer", question, "once"),
        ("session", "new"),
        ("mode", "alert"),
        ("policy", "init"),
        ("policy", "show"),
        ("policy", "check"),
        ("policy", "import", "rules.yaml"),
        ("policy", "test", "expected.yaml"),
        ("policy", "try", "rules.yaml"),
        ("mount",),
        ("doctor",),
    )
    for words in persons:
        refused = asking(*words, env={"ALBERT_SESSION": "x"})
        assert (refused.code, "by a person, not in a session" in refused.err) == (3, True)
        hint = "add --within" if words == ("session", "new") else "in a shell where ALBERT_SESSION is not set"
        assert hint in refused.err


def test_an_interrupt_at_the_question(asking: Albert) -> None:
    code, seen = asking.terminal("run", "notes", "n=1", typed=b"\x03", until="always or no? [no] ")
    assert code == 130
    assert "the run was cancelled by an interrupt; nothing had been changed" in " ".join(seen.split())
    assert asking("approvals").err == "no question waits for an answer\n"


#: What the owner can do about the command `frobnicate plan`.
LASTING = [
    "  to allow it in every call, the owner adds to `tools.bash` of the rules:",
    '    ordinary_commands: ["frobnicate plan"]',
]


def test_the_question_about_a_command_offers_the_line_for_the_rules(asking: Albert) -> None:
    rules = asking.home / "config/governance.yaml"
    rules.write_text("allow: [bash]\n")
    words = ("run", "bash", "command=frobnicate plan")
    code, seen = asking.terminal(*words, typed=b"no\n", until="once or no? [no] ")
    assert (code, all(line in seen for line in LASTING)) == (3, True)
    asking(*words)
    question = waiting(asking)["approval"]
    assert "\n".join(LASTING) in asking("approvals", "show", question).out
    assert "\n".join(LASTING) in asking("approvals", "answer", question, "once").out
    rules.write_text('allow: [bash]\ntools: {bash: {ordinary_commands: ["frobnicate plan"]}}\n')
    assert asking(*words).code == 0


def test_the_question_about_a_command_says_what_it_can_change_and_reach(asking: Albert) -> None:
    rules = asking.home / "config" / "governance.yaml"
    rules.write_text(
        "writable_paths: [src/**]\nforbidden_paths: [.env, '*.pem']\ntools: {run_program: {allowed_paths: [src]}}\n"
    )
    (asking.project / "src").mkdir()
    asking.write(".env", "x")
    asking.write("src/\x1bkey.pem", "x")
    asking.write("src/x; it can change nothing: .pem", "x")
    limits = "it will not see: .env, src/\\x1bkey.pem, 'src/x; it can change nothing: .pem'; it can change only: src/"
    for command, end in {"touch x": "", "git commit -m x": "; the tool `git` can commit, and a command can't"}.items():
        assert asking("run", "bash", f"command={command}").code == 4
        question = waiting(asking)
        assert question["message"].endswith(f"; {limits}; it has no network{end}")
        assert f"; {limits}; it has no network{end} (" in asking("approvals", "show", question["approval"]).out
        assert asking("approvals", "revoke", question["approval"]).code == 0
    asking("run", "run_program", 'argv:=["touch", "x"]', "network:=true")
    hidden = "src/\\x1bkey.pem, 'src/x; it can change nothing: .pem'"
    only = f"it will see only: src; it will not see: {hidden}; it can change only: src/"
    assert waiting(asking)["message"].endswith(f"; {only}")

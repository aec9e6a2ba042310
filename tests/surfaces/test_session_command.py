"""``albert session``: opening, limits and end of a session."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from albert_tools.surfaces.text.times import about, lasting, seconds

from .conftest import Albert


def test_the_token_is_printed_once_and_alone(albert: Albert) -> None:
    opened = albert(
        "session", "new", "--client", "bot", "--tools", "write_file,read_fil", "--for", "2h", "--calls", "2"
    )
    token = opened.out.strip()
    assert re.fullmatch(r"alb_[0-9a-f]{64}\n", opened.out)
    assert "warning: there is no tool 'read_fil' (yet); did you mean 'read_file'?" in opened.err
    assert re.search(
        r"^session [0-9a-f]{16} for bot, until \d{4}.*: read_fil, write_file; at most 2 calls$", opened.err, re.M
    )
    assert token not in opened.err
    assert albert("run", "write_file", "path=a", "content=b", env={"ALBERT_SESSION": token}).code == 0
    (listed,) = albert("session", "list", "--json").document()["sessions"]
    assert (listed["client"], listed["used"], listed["ended"]) == ("bot", {"calls": 1, **listed["used"]}, False)
    shown = albert("session")
    assert "bot, 120 min left\n" in shown.out
    assert "1 of 2 calls used" in shown.out
    kept = [path for path in albert.home.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if token.encode() in path.read_bytes()]
    assert token not in shown.out + albert("ledger", "tail", "--json").out


def test_a_preset_names_the_tools(albert: Albert) -> None:
    albert.write(
        "size.tool", 'def size(path: str) -> int:\n    """Measure."""\n    return len(tools.read_file(path=path))\n'
    )
    albert.write("save.tool", 'def save() -> None:\n    """Save."""\n    tools.write_file(path="a", content="b")\n')
    assert albert("define", "size.tool", "save.tool").code == 0
    reads: dict[str, str | None] = {"ALBERT_SESSION": albert("session", "new", "--preset", "read-only").out.strip()}
    assert albert("run", "size", "path=size.tool", env=reads).code == 0
    for call in (["save"], ["write_file", "path=a", "content=b"], ["bash", "command=ls"]):
        assert albert("run", *call, env=reads).code == 3
    # Within a session, a preset gives only tools that the outer session has.
    narrow: dict[str, str | None] = {
        "ALBERT_SESSION": albert("session", "new", "--tools", "read_file,bash").out.strip()
    }
    inner = albert("session", "new", "--preset", "read-only", "--within", "--json", env=narrow).document()
    assert inner["session"]["tools"] == ["read_file"]
    assert albert("session", "new", "--preset", "trusted", "--json").document()["session"]["tools"] is None
    assert albert("session", "new", "--preset", "standard", "--tools", "bash").code == 2
    unknown = albert("session", "new", "--preset", "read-only", "--within", env={"ALBERT_SESSION": "alb_no"})
    assert "--within: there is no such session (given by ALBERT_SESSION)" in unknown.err


def test_errors_name_the_origin_of_the_session(albert: Albert) -> None:
    token = albert("session", "new", "--tools", "current_time").out.strip()
    assert albert("run", "current_time", "--session", token).code == 0
    outside = albert("run", "list_directory", env={"ALBERT_SESSION": token})
    assert outside.code == 3
    assert outside.err.startswith(
        "error[permission_denied]: list_directory is not among the tools of the session's lease "
        "(the session is given by ALBERT_SESSION)\n"
    )
    leased: dict[str, str | None] = {"ALBERT_SESSION": token}
    listed = albert("tools", env=leased)
    assert [line.split()[0] for line in listed.out.splitlines() if line.startswith("  ")] == ["current_time"]
    assert re.fullmatch(r"session [0-9a-f]{16} \(given by ALBERT_SESSION\) may call no other tools\n", listed.err)
    assert [t["name"] for t in albert("search", "time", "--json", env=leased).document()["tools"]] == ["current_time"]
    offered = albert("prompt", env=leased).out.partition("## The tools you can call")[2]
    assert re.findall(r"^- `(\w+)\(", offered, re.M) == ["current_time"]
    for words in (("show", "bash"), ("show", "no_such_tool"), ("run", "bash", "--help"), ("policy", "explain", "bash")):
        refused = albert(*words, env=leased)
        assert (refused.code, refused.out, "of the session's lease" in refused.err) == (3, "", True), words
    assert albert("show", "current_time", env=leased).code == 0
    assert albert("tools", env={"ALBERT_SESSION": "alb_no"}).code == 3
    # The option overrides the variable.
    unknown = albert("run", "current_time", "--session", "alb_no", env={"ALBERT_SESSION": token})
    assert (unknown.code, "there is no such session (the session is given by --session)" in unknown.err) == (3, True)
    empty = albert("run", "current_time", "--session", "", env={"ALBERT_SESSION": token})
    assert (empty.code, empty.err.split("\n")[0]) == (2, "error[usage]: --session is empty")


@pytest.mark.parametrize("words", [("run", "list_directory"), ("session", "new"), ("mcp",)])
def test_an_empty_variable_is_not_the_owner(albert: Albert, words: tuple[str, ...]) -> None:
    # `export ALBERT_SESSION=$(albert session new …)` leaves it empty if the option is wrong.
    refused = albert(*words, env={"ALBERT_SESSION": ""})
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        "error[usage]: ALBERT_SESSION is empty: it needs a token\n  help: unset it to act as the owner\n"
    )


def test_sessions_within_a_session_hide_no_others_and_are_counted(albert: Albert) -> None:
    albert.home.joinpath("config").mkdir(parents=True)
    albert.home.joinpath("config/governance.yaml").write_text("loops: {requests_per_hour: 3}\n")
    tokens = [albert("session", "new", "--client", name).out.strip() for name in ("honest", "flood")]
    leased: dict[str, str | None] = {"ALBERT_SESSION": tokens[1]}
    assert albert("run", "current_time", env=leased).code == 0
    inner = [albert("session", "new", "--within", "--client", f"inner{n}", env=leased).out.strip() for n in range(2)]
    for within in (tokens[1], inner[0]):
        denied = albert("session", "new", "--within", within, "--json")
        assert denied.document()["error"]["rule"] == "loops.requests_per_hour"
    assert albert("run", "current_time", env={"ALBERT_SESSION": inner[1]}).code == 3
    assert albert("run", "current_time", env={"ALBERT_SESSION": tokens[0]}).code == 0
    listed = albert("session", "list").out
    assert re.findall(r"^[0-9a-f]{16}  (\w+), ", listed, re.M) == ["flood", "honest", "inner1", "inner0"]
    assert albert("session", "list", "--page", "2").code == 2


def one(name: str, body: str) -> str:
    return f'def {name}() -> str:\n    """Do it."""\n    {body}\n'


def test_no_command_tells_a_session_what_exists_outside_of_its_lease(albert: Albert) -> None:
    for name in ("launch", "fallen"):
        albert.write(f"{name}.tool", one(name, 'tools.sleep(seconds=0)\n    return "hello"'))
        assert albert("define", f"{name}.tool").code == 0
    assert albert("remove", "fallen").code == 0
    albert.home.joinpath("config").mkdir(exist_ok=True)
    albert.home.joinpath("config/governance.yaml").write_text("tools: {sleep: {requires_approval_in_modes: [NORMAL]}}")
    waits = albert("run", "launch", "--json").document()
    run, approval = waits["run_id"], waits["error"]["details"]["approval"]
    leased: dict[str, str | None] = {
        "ALBERT_SESSION": albert("session", "new", "--tools", "read_file,launcher").out.strip()
    }
    opened = albert("session", "new", "--within", "--tools", "launcher", env=leased)
    assert "there is no tool 'launcher' (yet)\n" in opened.err
    for words, names in (
        ("run NAME", ("launch", "fallen", "absent")),
        ("run NAME --version abcd", ("launch", "fallen", "absent")),
        ("run NAME --version abcd --queue default", ("launch", "fallen", "absent")),
        ("runs resume NAME", (run, "0123456789abcdef")),
        ("runs cancel NAME", (run, "0123456789abcdef")),
        ("approvals show NAME", (approval, "01234567")),
    ):
        told = [albert(*words.replace("NAME", name).split(), env=leased) for name in names]
        answers = {
            (each.code, re.sub(rf"\b{name}\b", "NAME", each.out + each.err))
            for each, name in zip(told, names, strict=True)
        }
        ((code, answer),) = answers
        assert code == 3, words
        assert "is not among the tools of the session's lease" in answer, words
    denied = albert("ledger", "query", "--denied", "--json").document()["entries"]
    assert [entry["tool"] for entry in denied[:3]] == ["launch", "fallen", "absent"]


def test_a_session_is_not_told_the_callers_outside_of_its_lease(albert: Albert) -> None:
    opened = albert("session", "new", "--tools", "define_tool,remove_tool").out.strip()
    leased: dict[str, str | None] = {"ALBERT_SESSION": opened}
    albert.write("mine.tool", one("mine", 'return "hello"'))
    albert.write("secret.tool", one("secret", "return tools.mine()"))
    assert albert("define", "mine.tool", env=leased).code == 0
    assert albert("define", "secret.tool").code == 0
    albert.write("mine.tool", one("mine", 'return "hi"'))
    for words in (("define", "mine.tool"), ("remove", "mine")):
        done = albert(*words, "--json", env=leased)
        assert (done.code, "secret" in done.out + done.err) == (0, False), words


def test_the_end_of_a_session(albert: Albert) -> None:
    opened = albert("session", "new", "--json").document()
    session, token = opened["session"]["session"], opened["token"]
    below = albert("session", "new", "--within", "--calls", "1", "--json", env={"ALBERT_SESSION": token}).document()
    assert below["session"]["parent"] == session
    revoked = albert("session", "revoke", session[:6])
    assert re.fullmatch(rf"revoked {session} of .*, and 1 within it\n", revoked.out)
    for gone in (token, below["token"]):
        assert "has been revoked" in albert("run", "current_time", "--session", gone).err
    assert albert("session").err == "there are no open sessions; --all lists 2 others\n"
    assert albert("session", "list", "--all").out.count(", ended") == 2


def test_commands_in_a_session_act_for_the_session(albert: Albert) -> None:
    albert.write(
        "greet.tool", 'def greet() -> str:\n    """Greet."""\n    tools.sleep(seconds=0)\n    return "hello"\n'
    )
    albert("define", "greet.tool")
    albert.home.joinpath("config").mkdir(exist_ok=True)
    albert.home.joinpath("config/governance.yaml").write_text("tools: {sleep: {requires_approval_in_modes: [NORMAL]}}")
    waits = albert("run", "greet", "--json").document()
    run, approval = waits["run_id"], waits["error"]["details"]["approval"]
    other = albert("session", "new", "--json").document()["session"]["session"]
    opened = albert("session", "new", "--tools", "greet,define_tool", "--json").document()
    mine, leased = opened["session"]["session"], {"ALBERT_SESSION": opened["token"]}
    albert.write("greet.tool", 'def greet() -> str:\n    """Greet."""\n    return "hi"\n')
    for words, rule in (
        (("define", "greet.tool"), "another_author"),
        (("remove", "greet"), "lease.tools"),
        (("runs", "show", run), "lease.tools"),
        (("runs", "cancel", run), "lease.tools"),
        (("runs", "resume", run), "lease.tools"),
        (("runs", "replay", run), "session.person"),
        (("runs", "sweep"), "session.person"),
        (("policy", "test", "expected.yaml"), "session.person"),
        (("session", "revoke", other), "lease.tools"),
        (("approvals", "show", approval), "lease.tools"),
        (("approvals", "revoke", approval), "session.person"),
        (("ledger", "tail"), "lease.tools"),
        (("ledger", "export"), "lease.tools"),
        (("ledger", "trim"), "session.person"),
    ):
        done = albert(*words, "--json", env=leased)
        assert done.code != 0
        assert rule in done.out, (words, done.out)
    # A person sees the whole source, line by line, before the answer.
    (question,) = [a for a in albert("approvals", "--json").document()["approvals"] if a["tool"] == "define_tool"]
    asked = albert("approvals", "show", question["approval"]).out
    assert '  source =\n    │ def greet() -> str:\n    │     """Greet."""\n    │     return "hi"\n' in asked
    assert "stored_source" not in asked
    assert albert("approvals", "answer", question["approval"], "once").code == 0
    assert albert("define", "greet.tool", env=leased).code == 0
    assert f"current  by the session {mine}" in albert("show", "greet").out
    assert f"by the session {mine}\n" in albert("ledger", "tail", "--tool", "greet").out
    assert f"greet was changed by the session {mine} at 2" in albert("run", "greet").err
    # Its own things are its own.
    assert albert("runs", "--json", env=leased).document()["runs"] == []
    own = albert("run", "greet", "--json", env=leased).document()["run_id"]
    assert [r["run"] for r in albert("runs", "--json", env=leased).document()["runs"]] == [own]
    assert [s["session"] for s in albert("session", "--json", env=leased).document()["sessions"]] == [mine]
    assert albert("session", "revoke", mine, env=leased).code == 0


def test_a_budget_and_a_folder(albert: Albert) -> None:
    (albert.project / "sub").mkdir()
    token = albert("session", "new", "--cwd", "sub", "--bytes-written", "3").out.strip()
    env = {"ALBERT_SESSION": token}
    assert albert("run", "write_file", "path=a", "content=abc", env=env).code == 0
    assert (albert.project / "sub" / "a").read_text() == "abc"
    over = albert("run", "write_file", "path=b", "content=x", env=env)
    assert over.code == 3
    assert over.err.startswith("error[budget_exceeded]: ")
    assert "(the session is given by ALBERT_SESSION)\n" in over.err
    assert not (albert.project / "sub" / "b").exists()


def test_a_person_is_shown_the_folder_of_a_session(albert: Albert) -> None:
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("allow: [bash]\nwritable_paths: [web/**]\nforbidden_paths: [web/secret.txt]\n")
    (albert.project / "web").mkdir()
    albert.write("web/secret.txt", "x")
    there: dict[str, str | None] = {"ALBERT_SESSION": albert("session", "new", "--cwd", "web").out.strip()}
    assert albert("run", "bash", "command=./d.sh", env=there).code == 4
    (question,) = albert("approvals", "list", "--json").document()["approvals"]
    shown = albert("approvals", "show", question["approval"]).out
    assert "is not known to be harmless; paths start in web; " in " ".join(shown.split())
    assert 'ordinary_commands: ["./web/d.sh"]' in shown
    # What the rules decide is said of this folder, too.
    explain = ("policy", "explain")
    assert albert(*explain, "write_file", "path=a", "content=b", env=there).code == 0
    assert albert(*explain, "write_file", "path=a", "content=b").code == 3
    assert albert(*explain, "read_file", "path=secret.txt", env=there).code == 3
    draft = albert.write("draft.yaml", 'allow: [bash]\ntools: {bash: {ordinary_commands: ["./d.sh"]}}\n')
    assert albert("policy", "try", draft).out == "of 1 recorded calls, 0 would be decided differently\n"
    albert.write("draft.yaml", 'allow: [bash]\ntools: {bash: {ordinary_commands: ["./web/d.sh"]}}\n')
    assert "of 1 recorded calls, 1 would be decided differently" in albert("policy", "try", draft).out


def test_explain_in_a_session_knows_its_lease_and_what_it_has_seen(albert: Albert) -> None:
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("deny_flow: [{from: {session: [private]}, to: {effects: [network]}}]\n")
    albert.write(".env", "x")
    session: dict[str, str | None] = {
        "ALBERT_SESSION": albert("session", "new", "--tools", "read_file,http_request").out.strip()
    }
    assert albert("policy", "explain", "define_tool", "source=x", env=session).code == 3
    request = ("policy", "explain", "http_request", "url=https://example.org/")
    assert "decision: ask" in albert(*request, env=session).out
    assert albert("run", "read_file", "path=.env", env=session).code == 0
    assert "deny  deny_flow.0  this session has read private data" in " ".join(
        albert(*request, env=session).out.split("\n")
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["new", "--for", "3x"], 2, "expected a time such as 90s, 15m, 2h or 30d, got '3x'"),
        (["new", "--calls=-1"], 2, "expected a whole number, 0 or more"),
        (["new", "--tools", ","], 2, "--tools names no tool"),
        (["new", "--client", ""], 1, "a client is a name of at most 256 characters"),
        (["new", "--cwd", "../x"], 3, "'../x' has '..' in it"),
        (["new", "--within"], 2, "ALBERT_SESSION is not set"),
        (["new", "--within", "alb_0"], 3, "--within: there is no such session"),
        (["revoke", "zz"], 1, "no session begins with 'zz'"),
        (["nwe"], 2, "session has no command 'nwe'; did you mean 'new'?"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_mistakes(ready: Albert, words: list[str], code: int, said: str) -> None:
    done = ready("session", *words, env={"ALBERT_SESSION": None})
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_a_session_needs_a_workspace(albert: Albert, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    done = albert("session", "new", cwd=nowhere)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error[governance_unavailable]: ")


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("1.5h", 5400), ("15m", 900), ("15min", 900), ("2d", 172800)])
def test_times_are_read(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "2", "h", "0s", "-1h", "1e3s", "2 h", "9999999d", "²h"])
def test_invalid_times(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        seconds(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ms"),
        (0.0123, "12 ms"),
        (0.9996, "1.0 s"),
        (59.97, "1 min"),
        (61.2, "1 min 1 s"),
        (3600, "1 h"),
        (7384, "2 h 3 min"),
        (3599.9, "1 h"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_are_written(value: float, text: str) -> None:
    assert lasting(value) == text


def test_durations_are_written_roughly() -> None:
    assert [about(v) for v in (3, 119, 120, 7200, 172800)] == ["3 s", "119 s", "2 min", "2 h", "2 d"]


def test_define_in_a_session_exits_as_its_denial_or_question_does(albert: Albert) -> None:
    source = 'def t() -> int:\n    """One."""\n    return {}\n'
    albert.write("owners.tool", source.format(1))
    albert.write("other.tool", source.format(2))
    albert.write("wrong.tool", "def t(:\n")
    assert albert("define", "owners.tool").code == 0
    reads: dict[str, str | None] = {"ALBERT_SESSION": albert("session", "new", "--tools", "read_file").out.strip()}
    defines: dict[str, str | None] = {"ALBERT_SESSION": albert("session", "new", "--tools", "define_tool").out.strip()}
    assert albert("define", "other.tool", env=reads).code == 3
    assert albert("define", "other.tool", env=defines).code == 4
    assert albert("define", "other.tool", "wrong.tool", env=defines).code == 1


def test_a_session_is_told_that_a_person_answers(albert: Albert) -> None:
    leased: dict[str, str | None] = {"ALBERT_SESSION": albert("session", "new", "--tools", "bash").out.strip()}
    waits = albert("run", "bash", "command=echo done", env=leased)
    assert waits.code == 4
    hint = re.search(
        r"a person answers with `albert (approvals answer \w+ once)`, outside the session; then `albert (runs resume \w+)`",
        waits.err,
    )
    assert hint is not None
    assert albert(*hint[1].split(), env=leased).code == 3
    assert albert(*hint[1].split()).code == 0
    assert "done" in albert(*hint[2].split(), env=leased).out

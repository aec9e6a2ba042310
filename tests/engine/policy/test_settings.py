"""The owner's rules: what they allow, and how a project tightens them. A mistake in them denies every call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools import Failure
from albert_tools.engine.model.limits import MOST_OF_RUN, LoopLimits, RunLimits
from albert_tools.engine.policy.settings import MAX_BYTES, Governance, load_governance, read_governance


def load(tmp_path: Path, user: str | bytes | None, project: str | None = None) -> Governance:
    paths = tmp_path / "user.yaml", tmp_path / "project.yaml"
    for path, text in zip(paths, (user, project), strict=True):
        if text is not None:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_governance(*paths)


def refused(tmp_path: Path, user: str | bytes) -> str:
    with pytest.raises(Failure) as caught:
        load(tmp_path, user)
    failure = caught.value
    assert failure.code == "governance_unavailable"
    assert failure.denied
    assert failure.hint == "correct it; until then every call is denied"
    start = f"the rules of {str(tmp_path / 'user.yaml')!r} can't be used: "
    assert failure.message.startswith(start)
    return failure.message.removeprefix(start)


def test_a_missing_or_empty_file_has_the_default_rules(tmp_path: Path) -> None:
    assert load(tmp_path, None) == Governance()
    assert load(tmp_path, "").limits == RunLimits()
    assert load(tmp_path, "# nothing yet\n").allow == frozenset()
    assert load_governance(tmp_path / "none.yaml", None) == Governance()
    (tmp_path / "file").write_text("")
    assert load_governance(tmp_path / "file" / "governance.yaml", None) == Governance()


def test_a_complete_file(tmp_path: Path) -> None:
    rules = load(
        tmp_path,
        "allow: [bash]\ndeny: [write_file, my_tool]\nlimits: {own_seconds: 5, calls: 3}\n"
        "primitives:\n  bash: {shell: /bin/sh}\n",
    )
    assert rules.allow == {"bash"}
    assert rules.deny == {"write_file", "my_tool"}
    assert (rules.limits.own_seconds, rules.limits.calls) == (5, 3)
    assert rules.limits.run_seconds == RunLimits().run_seconds
    assert rules.primitives == {"bash": {"shell": "/bin/sh"}}


def test_the_limits_that_the_owner_can_set(tmp_path: Path) -> None:
    assert load(tmp_path, "limits: {own_seconds: 30, calls: 10, depth: 3}").limits == RunLimits(calls=10, depth=3)
    # A call may take as long as its arguments can ask for.
    most_of_time = {"run_seconds": 3600.0, "call_seconds": 3600.0}
    raised = load(tmp_path, "limits: {run_seconds: 3600, call_seconds: 3600}").limits
    assert raised == RunLimits(**most_of_time)
    for name, most in {**RunLimits()._asdict(), **most_of_time}.items():
        said = refused(tmp_path, f"limits: {{{name}: {most + 1}}}")
        assert f"limits.{name}: input should be less than or equal to {int(most)}" in said


def test_a_projects_file_lowers_only_the_limits_that_it_states(tmp_path: Path) -> None:
    owner, project = tmp_path / "owner.yaml", tmp_path / "project.yaml"
    owner.write_text("limits: {call_seconds: 1000, run_seconds: 900}\nloops: {identical_failures: 100}\n")
    project.write_text("limits: {run_seconds: 600, own_seconds: 5}\nloops: {requests_per_hour: 50}\n")
    rules = load_governance(owner, project)
    assert rules.limits == RunLimits(own_seconds=5, run_seconds=600, call_seconds=1000)
    assert rules.loops == LoopLimits(identical_failures=100, requests_per_hour=50)
    project.write_text("limits: {call_seconds: 3600}\n")
    assert load_governance(owner, project).limits.call_seconds == 1000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alow: [bash]", "alow: there is no such key; did you mean 'allow'?"),
        ("limits: {cals: 1}", "limits.cals: there is no such key; did you mean 'calls'?"),
        ("zzz: 1\nallow: bash", "zzz: there is no such key"),
        ("allow: bash", "allow: expected a list; write `allow: [bash]`"),
        ("deny: [1]", "deny.0: input should be a valid string"),
        ("limits: {own_seconds: -1}", "limits.own_seconds: input should be greater than 0"),
        ("limits: {own_seconds: .nan}", "limits.own_seconds: input should be less than or equal to 30"),
        ("limits: {calls: true}", "limits.calls: input should be a valid integer"),
        ("limits: {memory_bytes: 5}", "limits.memory_bytes: input should be greater than or equal to 16777216"),
        ("primitives: {bash: 1}", "primitives.bash: input should be a valid dictionary"),
        (
            "tools:\n  bash: {rate_limit_per_hours: 5}",
            "line 2, column 10: tools.bash.rate_limit_per_hours: there is no such key; did you mean",
        ),
        ("tools: {a: {rate_limit_per_hour: 0}}", "a.rate_limit_per_hour: input should be greater than or equal to 1"),
        ("tools: {a: {rate_limit_per_hour: 1.5}}", "a.rate_limit_per_hour: input should be a valid integer"),
        ("categories: {network: {rate_limit_per_hour: 1000001}}", "input should be less than or equal to 1000000"),
        ("limits: {own_seconds: 60}", "limits.own_seconds: input should be less than or equal to 30"),
        ("limits: {run_seconds: .inf}", "limits.run_seconds: input should be less than or equal to 3600"),
        ("tools: {a: {max_file_size_mb: 1025}}", "a.max_file_size_mb: input should be less than or equal to 1024"),
        ("tools: {a: {timeout_seconds: 3601}}", "a.timeout_seconds: input should be less than or equal to 3600"),
        ("- allow", "it is not a mapping; rules are written as `allow: [bash]`"),
        ("just text", "it is not a mapping; rules are written as `allow: [bash]`"),
        ("allow: [bash", "line 1, column 13: expected ',' or ']'"),
        ("allow: []\n\tdeny: []", "line 2, column 1: found character"),
        ("deny: [bash]\nallow: []\ndeny: []", "line 3, column 1: the key 'deny' is repeated"),
        ("limits:\n  calls: 1\n  calls: 2", "line 3, column 3: the key 'calls' is repeated"),
        ("1: 2", "1: keys should be strings"),
        ("? {a: 1}\n: 1", "line 1, column 3: found unhashable key"),
        ("allow: !!python/object:os.system {}", "line 1, column 8: could not determine a constructor"),
        ("limits: {own_seconds: 2020-13-45}", "it is not YAML: month must be in 1..12"),
        ("limits: {calls: " + "9" * 5000 + "}", "it is not YAML: Exceeds the limit"),
        ("- " * 1500, "it is not YAML: maximum recursion depth"),
        (b"deny: [\xff]", "it is not YAML: "),
        (b"deny: [\x00]", "it is not YAML: "),
        ("#" * (MAX_BYTES + 1), "it is larger than 262,144 bytes"),
    ],
)
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert said in refused(tmp_path, text)


def test_all_mistakes_are_reported(tmp_path: Path) -> None:
    assert refused(tmp_path, "alow: []\nlimits: {calls: -1}").count(";") == 2


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "user.yaml"
    for make, said in (
        (path.mkdir, "it is not a file"),
        (lambda: os.mkfifo(path), "it is not a file"),
        (lambda: path.symlink_to("nowhere"), "it is a symbolic link"),
    ):
        make()
        with pytest.raises(Failure, match=said):
            load_governance(path, None)
        with pytest.raises(Failure, match=said):
            load_governance(Governance(), path)
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(Failure, match="can't be opened: File name too long"):
        load_governance(tmp_path / ("n" * 300), None)


@pytest.mark.parametrize(
    ("user", "project", "allow", "deny"),
    [
        ("allow: [a, b]", "allow: [b, c]", {"b"}, set()),
        ("allow: [a]", "deny: [x]", {"a"}, {"x"}),
        ("allow: [a]", "", {"a"}, set()),
        ("allow: [a]", "allow: []", set(), set()),
        ("deny: [x]", "deny: [y]", set(), {"x", "y"}),
        (None, "allow: [a]", set(), set()),
    ],
)
def test_a_project_tightens(tmp_path: Path, user: str | None, project: str, allow: set[str], deny: set[str]) -> None:
    rules = load(tmp_path, user, project)
    assert (rules.allowed, rules.denied) == (allow, deny)


def test_a_project_does_not_set_primitives(tmp_path: Path) -> None:
    project = "primitives: {bash: {shell: /tmp/evil}}\nlimits: {calls: 900}"
    rules = load(tmp_path, "limits: {calls: 5}\nprimitives: {bash: {shell: /bin/sh}}", project)
    assert rules.primitives == {"bash": {"shell": "/bin/sh"}}
    assert rules.limits.calls == 5


def test_rules_of_an_application(tmp_path: Path) -> None:
    own = read_governance({"allow": ["bash"], "primitives": {"bash": {"shell": "x"}}}, "the application")
    (tmp_path / "p.yaml").write_text("limits: {calls: 2}")
    rules = load_governance(own, tmp_path / "p.yaml")
    assert (rules.allowed, rules.primitives, rules.limits.calls) == ({"bash"}, {"bash": {"shell": "x"}}, 2)
    with pytest.raises(
        Failure, match=r"the rules of the application can't be used: allow: expected a list; write `allow: \[bash\]`"
    ):
        read_governance({"allow": "bash"}, "the application")
    with pytest.raises(Failure, match="it is not a mapping"):
        read_governance(3)


NAMES = st.frozensets(st.sampled_from("abc"))
RULES = st.builds(
    lambda **rules: Governance(**rules),
    allow=NAMES,
    deny=NAMES,
    limits=st.builds(lambda n, t: RunLimits(calls=n, own_seconds=t), st.integers(0, 5), st.floats(0.1, 5)),
    says_allow=st.booleans(),
)


@given(RULES, RULES)
def test_tightening_never_loosens(one: Governance, other: Governance) -> None:
    both = one.tightened(other)
    assert both.allowed <= one.allowed
    assert both.denied >= one.denied | other.denied
    assert all(b <= min(o, t) for b, o, t in zip(both.limits, one.limits, other.limits, strict=True))


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda x: (
        st.lists(x, max_size=3)
        | st.dictionaries(st.sampled_from(["allow", "deny", "limits", "calls", "primitives", "x", 1]), x, max_size=3)
    ),
    max_leaves=6,
)


@given(DOCUMENTS)
def test_any_document_gives_rules_or_is_refused(document: Any) -> None:
    try:
        rules = read_governance(document)
    except Failure as failure:
        rules = failure  # type: ignore[assignment]
    if isinstance(rules, Failure):
        assert rules.code == "governance_unavailable"
    else:
        assert all(a <= b for a, b in zip(rules.limits, MOST_OF_RUN, strict=True))


PRIMITIVES = ("read_file", "bash", "git")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"tools": {"read_fiel": {}}}, "tools.read_fiel: did you mean 'read_file'?"),
        ({"deny": ["bash", "gti"]}, "deny.gti: did you mean 'git'?"),
        ({"tools": {"Bash": {}}}, "tools.Bash: did you mean 'bash'?"),
        ({"primitives": {"bsh": {"memory_mb": 64}}}, "primitives.bsh: did you mean 'bash'?"),
        (
            {"deny": ["read_*"]},
            "deny.0: the name of one tool is expected, without wildcards; `categories` has rules on",
        ),
        ({"tools": {"": {}}}, "tools.: the name of one tool is expected"),
    ],
)
def test_a_misspelled_tool_is_refused(document: dict[str, Any], said: str) -> None:
    with pytest.raises(Failure) as caught:
        read_governance(document, primitives=PRIMITIVES)
    assert caught.value.code == "governance_unavailable"
    assert said in caught.value.message


@pytest.mark.parametrize(
    "document",
    [
        # A saved tool, a tool that will be saved, a tool of an application that isn't running, a tool of another server.
        {"deny": ["deploy"], "tools": {"read_config": {}, "send_invoice": {}, "crm.find": {}}},
        {"deny": ["read_files"], "tools": {"read_files": {}}, "other_tools": ["read_files"]},
        # A misspelled name under `allow` allows nothing.
        {"allow": ["bsh"]},
    ],
)
def test_a_rule_on_another_tool_is_accepted(document: dict[str, Any]) -> None:
    assert read_governance(document, primitives=PRIMITIVES)


def test_only_the_owner_sets_what_is_stored_for_a_session(tmp_path: Path) -> None:
    assert load(tmp_path, "").session_bytes == 256 * 1024 * 1024
    assert load(tmp_path, "records: {session_mb: 0.5}").session_bytes == 512 * 1024
    assert "records.session_mb: input should be greater than 0" in refused(tmp_path, "records: {session_mb: 0}")
    assert load(tmp_path, "", "records: {session_mb: 1024}").session_bytes == 256 * 1024 * 1024


SIGN_IN = """
sign_in:
  resource: https://tools.example.org/mcp
  issuer: https://login.example.org/realms/team
  leases:
    - {name: writers, claims: {groups: [docs], team: [red, blue]}}
    - {name: all, claims: {groups: [all, docs]}, tools: [read_file], budget: {calls: 5}, hours: 0.5}
"""


def test_the_first_lease_that_fits_the_claims_applies(tmp_path: Path) -> None:
    rules = load(tmp_path, SIGN_IN).sign_in
    assert rules is not None

    def lease(**claims: Any) -> str | None:
        found = rules.lease_of(claims)
        return found and found.name

    assert lease(groups=["docs", "x"], team="red") == "writers"
    assert lease(groups="docs", team="green") == "all"
    for groups in (None, [], "", "alls", "docs all", {"all": 1}, ["ALL"], [["all"]], True, 1):
        assert lease(groups=groups, team="red") is None
    assert lease(team="red") is None
    assert rules.leases[1].budget.calls == 5


def test_the_terms_of_a_lease_are_all_that_decides_who_gets_it(tmp_path: Path) -> None:
    rules = load(tmp_path, SIGN_IN).sign_in
    assert rules is not None
    terms = rules.terms(rules.leases[1])
    for old, new in [
        ("tools.", "t."),
        ("login.", "l."),
        ("[all, docs]", "[all]"),
        ("calls: 5", "calls: 6"),
        ("0.5", "1"),
    ]:
        changed = load(tmp_path, SIGN_IN.replace(old, new)).sign_in
        assert changed is not None
        assert changed.terms(changed.leases[1]) != terms
    other = load(tmp_path, SIGN_IN.replace("team: [red, blue]", "team: [red]"))
    assert other.sign_in is not None
    assert other.sign_in.terms(other.sign_in.leases[1]) == terms
    assert other.revision != load(tmp_path, SIGN_IN).revision


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("https://tools", "http://tools", "sign_in.resource: an https:// address is expected"),
        ("https://login", "ftp://login", "sign_in.issuer: an https:// address is expected"),
        ("https://login", "https://me:pw@login", "an address without a user"),
        ("/mcp", "/mcp#a", "an address without a user"),
        ("https://tools", "https://Tools", "write the host in lower case"),
        ("claims: {groups: [all, docs]}", "claims: {}", "sign_in.leases.1.claims: dictionary should have at least 1"),
        ("claims: {groups: [all, docs]}, ", "", "sign_in.leases.1.claims: field required"),
        ("[all, docs]", "[]", "sign_in.leases.1.claims.groups: list should have at least 1"),
        ("calls: 5", "cals: 5", "did you mean 'calls'?"),
        ("hours: 0.5", "hours: 0", "sign_in.leases.1.hours: input should be greater"),
        ("  issuer:", "  scopes: [a b]\n  issuer:", "a scope is one word"),
        ("tools: [", "tool: [", "there is no such key"),
    ],
)
def test_mistakes_in_sign_in(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in refused(tmp_path, SIGN_IN.replace(old, new))


def test_addresses_of_this_machine_need_no_tls(tmp_path: Path) -> None:
    for host in ("127.0.0.1:8080", "localhost:8080", "[::1]:8080"):
        assert load(tmp_path, SIGN_IN.replace("https://login.example.org", f"http://{host}")).sign_in
    for host in ("localhost.example.org", "127.0.0.1.example.org", "10.0.0.1"):
        assert "an https:// address" in refused(
            tmp_path, SIGN_IN.replace("https://login.example.org", f"http://{host}")
        )


def test_a_project_lets_nobody_in(tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        load(tmp_path, "", SIGN_IN)
    assert "only the owner's file can have sign_in" in caught.value.message

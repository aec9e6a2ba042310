"""Exit codes tell a script what it can do next."""

from __future__ import annotations

import pytest

from albert_tools import Failure
from albert_tools.surfaces.text.exit_codes import exit_of
from tests.surfaces.conftest import Albert


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("permission_denied", 3),
        ("governance_unavailable", 3),
        ("rate_limited", 3),
        ("budget_exceeded", 3),
        ("unknown_tool", 3),
        ("suspended", 4),
        ("diverged", 1),
        ("unknown_outcome", 1),
        ("timeout", 1),
    ],
)
def test_exit_code_of_a_failure(code: str, exit_code: int) -> None:
    assert exit_of(Failure(code, "x")) == exit_code


def test_a_denial_after_a_change_is_not_reported_as_if_nothing_was_done(albert: Albert) -> None:
    albert.write(
        "copies.tool",
        'def copies(first: str, second: str) -> None:\n    """Write two files."""\n'
        '    tools.write_file(path=first, content="x")\n    tools.write_file(path=second, content="x")\n',
    )
    assert albert("define", "copies.tool").code == 0
    half = albert("run", "copies", "first=a", "second=/etc/b")
    assert half.code == 1
    assert half.err.splitlines()[0] == "wrote a, 1 byte"
    assert "; 1 of its calls had changed something" in half.err
    none = albert("run", "copies", "first=/etc/b", "second=a")
    assert none.code == 3
    assert "changed something" not in none.err
    (albert.project / "link").symlink_to("/")
    refused = albert("run", "copies", "first=link/b", "second=a")
    assert "changed something" not in refused.err

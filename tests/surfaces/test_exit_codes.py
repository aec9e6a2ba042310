"""Exit codes tell a script what it can do next."""

from __future__ import annotations

import pytest

from albert_tools import Failure
from albert_tools.surfaces.cli.exit_codes import exit_of


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("permission_denied", 3),
        ("governance_unavailable", 3),
        ("rate_limited", 3),
        ("budget_exceeded", 3),
        ("suspended", 4),
        ("diverged", 1),
        ("unknown_outcome", 1),
        ("timeout", 1),
    ],
)
def test_exit_code_of_a_failure(code: str, exit_code: int) -> None:
    assert exit_of(Failure(code, "x")) == exit_code

"""A row of the catalogue's table: how each primitive is called by the tests that hold for all of them.

A primitive's row is in its own test file, in the dictionary `CATALOGUE`. `tests/test_catalogue.py` collects them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: What the table demands of every primitive. A row shows it, or names the test that does.
DEMANDS = ("done", "denied", "timeout", "cancelled", "composite", "command_line")

#: A section of the rules that forbids a tool in the mode of the tests, and the rule that it denies by.
NOT_NOW = {"forbidden_in_modes": ["NORMAL"]}
NOT_NOW_RULE = "forbidden_in_modes"

#: The content of the artifact `old`, which is published before the calls.
PUBLISHED = "kept"


@dataclass(frozen=True)
class Row:
    """A call that succeeds, and what it leaves on record.

    Attributes:
        arguments: Those of the call.
        effects: Some fields of each effect, in order.
        section: The tool's section of the rules that denies the call.
        rule: The rule of that section that denies it.
        slow: Arguments of a call that takes minutes. Without them the timeout is too short for any call.
        proved: By demand the test of another file that shows it, as `path::test`.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    effects: list[dict[str, Any]] = field(default_factory=list)
    section: dict[str, Any] = field(default_factory=lambda: dict(NOT_NOW))
    rule: str = NOT_NOW_RULE
    slow: dict[str, Any] | None = None
    proved: Mapping[str, str] = field(default_factory=dict)


def elsewhere(path: str, **tests: str) -> Row:
    """A row of a family that has its own tests, in the file `path` or in the file that is named with the test."""
    return Row(proved={demand: name if "::" in name else f"{path}::{name}" for demand, name in tests.items()})


def reading(arguments: dict[str, Any] | None = None, **facts: Any) -> Row:
    """A row of a tool that reads something that no rule names; `facts` are of its effect."""
    return Row(arguments or {}, [{"kind": "read", **facts}] if facts else [])


def running(arguments: dict[str, Any], **facts: Any) -> Row:
    """A row of a tool that runs a command; `facts` are of its effect."""
    return Row(arguments, [{"kind": "execute", "exit_code": 0, **facts}])

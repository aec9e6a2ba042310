"""A row of the catalogue's table shows how to call one primitive. The tests that apply to every primitive use these rows.

The row of a primitive is in the primitive's own test file, in the dictionary `CATALOGUE`. `tests/test_catalogue.py` collects
the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: The demands on every primitive. A row gives the arguments that show a demand, or names the test that shows it.
DEMANDS = ("done", "denied", "timeout", "cancelled", "composite", "command_line")

#: A section of the rules that forbids a tool in the mode of the tests, and the name of the rule that denies the call.
NOT_NOW = {"forbidden_in_modes": ["NORMAL"]}
NOT_NOW_RULE = "forbidden_in_modes"

#: The content of the artifact `old`. The artifact is published before the calls.
PUBLISHED = "kept"
#: The id of a batch. It is started before the calls.
STARTED = "0123456789abcdef"


@dataclass(frozen=True)
class Row:
    """A call that succeeds, and the effects that the call records.

    Attributes:
        arguments: The arguments of the call.
        effects: Some fields of each recorded effect, in order.
        section: The tool's section of the rules, which denies the call.
        rule: The name of the rule in that section that denies the call.
        slow: Arguments of a call that takes minutes. A row without them uses a timeout that is too short for any call.
        proved: Maps a demand to the test in another file that shows it, written as `path::test`.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    effects: list[dict[str, Any]] = field(default_factory=list)
    section: dict[str, Any] = field(default_factory=lambda: dict(NOT_NOW))
    rule: str = NOT_NOW_RULE
    slow: dict[str, Any] | None = None
    proved: Mapping[str, str] = field(default_factory=dict)


def elsewhere(path: str, **tests: str) -> Row:
    """A row of a family of primitives that has its own tests. They are in the file `path`, unless a test names another file."""
    return Row(proved={demand: name if "::" in name else f"{path}::{name}" for demand, name in tests.items()})


def reading(arguments: dict[str, Any] | None = None, **facts: Any) -> Row:
    """A row of a tool that reads something that no rule names. `facts` are the expected fields of its effect."""
    return Row(arguments or {}, [{"kind": "read", **facts}] if facts else [])


def running(arguments: dict[str, Any], **facts: Any) -> Row:
    """A row of a tool that runs a command. `facts` are the expected fields of its effect."""
    return Row(arguments, [{"kind": "execute", "exit_code": 0, **facts}])

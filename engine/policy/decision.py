"""The outcome of judging a call or a part of it: allow, ask or deny, with the rule that gave it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure

Verdict = Literal["allow", "ask", "deny"]

#: The strictest verdict applies. How closely a rule fits never counts.
STRICTNESS: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}

#: The reason, in a word that programs can compare.
Rationale = Literal[
    "allowed",
    "no_rule",
    "denied",
    "off_by_default",
    "mode",
    "tool_mode",
    "path",
    "host",
    "address",
    "method",
    "operation",
    "command",
    "dangerous_command",
    "unknown_command",
    "provider",
    "model",
    "size",
    "approval_required",
    "outside_workspace",
    "interrupted",
]

#: A subject: a lasting answer is for calls with exactly these arguments.
WHOLE_CALL = "the call as it is"

#: Among equally strict decisions, the one that says most about the call is shown.
_SPECIFIC: dict[Rationale, int] = {"dangerous_command": 2, "unknown_command": 1}


class Decision(NamedTuple):
    """One verdict. `rule` is the place of the rule in the file, `message` a sentence for people and agents, empty for *allow*."""

    verdict: Verdict
    rule: str
    rationale: Rationale
    message: str = ""
    hint: str | None = None
    #: What a lasting answer covers, where that is less than the whole call: ``GET example.org``.
    subject: str = ""

    def failure(self, tool: str) -> Failure:
        """The denial that this decision is, or becomes when nobody can be asked."""
        why: dict[str, Json] = {"rationale_code": self.rationale}
        return Failure("permission_denied", self.message, hint=self.hint, rule=self.rule, tool=tool, details=why)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        return {
            "verdict": self.verdict,
            "allowed": self.verdict == "allow",
            "rule_id": self.rule,
            "rationale_code": self.rationale,
            "message": self.message,
        }


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The decision that applies: the first of the strictest; a dangerous command comes before other reasons.

    Raises:
        ValueError: `decisions` is empty.
    """
    return max(decisions, key=lambda d: (STRICTNESS[d.verdict], _SPECIFIC.get(d.rationale, 0)))

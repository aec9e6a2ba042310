"""The answer to "may this be done?", with the rule that gave it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure

Verdict = Literal["allow", "ask", "deny"]

#: The graver verdict wins, whatever rule it comes from: how closely a rule fits never counts.
GRAVITY: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}

#: Why, in a word that programs can match on.
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
    "dynamic_command",
    "provider",
    "model",
    "size",
    "approval_required",
    "outside_workspace",
    "interrupted",
]

#: A subject: a lasting answer is about the call with the very arguments that it has, whoever makes it.
WHOLE_CALL = "the call as it is"

#: Of verdicts that weigh the same, those that say most about the call are the ones to be shown.
_TELLING: dict[Rationale, int] = {"dangerous_command": 2, "dynamic_command": 1}


class Decision(NamedTuple):
    """One verdict. `rule` names the rule as it is written in the file, `message` says it in a sentence."""

    verdict: Verdict
    rule: str
    rationale: Rationale
    message: str = ""
    hint: str | None = None
    #: What a lasting answer is about, where that is less than the whole call: ``GET example.org``.
    subject: str = ""

    def failure(self, tool: str) -> Failure:
        """The denial that this is, or that it comes to when nobody can be asked."""
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


def gravest(decisions: Iterable[Decision]) -> Decision:
    """The one that holds when several speak: the first of those that weigh most; a dangerous command before other reasons.

    Raises:
        ValueError: there is none.
    """
    return max(decisions, key=lambda d: (GRAVITY[d.verdict], _TELLING.get(d.rationale, 0)))

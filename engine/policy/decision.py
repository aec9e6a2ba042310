"""The decision on a call or on a part of it: allow, ask or deny, with the rule behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure

Verdict = Literal["allow", "ask", "deny"]

#: The strictest verdict applies. It doesn't matter how specific a rule is.
STRICTNESS: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}

#: The reason as a word that programs can compare.
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
    "flow",
]

#: A value of `subject`: a lasting answer covers only calls with exactly these arguments.
WHOLE_CALL = "the call as it is"

#: If several decisions are equally strict, the most specific one is shown.
_SPECIFIC: dict[Rationale, int] = {"dangerous_command": 2, "unknown_command": 1}


class Decision(NamedTuple):
    """One verdict. `rule` is the place of the rule in the file. `message` is a sentence for people and agents, empty for
    *allow*."""

    verdict: Verdict
    rule: str
    rationale: Rationale
    message: str = ""
    hint: str | None = None
    #: The part of the call that a lasting answer covers, such as ``GET example.org``; empty if it covers the whole call.
    subject: str = ""

    def failure(self, tool: str) -> Failure:
        """The denial for this decision. An *ask* becomes a denial if nobody can be asked."""
        why: dict[str, Json] = {"rationale_code": self.rationale}
        return Failure("permission_denied", self.message, hint=self.hint, rule=self.rule, tool=tool, details=why)

    @classmethod
    def of(cls, failure: Failure) -> Decision:
        """The decision for a denial."""
        rationale = failure.details.get("rationale_code", "denied")
        return cls("deny", failure.rule or failure.code, rationale, failure.message, failure.hint)

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
    """The decision that applies: the first of the strictest ones. A dangerous command is shown before other reasons.

    Raises:
        ValueError: `decisions` is empty.
    """
    return max(decisions, key=lambda d: (STRICTNESS[d.verdict], _SPECIFIC.get(d.rationale, 0)))


class SessionFacts(NamedTuple):
    """What the rules know about a session: the `tools` of its lease (None: all tools), the kinds of data that it has `seen` (see
    `flow_rules.SEEN`), and the `folder` in which its relative paths start."""

    tools: frozenset[str] | None = None
    seen: frozenset[str] = frozenset()
    folder: str = ""

"""Pages about the language, for the agent's own tool `language_help`."""

from __future__ import annotations

from typing import TypedDict

from albert_tools.engine.check.codes import CODES as DIAGNOSTIC_CODES
from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean


class Help(TypedDict):
    """A page about the language."""

    topic: str
    text: str


def language_help(topic: str) -> Help:
    """The page about a topic. Raises Failure `not_found`."""
    if not topic:
        return {"topic": "", "text": "Topics: " + ", ".join([*CODES, *DIAGNOSTIC_CODES])}
    if topic in CODES:
        code = CODES[topic]
        return {"topic": topic, "text": f"{code.meaning}\nFor example: {code.example}\nWhat to do: {code.remedy}"}
    if topic in DIAGNOSTIC_CODES:
        found = DIAGNOSTIC_CODES[topic]
        return {"topic": topic, "text": f"{found.summary}\nWhy: {found.why}"}
    raise Failure("not_found", f"there is no topic {topic!r}{did_you_mean(topic, [*CODES, *DIAGNOSTIC_CODES])}")

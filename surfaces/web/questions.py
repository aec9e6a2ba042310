"""The page of one question that waits for a person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.authority.approvals import Approval
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.recorded_call import without_hashes
from albert_tools.engine.model.reserved_names import SOURCE_TOOLS
from albert_tools.engine.model.visible_text import look_alikes
from albert_tools.service import ToolService
from albert_tools.surfaces.text.approval_prompt import meaning
from albert_tools.surfaces.text.times import moment
from albert_tools.surfaces.text.whole_arguments import whole_arguments
from albert_tools.surfaces.web.source_lines import source_lines


def question_page(service: ToolService, approval: str) -> dict[str, Any]:
    """The values of the page of one question. Raises Failure `not_found`."""
    question = service.approvals.get(approval)
    whole = whole_arguments(service, question)
    given: Any = whole if whole is not None else question.arguments
    arguments = without_hashes(question.tool, given) if isinstance(given, Mapping) else {"arguments": given}
    alike = {name: look_alikes(_text(value)) for name, value in arguments.items()}
    return {
        "q": question,
        "whole": whole is not None,
        "warnings": [f"{name} has letters that look like others: {which}" for name, which in alike.items() if which],
        "arguments": [
            (name, _text(value), source_lines(value) if _is_source(question, name, value) else None)
            for name, value in arguments.items()
        ],
        "choices": [
            (choice, meaning(choice, question.tool, question.callers, bool(question.session)))
            for choice in question.choices
        ],
        "follows": "The agent, or `albert runs resume`, makes the call again."
        if question.state in ("yes", "no")
        else "",
        "facts": [(name, value) for name, value in _facts(question).items() if value],
    }


def _facts(approval: Approval) -> dict[str, str]:
    return {
        "risk": approval.risk or "?",
        "asked": f"{moment(approval.asked)}, open until {moment(approval.expires)}",
        "the caller's words": approval.reason and json.dumps(brief(approval.reason, 2000), ensure_ascii=False),
        "folder": approval.workspace,
        "session": approval.session,
        "run": approval.run and approval.run + (f", step {approval.step}" if approval.step else ""),
        "instead of": approval.instead_of,
    }


def _is_source(approval: Approval, name: str, value: Any) -> bool:
    return approval.tool in SOURCE_TOOLS and name == "source" and isinstance(value, str)


def _text(value: Any) -> str:
    """A value as JSON, except that a text with several lines stands as it is."""
    return value if isinstance(value, str) and "\n" in value else json.dumps(value, ensure_ascii=False, indent=2)

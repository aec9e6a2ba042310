"""The page of one question that waits for a person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.authority.approvals import Approval
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.reserved_names import SOURCE_TOOLS
from albert_tools.engine.model.visible_text import look_alikes
from albert_tools.service import ToolService
from albert_tools.surfaces.text.approval_prompt import meaning, without_hashes
from albert_tools.surfaces.text.call_text import whole_arguments
from albert_tools.surfaces.text.times import moment
from albert_tools.surfaces.web.source_lines import source_lines


def question_page(service: ToolService, approval: str) -> dict[str, Any]:
    """The values of the page of one question. Raises Failure `not_found`."""
    found = service.approvals.get(approval)
    whole = whole_arguments(service, found)
    given: Any = whole if whole is not None else found.arguments
    arguments = without_hashes(found.tool, given) if isinstance(given, Mapping) else {"arguments": given}
    alike = {name: look_alikes(_text(value)) for name, value in arguments.items()}
    return {
        "q": found,
        "whole": whole is not None,
        "warnings": [f"{name} has letters that look like others: {which}" for name, which in alike.items() if which],
        "arguments": [
            (name, _text(value), source_lines(value) if _is_source(found, name, value) else None)
            for name, value in arguments.items()
        ],
        "choices": [
            (choice, meaning(choice, found.tool, found.callers, bool(found.session))) for choice in found.choices
        ],
        "follows": "The agent, or `albert runs resume`, makes the call again." if found.state in ("yes", "no") else "",
        "facts": [(name, value) for name, value in _facts(found).items() if value],
    }


def _facts(found: Approval) -> dict[str, str]:
    return {
        "risk": found.risk or "?",
        "asked": f"{moment(found.asked)}, open until {moment(found.expires)}",
        "the caller's words": found.reason and json.dumps(brief(found.reason, 2000), ensure_ascii=False),
        "folder": found.workspace,
        "session": found.session,
        "run": found.run and found.run + (f", step {found.step}" if found.step else ""),
        "instead of": found.instead_of,
    }


def _is_source(found: Approval, name: str, value: Any) -> bool:
    return found.tool in SOURCE_TOOLS and name == "source" and isinstance(value, str)


def _text(value: Any) -> str:
    """A value as JSON, except that a text with several lines stands as it is."""
    return value if isinstance(value, str) and "\n" in value else json.dumps(value, ensure_ascii=False, indent=2)

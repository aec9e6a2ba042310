"""A call as the record has it, in a text for its reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.visible_text import escape_invisible
from albert_tools.surfaces.text.approval_prompt import without_hashes
from albert_tools.surfaces.text.console import one_line

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval
    from albert_tools.service import ToolService


def call(tool: str, arguments: Any, most: int = 60) -> str:
    """A call on one line, its arguments shortened to `most` characters each."""
    return f"{one_line(tool)}({arguments_line(tool, arguments, most) if isinstance(arguments, Mapping) else '…'})"


def arguments_line(tool: str, arguments: Any, most: int = 60) -> str:
    """The arguments of a call on one line, shortened to `most` characters each; empty if they are not known."""
    if not isinstance(arguments, Mapping):
        return ""
    shown = without_hashes(tool, arguments).items()
    return ", ".join(f"{one_line(str(k))}={one_line(escape_invisible(_value(v, most)))}" for k, v in shown)


def _value(value: Any, most: int) -> str:
    """A value from the record, shortened. Of a long text the record has only the beginning and the size."""
    if isinstance(value, Mapping) and set(value) == {"$text", "size_bytes", "sha256"}:
        size = value["size_bytes"]
        return f"{brief(json.dumps(value['$text'], ensure_ascii=False), most)} ({size if type(size) is int else '?'} bytes)"
    return brief(json.dumps(value, ensure_ascii=False), most)


def whole_arguments(service: ToolService, approval: Approval) -> Mapping[str, Any] | None:
    """The call's complete arguments, from the run's journal; None if the journal does not have them. An action has no journal, and
    its source is stored by its hash."""
    if not approval.run:
        return None
    stored = approval.arguments.get("stored_source") if isinstance(approval.arguments, Mapping) else None
    try:
        if approval.tool == "define_tool" and stored and (contents := service.contents(None)) is not None:
            return {**approval.arguments, "source": contents.get(stored).decode()}
        run = service.runs.show(approval.run)
    except Failure:
        return None
    if approval.id in run.questions:
        whole = run.questions[approval.id]["arguments"]
    else:
        # For a call by hand, the run itself has the arguments.
        whole = run.header.get("arguments") if not approval.trail and run.tool == approval.tool else None
    return whole if isinstance(whole, Mapping) else None

"""The complete arguments of a call about which a person is asked. The question itself has them redacted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval
    from albert_tools.service import ToolService


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

"""What ALBERT_SESSION's lease leaves of the tools: an agent that looks around with its session sees what it may call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from albert_tools.engine.model.failure import Failure

if TYPE_CHECKING:
    from albert_tools.engine.authority.sessions import Session
    from albert_tools.service import ToolService


def session_of_environment(service: ToolService) -> Session | None:
    """The session that ALBERT_SESSION gives; None where it is the owner who looks.

    Raises:
        Failure: `permission_denied`: there is none, or it is over.
    """
    token = os.environ.get("ALBERT_SESSION")
    if not token:
        return None
    workspace = service.context.workspace
    return service.sessions.find(token, None if isinstance(workspace, Failure) else str(workspace.root))


def may(service: ToolService, session: Session | None, tool: str) -> bool:
    """Whether a tool is within its lease, and the leases of those that it is within."""
    if session is None:
        return True
    try:
        service.sessions.demand(session, tool)
    except Failure as failure:
        if failure.rule == "lease.tools":
            return False
        raise
    return True


def told(session: Session) -> str:
    """That a list has only what the lease has, in a sentence."""
    return f"session {session.id} (given by ALBERT_SESSION) may call no other tools"

"""The tools that the session of ALBERT_SESSION may call. Lists and guides show only these tools to an agent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from albert_tools.engine.model.failure import Failure

if TYPE_CHECKING:
    from albert_tools.engine.authority.sessions import Session
    from albert_tools.service import ToolService


def session_of_environment(service: ToolService) -> Session | None:
    """The session of ALBERT_SESSION; None if the variable is not set.

    Raises:
        Failure: `permission_denied`: the session does not exist, or has ended.
    """
    token = os.environ.get("ALBERT_SESSION")
    if not token:
        return None
    workspace = service.context.workspace
    return service.sessions.find(token, None if isinstance(workspace, Failure) else str(workspace.root))


def may(service: ToolService, session: Session | None, tool: str) -> bool:
    """Whether the lease of the session, and the leases of its ancestors, allow a tool."""
    if session is None:
        return True
    try:
        service.sessions.demand(session, tool)
    except Failure as failure:
        if failure.rule == "lease.tools":
            return False
        raise
    return True


def only_these(session: Session) -> str:
    """A sentence below a list: the session may call no other tools."""
    return f"session {session.id} (given by ALBERT_SESSION) may call no other tools"

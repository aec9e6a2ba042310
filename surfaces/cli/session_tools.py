"""The session of ALBERT_SESSION, and the tools that it may call. Lists and guides show only these tools to an agent."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.authority.sessions import Session
    from albert_tools.service import ToolService


def token() -> str | None:
    """The token in ALBERT_SESSION; None if the variable is not set. Then a command is the owner's own.

    An empty variable is refused before any command begins.
    """
    return os.environ.get("ALBERT_SESSION")


def session_given(options: argparse.Namespace) -> tuple[str | None, str]:
    """The session's token, and the name of the option or variable that contains it.

    Raises:
        Usage: ``--session`` is empty.
    """
    if options.session == "":
        # Probably a variable is unset. A call that was meant for a session must not run without the session's limits.
        raise Usage("--session is empty", "give a token; without --session the call is your own")
    if options.session is not None:
        return options.session, "--session"
    return token(), "ALBERT_SESSION"


def session_of_environment(service: ToolService) -> Session | None:
    """The session of ALBERT_SESSION; None if the variable is not set.

    Raises:
        Failure: `permission_denied`: the session does not exist, or has ended.
    """
    given = token()
    return None if given is None else session_of_token(service, given)


def session_of_token(service: ToolService, given: str) -> Session:
    """The active session of a token.

    Raises:
        Failure: `permission_denied`: the session does not exist, or has ended.
    """
    workspace = service.workspace_or_failure
    return service.sessions.find(given, None if isinstance(workspace, Failure) else str(workspace.root))


def only_these(session: Session) -> str:
    """A sentence below a list: the session may call no other tools."""
    return f"session {session.id} (given by ALBERT_SESSION) may call no other tools"

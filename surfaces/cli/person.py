"""Who sits at the keyboard, as records name them."""

from __future__ import annotations

import getpass
import os

from albert_tools.engine.model.failure import Failure


def person() -> str:
    """The name of the user that this process belongs to."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "a person"


def demand_person(what: str) -> None:
    """Refuse, where a session is given: `what` (``a question is answered``) is for a person to do.

    It stops a mistake, no malice: who has a shell can leave the session out.

    Raises:
        Failure: `permission_denied`.
    """
    if os.environ.get("ALBERT_SESSION"):
        raise Failure(
            "permission_denied",
            f"{what} by a person, not in a session",
            hint="a person does it in a shell of their own, where ALBERT_SESSION is not set",
            rule="session.person",
        )

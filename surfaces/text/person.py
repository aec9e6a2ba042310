"""The name of the person at the keyboard, for the record."""

from __future__ import annotations

import getpass
import os

from albert_tools.engine.model.failure import Failure


def person() -> str:
    """The name of the user who runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "a person"


def demand_person(what: str, hint: str = "a person can do it in a shell where ALBERT_SESSION is not set") -> None:
    """Refuse if ALBERT_SESSION is set, because only a person may do this. `what` describes the action (``a question is answered``).

    This prevents a mistake, not an attack: a shell can unset the variable.

    Raises:
        Failure: `permission_denied`.
    """
    if os.environ.get("ALBERT_SESSION"):
        raise Failure(
            "permission_denied",
            f"{what} by a person, not in a session",
            hint=hint,
            rule="session.person",
        )

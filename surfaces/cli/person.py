"""Who sits at the keyboard, as records name them."""

from __future__ import annotations

import getpass


def person() -> str:
    """The name of the user that this process belongs to."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "a person"

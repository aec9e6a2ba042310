"""Functions that produce parts of messages."""

from __future__ import annotations


def brief(text: str, most: int) -> str:
    """`text`, shortened to `most` characters. A shortened text ends with "…"."""
    return text if len(text) <= most else text[: most - 1] + "…"


def install_command(extra: str) -> str:
    """The command that installs an extra of `pyproject.toml`. Albert Tools is installed from a Git clone."""
    return f"pip install '.[{extra}]' in the clone of Albert Tools"

"""Functions that produce parts of messages."""

from __future__ import annotations

from collections.abc import Sequence


def brief(text: str, most: int) -> str:
    """`text`, shortened to `most` characters. A shortened text ends with "…"."""
    return text if len(text) <= most else text[: most - 1] + "…"


def listed(items: Sequence[str], most: int) -> str:
    """The first items, and the number of the others: ``a, b and 3 more``."""
    return ", ".join(items[:most]) + (f" and {len(items) - most:,} more" if len(items) > most else "")


def install_command(extra: str) -> str:
    """The command that installs an extra of `pyproject.toml`."""
    return f'pip install "albert-tools[{extra}]"; in a clone: pip install ".[{extra}]"'

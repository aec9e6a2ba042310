"""How what isn't installed by default is installed: said in one place, as it must be true for whoever reads it."""

from __future__ import annotations


def installing(extra: str) -> str:
    """The command that installs an extra of `pyproject.toml`; Albert Tools is installed from a clone."""
    return f"pip install '.[{extra}]' in the clone of Albert Tools"

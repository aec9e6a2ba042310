"""Functions that produce parts of messages."""

from __future__ import annotations

from collections.abc import Sequence


def brief(text: str, most: int) -> str:
    """`text`, shortened to `most` characters. A shortened text ends with "…"."""
    return text if len(text) <= most else text[: most - 1] + "…"


def encodable(text: str) -> str:
    """`text` with escapes for what UTF-8 can't encode: half of a surrogate pair."""
    return text.encode("utf-8", "backslashreplace").decode()


def describe_fault(fault: BaseException) -> str:
    """An exception as one short line without traceback. This works even if the exception can't produce its own text."""
    kind = type(fault).__name__
    try:
        text = str(fault)
    except Exception:
        return kind
    return f"{kind}: {encodable(brief(text, 300))}" if text else kind


def counted(number: int, one: str, several: str = "") -> str:
    """A number with its noun: ``1 run``, ``2,000 runs``. `several` is the plural, by default with an s."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def listed(items: Sequence[str], most: int) -> str:
    """The first items, and the number of the others: ``a, b and 3 more``."""
    return ", ".join(items[:most]) + (f" and {len(items) - most:,} more" if len(items) > most else "")


def install_command(extra: str) -> str:
    """The command that installs an extra of `pyproject.toml`."""
    return f'pip install "albert-tools[{extra}]"; in a clone: pip install ".[{extra}]"'

"""Times as people write and read them: ``2h``, ``3 min``, ``1.2 s``."""

from __future__ import annotations

import argparse
import math
import re
from datetime import UTC, datetime

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_WRITTEN = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-z]+)\Z")
#: The longest span that is accepted.
MAX_SECONDS = 100 * 365.25 * 86400.0


def seconds(text: str) -> float:
    """``90s``, ``15m``, ``2h``, ``30d`` or ``4w`` in seconds; for argparse.

    Raises:
        ArgumentTypeError: the text has another form, is zero, or is longer than a century.
    """
    match = _WRITTEN.match(text)
    value = float(match[1]) * _UNITS.get(match[2], math.nan) if match else math.nan
    if not 0 < value <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"expected a time such as 90s, 15m, 2h or 30d, got {text[:40]!r}")
    return value


def lasting(value: float) -> str:
    """A duration in seconds, in at most two units: ``1 min 5 s``."""
    if value < 0.0005:
        return "0 ms"
    if value < 1:
        return f"{value * 1000:.0f} ms" if value < 0.9995 else "1.0 s"
    if value < 59.95:
        return f"{value:.1f} s"
    for size, name, smaller, part in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        whole = round(value / smaller)
        if whole * smaller >= size:
            rest = whole % (size // smaller)
            return f"{whole * smaller // size:,} {name}" + (f" {rest} {part}" if rest else "")
    return f"{value:.0f} s"


def about(value: float) -> str:
    """A duration in seconds, in its largest unit: ``3 h``."""
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if value >= 2 * size:
            return f"{value / size:.0f} {name}"
    return f"{max(0.0, value):.0f} s"


def moment(at: float) -> str:
    """A time in seconds since 1970, to the minute."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return "for ever" if at == math.inf else "?"


def since_1970(created: str) -> float | None:
    """An ISO 8601 time in seconds since 1970; None if it is invalid."""
    try:
        instant = datetime.fromisoformat(created)
        return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None

"""What a program lacks because it must replay exactly: a clock, and waiting. As tools they are recorded."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TypedDict

from albert_tools.engine.model.primitive import primitive

#: Seconds of one sleep; whoever waits longer calls it again, and the run's limits get a say in between.
MAX_SLEEP = 60


class CurrentTime(TypedDict):
    """What `current_time` answers."""

    iso: str
    unix: float


@primitive(effects=["read"])
def current_time() -> CurrentTime:
    """The current time as {"iso", "unix"}: always UTC.

    "iso" is ISO 8601 with microseconds, for example "2025-03-01T12:00:00.000000+00:00"
    (datetime.fromisoformat reads it); "unix" is the same moment in seconds since 1970-01-01, with a fraction.
    Does not fail.
    """
    now = time.time()
    return {"iso": datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds"), "unix": now}


@primitive(timeout=MAX_SLEEP + 5, schemas={"seconds": {"minimum": 0, "maximum": MAX_SLEEP}})
async def sleep(seconds: float) -> None:
    """Wait, then return null; for example between two attempts.

    At most 60 seconds in one call. Fails with `invalid_arguments` for more than that or less than 0.

    Args:
        seconds: How long to wait; fractions are fine.
    """
    import asyncio

    await asyncio.sleep(seconds)

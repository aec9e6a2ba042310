"""What a program lacks because it must replay exactly: a clock, waiting, and chance. As tools they are recorded."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Literal, TypedDict

from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.schema import Bound

#: Seconds of one sleep; whoever waits longer calls it again, and the run's limits get a say in between.
MAX_SLEEP = 60
#: Bytes of chance in one call.
MAX_RANDOM = 64 * 1024

ByteCount = Annotated[int, Bound(minimum=1, maximum=MAX_RANDOM)]


class CurrentTime(TypedDict):
    """What `current_time` answers."""

    iso: str
    unix: float


@primitive(effects=["read"], family="system")
def current_time() -> CurrentTime:
    """The current time as {"iso", "unix"}: always UTC.

    "iso" is ISO 8601 with microseconds, for example "2025-03-01T12:00:00.000000+00:00"
    (datetime.fromisoformat reads it); "unix" is the same moment in seconds since 1970-01-01, with a fraction.
    Does not fail.
    """
    now = time.time()
    return {"iso": datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds"), "unix": now}


@primitive(family="system", timeout=MAX_SLEEP + 5, schemas={"seconds": {"minimum": 0, "maximum": MAX_SLEEP}})
async def sleep(seconds: float) -> None:
    """Wait, then return null; for example between two attempts.

    At most 60 seconds in one call. Fails with `invalid_arguments` for more than that or less than 0.

    Args:
        seconds: How long to wait; fractions are fine.
    """
    import asyncio

    await asyncio.sleep(seconds)


@primitive(effects=["read"], family="system")
def random_bytes(count: ByteCount, encoding: Literal["hex", "base64"] = "hex") -> str:
    """Return random bytes of the operating system's, as text.

    `count` bytes as 2 × `count` hex digits in lower case (bytes.fromhex reads them, int(text, 16) makes a number of
    them), or as base64 with padding (base64.b64decode reads it). Fit for cryptography; but like every result it is
    recorded with the run, so it doesn't make a secret. Fails with `invalid_arguments` for less than 1 or more than
    65536 bytes.

    Args:
        count: How many bytes.
        encoding: How they are written.
    """
    import base64
    import os

    data = os.urandom(count)
    return data.hex() if encoding == "hex" else base64.b64encode(data).decode("ascii")

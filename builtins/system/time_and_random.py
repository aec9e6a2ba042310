"""Clock, waiting and randomness. They are tools, because the results of tools are recorded and a run can then be replayed."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Annotated, Literal, TypedDict

from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.schema import Bound

#: Seconds of one sleep. A longer wait takes several calls, and the limits of the run apply between them.
MAX_SLEEP = 60
#: Random bytes of one call.
MAX_RANDOM = 64 * 1024

ByteCount = Annotated[int, Bound(minimum=1, maximum=MAX_RANDOM)]


class CurrentTime(TypedDict):
    """Result of `current_time`."""

    iso: str
    unix: float


@primitive(effects=["read"], family="system", outputs={".unix": "little"}, source="clock")
def current_time() -> CurrentTime:
    """Return the current time in UTC as {"iso", "unix"}.

    "iso" is ISO 8601 with microseconds, for example "2025-03-01T12:00:00.000000+00:00"; datetime.fromisoformat reads it.
    "unix" is the same time in seconds since 1970-01-01, with a fraction. Does not fail.
    """
    now = time.time()
    return {"iso": datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds"), "unix": now}


@primitive(family="system", timeout=MAX_SLEEP + 5, schemas={"seconds": {"minimum": 0, "maximum": MAX_SLEEP}})
async def sleep(seconds: float) -> None:
    """Wait, then return null; for example between two attempts.

    Fails with `invalid_arguments` for less than 0 or more than 60 seconds.

    Args:
        seconds: How long to wait, at most 60; fractions are allowed.
    """
    import asyncio

    await asyncio.sleep(seconds)


@primitive(effects=["read"], family="system", source="random")
def random_bytes(count: ByteCount, encoding: Literal["hex", "base64"] = "hex") -> str:
    """Return random bytes from the operating system, as text.

    Hex is 2 × `count` digits in lower case: bytes.fromhex gives the bytes, int(text, 16) a number. Base64 has padding:
    base64.b64decode reads it. The bytes are of cryptographic quality, but not secret: results are recorded. Fails with
    `invalid_arguments` for less than 1 or more than 65536 bytes.

    Args:
        count: How many bytes.
        encoding: The encoding of the text.
    """
    import base64

    data = os.urandom(count)
    return data.hex() if encoding == "hex" else base64.b64encode(data).decode("ascii")

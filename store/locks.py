"""The kernel's lock on a file, with a timeout.

A stopped process that holds a lock must not block others for ever. A lock ends with its process.
"""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.store.os_errors import io_failure

#: Seconds between two tries.
LOCK_PAUSE = 0.001


def lock(handle: int, path: Path, patience: float, late: str, hint: str) -> None:
    """Lock the open file for this handle alone.

    Args:
        handle: The file.
        path: Its name, for messages.
        patience: Seconds to try.
        late: The message if it takes longer.
        hint: What to do then.

    Raises:
        Failure: `io_error`; retryable if another process holds it.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise Failure("io_error", late, hint=hint, retryable=True, details={"path": str(path)}) from error
        except OSError as error:
            raise io_failure("lock", path, error) from error
        time.sleep(LOCK_PAUSE)

"""A file lock of the kernel, with a timeout.

The timeout prevents a stopped process with the lock from blocking others for ever. The kernel releases a lock when its process
ends.
"""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.store.os_errors import io_failure

#: Seconds between two attempts.
LOCK_PAUSE = 0.001


def lock(handle: int, path: Path, patience: float, late: str, hint: str) -> None:
    """Lock the open file exclusively.

    Args:
        handle: The open file.
        path: Its path, for messages.
        patience: Seconds until the timeout.
        late: The message of a timeout.
        hint: The hint of a timeout.

    Raises:
        Failure: `io_error`; retryable if another process has the lock.
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

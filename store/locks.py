"""The kernel's lock on a file, waited for no longer than somebody is ready to wait.

A process that stands still while it holds a lock must not make others stand still for ever; and a lock ends with its process.
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
        late: What is said when somebody else holds it for longer.
        hint: What can be done about that.

    Raises:
        Failure: `io_error`; retryable when it is held by somebody else.
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

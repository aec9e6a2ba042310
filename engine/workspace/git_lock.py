"""Whose turn it is in a workspace: git's, to replace its configuration, or all other commands'.

What keeps a command from a file is fastened to that file; git replaces the file by another, and what was fastened goes with the old
one, for every command that runs. So the configuration is replaced only while none runs, of those that this process has started.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from albert_tools.engine.model.failure import Failure

if TYPE_CHECKING:
    from albert_tools.engine.workspace.sandbox_view import Git

#: Seconds that git waits for its turn; without it, it can do all but change its configuration.
PATIENCE = 5.0
_LOOK = 0.02

#: By workspace: how many commands run there; -1 for git alone.
_running: dict[str, int] = {}
_lock = threading.Lock()


def _begin(root: str, alone: bool) -> bool:
    with _lock:
        now = _running.get(root, 0)
        if now < 0 or (alone and now):
            return False
        _running[root] = -1 if alone else now + 1
        return True


def _end(root: str) -> None:
    with _lock:
        left = 0 if _running[root] < 0 else _running[root] - 1
        if left:
            _running[root] = left
        else:
            del _running[root]


@asynccontextmanager
async def turn(root: str, git: Git | None, seconds: float) -> AsyncIterator[Git | None]:
    """Wait for a command's turn in the workspace; gives what git may change, if it is git: not its configuration, where others run.

    Raises:
        Failure: `timeout`.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not _begin(root, git == "configuration"):
        waited = loop.time() - began
        if git == "configuration" and waited >= min(PATIENCE, seconds):
            git = "tree"
        elif waited >= seconds:
            raise Failure(
                "timeout",
                "git is changing its configuration in this workspace, and no command runs meanwhile",
                hint="try again when that has ended",
                retryable=True,
            )
        else:
            await asyncio.sleep(_LOOK)
    try:
        yield git
    finally:
        _end(root)

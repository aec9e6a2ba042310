"""A lock for the commands in a workspace. Git may change its configuration only while no other command runs.

A sandbox protects a file, not its name. Git replaces its configuration by a new file, and commands that already run would have no
protection for the new file. The lock covers the commands of this process only.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from albert_tools.engine.model.failure import Failure

if TYPE_CHECKING:
    from albert_tools.engine.workspace.sandbox_view import Git

#: Seconds that git waits for the lock. After this time, git runs without permission to change its configuration.
PATIENCE = 5.0
#: Seconds between two attempts.
_RETRY = 0.02

#: The number of running commands for each workspace; -1 while git runs alone.
_running: dict[str, int] = {}
_lock = threading.Lock()
#: The workspace whose lock this task holds alone.
_held: ContextVar[str] = ContextVar("held", default="")


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
    """Lock a workspace while a command runs. Yields the permission for git, or None if the command is not git.

    If other commands run for longer than `PATIENCE` seconds, git may not change its configuration.

    Raises:
        Failure: `timeout`: git was changing its configuration for `seconds`.
    """
    if _held.get() == root:
        yield git
        return
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not _begin(root, git == "configuration"):
        waited = loop.time() - began
        if git == "configuration" and waited >= min(PATIENCE, seconds):
            git = "tree"
        elif waited >= seconds:
            raise Failure(
                "timeout",
                "git is changing its configuration in this workspace, and no other command can run meanwhile",
                hint="try again later",
                retryable=True,
            )
        else:
            await asyncio.sleep(_RETRY)
    try:
        yield git
    finally:
        _end(root)


@asynccontextmanager
async def alone(root: str, seconds: float) -> AsyncIterator[None]:
    """Keep the commands of all other calls out of a workspace while this call runs several.

    Raises:
        Failure: `timeout`: other commands run for too long.
    """
    async with turn(root, "configuration", seconds) as allowed:
        if allowed != "configuration":
            raise Failure(
                "timeout",
                "other commands run in this workspace, and they would see the forbidden files that git can bring",
                hint="try again when they have ended",
                retryable=True,
            )
        token = _held.set(root)
        try:
            yield
        finally:
            _held.reset(token)

"""Single-use workers from one zygote, which is started at the first use, and again if it has died."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.worker.spawn import Spawned, Work, spawn_zygote
from albert_tools.engine.sandbox.worker.zygote_handle import ZygoteHandle


class WorkerPool:
    """The zygote of one kind of work. One object per event loop.

    Args:
        work: What the workers do.
        limits: The memory and the processor time of each worker.
        max_bytes: The most bytes of one message of a worker.
        idle: The number of workers that are kept ready.

    Attributes:
        kind: A weaker fence than the machine supports, for tests; empty for the strongest.
    """

    def __init__(self, work: Work, limits: RunLimits, max_bytes: int, *, idle: int) -> None:
        self.limits = limits
        self._work = work
        self._max_bytes = max_bytes
        self._idle = idle
        self.kind = ""
        self._modules: Sequence[str] = ()
        self._zygote: ZygoteHandle | None = None
        self._starting = asyncio.Lock()

    async def start(self, spawned: Spawned | None = None) -> None:
        """Start the zygote, or use the one that `spawn_zygote` has started for the same work.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        await self._started(spawned)

    async def _started(self, spawned: Spawned | None = None) -> ZygoteHandle:
        if self._zygote is not None and not self._zygote.dead and self._zygote.kind:
            return self._zygote
        async with self._starting:
            if self._zygote is not None and not self._zygote.dead:
                return self._zygote
            if self._zygote is not None:
                await self._zygote.close()
            process, control = spawned or spawn_zygote(self._work)
            self._zygote = ZygoteHandle(process, control, self._idle, self._max_bytes)
            limits = self.limits
            await self._zygote.ready(
                ",".join([str(limits.cpu_seconds), str(limits.memory_bytes), self.kind, *self._modules])
            )
            return self._zygote

    def expect(self, modules: Sequence[str]) -> None:
        """Load these modules. Has no effect after the start."""
        self._modules = modules

    @property
    def confinement(self) -> str:
        """The fence of the workers: ``seccomp``, ``landlock`` or ``rlimits``; empty before `start`."""
        return self._zygote.kind if self._zygote else ""

    async def close(self) -> None:
        """Kill all workers and the zygote."""
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            await zygote.close()

"""Makes commits on PostgreSQL survive a crash of the server.

They are not synced, so that the gate is not closed meanwhile. A commit that is synced also syncs all before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from albert_tools.engine.model.failure import Failure
from albert_tools.store.postgres_server import Link, Server
from albert_tools.store.record.database import Row
from albert_tools.store.record.durability import Durability, lost
from albert_tools.store.record.gate import START, Tail
from albert_tools.store.record.turn import Turn

#: The first entry from a number on.
FIRST_FROM = "SELECT n, hash FROM entries WHERE n >= %s ORDER BY n LIMIT 1"
#: The message makes the transaction one that is committed.
_SYNC = f"SELECT n, hash, pg_logical_emit_message(true, '', '') FROM ({FIRST_FROM}) entry"


@dataclass
class _Wait:
    """Who waits for entry `n`, written on the connection `number`; and the task that syncs."""

    n: int
    number: int
    task: asyncio.Future[None] | None = None


class PostgresDurability(Durability):
    """Syncs on a connection of its own. `last` gives the last committed entry."""

    def __init__(self, server: Server, last: Callable[[], Tail], number: Callable[[], int]) -> None:
        super().__init__(number)
        self.link = Link(server, synchronous_commit="on")
        self._last = last
        #: The last entry that is known to be on the disk.
        self.synced = START
        self._waits = Turn(self._start)

    async def _sync_async(self, n: int, number: int) -> None:
        """Tasks that begin to wait in the same turn go on in the same turn, so that they can share their next transaction."""
        wait = _Wait(n, number)
        await self._waits.join(wait)
        assert wait.task is not None
        try:
            await asyncio.shield(wait.task)
        except Failure as failure:
            raise failure.copy() from failure

    def _start(self, waits: list[_Wait]) -> None:
        for number in {wait.number for wait in waits}:
            alike = [wait for wait in waits if wait.number == number]
            task = asyncio.ensure_future(super()._sync_async(max(wait.n for wait in alike), number))
            for wait in alike:
                wait.task = task

    def _write(self) -> int:
        covered = self._last()
        row = self.link.retried(lambda connection: connection.execute(_SYNC, (covered.n,)).fetchone())
        # The server may have crashed since the entry was committed.
        if not has_kept(row, covered):
            raise lost(covered.n)
        self.synced = covered
        return covered.n

    def close(self) -> None:
        """Also close the connection."""
        super().close()
        self.link.drop()


def has_kept(row: Row | None, known: Tail) -> bool:
    """Whether the record has the entry `known`. `row` is its first entry from this number on: retention deletes only old ones."""
    return row is not None and (row[0] > known.n or row[1] == known.hash)

"""What tasks of a process ask the record for at the same time is one transaction on a server. Each block stands for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from albert_tools import ToolService, primitive
from albert_tools.engine.authority.sessions import Budget, Sessions
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.record.verify import verify
from tests.store.record.conftest import Place
from tests.store.record.test_postgres import RUN, terminate

TASKS = 8


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The messages to the server that wait for its answer, but for those that ask every tenth of a second for changed rules."""
    found, real = list[str](), psycopg.Connection.execute

    def execute(self: psycopg.Connection, query: Any, *arguments: Any, **options: Any) -> psycopg.Cursor:
        if "FROM files" not in query:
            found.append(query)
        return real(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    return found


async def results(record: Record, *blocks: Callable[[], Any]) -> tuple[list[str], list[bool | None]]:
    """Call the blocks together. Returns the message of each failure ("" for none), and for each block whether it is recorded; None
    if it was not called."""
    recorded: list[bool | None] = [None] * len(blocks)

    def ended(i: int, committed: bool) -> None:
        recorded[i] = committed

    asked = (record.together(i, block, partial(ended, i)) for i, block in enumerate(blocks))
    found = await asyncio.gather(*asked, return_exceptions=True)
    return [str(each or "") for each in found], recorded


async def test_each_block_stands_for_itself(place: Place) -> None:
    with Record(place) as record:
        sessions = Sessions(record)
        session, token = sessions.open("c", "/w", budget=Budget(calls=9))
        use = {"session": session.id, "used": {"calls": 1}}

        def fail() -> None:
            raise Failure("rate_limited", "no room")

        def write_little_and_fail() -> None:
            record.append("g", {})  # The server has got nothing.
            fail()

        def write_and_fail() -> None:
            record.append("b", use)
            Runs(record).create(RUN, {})
            record.append("b", {"call": f"{RUN}:0"})
            fail()

        def write_read_and_fail() -> None:
            assert sessions.find(token, None).used["calls"] == 1
            record.append("c", use)
            assert record.sessions.line(session.id)[0].used["calls"] == 2  # The server has got a part.
            assert sessions.find(token, None).used["calls"] == 2
            record.append("c", use)
            assert record.sessions.line(session.id)[0].used["calls"] == 3
            fail()

        def write_and_catch() -> None:
            try:
                with record.transaction():
                    record.append("d", use)
                    raise ValueError("half")
            except ValueError:
                pass

        def write_what_cannot_be_stored() -> None:
            record.append("f", {**use, "windows": ["\0"], "sessions": [], "clock": 0.1})
            raise Failure("io_error", "SQLite can store it")

        def write() -> None:
            assert record.sessions.line(session.id)[0].used.get("calls", 0) == len(list(record.entries(["e"])))
            record.append("e", use)

        found, recorded = await results(
            record,
            write,
            write_little_and_fail,
            write_and_fail,
            write_read_and_fail,
            write,
            write_and_catch,
            write_what_cannot_be_stored,
        )
        assert found.pop(6).endswith("can store it" if isinstance(place, Path) else "can't store a text with NUL")
        half = "a change of the record failed, so nothing was written: ValueError"
        assert found == ["", "no room", "no room", "no room", "", half]
        assert recorded == [True, False, False, False, True, False, False]
        assert [entry.kind for entry in record.entries()] == ["session", "e", "e"]
        assert record.sessions.line(session.id)[0].used["calls"] == 2
        assert Runs(record).list(9) == []
    assert verify(place).problems == ()


async def test_a_budget_holds_among_blocks(place: Place) -> None:
    with Record(place) as record:
        sessions = Sessions(record)
        above, token = sessions.open("c", "/w", budget=Budget(calls=3))
        session, _ = sessions.open("c", "/w", within=token)

        def spend() -> None:
            sessions.afford(sessions.line(session.id), "t")
            record.append("use", {"session": session.id, "used": {"calls": 1}})

        for _ in range(2):
            _, recorded = await results(record, *[spend] * TASKS)
        assert record.sessions.line(above.id)[0].used["calls"] == 3
        assert recorded == [False] * TASKS


async def test_the_block_of_a_cancelled_task_is_called(url: str) -> None:
    with Record(url) as record:
        tasks = [asyncio.ensure_future(record.together(kind, partial(_append, record, kind), print)) for kind in "ab"]
        await asyncio.sleep(0)
        assert list(record.entries()) == []
        tasks[0].cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert result is None or isinstance(result, asyncio.CancelledError)
        assert tasks[0].cancelled()
        assert [entry.kind for entry in record.entries()] == ["a", "b"]


async def test_all_blocks_fail_if_the_connection_ends(url: str) -> None:
    with Record(url) as record:
        record.append("a", {})

        def end() -> None:
            terminate(record)
            record.sessions.line("nobody")

        found, recorded = await results(record, lambda: _append(record, "b"), end, lambda: _append(record, "c"))
        assert all("terminating connection" in each for each in found)
        assert recorded == [False, False, None]  # The last one was not called.
        assert (await results(record, lambda: _append(record, "d")))[1] == [True]
        assert [entry.kind for entry in record.entries()] == ["a", "d"]


async def test_what_is_committed_may_be_lost_with_the_connection(url: str) -> None:
    with Record(url) as record:
        record.append("a", {})

        def disturb() -> None:
            terminate(record)
            record.append("c", {})

        def write() -> None:
            record.append("b", {})
            # Before the task goes on, and after the commit.
            asyncio.get_running_loop().call_soon(disturb)

        with pytest.raises(Failure, match="entry 2 may be lost") as caught:
            await record.together("x", write, print)
        assert caught.value.retryable


def _append(record: Record, kind: str) -> None:
    record.append(kind, {})


# Reading ahead


async def test_what_is_read_ahead_does_not_last(url: str) -> None:
    with Record(url) as record, Record(url) as other:
        session, _ = Sessions(record).open("c", "/w")

        def calls() -> float:
            return record.sessions.line(session.id)[0].used.get("calls", 0)

        def use(by: Record) -> None:
            by.append("use", {"session": session.id, "used": {"calls": 1}})

        for turn in range(3):
            await record.expect("calls")
            assert calls() == 2 * turn
            use(record)
            assert calls() == 2 * turn + 1  # A task sees at once what its process has changed,
            await record.expect("calls")
            use(other)
            await asyncio.sleep(0)
            assert calls() == 2 * turn + 2  # and in its next turn what others have.


# Calls

LOOKS = '''
def looks(paths: list[str]) -> list[str]:
    """Look at many.

    Args:
        paths: What to look at.
    """
    return parallel(tools.look(path=path) for path in paths)
'''


@primitive(effects=["read"])
async def look(path: str) -> str:
    """Return the path."""
    return path


@primitive(effects=["write"])
async def change(path: str) -> str:
    """Return the path."""
    return path


async def test_calls_of_one_run_share_a_transaction(url: str, tmp_path: Path) -> None:
    (tmp_path / ".albert").mkdir()
    async with ToolService.open(home=url, workspace=tmp_path, primitives=[look], governance={}) as service:
        await service.define(LOOKS)
        _, token = service.open_session("c", budget=Budget(calls=7))
        result = await service.invoke("looks", {"paths": [*"abcdefgh"]}, session=token)
        assert result.error is not None
        assert result.error.code == "budget_exceeded"
        entries = [*service.ledger.entries(["call"])]
        # The budget has room for the program and six calls of it.
        assert len(entries) == len({entry.data["call"] for entry in entries}) == 7
    assert verify(url).problems == ()


async def test_a_transaction_takes_two_messages_which_calls_share(
    url: str, messages: list[str], tmp_path: Path
) -> None:
    (tmp_path / ".albert").mkdir()
    async with ToolService.open(home=url, workspace=tmp_path, primitives=[look, change], governance={}) as service:
        tokens = [service.open_session(f"c{i}")[1] for i in range(TASKS)]

        async def sent(tool: str, tokens: list[str]) -> int:
            counts = []
            for _ in range(5):
                messages.clear()
                for result in await asyncio.gather(*(service.invoke(tool, {"path": "a"}, session=t) for t in tokens)):
                    result.value()
                counts.append(len(messages))
            # What a call reads is known after the first. Now and then, one also waits for a thread, and reads in two parts.
            return min(counts[2:])

        # One to read for the stages, two to write: a change is written before it and after it, and synced.
        assert await sent("look", tokens[:1]) == 3
        assert await sent("change", tokens[:1]) == 6
        assert await sent("look", tokens) == 3
        assert await sent("change", tokens) == 6
        # Each call of a session reads what those before have used.
        assert await sent("look", tokens[:1] * TASKS) == 3 + TASKS - 1

"""What a governed call promises, written by hand for one tool: the floor of its cost.

The arguments and the output are validated, the call has a time limit, the files of the rules and of the mode are looked at, and a
transaction of SQLite adds an entry with the hash of the one before, while other processes wait at a lock. There is no tool to look
up, no rule to match, no session, and nothing is redacted.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from blake3 import blake3
from pydantic import TypeAdapter
from typing_extensions import TypedDict

_INSERT = "INSERT INTO entries VALUES (?, ?, ?, ?)"


class _Arguments(TypedDict):
    path: str


def by_hand(function: Callable[..., Awaitable[str]], place: Path) -> Callable[[], Awaitable[str]]:
    """Calls of `function`, recorded in the folder `place`."""
    arguments, output = TypeAdapter(_Arguments).validate_python, TypeAdapter(str).validate_python
    place.mkdir()
    rules, mode, name = place / "rules", place / "mode", place / "record.sqlite3"
    rules.touch()
    mode.touch()
    connection = sqlite3.connect(name, isolation_level=None)
    for statement in (
        "PRAGMA journal_mode=WAL",
        "PRAGMA synchronous=NORMAL",
        "CREATE TABLE entries (n INTEGER PRIMARY KEY, at TEXT, data TEXT, hash TEXT)",
    ):
        connection.execute(statement)
    lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT)
    last, number = "", 0

    def record(entry: dict[str, Any]) -> None:
        nonlocal last, number
        number, at = number + 1, time.time_ns()
        data = json.dumps(entry, sort_keys=True)
        last = blake3(f"{last}{number}{at}{data}".encode()).hexdigest()
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.stat(name)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("PRAGMA data_version").fetchone()
        connection.execute(_INSERT, (number, str(at), data, last))
        connection.execute("COMMIT")
        os.pwrite(lock, last.encode(), 0)
        fcntl.flock(lock, fcntl.LOCK_UN)

    async def call() -> str:
        given = arguments({"path": "a"})
        os.stat(rules)
        os.stat(mode)
        async with asyncio.timeout(30):
            answer = output(await function(**given))
        record({"call": os.urandom(8).hex(), "arguments": given, "result": blake3(answer.encode()).hexdigest()})
        return answer

    return call

"""A cache of two queries that every call makes: how a version was reviewed, and which request of a session is failing.

An answer is used as long as neither this process nor another one has written since.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from albert_tools.store.record.database import Database

T = TypeVar("T")
#: The most answers.
_MOST = 1000


class QueryCache:
    """The answers. Any thread may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._answers: dict[Hashable, Any] = {}
        self._version: int | None = None

    def get(self, question: Hashable, ask: Callable[[], T]) -> T:
        """The answer to a question. `ask` asks the database."""
        version = self._database.version()
        if version is None or version != self._version or len(self._answers) >= _MOST:
            self.clear()
            self._version = version
        answers = self._answers
        if question not in answers:
            answers[question] = ask()
        answer: T = answers[question]
        return answer

    def clear(self) -> None:
        """Drop all answers, because this process is about to change one. Another thread may still add an old answer to the old
        dict, which nobody reads."""
        self._answers = {}

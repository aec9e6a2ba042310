"""What the tables have answered, as long as neither this process nor another one has changed it.

A version's review and a session's failing request are asked for by every call, and rarely change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from albert_tools.store.record.database import Database

T = TypeVar("T")
#: The most answers.
_MOST = 1000


class Known:
    """The answers. Any thread may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._answers: dict[Hashable, Any] = {}
        self._version: int | None = None

    def get(self, question: Hashable, ask: Callable[[], T]) -> T:
        """The answer to a question. `ask` asks the database."""
        version = self._database.version()
        if version is None or version != self._version or len(self._answers) >= _MOST:
            self.forget()
            self._version = version
        answers = self._answers
        if question not in answers:
            answers[question] = ask()
        answer: T = answers[question]
        return answer

    def forget(self) -> None:
        """This process is about to change an answer. Another thread may still note an answer from before, which nobody reads."""
        self._answers = {}

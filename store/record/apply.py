"""The types of the functions that apply an entry to the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from albert_tools.engine.model.record_types import Entry

#: Executes one SQL statement.
Execute = Callable[[str, Sequence[Any]], Any]
#: Changes the rows that depend on an entry. Its only inputs are the entry and the tables.
Apply = Callable[[Execute, Entry], None]

"""The task of the judging process that writes a source in canonical form. It needs only the grammar."""

from __future__ import annotations

from typing import Any

import msgspec

from albert_tools.engine.sandbox.worker.function_worker import Ask
from albert_tools.grammar.source_error import SourceError
from albert_tools.grammar.unparse import format_source


def formatted(source: str, ask: Ask) -> Any:
    """The text in canonical form, or the errors in it."""
    try:
        return {"findings": [], "text": format_source(source)}
    except SourceError as error:
        return {"findings": msgspec.to_builtins(error.diagnostics)}


TASKS = {"format": formatted}

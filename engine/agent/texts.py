"""Outputs and failures as texts that a model reads."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure


def output_text(output: Json) -> str:
    """An output: a text as it is, anything else as JSON."""
    sent = plain(output)
    return sent if isinstance(sent, str) else msgspec.json.encode(sent).decode()


def failure_text(failure: Failure) -> str:
    """A failure: what is wrong, where, and what to do."""
    where = ""
    if failure.line is not None and failure.code not in ("example_failed", "invalid_source"):
        trail = failure.details.get("trail") or [{"tool": failure.tool, "line": failure.line}]
        where = f" (line {trail[-1]['line']} of {trail[-1]['tool']})"
    hint = f"\nhint: {failure.hint}" if failure.hint else ""
    return str(plain(f"{failure.code}: {failure.message}{where}{hint}"))


def plain(value: Json) -> Json:
    """The value without half surrogate pairs, which no JSON text can carry. A file's name can contain them."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _mended(value)
    return value


def _mended(value: Json) -> Json:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_mended(name): _mended(part) for name, part in value.items()}
    return [_mended(part) for part in value] if isinstance(value, list | tuple) else value

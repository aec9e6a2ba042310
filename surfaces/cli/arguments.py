"""``key=value`` on the command line, read by the parameter's schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.naming import did_you_mean
from albert_tools.surfaces.cli.usage import Usage

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import ToolDefinition

#: A file given as ``key=@file`` may be as large as a primitive would write.
MAX_FILE = 10 * 1024 * 1024


def read_arguments(pairs: list[str], given: str | None, definition: ToolDefinition) -> dict[str, Any]:
    """The arguments of a run.

    Args:
        pairs: ``key=value``; ``key:=JSON``; ``key=@file`` for the text of a file, ``key=@@x`` for a text that begins with ``@``.
        given: What ``--args`` has: JSON, ``@file`` or ``-`` for stdin.
        definition: The tool; its schema says how a value is read.

    Raises:
        Usage: with everything that is wrong.
    """
    wrong: list[str] = []
    arguments: dict[str, Any] = {}
    if given is not None:
        arguments = _object(given)
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            wrong.append(f"{pair!r} is not key=value")
            continue
        forced = key.endswith(":")
        key = key.removesuffix(":")
        parameter = definition.parameter(key)
        if parameter is None:
            wrong.append(f"there is no parameter {key!r}{did_you_mean(key, [p.name for p in definition.parameters])}")
            continue
        try:
            arguments[key] = _json(value) if forced else _value(value, parameter.schema)
        except (ValueError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            wrong.append(f"{key}: {reason}")
    named = {pair.partition("=")[0].removesuffix(":") for pair in pairs}
    for p in definition.parameters:
        if p.required and p.name not in arguments and p.name not in named:
            wrong.append(f"{p.name} is missing")
    if wrong:
        raise Usage(f"{definition.name}: " + "; ".join(wrong), f"the tool is called as {definition.signature()}")
    return arguments


def _object(given: str) -> dict[str, Any]:
    try:
        if given == "-":
            if sys.stdin is None:
                raise ValueError("there is no stdin")
            text = _decoded(sys.stdin.buffer.read(MAX_FILE + 1), "stdin")
        elif given.startswith("@"):
            text = _file(given[1:])
        else:
            text = given
        value = _json(text)
    except OSError as error:
        raise Usage(f"--args: {given[1:]!r} can't be read: {error.strerror}", "write --args @FILE") from error
    except ValueError as error:
        raise Usage(f"--args: {error}") from error
    if not isinstance(value, dict):
        raise Usage("--args: the arguments must be a JSON object, by name")
    return value


def _value(text: str, schema: dict[str, Any]) -> Any:
    if text.startswith("@@"):
        text = text[1:]
    elif text.startswith("@"):
        text = _file(text[1:])
    kinds = _kinds(schema)
    if not kinds or "string" in kinds:
        # Anything may be text; what must be something else is given with := .
        return text
    return _json(text)


def _kinds(schema: dict[str, Any]) -> set[str]:
    kind = schema.get("type")
    found = set(kind) if isinstance(kind, list) else {kind} if kind else set()
    for part in schema.get("anyOf", ()):
        found |= _kinds(part)
    for value in [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]:
        found.add("string" if isinstance(value, str) else "number")
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("the JSON nests too deep") from None
    except json.JSONDecodeError as error:
        shown = text if len(text) <= 40 else text[:39] + "…"
        raise ValueError(f"{shown!r} is not JSON: {error.msg} at character {error.pos + 1}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def _file(path: str) -> str:
    with Path(path).open("rb") as file:
        data = file.read(MAX_FILE + 1)
    return _decoded(data, repr(path))


def _decoded(data: bytes, name: str) -> str:
    if len(data) > MAX_FILE:
        raise ValueError(f"{name} is larger than {MAX_FILE:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 text (byte {error.start})") from None

"""Parses ``key=value`` arguments by the schemas of a tool's parameters."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.bounds import MAX_WRITE
from albert_tools.engine.model.definition import spell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.reserved_names import AGENT_TOOLS
from albert_tools.surfaces.cli.input_text import read_text
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import ToolDefinition
    from albert_tools.service import ToolService

#: Bytes of a file that is given as ``key=@file``. A primitive may write the same number.
MAX_FILE = MAX_WRITE
#: Characters of a value that a message repeats.
SHOWN = 40
#: Characters of a JSON object that a hint repeats.
SHOWN_JSON = 200

_ARGS = """write --args '{"name": "value"}', --args @FILE, or --args - for stdin"""


async def arguments_of(service: ToolService, options: argparse.Namespace, token: str | None) -> dict[str, Any]:
    """The arguments of the call. If the tool can't be described, there are none: the call is refused and recorded anyway.

    Raises:
        Usage: at least one argument is wrong.
    """
    if options.name in AGENT_TOOLS:
        from albert_tools.engine.agent.agent_tools import agent_tools

        definition = agent_tools()[options.name].definition
    else:
        try:
            definition = (await service.describe(options.name, options.version, session=token)).definition
        except Failure:
            return {}
    return read_arguments(options.arguments, options.args, definition)


def read_arguments(pairs: list[str], given: str | None, definition: ToolDefinition) -> dict[str, Any]:
    """The arguments of a run.

    Args:
        pairs: ``key=value``; ``key:=JSON``; ``key=@file`` for the text of a file; ``key=@@x`` for a text that begins with ``@``.
        given: The value of ``--args``: JSON, ``@file``, or ``-`` for stdin.
        definition: The tool. Its schemas determine how a value is parsed.

    Raises:
        Usage: at least one argument is wrong. The message lists all mistakes.
    """
    wrong: list[str] = []
    hints: list[str] = []
    seen: set[str] = set()
    arguments: dict[str, Any] = {}
    if given is not None:
        arguments = _object(given)
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            wrong.append(f"{_brief(pair)} is not key=value")
            if given is None and pair.lstrip().startswith("{"):
                hints.append(f"write --args {shlex.quote(pair if len(pair) <= SHOWN_JSON else '{…}')}")
                continue
            first = next((p.name for p in definition.parameters if p.required and p.name not in arguments), None)
            if first is not None and first not in {other.partition("=")[0].removesuffix(":") for other in pairs}:
                hints.append(f"write {shlex.quote(f'{first}={brief(pair, SHOWN)}')}")
            continue
        forced = key.endswith(":")
        key = key.removesuffix(":")
        parameter = definition.parameter(key)
        if parameter is None:
            wrong.append(f"there is no parameter {key!r}{did_you_mean(key, [p.name for p in definition.parameters])}")
            continue
        if key in seen:
            wrong.append(f"{key} is given twice")
            continue
        seen.add(key)
        try:
            arguments[key] = _json(value) if forced else _value(value, parameter.schema)
        except _Mistyped as error:
            wrong.append(f"{key}: {error}")
            hints += _how(key, value, parameter.schema)
        except Failure as failure:
            wrong.append(f"{key}: {failure.message}")
            if failure.code == "io_error":
                hints.append(f"name a file that exists, or write {key}=@@… for a text that begins with @")
        except ValueError as error:
            wrong.append(f"{key}: {error}")
    named = {pair.partition("=")[0].removesuffix(":") for pair in pairs}
    for p in definition.parameters:
        if p.required and p.name not in arguments and p.name not in named:
            wrong.append(f"{p.name} is missing")
    if wrong:
        hint = "; ".join(hints) or f"call the tool as {definition.signature()}"
        raise Usage(f"{definition.name}: " + "; ".join(wrong), hint)
    return arguments


def _object(given: str) -> dict[str, Any]:
    try:
        if given == "-":
            given = read_text("-", MAX_FILE)
        elif given.startswith("@"):
            given = _file(given[1:])
        value = _json(given)
    except Failure as failure:
        raise Usage(f"--args: {failure.message}", failure.hint or _ARGS) from failure
    except ValueError as error:
        raise Usage(f"--args: {error}", _ARGS) from error
    if not isinstance(value, dict):
        raise Usage("--args: the arguments must be a JSON object, by name", _ARGS)
    return value


def _value(text: str, schema: dict[str, Any]) -> Any:
    if text.startswith("@@"):
        text = text[1:]
    elif text.startswith("@"):
        text = _file(text[1:])
    kinds = _kinds(schema)
    if not kinds or "string" in kinds:
        # A value of another type than text can be given with := .
        return text
    try:
        value = _json(text)
    except ValueError:
        raise _Mistyped(f"expected {spell(schema)}, got {_brief(text)}") from None
    if (kinds <= {"array"} and not isinstance(value, list)) or (kinds <= {"object"} and not isinstance(value, dict)):
        raise _Mistyped(f"expected {spell(schema)}, got {_brief(text)}")
    return value


class _Mistyped(ValueError):
    """A value does not match its parameter's type."""


def _how(key: str, text: str, schema: dict[str, Any]) -> list[str]:
    """Hints for a shell: how to write a value that is not a plain word."""
    kinds = _kinds(schema)
    if "array" in kinds:
        words = "string" in _kinds(schema.get("items") or {"type": "string"})
        example = json.dumps([text if words and len(text) <= SHOWN else "…" if words else 1], ensure_ascii=False)
    elif "object" in kinds:
        example = '{"name": "value"}'
    elif "boolean" in kinds:
        return [f"write {key}=true or {key}=false"]
    else:
        return []
    return [f"write {key}:={shlex.quote(example)}"]


def _brief(text: str) -> str:
    return repr(brief(text, SHOWN))


def _kinds(schema: dict[str, Any]) -> set[str]:
    kind = schema.get("type")
    all_kinds = set(kind) if isinstance(kind, list) else {kind} if kind else set()
    for part in schema.get("anyOf", ()):
        all_kinds |= _kinds(part)
    for value in [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]:
        all_kinds.add("string" if isinstance(value, str) else "number")
    return all_kinds


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("the JSON nests too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{_brief(text)} is not JSON: {error.msg} at character {error.pos + 1:,}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def _file(path: str) -> str:
    # Only --args can be stdin. For a value, - is the name of a file.
    return read_text("./-" if path == "-" else path, MAX_FILE)

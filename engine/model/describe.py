"""Describe a definition in words, for lists and pages: bounds, resources, confinement, an example call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from albert_tools.engine.model.definition import Json, Schema, ToolDefinition, ToolParameter, literal, spell
from albert_tools.engine.model.manifest import TIME, Declared
from albert_tools.engine.model.output_facts import DATA_USES
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.validation import violations

#: A description can contain an example in JSON: ``for example "notes/today.md"``.
_EXAMPLE = re.compile(r'[Ff]or example (?=["\[{])')

#: Examples for formats that do not accept "text".
_OF_FORMAT = {
    "albert-hash": "b3:" + "0" * 64,
    "albert-prompt-hash": "b3:" + "0" * 64,
    "albert-entry": "NAME=value",
    "albert-path": "notes.md",
}

_OF_TYPE: dict[str, Json] = {"string": "text", "integer": 1, "number": 1, "boolean": True, "object": {}}


def bounds_of(schema: Schema) -> str:
    """The bounds of a value in words: ``1 to 4,096 characters``. The text is empty if the schema only has a type."""
    for inner in schema.get("anyOf", ()):
        if bounds := bounds_of(inner):
            return bounds
    parts = [
        _range(
            schema.get("minimum"),
            schema.get("maximum"),
            "",
            schema.get("exclusiveMinimum"),
            schema.get("exclusiveMaximum"),
        ),
        _range(schema.get("minLength"), schema.get("maxLength"), " character"),
        _range(schema.get("minItems"), schema.get("maxItems"), " item"),
    ]
    items = schema.get("items")
    each = bounds_of(items) if isinstance(items, dict) else ""
    if each:
        parts.append(f"each {each}")
    if "pattern" in schema:
        parts.append(f"of the form {schema['pattern']}")
    return ", ".join(p for p in parts if p)


def _range(low: Any, high: Any, unit: str, above: Any = None, below: Any = None) -> str:
    def counted(number: Any) -> str:
        shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
        return f"{shown}{unit}{'s' if unit and number != 1 else ''}"

    if low is not None and high is not None and (low or not unit):
        return f"{low:,} to {counted(high)}" if low != high else f"exactly {counted(low)}"
    said = [f"at least {counted(low)}"] if low else ["at least 0"] if low is not None and not unit else []
    said += [f"more than {counted(above)}"] if above is not None else []
    said += [f"at most {counted(high)}"] if high is not None else []
    said += [f"less than {counted(below)}"] if below is not None else []
    return ", ".join(said)


def shape_of(parameter: ToolParameter) -> str:
    """The name and type, with the default if there is one: ``path: str``."""
    default = "" if parameter.required else f" = {literal(parameter.default)}"
    return f"{parameter.name}: {spell(parameter.schema)}{default}"


def example_of(definition: ToolDefinition) -> dict[str, Json]:
    """The arguments of an example call. Each required parameter gets the example from its description or a value of its type."""
    return {p.name: _example(p) for p in definition.parameters if p.required}


def _example(parameter: ToolParameter) -> Json:
    shown = _shown(parameter)
    return value_of_schema(parameter.schema) if shown is None else shown


def _shown(parameter: ToolParameter) -> Json:
    """The example in the description if it matches the schema, otherwise None."""
    # The example may be split over several lines of the docstring.
    text = " ".join(parameter.description.split())
    for match in _EXAMPLE.finditer(text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        for candidate in (value, [value]):
            if not violations(candidate, parameter.schema, parameter.name):
                return candidate
    return None


def value_of_schema(schema: Schema) -> Json:
    """A value that fits the type of the schema."""
    if "anyOf" in schema:
        schema = next((s for s in schema["anyOf"] if s.get("type") != "null"), schema)
    for known in ("const", "enum"):
        if known in schema:
            return schema[known][0] if known == "enum" else schema[known]
    kind = schema.get("type", "string")
    kind = next((k for k in kind if k != "null"), "string") if isinstance(kind, list) else kind
    if kind == "string":
        return _OF_FORMAT.get(str(schema.get("format")), "text")
    if kind == "array":
        return [value_of_schema(schema.get("items") or {})] * (schema.get("minItems") or 0)
    low, high = schema.get("minimum"), schema.get("maximum")
    if kind in ("integer", "number") and ((low or 0) > 1 or (high is not None and high < 1)):
        return low if low is not None else high
    return _OF_TYPE.get(kind)


def resources_of(primitive: Primitive) -> dict[str, str]:
    """The parameters that rules refer to, each with its kind of resource: ``{"path": "path to write"}``."""
    return dict(_resources(primitive))


def _resources(primitive: Primitive) -> Iterator[tuple[str, str]]:
    for name, use in primitive.paths.items():
        yield name, f"path to {use}"
    for name, method in primitive.urls.items():
        yield name, f"URL, with the method that `{method}` says" if method else "URL"
    for name, kind in primitive.judged.items():
        yield name, _KINDS.get(kind, kind)


_KINDS = {
    "shell": "shell command",
    "program": "program and its arguments",
    "environment": "list of environment variables",
    "provider": "provider of a model",
}


_SOURCES = {
    "file": "files",
    "web": "the web",
    "mail": "mail",
    "clock": "the clock",
    "command": "programs of this machine",
    "model": "a model",
    "server": "a mounted server",
    "random": "chance",
}


def data_of(definition: ToolDefinition) -> str:
    """What a primitive declares about its data, in sentences. The text is empty if it declares nothing."""
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in _data(definition.declared))


def article(noun: str) -> str:
    """``a`` or ``an``."""
    return "an" if noun[0] in "aeio" else "a"


def _data(declared: Declared) -> Iterator[str]:
    # Rules judge operations, and `resources_of` says so.
    for use in (use for use in DATA_USES if use != "operation"):
        names = [f"`{name}`" for name, declared_use in declared.uses.items() if declared_use == use]
        if names and use == "arguments":
            yield f"{_listed(names)} {'has' if len(names) == 1 else 'have'} the arguments of the program"
        elif names:
            yield f"{_listed(names)} {f'is {article(use)} {use}' if len(names) == 1 else f'are {use}s'}"
    if declared.source:
        yield f"the output comes from {_SOURCES[declared.source]}"
    if "" in declared.outputs:
        yield f"the output {_fact(declared.outputs[''])}"
    facts = [f"{_place(place)} {_fact(fact)}" for place, fact in declared.outputs.items() if place]
    if declared.little:
        verb = "carries" if len(declared.little) == 1 else "carry"
        facts.append(f"{_listed([_place(place) for place in declared.little])} {verb} little")
    if facts:
        yield f"in the output, {', '.join(facts)}"


def _fact(fact: str) -> str:
    if fact in ("word", "number", TIME):
        return f"is a {fact}"
    name = fact.split()[2 if fact.endswith(" items") else -1]
    if fact.startswith("at most"):
        return f"has at most {f'{int(name):,}' if name.isdigit() else f'`{name}`'} items"
    return f"is {'below ' if fact.startswith('below') else ''}the argument `{name}`"


def _place(place: str) -> str:
    return f"`{place.removeprefix('.')}`"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def confined_of(primitive: Primitive) -> str:
    """Which part runs confined: ``function`` (all of it), ``command`` (the commands that it starts), or an empty text."""
    if primitive.definition.sandbox:
        return "function"
    return "command" if primitive.is_shipped and "execute" in primitive.definition.effects else ""


def timeout_of(seconds: float) -> str:
    """A duration in words: ``30 s``, ``10 min``."""
    return f"{seconds / 60:g} min" if seconds >= 120 and seconds % 60 == 0 else f"{seconds:g} s"

"""What a primitive declares about its output: facts that the analysis of its callers relies on, each about a place in the output.

A place is written like ``.paths[*]``: ``.name`` is a field of an object, ``[*]`` is each item of a list or each value of an object,
and the empty text is the whole output. The facts:

- ``same as P``: it equals the argument of the parameter P.
- ``below P``: it is the path of the parameter P, or a path in that folder.
- ``word``: a text of ASCII letters, digits, ``-`` and ``_``. ``number``: a text of digits, signs and points.
- ``at most 100 items``, ``at most P items``: the size of a list or object. P is a parameter with an integer.
- ``little``: it carries little data: a count, a flag, a size.
- ``time``: it shows when something was done.

If P is a path, the paths are compared in their normal form: ``a//b`` is ``a/b``. A fact says nothing about null. The pipeline
checks the facts of each output, except ``little``, which the schema decides, and ``time``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from albert_tools.engine.model.definition import Schema, ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import TIME, Declared

#: The kinds of sources that an output can be.
SOURCES = ("file", "web", "mail", "clock", "command", "model", "server", "random")
#: What a primitive can do with an argument that is neither a path nor a URL nor judged by rules. A destination decides where an
#: effect happens: a recipient, an amount, a name. A payload is only passed on: the content of a file, the body of a message. An
#: operation says what the call does, such as the method of a request. Arguments are those of a fixed program, such as git. A folder
#: is a path that is read, in which a command starts: it decides which program or code runs. A tool is the name of a tool that is
#: called later for each of the items, which are the arguments of these calls. A batch is the id of such calls, and the output has
#: their results.
DATA_USES = ("destination", "payload", "operation", "arguments", "folder", "tool", "items", "batch")

LITTLE = "little"
WORD = re.compile(r"[A-Za-z0-9_-]*\Z")
NUMBER = re.compile(r"(?:[0-9+-]|\.(?=[0-9]))*\Z")

_PLACE = re.compile(r"(?:\.[A-Za-z_][A-Za-z0-9_]*|\[\*\])*\Z")
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[\*\]")
_SIZE = re.compile(r"at most ([A-Za-z0-9_]+) items\Z")
_SAME, _BELOW = "same as ", "below "

#: Computes the normal form of a path. Raises `Failure` for an invalid one.
Spell = Callable[[str], str]


def declared_data(uses: Mapping[str, str], outputs: Mapping[str, str], source: str) -> Declared:
    """The declaration of a primitive, with the little places apart from the other facts."""
    facts = {place: fact for place, fact in outputs.items() if fact != LITTLE}
    return Declared(dict(uses), facts, tuple(place for place in outputs if place not in facts), source)


def wrong_declarations(definition: ToolDefinition) -> Iterator[str]:
    """The mistakes in what a primitive declares about its output and its source."""
    declared = definition.declared
    if declared.source and declared.source not in SOURCES:
        yield f"unknown source {declared.source!r}; use one of {', '.join(SOURCES)}"
    for place, fact in [*declared.outputs.items(), *((place, LITTLE) for place in declared.little)]:
        problem = _wrong_fact(definition, place, fact)
        if problem:
            yield f"`outputs` says {fact!r} of {place or 'the output'!r}, but {problem}"


def contradiction(definition: ToolDefinition, arguments: Mapping[str, Any], output: Any, spell: Spell) -> str | None:
    """The first fact that an output contradicts, as a sentence; None if it agrees with its declaration.

    Args:
        definition: The primitive.
        arguments: All arguments, including defaults.
        output: An output that matches the schema of the result.
        spell: Computes the normal form of a path in the workspace.
    """
    for place, fact in definition.declared.outputs.items():
        holds = _holds(fact, arguments, definition.declared.uses, spell)
        for value in values_at(output, place):
            if value is not None and not holds(value):
                return f"{place or 'the output'} is declared as `{fact}`, which is false for {_short(value)}"
    return None


def values_at(output: Any, place: str) -> Iterator[Any]:
    """The values at a place of an output. A place that the output doesn't have has no values."""
    selected = [output]
    for step in _STEP.finditer(place):
        name = step[1]
        inner: list[Any] = []
        for value in selected:
            if name is not None:
                inner += [value[name]] if isinstance(value, dict) and name in value else []
            elif isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, list):
                inner += value
        selected = inner
    yield from selected


def _holds(fact: str, arguments: Mapping[str, Any], uses: Mapping[str, str], spell: Spell) -> Callable[[Any], bool]:
    """The function that says whether a fact is true of a value."""
    if fact == TIME:
        return lambda value: True
    if fact in ("word", "number"):
        pattern = WORD if fact == "word" else NUMBER
        return lambda value: isinstance(value, str) and pattern.match(value) is not None
    if size := _SIZE.match(fact):
        most = int(size[1]) if size[1].isdigit() else arguments[size[1]]
        return lambda value: isinstance(value, list | dict) and len(value) <= most
    kind = _SAME if fact.startswith(_SAME) else _BELOW
    name = fact.removeprefix(kind)
    argument = arguments[name]
    if uses.get(name) not in ("read", "write", "delete"):
        return lambda value: bool(value == argument)
    base = spell(argument or ".")
    if kind == _SAME:
        return lambda value: value == base or _spelled(spell, value) == base
    return lambda value: _is_below(value, base) or _is_below(_spelled(spell, value), base)


def _is_below(path: Any, base: str) -> bool:
    if not isinstance(path, str):
        return False
    if base == ".":
        inner = path
    elif path == base:
        return True
    else:
        prefix = base.rstrip("/") + "/"
        if not path.startswith(prefix):
            return False
        inner = path[len(prefix) :]
    return not inner.startswith("/") and (".." not in inner or ".." not in inner.split("/"))


def _spelled(spell: Spell, path: Any) -> str | None:
    try:
        return spell(path) if isinstance(path, str) else None
    except Failure:
        return None


def _wrong_fact(definition: ToolDefinition, place: str, fact: str) -> str | None:
    """Why a fact can't be declared of a place."""
    if not _PLACE.match(place):
        return "a place is written like '.paths[*].name'"
    kinds = set(_kinds_at(definition.result, place))
    if not kinds:
        return f"the result {'has no such place' if place else 'has no type'}"
    kinds.discard("null")
    if fact == LITTLE:
        large = kinds - {"integer", "number", "boolean", "choice"}
        return "only numbers, booleans and enumerations carry little" if large else None
    if fact == TIME:
        return None
    size = _SIZE.match(fact)
    if size:
        if kinds - {"array", "object", "any"}:
            return "it is not always a list or an object"
        return None if size[1].isdigit() else _wrong_parameter(definition, size[1], "integer")
    kind = next((kind for kind in (_SAME, _BELOW) if fact.startswith(kind)), "")
    if not kind and fact not in ("word", "number"):
        return (
            "there is no such fact; use 'same as P', 'below P', 'word', 'number', 'at most N items', 'little' or 'time'"
        )
    if kinds - {"string", "choice", "any"}:
        return "it is not always a text"
    if not kind:
        return None
    name = fact.removeprefix(kind)
    if kind == _BELOW and definition.declared.uses.get(name) not in ("read", "write", "delete"):
        return f"`paths` does not name {name!r}"
    return _wrong_parameter(definition, name, "string")


def _wrong_parameter(definition: ToolDefinition, name: str, kind: str) -> str | None:
    parameter = definition.parameter(name)
    if parameter is None:
        return f"there is no parameter {name!r}"
    kinds = set(_kinds_at(parameter.schema, ""))
    if parameter.schema.get("type") != kind or kinds - {kind, "choice"}:
        return f"the parameter {name!r} is not always {'an integer' if kind == 'integer' else 'a text'}"
    return None


def _kinds_at(root: Schema, place: str) -> Iterator[str]:
    """The JSON types that a place can have. ``choice`` is an enumeration, ``any`` is a value without a schema."""
    schemas: list[Schema] = [root]
    for step in _STEP.finditer(place):
        schemas = [
            inner for schema in schemas for part in _alternatives(schema, root) for inner in _inner(part, step[1])
        ]
    for schema in schemas:
        for part in _alternatives(schema, root):
            kind = part.get("type", "any")
            choice = "enum" in part or "const" in part
            yield from ["choice"] if choice else kind if isinstance(kind, list) else [kind]


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    """The schemas of which one applies, without references. A schema that is only a reference to itself has none."""
    pending, seen = [schema], set()
    while pending:
        part = pending.pop()
        reference = part.get("$ref")
        if reference is not None:
            if reference not in seen:
                seen.add(reference)
                target: Any = root
                for name in str(reference).removeprefix("#/").split("/"):
                    target = target.get(name, {})
                pending.append(target)
        elif "anyOf" in part or "oneOf" in part:
            pending += [*part.get("anyOf", ()), *part.get("oneOf", ())]
        else:
            yield part


def _inner(schema: Schema, name: str | None) -> Iterator[Schema]:
    """The schemas of a field; without a name, those of all items or values."""
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    kinds = schema.get("type", ["object", "array"])
    if "object" in kinds:
        if name in properties:
            yield properties[name]
        elif isinstance(others, dict):
            yield others
        if name is None:
            yield from properties.values()
    if "array" in kinds and name is None:
        yield from schema.get("prefixItems", ())
        items = schema.get("items", {})
        if isinstance(items, dict):
            yield items


def _short(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"{len(value):,} items"
    text = repr(value)
    return text if len(text) <= 100 else text[:99] + "…"

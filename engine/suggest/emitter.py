"""Writes a draft in the language: a function with a docstring, and an example whose values are made up.

Equal values of the example are equal in the traces, too. Nothing in it was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from msgspec import UNSET

from albert_tools.engine.model.definition import Json, Schema, ToolDefinition, literal
from albert_tools.engine.model.describe import value_of_schema
from albert_tools.engine.model.validation import violations
from albert_tools.engine.suggest.drafts import (
    TAKEN,
    Draft,
    Expression,
    Given,
    Item,
    Joined,
    Nested,
    Parameter,
    Part,
)
from albert_tools.engine.suggest.traces import at

#: The most characters of a name.
MAX_NAME = 60
_VERBS = re.compile(r"\A(get|list|read|find|search|fetch|load|show)_(?=[a-z])")
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "array": "list"}


class Unwritable(Exception):
    """There is no example: no value could be made up that a tool accepts."""


def source_of(draft: Draft, name: str, definition: Callable[[str], ToolDefinition]) -> str:
    """The source of a draft."""
    writer = _Writer(draft)
    try:
        example = _Example(draft, definition, writer.names).text()
    except Unwritable:
        example = ""
    return example + writer.function(name, definition)


def title_of(draft: Draft) -> str:
    """The tools of a draft in one line: ``get_user → every get_order``."""
    return " → ".join(f"every {s.tool}" if s.over is not None else s.tool for s in draft.steps)


def destinations(draft: Draft, definition: Callable[[str], ToolDefinition]) -> Iterator[tuple[str, str]]:
    """Each argument that decides where an effect happens, and where it comes from. All that is not declared as a payload does."""
    writer = _Writer(draft)
    for step in draft.steps:
        callee = definition(step.tool)
        for name, expression in step.arguments.items():
            if not callee.only_reads and callee.declared.uses.get(name) != "payload":
                where = writer.spelled(expression)
                if isinstance(expression, Given):
                    where = f"the parameter {where}"
                elif isinstance(expression, Item) and step.over is not None:
                    where += f" of each item of {writer.spelled(step.over)}"
                yield f"{name} of {step.tool}", where


def name_of(draft: Draft, taken: Collection[str]) -> str:
    """A name for the tool that is not taken."""
    tools = [step.tool.replace(".", "_") for step in draft.steps]
    words = [tools[0]] if len(tools) == 1 else [tools[0], tools[-1]]
    name = "_then_".join(words) if len(tools) < 3 else f"{words[0]}_to_{words[1]}"
    name = (f"every_{name}" if len(tools) == 1 else name)[:MAX_NAME].rstrip("_")
    number, candidate = 2, name
    while candidate in taken:
        number, candidate = number + 1, f"{name}_{number}"
    return candidate


class _Writer:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        taken = {*TAKEN, *(p.name for p in draft.parameters)}
        #: The variable of each step.
        self.names: list[str] = []
        for step in draft.steps:
            word = _VERBS.sub("", step.tool.rpartition(".")[2])
            if step.over is not None and not word.endswith("s"):
                word += "s"
            while word in taken:
                word += "_result"
            taken.add(word)
            self.names.append(word)

    def function(self, name: str, definition: Callable[[str], ToolDefinition]) -> str:
        draft = self.draft
        parameters = sorted(draft.parameters, key=lambda p: p.default is not UNSET)
        head = ", ".join(
            f"{p.name}: {_annotation(p.schema)}" + (f" = {literal(p.default)}" if p.default is not UNSET else "")
            for p in parameters
        )
        lines = [f"def {name}({head}) -> Any:", f'    """{self._summary()}']
        if parameters:
            lines += ["", "    Args:", *(f"        {p.name}: {self._about(p)}" for p in parameters)]
            lines.append('    """')
        else:
            lines[-1] += '"""'
        for n, step in enumerate(draft.steps):
            arguments = ", ".join(f"{key}={self.spelled(value)}" for key, value in step.arguments.items())
            call = f"tools.{step.tool}({arguments})"
            if step.over is not None:
                over = self.spelled(step.over)
                only_reads = definition(step.tool).only_reads
                call = f"parallel({call} for item in {over})" if only_reads else f"[{call} for item in {over}]"
            lines.append(f"    {self.names[n]} = {call}")
            for part in sorted((p for p in draft.single if p.step == n), key=str):
                where = self.spelled(part)
                lines.append(f"    if len({where}) != 1:")
                lines.append('        raise ToolError("there is not exactly one item; choose one yourself")')
        one = len(draft.steps) == 1
        result = self.names[0] if one else "{" + ", ".join(f'"{v}": {v}' for v in self.names) + "}"
        return "\n".join([*lines, f"    return {result}", ""])

    def _summary(self) -> str:
        calls = [f"{s.tool} for each item" if s.over is not None else s.tool for s in self.draft.steps]
        return f"Call {', then '.join(calls)}."

    def _about(self, parameter: Parameter) -> str:
        name = ".".join(str(p) for p in parameter.path)
        tool = self.draft.steps[parameter.step].tool
        return f"The {name} of {tool}." if name else f"The arguments of each call of {tool}."

    def spelled(self, expression: Expression) -> str:
        """The expression in the language."""
        match expression:
            case Part():
                return _indexed(self.names[expression.step], expression.path)
            case Item():
                return _indexed("item", expression.path)
            case Given():
                return expression.name
            case Nested():
                inner = [(key, self.spelled(part)) for key, part in expression.values]
                if isinstance(inner[0][0], int):
                    return f"[{', '.join(value for _, value in inner)}]"
                return "{" + ", ".join(f"{literal(key)}: {value}" for key, value in inner) + "}"
            case Joined():
                return " + ".join(literal(p) if isinstance(p, str) else self.spelled(p) for p in expression.parts)


def _indexed(value: str, path: tuple[str | int, ...]) -> str:
    for i, part in enumerate(path):
        if part == "*":
            # All items of a list are the list.
            return value if i + 1 == len(path) else f"[{_indexed('each', path[i + 1 :])} for each in {value}]"
        value += f"[{literal(part)}]"
    return value


def _annotation(schema: Schema) -> str:
    kind = schema.get("type")
    if kind == "array" and str((schema.get("items") or {}).get("type")) in _TYPES:
        return f"list[{_annotation(schema['items'])}]"
    return _TYPES.get(str(kind), "Any")


class _Example:
    """An example: the arguments, a stub for each tool with what the draft reads of its results, and the result."""

    def __init__(self, draft: Draft, definition: Callable[[str], ToolDefinition], names: list[str]) -> None:
        self.draft = draft
        self.definition = definition
        self.names = names
        self.made: dict[str, int] = {}
        self.stubs: dict[str, Any] = {}
        self.arguments: dict[str, Json] = {}

    def text(self) -> str:
        draft = self.draft
        for p in draft.parameters:
            self.arguments[p.name] = self._made_up(p.schema, p.name)
        for step in draft.steps:
            self.stubs.setdefault(step.tool, None)
            for name, expression in step.arguments.items():
                parameter = self.definition(step.tool).parameter(name)
                self._need(expression, parameter.schema if parameter is not None else {}, name, step.over)
        for part in draft.single:
            del at(self.stubs[draft.steps[part.step].tool], part.path)[1:]
        for tool, value in self.stubs.items():
            if value is None:
                self.stubs[tool] = "done"
        results: list[Json] = []
        for step in draft.steps:
            size = len(self._value(step.over, results)) if step.over is not None else None
            stub = self.stubs[step.tool]
            results.append(stub if size is None else [stub] * size)
        result = results[0] if len(results) == 1 else dict(zip(self.names, results, strict=True))
        return (
            f"@example(\n    arguments={literal(self.arguments)},\n    stubs={literal(self.stubs)},\n"
            f"    result={literal(result)},\n)\n"
        )

    def _need(self, expression: Expression, schema: Schema, name: str, over: Part | Given | None) -> None:
        """Put what an expression reads into the stubs."""
        match expression:
            case Part():
                self._put(expression, schema, name)
            case Item() if isinstance(over, Part):
                self._put(
                    Part(over.step, (*over.path, "*", *expression.path)), {"type": "array", "items": schema}, name
                )
            case Nested():
                for key, part in expression.values:
                    inner = schema.get("items") if isinstance(key, int) else (schema.get("properties") or {}).get(key)
                    self._need(part, inner or {}, name if isinstance(key, int) else key, over)
            case Joined():
                for each in expression.parts:
                    if not isinstance(each, str):
                        self._put(each, {"type": "string"}, str(each.path[-1]) if each.path else name)

    def _put(self, part: Part, schema: Schema, name: str) -> None:
        step, path = self.draft.steps[part.step], part.path
        if step.over is not None:
            # All rounds have the same stub.
            if not path:
                raise Unwritable
            if path[0] == "*":
                schema = schema.get("items") or {}
            path = path[1:]
        self.stubs[step.tool] = self._with(self.stubs.get(step.tool), path, schema, name)

    def _with(self, value: Json, path: tuple[str | int, ...], schema: Schema, name: str) -> Json:
        """The value with something made up at a path."""
        if not path and value is None:
            return self._made_up(schema, name)
        if not path:
            if violations(value, schema):
                # Another call takes the same value, and another kind of value.
                raise Unwritable
            return value
        first, rest = path[0], path[1:]
        if first == "*":
            items = value if isinstance(value, list) else [None, None]
            return [self._with(item, rest, schema.get("items") or {}, name) for item in items]
        if type(first) is int:
            items = [*value] if isinstance(value, list) else []
            items += [None] * (first + 1 - len(items))
            items[first] = self._with(items[first], rest, schema, name)
            return items
        if value is not None and not isinstance(value, dict):
            raise Unwritable
        return {**(value or {}), first: self._with((value or {}).get(first), rest, schema, name)}

    def _made_up(self, schema: Schema, name: str) -> Json:
        if schema.get("type") == "array":
            example: Json = [self._made_up(schema.get("items") or {}, name.removesuffix("s")) for _ in range(2)]
        elif schema.get("type") == "object":
            inner = schema.get("properties") or {}
            example = {key: self._made_up(inner.get(key) or {}, key) for key in schema.get("required", ())}
        else:
            number = self.made[name] = self.made.get(name, 0) + 1
            kind = schema.get("type", "string")
            example = f"{name}-{number}" if kind == "string" else number if kind in ("integer", "number") else True
        if violations(example, schema):
            example = value_of_schema(schema)
            if violations(example, schema):
                raise Unwritable
        return example

    def _value(self, over: Part | Given, results: list[Json]) -> Any:
        if isinstance(over, Given):
            return self.arguments[over.name]
        value = results[over.step]
        for part in over.path:
            value = value[part]
        return value

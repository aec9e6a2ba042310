"""The stub file for type checkers and editors: the tools that programs can call, and the names that programs use without an import.

Pyright and others read such names from a file `__builtins__.pyi`. Each tool is a method of the class of `tools`, and each object
with named fields is a TypedDict. The types are those of the JSON Schemas, so an optional field is `NotRequired`, and an object that
may have further fields is a plain dict.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, count

from albert_tools.engine.model.definition import TYPE_NAMES, Json, Schema, ToolDefinition, ToolParameter, literal
from albert_tools.engine.model.validation import violations
from albert_tools.engine.model.vocabulary import TYPING
from albert_tools.engine.service import ToolService

#: The longest default that is written out, in characters. A longer one is `...`.
MAX_DEFAULT = 60
#: The deepest nesting of a schema. What is deeper is any value.
MAX_DEPTH = 20

_PRELUDE = '''\
"""The tools that programs can call, as `albert stubs` has printed them, and the other names that need no import."""

import builtins, typing
from collections.abc import Callable, Generator
{imports}

_Function = typing.TypeVar("_Function", bound=Callable[..., typing.Any])
_Result = typing.TypeVar("_Result")
_Results = typing.TypeVarTuple("_Results")


class ToolError(Exception):
    """A failed tool call, or a tool that gives up: `raise ToolError("no such row")`."""

    message: str
    code: str
    tool: str | None
    retryable: bool
    def __init__(
        self, message: object = "", *, tool: str | None = None, code: str = "tool_error", retryable: bool = False
    ) -> None: ...


@typing.overload
def parallel(calls: Generator[_Result, None, None], /) -> list[_Result]:  # type: ignore[overload-overlap]
    """Make the calls side by side if they only read: `parallel(f(x) for x in xs)`, or `parallel(a(), b())`."""
@typing.overload
def parallel(*calls: *_Results) -> tuple[*_Results]: ...

@typing.overload
def tool(function: _Function, /) -> _Function:
    """Declare the tool. `timeout` limits a run, in seconds: `@tool(timeout=60)`."""
@typing.overload
def tool(*, timeout: float = ...) -> Callable[[_Function], _Function]: ...

def example(
    *,
    arguments: dict[str, typing.Any] = ...,
    files: dict[str, str] = ...,
    result: typing.Any = ...,
    expect_files: dict[str, str] = ...,
    raises: str = ...,
    stubs: dict[str, typing.Any] = ...,
) -> Callable[[_Function], _Function]:
    """A call with its expected result. It runs before the tool is saved."""
'''


def stubs(service: ToolService, session: str | None = None) -> str:
    """The stub file for the tools that a session's programs can call, see `ToolService.stubs`."""
    names = filter(service.coverage(session), service.registry.names())
    # A damaged tool has no definition.
    return stub_file(definition for name in names if (definition := service.registry.get(name)) is not None)


def stub_file(definitions: Iterable[ToolDefinition]) -> str:
    """The stub file for these tools."""
    tools = {d.name: d for d in definitions}
    types = _Types({part for name in tools for part in name.split(".")})
    classes = _Namespace("_Tools")
    for name, definition in tools.items():
        *servers, last = name.split(".")
        space = classes
        for server in servers:
            space = space.inner.setdefault(server, _Namespace(f"{space.name}_{server}"))
        space.methods.append(_method(last, definition, types))
    imports = "\n".join(f"from typing import {name} as {name}" for name in sorted(TYPING))
    parts = [_PRELUDE.format(imports=imports), "".join(types.declared), *classes.written(), "tools: _Tools\n"]
    return "\n\n".join(part for part in parts if part)


class _Namespace:
    """A class of the stub: that of `tools`, or that of a server's tools."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inner: dict[str, _Namespace] = {}
        self.methods: list[str] = []

    def written(self) -> list[str]:
        """The inner classes, then this one."""
        inner_classes = [text for space in self.inner.values() for text in space.written()]
        fields = [f"    {attribute}: {space.name}\n" for attribute, space in self.inner.items()]
        return [*inner_classes, f"class {self.name}:\n" + ("\n".join([*fields, *self.methods]) or "    ...\n")]


class _Types:
    """Writes JSON Schemas as annotations.

    `taken` are the names of methods, which hide built-in names in the classes.
    """

    def __init__(self, taken: Collection[str]) -> None:
        self._taken = taken
        self._declared: dict[str, str] = {}

    @property
    def declared(self) -> str:
        """The TypedDicts and aliases that the annotations name."""
        return "".join(f"{name}{text}\n" for name, text in self._declared.items())

    def builtin(self, name: str) -> str:
        """A built-in name, as it can be used in the classes."""
        return f"builtins.{name}" if name in self._taken else name

    def of(self, schema: Schema, name: str) -> str:
        """The annotation for a schema. The names of its TypedDicts begin with `name`."""
        known = {key: self._reserved(f"{name}_{key}") for key in schema.get("$defs", {})}
        for key, part in schema.get("$defs", {}).items():
            if _is_closed(part):
                self._declared[known[key]] = self._typed_dict(part, known[key], known, 0)
            else:
                self._declared[known[key]] = f": typing.TypeAlias = {self._of(part, known[key], known, 0)}"
        return self._of(schema, name, known, 0)

    def _of(self, schema: Schema, name: str, known: Mapping[str, str], depth: int) -> str:
        def inner(part: Schema, suffix: str = "") -> str:
            return self._of(part, name + suffix, known, depth + 1)

        if depth > MAX_DEPTH:
            return "typing.Any"
        if "$ref" in schema:
            return known.get(str(schema["$ref"]).rpartition("/")[2], "typing.Any")
        if "const" in schema or "enum" in schema:
            return _choices(schema.get("enum", [schema.get("const")]))
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(inner(part) for part in schema["anyOf"]))
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(inner({**schema, "type": each}) for each in kind)
        if kind == "array":
            # A tuple is a list in JSON.
            items = schema.get("prefixItems") or [schema.get("items") or {}]
            return f"{self.builtin('list')}[{' | '.join(dict.fromkeys(map(inner, items)))}]"
        if kind == "object" and _is_closed(schema):
            own = self._reserved(name)
            self._declared[own] = self._typed_dict(schema, own, known, depth)
            return own
        if kind == "object":
            more = schema.get("additionalProperties")
            values = inner(more) if isinstance(more, dict) and not schema.get("properties") else "typing.Any"
            return f"{self.builtin('dict')}[{self.builtin('str')}, {values}]"
        plain = TYPE_NAMES.get(str(kind))
        return "None" if plain == "None" else self.builtin(plain) if plain else "typing.Any"

    def _typed_dict(self, schema: Schema, name: str, known: Mapping[str, str], depth: int) -> str:
        """The declaration of an object with named fields. The syntax of classes has no keys such as "content-type"."""
        fields = []
        for key, part in schema["properties"].items():
            text = self._of(part, f"{name}_{key}", known, depth + 1)
            fields.append(
                f"{literal(key)}: {text if key in schema.get('required', ()) else f'typing.NotRequired[{text}]'}"
            )
        return f" = typing.TypedDict({literal(name)}, {{{', '.join(fields)}}})"

    def _reserved(self, name: str) -> str:
        """A free name like this one."""
        plain = re.sub(r"\W", "_", name)
        free = next(n for n in chain([plain], (f"{plain}_{i}" for i in count(2))) if n not in self._declared)
        self._declared[free] = ""
        return free


def _is_closed(schema: Schema) -> bool:
    """Whether a schema is that of an object with these fields only."""
    return bool(schema.get("properties")) and schema.get("additionalProperties") is False


def _choices(values: list[Json]) -> str:
    """The type of one of these values. `Literal` takes no floats and no containers."""
    if not all(value is None or isinstance(value, str | int) for value in values):
        return "typing.Any"
    return f"typing.Literal[{', '.join(literal(value) for value in values)}]"


def _method(name: str, definition: ToolDefinition, types: _Types) -> str:
    """A tool as a method."""
    stem = f"_{definition.name}"
    parameters: list[str] = []
    for p in definition.parameters:
        annotation = types.of(p.schema, f"{stem}_{p.name}")
        if p.required:
            # Python has no required parameters after optional ones, and schemas do.
            parameters += ["*"] if parameters and " = " in parameters[-1] and "*" not in parameters else []
        parameters.append(f"{p.name}: {annotation}" + ("" if p.required else f" = {_default(p)}"))
    result = types.of(definition.result, f"{stem}_result")
    described = [f"    {p.name}: {p.description}" for p in definition.parameters if p.description]
    text = "\n".join([definition.description.strip(), *(["", "Args:", *described] if described else [])])
    return (
        f"    @{types.builtin('staticmethod')}\n    def {name}({', '.join(parameters)}) -> {result}:\n"
        f'        """{_escaped(text)}\n        """\n'
    )


def _default(parameter: ToolParameter) -> str:
    """The default. A call may leave out what has None as a default, and may not give None if the schema has no null."""
    text = literal(parameter.default)
    return text if len(text) <= MAX_DEFAULT and not violations(parameter.default, parameter.schema) else "..."


def _escaped(text: str) -> str:
    """A text for a docstring. Its characters can't end the docstring, and are visible."""
    lines = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in text.split("\n")]
    shown = "\n".join(line and f"        {line}" for line in lines).strip()
    return shown.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')

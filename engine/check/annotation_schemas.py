"""Convert the annotations of a source to JSON Schema, and its literals to values.

The checker only accepts annotations of a fixed grammar. Any other annotation becomes the empty schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.model.definition import Schema
from albert_tools.engine.model.schema import union_of
from albert_tools.grammar import tree

_PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    "tuple": {"type": "array"},
    "set": {"type": "array"},
    "frozenset": {"type": "array"},
    "dict": {"type": "object"},
}

#: The most parts of all schemas of one tool: types, fields and choices. A call's arguments are checked against them.
MAX_SCHEMA_NODES = 2_000
#: The most parts of a TypedDict that is written in place wherever it occurs. A larger or recursive one is a reference.
MAX_INLINED_NODES = 64


class TooManyNodes(Exception):
    """The schemas of a tool have more than `MAX_SCHEMA_NODES` parts. `node` is the annotation that exceeds the budget."""

    def __init__(self, node: tree.Expr) -> None:
        super().__init__()
        self.node = node


def signature_schemas(function: tree.FunctionDef, facts: Facts) -> tuple[list[Schema], Schema]:
    """The schemas of a tool's parameters and of its result. `facts` know the TypedDicts and aliases of the source.

    Raises:
        TooManyNodes: The schemas are too large together.
    """
    schemas = _Schemas(facts)
    return [schemas.of(p.annotation) for p in function.params], schemas.of(function.returns)


class _NotSmall(Exception):
    """A TypedDict that can't be written in place: it contains itself, or has more than `MAX_INLINED_NODES` parts."""


class _Schemas:
    """The schemas of one source's annotations.

    A small TypedDict is written in place. Other TypedDicts are written once under ``$defs``, so a schema is finite, and its size is
    proportional to the source.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._left = MAX_SCHEMA_NODES
        self._bodies: dict[str, Schema] = {}
        self._small: dict[str, Schema | None] = {}

    def of(self, node: tree.Expr | None) -> Schema:
        """The schema of an annotation.

        Raises:
            TooManyNodes: The budget of this source is spent.
        """
        if node is None:
            return {}
        definitions: dict[str, Schema] = {}
        wanted: list[str] = []
        root = self._schema(node)
        if "$ref" in root and self._in_place(_target(root)) is None:
            # Callers look for the type at the root.
            root = self._body(_target(root))
        root = self._placed(root, wanted, node)
        while wanted:
            name = wanted.pop()
            if name not in definitions:
                definitions[name] = self._placed(self._body(name), wanted, node)
        return {**root, "$defs": definitions} if definitions else root

    def _placed(self, schema: Schema, wanted: list[str], at: tree.Expr) -> Schema:
        """The schema with small TypedDicts in place of their references. The names of the others are added to `wanted`."""
        if "$ref" in schema:
            small = self._in_place(_target(schema))
            if small is not None:
                return self._placed(small, wanted, at)
            wanted.append(_target(schema))
        self._left -= 1 + len(schema.get("enum", ()))
        if self._left < 0:
            raise TooManyNodes(at)
        return _mapped(schema, lambda part: self._placed(part, wanted, at))

    def _in_place(self, name: str) -> Schema | None:
        """The schema of a TypedDict without references; None if it is too large, or contains itself."""
        if name not in self._small:
            try:
                self._small[name] = self._expanded(self._body(name), (name,), [MAX_INLINED_NODES])
            except _NotSmall:
                self._small[name] = None
        return self._small[name]

    def _expanded(self, schema: Schema, path: tuple[str, ...], left: list[int]) -> Schema:
        left[0] -= 1
        if left[0] < 0:
            raise _NotSmall
        if "$ref" in schema:
            name = _target(schema)
            if name in path:
                raise _NotSmall
            return self._expanded(self._body(name), (*path, name), left)
        return _mapped(schema, lambda part: self._expanded(part, path, left))

    def _body(self, name: str) -> Schema:
        """The schema of a TypedDict or an alias, in which each TypedDict is a reference."""
        if name not in self._bodies:
            cls = self._facts.typed_dicts.get(name)
            self._bodies[name] = self._typed_dict(cls) if cls else self._schema(self._facts.aliases[name])
        return self._bodies[name]

    def _schema(self, node: tree.Expr) -> Schema:
        """The schema of an annotation, in which each TypedDict is a reference."""
        match node:
            case tree.Name() | tree.Attribute():
                name = self._facts.type_name(node) or ""
                if name in self._facts.aliases:
                    return self._body(name)
                return {"$ref": _DEFINITIONS + name} if name in self._facts.typed_dicts else dict(_PLAIN.get(name, {}))
            case tree.Constant(value=None):
                return {"type": "null"}
            case tree.BinOp(op="|"):
                return union_of([self._schema(p) for p in _alternatives(node)])
            case tree.Subscript(slice=part):
                name = self._facts.type_name(node.value) or ""
                return self._generic(name, list(part.elts) if isinstance(part, tree.Tuple) else [part])
        return {}

    def _generic(self, name: str, parts: list[tree.Expr]) -> Schema:
        match name:
            case "Literal":
                return {"enum": [value_of(p) for p in parts]}
            case "Optional":
                return union_of([self._schema(parts[0]), {"type": "null"}])
            case "Union":
                return union_of([self._schema(p) for p in parts])
            case "list" | "set" | "frozenset":
                return {"type": "array", "items": self._schema(parts[0])}
            case "dict" if len(parts) == 2:
                return {"type": "object", "additionalProperties": self._schema(parts[1])}
            case "tuple":
                if parts and isinstance(parts[-1], tree.Constant) and parts[-1].value is ...:
                    return {"type": "array", "items": self._schema(parts[0])}
                count = len(parts)
                items = [self._schema(p) for p in parts]
                return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}
            case "Required" | "NotRequired":
                return self._schema(parts[0])
        return {}

    def _typed_dict(self, cls: tree.ClassDef) -> Schema:
        """The schema of a TypedDict, in which each other TypedDict is a reference."""
        total = not any(
            k.arg == "total" and isinstance(k.value, tree.Constant) and not k.value.value for k in cls.keywords
        )
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for stmt in cls.body:
            if not isinstance(stmt, tree.AnnAssign):
                continue
            name = stmt.target.id
            properties[name] = self._schema(stmt.annotation)
            wrapper = None
            if isinstance(stmt.annotation, tree.Subscript):
                wrapper = self._facts.type_name(stmt.annotation.value)
            if wrapper == "Required" or (total and wrapper != "NotRequired"):
                required.append(name)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_DEFINITIONS = "#/$defs/"


def _target(schema: Schema) -> str:
    return str(schema["$ref"]).removeprefix(_DEFINITIONS)


def _mapped(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """The schema with each of its inner schemas changed."""
    mapped = dict(schema)
    for key, value in schema.items():
        if key == "properties":
            mapped[key] = {name: change(part) for name, part in value.items()}
        elif key in ("anyOf", "prefixItems"):
            mapped[key] = [change(part) for part in value]
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            mapped[key] = change(value)
    return mapped


def _alternatives(node: tree.Expr) -> list[tree.Expr]:
    """The members of a union, in order."""
    members: list[tree.Expr] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, tree.BinOp) and part.op == "|":
            stack += [part.right, part.left]
        else:
            members.append(part)
    return members


def is_literal(node: tree.Expr | None) -> bool:
    """Whether an expression is a literal with a JSON value, so that `value_of` has it."""
    match node:
        case tree.List() | tree.Tuple():
            return all(is_literal(e) for e in node.elts)
        case tree.Dict():
            return all(_is_scalar(k) for k in node.keys) and all(is_literal(v) for v in node.values)
    return _is_scalar(node)


def _is_scalar(node: tree.Expr | None) -> bool:
    match node:
        case tree.Constant():
            return node.value is not ...
        case tree.Strings():
            return isinstance(node.constant, str)
        case tree.UnaryOp(op="-" | "+", operand=tree.Constant(value=value)):
            return type(value) in (int, float)
    return False


def value_of(node: tree.Expr) -> Any:
    """The value of a literal expression. Tuples become lists, as in the result of a program.

    Raises:
        ValueError: The expression is not a literal.
    """
    match node:
        case tree.Constant():
            return node.value
        case tree.Strings():
            return node.constant
        case tree.UnaryOp(op=op, operand=operand):
            value = value_of(operand)
            return -value if op == "-" else value
        case tree.List() | tree.Tuple():
            return [value_of(e) for e in node.elts]
        case tree.Dict():
            return {value_of(k): value_of(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
    raise ValueError("not a literal")

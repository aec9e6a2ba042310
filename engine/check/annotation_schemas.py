"""Convert the annotations of a source to JSON Schema, and its literals to values.

The checker only accepts annotations of a fixed grammar. Any other annotation becomes the empty schema.
"""

from __future__ import annotations

from typing import Any

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

#: The deepest nesting of TypedDicts. It limits the schema of a recursive TypedDict.
MAX_SCHEMA_DEPTH = 8


def schema_of(node: tree.Expr | None, classes: dict[str, tree.ClassDef], depth: int = 0) -> Schema:
    """The schema of an annotation. `classes` are the TypedDicts of the source."""
    if node is None or depth > MAX_SCHEMA_DEPTH:
        return {}

    def inner(part: tree.Expr) -> Schema:
        return schema_of(part, classes, depth + 1)

    match node:
        case tree.Name(id=name):
            if name in classes:
                return _typed_dict(classes[name], classes, depth)
            return dict(_PLAIN.get(name, {}))
        case tree.Constant(value=None):
            return {"type": "null"}
        case tree.BinOp(op="|"):
            return union_of([inner(p) for p in _alternatives(node)])
        case tree.Subscript(value=tree.Name(id=name), slice=part):
            parts = list(part.elts) if isinstance(part, tree.Tuple) else [part]
            match name:
                case "Literal":
                    return {"enum": [value_of(p) for p in parts]}
                case "Optional":
                    return union_of([inner(parts[0]), {"type": "null"}])
                case "list" | "set" | "frozenset":
                    return {"type": "array", "items": inner(parts[0])}
                case "dict" if len(parts) == 2:
                    return {"type": "object", "additionalProperties": inner(parts[1])}
                case "tuple":
                    if isinstance(parts[-1], tree.Constant) and parts[-1].value is ...:
                        return {"type": "array", "items": inner(parts[0])}
                    count = len(parts)
                    return {
                        "type": "array",
                        "prefixItems": [inner(p) for p in parts],
                        "minItems": count,
                        "maxItems": count,
                    }
                case "Required" | "NotRequired":
                    return inner(parts[0])
    return {}


def _alternatives(node: tree.Expr) -> list[tree.Expr]:
    if isinstance(node, tree.BinOp) and node.op == "|":
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]


def _typed_dict(cls: tree.ClassDef, classes: dict[str, tree.ClassDef], depth: int) -> Schema:
    total = not any(k.arg == "total" and isinstance(k.value, tree.Constant) and not k.value.value for k in cls.keywords)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for stmt in cls.body:
        if not isinstance(stmt, tree.AnnAssign):
            continue
        name = stmt.target.id
        properties[name] = schema_of(stmt.annotation, classes, depth + 1)
        wrapper = None
        if isinstance(stmt.annotation, tree.Subscript) and isinstance(stmt.annotation.value, tree.Name):
            wrapper = stmt.annotation.value.id
        if wrapper == "Required" or (total and wrapper != "NotRequired"):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


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

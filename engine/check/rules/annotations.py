"""Annotations have a fixed grammar. They become JSON Schema and are never evaluated.

The types are ``str int float bool None list dict tuple set frozenset bytes Any``, ``list[T]``, ``dict[str, T]``,
``tuple[T, ...]``, ``Literal["a", 1]``, ``Optional[T]``, ``A | B`` and the TypedDict classes of the source."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.model.nearest_name import nearest
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode

CODES = (
    FindingCode(
        "annotation",
        "An annotation names a type that the language does not have.",
        "Annotations become the schema that every call is checked against, so each one must have an exact meaning.",
        example='''def work(lines: List[string]) -> int:
    """Count the lines."""
    return len(lines)
''',
        rewrite='''def work(lines: list[str]) -> int:
    """Count the lines."""
    return len(lines)
''',
    ),
)


PLAIN = ("str", "int", "float", "bool", "list", "dict", "tuple", "set", "frozenset", "bytes", "Any")


#: Names of types in other languages, in JSON Schema and in `typing`, with the corresponding type.
MEANT = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "Any",
    "any": "Any",
    "List": "list",
    "Dict": "dict",
    "Tuple": "tuple",
    "Set": "set",
    "Sequence": "list",
    "Iterable": "list",
    "Mapping": "dict",
    "Path": "str",
}


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every annotation."""
    for param in facts.every(tree.Param):
        if param.annotation is not None:
            yield from annotation(facts, param.annotation)
    for function in facts.every(tree.FunctionDef):
        if function.returns is not None:
            yield from annotation(facts, function.returns)
    for stmt in facts.every(tree.AnnAssign):
        yield from annotation(facts, stmt.annotation, field=isinstance(facts.parent(stmt), tree.ClassDef))
    tool = facts.tool
    if tool is not None:
        for part in [*(p.annotation for p in tool.params), tool.returns]:
            for inner in tree.walk(part) if part is not None else ():
                if isinstance(inner, tree.Name) and inner.id in ("set", "frozenset", "bytes"):
                    yield error(
                        "annotation",
                        inner,
                        f"{inner.id} can't be a tool's parameter or result",
                        hint="take and return a list"
                        if inner.id != "bytes"
                        else "take and return text, as base64 for bytes",
                    )


def annotation(facts: Facts, node: tree.Expr, field: bool = False) -> Iterator[Diagnostic]:
    """Check one annotation. `field` allows ``Required`` and ``NotRequired``."""
    match node:
        case tree.Name():
            if node.id not in PLAIN and node.id not in facts.typed_dicts:
                near = MEANT.get(node.id) or nearest(node.id, [*PLAIN, *facts.typed_dicts])
                yield error(
                    "annotation",
                    node,
                    f"{node.id!r} is not a type here" + (f"; did you mean {near!r}?" if near else ""),
                    fix=replace(node, near) if near else None,
                    hint="the types are " + ", ".join(PLAIN) + ", Literal[…], Optional[T], A | B and TypedDict classes",
                )
        case tree.Constant(value=None):
            pass
        case tree.BinOp(op="|"):
            yield from annotation(facts, node.left)
            yield from annotation(facts, node.right)
        case tree.Subscript(value=tree.Name(id=name)):
            yield from _generic(facts, node, name, field)
        case tree.Strings():
            text = node.constant
            plain = isinstance(text, str) and text.isidentifier() and text.isascii()
            yield error(
                "annotation",
                node,
                "an annotation must not be in quotes",
                hint="write the type without quotes",
                fix=replace(node, str(text)) if plain else None,
            )
        case _:
            yield error(
                "annotation", node, "this is not a type", hint="write str, list[str], dict[str, int], str | None, …"
            )


def _generic(facts: Facts, node: tree.Subscript, name: str, field: bool) -> Iterator[Diagnostic]:
    parts = list(node.slice.elts) if isinstance(node.slice, tree.Tuple) else [node.slice]
    if name == "Literal":
        for p in parts:
            negative = isinstance(p, tree.UnaryOp) and p.op == "-" and isinstance(p.operand, tree.Constant)
            text = isinstance(p, tree.Strings) and isinstance(p.constant, str)
            if not (text or negative or (isinstance(p, tree.Constant) and p.value is not ...)):
                yield error("annotation", p, "Literal takes constants", hint='Literal["read", "write"]')
        return
    if name in ("list", "set", "frozenset", "Optional") or (field and name in ("Required", "NotRequired")):
        if len(parts) != 1:
            yield error("annotation", node, f"{name} takes one type", hint=f"{name}[str]")
    elif name == "dict":
        if len(parts) != 2 or not (isinstance(parts[0], tree.Name) and parts[0].id in ("str", "int", "Any")):
            yield error("annotation", node, "dict takes a key type and a value type", hint="dict[str, int]")
            return
    elif name == "tuple":
        if parts and isinstance(parts[-1], tree.Constant) and parts[-1].value is ... and len(parts) == 2:
            parts = parts[:1]
    else:
        generic = MEANT.get(name, name)
        near = (
            None
            if name in PLAIN
            else nearest(generic, ("list", "dict", "tuple", "set", "frozenset", "Literal", "Optional"))
        )
        yield error(
            "annotation",
            node.value,
            f"{name!r} takes no types in brackets" + (f"; did you mean {near!r}?" if near else ""),
            hint="write list[str], dict[str, int], tuple[int, str], Optional[str] or str | None",
            fix=replace(node.value, near) if near else None,
        )
        return
    for p in parts:
        yield from annotation(facts, p)

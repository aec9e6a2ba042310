"""Annotations are a closed grammar: they become JSON Schema, and nothing is evaluated.

``str int float bool None list dict tuple set Any``, ``list[T]``, ``dict[str, T]``, ``tuple[T, ...]``,
``Literal["a", 1]``, ``Optional[T]``, ``A | B``, and the TypedDict classes of the source.
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, is_typed_dict
from albert_tools.engine.check.rule import error
from albert_tools.engine.model.naming import did_you_mean
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic

PLAIN = ("str", "int", "float", "bool", "list", "dict", "tuple", "set", "frozenset", "bytes", "Any")


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Every annotation, and the shape of TypedDict classes."""
    for node in facts.nodes:
        if isinstance(node, tree.Param) and node.annotation is not None:
            yield from annotation(facts, node.annotation)
        elif isinstance(node, tree.FunctionDef) and node.returns is not None:
            yield from annotation(facts, node.returns)
        elif isinstance(node, tree.AnnAssign):
            yield from annotation(facts, node.annotation, field=_in_class(facts, node))
        elif isinstance(node, tree.ClassDef):
            yield from _class(facts, node)
    tool = facts.tool
    if tool is not None:
        for part in [*(p.annotation for p in tool.params), tool.returns]:
            for inner in tree.walk(part) if part is not None else ():
                if isinstance(inner, tree.Name) and inner.id in ("set", "frozenset", "bytes"):
                    yield error(
                        "annotation",
                        inner,
                        f"{inner.id} can't cross the boundary of a tool",
                        hint="take and return a list"
                        if inner.id != "bytes"
                        else "take and return text, as base64 for bytes",
                    )


def _in_class(facts: Facts, node: tree.Node) -> bool:
    return isinstance(facts.parent(node), tree.ClassDef)


def annotation(facts: Facts, node: tree.Expr, field: bool = False) -> Iterator[Diagnostic]:
    """One annotation; `field` allows ``Required`` and ``NotRequired``."""
    match node:
        case tree.Name():
            if node.id not in PLAIN and node.id not in facts.typed_dicts:
                known = [*PLAIN, *facts.typed_dicts]
                yield error(
                    "annotation",
                    node,
                    f"{node.id!r} is not a type here{did_you_mean(node.id, known)}",
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
            yield error("annotation", node, "an annotation in quotes", hint="write the type without quotes")
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
        yield error("annotation", node.value, f"{name!r} takes no types in brackets{did_you_mean(name, PLAIN)}")
        return
    for p in parts:
        yield from annotation(facts, p)


def _class(facts: Facts, node: tree.ClassDef) -> Iterator[Diagnostic]:
    if not is_typed_dict(node):
        yield error(
            "no-class",
            node.name_span,
            "classes are not in the language, but for TypedDict",
            hint=f"keep the data in a dict, or write class {node.name}(TypedDict): with annotated fields; methods become helpers",
        )
        return
    for d in node.decorators:
        yield error("decorator", d, "a TypedDict takes no decorator")
    for k in node.keywords:
        if k.arg != "total" or not (isinstance(k.value, tree.Constant) and isinstance(k.value.value, bool)):
            yield error("no-class", k, "a TypedDict takes only total=False")
    for i, stmt in enumerate(node.body):
        is_doc = i == 0 and isinstance(stmt, tree.ExprStmt) and isinstance(stmt.value, tree.Strings)
        if isinstance(stmt, tree.AnnAssign) and stmt.value is None:
            if stmt.target.id.startswith("__"):
                yield error("private-name", stmt, "a field's name can't begin with two underscores")
            continue
        if not is_doc and not isinstance(stmt, tree.Pass):
            yield error("no-class", stmt, "a TypedDict holds annotated fields only", hint="name: str")

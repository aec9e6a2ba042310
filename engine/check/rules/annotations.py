"""Annotations have a fixed grammar. They become JSON Schema and are never evaluated.

The types are ``str int float bool None list dict tuple set frozenset bytes Any``, ``list[T]``, ``dict[str, T]``,
``tuple[T, ...]``, ``Literal["a", 1]``, ``Optional[T]``, ``A | B``, the TypedDict classes of the source, and its aliases
(``Json = dict[str, Any]``). Helpers may also have the classes of modules, such as `datetime.date`."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.check.scopes import spelled
from albert_tools.engine.model import vocabulary
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


#: The types of `collections` and `re` that take types in brackets.
_GENERIC_CLASSES = frozenset(
    "re.Match re.Pattern collections.Counter collections.OrderedDict collections.defaultdict collections.deque".split()
)
#: Types that only helpers can have, and what a tool takes and returns instead. So are the classes of modules.
_INTERNAL_TYPES = {
    "set": "take and return a list",
    "frozenset": "take and return a list",
    "bytes": "take and return text, as base64 for bytes",
}
#: Types whose values can't be keys of a dict.
_NEVER_KEYS = frozenset({"list", "dict", "set"})
#: The nesting of an alias, with the aliases in it. It bounds the depth of a schema.
MAX_ALIAS_DEPTH = 15
#: Names that are not types alone: ``Optional[str]``.
_FORMS = (vocabulary.TYPING - {"Any"}) | {"TypeAlias"}

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
    """Check every annotation, and every alias of a type."""
    depths: dict[str, int] = {}
    for name, alias in facts.aliases.items():
        yield from annotation(facts, alias)
        yield from _order(facts, alias)
        depths[name] = _depth(alias, depths)
        if depths[name] > MAX_ALIAS_DEPTH:
            message = f"this type is nested more than {MAX_ALIAS_DEPTH} deep"
            yield error("annotation", alias, message, hint="write Any for its inner part")
    given = [*(p.annotation for p in facts.every(tree.Param)), *(f.returns for f in facts.every(tree.FunctionDef))]
    for node in given:
        if node is not None:
            yield from annotation(facts, node)
    for stmt in facts.every(tree.AnnAssign):
        if facts.aliases.get(stmt.target.id) is not stmt.value or stmt.value is None:
            yield from annotation(facts, stmt.annotation, field=isinstance(facts.parent(stmt), tree.ClassDef))
    tool = facts.tool
    if tool is not None:
        types_in = _types_in(facts)
        for part in [*(p.annotation for p in tool.params), tool.returns]:
            for inner in tree.walk(part) if part is not None else ():
                named = _named(facts.type_name(inner), types_in)
                internal = next((n for n in named if "." in n or n in _INTERNAL_TYPES), None)
                if internal is not None:
                    yield error(
                        "annotation",
                        inner,
                        f"{internal} can't be a tool's parameter or result",
                        hint=_INTERNAL_TYPES.get(internal, "take and return text, and convert it in the tool"),
                    )


def _types_in(facts: Facts) -> dict[str, list[str]]:
    """The types that each alias and each TypedDict consists of, each type once."""
    nodes: dict[str, list[tree.Expr]] = {
        name: [s.annotation for s in cls.body if isinstance(s, tree.AnnAssign)]
        for name, cls in facts.typed_dicts.items()
    }
    nodes |= {name: [alias] for name, alias in facts.aliases.items()}
    return {
        name: list(dict.fromkeys(part for node in tree.walk(*own) if (part := facts.type_name(node)) is not None))
        for name, own in nodes.items()
    }


def _named(name: str | None, types_in: dict[str, list[str]]) -> Iterator[str]:
    """The type `name`, and the types in its alias or TypedDict, at any depth."""
    pending, seen = [name] if name is not None else [], set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            yield name
            pending += types_in.get(name, ())


def _order(facts: Facts, alias: tree.Expr) -> Iterator[Diagnostic]:
    """Check that the TypedDicts of an alias are defined above it, because Python evaluates the alias."""
    for node in tree.walk(alias):
        cls = facts.typed_dicts.get(node.id) if isinstance(node, tree.Name) else None
        if cls is not None and cls.span.line > alias.span.line:
            yield error(
                "annotation", node, f"{cls.name!r} is defined further down", hint="move its class above this line"
            )


def _depth(node: tree.Node, depths: dict[str, int]) -> int:
    if isinstance(node, tree.Name):
        return depths.get(node.id, 0)
    return 1 + max((_depth(child, depths) for child in tree.children(node)), default=0)


def annotation(facts: Facts, node: tree.Expr, field: bool = False) -> Iterator[Diagnostic]:
    """Check one annotation. `field` allows ``Required`` and ``NotRequired``."""
    match node:
        case tree.Name() | tree.Attribute() if facts.type_name(node) not in (None, *_FORMS):
            pass
        case tree.Name() if spelled(node.id) != node.id:
            yield _hidden(node)
        case tree.Name():
            near = MEANT.get(node.id) or nearest(node.id, [*vocabulary.PLAIN_TYPES, *facts.typed_dicts, *facts.aliases])
            yield error(
                "annotation",
                node,
                f"{node.id!r} is not a type here" + (f"; did you mean {near!r}?" if near else ""),
                fix=replace(node, near) if near else None,
                hint=f"the types are {', '.join(vocabulary.PLAIN_TYPES)}, Literal[…], Optional[T], A | B, TypedDict classes,"
                " and the classes of imported modules",
            )
        case tree.Constant(value=None):
            pass
        case tree.BinOp(op="|"):
            yield from annotation(facts, node.left)
            yield from annotation(facts, node.right)
        case tree.Subscript(value=tree.Name() | tree.Attribute() as value) if name := facts.type_name(value) or (
            value.id if isinstance(value, tree.Name) else ""
        ):
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


def _hidden(node: tree.Expr) -> Diagnostic:
    assert isinstance(node, tree.Name)
    return error(
        "annotation",
        node,
        f"{node.id!r} is another name here, which hides the type",
        hint="choose another name for the variable, or leave the annotation out",
    )


def _generic(facts: Facts, node: tree.Subscript, name: str, field: bool) -> Iterator[Diagnostic]:
    if spelled(name) != name:
        yield _hidden(node.value)
        return
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
        if len(parts) != 2:
            yield error("annotation", node, "dict takes a key type and a value type", hint="dict[str, int]")
            return
        unhashable = next((n for n in map(facts.type_name, tree.walk(parts[0])) if n in _NEVER_KEYS), None)
        if unhashable is not None:
            yield error("annotation", parts[0], f"{unhashable} can't be a key", hint="write tuple, or str")
            return
    elif name == "Union" or name in _GENERIC_CLASSES:
        pass
    elif name == "tuple":
        if parts and isinstance(parts[-1], tree.Constant) and parts[-1].value is ... and len(parts) == 2:
            parts = parts[:1]
    else:
        generics = ("list", "dict", "tuple", "set", "frozenset", "Literal", "Optional")
        near = None if name in vocabulary.PLAIN_TYPES else nearest(MEANT.get(name, name), generics)
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

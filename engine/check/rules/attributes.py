"""Attributes and methods must be in a list, and a method must be called directly.

Programs escaped from other sandboxes through attributes such as ``__class__``, ``gi_frame`` and ``format``. Every name in the list
is harmless for every value that a program can create."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator

from albert_tools.engine.check.facts import Facts, attribute_chain, tool_name
from albert_tools.engine.check.format_call import missing_argument, read_template, template_of
from albert_tools.engine.check.rule import error, without_parentheses
from albert_tools.engine.check.rules.function_values import callback_position
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.nearest_name import nearest
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "private-attribute",
        "An attribute begins with an underscore.",
        "Private attributes lead from a value to the interpreter that runs it.",
        example=in_tool("return path.__class__"),
        rewrite=in_tool("return isinstance(path, str)"),
    ),
    FindingCode(
        "unknown-attribute",
        "An attribute or method is not in the language.",
        "Only attributes that are harmless on every value are on the list.",
        example=in_tool('return path.format("a")'),
        rewrite=in_tool('return path.replace("{}", "a")'),
    ),
    FindingCode(
        "method-value",
        "A method is named but not called.",
        "A method that is not called does nothing, and functions are not values.",
        example=in_tool("return path.strip"),
        rewrite=in_tool("return path.strip()"),
    ),
)


#: Names that are excluded deliberately or belong to other languages, and their replacements.
INSTEAD: dict[str, str] = {
    "format": 'only a text that is written there can be formatted: "{} of {}".format(a, b), or f"{a} of {b}"',
    "format_map": 'use an f-string: f"{value}"',
    "now": "call tools.current_time()",
    "today": "call tools.current_time()",
    "utcnow": "call tools.current_time()",
    "read_text": "call tools.read_file(path=…)",
    "write_text": "call tools.write_file(path=…, content=…)",
    "close": "leave it out; programs open no files",
    "json": "use json.loads(text)",
    "status_code": 'the answer of a tool is a dict: answer["status"]',
    "cycle": "infinite iterators are not in the language; use xs[i % len(xs)]",
    "count": "infinite iterators are not in the language; use enumerate or range",
    "repeat": "write [value] * n",
    "groupby": "collect into a dict: groups.setdefault(key, []).append(value)",
    "Match": "compare with None: found is not None",
    "tee": "make a list and read it twice",
    "ChainMap": "merge the dicts, the first of them last: {**defaults, **given}",
    "cmp_to_key": "sort by a key: key=lambda row: (row.year, row.name)",
    "getsizeof": "write len(json.dumps(value))",
    "float_info": "write math.ulp(1.0) for epsilon, and math.inf for a bound",
    "maxunicode": "write 0x10FFFF",
    "partial": "use a lambda in the callback position, or a helper",
    "lru_cache": "keep results in a dict that you pass along",
    "cache": "keep results in a dict that you pass along",
    "setrecursionlimit": "leave it out; functions may call each other 1,000 deep",
    "argv": "take values as parameters",
    "stdin": "take the text as a parameter",
    "stdout": "write print(…)",
    "stderr": "write print(…)",
    "exit": "return from the function, or raise ToolError(…)",
    "uuid4": "programs are deterministic; use uuid.uuid5(namespace, name)",
    "uuid1": "programs are deterministic; use uuid.uuid5(namespace, name)",
    "namedtuple": "use a dict, or a TypedDict class",
    "NamedTuple": "use a dict, or a TypedDict class",
    "Callable": "functions are not values; call the helper by its name",
    "Iterator": "there are no generator functions; return a list",
    "attrgetter": "write a lambda: key=lambda row: row.year",
    "methodcaller": "write a lambda: key=lambda text: text.lower()",
    "available_timezones": "look the name up, and catch zoneinfo.ZoneInfoNotFoundError",
    "cast": "leave it out: annotations have no effect on a value",
    "load": "read the file first: json.loads(tools.read_file(path=…))",
    "dump": "write the text: tools.write_file(path=…, content=json.dumps(value))",
    "msg": "str(error) contains it",
    "lineno": "str(error) contains it",
    "colno": "str(error) contains it",
    "doc": "it is the text that you parsed",
    "errno": "a tool that fails raises ToolError; read error.code",
    "strerror": "a tool that fails raises ToolError; read error.message",
    "with_traceback": "write raise ToolError(…) from error",
    "add_note": "write raise ToolError(…) from error",
    "length": "write len(value)",
    "size": "write len(value)",
    "push": "write value.append(x)",
    "trim": "write value.strip()",
    "contains": "write x in value",
    "includes": "write x in value",
    "has_key": "write key in value",
    "toUpperCase": "write value.upper()",
    "toLowerCase": "write value.lower()",
    "toString": "write str(value)",
    "substring": "write value[start:end]",
    "substr": "write value[start:end]",
    "indexOf": "write value.find(x)",
    "forEach": "write for x in value:",
    "map": "write [f(x) for x in value]",
    "filter": "write [x for x in value if …]",
    "iteritems": "write value.items()",
}


_FIELDS = 'a field is {}, {0} or {name}, with a format as in {:>8}; or write an f-string: f"{value:>8}"'


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each attribute, according to the expression before it."""
    for node in facts.every(tree.Attribute):
        if id(node) in facts.annotations or tool_name(node) is not None:
            continue
        if isinstance(facts.parent(node), tree.MatchValue):
            continue  # the rule for patterns checks it
        if id(node) in facts.decorating:
            continue  # the rule for decorators checks it
        root, _ = attribute_chain(node)
        if id(root) in facts.unbound or id(node) in facts.assigned_attributes:
            continue  # reported as an unknown name or an assignment
        if node.attr == "__name__" and facts.is_type_question(node.value):
            continue
        named = facts.facade(node)
        if named is not None:
            yield from _facade(facts, node, *named)
        elif node.attr.startswith("_"):
            yield error(
                "private-attribute",
                node.attr_span,
                f"the attribute {node.attr!r} is private",
                hint="write an operator or a built-in: x + y, x == y, y in x, len(x), str(x)"
                if node.attr.startswith("__") and node.attr.endswith("__")
                else "use the value itself",
            )
        elif isinstance(node.value, tree.Name) and node.value.id in vocabulary.BUILTINS:
            yield from _type_method(facts, node)
        else:
            yield from _plain(facts, node)


def _facade(facts: Facts, node: tree.Attribute, module: str, name: str) -> Iterator[Diagnostic]:
    table = vocabulary.facades().get(module)
    if table is None or not name:
        return
    if name in table:
        return
    above = facts.parent(node)
    if any(entry.startswith(name + ".") for entry in table) and isinstance(above, tree.Attribute):
        return
    root, _, last = name.rpartition(".")
    entry = table.get(root) if root else None
    if entry is not None and entry.kind == "constant":
        # A method or field of a constant's value, for example datetime.UTC.utcoffset(…).
        yield from _plain(facts, node)
        return
    if entry is not None and entry.kind == "class" and callback_position(facts, node) and last in vocabulary.METHODS:
        yield from _callback(node)
        return
    if root and not any(e == root or e.startswith(root + ".") for e in table):
        return  # the finding concerns a shorter part of the name
    near: str | None = None
    if last not in INSTEAD:
        # A class method is searched in the module, for example datetime.fromisoformat.
        inside = [f"{module}.{last}"] if not root and f"{module}.{last}" in table else []
        near = next(iter(inside), None) or nearest(
            last, [n.rpartition(".")[2] for n in table if n.rpartition(".")[0] == root]
        )
    yield error(
        "unknown-attribute",
        node.attr_span,
        f"{module} has no {name!r} here" + (f"; did you mean {near!r}?" if near else ""),
        hint=INSTEAD.get(last) or offer(root or module, table, root),
    )


def offer(what: str, table: Iterable[str], root: str = "") -> str:
    """The names in a module or class, shortened."""
    names = sorted(n.removeprefix(root + ".") for n in table if n.rpartition(".")[0] == root)
    return (
        f"{what} offers {', '.join(names[:12])}{', …' if len(names) > 12 else ''}" if names else "use the value itself"
    )


def _callback(node: tree.Attribute) -> Iterator[Diagnostic]:
    """Check a method that is used as a callback. It must not change its object or create a lazy value that nothing consumes."""
    if node.attr in vocabulary.MUTATORS:
        yield error(
            "function-value",
            node.attr_span,
            f"the method {node.attr!r} changes its value; it can't be a callback",
            hint="write a for loop",
        )
    elif node.attr in vocabulary.LAZY_METHODS:
        yield error(
            "function-value",
            node.attr_span,
            f"the method {node.attr!r} is lazy; it can't be a callback",
            hint=f"use a comprehension: [list(x.{node.attr}(…)) for x in xs]",
        )


def _type_method(facts: Facts, node: tree.Attribute) -> Iterator[Diagnostic]:
    assert isinstance(node.value, tree.Name)
    spelled = f"{node.value.id}.{node.attr}"
    if spelled in vocabulary.TYPE_METHODS and (facts.is_called(node) or callback_position(facts, node)):
        return
    keeps = node.attr in vocabulary.METHODS and node.attr not in vocabulary.MUTATORS
    if keeps and callback_position(facts, node):
        return
    # Rules about changes and encodings only know the usual form, so the methods that they are about have no other.
    of_type = node.attr not in ("decode", "encode") and hasattr(getattr(builtins, node.value.id), node.attr)
    if keeps and of_type and facts.is_called(node):
        return
    as_value = "write lambda value: " if isinstance(facts.parent(node), tree.Dict) else "call it on a value: "
    yield error(
        "unknown-attribute",
        node.attr_span,
        f"{spelled!r} can't be used here",
        hint=f"{as_value}value.{node.attr}(…)"
        if node.attr in vocabulary.METHODS
        else INSTEAD.get(node.attr, f"{node.value.id} is a built-in; use one of its methods on a value"),
    )


def _plain(facts: Facts, node: tree.Attribute) -> Iterator[Diagnostic]:
    above = facts.parent(node)
    call = above if isinstance(above, tree.Call) and above.func is node else None
    called = call is not None
    if node.attr in (vocabulary.METHODS if called else vocabulary.ATTRIBUTES):
        return
    if call is not None and (template := template_of(call)) is not None:
        yield from _format(call, node, template)
        return
    if node.attr in vocabulary.METHODS:
        if callback_position(facts, node):
            yield from _callback(node)
            return
        yield error(
            "method-value",
            node.attr_span,
            f"the method {node.attr!r} is not called",
            hint=f"write .{node.attr}()",
        )
        return
    if call is not None and node.attr in vocabulary.ATTRIBUTES:
        yield error(
            "unknown-attribute",
            node.attr_span,
            f"{node.attr!r} is not a method",
            hint=f"write .{node.attr}",
            fix=without_parentheses(call),
        )
        return
    what, known = ("method", vocabulary.METHODS) if called else ("attribute", vocabulary.ATTRIBUTES)
    hint = INSTEAD.get(node.attr)
    near = None if hint else nearest(node.attr, sorted(known), cutoff=0.75)
    if hint is None and near is None:
        hint = (
            f"the methods are those of Python's own types; for one of your own write a helper: _{node.attr}(value)"
            if called
            else f'for a dict write value["{node.attr}"]'
        )
    yield error(
        "unknown-attribute",
        node.attr_span,
        f"no {what} {node.attr!r} in the language" + (f"; did you mean {near!r}?" if near else ""),
        hint=hint,
    )


def _format(call: tree.Call, node: tree.Attribute, template: str) -> Iterator[Diagnostic]:
    try:
        fields = read_template(template)
    except ValueError as problem:
        yield error("unknown-attribute", node.attr_span, f"this can't be formatted: {problem}", hint=_FIELDS)
        return
    missing = missing_argument(call, fields)
    if missing is not None:
        what = f"argument {missing + 1}" if isinstance(missing, int) else f"argument {missing!r}"
        yield error("arguments", call, f"the text has a field for {what}, which is not given", hint=_FIELDS)

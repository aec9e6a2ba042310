"""Functions are not values.

Helpers, built-ins, types, modules, exceptions and TypedDicts may only be used in four places: in a call, in an annotation, in
`except` or `isinstance`, and as a callback. Callbacks are ``key=``, the first argument of ``map``, ``filter`` and
``functools.reduce``, and the replacement of ``re.sub``. A callback may be a lambda, a helper, a pure built-in or a non-mutating
method (``counts.get``, ``str.strip``). So the call graph is exact, and a program can't call a value."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, called_name
from albert_tools.engine.check.rule import error
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "function-value",
        "A function, type, module or exception is used as a value.",
        "If functions could be stored and passed on, nobody could say what a call calls.",
        example=in_tool("clean = len\nreturn path"),
        rewrite=in_tool("return sorted(path.split(), key=len)"),
    ),
    FindingCode(
        "lambda-value",
        "A lambda is used outside a callback position.",
        "If functions could be stored and passed on, nobody could say what a call calls.",
        example=in_tool("steps = [lambda text: text.strip()]\nreturn path"),
        rewrite=in_tool("return list(map(lambda text: text.strip(), path.split()))"),
    ),
)


#: Types that `isinstance` accepts.
TYPES = frozenset({"str", "int", "float", "bool", "list", "dict", "tuple", "set", "frozenset", "bytes"})


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every use of a function as a value."""
    for call in facts.every(tree.Call):
        if facts.facade(call.func) == ("operator", "itemgetter") and not callback_position(facts, call):
            yield error(
                "function-value",
                call,
                "itemgetter(…) is a function; it is allowed only as a callback: key=…, map(…), groupby(…), …",
                hint="write row[key] where the item is needed",
            )
    for node in facts.every(tree.Name, tree.Attribute, tree.Lambda):
        if id(node) in facts.annotations or id(node) in facts.unbound:
            continue
        if isinstance(node, tree.Name):
            if node.id == "tools" or node.id in facts.rebound or not _is_function(facts, node):
                continue
            above = facts.parent(node)
            private = isinstance(above, tree.Attribute) and above.attr.startswith("_")
            if isinstance(above, tree.ClassDef | tree.FunctionDef) or node.id == "parallel":
                continue  # decorators and `parallel` have rules of their own
            if not private and not _allowed(facts, node):
                yield _refusal(facts, node, node.id)
        elif isinstance(node, tree.Attribute) and facts.entry(node) is not None:
            entry = facts.entry(node)
            assert entry is not None
            # Other rules check longer names (datetime.datetime.now) and patterns.
            longer = isinstance(facts.parent(node), tree.Attribute | tree.MatchValue)
            if entry.kind != "constant" and not longer and not _allowed(facts, node):
                yield _refusal(facts, node, node.attr)
        elif isinstance(node, tree.Lambda) and not callback_position(facts, node):
            if facts.is_called(node):
                continue
            if called_name(facts.parent(node)) == "parallel":
                yield error(
                    "lambda-value",
                    node,
                    "parallel takes the calls themselves, not lambdas",
                    hint='write parallel(tools.read_file(path="a"), tools.read_file(path="b"))',
                )
                continue
            if facts.is_in_table(node) or facts.makes_defaults(node):
                continue
            yield error(
                "lambda-value",
                node,
                "a lambda is allowed only as a callback: key=…, map(…), filter(…), reduce(…), re.sub(pattern, …)",
                hint="a name that is only called may hold it: double = lambda x: 2 * x; so may a dict that is only"
                " indexed to call: operations[name](3)",
            )


def _is_function(facts: Facts, node: tree.Name) -> bool:
    if node.id in facts.imported:
        entry = facts.entry(node)
        return entry is None or entry.kind != "constant"
    return facts.fixed(node.id) is not None


def _allowed(facts: Facts, node: tree.Expr) -> bool:
    above = facts.parent(node)
    if facts.is_called(node):
        return not (isinstance(node, tree.Name) and node.id in facts.modules)
    if isinstance(node, tree.Name) and isinstance(above, tree.Attribute):
        if node.id in facts.modules or node.id in facts.imported:
            return True
        return f"{node.id}.{above.attr}" in vocabulary.TYPE_METHODS or (
            node.id in TYPES and above.attr in vocabulary.METHODS
        )
    if isinstance(above, tree.MatchClass):
        return True
    if facts.is_exception(node):
        return _exception_position(facts, node)
    if _type_position(facts, node):
        entry = facts.entry(node)
        return (isinstance(node, tree.Name) and node.id in TYPES) or (entry is not None and entry.kind == "class")
    if facts.makes_defaults(node) or facts.is_in_table(node):
        return True
    if callback_position(facts, node):
        if isinstance(node, tree.Name) and node.id in facts.functions:
            return True
        if isinstance(node, tree.Name) and node.id in vocabulary.BUILTINS:
            builtin = vocabulary.BUILTINS[node.id]
            return builtin.pure and not builtin.lazy
        entry = facts.entry(node)
        return entry is not None and entry.kind in ("function", "class") and not entry.lazy and entry.callback is None
    return False


def _exception_position(facts: Facts, node: tree.Expr) -> bool:
    above = facts.parent(node)
    if isinstance(above, tree.Tuple):
        node, above = above, facts.parent(above)
    if isinstance(above, tree.ExceptHandler | tree.Raise):
        return True
    return isinstance(above, tree.Call) and _second_of_isinstance(above, node)


def _second_of_isinstance(call: tree.Call, node: tree.Expr) -> bool:
    return called_name(call) == "isinstance" and len(call.args) == 2 and call.args[1] is node


def _type_position(facts: Facts, node: tree.Expr) -> bool:
    above = facts.parent(node)
    holder = (
        facts.parent(above) if isinstance(above, tree.Tuple | tree.List | tree.Set) and above is not None else above
    )
    if isinstance(holder, tree.Compare) and any(map(facts.is_type_question, (holder.left, *holder.comparators))):
        return True
    while isinstance(above, tree.Tuple) or (isinstance(above, tree.BinOp) and above.op == "|"):
        node, above = above, facts.parent(above)
    return isinstance(above, tree.Call) and _second_of_isinstance(above, node)


def callback_position(facts: Facts, node: tree.Expr) -> bool:
    """Whether a function is allowed here: the receiving function calls it immediately and does not store it."""
    above = facts.parent(node)
    if isinstance(above, tree.Keyword):
        call = facts.parent(above)
        if not isinstance(call, tree.Call):
            return False
        if above.arg == "key":
            entry = facts.entry(call.func)
            if called_name(call) in ("sorted", "min", "max"):
                return True
            if entry is not None:
                return "key" in entry.keywords
            return isinstance(call.func, tree.Attribute) and call.func.attr == "sort"
        return above.arg == "default" and facts.facade(call.func) == ("json", "dumps") and _is_str(node)
    if not isinstance(above, tree.Call) or not any(a is node for a in above.args):
        return False
    place = next(i for i, a in enumerate(above.args) if a is node)
    if isinstance(above.func, tree.Name) and above.func.id in vocabulary.BUILTINS:
        return vocabulary.BUILTINS[above.func.id].callback == place
    entry = facts.entry(above.func)
    if entry is not None:
        return entry.callback == place
    # The call pattern.sub(replacement, text) on a compiled pattern.
    return isinstance(above.func, tree.Attribute) and above.func.attr in ("sub", "subn") and place == 0


def _is_str(node: tree.Expr) -> bool:
    return isinstance(node, tree.Name) and node.id == "str"


def _refusal(facts: Facts, node: tree.Expr, name: str) -> Diagnostic:
    plain = node.id if isinstance(node, tree.Name) else None
    if plain in facts.modules:
        kind, hint = "module", f"call one of its functions: {name}.…"
    elif facts.is_exception(node):
        message = f"the exception {name!r} is allowed only in raise, except and isinstance"
        return error(
            "function-value", node, message, f"for the caught error write: except {name} as error: … str(error)"
        )
    elif plain in TYPES:
        kind, hint = "type", f"call it: {name}(value), or ask isinstance(value, {name})"
    elif plain in facts.typed_dicts:
        kind, hint = "TypedDict", f"call it: {name}(field=…); or name it in an annotation: row: {name}"
    else:
        places = "key=…, map(…), filter(…), reduce(…), re.sub(pattern, …)"
        kind, hint = "function", f"call it: {name}(…); as a callback it is allowed in {places}"
    return error("function-value", node, f"the {kind} {name!r} can't be used as a value", hint)

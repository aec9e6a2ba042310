"""Programs can only call helpers, built-ins, TypedDicts and functions of modules, with valid arguments.

Helpers are checked against their parameters. Built-ins and modules are checked against their tables."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, is_typed_dict, tool_name
from albert_tools.engine.check.rule import error, without_parentheses
from albert_tools.engine.check.scopes import spelled
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "not-callable",
        "A value is called that is not a function of the source, a built-in or a method.",
        "Functions are not values, so the call graph is exact before anything runs.",
        example=in_tool("parts = path.split()\nreturn parts()"),
        rewrite=in_tool("parts = path.split()\nreturn parts[0]"),
    ),
    FindingCode(
        "arguments",
        "A helper, a built-in or a function of a module is called with arguments that it does not take.",
        "The call would fail whenever it is reached.",
        example=in_tool("return round(path=1.5)"),
        rewrite=in_tool("return round(1.5)"),
    ),
)


#: The usage of each built-in that does not take exactly one value.
USAGE = {
    "bytes": 'bytes([65, 66]), or text.encode("utf-8")',
    "divmod": "divmod(17, 5)",
    "enumerate": "enumerate(xs, 1)",
    "filter": "filter(lambda x: x > 0, xs)",
    "format": 'f"{value:>8}"',
    "int": 'int(text), or int("ff", 16)',
    "isinstance": "isinstance(value, str), or isinstance(value, (int, float))",
    "map": "map(str, xs)",
    "max": "max(xs), or max(a, b)",
    "min": "min(xs), or min(a, b)",
    "next": "next(iter(xs), None)",
    "pow": "pow(2, 10)",
    "range": "range(10), range(1, 11) or range(0, 100, 10)",
    "round": "round(value, 2)",
    "slice": "slice(1, 3), or xs[1:3]",
    "sorted": "sorted(xs, key=…, reverse=True)",
    "str": "str(value)",
    "sum": "sum(xs), or sum(xs, 100)",
}


#: Built-ins with keywords that don't count as positional arguments.
_KEYWORD_EXTRA = frozenset({"max", "min", "sorted", "print", "zip", "dict"})


#: The types that a `defaultdict` may call, also in a lambda.
_CONSTANT_TYPES = frozenset({"int", "list", "dict", "set", "str", "float", "bool", "tuple"})
_CONTAINERS = frozenset({("collections", "Counter"), ("collections", "OrderedDict"), ("collections", "deque")})


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each call that is not a tool call."""
    yield from _table_values(facts)
    for node in facts.every(tree.Call):
        if tool_name(node.func) is not None:
            continue
        func = node.func
        if isinstance(func, tree.Name):
            if func.id in facts.functions:
                yield from _helper_arguments(node, facts.functions[func.id])
            elif func.id in facts.typed_dicts:
                if is_typed_dict(facts.typed_dicts[func.id]):
                    yield from _typed_dict_arguments(node, facts.typed_dicts[func.id])
            elif func.id in vocabulary.BUILTINS:
                yield from _builtin_arguments(node, func.id, vocabulary.BUILTINS[func.id])
            elif func.id in ("tool", "example") and not _is_decorator(facts, node):
                yield error(
                    "not-callable",
                    node,
                    f"'{func.id}' is used only as @{func.id}(…) above the tool",
                    hint="to call a tool write tools.NAME(…)",
                )
            elif facts.facade(func) is not None:
                yield from _facade_arguments(facts, node)
            elif facts.fixed(func.id) is None and (
                func.id in facts.constants.keys() - facts.aliases.keys() or _is_local(facts, func)
            ):
                yield error(
                    "not-callable",
                    func,
                    f"{func.id!r} is a value; only functions named in the source can be called",
                    hint=f"it hides another meaning of the name; give the variable another one, such as {func.id}_"
                    if facts.fixed(spelled(func.id)) is not None
                    else "define a function: def name(…):",
                )
        elif isinstance(func, tree.Attribute):
            if facts.facade(func) is not None:
                yield from _facade_arguments(facts, node)
        elif facts.table_of(func) is not None:
            yield from _table_arguments(node)
        elif not isinstance(func, tree.Lambda):
            yield error(
                "not-callable",
                func,
                "only names and methods can be called",
                hint="call a function by its name; choose between functions with if",
            )
        if isinstance(func, tree.Lambda):
            yield error("not-callable", func, "a lambda can't be called directly", hint="write its body instead")


def _table_values(facts: Facts) -> Iterator[Diagnostic]:
    for table in facts.called_tables:
        for key, value in zip(table.keys, table.values, strict=True):
            if key is None or not facts.is_in_table(value):
                yield error(
                    "not-callable",
                    value,
                    "this dict is called, so it may hold functions only",
                    hint="move it into another dict",
                )


def _table_arguments(call: tree.Call) -> Iterator[Diagnostic]:
    """Check a call of a function that a dictionary holds."""
    if call.keywords or any(isinstance(a, tree.Starred) for a in call.args):
        yield error(
            "arguments",
            call,
            "a function of a dict takes its arguments by position",
            hint="write operations[name](a, b)",
        )


def _is_local(facts: Facts, name: tree.Name) -> bool:
    function = facts.function_of(name)
    return function is not None and name.id in facts.locals_in(function)


def _is_decorator(facts: Facts, node: tree.Call) -> bool:
    above = facts.parent(node)
    return isinstance(above, tree.FunctionDef) and any(d is node for d in above.decorators)


def _helper_arguments(call: tree.Call, helper: tree.FunctionDef) -> Iterator[Diagnostic]:
    if any(isinstance(a, tree.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return
    plain = [p for p in helper.params if not p.keyword_only]
    names = [p.name for p in helper.params]
    if len(call.args) > len(plain):
        yield error(
            "arguments",
            call.args[len(plain)],
            f"{helper.name} takes {len(plain)} positional argument{'s' if len(plain) != 1 else ''}",
            hint=_spell(helper),
        )
        return
    passed = {p.name for p in plain[: len(call.args)]}
    for k in call.keywords:
        assert k.arg is not None
        if k.arg not in names:
            yield error(
                "arguments",
                k,
                f"{helper.name} has no parameter {k.arg!r}{did_you_mean(k.arg, names)}",
                hint=_spell(helper),
            )
        elif k.arg in passed:
            yield error("arguments", k, f"the argument {k.arg!r} is given twice", hint=_spell(helper))
        passed.add(k.arg)
    missing = [p.name for p in helper.params if p.default is None and p.name not in passed]
    if missing:
        yield error(
            "arguments",
            call.func,
            f"{helper.name} needs {' and '.join(repr(m) for m in missing)}",
            hint=_spell(helper),
        )


def _spell(helper: tree.FunctionDef) -> str:
    return f"{helper.name}({', '.join(p.name + ('=…' if p.default is not None else '') for p in helper.params)})"


def _typed_dict_arguments(call: tree.Call, cls: tree.ClassDef) -> Iterator[Diagnostic]:
    fields = [s.target.id for s in cls.body if isinstance(s, tree.AnnAssign)]
    for arg in call.args:
        yield error(
            "arguments",
            arg,
            f"{cls.name} takes its fields by name",
            hint=f"{cls.name}({fields[0] if fields else 'field'}=…)",
        )
        return
    for k in call.keywords:
        if k.arg is not None and k.arg not in fields:
            yield error(
                "arguments",
                k,
                f"{cls.name} has no field {k.arg!r}{did_you_mean(k.arg, fields)}",
                hint=f"{cls.name}({', '.join(f + '=…' for f in fields)})",
            )


def _builtin_arguments(call: tree.Call, name: str, builtin: vocabulary.Builtin) -> Iterator[Diagnostic]:
    for k in () if "*" in builtin.keywords else call.keywords:
        if k.arg is None:
            yield error("arguments", k, f"{name} takes no ** arguments", hint="name each argument")
        elif k.arg not in builtin.keywords:
            takes = ", ".join(sorted(builtin.keywords)) or "no named arguments"
            yield error(
                "arguments",
                k,
                f"{name} has no argument {k.arg!r} here",
                hint=f"{name} takes {takes}",
                fix=_without(call, k) if (name, k.arg) == ("print", "flush") else None,
            )
    if any(isinstance(a, tree.Starred) for a in call.args):
        return
    hint = f"write {USAGE.get(name, name + '(value)')}"
    count = len(call.args) + sum(k.arg in builtin.keywords for k in call.keywords if name not in _KEYWORD_EXTRA)
    if builtin.most is not None and len(call.args) > builtin.most:
        message = f"{name} takes at most {_arguments(builtin.most)}"
        yield error("arguments", call.args[builtin.most], message, hint)
    elif count < builtin.least:
        yield error("arguments", call.func, f"{name} needs {_arguments(builtin.least)}", hint)


def _arguments(count: int) -> str:
    return f"{count} argument{'s' if count != 1 else ''}"


def _without(call: tree.Call, keyword: tree.Keyword) -> Fix:
    """The fix that removes a named argument and the comma before it."""
    passed = [*call.args, *call.keywords]
    place = next(i for i, part in enumerate(passed) if part is keyword)
    s = keyword.span
    if place:
        before = passed[place - 1].span
        s = Span(before.end_line, before.end_column, s.end_line, s.end_column)
    return Fix(f"leave out {keyword.arg}", (Edit(s, ""),))


def _facade_arguments(facts: Facts, call: tree.Call) -> Iterator[Diagnostic]:
    named = facts.facade(call.func)
    entry = facts.entry(call.func)
    if named is None or entry is None:
        return  # the rule for attributes reports unknown names
    spelled = f"{named[0]}.{named[1]}"
    if entry.kind == "constant":
        bare = not call.args and not call.keywords
        yield error(
            "not-callable",
            call.func,
            f"{spelled} is a constant",
            hint="leave the parentheses out",
            fix=without_parentheses(call) if bare else None,
        )
        return
    free = entry.kind == "exception" or named[1] in ("Counter", "OrderedDict", "Template.substitute")
    for k in () if free else call.keywords:
        if k.arg is None:
            yield error("arguments", k, f"{spelled} takes no ** arguments", hint="name each argument")
        elif k.arg not in entry.keywords:
            takes = ", ".join(sorted(entry.keywords)) or "no named arguments"
            yield error("arguments", k, f"{spelled} has no argument {k.arg!r} here", hint=f"it takes {takes}")
    plain = [a for a in call.args if not isinstance(a, tree.Starred)]
    if named == ("itertools", "repeat") and len(plain) + len(call.keywords) != 2:
        yield error("arguments", call, "repeat needs a count: it would never end", hint="write repeat(value, 3)")
    if named == ("copy", "deepcopy") and len(plain) != 1:
        # It would fill the second one with the addresses of objects, and with the objects.
        yield error("arguments", call, "deepcopy takes one argument here", hint="write copy.deepcopy(value)")
    if named == ("collections", "defaultdict") and not _makes_defaults(facts, call):
        yield error(
            "arguments",
            call,
            "defaultdict takes a type, or a lambda that makes a constant",
            hint="write defaultdict(list), defaultdict(lambda: [0, 0]), or d.setdefault(key, value)",
        )


def _makes_defaults(facts: Facts, call: tree.Call) -> bool:
    """Whether the first argument of a `defaultdict` is a type, a lambda that makes a constant, or None."""
    match call.args[:1]:
        case (tree.Name(id=name),) if name in _CONSTANT_TYPES:
            return True
        case (tree.Constant(value=None),):
            return True
        case (tree.Lambda(params=(), body=body),):
            return _makes_constant(facts, body)
        case (tree.Name() | tree.Attribute() as made,):
            return facts.facade(made) in _CONTAINERS
    return False


def _makes_constant(facts: Facts, node: tree.Expr) -> bool:
    """Whether an expression has no names but those of types, so that it makes equal values whenever it is evaluated."""
    match node:
        case tree.Constant() | tree.Strings():
            return not isinstance(node, tree.Strings) or node.constant is not None
        case tree.UnaryOp(operand=operand):
            return _makes_constant(facts, operand)
        case tree.BinOp(left=left, right=right):
            return _makes_constant(facts, left) and _makes_constant(facts, right)
        case tree.List(elts=parts) | tree.Tuple(elts=parts) | tree.Set(elts=parts):
            return all(_makes_constant(facts, part) for part in parts)
        case tree.Dict(keys=keys, values=values):
            return all(part is not None and _makes_constant(facts, part) for part in (*keys, *values))
        case tree.Call(func=tree.Name(id=name), args=args, keywords=()) if name in _CONSTANT_TYPES:
            return all(_makes_constant(facts, argument) for argument in args)
        case tree.Call(func=func, args=args, keywords=()):
            module, name = facts.facade(func) or ("", "")
            if (module, name) == ("collections", "defaultdict"):
                return len(args) == 1 and _makes_defaults(facts, node)
            return (module, name) in _CONTAINERS and not args
    entry = facts.entry(node)
    return entry is not None and entry.kind == "constant"

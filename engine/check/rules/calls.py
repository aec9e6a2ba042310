"""Only what is known may be called, with arguments it takes.

Tools against their schemas; helpers against their parameters; built-ins and façades against their tables. `tools`
itself stands nowhere but in front of a call, so the call graph is exact before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, is_typed_dict, tool_name
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.nearest_name import did_you_mean, nearest
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span

#: The agent's own tools: what defines and runs programs can't be called from one.
META_TOOLS = frozenset({"define_tool", "run_tool", "check_tool", "search_tools", "describe_tool", "remove_tool"})


def tools(facts: Facts) -> Iterator[Diagnostic]:
    """Each ``tools.NAME(...)`` against the catalogue."""
    for call, name in facts.tool_calls:
        if facts.tool is not None and name == facts.tool.name:
            yield _self_call(call.func, name)
            continue
        if name in META_TOOLS:
            yield error(
                "meta-tool",
                call.func,
                f"{name!r} is the agent's own; a program can't call it",
                hint="return what the agent is to do it with, and let the agent decide",
            )
            continue
        definition = facts.catalog.get(name)
        if definition is None:
            yield _unknown_tool(facts, call, name)
            continue
        yield from _tool_arguments(call, definition)
    for node in facts.nodes:
        if isinstance(node, tree.Name) and facts.is_tool(node) and facts.function_of(node) is not None:
            yield _self_call(node, node.id)
        if isinstance(node, tree.Name) and node.id == "tools" and not _in_call(facts, node):
            yield error(
                "tools-value",
                node,
                "'tools' stands only in front of a call",
                hint="write tools.NAME(argument=value) where the result is needed",
            )


def _self_call(at: tree.Node, name: str) -> Diagnostic:
    return error(
        "self-call",
        at,
        f"the tool {name!r} calls itself",
        hint=f"tools never recurse; move the body into a helper _{name.lstrip('_')}, which may, and call that",
    )


def _in_call(facts: Facts, node: tree.Name) -> bool:
    below: tree.Node = node
    for above in facts.ancestors(node):
        if isinstance(above, tree.Call):
            return above.func is below and tool_name(above.func) is not None
        if not isinstance(above, tree.Attribute):
            return False
        below = above
    return False


def _unknown_tool(facts: Facts, call: tree.Call, name: str) -> Diagnostic:
    assert isinstance(call.func, tree.Attribute)
    if name in facts.functions:
        return error(
            "unknown-tool",
            call.func,
            f"{name!r} is a helper of this source; call it without tools.",
            hint=f"write {name}(…)",
            fix=replace(call.func, name),
        )
    near = nearest(name, facts.catalog.names())
    return error(
        "unknown-tool",
        call.func,
        f"no tool named {name!r}" + (f"; did you mean {near!r}?" if near else ""),
        hint=None if near else "search for one that does it (`albert search`), or define this one first",
        fix=replace(call.func, f"tools.{near}") if near else None,
    )


def _tool_arguments(call: tree.Call, definition: ToolDefinition) -> Iterator[Diagnostic]:
    names = [p.name for p in definition.parameters]
    given: set[str] = set()
    for i, arg in enumerate(call.args):
        if isinstance(arg, tree.Starred):
            yield error("tool-star", arg, "a tool's arguments can't be unpacked with *", hint="name each argument")
            return
        if i >= len(names):
            yield error(
                "tool-arguments",
                arg,
                f"{definition.name} takes {len(names)} argument{'s' if len(names) != 1 else ''}",
                hint=definition.signature(),
            )
            return
        given.add(names[i])
    for k in call.keywords:
        if k.arg is None:
            yield error("tool-star", k, "a tool's arguments can't be unpacked with **", hint="name each argument")
            return
        if k.arg not in names:
            near = nearest(k.arg, [n for n in names if n not in given])
            at = Span(k.span.line, k.span.column, k.span.line, k.span.column + len(k.arg))
            yield error(
                "tool-arguments",
                at,
                f"{definition.name} has no parameter {k.arg!r}{did_you_mean(k.arg, names)}",
                hint=definition.signature(),
                fix=Fix(f"write {near}", (Edit(at, near),)) if near else None,
            )
            given.add(near or "")
        elif k.arg in given:
            yield error("tool-arguments", k, f"the argument {k.arg!r} is given twice", hint=definition.signature())
        given.add(k.arg)
    missing = [p.name for p in definition.parameters if p.required and p.name not in given]
    if missing:
        yield error(
            "tool-arguments",
            call.func,
            f"{definition.name} needs {' and '.join(repr(m) for m in missing)}",
            hint=definition.signature(),
        )


def others(facts: Facts) -> Iterator[Diagnostic]:
    """Helpers, built-ins, TypedDicts and façades; and that nothing else is called."""
    for node in facts.nodes:
        if not isinstance(node, tree.Call) or tool_name(node.func) is not None:
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
                    f"'{func.id}' stands only as @{func.id}(…) above the tool",
                    hint="to call a tool write tools.NAME(…)",
                )
            elif facts.facade(func) is not None:
                yield from _facade_arguments(facts, node)
            elif facts.fixed(func.id) is None and (func.id in facts.constants or _is_local(facts, func)):
                yield error(
                    "not-callable",
                    func,
                    f"{func.id!r} is a value; only functions named in the source can be called",
                    hint="define a helper: def _name(…): at module level",
                )
        elif isinstance(func, tree.Attribute):
            if facts.facade(func) is not None:
                yield from _facade_arguments(facts, node)
        elif not isinstance(func, tree.Lambda):
            yield error(
                "not-callable",
                func,
                "only names and methods can be called",
                hint="call a function by its name; choose between functions with if",
            )
        if isinstance(func, tree.Lambda):
            yield error("not-callable", func, "a lambda can't be called where it stands", hint="write its body instead")


def _is_local(facts: Facts, name: tree.Name) -> bool:
    function = facts.function_of(name)
    return function is not None and name.id in facts.locals.get(function.name, ())


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
    given = {p.name for p in plain[: len(call.args)]}
    for k in call.keywords:
        assert k.arg is not None
        if k.arg not in names:
            yield error(
                "arguments",
                k,
                f"{helper.name} has no parameter {k.arg!r}{did_you_mean(k.arg, names)}",
                hint=_spell(helper),
            )
        elif k.arg in given:
            yield error("arguments", k, f"the argument {k.arg!r} is given twice", hint=_spell(helper))
        given.add(k.arg)
    missing = [p.name for p in helper.params if p.default is None and p.name not in given]
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
    starred = any(isinstance(a, tree.Starred) for a in call.args)
    for k in call.keywords:
        if "*" in builtin.keywords:
            continue
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
    if starred:
        return
    count = len(call.args) + sum(k.arg in builtin.keywords for k in call.keywords if name not in _KEYWORD_EXTRA)
    if builtin.most is not None and len(call.args) > builtin.most:
        yield error(
            "arguments",
            call.args[builtin.most],
            f"{name} takes at most {_count(builtin.most, 'argument')}",
            hint=f"write {USAGE.get(name, name + '(value)')}",
        )
    elif count < builtin.least:
        yield error(
            "arguments",
            call.func,
            f"{name} needs {_count(builtin.least, 'argument')}",
            hint=f"write {USAGE.get(name, name + '(value)')}",
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _without(call: tree.Call, keyword: tree.Keyword) -> Fix:
    """The fix that leaves out one named argument, with the comma before it."""
    given = [*call.args, *call.keywords]
    place = next(i for i, part in enumerate(given) if part is keyword)
    s = keyword.span
    if place:
        before = given[place - 1].span
        s = Span(before.end_line, before.end_column, s.end_line, s.end_column)
    return Fix(f"leave out {keyword.arg}", (Edit(s, ""),))


#: How a built-in is called that takes more than one value, or none.
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


#: Built-ins whose keywords don't stand for positional arguments.
_KEYWORD_EXTRA = frozenset({"max", "min", "sorted", "print", "zip", "dict"})


def _facade_arguments(facts: Facts, call: tree.Call) -> Iterator[Diagnostic]:
    named = facts.facade(call.func)
    entry = facts.entry(call.func)
    if named is None or entry is None:
        return  # the attribute rule reports names off the table
    spelled = f"{named[0]}.{named[1]}"
    if entry.kind == "constant":
        bare = not call.args and not call.keywords
        end = call.func.span
        parentheses = Span(end.end_line, end.end_column, call.span.end_line, call.span.end_column)
        yield error(
            "not-callable",
            call.func,
            f"{spelled} is a constant",
            hint="leave the parentheses out",
            fix=Fix("leave the parentheses out", (Edit(parentheses, ""),)) if bare else None,
        )
        return
    free = entry.kind == "exception" or named[1] in ("Counter", "OrderedDict", "Template.substitute")
    for k in call.keywords:
        if k.arg is None:
            if not free:
                yield error("arguments", k, f"{spelled} takes no ** arguments", hint="name each argument")
            continue
        if free:
            continue
        if k.arg not in entry.keywords:
            takes = ", ".join(sorted(entry.keywords)) or "no named arguments"
            yield error("arguments", k, f"{spelled} has no argument {k.arg!r} here", hint=f"it takes {takes}")
    if named == ("collections", "defaultdict") and not (
        call.args
        and (
            (
                isinstance(call.args[0], tree.Name)
                and call.args[0].id in ("int", "list", "dict", "set", "str", "float", "bool", "tuple")
            )
            or (isinstance(call.args[0], tree.Constant) and call.args[0].value is None)
        )
    ):
        yield error(
            "arguments",
            call,
            "defaultdict takes a built-in type: int, list, dict, set, str, float, bool or tuple",
            hint="or use d.setdefault(key, value)",
        )

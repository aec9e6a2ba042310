"""Where statements may stand and what they may bind.

Assignment changes names and items, never attributes; ``del`` removes items; ``break`` and ``continue`` belong to a
loop, and nothing leaves a ``finally`` early; handlers name exceptions of the language.
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, is_typed_dict
from albert_tools.engine.check.rule import error, replace, warning
from albert_tools.engine.check.rules.values import TYPES
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.nearest_name import did_you_mean, nearest
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic


def targets(facts: Facts) -> Iterator[Diagnostic]:
    """No attribute is assigned, and only items are deleted."""
    for node in facts.nodes:
        if isinstance(node, tree.Attribute) and id(node) in facts.assigned_attributes:
            yield error(
                "attribute-assignment",
                node,
                f"the attribute {node.attr!r} can't be assigned",
                hint=f'use a dict: value["{node.attr}"] = …',
            )
        elif isinstance(node, tree.Delete):
            for t in node.targets:
                if not isinstance(t, tree.Subscript):
                    yield error(
                        "delete",
                        t,
                        "del removes items only",
                        hint="write del d[key]; a name needs no deleting",
                    )


def places(facts: Facts) -> Iterator[Diagnostic]:
    """Statements that need something around them."""
    for node in facts.nodes:
        match node:
            case tree.Break() | tree.Continue():
                word = type(node).__name__.lower()
                loop = _loop_around(facts, node)
                if loop is None:
                    yield error(
                        "outside-loop",
                        node,
                        f"{word!r} stands outside a loop",
                        hint="leave it out; return leaves a function",
                    )
            case tree.Return():
                if facts.function_of(node) is None:
                    yield error(
                        "module-level", node, "'return' stands outside a function", hint="indent it into the function"
                    )
            case tree.Raise(exc=None):
                if not any(isinstance(a, tree.ExceptHandler) for a in facts.ancestors(node)):
                    yield error(
                        "bare-raise", node, "a bare raise stands only in a handler", hint='raise ToolError("…")'
                    )
            case tree.Raise():
                if node.exc is None or not _unbound(facts, node.exc):
                    yield from _raised(facts, node)
            case tree.ExprStmt(value=tree.Starred()):
                yield error(
                    "starred", node, "a starred expression can't stand here", hint="unpack it into a list: [*xs]"
                )
            case tree.Constant(value=value) if value is ... and id(node) not in facts.annotations:
                yield error("ellipsis", node, "'...' stands only in annotations", hint="write pass, or the code itself")
            case tree.Try():
                for stmt in node.finalbody:
                    for inner in tree.walk(stmt):
                        if isinstance(inner, tree.Return) or (
                            isinstance(inner, tree.Break | tree.Continue) and not _loop_within(facts, inner, stmt)
                        ):
                            word = type(inner).__name__.lower()
                            yield error(
                                "finally-leaves",
                                inner,
                                f"'{word}' in a finally block would swallow errors",
                                hint="put it after the try statement",
                            )


def _loop_around(facts: Facts, node: tree.Node) -> tree.For | None:
    below = node
    for above in facts.ancestors(node):
        if isinstance(above, tree.For) and any(below is s for s in above.body):
            return above
        if isinstance(above, tree.FunctionDef):
            return None
        below = above
    return None


def _loop_within(facts: Facts, node: tree.Node, root: tree.Node) -> bool:
    loop = _loop_around(facts, node)
    return loop is not None and (loop is root or any(a is root for a in facts.ancestors(loop)))


def _unbound(facts: Facts, node: tree.Expr) -> bool:
    """Whether a name here is reported as unknown, or belongs to a class that is refused."""
    named = node.func if isinstance(node, tree.Call) else node
    if isinstance(named, tree.Name) and named.id in facts.typed_dicts:
        return not is_typed_dict(facts.typed_dicts[named.id])
    return facts.unbound_below(named)


def _raised(facts: Facts, node: tree.Raise) -> Iterator[Diagnostic]:
    exc = node.exc
    named = exc.func if isinstance(exc, tree.Call) else exc
    if isinstance(named, tree.Name):
        handled = any(isinstance(a, tree.ExceptHandler) and a.name == named.id for a in facts.ancestors(node))
        if not _is_exception(facts, named) and not (handled and named is exc):
            yield error(
                "raise",
                named,
                "only exceptions can be raised",
                hint='raise ToolError("what went wrong"), or raise ValueError("…")',
            )
    elif named is not None and not _is_exception(facts, named):
        yield error("raise", named, "only exceptions can be raised", hint='raise ToolError("what went wrong")')
    if isinstance(exc, tree.Call) and isinstance(named, tree.Name) and named.id == "ToolError":
        if len(exc.args) > 1 or any(k.arg not in ("code", "retryable") for k in exc.keywords):
            yield error(
                "raise",
                exc,
                "ToolError takes a message, and code= and retryable= by name",
                hint='raise ToolError("the file is empty", code="empty_file")',
            )


def _is_exception(facts: Facts, node: tree.Expr) -> bool:
    if isinstance(node, tree.Name) and (node.id in vocabulary.EXCEPTIONS or node.id == "ToolError"):
        return True
    entry = facts.entry(node)
    return entry is not None and entry.kind == "exception"


def handlers(facts: Facts) -> Iterator[Diagnostic]:
    """Handlers name exceptions of the language; none is bare; none hides behind an earlier one."""
    for node in facts.nodes:
        if not isinstance(node, tree.Try):
            continue
        for i, handler in enumerate(node.handlers):
            if handler.type is None:
                at = handler.span._replace(end_line=handler.span.line, end_column=handler.span.column + 6)
                yield error(
                    "bare-except",
                    at,
                    "a handler names what it catches",
                    hint="write except ToolError: for failed tools, or except Exception: for everything",
                    fix=replace(at, "except Exception"),
                )
                continue
            parts = handler.type.elts if isinstance(handler.type, tree.Tuple) else (handler.type,)
            for part in parts:
                if not _is_exception(facts, part) and not _unbound(facts, part):
                    yield error(
                        "except",
                        part,
                        "only exceptions of the language can be caught",
                        hint="name them: ToolError, KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, Exception, …",
                    )
            if any(isinstance(h.type, tree.Name) and h.type.id == "Exception" for h in node.handlers[:i]):
                yield warning(
                    "unreachable",
                    handler.type,
                    "a handler of Exception above catches this already",
                    hint="put this handler first, or remove it",
                )


def patterns(facts: Facts) -> Iterator[Diagnostic]:
    """`case` takes bare types, and constants of façades; alternatives bind the same names."""
    from albert_tools.engine.check.facts import pattern_bindings
    from albert_tools.engine.check.rules.assignment import irrefutable

    for node in facts.nodes:
        match node:
            case tree.MatchClass():
                if not (isinstance(node.cls, tree.Name) and node.cls.id in TYPES):
                    yield error(
                        "pattern",
                        node,
                        "a class pattern names a built-in type",
                        hint="case str(): case int(): case list(): case dict(): …",
                    )
            case tree.MatchValue(value=tree.Attribute() as value):
                entry = facts.entry(value)
                if entry is None or entry.kind != "constant":
                    yield error(
                        "pattern",
                        node,
                        "a dotted name in a pattern must be a constant of a module",
                        hint="compare in a guard: case x if x == …:",
                    )
            case tree.MatchAs(pattern=None, name=str() as name) if name in facts.constants:
                yield error(
                    "pattern",
                    node,
                    f"{name!r} is captured here, not compared with the constant",
                    hint=f"compare in a guard: case x if x == {name}:",
                )
            case tree.MatchOr():
                names = [frozenset(b.name for b in pattern_bindings(p)) for p in node.patterns]
                if len(set(names)) > 1:
                    yield error(
                        "pattern",
                        node,
                        "the alternatives of a pattern bind different names",
                        hint="write a case for each",
                    )
                for p in node.patterns[:-1]:
                    if irrefutable(p):
                        yield error(
                            "pattern",
                            p,
                            "this alternative matches everything, so the ones after it never can",
                            hint="put it last, or leave the others out",
                        )
            case tree.MatchCase():
                seen = [b.name for b in pattern_bindings(node.pattern)]
                for name in sorted({n for n in seen if seen.count(n) > 1}):
                    if not any(isinstance(p, tree.MatchOr) for p in tree.walk(node.pattern)):
                        yield error(
                            "pattern",
                            node.pattern,
                            f"the pattern binds {name!r} twice",
                            hint="choose two names and compare them in a guard",
                        )
            case tree.MatchSequence():
                stars = [p for p in node.patterns if isinstance(p, tree.MatchStar)]
                if len(stars) > 1:
                    yield error(
                        "pattern",
                        stars[1],
                        "two starred names in one pattern",
                        hint="match the list and search it with for",
                    )
            case tree.Match():
                for case in node.cases[:-1]:
                    constant = isinstance(case.pattern, tree.MatchAs) and case.pattern.name in facts.constants
                    if case.guard is None and irrefutable(case.pattern) and not constant:
                        yield error(
                            "pattern",
                            case.pattern,
                            "this case matches everything, so the ones after it never can",
                            hint="put it last",
                        )


def decorators(facts: Facts) -> Iterator[Diagnostic]:
    """``@tool(...)`` once and ``@example(...)`` any number of times, on the tool, with constants."""
    for function in facts.functions.values():
        tools = 0
        for d in function.decorators:
            func = d.func if isinstance(d, tree.Call) else d
            name = func.id if isinstance(func, tree.Name) else ""
            if name not in ("tool", "example"):
                yield error(
                    "decorator",
                    d,
                    "the decorators are @tool(…) and @example(…)",
                    hint="leave it out, or call the helper itself",
                )
                continue
            if facts.tool is not None and function is not facts.tool:
                yield error("decorator", d, f"@{name} stands above the tool, not above a helper", hint="leave it out")
                continue
            tools += name == "tool"
            if name == "tool" and tools > 1:
                yield error("decorator", d, "@tool stands twice", hint="put all its arguments into one")
            if isinstance(d, tree.Call):
                yield from _decorator(d, name)
                if name == "example":
                    yield from _example(d, function)
            elif name == "example":
                yield error("decorator", d, "@example needs arguments", hint='@example(arguments={"path": "a.txt"})')


_TAKES = {
    "tool": ("timeout",),
    "example": ("arguments", "files", "result", "expect_files", "raises", "stubs"),
}


def _decorator(call: tree.Call, name: str) -> Iterator[Diagnostic]:
    for arg in call.args:
        yield error("decorator", arg, f"@{name} takes named arguments", hint=", ".join(f"{t}=…" for t in _TAKES[name]))
    for k in call.keywords:
        if k.arg not in _TAKES[name]:
            yield error(
                "decorator",
                k,
                f"@{name} has no argument {k.arg!r}{did_you_mean(str(k.arg), _TAKES[name])}",
                hint=", ".join(f"{t}=…" for t in _TAKES[name]),
            )
        elif not literal(k.value):
            yield error("decorator", k.value, f"@{name} takes constants only", hint="write the value out")
        elif name == "tool" and not (
            isinstance(k.value, tree.Constant)
            and isinstance(k.value.value, int | float)
            and not isinstance(k.value.value, bool)
            and 0 < k.value.value <= MAX_TIMEOUT
        ):
            yield error(
                "decorator",
                k.value,
                f"timeout is a number of seconds, above 0 and at most {MAX_TIMEOUT}",
                hint="@tool(timeout=60)",
            )


def _example(call: tree.Call, tool: tree.FunctionDef) -> Iterator[Diagnostic]:
    """What an example gives must be of the shape that running it takes."""
    for k in call.keywords:
        if not literal(k.value):
            continue  # reported
        if k.arg == "raises":
            if not isinstance(k.value, tree.Strings):
                yield error("decorator", k.value, "raises takes an error's code", hint='raises="not_found"')
        elif k.arg in ("arguments", "files", "expect_files", "stubs"):
            keys = k.value.keys if isinstance(k.value, tree.Dict) else (None,)
            values = k.value.values if isinstance(k.value, tree.Dict) else ()
            texts = k.arg in ("arguments", "stubs") or all(isinstance(v, tree.Strings) for v in values)
            if not texts or not all(isinstance(key, tree.Strings) for key in keys):
                file = '{"a.txt": "text"}'
                shown = {"arguments": '{"path": "a.txt"}', "stubs": '{"http_request": {"status": 200}}'}
                yield error(
                    "decorator",
                    k.value,
                    f"{k.arg} takes an object with names as keys",
                    hint=f"{k.arg}={shown.get(k.arg, file)}",
                )
            elif k.arg == "arguments":
                yield from _example_arguments(k.value, keys, tool)


def _example_arguments(
    at: tree.Expr, keys: tuple[tree.Expr | None, ...], tool: tree.FunctionDef
) -> Iterator[Diagnostic]:
    names = [p.name for p in tool.params]
    given = [str(key.constant) for key in keys if isinstance(key, tree.Strings)]
    for key in keys:
        if isinstance(key, tree.Strings) and key.constant not in names:
            near = nearest(str(key.constant), names)
            yield error(
                "decorator",
                key,
                f"{tool.name} has no parameter {key.constant!r}" + (f"; did you mean {near!r}?" if near else ""),
                hint=f"the parameters are {', '.join(names) or 'none'}",
                fix=replace(key, f'"{near}"') if near and near not in given else None,
            )
            given.append(near or "")
    missing = [p.name for p in tool.params if p.default is None and p.name not in given]
    if missing:
        yield error(
            "decorator",
            at,
            f"{tool.name} needs {' and '.join(repr(m) for m in missing)}",
            hint="an example gives every argument that has no default",
        )


#: Seconds that `@tool(timeout=…)` may ask for.
MAX_TIMEOUT = 3600


def literal(node: tree.Expr) -> bool:
    """Whether an expression is JSON written out."""
    match node:
        case tree.Constant():
            return node.value is not ...
        case tree.Strings():
            return isinstance(node.constant, str)
        case tree.UnaryOp(op="-", operand=tree.Constant()):
            return True
        case tree.List() | tree.Tuple():
            return all(literal(e) for e in node.elts)
        case tree.Dict():
            return all(k is not None and literal(k) for k in node.keys) and all(literal(v) for v in node.values)
    return False

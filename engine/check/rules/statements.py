"""Where statements may stand and what they may bind.

Assignment changes names and items, never attributes; ``del`` removes items; ``break`` and ``continue`` belong to a
loop, and nothing leaves a ``finally`` early; handlers name exceptions of the language.
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.check.rules.names import OUTSIDE
from albert_tools.engine.check.rules.values import TYPES
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic


def targets(facts: Facts) -> Iterator[Diagnostic]:
    """No attribute is assigned, and only items are deleted."""
    for node in facts.nodes:
        found: tuple[tree.Expr, ...] = ()
        match node:
            case tree.Assign():
                found = node.targets
            case tree.AugAssign() | tree.For() | tree.Comprehension():
                found = (node.target,)
            case tree.Delete():
                for t in node.targets:
                    if not isinstance(t, tree.Subscript):
                        yield error(
                            "delete",
                            t,
                            "del removes items only",
                            hint="write del d[key]; a name needs no deleting",
                        )
        for target in found:
            for part in tree.walk(target):
                if isinstance(part, tree.Attribute) and _is_target(facts, part, target):
                    yield error(
                        "attribute-assignment",
                        part,
                        f"the attribute {part.attr!r} can't be assigned",
                        hint=f'use a dict: value["{part.attr}"] = …',
                    )


def _is_target(facts: Facts, node: tree.Node, root: tree.Node) -> bool:
    """Whether `node` is bound itself, not read on the way to what is (``a.b[0] = 1`` reads ``a.b``)."""
    while node is not root:
        above = facts.parent(node)
        if not isinstance(above, tree.Tuple | tree.List | tree.Starred):
            return False
        node = above
    return True


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
                yield from _raised(facts, node)
            case tree.ExprStmt(value=tree.Starred()):
                yield error("starred", node, "a starred expression can't stand here")
            case tree.Constant(value=value) if value is ... and not _in_annotation(facts, node):
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


def _in_annotation(facts: Facts, node: tree.Node) -> bool:
    from albert_tools.engine.check.rules.values import annotation_nodes

    return id(node) in annotation_nodes(facts)


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


def _raised(facts: Facts, node: tree.Raise) -> Iterator[Diagnostic]:
    exc = node.exc
    named = exc.func if isinstance(exc, tree.Call) else exc
    if isinstance(named, tree.Name):
        handled = any(isinstance(a, tree.ExceptHandler) and a.name == named.id for a in facts.ancestors(node))
        if _is_exception(facts, named) or (handled and named is exc) or named.id in OUTSIDE:
            pass
        else:
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
                if not _is_exception(facts, part) and not (isinstance(part, tree.Name) and part.id in OUTSIDE):
                    yield error(
                        "except",
                        part,
                        "only exceptions of the language can be caught",
                        hint="name them in the handler: ToolError, KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, Exception, …",
                    )
            first = node.handlers[0]
            if i and isinstance(first.type, tree.Name) and first.type.id == "Exception":
                from albert_tools.engine.check.rule import warning

                yield warning("unreachable", handler.type, "the handler of Exception above catches this already")


def patterns(facts: Facts) -> Iterator[Diagnostic]:
    """`case` takes bare types, and constants of façades; alternatives bind the same names."""
    from albert_tools.engine.check.facts import pattern_bindings
    from albert_tools.engine.check.rules.assigned import irrefutable

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
                    yield error("pattern", node, "a dotted name in a pattern must be a constant of a façade")
            case tree.MatchOr():
                names = [frozenset(b.name for b in pattern_bindings(p)) for p in node.patterns]
                if len(set(names)) > 1:
                    yield error("pattern", node, "the alternatives of a pattern bind different names")
                for p in node.patterns[:-1]:
                    if irrefutable(p):
                        yield error("pattern", p, "this alternative matches everything, so the ones after it never can")
            case tree.MatchCase():
                seen = [b.name for b in pattern_bindings(node.pattern)]
                for name in sorted({n for n in seen if seen.count(n) > 1}):
                    if not any(isinstance(p, tree.MatchOr) for p in tree.walk(node.pattern)):
                        yield error("pattern", node.pattern, f"the pattern binds {name!r} twice")
            case tree.MatchSequence():
                stars = [p for p in node.patterns if isinstance(p, tree.MatchStar)]
                if len(stars) > 1:
                    yield error("pattern", stars[1], "two starred names in one pattern")
            case tree.Match():
                for case in node.cases[:-1]:
                    if case.guard is None and irrefutable(case.pattern):
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
                yield error("decorator", d, f"@{name} stands above the tool, not above a helper")
                continue
            tools += name == "tool"
            if tools > 1:
                yield error("decorator", d, "@tool stands twice")
            if isinstance(d, tree.Call):
                yield from _decorator(d, name)
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
            from albert_tools.engine.model.naming import did_you_mean

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
            yield error("decorator", k.value, f"timeout is a number of seconds, above 0 and at most {MAX_TIMEOUT}")


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

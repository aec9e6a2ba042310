"""There are two decorators: ``@tool(timeout=60)`` once and ``@example(...)`` any number of times, before the tool.

Their arguments are constants, and an example's arguments must match the tool's parameters. Decorators are never evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.annotation_schemas import is_literal
from albert_tools.engine.check.facts import Facts, is_typed_dict
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.check.scopes import spelled
from albert_tools.engine.model.bounds import MAX_EXAMPLES, MAX_TIMEOUT_SECONDS
from albert_tools.engine.model.nearest_name import did_you_mean, nearest
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode

CODES = (
    FindingCode(
        "decorator",
        "A decorator, or one of its arguments, is not allowed here.",
        "Decorators describe the tool; they are read from the source and never run.",
        example='''@cache
def work(path: str) -> str:
    """Return the path."""
    return path
''',
        rewrite='''@tool(timeout=60)
@example(arguments={"path": "a.txt"}, result="a.txt")
def work(path: str) -> str:
    """Return the path."""
    return path
''',
    ),
)


_TAKES = {
    "tool": ("timeout",),
    "example": ("arguments", "files", "result", "expect_files", "raises", "stubs"),
}


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each decorator and its arguments."""
    for node in facts.every(tree.ClassDef):
        if is_typed_dict(node):
            for d in node.decorators:
                yield error("decorator", d, "a TypedDict takes no decorator", hint="leave it out")
    for function in facts.functions.values():
        tools = examples = 0
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
                yield error("decorator", d, f"@{name} belongs to the tool, not to a helper", hint="leave it out")
                continue
            tools += name == "tool"
            if name == "tool" and tools > 1:
                yield error("decorator", d, "@tool is written twice", hint="put all its arguments into one")
            examples += name == "example"
            if name == "example" and examples == MAX_EXAMPLES + 1:
                yield error("decorator", d, f"a tool has at most {MAX_EXAMPLES} examples", hint="leave some out")
            if isinstance(d, tree.Call):
                yield from _decorator(d, name)
                if name == "example":
                    yield from _example(d, function)
            elif name == "example":
                yield error("decorator", d, "@example needs arguments", hint='@example(arguments={"path": "a.txt"})')


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
        elif not is_literal(k.value):
            yield error("decorator", k.value, f"@{name} takes constants only", hint="write the value out")
        elif name == "tool" and not (
            isinstance(k.value, tree.Constant)
            and isinstance(k.value.value, int | float)
            and not isinstance(k.value.value, bool)
            and 0 < k.value.value <= MAX_TIMEOUT_SECONDS
        ):
            yield error(
                "decorator",
                k.value,
                f"timeout is a number of seconds, above 0 and at most {MAX_TIMEOUT_SECONDS}",
                hint="@tool(timeout=60)",
            )


def _example(call: tree.Call, tool: tree.FunctionDef) -> Iterator[Diagnostic]:
    """Check that the arguments of an example have the form that is needed to run it."""
    for k in call.keywords:
        if not is_literal(k.value):
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
    names = [spelled(p.name) for p in tool.params]
    named = [str(key.constant) for key in keys if isinstance(key, tree.Strings)]
    for key in keys:
        if isinstance(key, tree.Strings) and key.constant not in names:
            near = nearest(str(key.constant), names)
            yield error(
                "decorator",
                key,
                f"{tool.name} has no parameter {key.constant!r}" + (f"; did you mean {near!r}?" if near else ""),
                hint=f"the parameters are {', '.join(names) or 'none'}",
                fix=replace(key, f'"{near}"') if near and near not in named else None,
            )
            named.append(near or "")
    missing = [n for n, p in zip(names, tool.params, strict=True) if p.default is None and n not in named]
    if missing:
        yield error(
            "decorator",
            at,
            f"{tool.name} needs {' and '.join(repr(m) for m in missing)}",
            hint="an example gives every argument that has no default",
        )

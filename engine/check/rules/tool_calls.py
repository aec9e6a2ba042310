"""A tool is called as ``tools.NAME(...)``. It must exist and accept the arguments.

`tools` may only be used in a call, so the call graph is exact before anything runs. Helpers may be recursive, up to a maximum
depth. Tools are never recursive."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, text_of, tool_name
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.check.scopes import spelled
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.nearest_name import did_you_mean, nearest
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "unknown-tool",
        "A call names a tool that does not exist.",
        "Every tool that a program calls is known, and pinned to its version, before the program runs.",
        example=in_tool("return tools.read_flie(path=path)"),
        rewrite=in_tool("return tools.read_file(path=path)"),
    ),
    FindingCode(
        "tool-arguments",
        "A tool is called with arguments that it does not take, or without one that it needs.",
        "The call would fail whenever it is reached.",
        example=in_tool("return tools.read_file(file=path)"),
        rewrite=in_tool("return tools.read_file(path=path)"),
    ),
    FindingCode(
        "tool-star",
        "The arguments of a tool are unpacked with * or **.",
        "A reviewer must see which arguments a call gives.",
        example=in_tool('given = {"path": path}\nreturn tools.read_file(**given)'),
        rewrite=in_tool("return tools.read_file(path=path)"),
    ),
    FindingCode(
        "tools-value",
        "`tools` is used without a call.",
        "If tools could be stored and passed on, nobody could say which tools a program calls.",
        example=in_tool("read = tools.read_file\nreturn path"),
        rewrite=in_tool("return tools.read_file(path=path)"),
    ),
    FindingCode(
        "self-call",
        "A tool calls itself through `tools`.",
        "Saved tools never call each other in a circle. As a function of its source, the tool may call itself.",
        example=in_tool("return tools.work(path=path[1:]) if path else 0"),
        rewrite=in_tool("return work(path[1:]) if path else 0"),
    ),
    FindingCode(
        "batch-tool",
        "The tool of a batch is not written as a text.",
        "Every tool that a program calls is known, and pinned to its version, before the program runs; also those of a batch.",
        example=in_tool('return tools.start_batch(tool=path, items=[{"path": path}])["batch"]'),
        rewrite=in_tool('return tools.start_batch(tool="read_file", items=[{"path": path}])["batch"]'),
    ),
    FindingCode(
        "meta-tool",
        "A program calls a tool that defines, finds or removes tools.",
        "These tools belong to the agent: a program that defined tools would be run before anyone could review them.",
        example=in_tool("return tools.search_tools(query=path)"),
        rewrite=in_tool("return path"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each ``tools.NAME(...)`` against the catalogue, and each other use of `tools`."""
    for node, name in facts.callees:
        refused = _refused(facts, node, name)
        if refused is not None:
            yield refused
    for call, name in facts.tool_calls:
        definition = facts.catalog.get(name)
        if definition is not None and _refused(facts, call.func, name) is None:
            yield from _tool_arguments(call, definition)
    for node in facts.batch_tools:
        if text_of(node) is None:
            yield error(
                "batch-tool",
                node,
                "the tool of a batch must be written as a text, so that a review shows it",
                hint='write the name of the tool: tool="NAME"; for several tools, write one call for each',
            )
    for node in facts.every(tree.Name):
        if node.id == "tools" and not _in_call(facts, node):
            yield error(
                "tools-value",
                node,
                "'tools' is used without a call",
                hint="write tools.NAME(argument=value) where the result is needed",
            )


def _refused(facts: Facts, node: tree.Expr, name: str) -> Diagnostic | None:
    """Why a program can't call the tool that is named at a node; None if it can."""
    if facts.tool is not None and name == spelled(facts.tool.name):
        return _self_call(node, name)
    if name in RESERVED:
        return error(
            "meta-tool",
            node,
            f"{name!r} is for the agent; a program can't call it",
            hint="return the data, and let the agent make the call",
        )
    return _unknown_tool(facts, node, name) if facts.catalog.get(name) is None else None


def _self_call(at: tree.Node, name: str) -> Diagnostic:
    if isinstance(at, tree.Strings):
        return error("self-call", at, f"the tool {name!r} makes a batch of itself", hint="name another tool")
    return error(
        "self-call",
        at,
        f"the tool {name!r} calls itself through tools",
        hint=f"call the function itself: {name}(…)",
        fix=replace(at, name),
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


def _unknown_tool(facts: Facts, node: tree.Expr, name: str) -> Diagnostic:
    is_text = isinstance(node, tree.Strings)
    if name in facts.functions and not is_text:
        return error(
            "unknown-tool",
            node,
            f"{name!r} is a helper of this source; call it without tools.",
            hint=f"write {name}(…)",
            fix=replace(node, name),
        )
    near = nearest(name, facts.catalog.names())
    return error(
        "unknown-tool",
        node,
        f"no tool named {name!r}" + (f"; did you mean {near!r}?" if near else ""),
        hint=None if near else "search for one that does it (`albert search`), or define this one first",
        fix=replace(node, f'"{near}"' if is_text else f"tools.{near}") if near else None,
    )


def _tool_arguments(call: tree.Call, definition: ToolDefinition) -> Iterator[Diagnostic]:
    names = [p.name for p in definition.parameters]
    passed: set[str] = set()
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
        passed.add(names[i])
    for k in call.keywords:
        if k.arg is None:
            yield error("tool-star", k, "a tool's arguments can't be unpacked with **", hint="name each argument")
            return
        if k.arg not in names:
            near = nearest(k.arg, [n for n in names if n not in passed])
            at = Span(k.span.line, k.span.column, k.span.line, k.span.column + len(k.arg))
            yield error(
                "tool-arguments",
                at,
                f"{definition.name} has no parameter {k.arg!r}{did_you_mean(k.arg, names)}",
                hint=definition.signature(),
                fix=Fix(f"write {near}", (Edit(at, near),)) if near else None,
            )
            passed.add(near or "")
        elif k.arg in passed:
            yield error("tool-arguments", k, f"the argument {k.arg!r} is given twice", hint=definition.signature())
        passed.add(k.arg)
    missing = [p.name for p in definition.parameters if p.required and p.name not in passed]
    if missing:
        yield error(
            "tool-arguments",
            call.func,
            f"{definition.name} needs {' and '.join(repr(m) for m in missing)}",
            hint=definition.signature(),
        )

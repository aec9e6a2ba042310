"""A source holds one tool: imports, constants, TypedDicts, private helpers, and exactly one public function.

Why: a reviewer approves *a* tool, and its name, description and schema are read off that one function.

```python
def _rows(text: str) -> list:
    return text.splitlines()

def count_rows(path: str) -> int:
    \"\"\"Count the rows of a file.\"\"\"
    return len(_rows(tools.read_file(path=path)))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error, replace, warning
from albert_tools.engine.model.primitive import NAME
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Module level, nesting, and the number of tools."""
    yield from _module_level(facts)
    yield from _nested(facts)
    yield from _one_tool(facts)
    yield from _duplicates(facts)


def _module_level(facts: Facts) -> Iterator[Diagnostic]:
    for i, stmt in enumerate(facts.module.body):
        match stmt:
            case tree.FunctionDef() | tree.ClassDef() | tree.Import() | tree.ImportFrom():
                pass
            case tree.Return() | tree.Break() | tree.Continue():
                pass  # reported as out of place
            case tree.ExprStmt(value=tree.Strings()) if i == 0:
                pass
            case tree.Assign() | tree.AnnAssign():
                if isinstance(stmt, tree.AnnAssign) and stmt.value is None:
                    yield error("module-level", stmt, "a constant needs a value", hint=f"write {stmt.target.id} = …")
                elif isinstance(stmt, tree.Assign) and not all(
                    isinstance(t, tree.Name | tree.Tuple) for t in stmt.targets
                ):
                    yield error(
                        "module-level",
                        stmt,
                        "a module-level assignment binds plain names",
                        hint="build the value in one expression",
                    )
            case tree.If() if any(isinstance(n, tree.Name) and n.id == "__name__" for n in tree.walk(stmt.test)):
                yield error(
                    "module-level",
                    stmt,
                    "a source is not a script",
                    hint="leave this out; the tool is called by its name",
                    fix=replace(stmt, "", "leave it out"),
                )
            case _:
                yield error(
                    "module-level",
                    stmt,
                    "only imports, constants and functions may stand at module level",
                    hint="move this into the function",
                )
    for stmt in facts.module.body:
        if isinstance(stmt, tree.Assign | tree.AnnAssign):
            for node in tree.walk(stmt):
                if isinstance(node, tree.Name) and (
                    node.id in ("tools", "parallel", "print") or node.id in facts.functions
                ):
                    yield error(
                        "module-level",
                        node,
                        f"a constant can't use {node.id!r}: constants are computed without any effect",
                        hint="compute it inside the function",
                    )


def _nested(facts: Facts) -> Iterator[Diagnostic]:
    for node in facts.nodes:
        if facts.parent(node) is facts.module:
            continue
        if isinstance(node, tree.FunctionDef):
            if isinstance(facts.parent(node), tree.ClassDef):
                continue  # reported as what a TypedDict can't hold
            yield error(
                "nested-function",
                node.name_span,
                f"the function {node.name!r} is defined inside another block",
                hint=f"define it at module level as def _{node.name.lstrip('_')}(…) and pass what it needs as parameters",
            )
        elif isinstance(node, tree.ClassDef):
            yield error("nested-class", node.name_span, "a TypedDict stands at module level", hint="move it there")
        elif isinstance(node, tree.Import | tree.ImportFrom):
            yield error(
                "import-place",
                node,
                "imports stand at module level",
                hint="move it to the top of the source",
                fix=_hoist(facts, node),
            )


def _hoist(facts: Facts, node: tree.Import | tree.ImportFrom) -> Fix | None:
    """The fix that moves an import that has its lines for itself, and isn't all of its block, to the top."""
    lines = facts.module.source.split("\n")
    text = "\n".join(lines[node.span.line - 1 : node.span.end_line])
    above = facts.parent(node)
    blocks: list[tuple[tree.Stmt, ...]] = [getattr(above, name, ()) for name in ("body", "orelse", "finalbody")]
    alone = any(len(block) == 1 and block[0] is node for block in blocks)
    if alone or text.strip() != text[node.span.column - 1 :][: len(text.strip())] or ";" in text or "#" in text:
        return None
    top = Span(import_line(facts), 1, import_line(facts), 1)
    whole = Span(node.span.line, 1, node.span.end_line + 1, 1)
    return Fix("move it to the top", (Edit(top, text.strip() + "\n"), Edit(whole, "")))


def import_line(facts: Facts) -> int:
    """The line before which an import can be put: below the module's docstring, above everything else."""
    first = facts.module.body[0]
    if isinstance(first, tree.ExprStmt) and len(facts.module.body) > 1:
        first = facts.module.body[1]
    decorators = first.decorators if isinstance(first, tree.FunctionDef | tree.ClassDef) else ()
    return decorators[0].span.line if decorators else first.span.line


def _one_tool(facts: Facts) -> Iterator[Diagnostic]:
    public = [f for f in facts.functions.values() if not f.name.startswith("_")]
    if not public:
        at = next(iter(facts.functions.values()), None)
        yield error(
            "no-tool",
            at.name_span if at else Span(1, 1, 1, 1),
            "there is no public function; it would be the tool",
            hint="give one function a name without a leading _"
            if at
            else "write def name(path: str) -> str: with a docstring, and call tools as tools.NAME(…)",
        )
    for extra in public[1:]:
        edits = tuple(
            Edit(node.name_span if isinstance(node, tree.FunctionDef) else node.span, "_" + extra.name)
            for node in facts.nodes
            if (isinstance(node, tree.FunctionDef) and node.name == extra.name)
            or (isinstance(node, tree.Name) and node.id == extra.name)
        )
        yield error(
            "second-tool",
            extra.name_span,
            f"{extra.name!r} is a second public function; {public[0].name!r} is the tool already",
            hint=f"a source holds one tool: name the helper _{extra.name}, or define it as a tool in a source of its own",
            fix=Fix(f"rename it to _{extra.name}", edits),
        )
    if public and not NAME.match(public[0].name):
        yield error("tool-name", public[0].name_span, "a tool's name has at most 128 characters")


def _duplicates(facts: Facts) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for stmt in facts.module.body:
        if not isinstance(stmt, tree.FunctionDef | tree.ClassDef):
            continue
        if stmt.name in seen:
            yield error("duplicate", stmt.name_span, f"{stmt.name!r} is defined twice", hint="give it another name")
        seen.add(stmt.name)
    for function in facts.functions.values():
        names: set[str] = set()
        for p in function.params:
            if p.name in names:
                yield error("duplicate", p, f"the parameter {p.name!r} stands twice", hint="give one another name")
            names.add(p.name)


def documented(facts: Facts) -> Iterator[Diagnostic]:
    """The tool has a docstring, and annotations on every parameter: they become its description and schema."""
    tool = facts.tool
    if tool is None:
        return
    text = docstring(tool)
    if text is None or not text.strip():
        first = tool.body[0].span
        indent = " " * (first.column - 1)
        on_own_line = first.line > tool.span.line
        yield error(
            "no-docstring",
            tool.name_span,
            f"the tool {tool.name!r} has no docstring",
            hint='its first line is what callers read: """Count the words of a file."""',
            fix=Fix(
                "add a docstring",
                (
                    Edit(
                        Span(first.line, first.column, first.line, first.column),
                        f'"""{tool.name.replace("_", " ").capitalize()}."""' + (f"\n{indent}" if on_own_line else "; "),
                    ),
                ),
            )
            if text is None
            else None,
        )
    for p in tool.params:
        if p.annotation is None:
            end = Span(p.span.line, p.span.column + len(p.name), p.span.line, p.span.column + len(p.name))
            kind = _kind_of_default(p.default)
            usual = "str" if kind == "Any" else kind
            yield error(
                "no-annotation",
                p,
                f"the parameter {p.name!r} has no annotation",
                hint=f"annotations are the tool's schema: write {p.name}: {usual}, or Any when it can be anything",
                fix=Fix(f"annotate {p.name} as {kind}", (Edit(end, f": {kind}"),)),
            )
    described = _argument_names(text or "")
    for name in described:
        if name not in {p.name for p in tool.params}:
            yield warning(
                "docstring-argument",
                tool.name_span,
                f"the docstring describes {name!r}, which is not a parameter",
                hint=f"the parameters are {', '.join(p.name for p in tool.params) or 'none'}",
            )


def _argument_names(text: str) -> list[str]:
    import inspect

    from albert_tools.engine.model.primitive import read_docstring

    return list(read_docstring(inspect.cleandoc(text))[1])


def docstring(function: tree.FunctionDef) -> str | None:
    """The docstring as it stands, or None."""
    match function.body[0]:
        case tree.ExprStmt(value=tree.Strings() as strings) if isinstance(strings.constant, str):
            return strings.constant
    return None


def defaults(facts: Facts) -> Iterator[Diagnostic]:
    """Defaults are immutable literals: evaluated once, they must not carry anything from call to call."""
    for node in facts.nodes:
        if isinstance(node, tree.Param) and node.default is not None and not immutable(node.default):
            yield error(
                "mutable-default",
                node.default,
                f"the default of {node.name!r} must be a literal: a number, a string, True, False, None or a tuple of these",
                hint=f"write {node.name}=None and set it in the body: if {node.name} is None: …",
            )


def immutable(node: tree.Expr) -> bool:
    """Whether an expression is a literal that can't change."""
    match node:
        case tree.Constant():
            return node.value is not ...
        case tree.Strings():
            return node.constant is not None
        case tree.UnaryOp(op="-" | "+", operand=tree.Constant()):
            return True
        case tree.Tuple():
            return all(immutable(e) for e in node.elts)
    return False


def _kind_of_default(default: tree.Expr | None) -> str:
    """The annotation that a default speaks for; Any where it says nothing."""
    match default:
        case tree.Constant(value=bool() | int() | float() as value):
            return type(value).__name__
        case tree.Strings() if isinstance(default.constant, str):
            return "str"
        case tree.List():
            return "list"
        case tree.Dict():
            return "dict"
    return "Any"

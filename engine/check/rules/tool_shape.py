"""A source contains one tool: imports, constants, TypedDicts, private helpers, and exactly one public function.

A reviewer approves *one* tool. Its name, description and schema are taken from that function.

```python
def _rows(text: str) -> list:
    return text.splitlines()

def count_rows(path: str) -> int:
    \"\"\"Count the rows of a file.\"\"\"
    return len(_rows(tools.read_file(path=path)))
```"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.check.scopes import spelled
from albert_tools.engine.model.primitive import NAME
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "module-level",
        "A statement is at module level that is no import, constant, TypedDict or function; or a constant has an effect.",
        "A source is not a script: nothing runs until the tool is called.",
        example='print("loaded")\n\n' + in_tool("return path.upper()"),
        rewrite='GREETING = "loaded"\n\n' + in_tool("print(GREETING)\nreturn path.upper()"),
    ),
    FindingCode(
        "no-tool",
        "The source has no public function.",
        "The public function is the tool.",
        example="def _upper(text: str) -> str:\n    return text.upper()\n",
        rewrite='def upper(text: str) -> str:\n    """Return the text in capitals."""\n    return text.upper()\n',
    ),
    FindingCode(
        "second-tool",
        "The source has a second public function.",
        "A reviewer approves one tool at a time.",
        example="def upper(text: str) -> str:\n    return text.upper()\n\n\n" + in_tool("return upper(path)"),
        rewrite="def _upper(text: str) -> str:\n    return text.upper()\n\n\n" + in_tool("return _upper(path)"),
    ),
    FindingCode(
        "tool-name",
        "The name of the tool is too long.",
        "Models and other protocols accept names of at most 128 characters.",
        example=in_tool("return path").replace("work", "read" * 33),
        rewrite=in_tool("return path"),
    ),
    FindingCode(
        "duplicate",
        "A function, a TypedDict or a parameter is defined twice.",
        "The second definition would replace the first without a word.",
        example="def _f() -> int:\n    return 1\n\n\ndef _f() -> int:\n    return 2\n\n\n" + in_tool("return _f()"),
        rewrite="def _f() -> int:\n    return 1\n\n\ndef _g() -> int:\n    return 2\n\n\n"
        + in_tool("return _f() + _g()"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check the module level and the number of tools."""
    yield from _module_level(facts)
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
            case tree.AnnAssign(value=None):
                yield error("module-level", stmt, "a constant needs a value", hint=f"write {stmt.target.id} = …")
            case tree.AnnAssign():
                pass
            case tree.Assign():
                if not all(isinstance(t, tree.Name | tree.Tuple) for t in stmt.targets):
                    yield error(
                        "module-level",
                        stmt,
                        "a module-level assignment takes plain names only",
                        hint="build the value in one expression",
                    )
            case tree.If() if any(isinstance(n, tree.Name) and n.id == "__name__" for n in tree.walk(stmt.test)):
                yield error(
                    "module-level",
                    stmt,
                    "a source is not a script",
                    hint="leave this out; the tool is called by its name",
                    fix=replace(stmt, "", "leave it out") if _never_true(stmt) else None,
                )
            case _:
                yield error(
                    "module-level",
                    stmt,
                    "only imports, constants, TypedDicts and functions are allowed at module level",
                    hint="move this into the function",
                )
    for stmt in facts.module.body:
        if isinstance(stmt, tree.Assign | tree.AnnAssign):
            for node in tree.walk(stmt):
                if not isinstance(node, tree.Name):
                    continue
                if node.id in facts.functions and facts.is_in_table(node):
                    if facts.functions[node.id].span > stmt.span:
                        yield error(
                            "module-level",
                            node,
                            f"{node.id!r} is defined further down",
                            hint="move its def above this line",
                        )
                elif node.id in ("tools", "parallel", "print") or node.id in facts.functions:
                    yield error(
                        "module-level",
                        node,
                        f"a constant can't use {node.id!r}: constants are computed without any effect",
                        hint="compute it inside the function",
                    )


def _never_true(stmt: tree.If) -> bool:
    """Whether this is ``if __name__ == "__main__":`` without an ``else``."""
    match stmt.test:
        case tree.Compare(left=tree.Name(id="__name__"), ops=("==",), comparators=(tree.Strings(constant="__main__"),)):
            return not stmt.orelse
    return False


def _one_tool(facts: Facts) -> Iterator[Diagnostic]:
    public = facts.public
    if not public:
        at = next(iter(facts.functions.values()), None)
        yield error(
            "no-tool",
            at.name_span if at else Span(1, 1, 1, 1),
            "the source has no public function, so it defines no tool",
            hint="give one function a name without a leading _"
            if at
            else "write def name(path: str) -> str: with a docstring, and call tools as tools.NAME(…)",
        )
    places: dict[str, list[Span]] = {f.name: [] for f in public[1:]}
    for function in facts.every(tree.FunctionDef):
        if function.name in places:
            places[function.name].append(function.name_span)
    for name in facts.every(tree.Name):
        if name.id in places:
            places[name.id].append(name.span)
    for extra in public[1:]:
        edits = tuple(Edit(span, "_" + extra.name) for span in sorted(places[extra.name]))
        yield error(
            "second-tool",
            extra.name_span,
            f"{extra.name!r} is a second public function; {public[0].name!r} is the tool already",
            hint=f"a source holds one tool: name the helper _{extra.name}, or define it as a tool in a source of its own",
            fix=Fix(f"rename it to _{extra.name}", edits),
        )
    if public and not NAME.match(spelled(public[0].name)):
        yield error(
            "tool-name", public[0].name_span, "a tool's name has at most 128 characters", hint="choose a shorter name"
        )


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
                yield error("duplicate", p, f"the parameter {p.name!r} is defined twice", hint="give one another name")
            names.add(p.name)

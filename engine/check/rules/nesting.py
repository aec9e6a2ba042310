"""Functions, classes and imports are at module level."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "nested-function",
        "A function is defined inside another block.",
        "A nested function captures variables; a helper at module level shows what it takes.",
        example=in_tool("def _short(text: str) -> str:\n    return text[:5]\nreturn path"),
        rewrite="def _short(text: str) -> str:\n    return text[:5]\n\n\n" + in_tool("return _short(path)"),
    ),
    FindingCode(
        "nested-class",
        "A TypedDict is defined inside another block.",
        "Annotations anywhere in the source may name it.",
        example=in_tool("class Row(TypedDict):\n    name: str\nreturn path"),
        rewrite="class Row(TypedDict):\n    name: str\n\n\n" + in_tool("return Row(name=path)"),
    ),
    FindingCode(
        "import-place",
        "An import is inside another block.",
        "A reader sees at the top of the source what it uses.",
        example=in_tool("import json\nreturn json.dumps(path)"),
        rewrite="import json\n\n\n" + in_tool("return json.dumps(path)"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    for node in facts.every(tree.FunctionDef, tree.ClassDef, tree.Import, tree.ImportFrom):
        if facts.parent(node) is facts.module:
            continue
        if isinstance(node, tree.FunctionDef):
            if isinstance(facts.parent(node), tree.ClassDef):
                continue  # reported as a wrong statement of a TypedDict
            yield error(
                "nested-function",
                node.name_span,
                f"the function {node.name!r} is defined inside another block",
                hint=f"define it at module level as def _{node.name.lstrip('_')}(…) and pass what it needs as parameters",
            )
        elif isinstance(node, tree.ClassDef):
            yield error("nested-class", node.name_span, "a TypedDict must be at module level", hint="move it there")
        elif isinstance(node, tree.Import | tree.ImportFrom):
            yield error(
                "import-place",
                node,
                "an import must be at module level",
                hint="move it to the top of the source",
                fix=_hoist(facts, node),
            )


def _hoist(facts: Facts, node: tree.Import | tree.ImportFrom) -> Fix | None:
    """The fix that moves an import to the top. None if other code is on its lines or its block contains nothing else."""
    text = "\n".join(facts.lines[node.span.line - 1 : node.span.end_line])
    above = facts.parent(node)
    blocks: list[tuple[tree.Stmt, ...]] = [getattr(above, name, ()) for name in ("body", "orelse", "finalbody")]
    alone = any(len(block) == 1 and block[0] is node for block in blocks)
    if alone or text.strip() != text[node.span.column - 1 :][: len(text.strip())] or ";" in text or "#" in text:
        return None
    top = Span(facts.import_line, 1, facts.import_line, 1)
    whole = Span(node.span.line, 1, node.span.end_line + 1, 1)
    return Fix("move it to the top", (Edit(top, text.strip() + "\n"), Edit(whole, "")))

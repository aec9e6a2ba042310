"""Operations that fail each time they are reached, because of the types of their operands.

The types come from the schemas of tools, from literals, and from what built-ins and methods return. A value that could have a
suitable type is not reported, and neither is an operation whose exception a handler around it catches. A source with other errors
is not checked: its types would not be certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.types.infer import infer
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "unknown-key",
        "A key is read that the value never has.",
        "Python raises KeyError each time. The keys of a tool's output are known from its schema.",
        example=in_tool('entry = tools.file_info(path=path)\nreturn entry["size"]'),
        rewrite=in_tool('entry = tools.file_info(path=path)\nreturn entry["size_bytes"]'),
    ),
    FindingCode(
        "missing-attribute",
        "A method or an attribute is used that no value of this type has.",
        "Python raises AttributeError each time.",
        example=in_tool('path.append("/")\nreturn path'),
        rewrite=in_tool('path += "/"\nreturn path'),
    ),
    FindingCode(
        "operand-type",
        "An operator, an index, a loop or a key is used with a type that it never works on.",
        "Python raises TypeError each time.",
        example=in_tool('return "characters: " + len(path)'),
        rewrite=in_tool('return f"characters: {len(path)}"'),
    ),
    FindingCode(
        "argument-type",
        "A function, a method or a tool is called with a value of a type that it never takes.",
        "The call fails whenever it is reached.",
        example=in_tool("return len(len(path))"),
        rewrite=in_tool("return len(path)"),
    ),
    FindingCode(
        "result-type",
        "The tool returns a value that never fits the annotation of its result.",
        "Every result is checked against its annotation, so the call fails after its effects have happened.",
        example=in_tool("return len(path)").replace("-> Any", "-> str"),
        rewrite=in_tool("return len(path)").replace("-> Any", "-> int"),
    ),
    FindingCode(
        "not-json",
        "A result or an argument of a tool is no JSON value.",
        "What leaves a program is None, a boolean, a number, text, a list, or a dict with text as keys. Anything else fails.",
        example=in_tool("return set(path)"),
        rewrite=in_tool("return sorted(set(path))"),
    ),
    FindingCode(
        "missing-return",
        "The tool's result has a type, but the tool never returns a value.",
        "Python returns None at the end, which does not fit the annotation, so each call fails.",
        example=in_tool("print(path.upper())").replace("-> Any", "-> str"),
        rewrite=in_tool("return path.upper()").replace("-> Any", "-> str"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check the whole source."""
    yield from infer(facts).found

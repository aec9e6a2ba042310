"""The result of a check besides its diagnostics, and that no text raises an exception. `tests/cases/check` tests the rules."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.check.annotation_schemas import MAX_SCHEMA_NODES
from albert_tools.engine.check.checker import Checked, check, check_or_raise
from albert_tools.engine.check.codes import TYPES
from albert_tools.engine.check.finding_limits import MAX_FINDINGS, MAX_TEXT
from albert_tools.engine.model.definition import ToolParameter
from albert_tools.engine.model.validation import violations
from albert_tools.grammar.source_error import SourceError
from tests.helpers.effort import examples
from tests.helpers.harness import catalog, chunks, errors

WHOLE = '''
import json
from urllib.parse import quote

class Row(TypedDict, total=False):
    name: Required[str]
    tags: list[str]

LIMIT = 10

@tool(timeout=90)
@example(arguments={"path": "a", "size": -1}, files={"a": "x"}, expect_files={"b": "y"}, result=(1, {"k": None}))
@example(arguments={"path": "b"}, raises="not_found", stubs={"summarise": "short"})
def report(
    path: str,
    size: int = 10,
    *,
    rows: list[Row] | None = None,
    mode: Literal["a", "b"] = "a",
    pair: tuple[int, str] = (1, "x"),
    extra: dict[str, float] = None,
) -> Optional[dict]:
    """Write a report.

    More of it.

    Args:
        path: Where it goes,
            under the workspace.
        size (int): How much.
    """
    text = tools.read_file(path=path)
    tools.write_file(path="out", content=text + _short(path))
    tools.write_file(path="out", content=json.dumps(quote(text)))
    return None

def _short(path):
    return tools.summarise(path=path)
'''


@pytest.fixture(scope="module")
def whole() -> Checked:
    return check_or_raise(WHOLE, catalog())


def test_the_definition_comes_from_the_function(whole: Checked) -> None:
    d = whole.definition
    assert (d.name, d.description) == ("report", "Write a report.\n\nMore of it.")
    assert (d.kind, d.timeout, d.depth) == ("composite", 90.0, 2)
    assert d.result == {"type": ["object", "null"]} or d.result == {"anyOf": [{"type": "object"}, {"type": "null"}]}
    assert d.parameters[:2] == (
        ToolParameter("path", {"type": "string"}, "Where it goes, under the workspace."),
        ToolParameter("size", {"type": "integer"}, "How much.", False, 10),
    )
    row = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["name"],
        "additionalProperties": False,
    }
    schemas = {p.name: p.schema for p in d.parameters}
    assert {"type": "array", "items": row} in schemas["rows"]["anyOf"]
    assert schemas["mode"] == {"enum": ["a", "b"]}
    assert schemas["extra"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert schemas["pair"] == {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "minItems": 2,
        "maxItems": 2,
    }
    assert {p.name: p.default for p in d.parameters if not p.required}["pair"] == [1, "x"]


def test_callees_are_pinned_and_effects_collected_through_helpers(whole: Checked) -> None:
    assert [(c.name, c.kind) for c in whole.calls] == [
        ("read_file", "primitive"),
        ("summarise", "composite"),
        ("write_file", "primitive"),
    ]
    versions = {n: d.version for n, d in catalog().definitions.items()}
    assert all(c.version == versions[c.name] for c in whole.calls)
    assert whole.definition.effects == ("read", "write")
    assert whole.imports == ("json", "urllib.parse")


def test_examples_are_read(whole: Checked) -> None:
    first, second = whole.examples
    assert first.arguments == {"path": "a", "size": -1}
    assert (first.files, first.expect_files) == ({"a": "x"}, {"b": "y"})
    assert (first.has_result, first.result, first.raises) == (True, [1, {"k": None}], None)
    assert (second.has_result, second.raises, second.stubs) == (False, "not_found", {"summarise": "short"})
    assert [WHOLE.split("\n")[e.line - 1][:8] for e in whole.examples] == ["@example"] * 2


def test_a_tool_has_at_most_fifty_examples() -> None:
    source = 'def t() -> int:\n    """Count."""\n    return 1\n'
    assert check("@example(arguments={})\n" * 50 + source, catalog()).checked is not None
    (found,) = check("@example(arguments={})\n" * 60 + source, catalog()).diagnostics
    assert (found.message, found.span.line) == ("a tool has at most 50 examples", 51)


def test_aliases_of_types_are_part_of_the_schema() -> None:
    before = "class Row(TypedDict):\n    children: Rows\n\nRows = list[Row]\nScalar = str | int\nJson = dict[str, Scalar | None]\n"
    tool = 'def t(a: Json, b: Rows) -> Scalar:\n    """Count."""\n    return 1\n'
    definition = check_or_raise(before + tool, catalog()).definition
    scalar = {"type": ["string", "integer"]}
    assert definition.result == scalar
    assert definition.parameters[0].schema == {
        "type": "object",
        "additionalProperties": {"anyOf": [scalar, {"type": "null"}]},
    }
    assert definition.parameters[1].schema["items"] == {"$ref": "#/$defs/Row"}


def test_aliases_do_not_multiply_the_work() -> None:
    lines = ["A0 = int", *(f"A{i} = tuple[{', '.join([f'A{i - 1}'] * 20)}]" for i in range(1, 7))]
    source = "\n".join(lines) + '\ndef t(a: A6) -> int:\n    """Count."""\n    return 1\n'
    assert [d.code for d in check(source, catalog()).diagnostics] == ["definition-size"]


def test_small_typed_dicts_are_written_in_place_and_recursive_ones_are_references() -> None:
    definition = check_or_raise(
        "class Row(TypedDict):\n    name: str\n\n"
        "class Node(TypedDict):\n    row: Row\n    children: list[Node]\n\n"
        'def t(rows: list[Row], node: Node | None) -> Node:\n    """Count."""\n    return node\n',
        catalog(),
    ).definition
    row = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    reference = {"$ref": "#/$defs/Node"}
    node = {
        "type": "object",
        "properties": {"row": row, "children": {"type": "array", "items": reference}},
        "required": ["row", "children"],
        "additionalProperties": False,
    }
    assert [p.schema for p in definition.parameters] == [
        {"type": "array", "items": row},
        {"anyOf": [reference, {"type": "null"}], "$defs": {"Node": node}},
    ]
    assert definition.result == {**node, "$defs": {"Node": node}}
    # References of JSON Schema begin at the root of the document.
    assert definition.parameters_schema()["$defs"] == {"Node": node}
    tree = {"row": {"name": "a"}, "children": [{"row": {"name": 1}, "children": []}]}
    found = violations({"rows": [], "node": tree}, definition.parameters_schema())
    assert [v["message"] for v in found] == ["node.children[0].row.name: expected str, got int 1"]
    assert definition.signature() == (
        "t(rows: list[{name: str}], node: {row: {name: str}, children: list[Node]} | None)"
        " -> {row: {name: str}, children: list[{row: {name: str}, children: list[Node]}]}"
    )


@pytest.mark.parametrize(
    "classes",
    [
        # Written in place, the first would have 8 ** 8 parts, and the second 2 ** 60.
        "class C0(TypedDict):\n" + "".join(f"    f{n}: C0\n" for n in range(8)),
        "".join(f"class C{n}(TypedDict):\n    a: C{n + 1}\n    b: C{n + 1}\n\n" for n in range(60))
        + "class C60(TypedDict):\n    a: int\n",
        # A chain that is longer than Python's stack.
        "".join(f"class C{n}(TypedDict):\n    a: C{n + 1}\n\n" for n in range(450))
        + "class C450(TypedDict):\n    a: int\n",
    ],
    ids=["itself", "twice", "chain"],
)
def test_the_size_of_a_schema_is_proportional_to_the_source(classes: str) -> None:
    source = f'{classes}\ndef t(x: C0) -> int:\n    """Count."""\n    return 1\n'
    definition = check_or_raise(source, catalog()).definition
    assert len(json.dumps(definition.parameters_schema())) < 20 * len(source)
    assert len(definition.signature()) < len(source)
    json.loads(json.dumps(definition.parameters_schema()))


def test_a_definition_has_a_largest_size() -> None:
    def codes(parameter: str, text: str = "Return.") -> list[str]:
        source = f'def t({parameter}) -> str:\n    """{text}"""\n    return "x"\n'
        return [d.code for d in check(source, catalog()).diagnostics]

    def choices(count: int) -> str:
        return f"x: Literal[{', '.join(map(str, range(count)))}]"

    assert codes(choices(MAX_SCHEMA_NODES - 2)) == []
    assert codes(choices(MAX_SCHEMA_NODES - 1)) == ["definition-size"]
    assert codes("x: str", "R" * 63_000) == []
    assert codes('x: str = "' + "d" * 40_000 + '"', "R" * 40_000) == ["definition-size"]


def test_findings_are_counted_after_the_first_hundred() -> None:
    def source(names: int, end: str = "return x") -> str:
        lines = "".join(f"    print(y{n})\n" for n in range(names))
        return f'def t(x: str) -> str:\n    """Return."""\n{lines}    {end}\n'

    assert len(check(source(MAX_FINDINGS), catalog()).diagnostics) == MAX_FINDINGS
    *shown, more = check(source(3_000), catalog()).diagnostics
    assert [d.span.line for d in shown] == list(range(3, MAX_FINDINGS + 3))
    assert (more.code, more.severity, more.message) == (
        "more-findings",
        "error",
        "at least 1 more finding is not listed",
    )
    *_, more = check(source(3_000, "return tools.reed_file(path=x)"), catalog()).diagnostics
    assert more.message == "at least 2 more findings are not listed"
    # More warnings than a report lists don't refuse a source, and don't hide an error.
    unused = "".join("    x.strip()\n" for _ in range(MAX_FINDINGS + 5))
    warned = check(f'def t(x: str) -> str:\n    """Return."""\n{unused}    return x\n', catalog())
    assert (warned.checked is not None, warned.diagnostics[-1].severity) == (True, "warning")
    refused = check(f'def t(x: str) -> str:\n    """Return."""\n{unused}    return y\n', catalog())
    assert [d.code for d in refused.diagnostics if d.severity == "error"] == ["unknown-name"]
    assert (refused.checked, refused.diagnostics[-1].code) == (None, "more-findings")


def test_a_long_name_is_shortened_in_findings() -> None:
    [found] = check(f'def t(x: str) -> str:\n    """Return."""\n    return {"y" * 50_000}\n', catalog()).diagnostics
    assert len(found.message) == MAX_TEXT


def test_the_error_carries_all_findings() -> None:
    with pytest.raises(SourceError) as refused:
        check_or_raise("def t(x) -> int:\n    return y\n", catalog())
    assert [d.code for d in refused.value.diagnostics] == ["no-docstring", "no-annotation", "unknown-name"]
    assert "2:12 [unknown-name] nothing is named 'y'" in str(refused.value)


def test_a_fix_that_would_break_something_else_is_not_offered() -> None:
    source = 'def t(text: str) -> str:\n    """Show."""\n    return texts(1)\n'
    (found,) = check(source, catalog()).diagnostics
    assert "did you mean 'text'" in found.message
    assert found.fix is None


WORDS = re.compile(r"\s+|\w+|[^\w\s]")
SOURCES = [c.source.lstrip("\n") for folder in ("parse", "check", "run") for c in chunks(folder)]
ALL_WORDS = sorted({word for source in SOURCES for word in WORDS.findall(source)})


@examples(60)
@given(
    st.sampled_from(SOURCES),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), st.sampled_from(ALL_WORDS)), min_size=1, max_size=4),
)
def test_no_text_makes_it_raise_and_every_fix_works(source: str, changes: list[tuple[int, int, str]]) -> None:
    words = WORDS.findall(source)
    for at, taken, word in changes:
        words[at % len(words) : at % len(words) + taken] = [word]
    text = "".join(words)
    report = check(text, catalog())
    before = errors(report.diagnostics)
    # These are checked only if nothing else is wrong.
    last = {"definition-text", "definition-size", *(code.code for code in TYPES)}
    assert (report.checked is None) == bool(before)
    for d in report.diagnostics:
        assert d.hint or d.fix or "did you mean" in d.message or d.code == "syntax", d
        if d.fix is not None and d.code != "tab":
            after = check(d.fix.apply(text), catalog()).diagnostics
            assert not errors(tuple(a for a in after if a.code not in last)) - before

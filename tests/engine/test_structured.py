"""The structured form of a tool. Every mistake in it is reported, and the rendered source has the same meaning."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from albert_tools import Failure, SourceError
from albert_tools.engine.check.checker import check, check_or_raise
from albert_tools.engine.model.primitive import read_docstring
from albert_tools.engine.structured import render_source
from albert_tools.testing import registry

CATALOG = registry()

NO_NAME = "is not a name: use letters, digits and _, and begin with a letter"
NO_DEFAULT = "a list or an object can't be a default; make the default null and set it in the body"
NO_LIST = "parameters: expected a list of parameters, or a JSON Schema with `properties`"


def form(**changes: Any) -> dict[str, Any]:
    return {"name": "f", "description": "Do it.", "implementation": "return 1", **changes}


def signature(**changes: Any) -> str:
    return check_or_raise(render_source(form(**changes)), CATALOG).definition.signature()


def refused(given_form: Any) -> list[str]:
    with pytest.raises(Failure) as caught:
        render_source(given_form)
    failure = caught.value
    assert failure.code == "invalid_arguments"
    assert str(failure.hint).startswith("a definition is {name, description, parameters")
    assert failure.message == "; ".join(v["message"] for v in failure.details["violations"])
    return [v["message"] for v in failure.details["violations"]]


def test_the_rendered_source() -> None:
    parameters = [
        {"name": "n", "type": "integer", "description": "How many."},
        {"name": "sep", "type": "str", "default": ", "},
        {"name": "words", "type": "list[str]"},
    ]
    source = render_source(
        form(parameters=parameters, implementation="if n:\n\treturn sep.join(words[:n])\n\nreturn ''")
    )
    assert source == (
        'def f(n: int, words: list[str], sep: str = ", "):\n'
        '    """Do it.\n\n'
        "    Args:\n"
        "        n: How many.\n"
        "        sep: sep\n"
        "        words: words\n"
        '    """\n'
        "    if n:\n"
        "        return sep.join(words[:n])\n\n"
        "    return ''\n"
    )
    assert check(source, CATALOG).diagnostics == ()


@pytest.mark.parametrize(
    ("given_form", "said"),
    [
        (3, [": expected an object"]),
        ({}, ["name: is required", "description: is required", "implementation: is required"]),
        (form(name=1, extra=2), ["name: expected a string", "extra: unknown field"]),
        (form(parameters=3), ["parameters: expected a list"]),
        (form(parameters=[3]), ["parameters.0: expected an object"]),
        (form(parameters=[{}]), ["parameters.0.name: is required"]),
        (form(parameters=[{"name": "a", "required": "x"}]), ["parameters.0.required: expected true or false"]),
        (form(parameters={"properties": 3}), [NO_LIST]),
        (form(parameters={"type": "string"}), [NO_LIST]),
        (form(parameters={"properties": {}, "required": True}), ["parameters.required: expected a list of names"]),
        (form(name="a b"), [f"name: 'a b' {NO_NAME}"]),
        (form(name="f():\n    pass\ndef g"), [f"name: 'f():\\n    pass\\ndef g' {NO_NAME}"]),
        (form(name="class"), ["name: 'class' is a keyword; use class_ instead"]),
        (form(description=" "), ["description: must not be empty"]),
        (form(implementation="\n"), ["implementation: must not be empty"]),
        (form(parameters=[{"name": "a"}, {"name": "b="}]), [f"parameters.1.name: 'b=' {NO_NAME}"]),
        (form(parameters=[{"name": "a", "default": [1]}]), [f"parameters.0.default: {NO_DEFAULT}"]),
    ],
)  # fmt: skip
def test_malformed(given_form: Any, said: list[str]) -> None:
    assert refused(given_form) == [message.removeprefix(": ") for message in said]


@pytest.mark.parametrize(
    "kind", ["int, b", "int = 3", "int\n    x", "int) -> int", "*", "", "lambda: 1", "(yield)", "(x := 1)", "a" * 3000]
)
def test_a_type_is_one_expression(kind: str) -> None:
    (message,) = refused(form(parameters=[{"name": "a", "type": kind}]))
    assert message.startswith("parameters.0.type: ")
    assert "is not a type; use an annotation such as list[str]" in message


def test_the_checker_refuses_unknown_types() -> None:
    with pytest.raises(SourceError, match="'date' is not a type here"):
        signature(parameters=[{"name": "a", "type": "date"}])
    assert signature(parameters=[{"name": "a", "type": "int  # a comment"}]) == "f(a: int) -> int"


@pytest.mark.parametrize(
    ("schema", "spelled"),
    [
        ({}, "Any"),
        (3, "Any"),
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "null"}, "None"),
        ({"type": "unheard_of"}, "Any"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"type": [["string"], 3]}, "Any"),
        ({"type": ["array", "null"], "items": {"type": "integer"}}, "list[int] | None"),
        ({"type": "array", "items": {"type": "object"}}, "list[dict]"),
        ({"type": "array", "items": 3}, "list"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"type": "object", "additionalProperties": False}, "dict"),
        ({"enum": ['a"b', "c:d\n", 1]}, 'Literal["a\\"b", "c:d\\n", 1]'),
        ({"enum": 3, "type": "string"}, "str"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "str | int"),
        ({"anyOf": [{"type": "string"}, {}]}, "Any"),
        ({"anyOf": 3}, "Any"),
    ],
)
def test_json_schema(schema: Any, spelled: str) -> None:
    parameters = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    assert signature(parameters=parameters) == f"f(a: {spelled}) -> int"


def test_a_recursive_schema() -> None:
    deep: dict[str, Any] = {"type": "array"}
    for _ in range(2000):
        deep = {"type": "array", "items": deep}
    text = signature(parameters={"properties": {"a": deep}, "required": ["a"]})
    assert text.count("list") < 20


@pytest.mark.parametrize(
    ("parameter", "spelled"),
    [
        ({"type": "integer", "default": 3}, "a: int = 3"),
        ({"type": "integer", "default": None}, "a: int | None = None"),
        ({"type": "integer", "required": False}, "a: int | None = None"),
        ({"type": "integer", "default": 3, "required": True}, "a: int"),
        ({"type": "str | None", "default": None}, "a: str | None = None"),
        ({"default": None}, "a: Any = None"),
        ({"type": "string", "default": 'q"\n\\'}, r'a: str = "q\"\n\\"'),
        ({"type": "boolean", "default": True}, "a: bool = True"),
        ({"type": "number", "default": -1.5}, "a: float = -1.5"),
    ],
)
def test_defaults(parameter: dict[str, Any], spelled: str) -> None:
    assert signature(parameters=[{"name": "a", **parameter}]) == f"f({spelled}) -> int"


def test_a_schema_without_parameters() -> None:
    for parameters in ({}, {"type": "object"}, {"type": "object", "properties": {}}, []):
        assert signature(parameters=parameters) == "f() -> int"
    optional = {"properties": {"a": {"type": "string"}, "b": {"default": 1}}}
    assert signature(parameters=optional) == "f(a: str | None = None, b: Any = 1) -> int"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ('return """a\n  b\n\tc"""', "a\n  b\n\tc"),
        ('    x = 1\n    return """a\nb\n    c"""', "a\nb\n    c"),
        ("return '\t'", "\t"),
        ("\tif 1:\n\t\treturn '''\n\t'''\n\treturn 2", "\n\t"),
        ("x = 1\r\n\r\n\nreturn x\r\n", 1),
        ("return f'''{1}\n  {2}\n'''", "1\n  2\n"),
        ("  x = '\u00e9\u5b57'  # \u5b57\n  return x", "\u00e9\u5b57"),
        ("x = [\n1,\n  2]\nreturn x", [1, 2]),
    ],
)
def test_the_body_keeps_its_meaning(body: str, result: Any) -> None:
    scope: dict[str, Any] = {}
    exec(render_source(form(implementation=body)), scope)  # noqa: S102
    assert scope["f"]() == result


@pytest.mark.parametrize(
    "body",
    [
        "const text = await tools.read_file({path});\nreturn text.length;",
        "let n = 0;\nfor (const x of xs) { n += x }\nreturn n",
        "return xs.map(x => x * 2)",
        "function double(x) { return 2 * x }\nreturn double(n)",
        "// doubles\nreturn n * 2",
        "if (a === b && c) { return 'it\\'s' }",
    ],
)
def test_a_body_in_javascript_gets_a_sentence(body: str) -> None:
    [said] = refused(form(implementation=body))
    assert said.startswith(
        "implementation: this is JavaScript; write the body in Python: `text = tools.read_file(path=path)`"
    )


@pytest.mark.parametrize(
    "body",
    [
        "return 'a => b' + \"&&\"  # x === y",
        'text = """\nconst x = 1;\n// let y = \\"""\n"""\nreturn text',
        'function = 1\nnew = 2\nconst = let = function // new\nreturn {"var": const}',
    ],
)
def test_python_that_looks_like_javascript(body: str) -> None:
    assert body.splitlines()[0] in render_source(form(implementation=body))


def test_a_body_with_syntax_errors_is_stored_unchanged() -> None:
    for body in ("return (", "return '''a\n b", "if 1:\n    x\n  y", "return $"):
        with pytest.raises(SourceError):
            check_or_raise(render_source(form(implementation=body)), CATALOG)


@given(st.text(), st.lists(st.text(), max_size=2))
@example("Args:", [])
def test_descriptions_are_read_back(description: str, texts: list[str]) -> None:
    """Any description becomes one docstring. It opens no section and adds no parameter."""
    parameters = [{"name": f"p{i}", "type": "string", "description": text} for i, text in enumerate(texts)]
    try:
        source = render_source(form(description=description, parameters=parameters))
    except Failure:
        assert not description.strip()
        return
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert len(function.body) == 2
    assert [a.arg for a in function.args.args] == [f"p{i}" for i in range(len(texts))]
    found, arguments = read_docstring(inspect.cleandoc(ast.get_docstring(function, clean=False) or ""))
    assert set(arguments) == {f"p{i}" for i in range(len(texts))}
    # A line that would begin a section, such as ``Args:``, gets a space before its colon.
    first = ascii_kept(description).strip().split("\n")[0]
    assert "".join(found.split("\n")[0].split()) == "".join(first.split())


def ascii_kept(text: str) -> str:
    import re

    text = text.strip().replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", "\ufffd", text)


def test_hostile_descriptions() -> None:
    text = 'Say """hi""" \\n\nArgs:\n    q: not a parameter\nReturns:\nend"'
    definition = check_or_raise(render_source(form(description=text)), CATALOG).definition
    assert definition.description == 'Say """hi""" \\n\nArgs :\n    q: not a parameter\nReturns :\nend"'
    assert definition.parameters == ()

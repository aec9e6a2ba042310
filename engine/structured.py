"""The structured form of a definition: name, description, parameters and body. This module renders it to a source.

Some models fill in forms better than they write files. The rendered source is checked like any other source. Its meaning must be
the same as that of the form: a description can't begin a docstring section, a type can't add a parameter, and strings in the body
are not changed.
"""

from __future__ import annotations

import ast
import io
import json
import keyword
import re
import tokenize
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import NAME
from albert_tools.grammar.python_parser import parse_expression

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}

#: Strings and comments of Python. Operators in them mean nothing.
_QUOTED = re.compile(r"""(\"{3}|'{3})(?:\\.|[^\\])*?\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*""", re.DOTALL)
#: What JavaScript has and Python never has outside of strings.
_JAVASCRIPT = re.compile(
    r"=>|[=!]==|&&|\|\||^\s*//|\b(?:const|let|var)\s+[\w${\[]|\bfunction\b[^\n={]{0,200}\{|\bnew\s+[A-Z]", re.MULTILINE
)
_IN_PYTHON = (
    "this is JavaScript; write the body in Python: `text = tools.read_file(path=path)` instead of "
    "`const text = await tools.read_file({path})`, and `and`, `or`, `not`, `None`"
)

#: The deepest nesting of schemas. A schema below this depth becomes ``Any``.
MAX_SCHEMA_DEPTH = 8

_HEADING = re.compile(r"\s*(Args|Arguments|Returns|Raises|Yields|Examples?|Notes?):\s*")
_HINT = "a definition is {name, description, parameters: [{name, type, description}], implementation}"


def render_source(form: Any) -> str:
    """Render a structured form.

    Args:
        form: ``{name, description, parameters, implementation}``. `parameters` is either a list or a JSON Schema object with
            `properties` and `required`. Each item of the list is ``{name, type, description?, default?}``. Its `type` is an
            annotation (``list[str]``) or a JSON Schema type (``string``).

    Returns:
        The source.

    Raises:
        Failure: `invalid_arguments`, with all violations in `details`.
    """
    from pydantic import BaseModel, ConfigDict, ValidationError

    class Parameter(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: str
        type: str = "Any"
        description: str = ""
        default: Any = None
        required: bool | None = None

    class Form(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: str
        description: str
        parameters: list[Parameter] = []
        implementation: str

    if isinstance(form, dict) and isinstance(form.get("parameters"), dict):
        form = {**form, "parameters": _from_schema(form["parameters"])}
    try:
        read = Form.model_validate(form)
    except ValidationError as error:
        raise _refused([(".".join(map(str, e["loc"])), e["type"], _message_of(e)) for e in error.errors()]) from None
    problems = []
    for where, name in [
        ("name", read.name),
        *((f"parameters.{i}.name", p.name) for i, p in enumerate(read.parameters)),
    ]:
        if not NAME.match(name):
            problems.append(
                (where, "name", f"{name!r} is not a name: use letters, digits and _, and begin with a letter")
            )
        elif keyword.iskeyword(name):
            problems.append((where, "name", f"{name!r} is a keyword; use {name}_ instead"))
    for what in ("description", "implementation"):
        if not getattr(read, what).strip():
            problems.append((what, "empty", "must not be empty"))
    if _JAVASCRIPT.search(_QUOTED.sub("", read.implementation)):
        problems.append(("implementation", "language", _IN_PYTHON))
    required, optional = [], []
    for i, p in enumerate(read.parameters):
        annotation = _TYPES.get(p.type) or _spelled(p.type)
        if annotation is None:
            message = (
                f"{p.type!r} is not a type; use an annotation such as list[str], or a JSON Schema type such as string"
            )
            problems.append((f"parameters.{i}.type", "type", message))
            continue
        if p.required or ("default" not in p.model_fields_set and p.required is None):
            required.append(f"{p.name}: {annotation}")
            continue
        default = p.default
        if isinstance(default, list | dict):
            message = "a list or an object can't be a default; make the default null and set it in the body"
            problems.append((f"parameters.{i}.default", "default", message))
            continue
        if default is None and "None" not in annotation and annotation != "Any":
            annotation += " | None"
        optional.append(f"{p.name}: {annotation} = {_literal(default)}")
    if problems:
        raise _refused(problems)
    lines = [f"def {read.name}({', '.join(required + optional)}):", '    """' + _doc(read.description)]
    if read.parameters:
        texts = ((p.name, _line(p.description) or p.name) for p in read.parameters)
        lines += ["", "    Args:", *(f"        {name}: {text}" for name, text in texts), '    """']
    else:
        lines[-1] += '"""'
    return "\n".join([*lines, _body(read.implementation)]) + "\n"


def _from_schema(schema: dict[str, Any]) -> Any:
    if not schema or schema.get("type") == "object":
        schema = {"properties": {}, **schema}
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        raise _refused([("parameters", "type", "expected a list of parameters, or a JSON Schema with `properties`")])
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise _refused([("parameters.required", "type", "expected a list of names")])
    parameters = []
    for name, part in properties.items():
        part = part if isinstance(part, dict) else {}
        entry = {"name": name, "type": _annotation(part), "description": str(part.get("description", ""))}
        if "default" in part:
            entry["default"] = part["default"]
        elif name not in required:
            entry["default"] = None
        parameters.append(entry)
    return parameters


def _annotation(schema: Any, depth: int = 0) -> str:
    """The annotation for a JSON Schema; ``Any`` if no annotation can express the schema."""
    if not isinstance(schema, dict) or depth > MAX_SCHEMA_DEPTH:
        return "Any"
    kind, either, values = schema.get("type"), schema.get("anyOf"), schema.get("enum")
    if isinstance(values, list) and values:
        return f"Literal[{', '.join(_literal(v) for v in values)}]"
    if isinstance(either, list) and either:
        return _joined([_annotation(s, depth + 1) for s in either])
    if isinstance(kind, list) and kind:
        return _joined([_annotation({**schema, "type": k}, depth + 1) for k in kind])
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"list[{_annotation(schema['items'], depth + 1)}]"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {_annotation(schema['additionalProperties'], depth + 1)}]"
    return _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"


def _joined(parts: list[str]) -> str:
    parts = list(dict.fromkeys(parts))
    return "Any" if "Any" in parts else " | ".join(parts)


def _spelled(text: str) -> str | None:
    """An annotation in normal form; None if the text is not one expression on one line."""
    if len(text) > 2_000:
        return None
    try:
        node = parse_expression(text.strip()).body
        spelled = ast.unparse(node)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    single = not isinstance(node, ast.Tuple | ast.NamedExpr | ast.Lambda | ast.Yield | ast.Await)
    return spelled if single and "\n" not in spelled else None


def _literal(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _doc(text: str) -> str:
    """A text escaped for a docstring. The docstring's value is then the original text."""
    lines = _escaped(text.strip()).split("\n")
    # A blank before the colon prevents a line from being read as a section heading.
    lines = [f"{line.rstrip()[:-1]} :" if _HEADING.fullmatch(line) else line.rstrip() for line in lines]
    return "\n".join([lines[0], *(f"    {line}" if line else "" for line in lines[1:])])


def _line(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    text = re.sub(r"[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]", "\ufffd", text)
    return text[:-1] + '\\"' if text.endswith('"') else text


def _body(text: str) -> str:
    """The body, indented by four. Lines that begin inside a string are not indented, because that would change the string."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip().split("\n")
    inside = _in_strings(lines)
    for i, line in enumerate(lines):
        if i not in inside:
            bare = line.lstrip(" \t")
            lines[i] = line[: len(line) - len(bare)].expandtabs(4) + bare if bare else ""
    margin = min((len(x) - len(x.lstrip(" ")) for i, x in enumerate(lines) if i not in inside and x), default=0)
    return "\n".join(line if i in inside or not line else "    " + line[margin:] for i, line in enumerate(lines))


def _in_strings(lines: list[str]) -> set[int]:
    """The indexes of the lines that begin inside a string. Lines after the first syntax error are not included."""
    indexes: set[int] = set()
    # From Python 3.12 on, an f-string consists of several tokens. Its text is in the middle tokens.
    textual = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            if token.type in textual:
                indexes.update(range(token.start[0], token.end[0]))
    except (tokenize.TokenError, SyntaxError):
        pass
    return indexes


def _message_of(error: Any) -> str:
    """The message for a pydantic error."""
    match error["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "unknown field"
    kind = str(error["type"]).removesuffix("_type").removesuffix("_parsing")
    return {
        "string": "expected a string",
        "list": "expected a list",
        "model": "expected an object",
        "bool": "expected true or false",
    }.get(kind, str(error["msg"]))


def _refused(violations: list[tuple[str, str, str]]) -> Failure:
    listed = [{"field": f, "rule": r, "message": f"{f}: {m}" if f else m} for f, r, m in violations]
    message = "; ".join(v["message"] for v in listed)
    return Failure("invalid_arguments", message, hint=_HINT, details={"violations": listed})

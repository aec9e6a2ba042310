"""The structured form of a definition: name, description, parameters and the body alone, rendered to a source.

Models that fill in forms better than they write whole files use it. It is rendered to the same text that anybody could have
written and then goes the same way; nothing is trusted because it came in a form.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import NAME

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}


def render_source(form: Any) -> str:
    """The source of ``{name, description, parameters, implementation}``.

    `parameters` is a list of ``{name, type, description?, default?}``, where `type` is an annotation (``list[str]``) or a JSON
    Schema type (``string``); or a JSON Schema object with `properties` and `required`.

    Raises:
        Failure: `invalid_arguments`, with every violation.
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
        raise _refused([(".".join(map(str, e["loc"])), e["type"], e["msg"]) for e in error.errors()]) from error
    wrong = [
        (where, "name", f"{name!r} is not a name: letters, digits and _, beginning with a letter")
        for where, name in [("name", read.name), *(("parameters", p.name) for p in read.parameters)]
        if not NAME.match(name)
    ]
    wrong += [
        ("parameters", "type", f"{p.type!r} is not a type") for p in read.parameters if "\n" in p.type or ":" in p.type
    ]
    if not read.implementation.strip():
        wrong.append(("implementation", "empty", "there is no body"))
    if wrong:
        raise _refused(wrong)
    required, optional = [], []
    for p in read.parameters:
        annotation = _TYPES.get(p.type, p.type)
        has_default = "default" in p.model_fields_set or p.required is False
        if not has_default:
            required.append(f"{p.name}: {annotation}")
        else:
            if p.default is None and "None" not in annotation and annotation != "Any":
                annotation += " | None"
            optional.append(f"{p.name}: {annotation} = {_literal(p.default)}")
    lines = [f"def {read.name}({', '.join(required + optional)}):"]
    lines += ['    """' + _doc(read.description).replace("\n", "\n    ")]
    if read.parameters:
        lines += [
            "",
            "    Args:",
            *(f"        {p.name}: {_doc(p.description or p.name)}" for p in read.parameters),
            '    """',
        ]
    else:
        lines[-1] += '"""'
    body = textwrap.indent(textwrap.dedent(read.implementation.expandtabs(4)).strip("\n"), "    ")
    return "\n".join([*lines, body]) + "\n"


def _from_schema(schema: dict[str, Any]) -> Any:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return [schema]
    required = schema.get("required", [])
    found = []
    for name, part in properties.items():
        part = part if isinstance(part, dict) else {}
        entry = {"name": name, "type": _annotation(part), "description": str(part.get("description", ""))}
        if name not in required or "default" in part:
            entry["default"] = part.get("default")
        found.append(entry)
    return found


def _annotation(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return f"Literal[{', '.join(_literal(v) for v in schema['enum'])}]"
    if "anyOf" in schema:
        return " | ".join(_annotation(s) for s in schema["anyOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_TYPES.get(k, "Any") for k in kind)
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"list[{_annotation(schema['items'])}]"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {_annotation(schema['additionalProperties'])}]"
    return _TYPES.get(str(kind), "Any")


def _literal(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _doc(text: str) -> str:
    """A text as it can stand in a docstring; a paragraph's later lines must not look like a section."""
    return text.strip().replace("\\", "\\\\").replace('"""', "'''").removesuffix('"')


def _refused(found: list[tuple[str, str, str]]) -> Failure:
    listed = [{"field": f, "rule": r, "message": f"{f}: {m}" if f else m} for f, r, m in found]
    return Failure(
        "invalid_arguments",
        "; ".join(v["message"] for v in listed),
        hint="a definition is {name, description, parameters: [{name, type, description}], implementation}",
        details={"violations": listed},
    )

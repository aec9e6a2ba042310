"""Turns the schema of a server into one that is safe to check values with, and that our language can call.

A server is not trusted. Its schema may have patterns that take for ever, references that contain themselves, and keywords that
mean nothing here. So only the keywords in `_KEPT` are copied, references are replaced by what they refer to, and depth and size
are bounded. What is left out allows more, never less: the server checks its own arguments anyway.

A parameter's name becomes an identifier: ``user-id`` is ``user_id`` here.
"""

from __future__ import annotations

import json
import keyword
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.bounds import KiB
from albert_tools.engine.model.definition import Schema, canonical
from albert_tools.engine.model.schema_validity import fault_in
from albert_tools.grammar.source_text import BLANK

#: The depth of a schema, and the number of schemas in it. What is deeper or further is any value.
MAX_DEPTH, MAX_PARTS = 8, 1000
#: Bytes of a schema whose references are replaced. A larger one has fewer parts, down to none.
MAX_BYTES = 64 * KiB
#: Characters of the description of a tool, and of a parameter.
MAX_DESCRIPTION, MAX_PARAMETER_DESCRIPTION = 4000, 500
#: Characters of an enumeration as JSON.
MAX_ENUM = 10_000

_KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_FIGURES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


class Unusable(Exception):
    """Why a tool of a server can't be mounted."""


def plain_text(text: Any, most: int) -> str:
    """A text of a server on one line, without invisible characters, and cut to `most` characters."""
    words = " ".join(str(text or "")[: 4 * most].split())
    visible = "".join(c for c in words if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
    plain = BLANK.sub("", visible)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def quoted(text: str) -> str:
    """A text of a server, marked as its words."""
    return f"the server's words: {json.dumps(text, ensure_ascii=False)}"


def identifier(name: str) -> str:
    """The name that stands for a server's name in our language."""
    identifier = re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("_") or "_"
    if not identifier[0].isalpha():
        identifier = f"n{identifier}"
    return f"{identifier}_" if keyword.iskeyword(identifier) else identifier


def parameters_schema(schema: Any) -> tuple[Schema, dict[str, str]]:
    """The schema of a tool's arguments, and the server's name of each parameter that has another one here.

    Raises:
        Unusable: the tool can't be called from our language.
    """
    whole = schema if isinstance(schema, dict) else {}
    properties = whole.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    names: dict[str, str] = {}
    for remote in properties:
        other = names.setdefault(identifier(remote), remote)
        if other != remote:
            raise Unusable(f"the parameters {other!r} and {remote!r} would both be {identifier(remote)!r}")
    if len(names) > 100:
        raise Unusable(f"it has {len(names)} parameters, and at most 100 can be mounted")
    required = whole.get("required")
    required = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    missing = sorted(required - properties.keys())
    if missing:
        raise Unusable(f"it requires {missing[0]!r:.80}, which its schema does not describe")
    shown: Schema = {
        "type": "object",
        "properties": _bounded(whole, {name: properties[remote] for name, remote in names.items()}),
        "required": [name for name, remote in names.items() if remote in required],
        "additionalProperties": False,
    }
    return shown, {name: remote for name, remote in names.items() if name != remote}


def result_schema(schema: Any) -> Schema | None:
    """The schema of a structured result; None if there is none."""
    return _bounded(schema, {"": schema})[""] if isinstance(schema, dict) else None


def _bounded(whole: Any, parts: Mapping[str, Any]) -> dict[str, Schema]:
    """Copies of these parts of a schema, which have at most `MAX_BYTES` together."""
    count = MAX_PARTS
    while True:
        reader = _Reader(whole, count)
        copies = {name: reader.sound(part) for name, part in parts.items()}
        if not count or len(canonical(copies)) <= MAX_BYTES:
            return copies
        count //= 2


class _Reader:
    """Copies parts of one schema, until `count` are copied."""

    def __init__(self, whole: Any, count: int) -> None:
        self._whole = whole
        self._left = count

    def sound(self, schema: Any) -> Schema:
        """A usable copy; any value if the schema is not valid."""
        copy = self._copy(schema, 0)
        return copy if fault_in(copy) is None else {}

    def _copy(self, schema: Any, depth: int) -> Schema:
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0 or depth > MAX_DEPTH:
            return {}
        if "$ref" in schema:
            return self._described(schema, self._copy(self._target(schema["$ref"]), depth + 1))
        if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
            return self._described(schema, self._copy(schema["allOf"][0], depth + 1))
        copy: Schema = {}
        self._simple(schema, copy)
        for key in ("anyOf", "oneOf"):
            parts = schema.get(key)
            if isinstance(parts, list) and parts:
                # `oneOf` would be wrong for alternatives that were made equal.
                copy["anyOf"] = [self._copy(part, depth + 1) for part in parts]
        if isinstance(schema.get("items"), dict):
            copy["items"] = self._copy(schema["items"], depth + 1)
        properties = schema.get("properties")
        if isinstance(properties, dict):
            copied = {k: self._copy(v, depth + 1) for k, v in properties.items() if _is_name(k)}
            required = schema.get("required")
            copy["properties"] = copied
            named = required if isinstance(required, list) else []
            copy["required"] = list(dict.fromkeys(n for n in named if isinstance(n, str) and n in copied))
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            copy["additionalProperties"] = self._copy(more, depth + 1)
        elif more is False and isinstance(properties, dict) and len(copy["properties"]) == len(properties):
            copy["additionalProperties"] = False
        return self._described(schema, copy)

    def _simple(self, schema: Schema, copy: Schema) -> None:
        kinds = schema.get("type")
        listed = kinds if isinstance(kinds, list) else [kinds]
        if listed and all(kind in _KINDS for kind in listed):
            copy["type"] = kinds
        for key in _COUNTS:
            if type(schema.get(key)) is int and schema[key] >= 0:
                copy[key] = schema[key]
        for key in _FIGURES:
            if type(schema.get(key)) in (int, float):
                copy[key] = schema[key]
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and values and len(json.dumps(values)) <= MAX_ENUM:
            copy["enum"] = values

    def _target(self, reference: Any) -> Any:
        """What a reference inside the schema refers to; None if nothing."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        here = self._whole
        for part in reference[2:].split("/"):
            here = here.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(here, dict) else None
        return here

    @staticmethod
    def _described(schema: Schema, copy: Schema) -> Schema:
        said = plain_text(schema.get("description"), MAX_PARAMETER_DESCRIPTION)
        return {**copy, "description": quoted(said)} if said else copy


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 200 and plain_text(value, 200) == value

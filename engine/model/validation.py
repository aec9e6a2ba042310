"""Checks a value against a JSON Schema.

`violations` reports all problems at once, as ``{field, rule, message}``, so that a model can correct them in one turn. The
evaluator is part of this project for two reasons: importing a library takes too long for a run, and the messages are a user
interface. It has two extensions: the formats of `string_formats`, and ``x-excludes`` (see `definition.Invariant`).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from albert_tools.engine.model.definition import TYPE_NAMES, Schema, literal, spell
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.string_formats import FORMATS

Violation = dict[str, str]

#: The most schemas around a part of a value. Only a schema that refers to itself reaches it; Python's stack is the reason.
MAX_WALK_DEPTH = 150
#: The most violations that are reported. An object can have a million unknown names.
MAX_VIOLATIONS = 100
#: The most characters of the place of a violation. Names in an object can have any length.
MAX_FIELD = 300

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (dict,),
}

#: The name of the type that a value of exactly this class has.
_NAMES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}


def kind_of(value: Any) -> str:
    """Python's name for the type of a JSON value."""
    if value is None or isinstance(value, bool):
        return "None" if value is None else "bool"
    return next((TYPE_NAMES[k] for k, ts in _KINDS.items() if isinstance(value, ts)), type(value).__name__)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return math.isfinite(value) and value.is_integer()
    return isinstance(value, _KINDS.get(kind, ()))


def violations(value: Any, schema: Schema, field: str = "") -> list[Violation]:
    """The violations of `schema` in `value`, in the order of its fields: all of them, or the first `MAX_VIOLATIONS`.

    `field` is the path to `value`. The violations contain longer paths: ``rows[3].name``.
    """
    violations: list[Violation] = []
    _Walk(schema).walk(value, schema, field, violations)
    return violations[:MAX_VIOLATIONS]


#: If one of these rules is violated, the caller probably meant another alternative.
_OTHER_ALTERNATIVE = ("type", "enum", "const")


def _report(violations: list[Violation], field: str, rule: str, message: str) -> None:
    if len(violations) < MAX_VIOLATIONS:
        field = brief(field, MAX_FIELD)
        violations.append({"field": field, "rule": rule, "message": f"{field}: {message}" if field else message})


class _Walk:
    """Checks one value. `root` is the schema that references refer to.

    Each part of the value is checked at most once against each definition. Otherwise, a schema that refers to itself in several
    alternatives would take time exponential in the depth of the value.
    """

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.depth = 0
        #: By the id of the part, its path, and the reference.
        self.checked: dict[tuple[int, str, str], list[Violation]] = {}

    def violations(self, value: Any, schema: Schema, field: str) -> list[Violation]:
        """All violations of `schema` in `value`."""
        violations: list[Violation] = []
        self.walk(value, schema, field, violations)
        return violations

    def walk(self, value: Any, schema: Schema, field: str, violations: list[Violation]) -> None:
        """Append the violations of `schema` in `value` to `violations`, until it is full."""
        # Most schemas only have a type, and most values have it.
        if not schema or (len(schema) == 1 and _NAMES.get(type(value), "") == schema.get("type")):
            return
        if len(violations) >= MAX_VIOLATIONS:
            return
        if self.depth == MAX_WALK_DEPTH:
            _report(violations, field, "depth", "is nested too deep")
            return
        self.depth += 1
        if "$defs" in schema and schema is not self.root:
            # A schema that was made separately has its own definitions.
            violations += _Walk(schema).violations(value, schema, field)
        elif "$ref" in schema:
            violations += self.referenced(value, str(schema["$ref"]), field)
        else:
            self.against(value, schema, field, violations)
        self.depth -= 1

    def referenced(self, value: Any, reference: str, field: str) -> list[Violation]:
        """The violations of the definition that `reference` names."""
        key = id(value), field, reference
        if key not in self.checked:
            target: Any = self.root
            for part in reference.removeprefix("#/").split("/"):
                target = target[part]
            self.checked[key] = self.violations(value, target, field)
        return self.checked[key]

    def against(self, value: Any, schema: Schema, field: str, violations: list[Violation]) -> None:
        """Append the violations of a schema that is no reference."""
        for combiner in ("anyOf", "oneOf"):
            if combiner in schema:
                tried = [self.violations(value, s, field) for s in schema[combiner]]
                if all(tried):
                    # If exactly one alternative has the right type, its violations explain the problem.
                    meant = [
                        t for t in tried if not any(v["field"] == field and v["rule"] in _OTHER_ALTERNATIVE for v in t)
                    ]
                    if len(meant) == 1:
                        violations += meant[0]
                    else:
                        _report(violations, field, "type", f"expected {spell(schema)}, got {_show(value)}")
                    return
        kinds = schema.get("type")
        if kinds is not None and kinds != _NAMES.get(type(value)):
            names = kinds if isinstance(kinds, list) else [kinds]
            if not (any(_is(value, k) for k in names) if kinds is names else _is(value, kinds)):
                _report(violations, field, "type", f"expected {spell({'type': names})}, got {_show(value)}")
                return
        if "enum" in schema and not any(_same(value, v) for v in schema["enum"]):
            near = _near(value, schema["enum"])
            said = f"expected one of {', '.join(literal(v) for v in schema['enum'])}, got {_show(value)}"
            if near is not None:
                said = f"{json.dumps(value)} is not one of the choices; did you mean {json.dumps(near)}?"
            _report(violations, field, "enum", said)
        if "const" in schema and not _same(value, schema["const"]):
            _report(violations, field, "const", f"expected {literal(schema['const'])}, got {_show(value)}")
        if isinstance(value, str):
            _text(value, schema, field, violations)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            _number(value, schema, field, violations)
        elif isinstance(value, (list, tuple)):
            self.array(value, schema, field, violations)
        elif isinstance(value, dict):
            self.object(value, schema, field, violations)

    def array(self, value: Any, schema: Schema, field: str, violations: list[Violation]) -> None:
        """Append the violations in an array."""
        if len(value) < schema.get("minItems", 0):
            _report(
                violations, field, "min_items", f"must have {schema['minItems']:,} items or more, has {len(value):,}"
            )
        if len(value) > schema.get("maxItems", len(value)):
            _report(
                violations, field, "max_items", f"must have {schema['maxItems']:,} items or fewer, has {len(value):,}"
            )
        prefix, rest = schema.get("prefixItems", ()), schema.get("items")
        if not prefix and not rest:
            return
        for i, item in enumerate(value):
            inner = prefix[i] if i < len(prefix) else rest
            if isinstance(inner, dict):
                self.walk(item, inner, f"{field}[{i}]", violations)

    def object(self, value: dict[str, Any], schema: Schema, field: str, violations: list[Violation]) -> None:
        """Append the violations in an object."""
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                _report(violations, f"{field}.{name}" if field else name, "required", "is required")
        others = schema.get("additionalProperties")
        for name, item in value.items():
            at = f"{field}.{name}" if field else str(name)
            if name in properties:
                self.walk(item, properties[name], at, violations)
            elif others is False and len(violations) < MAX_VIOLATIONS:
                from albert_tools.engine.model.nearest_name import did_you_mean

                _report(violations, at, "unknown", f"unknown name{did_you_mean(str(name), properties)}")
            elif isinstance(others, dict):
                self.walk(item, others, at, violations)
        for names in schema.get("x-excludes", ()):
            # `in` can't be used here, because 0 equals False, but 0 counts as given.
            given = [n for n in names if value.get(n) is not None and value[n] is not False]
            if len(given) > 1:
                at = f"{field}.{given[1]}" if field else given[1]
                _report(
                    violations, at, "excludes", f"can't be given together with {' and '.join([given[0], *given[2:]])}"
                )


def _near(value: Any, choices: list[Any]) -> str | None:
    """The choice that is most similar to a misspelled text."""
    from albert_tools.engine.model.nearest_name import nearest

    return nearest(value, [c for c in choices if isinstance(c, str)]) if isinstance(value, str) else None


def _text(value: str, schema: Schema, field: str, violations: list[Violation]) -> None:
    if len(value) < schema.get("minLength", 0):
        least = schema["minLength"]
        message = "must not be empty" if least == 1 else f"must have {least} characters or more"
        _report(violations, field, "min_length", message)
    if len(value) > schema.get("maxLength", len(value)):
        message = f"must have {schema['maxLength']:,} characters or fewer, has {len(value):,}"
        _report(violations, field, "max_length", message)
    if "pattern" in schema and not re.search(schema["pattern"], value):
        _report(violations, field, "pattern", f"must match {schema['pattern']}")
    if "format" in schema:
        faults = FORMATS.get(schema["format"])
        if faults is not None:
            for rule, message in faults(value):
                _report(violations, field, rule, message)


def _number(value: float, schema: Schema, field: str, violations: list[Violation]) -> None:
    if "minimum" in schema and not value >= schema["minimum"]:
        _report(violations, field, "minimum", f"must be {schema['minimum']} or more, is {value}")
    if "maximum" in schema and not value <= schema["maximum"]:
        _report(violations, field, "maximum", f"must be {schema['maximum']} or less, is {value}")
    if "exclusiveMinimum" in schema and not value > schema["exclusiveMinimum"]:
        _report(violations, field, "minimum", f"must be more than {schema['exclusiveMinimum']}, is {value}")
    if "exclusiveMaximum" in schema and not value < schema["exclusiveMaximum"]:
        _report(violations, field, "maximum", f"must be less than {schema['exclusiveMaximum']}, is {value}")


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _show(value: Any) -> str:
    kind = kind_of(value)
    if kind not in ("str", "int", "float", "bool"):
        return kind
    try:
        text = literal(value)
    except ValueError:  # an integer with too many digits
        return kind
    return f"{kind} {text if len(text) <= 40 else text[:37] + '…'}"

"""Checks a value against a JSON Schema.

`violations` reports all problems at once, as ``{field, rule, message}``, so that a model can correct them in one turn. A schema
is compiled once. The first pass only finds whether a value fits. If it doesn't, a second pass makes the messages. The evaluator
is part of this project for two reasons: importing a library takes too long for a run, and the messages are a user interface. It
has two extensions: the formats of `string_formats`, and ``x-excludes`` (see `definition.Invariant`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from albert_tools.engine.model.definition import TYPE_NAMES, Schema, literal, spell
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.string_formats import FORMATS, Fault

Violation = dict[str, str]

#: The most schemas around a part of a value. Only a schema that refers to itself reaches it; Python's stack is the reason.
MAX_WALK_DEPTH = 150
#: The most steps of one check: the parts of the value, each as often as a schema is tried on it. Alternatives multiply them.
MAX_STEPS = 2_000_000
#: The most violations that are reported. An object can have a million unknown names.
MAX_VIOLATIONS = 100
#: The most characters of the place of a violation. Names in an object can have any length.
MAX_FIELD = 300
#: The most compiled schemas that are kept.
_MAX_COMPILED = 256

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (dict,),
}

#: The classes of scalars.
_SCALARS = (str, int, float, type(None))

_Rule = Callable[[Any], Sequence[Fault]]


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

    `field` is the path to `value`. The violations contain longer paths: ``rows[3].name``. Do not change the schema afterwards,
    because it is kept.
    """
    part, found = _subschema_of(schema), list[Violation]()
    try:
        if part.fits(value, _Check()):
            return found
        part.fits(value, _Check(), field, found)
    except _TooLong:
        _report(found, field, "size", "has too many values for so many alternatives")
    return found


def _report(violations: list[Violation] | None, field: str, rule: str, message: str | Callable[[], str]) -> bool:
    """Append a violation, if `violations` is a list. Returns False: the value doesn't fit."""
    if violations is not None and len(violations) < MAX_VIOLATIONS:
        field, message = brief(field, MAX_FIELD), message if isinstance(message, str) else message()
        violations.append({"field": field, "rule": rule, "message": f"{field}: {message}" if field else message})
    return False


def _rule(name: str, holds: Callable[[Any, Any], object], message: Callable[[Any, Any], str]) -> Callable[[Any], _Rule]:
    """Makes the rule of a keyword from the keyword's value."""
    return lambda bound: lambda value: () if holds(value, bound) else ((name, message(value, bound)),)


def _length(n: int) -> str:
    return "must not be empty" if n == 1 else f"must have {n} characters or more"


#: The rules of keywords for texts, numbers and arrays.
_OF_TEXTS: dict[str, Callable[[Any], _Rule]] = {
    "minLength": _rule("min_length", lambda v, n: len(v) >= n, lambda v, n: _length(n)),
    "maxLength": _rule(
        "max_length", lambda v, n: len(v) <= n, lambda v, n: f"must have {n:,} characters or fewer, has {len(v):,}"
    ),
    "pattern": _rule("pattern", lambda v, p: re.search(p, v), lambda v, p: f"must match {p}"),
    "format": lambda name: FORMATS.get(name, lambda text: []),
}
_OF_NUMBERS: dict[str, Callable[[Any], _Rule]] = {
    "minimum": _rule("minimum", lambda v, n: v >= n, lambda v, n: f"must be {n} or more, is {v}"),
    "maximum": _rule("maximum", lambda v, n: v <= n, lambda v, n: f"must be {n} or less, is {v}"),
    "exclusiveMinimum": _rule("minimum", lambda v, n: v > n, lambda v, n: f"must be more than {n}, is {v}"),
    "exclusiveMaximum": _rule("maximum", lambda v, n: v < n, lambda v, n: f"must be less than {n}, is {v}"),
}
_OF_ARRAYS: dict[str, Callable[[Any], _Rule]] = {
    "minItems": _rule(
        "min_items", lambda v, n: len(v) >= n, lambda v, n: f"must have {n:,} items or more, has {len(v):,}"
    ),
    "maxItems": _rule(
        "max_items", lambda v, n: len(v) <= n, lambda v, n: f"must have {n:,} items or fewer, has {len(v):,}"
    ),
}


class _TooLong(Exception):
    pass


class _Check:
    """The state of one check of a value."""

    def __init__(self) -> None:
        #: How many schemas are around the part that is checked.
        self.depth = 0
        self.left = MAX_STEPS
        #: Whether a part of the value fits a definition, by their ids. Otherwise, a schema that refers to itself in several
        #: alternatives would take time exponential in the depth of the value.
        self.known: dict[tuple[int, int], bool] = {}

    def count(self, steps: int) -> None:
        """Raises `_TooLong`."""
        self.left -= steps
        if self.left < 0:
            raise _TooLong


class _Definitions:
    """What references of a schema refer to."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._parts: dict[str, _Subschema] = {}

    def part(self, reference: str) -> _Subschema:
        """The definition that `reference` names."""
        if reference not in self._parts:
            target: Any = self.root
            for name in reference.removeprefix("#/").split("/"):
                target = target[name]
            # Another thread may have compiled it.
            return self._parts.setdefault(reference, _Subschema(target, self))
        return self._parts[reference]


def _same(a: Any, b: Any) -> bool:
    """Whether JSON values are equal: 1 is 1.0, but not true."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _size(value: Any) -> int:
    """The number of values in a value, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return 1 + sum(map(_size, inner))


class _Choices:
    """The values of ``enum`` or ``const``."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        # 1 is 1.0, but not true, as in `_same`.
        self._plain = frozenset((isinstance(v, bool), v) for v in values if isinstance(v, _SCALARS))
        self._others = [v for v in values if not isinstance(v, _SCALARS)]

    @cached_property
    def _size(self) -> int:
        return sum(map(_size, self._others))

    def has(self, value: Any, check: _Check) -> bool:
        """Whether a value is one of them. Raises `_TooLong`."""
        if isinstance(value, _SCALARS):
            return (isinstance(value, bool), value) in self._plain
        check.count(self._size >> 2)
        return any(_same(value, other) for other in self._others)


class _Subschema:
    """A schema, or a schema within it, compiled."""

    def __init__(self, schema: Any, definitions: _Definitions) -> None:
        if "$defs" in schema and schema is not definitions.root:
            # A schema that was made separately has its own definitions.
            definitions = _Definitions(schema)

        def part(inner: Any) -> _Subschema:
            return _Subschema(inner if isinstance(inner, dict) else {}, definitions)

        def rules(table: dict[str, Callable[[Any], _Rule]]) -> list[_Rule]:
            return [make(schema[keyword]) for keyword, make in table.items() if keyword in schema]

        self._schema, self._definitions = schema, definitions
        self._reference: str | None = schema.get("$ref")
        self._is_type = not schema.keys() - {"type"}
        if self._reference is not None:
            return
        self._alternatives = [[*map(part, schema[c])] for c in ("anyOf", "oneOf") if c in schema]
        kinds = schema.get("type")
        self._kinds = None if kinds is None else [*dict.fromkeys(kinds if isinstance(kinds, list) else [kinds])]
        #: The classes whose values certainly have the type.
        self._classes = frozenset(c for k in self._kinds or () for c in _KINDS.get(k, ()))
        self._enum = _Choices(schema["enum"]) if "enum" in schema else None
        self._const = _Choices([schema["const"]]) if "const" in schema else None
        of_numbers, of_arrays = rules(_OF_NUMBERS), rules(_OF_ARRAYS)
        self._rules = {str: rules(_OF_TEXTS), int: of_numbers, float: of_numbers, list: of_arrays, tuple: of_arrays}
        self._prefix = [*map(part, schema.get("prefixItems", ()))]
        self._rest = part(schema["items"]) if isinstance(schema.get("items"), dict) else None
        self._properties = {name: part(inner) for name, inner in schema.get("properties", {}).items()}
        others = schema.get("additionalProperties")
        self._others = part(others) if isinstance(others, dict) else None
        self._is_closed = others is False
        self._required: Sequence[str] = schema.get("required", ())
        self._excludes: Sequence[Sequence[str]] = schema.get("x-excludes", ())

    def fits(self, value: Any, check: _Check, field: str = "", violations: list[Violation] | None = None) -> bool:
        """Whether a value matches. The violations are appended; without a list, the first one ends the check. Raises `_TooLong`."""
        if self._is_type and (type(value) in self._classes or self._has_type(value)):
            return True
        if violations is not None and len(violations) >= MAX_VIOLATIONS:
            return False
        check.count(1)
        if check.depth == MAX_WALK_DEPTH:
            return _report(violations, field, "depth", "is nested too deep")
        check.depth += 1
        if self._reference is None:
            fits = self._fits(value, check, field, violations)
        elif violations is None:
            fits = self._fits_definition(value, check)
        else:
            fits = self._target().fits(value, check, field, violations)
        check.depth -= 1
        return fits

    def _fits_definition(self, value: Any, check: _Check) -> bool:
        target = self._target()
        key = id(value), id(target)
        if key not in check.known:
            check.known[key] = target.fits(value, check)
        return check.known[key]

    def _target(self) -> _Subschema:
        return self._definitions.part(str(self._reference))

    def _has_type(self, value: Any) -> bool:
        return self._kinds is None or type(value) in self._classes or any(_is(value, k) for k in self._kinds)

    def _fits(self, value: Any, check: _Check, field: str, violations: list[Violation] | None) -> bool:
        for alternatives in self._alternatives:
            if not any(part.fits(value, check) for part in alternatives):
                # If exactly one alternative was meant, its violations explain the problem.
                meant = [] if violations is None else [part for part in alternatives if part.is_meant(value, check)]
                if len(meant) == 1:
                    return meant[0].fits(value, check, field, violations)
                return _report(violations, field, "type", lambda: f"expected {spell(self._schema)}, got {_show(value)}")
        if type(value) not in self._classes and not self._has_type(value):
            kinds = {"type": self._kinds}
            return _report(violations, field, "type", lambda: f"expected {spell(kinds)}, got {_show(value)}")
        fits = True
        if self._enum is not None and not self._enum.has(value, check):
            choices = self._enum.values
            fits = _report(violations, field, "enum", lambda: _no_choice(value, choices))
        if self._const is not None and not self._const.has(value, check):
            const = self._schema["const"]
            fits = _report(violations, field, "const", lambda: f"expected {literal(const)}, got {_show(value)}")
        for rule in self._rules.get(type(value), ()):
            if isinstance(value, str):
                # A pattern or a format may read the whole text.
                check.count(len(value) >> 8)
            for name, message in rule(value):
                fits = _report(violations, field, name, message)
        if fits or violations is not None:
            if isinstance(value, dict):
                return self._fits_object(value, check, field, violations) and fits
            if isinstance(value, (list, tuple)):
                return self._fits_array(value, check, field, violations) and fits
        return fits

    def _fits_array(self, value: Sequence[Any], check: _Check, field: str, violations: list[Violation] | None) -> bool:
        if not self._prefix and self._rest is None:
            return True
        check.count(len(value) >> 3)
        # It is copied for each item, and a name in it can have any length.
        field, fits = brief(field, MAX_FIELD), True
        for i, item in enumerate(value):
            part = self._prefix[i] if i < len(self._prefix) else self._rest
            if part is not None and not part.fits(
                item, check, f"{field}[{i}]" if violations is not None else "", violations
            ):
                fits = False
                if violations is None:
                    break
        return fits

    def _fits_object(
        self, value: dict[str, Any], check: _Check, field: str, violations: list[Violation] | None
    ) -> bool:
        check.count((len(value) + len(self._required)) >> 3)
        before, fits = f"{brief(field, MAX_FIELD)}." if field else "", True
        for name in self._required:
            if name not in value:
                if violations is None:
                    return False
                fits = _report(violations, f"{before}{name}", "required", "is required")
        for name, item in value.items():
            if not fits and violations is None:
                break
            part = self._properties.get(name, self._others)
            if part is not None:
                at = "" if violations is None else f"{before}{name}"
                fits = part.fits(item, check, at, violations) and fits
            elif self._is_closed:
                fits = _report(violations, f"{before}{name}", "unknown", partial(self._unknown, name))
        for names in self._excludes:
            # `in` can't be used here, because 0 equals False, but 0 counts as given.
            given = [n for n in names if value.get(n) is not None and value[n] is not False]
            if len(given) > 1:
                message = f"can't be given together with {' and '.join([given[0], *given[2:]])}"
                fits = _report(violations, f"{before}{given[1]}", "excludes", message)
        return fits

    def _unknown(self, name: object) -> str:
        from albert_tools.engine.model.nearest_name import did_you_mean

        return f"unknown name{did_you_mean(str(name), self._properties)}"

    def is_meant(self, value: Any, check: _Check) -> bool:
        """Whether a value that doesn't fit at least has the type, or is one of the choices: then this alternative was meant."""
        check.count(1)
        if check.depth == MAX_WALK_DEPTH:
            return False
        check.depth += 1
        is_meant = self._is_meant(value, check)
        check.depth -= 1
        return is_meant

    def _is_meant(self, value: Any, check: _Check) -> bool:
        if self._reference is not None:
            return self._target().is_meant(value, check)
        for alternatives in self._alternatives:
            if not any(part.fits(value, check) for part in alternatives):
                return sum(part.is_meant(value, check) for part in alternatives) == 1
        return self._has_type(value) and all(c is None or c.has(value, check) for c in (self._enum, self._const))


#: The compiled schemas, by the ids of their sources.
_compiled: dict[int, tuple[Schema, _Subschema]] = {}


def _subschema_of(schema: Schema) -> _Subschema:
    known = _compiled.get(id(schema))
    if known is None:
        if len(_compiled) >= _MAX_COMPILED:
            _compiled.clear()
        # The schema is kept, too, so that no other one gets its id.
        known = _compiled[id(schema)] = schema, _Subschema(schema, _Definitions(schema))
    return known[1]


def _no_choice(value: Any, choices: Sequence[Any]) -> str:
    """The message about a value that is none of the choices."""
    from albert_tools.engine.model.nearest_name import nearest

    near = nearest(value, [c for c in choices if isinstance(c, str)]) if isinstance(value, str) else None
    if near is not None:
        return f"{json.dumps(value)} is not one of the choices; did you mean {json.dumps(near)}?"
    return f"expected one of {', '.join(literal(v) for v in choices)}, got {_show(value)}"


def _show(value: Any) -> str:
    kind = kind_of(value)
    if kind not in ("str", "int", "float", "bool"):
        return kind
    try:
        text = literal(value)
    except ValueError:  # an integer with too many digits
        return kind
    return f"{kind} {text if len(text) <= 40 else text[:37] + '…'}"

"""Operators and f-strings."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.containers import anything, booleans, numbers, text_of
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.templates import Alternative, Constant, Count
from albert_tools.engine.analysis.values import (
    NEVER,
    REST,
    AbstractValue,
    Origins,
    constant,
    lost,
)
from albert_tools.engine.model.manifest import Hole
from albert_tools.grammar import tree

#: The operators that are computed for constants.
_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
#: The most pairs of constants that are computed, and the largest number and text among them.
_MAX_PAIRS, _MAX_NUMBER, _MAX_TEXT = 16, 1 << 40, 500


def binary(analysis: Analysis, node: tree.Node, left: AbstractValue, op: str, right: AbstractValue) -> AbstractValue:
    """``left op right``"""
    folded = _folded(left, op, right)
    if folded is not None:
        return folded
    result = _of_containers(analysis, node, left, op, right) if (left.sites or right.sites) and op != "%" else NEVER
    if op == "%" and right.sites:
        return text_of(analysis, left, right)  # a text that is formatted with a tuple or an object
    if not left.alternatives or not right.alternatives:
        # A text can be repeated by a number.
        return (
            result | text_of(analysis, left, right)
            if op == "*" and (left.alternatives or right.alternatives)
            else result
        )
    plain_left, plain_right = left._replace(sites=frozenset()), right._replace(sites=frozenset())
    if op != "+":
        if op in ("&", "|", "^"):
            return result | arithmetic(analysis, plain_left, plain_right) | booleans(analysis, plain_left, plain_right)
        counted = _count(plain_left, op, plain_right)
        if counted is not None:
            return result | counted
        return result | (text_of if op in "*%" else arithmetic)(analysis, plain_left, plain_right)
    counted = _count(plain_left, op, plain_right)
    if counted is not None:
        return result | counted
    if _is_number(left) or _is_number(right):
        return result | arithmetic(analysis, plain_left, plain_right)
    if _may_be_number(analysis, left) and _may_be_number(analysis, right):
        result = result | numbers(analysis, plain_left, plain_right)
    return result | concatenated(
        analysis, apart(analysis, node, plain_left, "left part"), apart(analysis, node, plain_right, "right part")
    )


def _folded(left: AbstractValue, op: str, right: AbstractValue) -> AbstractValue | None:
    function = _FOLDED.get(op)
    ours, theirs = left.constants(), right.constants()
    if function is None or not ours or not theirs or len(ours) * len(theirs) > _MAX_PAIRS:
        return None
    folded = NEVER
    for x in ours:
        for y in theirs:
            if any(isinstance(v, int) and abs(v) > _MAX_NUMBER for v in (x, y)):
                return None
            texts = [v for v in (x, y) if isinstance(v, str)]
            sizes = [v for v in (x, y) if isinstance(v, int)]
            if (op == "%" and texts) or (op == "*" and texts and sum(map(len, texts)) * max([*sizes, 1]) > _MAX_TEXT):
                return None
            with suppress(Exception):
                folded = folded | constant(function(x, y))
    return AbstractValue(folded.alternatives, left.data | right.data, left.control | right.control)


def arithmetic(analysis: Analysis, *values: AbstractValue) -> AbstractValue:
    """What is computed from values: a number if all of them are numbers, and not for example fractions or spans of time."""
    return numbers(analysis, *values) if are_numbers(analysis, *values) else text_of(analysis, *values)


def are_numbers(analysis: Analysis, *values: AbstractValue) -> bool:
    """Whether values are certainly numbers, booleans or None."""
    return not any(v.sites for v in values) and all(
        isinstance(t, Constant) or t == (templates.NUMBER,) or _has_number_type(analysis, t)
        for v in values
        for t in v.alternatives
    )


def _is_number(value: AbstractValue) -> bool:
    """Whether a value is certainly no text. The hole of a parameter can be its text: ``str(n)``."""
    return not value.sites and all(
        isinstance(t, Constant) or (len(t) == 1 and isinstance(t[0], Count)) for t in value.alternatives
    )


def _has_number_type(analysis: Analysis, t: Alternative) -> bool:
    """Whether a template is a length, or the value of a parameter that is a number."""
    part = t[0] if len(t) == 1 else ""
    if isinstance(part, Hole):
        return part.kind == "parameter" and _type_of(analysis, part) in ("integer", "number")
    return isinstance(part, Count)


def is_whole_number(analysis: Analysis, value: AbstractValue) -> bool:
    """Whether a value is certainly a whole number."""
    return not value.sites and all(
        (isinstance(t, Constant) and t.type == "int")
        or (len(t) == 1 and isinstance(t[0], Count))
        or (
            len(t) == 1
            and isinstance(t[0], Hole)
            and t[0].kind == "parameter"
            and _type_of(analysis, t[0]) == "integer"
        )
        for t in value.alternatives
    )


def _may_be_number(analysis: Analysis, value: AbstractValue) -> bool:
    return any(
        isinstance(t, Constant)
        or (len(t) == 1 and isinstance(t[0], Count))
        or (len(t) == 1 and isinstance(t[0], Hole) and t[0].kind in ("any", "number"))
        or (
            len(t) == 1 and isinstance(t[0], Hole) and t[0].kind == "parameter" and _type_of(analysis, t[0]) != "string"
        )
        for t in value.alternatives
    )


def _type_of(analysis: Analysis, hole: Hole) -> object:
    """The type of a parameter. Only texts inside a parameter are holes."""
    parameter = analysis.checked.definition.parameter(hole.name)
    return "string" if hole.path and not hole.path.endswith("~") else parameter and parameter.schema.get("type")


def _count(left: AbstractValue, op: str, right: AbstractValue) -> AbstractValue | None:
    """``len(x) + 1`` and ``limit - 1``: a number with a bound."""
    constants = right.constants()
    if (
        op not in "+-"
        or constants is None
        or len(constants) != 1
        or type(constants[0]) is not int
        or len(left.alternatives) != 1
    ):
        return None
    (only,) = left.alternatives
    more = constants[0] if op == "+" else -constants[0]
    if isinstance(only, Constant) or len(only) != 1:
        return None
    part = only[0]
    if isinstance(part, Count):
        alternative = (Count(part.key, part.more + more),)
        return AbstractValue(frozenset({alternative}), left.data | right.data, left.control | right.control)
    return None


def _of_containers(
    analysis: Analysis, node: tree.Node, left: AbstractValue, op: str, right: AbstractValue
) -> AbstractValue:
    """Lists that are joined or repeated, and the operators of sets and dictionaries."""
    sites = left.sites | right.sites
    if any(analysis.heap.kind(s) == "open" for s in sites):
        return anything(analysis, node, left, right)
    control = analysis.heap.shape(left) | analysis.heap.shape(right)
    if op != "+" or any(analysis.heap.kind(s) == "dict" for s in sites):
        # What is equal decides about sets. Counters keep what is positive.
        control |= analysis.heap.condition(right) | (analysis.heap.condition(left) if op != "*" else frozenset())
    containers = AbstractValue(data=left.data | right.data, control=control)
    for source in sites:
        original = analysis.heap.at[source]
        site = analysis.site(node, original.kind)
        containers = containers | analysis.heap.make(site, original.kind)
        for key, item in original.entries():
            analysis.heap.put(site, REST if original.kind == "list" else key, item.under(control))
        if original.kind == "list" and op in ("|", "&", "-", "^"):
            # One side can be a text, if the other one is the keys of a dictionary.
            for side in (left, right):
                analysis.heap.put(site, REST, analysis.heap.items(side._replace(sites=frozenset())).under(control))
        if original.default is not None:
            analysis.heap.set_default(site, original.default)
        # A counter that is subtracted adds what it has less than nothing of.
        if op in ("+", "|", "^") or (op == "-" and original.kind == "dict"):
            analysis.sized(site, "sum", analysis.remember(node, left, "left"), analysis.remember(node, right, "right"))
        elif op in ("-", "&"):
            analysis.sized(site, "length", analysis.remember(node, left, "left"))
        else:
            analysis.sized(site, "unknown")
    return containers


def concatenated(analysis: Analysis, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """A text followed by another; what is unknown makes an unknown text."""
    alternatives = templates.concatenated(
        left.alternatives or templates.ANYTHING, right.alternatives or templates.ANYTHING
    )
    return AbstractValue(
        alternatives,
        left.data | right.data | lost(alternatives, left.alternatives, right.alternatives),
        left.control | right.control,
    )


def apart(analysis: Analysis, node: object, value: AbstractValue, tag: str = "part") -> AbstractValue:
    """A value that becomes a part of a text. If nothing is known about it, the hole names the value, to keep its own origins."""
    if value.alternatives != templates.ANYTHING or not value.data:
        return value
    return value._replace(
        alternatives=frozenset({(Hole("any", call=analysis.encoded_value(analysis.remember(node, value, tag))),)})
    )


def formatted_text(analysis: Analysis, node: tree.Strings, control: Origins) -> AbstractValue:
    """An f-string."""
    text = AbstractValue(frozenset({()}))
    for p in node.pieces:
        if isinstance(p, tree.Text):
            text = concatenated(analysis, text, constant(p.value))
            continue
        for part in p.parts:
            value = (
                constant(part)
                if isinstance(part, str)
                else apart(analysis, part.value, _field(analysis, part, control))
            )
            text = concatenated(analysis, text, value)
    return text


def _field(analysis: Analysis, field: tree.Field, control: Origins) -> AbstractValue:
    value = analysis.evaluate(field.value, control)
    inner = [analysis.evaluate(p.value, control) for p in field.spec or () if not isinstance(p, str)]
    spec = "".join(p for p in field.spec or () if isinstance(p, str))
    return formatted(analysis, value, field.conversion, spec, inner)


def formatted(
    analysis: Analysis, value: AbstractValue, conversion: str | None, spec: str, inner: list[AbstractValue]
) -> AbstractValue:
    """A value as a field of a text. `inner` has the values in its specification; `spec` is complete if there are none."""
    if inner or conversion or value.sites:
        return text_of(analysis, value, *inner)
    if not spec:
        return value._replace(alternatives=templates.texts(value.alternatives))
    known = value.constants()
    if known and len(known) <= _MAX_PAIRS and not re.search(r"\d{3}", spec):
        text = NEVER
        for x in known:
            with suppress(Exception):
                text = text | constant(format(x, spec))
        return value._replace(alternatives=text.alternatives)
    # Dates take any format.
    if are_numbers(analysis, value) and re.fullmatch(r"[+-]?(0\d\d?)?(\.\d\d?)?[dfeg]", spec):
        return value._replace(alternatives=templates.SOME_NUMBER)
    return text_of(analysis, value)


def unary(analysis: Analysis, node: tree.UnaryOp, value: AbstractValue) -> AbstractValue:
    """``-x``, ``+x``, ``~x`` and ``not x``"""
    if node.op == "not":
        return text_of(analysis, value, alternatives=templates.TRUE_OR_FALSE)
    known = value.constants()
    if node.op == "-" and known and all(isinstance(x, int | float) for x in known):
        return value._replace(alternatives=templates.union(*[templates.constant(-x) for x in known]))  # type: ignore[operator]
    return arithmetic(analysis, value) if value.alternatives and not value.sites else anything(analysis, node, value)

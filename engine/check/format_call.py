"""The call ``'{} of {n:>3}'.format(a, n=b)`` of a literal whose fields only name arguments.

A field that reads an attribute (``{0.x}``) or an item (``{0[x]}``) is outside the language, and so is a template that is not
written in the source: a text could then read any attribute of the arguments.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import NamedTuple

from albert_tools.grammar import tree

_PLACE = re.compile(r"[0-9]{0,4}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class FormatField(NamedTuple):
    """``{total!r:>{width}}``. An argument is a position or a name. `inner` has the arguments in the specification.

    `spec` is None if it has fields.
    """

    argument: int | str
    conversion: str | None
    spec: str | None
    inner: tuple[int | str, ...]


def template_of(call: tree.Expr) -> str | None:
    """The text, if an expression is ``'a text'.format(…)``."""
    match call:
        case tree.Call(func=tree.Attribute(value=tree.Strings(constant=str() as text), attr="format")):
            return text
    return None


def read_template(template: str) -> list[str | FormatField]:
    """The texts and fields of a template.

    Raises:
        ValueError: Python can't read the template, or a field is not in the language. The text describes the problem.
    """
    reader = _Reader()
    parts: list[str | FormatField] = []
    for before, name, spec, conversion in Formatter().parse(template):
        if before:
            parts.append(before)
        if name is not None:
            parts.append(reader.field(name, spec or "", conversion))
    return parts


def missing_argument(call: tree.Call, fields: list[str | FormatField]) -> int | str | None:
    """An argument that a field needs and the call certainly does not have."""
    places = None if any(isinstance(a, tree.Starred) for a in call.args) else len(call.args)
    names = None if any(k.arg is None for k in call.keywords) else {k.arg for k in call.keywords}
    for field in fields:
        if isinstance(field, str):
            continue
        for argument in (field.argument, *field.inner):
            if isinstance(argument, int):
                if places is not None and argument >= places:
                    return argument
            elif names is not None and argument not in names:
                return argument
    return None


class _Reader:
    """Reads the fields of one template. Those without a name count on."""

    def __init__(self) -> None:
        self._count = 0
        self._numbered = False

    def field(self, name: str, spec: str, conversion: str | None) -> FormatField:
        argument = self._argument(name)
        if conversion not in (None, "r", "s", "a"):
            raise ValueError(f"there is no conversion !{conversion}")
        if "{" not in spec:
            return FormatField(argument, conversion, spec, ())
        inner = []
        for _, within, deeper, _ in Formatter().parse(spec):
            if within is not None:
                if deeper:
                    raise ValueError("a field inside of a field has no format of its own")
                inner.append(self._argument(within))
        return FormatField(argument, conversion, None, tuple(inner))

    def _argument(self, name: str) -> int | str:
        if not _PLACE.fullmatch(name):
            if not _NAME.fullmatch(name):
                raise ValueError(f"the field {{{name}}} does not name an argument")
            return name
        if self._count and self._numbered != bool(name):
            raise ValueError("either all fields have a number or none")
        self._numbered = bool(name)
        self._count += 1
        return int(name) if name else self._count - 1

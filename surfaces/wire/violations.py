"""Checks a message against the rules in `tool.proto`, and names what is violated in the words of our own schemas."""

from __future__ import annotations

from typing import Any

import protovalidate

from albert_tools.engine.model.bounds import MAX_ITEMS
from albert_tools.surfaces.wire import tool_pb2 as pb

#: The rules of protovalidate, under the names that a tool's schema has for them. Our own rules already have such names.
_NAMES = {
    "string.max_len": "max_length",
    "string.max_bytes": "max_bytes",
    "string.not_contains": "nul",
    "string.in": "enum",
    "bytes.len": "length",
    "bytes.max_len": "max_bytes",
    "uint64.lte": "maximum",
    "repeated.max_items": "max_items",
    "message.oneof": "excludes",
}
_MESSAGES = {"nul": "must not contain a NUL character"}

_VALIDATOR = protovalidate.Validator()


def violations(message: Any) -> list[pb.ValidationError]:
    """All violations of the rules, in the order of the fields. The list is empty if the message is valid.

    Lists with too many entries are cut in place, so that the time and the answer have a bound.
    """
    _cut(message)
    return [_shown(violation.proto) for violation in _VALIDATOR.collect_violations(message)]


def _cut(message: Any) -> None:
    for field, value in message.ListFields():
        if field.is_repeated:
            # One entry more than allowed is enough to report the number.
            del value[MAX_ITEMS + 1 :]
        elif field.message_type is not None:
            _cut(value)


def _shown(violation: Any) -> pb.ValidationError:
    place = ""
    for element in violation.field.elements if violation.field else ():
        place += f".{element.field_name}" if place else element.field_name
        if element.subscript is not None:
            place += f"[{element.subscript.value}]"
    rule = _NAMES.get(violation.rule_id, violation.rule_id)
    return pb.ValidationError(field=place, rule=rule, message=_MESSAGES.get(rule, violation.message))

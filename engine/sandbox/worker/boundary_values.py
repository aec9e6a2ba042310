"""Copies and limits the values that pass between service and worker.

Both sides accept the same types: None, bool, 64-bit int, finite float, valid Unicode, list, and dict with string keys. In this
folder, these values are called the *domain*. Tuples are converted to lists, and dictionary types of a façade to plain
dictionaries. No other value leaves a program.

Nodes, bytes and depth are counted before a value is encoded. A shared part is counted each time it occurs: thirty lists, where
each contains the previous one twice, have a billion nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from albert_tools.engine.model.bounds import MAX_WRITE
from albert_tools.engine.model.json_values import MAX_INT, MIN_INT, REMEDIES
from albert_tools.engine.model.limits import LARGE_STRING, MAX_NODES, MAX_VALUE_DEPTH, MiB

#: The most bytes of a call's arguments or its answer: the largest file that a primitive reads or writes, and the other values.
MAX_ANSWER = MAX_WRITE + 4 * MiB

_INFINITY = float("inf")


class BadFrame(Exception):
    """The received bytes are not a valid message."""


class Unexportable(Exception):
    """A value that can't be exported. `code` is ``not_json`` or ``result_limit``. The text names the position of the value and a
    remedy."""

    def __init__(self, code: str, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.hint = hint
        #: The indices and keys of the value's position, innermost first.
        self.path: list[Any] = []

    def sentence(self, what: str) -> str:
        """The message. `what` describes the value."""
        if self.code != "not_json":
            return f"{what} {self.problem}"
        path = self.path[::-1]
        place = "".join(f"[{_brief(p)}]" for p in path[:6]) + ("…" if len(path) > 6 else "")
        where = f" at {place}" if place else ""
        return f"{what} holds {self.problem}{where}, which can't leave the program: {self.hint}"


def export(value: Any, max_bytes: int, beside: Callable[[str], Any] | None = None) -> Any:
    """A copy of `value` with only types of the domain. The copy shares no mutable object with `value`.

    Args:
        value: Any value of a program.
        max_bytes: The most bytes: the UTF-8 bytes of all strings, and eight for each value.
        beside: Takes each string longer than `LARGE_STRING`, and returns its replacement in the copy.

    Raises:
        Unexportable: the value has a wrong type or is too large.
    """
    exporter = _Exporter(max_bytes, beside)
    copy = exporter.copy(value, 0)
    if exporter.size > max_bytes:  # `copy` adds up texts, and only checks the sum at the next container.
        raise exporter.too_large()
    return copy


class _Exporter:
    __slots__ = ("beside", "max_bytes", "nodes", "size")

    def __init__(self, max_bytes: int, beside: Callable[[str], Any] | None) -> None:
        self.beside = beside
        self.max_bytes = max_bytes
        self.nodes = 1
        self.size = 8

    def copy(self, v: Any, depth: int) -> Any:
        kind = type(v)
        if kind is str:
            self.size += len(v) if v.isascii() else _utf8(v)
            return v if len(v) <= LARGE_STRING or self.beside is None else self.beside(v)
        if v is None or kind is bool:
            return v
        if kind is int:
            if MIN_INT <= v <= MAX_INT:
                return v
            raise Unexportable("not_json", "an int beyond 64 bits", "convert it with str(…)")
        if kind is float:
            if -_INFINITY < v < _INFINITY:
                return v
            raise Unexportable("not_json", f"the float {v!r}", "JSON has no such number")
        if depth >= MAX_VALUE_DEPTH:
            raise Unexportable("result_limit", f"nests deeper than {MAX_VALUE_DEPTH} levels, or holds itself")
        if isinstance(v, list | tuple):
            self.charge(len(v), 8 * len(v))
            items: list[Any] = []
            try:
                for e in v:
                    items.append(self.copy(e, depth + 1))
            except Unexportable as error:
                error.path.append(len(items))
                raise
            return items
        if isinstance(v, dict):
            # A key has eight bytes and its text, too.
            self.charge(len(v), 16 * len(v))
            members: dict[str, Any] = {}
            k: Any = None
            try:
                for k, e in v.items():
                    if type(k) is not str:
                        raise _BadKey(k)
                    self.size += len(k) if k.isascii() else _utf8(k)
                    members[k] = self.copy(e, depth + 1)
            except _BadKey:
                hint = "keys are strings: convert them with str(…)"
                raise Unexportable("not_json", f"the key {_brief(k)}", hint) from None
            except Unexportable as error:
                error.path.append(k)
                raise
            return members
        if isinstance(v, int):
            # Since Python 3.12, `calendar.weekday` returns an enum of ints.
            return self.copy(int(v), depth)
        raise Unexportable("not_json", _article(kind.__name__), REMEDIES.get(kind.__name__, "convert it with str(…)"))

    def charge(self, nodes: int, size: int) -> None:
        """Count the items of a container before they are copied, so that a long one fails early. Check all sums."""
        self.nodes += nodes
        self.size += size
        if self.nodes > MAX_NODES:
            raise Unexportable("result_limit", f"has more than {MAX_NODES:,} values")
        if self.size > self.max_bytes:
            raise self.too_large()

    def too_large(self) -> Unexportable:
        """The refusal of a value with too many bytes."""
        return Unexportable("result_limit", f"is larger than {self.max_bytes:,} bytes")


class _BadKey(Exception):
    pass


def _utf8(text: str) -> int:
    """The length of a text in UTF-8.

    Raises:
        Unexportable: the text contains a lone surrogate.
    """
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Unexportable("not_json", "text with a lone surrogate", "it is not valid Unicode") from None


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _brief(value: Any) -> str:
    """A short text for a value. Never calls `repr` of a large value or an unknown type."""
    if type(value) is str:
        return repr(value if len(value) <= 24 else value[:23] + "…")
    if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 10**20):
        return repr(value)
    return _article(type(value).__name__)

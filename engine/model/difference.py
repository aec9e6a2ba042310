"""Find the first difference between two JSON values, so that a message shows it and not two equal beginnings."""

from __future__ import annotations

from typing import Any, NamedTuple

from albert_tools.engine.model.messages import brief

_MAX_SHOWN = 120
#: Longer texts are shown from shortly before their first difference.
_SHORT_TEXT = 60
_BEFORE, _AFTER = 20, 40
_NOTHING = object()


class Difference(NamedTuple):
    """The place of a difference (``.rows[0].name``; empty for the whole value), and both values there as text."""

    place: str
    expected: str
    got: str

    def __str__(self) -> str:
        at = f" at {self.place.strip()}" if self.place else ""
        return f"differs{at}: expected {self.expected}, got {self.got}"


def difference(expected: Any, got: Any) -> Difference | None:
    """The first difference of two values; None if they are equal as in Python, except that a bool never equals a number."""
    pairs: list[tuple[str, Any, Any]]
    if isinstance(expected, dict) and isinstance(got, dict):
        pairs = [(_step(k), expected.get(k, _NOTHING), got.get(k, _NOTHING)) for k in {**expected, **got}]
    elif isinstance(expected, list) and isinstance(got, list):
        both = min(len(expected), len(got))
        pairs = [(f"[{i}]", expected[i], got[i]) for i in range(both)]
        pairs += [(f"[{both}]", e, _NOTHING) for e in expected[both : both + 1]]
        pairs += [(f"[{both}]", _NOTHING, g) for g in got[both : both + 1]]
    elif isinstance(expected, bool) == isinstance(got, bool) and expected == got:
        return None
    elif isinstance(expected, str) and isinstance(got, str) and min(len(expected), len(got)) > _SHORT_TEXT:
        return _in_text(expected, got)
    else:
        return Difference("", shown(expected), shown(got))
    for step, one, other in pairs:
        inner = difference(one, other)
        if inner is not None:
            return inner._replace(place=step + inner.place)
    return None


def shown(value: Any) -> str:
    """A value as text, shortened for a message."""
    return "nothing" if value is _NOTHING else brief(repr(value), _MAX_SHOWN)


def _step(key: Any) -> str:
    plain = isinstance(key, str) and key.isidentifier()
    return f".{key}" if plain else f"[{brief(repr(key), _SHORT_TEXT)}]"


def _in_text(expected: str, got: str) -> Difference:
    same, most = 0, min(len(expected), len(got))
    while same < most:  # find the length of the common beginning, by halves
        middle = (same + most + 1) // 2
        if expected[same:middle] == got[same:middle]:
            same = middle
        else:
            most = middle - 1
    line = expected.count("\n", 0, same) + 1
    place = f" line {line}" if "\n" in expected or "\n" in got else f" character {same + 1}"
    start = max(expected.rfind("\n", 0, same) + 1, same - _BEFORE)
    cut = "…" if start else ""
    return Difference(place, *(cut + shown(text[start : same + _AFTER]) for text in (expected, got)))

"""Texts that are made of values: JSON, rows of CSV, queries of URLs, base64.

Such a text is a hole that keeps its value, so a review shows the constants in it beside the data. The hole of an analysis names
its value by a number, like the hole of an output names its call: the value may still grow.
"""

from __future__ import annotations

from collections.abc import Callable

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.calls import Invocation
from albert_tools.engine.analysis.containers import is_plain_list, text_of
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import EMPTY_TEXT, NEVER, AbstractValue, join, without_constants
from albert_tools.engine.model.manifest import Hole, HoleKind

_Function = Callable[[Analysis, Invocation], AbstractValue]
#: The arguments of `json.dumps` that do not change what the text means.
_ORDINARY = frozenset({"skipkeys", "ensure_ascii", "check_circular", "allow_nan", "sort_keys"})
_UTF_8 = frozenset({"utf-8", "utf8", "ascii", "us-ascii"})


def encoded(analysis: Analysis, kind: HoleKind, node: object, value: AbstractValue) -> AbstractValue:
    """A value as a text of this kind, made at a node."""
    hole = Hole(kind, call=analysis.encoded_value(analysis.remember(node, value, kind)))
    return text_of(analysis, value, alternatives=frozenset({(hole,)}))


def json_text(analysis: Analysis, call: Invocation) -> AbstractValue:
    """`json.dumps`"""
    given = call.arguments
    if (
        len(given.positional) != 1
        or given.more is not NEVER
        or not all(
            name in _ORDINARY or (name in _KEEPS_JSON and _KEEPS_JSON[name](analysis, value))
            for name, value in given.named.items()
        )
    ):
        return text_of(analysis, *call.all)
    options = text_of(analysis, *given.named.values()) if given.named else NEVER
    text = encoded(analysis, "json", call.node, given.positional[0])
    return AbstractValue(text.alternatives, text.data | without_constants(options.data), text.control | options.control)


def _keeps_indent(analysis: Analysis, value: AbstractValue) -> bool:
    known = value.constants()
    return known is not None and all(not isinstance(k, str) or not k.strip(" \t\r\n") for k in known)


def _keeps_separators(analysis: Analysis, value: AbstractValue) -> bool:
    if value.constants() == [None]:
        return True
    items = is_plain_list(analysis, value)
    texts = [item.constants() for item in items or ()]
    return len(texts) == 2 and all(
        known is not None and all(isinstance(k, str) and k.strip(" \t\r\n") == separator for k in known)
        for known, separator in zip(texts, ",:", strict=True)
    )


_KEEPS_JSON = {"indent": _keeps_indent, "separators": _keeps_separators}


def _of_first(kind: HoleKind) -> _Function:
    """A function that encodes its only argument."""

    def function(analysis: Analysis, call: Invocation) -> AbstractValue:
        given = call.arguments
        if len(given.positional) != 1 or given.named or given.more is not NEVER:
            return text_of(analysis, *call.all)
        return encoded(analysis, kind, call.node, given.positional[0])

    return function


def _base64(analysis: Analysis, call: Invocation) -> AbstractValue:
    """`b64encode` and its like, of bytes that a text was encoded to. The result is bytes, too."""
    given = call.arguments
    content = (
        _content_of_bytes(analysis, given.positional[0]) if len(given.positional) == 1 and len(call.all) == 1 else None
    )
    if content is None:
        return text_of(analysis, *call.all)
    text = encoded(analysis, "base64", call.node, content)
    return encoded(analysis, "bytes", call.node, text)


def as_bytes(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """``text.encode()``"""
    if receiver.sites or not _is_utf_8(call):
        return text_of(analysis, receiver, *call.all)
    return encoded(analysis, "bytes", call.node, receiver)


def as_text(analysis: Analysis, receiver: AbstractValue, call: Invocation) -> AbstractValue:
    """``content.decode()``"""
    content = _content_of_bytes(analysis, receiver) if _is_utf_8(call) else None
    if content is None:
        return text_of(analysis, receiver, *call.all)
    return AbstractValue(content.alternatives, receiver.data, receiver.control)


def joined(
    analysis: Analysis, node: object, text: AbstractValue, separators: templates.Alternatives
) -> templates.Alternatives:
    """Any number of such texts, with one of the separators between them."""
    if text.sites or (text.alternatives >= templates.ANYTHING and separators == EMPTY_TEXT.alternatives):
        return templates.ANYTHING
    number = analysis.encoded_value(
        analysis.remember(node, text._replace(alternatives=templates.texts(text.alternatives)), "joined")
    )
    return frozenset((Hole("joined", call=number, of=templates.stored(s)),) for s in separators)


def _is_utf_8(call: Invocation) -> bool:
    known = [v.constants() for v in call.all[:1]]
    return len(call.all) < 2 and all(k is not None and all(str(x).lower() in _UTF_8 for x in k) for k in known)


def _content_of_bytes(analysis: Analysis, value: AbstractValue) -> AbstractValue | None:
    """The texts that bytes were encoded from; None if they are not known."""
    holes = [t[0] for t in value.alternatives if len(t) == 1 and isinstance(t[0], Hole)]
    if value.sites or len(holes) < len(value.alternatives) or not all(h.kind == "bytes" for h in holes):
        return None
    return join(analysis.content_of(hole) for hole in holes)


ENCODERS: dict[str, _Function] = {
    "json.dumps": json_text,
    "urllib.parse.urlencode": _of_first("query"),
    "urllib.parse.quote": _of_first("percent"),
    "urllib.parse.quote_plus": _of_first("percent"),
    **dict.fromkeys([f"base64.{n}" for n in ("b64encode", "standard_b64encode", "urlsafe_b64encode")], _base64),
}

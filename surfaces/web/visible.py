"""Text by agents on a page: every character is what it looks like.

`plain` is applied to everything that a template prints, so it must be right in text and in attributes. `marked` is for the places
that a person reads closely: it names hidden characters, and marks letters that look like others.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any

from markupsafe import Markup, escape

from albert_tools.engine.model.visible_text import escape_invisible, look_alikes, safe


def plain(value: Any) -> Any:
    """The value for Jinja's autoescape: hidden characters are written as escapes, ``\\u202e``. Markup is left as it is."""
    if hasattr(value, "__html__"):
        return value
    text = "" if value is None else str(value)
    return safe(escape_invisible(text)) if not (text.isascii() and text.isprintable()) else text


def marked(value: Any) -> Markup:
    """Markup with the text. A hidden character stands as its number, and look-alike letters are marked, each with its name."""
    text = str(value)
    if text.isascii() and "\x7f" not in text and all(c >= " " or c in "\n\t" for c in text):
        return escape(text)
    parts, word = [Markup()], ""
    for c in text:
        if c.isspace() and c in " \n\t":
            parts += [_word(word), escape(c)]
            word = ""
        else:
            word += c
    return Markup("").join([*parts, _word(word)])


def _word(word: str) -> Markup:
    if word.isascii() and word.isprintable():
        return escape(word)
    mixed = look_alikes(word) is not None
    return Markup("").join(_character(c, mixed) for c in word)


@lru_cache(4096)
def _character(c: str, mixed: bool) -> Markup:
    if plain(c) != c:
        return Markup('<span class="hidden-character" title="{}">{}</span>').format(_name(c), f"U+{ord(c):04X}")
    if mixed and look_alikes(f"a{c}") is not None:
        return Markup('<mark class="look-alike" title="{}">{}</mark>').format(_name(c), c)
    return escape(c)


def _name(c: str) -> str:
    return unicodedata.name(c, f"character U+{ord(c):04X}")

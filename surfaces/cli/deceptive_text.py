"""Characters that aren't what they look like: nothing at all, another kind of space, or a letter of another script.

Whoever is asked about a call reads it, and allows what is read. So where a call is shown to be allowed, what can't be seen is
spelled out; and where letters of a script that has Latin's shapes stand among Latin ones, it is said which. Both are ordinary
in ordinary text, so nowhere else is anything made of them.
"""

from __future__ import annotations

import unicodedata

#: Scripts and forms with letters that look like ASCII's, by the first word of their characters' names.
_LIKE = frozenset(
    "CYRILLIC GREEK ARMENIAN CHEROKEE COPTIC LISU DESERET GOTHIC FULLWIDTH MATHEMATICAL DOUBLE-STRUCK SCRIPT "
    "BLACK-LETTER SMALL ROMAN".split()
)
#: What takes no room, or only that of a space, though it is neither a control character nor a space by its category.
_UNSEEN = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0100, 0xE01EF),
)
#: Letters that are told of one text.
_TOLD = 5


def seen(text: str) -> str:
    """The text with what can't be seen, or not told from a space, spelled out as JSON would."""
    if text.isascii():
        return text
    return "".join(c if c.isascii() or _visible(c) else _spelled(c) for c in text)


def _visible(c: str) -> bool:
    if unicodedata.category(c) in ("Zs", "Cn"):
        return False
    return not any(first <= ord(c) <= last for first, last in _UNSEEN)


def _spelled(c: str) -> str:
    code = c.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[i : i + 4]}" for i in range(0, len(code), 4))


def look_alikes(text: str) -> str | None:
    """A sentence about letters that stand in one word with ASCII's and may be taken for them; None where there are none."""
    if text.isascii():
        return None
    found: dict[str, None] = {}
    for word in text.split():
        if not word.isascii() and any(c.isascii() and c.isalpha() for c in word):
            found |= {c: None for c in word if not c.isascii() and c.isalnum() and _script(c) in _LIKE}
    if not found:
        return None
    told = [f"{c} is {unicodedata.name(c)}" for c in list(found)[:_TOLD]]
    more = len(found) - len(told)
    return ", ".join(told) + (f", and {more} more" if more else "")


def _script(c: str) -> str:
    return unicodedata.name(c, "").partition(" ")[0]

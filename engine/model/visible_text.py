"""Makes untrusted text visible: escapes for what a terminal would interpret, for invisible characters, and for look-alike letters.

A person who approves a call relies on what is visible. Therefore questions and reviews also escape invisible characters, and report
or escape letters that look like Latin letters within a Latin word. Both occur in normal text, so other output keeps them.
"""

from __future__ import annotations

import unicodedata

from albert_tools.grammar.source_text import BLANK

#: Scripts and forms with letters that look like ASCII letters, by the first word of their Unicode names.
_LIKE = frozenset(
    "CYRILLIC GREEK ARMENIAN CHEROKEE COPTIC LISU DESERET GOTHIC FULLWIDTH MATHEMATICAL DOUBLE-STRUCK SCRIPT "
    "BLACK-LETTER SMALL ROMAN".split()
)
#: Letters that look exactly like an ASCII letter in most fonts. A word of nothing else can't be told from a Latin one.
_SAME = frozenset("асеорхуѕіјһԁӏԛԝАВЕЅІЈКМНОРСТХУԌԚԜοινυρχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
#: Number of letters that are reported for one text.
_MAX_REPORTED = 5


def safe(text: str) -> str:
    """The text with escapes for everything that a terminal would interpret, except newlines and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in "\n\t" or harmless(c) else _python_escape(c) for c in text)


def one_line(text: str) -> str:
    """Like `safe`, but newlines and tabs are escaped too, so the text can't imitate a line of our output."""
    return safe(text).replace("\n", "\\n").replace("\t", "\\t")


def visible(text: str) -> str:
    """One line in which every character is what it looks like: control, invisible and look-alike characters are escaped."""
    if text.isascii() and text.isprintable():
        return text
    alike = set(_look_alikes(text))
    return one_line(escape_invisible("".join(_spelled(c) if c in alike else c for c in text)))


def harmless(c: str) -> bool:
    """Whether a terminal only shows the character."""
    return unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _python_escape(c: str) -> str:
    return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" if ord(c) < 65536 else f"\\U{ord(c):08x}"


def escape_invisible(text: str) -> str:
    """The text with JSON escapes for characters that are invisible or look like a space."""
    if text.isascii():
        return text
    return "".join(c if c.isascii() or _visible(c) else _spelled(c) for c in text)


def _visible(c: str) -> bool:
    return unicodedata.category(c) not in ("Zs", "Cn") and not BLANK.match(c)


def _spelled(c: str) -> str:
    code = c.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[i : i + 4]}" for i in range(0, len(code), 4))


def look_alikes(text: str) -> str | None:
    """Names letters that look like ASCII letters, in words that also have ASCII letters or have no other letters.

    Returns None if there are no such letters.
    """
    letters = _look_alikes(text)
    if not letters:
        return None
    names = [f"{c} is {unicodedata.name(c)}" for c in letters[:_MAX_REPORTED]]
    more = len(letters) - len(names)
    return ", ".join(names) + (f", and {more} more" if more else "")


def _look_alikes(text: str) -> list[str]:
    if text.isascii():
        return []
    letters: dict[str, None] = {}
    for word in text.split():
        if word.isascii():
            continue
        if any(c.isascii() and c.isalpha() for c in word) or _SAME.issuperset(c for c in word if c.isalpha()):
            letters |= {c: None for c in word if not c.isascii() and c.isalnum() and _script(c) in _LIKE}
    return list(letters)


def _script(c: str) -> str:
    return unicodedata.name(c, "").partition(" ")[0]

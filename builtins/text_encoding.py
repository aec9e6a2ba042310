"""Bytes to text and back, exactly or not at all.

A guess at an encoding that is wrong once is a file that is damaged silently. So there is none: bytes that are
not text in the encoding asked for are a failure that says where; and a NUL, which no text holds, is one, too.
"""

from __future__ import annotations

import codecs

from albert_tools.engine.model.failure import Failure

#: Encodings of host names; their decoders take time quadratic in the size, and no file is written in them.
_NOT_FOR_FILES = frozenset({"idna", "punycode"})


def known_encoding(name: str) -> str:
    """The encoding's proper name.

    Raises:
        Failure: `encoding_error`: there is none of that name, or it does not decode to text.
    """
    try:
        found = codecs.lookup(name)
        # One byte, as Python doesn't look for none; LookupError for what doesn't lead to text (hex, rot13).
        b"x".decode(name)
    except UnicodeDecodeError:
        pass
    except (LookupError, ValueError):
        raise _unknown(name) from None
    if found.name in _NOT_FOR_FILES:
        raise _unknown(name)
    return found.name


def decode(data: bytes, encoding: str, what: str, cut: bool = False, hint: str | None = None) -> str:
    """`data` as text; `what` names it in the failure. With `cut`, a character that the end cuts in two is
    dropped. `hint` says what to do where it isn't text.

    Raises:
        Failure: `encoding_error`, with the offset in bytes of the first one that does not fit.
    """
    name = known_encoding(encoding)
    try:
        text = codecs.getincrementaldecoder(name)("strict").decode(data, final=not cut)
        text.encode("utf-8")  # Some encodings (UTF-7) can spell half a surrogate pair, which is not text.
    except UnicodeDecodeError as error:
        raise not_text(what, name, error.start, hint) from None
    except UnicodeError as error:
        raise Failure("encoding_error", f"{what} is not {encoding} text: {error}") from None
    return text


def not_text(what: str, name: str, offset: int, hint: str | None = None) -> Failure:
    """The failure where a byte doesn't fit the encoding `name`; `hint` is for what isn't UTF-8."""
    return Failure(
        "encoding_error",
        f"{what} is not {name} text: byte {offset} does not fit",
        hint=hint if name == "utf-8" else None,
        details={"encoding": name, "offset": offset},
    )


def demand_text(text: str, name: str, what: str) -> None:
    """Refuse what decodes and is binary all the same, which a NUL tells; but not where every byte is asked for as a character.

    Raises:
        Failure: `encoding_error`.
    """
    if "\0" in text and name != "iso8859-1":
        raise Failure(
            "encoding_error",
            f"{what} is binary, not text: it holds a NUL",
            hint="encoding='latin-1' makes a character of each byte, whatever it is",
            details={"encoding": name},
        )


def encode(text: str, what: str) -> bytes:
    """`text` as UTF-8; `what` names it in the failure.

    Raises:
        Failure: `encoding_error`: it holds half a surrogate pair, which no file can.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Failure(
            "encoding_error",
            f"{what} is not valid Unicode: character {error.start} is half a surrogate pair",
            details={"encoding": "utf-8", "offset": error.start},
        ) from None


def _unknown(name: str) -> Failure:
    return Failure(
        "encoding_error",
        f"there is no text encoding {name[:80]!r}",
        hint="common ones: utf-8, utf-16, latin-1, cp1252",
    )

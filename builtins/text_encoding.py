"""Converts bytes to text and back, exactly or not at all.

Encodings are never guessed, because one wrong guess damages a file silently. If bytes are not text in the requested encoding, the
conversion fails and names the position. It also fails for a NUL, because text does not contain NULs.
"""

from __future__ import annotations

import codecs

from albert_tools.engine.model.failure import Failure

#: Encodings of host names. Their decoders take quadratic time, and no file uses them.
_NOT_FOR_FILES = frozenset({"idna", "punycode"})


def known_encoding(name: str) -> str:
    """The canonical name of an encoding.

    Raises:
        Failure: `encoding_error`: the encoding is unknown, or does not decode to text.
    """
    try:
        encoding = codecs.lookup(name)
        # Python checks the codec only if there is a byte to decode. LookupError: the codec does not produce text (hex, rot13).
        b"x".decode(name)
    except UnicodeDecodeError:
        pass
    except (LookupError, ValueError):
        raise _unknown(name) from None
    if encoding.name in _NOT_FOR_FILES:
        raise _unknown(name)
    return encoding.name


def decode(data: bytes, encoding: str, what: str, cut: bool = False, hint: str | None = None) -> str:
    """Decode `data`.

    Args:
        data: The bytes.
        encoding: Any text encoding that Python knows.
        what: What the failure calls the data.
        cut: Whether the data was cut at the end. Then an incomplete last character is dropped.
        hint: Hint of the failure if the data is not UTF-8.

    Raises:
        Failure: `encoding_error`, with the offset of the first invalid byte.
    """
    name = known_encoding(encoding)
    try:
        text = codecs.getincrementaldecoder(name)("strict").decode(data, final=not cut)
        text.encode("utf-8")  # Some encodings (UTF-7) can encode half a surrogate pair, which is not text.
    except UnicodeDecodeError as error:
        raise not_text(what, name, error.start, hint) from None
    except UnicodeError as error:
        raise Failure("encoding_error", f"{what} is not {encoding} text: {error}") from None
    return text


def not_text(what: str, name: str, offset: int, hint: str | None = None) -> Failure:
    """The failure for a byte that is invalid in the encoding `name`. `hint` is used for UTF-8 only."""
    return Failure(
        "encoding_error",
        f"{what} is not {name} text: byte {offset} does not fit",
        hint=hint if name == "utf-8" else None,
        details={"encoding": name, "offset": offset},
    )


def demand_text(text: str, name: str, what: str) -> None:
    """Refuse text with a NUL: such text is binary data that happens to decode. Latin-1, which maps every byte, is exempt.

    Raises:
        Failure: `encoding_error`.
    """
    if "\0" in text and name != "iso8859-1":
        raise Failure(
            "encoding_error",
            f"{what} is binary, not text: it contains a NUL",
            hint="encoding='latin-1' reads any byte as one character",
            details={"encoding": name},
        )


def encode(text: str, what: str) -> bytes:
    """Encode `text` as UTF-8; `what` is its name in the failure.

    Raises:
        Failure: `encoding_error`: the text contains half a surrogate pair.
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
        f"unknown text encoding {name[:80]!r}",
        hint="common ones: utf-8, utf-16, latin-1, cp1252",
    )

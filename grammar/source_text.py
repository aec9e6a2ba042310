"""The first stage of reading a source: its size, its encoding and its line ends. It needs no parser."""

from __future__ import annotations

import re

from albert_tools.grammar.diagnostic import Diagnostic, Span

#: The size of a source. A source is a small program, and the time of both parsers is proportional to its size.
MAX_SOURCE_BYTES = 128 * 1024

#: Characters that Python calls printable and that show nothing. With them, and with unprintable characters, a reviewer could see a
#: different program.
BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")

_SAVE_AS_UTF8 = "save the source as UTF-8"


def source_text(source: str | bytes) -> str | Diagnostic:
    """The text of a source, whose lines end with ``\\n``. If it is too large or not Unicode, the finding that says so."""
    top = Span(1, 1, 1, 1)
    # A character has at least one byte, so a text that is too long is refused before it is encoded.
    size = len(source)
    if size <= MAX_SOURCE_BYTES and isinstance(source, str):
        try:
            size = len(source.encode())
        except UnicodeEncodeError as error:
            return Diagnostic("not-text", f"the source is not valid Unicode ({error.reason})", top, hint=_SAVE_AS_UTF8)
    if size > MAX_SOURCE_BYTES:
        return Diagnostic(
            "source-too-large",
            f"the source has {size:,} bytes; at most {MAX_SOURCE_BYTES:,} are allowed",
            top,
            hint="split it into several tools that call each other, and keep data in files",
        )
    if isinstance(source, bytes):
        try:
            source = source.decode()
        except UnicodeDecodeError as error:
            return Diagnostic(
                "not-text", f"the source is not UTF-8: byte {error.start} is invalid", top, hint=_SAVE_AS_UTF8
            )
    text = re.sub("\r\n?", "\n", source.removeprefix("\ufeff"))
    return text if text.endswith("\n") else text + "\n"

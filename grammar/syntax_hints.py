"""Hints for texts that are not Python.

CPython's message describes the error. After a typing error, or with the syntax of another language, an author also needs the
correct form. Two tables contain the hints: the first by CPython's message, the second by the text of the line.
"""

from __future__ import annotations

import re

#: CPython's message → the hint.
_BY_MESSAGE: tuple[tuple[str, str], ...] = (
    (r"Missing parentheses in call to 'print'", 'write print("…")'),
    (r"unexpected indent", "align it with the line above, or end the line above with a colon"),
    (r"unindent does not match", "indent it like one of the lines above it, four spaces per level"),
    (r"expected an indented block", "indent the next line by four spaces; write pass where nothing is to be done"),
    (r"was never closed", "add the closing bracket"),
    (r"does not match opening parenthesis", "close the inner bracket first, with its own kind"),
    (r"unmatched '", "remove it, or add the bracket that opens it"),
    (r"Maybe you meant '=='", "to compare, write =="),
    (r"invalid non-printable character U\+00A0", "write a plain space"),
    (r"invalid character '[‘’“”«»„]'", "quotes are \" and '"),
    (r"invalid character '[‐‑‒–—−]'", "write -"),
    (r"leading zeros", "leave the zeros out: 12"),
    (r"invalid \w+ literal", "a number ends with a digit, and a name begins with a letter"),
    (r"imaginary number required", "a pattern holds constants; compute in a guard: case x if x == 1 + 1:"),
    (r"(?i)perhaps you forgot a comma", "add a comma or an operator between the two"),
)

#: Text of the line → the hint.
_BY_TEXT: tuple[tuple[str, str], ...] = (
    (r"\+\+|--\s*$", "write x += 1 or x -= 1"),
    (r"=>", "write lambda x: … in a callback position, or a helper"),
    (r"<>", "write !="),
    (r"&&", "write and"),
    (r"\|\|", "write or"),
    (r"\?", "write a if test else b"),
    (r"^\s*(else if|elseif)\b", "write elif"),
    (r"^\s*(else|elif|except|finally)\b", "it is indented like the if, for or try that it belongs to"),
    (r"^\s*case\s*[<>=!]", "compare in a guard: case x if x > 3:"),
    (r"^\s*case\b", 'case belongs in the block of a match; a pattern has constants, names, [a, b] and {"k": v}'),
    (r"^\s*\w+\s*:=", "in a statement write =; := is for conditions and parentheses"),
    (r"^\s*(const|let|var)\b", "write the name alone: x = 1"),
    (r"^\s*function\b", "write def"),
    (r"^\s*(switch)\b", "write match x: and case 1:"),
    (r"(?i)\b(fb|bf)[\"']", 'an f-string is text; for bytes write f"…".encode()'),
    (r"!\s*\w", "write not x"),
)

_COLON = "a line that opens a block ends with a colon, and the block is indented: if x:"


def advice(message: str, line: str) -> str | None:
    """The hint for CPython's message (which may be empty) and the line with the error."""
    for pattern, text in _BY_MESSAGE:
        if re.search(pattern, message):
            return text
    code = re.sub(r"#.*|\"[^\"]*\"|'[^']*'", lambda m: m[0][:1] + m[0][-1:] if m[0][0] != "#" else "", line)
    for pattern, text in _BY_TEXT:
        if re.search(pattern, code):
            return text
    return _COLON if message == "expected ':'" else None

"""Split f-strings into texts and replacement fields.

An f-string is parsed in two steps, as in CPython up to 3.11. The lexer reads the whole literal. This module splits it, and the same
grammar then parses the expression of each field. Newer versions of Python accept more constructs inside a field: the literal's own
quote, a backslash, a comment. These are refused here, so that a text has the same meaning in every version.
"""

from __future__ import annotations

import ast

from msgspec import Struct

from albert_tools.grammar.python_parser import parse_expression


class FStringError(Exception):
    """The literal is malformed at `offset`, in characters from its start."""

    def __init__(self, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


class RawField(Struct, frozen=True):
    """A replacement field as text: the expression that begins at `offset`, its conversion, and its format spec.

    `label` is the text that ``{x = }`` adds before the value: ``x = ``.
    """

    expression: str
    offset: int
    conversion: str | None
    spec: list[str | RawField] | None
    label: str


def literal_value(raw: str) -> str | bytes:
    """The value of a plain string or bytes literal, according to CPython's own rules.

    Raises:
        SyntaxError: The literal contains a malformed escape.
    """
    if raw[0] in "\"'" and "\\" not in raw:
        return raw[3:-3] if raw[:3] in ('"""', "'''") else raw[1:-1]
    value = ast.literal_eval(parse_expression(raw))
    assert isinstance(value, str | bytes)
    return value


def split(raw: str) -> list[str | RawField]:
    """The parts of an f-string literal in order. `raw` includes the prefix and the quotes.

    Raises:
        FStringError: The literal is malformed.
    """
    prefix = raw[: next(i for i, c in enumerate(raw) if c in "\"'")]
    mark = raw[len(prefix) :][:3]
    quote = mark if mark in ('"""', "'''") else mark[:1]
    splitter = _Splitter(raw, prefix.replace("f", "").replace("F", ""), quote, len(raw) - len(quote))
    parts, _ = splitter.run(len(prefix) + len(quote), 0)
    return parts


class _Splitter:
    def __init__(self, raw: str, prefix: str, quote: str, end: int) -> None:
        self.raw = raw
        self.prefix = prefix
        self.quote = quote
        self.end = end

    def run(self, at: int, nested: int) -> tuple[list[str | RawField], int]:
        """Read texts and fields. In a format spec (`nested`), stop at its closing brace."""
        raw, text_start, text = self.raw, at, ""
        collected: list[str | RawField] = []
        raw_mode = "r" in self.prefix.lower()

        def flush(end: int) -> None:
            nonlocal text
            text += self.decode(text_start, end)

        while at < self.end:
            c = raw[at]
            if c == "\\" and not raw_mode:
                if raw.startswith("\\N{", at):
                    at = raw.find("}", at, self.end) + 1 or self.end
                    continue
                if raw[at + 1] in "{}":
                    raise FStringError("a backslash right before a brace", at, hint="double it: \\\\")
                at += 2
                continue
            if c == "{":
                if raw.startswith("{{", at) and not nested:
                    flush(at + 1)
                    at = text_start = at + 2
                    continue
                flush(at)
                if nested >= 2:
                    raise FStringError(
                        "format specs are nested too deeply", at, hint="compute the spec first: spec = …"
                    )
                part, at = self.field(at, nested)
                if text + part.label:
                    collected.append(text + part.label)
                collected.append(part)
                text, text_start = "", at
                continue
            if c == "}":
                if nested:
                    break
                if raw.startswith("}}", at):
                    flush(at + 1)
                    at = text_start = at + 2
                    continue
                raise FStringError("a single '}' in an f-string", at, hint="double it: }}")
            at += 1
        flush(at)
        if text:
            collected.append(text)
        return collected, at

    def decode(self, start: int, end: int) -> str:
        if start == end:
            return ""
        piece = self.raw[start:end]
        if "\\" not in piece or "r" in self.prefix.lower():
            return piece
        try:
            # The added character separates a quote at the end of the piece from the closing quotes.
            value = literal_value(self.quote + piece + "|" + self.quote)
        except SyntaxError as error:
            raise FStringError(f"a malformed escape ({error.msg})", start, hint="double the backslash: \\\\") from error
        assert isinstance(value, str)
        return value[:-1]

    def field(self, at: int, nested: int) -> tuple[RawField, int]:
        raw = self.raw
        start = at + 1
        at = start
        brackets: list[str] = []
        while at < self.end:
            c = raw[at]
            if c == "\\":
                raise _backslash(at)
            if c == "#":
                raise FStringError("a comment inside the braces of an f-string", at, hint="put it after the string")
            if c in "\"'":
                at = self.skip_string(at)
                continue
            if c in "([{":
                brackets.append(c)
            elif brackets and c in ")]}":
                brackets.pop()
            elif not brackets and (c in ":}" or (c == "!" and raw[at + 1] != "=")):
                break
            elif not brackets and c == "=" and raw[at + 1] != "=" and raw[at - 1] not in "=!<>":
                break
            elif c == "=" and raw[at + 1] == "=":
                at += 1
            at += 1
        expression = raw[start:at]
        if at >= self.end:
            raise _not_closed(start - 1)
        if not expression.strip():
            raise FStringError("an empty {} in an f-string", start - 1, hint="double the braces: {{}}")
        label = ""
        if raw[at] == "=":
            equals = at
            if nested:
                # Python 3.12 and later can't read it.
                raise FStringError("'=' inside a format spec", equals, hint="leave it out: {value:{width}}")
            at += 1
            while raw[at] in " \t\n\f":
                at += 1
            if raw[at] not in "!:}":
                raise FStringError(
                    "'=' inside the braces of an f-string", equals, hint="compare with ==, or assign before the string"
                )
            label = raw[start:at]
        conversion = None
        if raw[at] == "!":
            conversion = raw[at + 1]
            if conversion not in "rsa" or raw[at + 2] not in ":}":
                raise FStringError("only r, s or a can follow '!'", at, hint="write {value!r} for its representation")
            at += 2
        spec = None
        if raw[at] == ":":
            spec, at = self.run(at + 1, nested + 1)
            if at >= self.end:
                raise _not_closed(start - 1)
        if label and conversion is None and spec is None:
            conversion = "r"
        return RawField(expression, start, conversion, spec, label), at + 1

    def skip_string(self, at: int) -> int:
        mark = self.raw[at : at + 3]
        quote = mark if mark in ('"""', "'''") else mark[:1]
        close = self.raw.find(quote, at + len(quote), self.end)
        if close < 0:
            raise FStringError(
                "a string inside the braces of an f-string is not closed",
                at,
                hint="use the other quotes inside the braces",
            )
        if "\\" in self.raw[at:close]:
            raise _backslash(at)
        return close + len(quote)


def _backslash(at: int) -> FStringError:
    hint = "assign the expression to a variable first"
    return FStringError("a backslash inside the braces of an f-string", at, hint)


def _not_closed(at: int) -> FStringError:
    return FStringError("'{' is not closed in this f-string", at, hint="double it: {{")

"""Finds the calls in a model's text: ``<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}</tool_call>``.

One scanner reads a stream and a whole text, each character once. Inside a call it knows whether it is in a JSON string, so a
`</tool_call>` that is part of an argument doesn't end the call.

Only a complete call outside of code is returned as a call. All other cases are failures, for the model to read:

- A call with a mistake (invalid JSON, a duplicate key, not closed, too large) *stops* the parser: it ignores the text after it.
  After a mistake in quoting, an argument could otherwise continue as a call, and the argument may be text from elsewhere.
- So does a `<tool_result>`. Results come from the service; a model that writes one has invented it.
- So does a call after the first `MAX_CALLS`.
- A call in a code block or in inline code is an example. If an answer has examples and no calls, one failure says so.

A missing `</tool_call>` at the end of the answer is accepted if the JSON is complete, because many servers cut this text off.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.result import ToolInvocation

#: The most calls of one answer. A model that writes more has lost its way.
MAX_CALLS = 64
#: The most characters of one call. The largest argument is a source or the content of a file.
MAX_CALL = MiB

OPEN: Final = "<tool_call>"
CLOSE: Final = "</tool_call>"
RESULT: Final = "<tool_result"
_LONGEST = max(map(len, (OPEN, CLOSE, RESULT)))
_FORM = f'write {OPEN}{{"name": "…", "arguments": {{…}}}}{CLOSE}'
_KEYS = ("name", "arguments")

_NOTABLE = re.compile(rf"\n|{OPEN}|{RESULT}")
_IN_STRING = re.compile(r'["\\]')
_OUTSIDE = re.compile(rf'"|{CLOSE}|{OPEN}|{RESULT}')
_TICKS = re.compile("`+")
#: The start of a code block, possibly in a quotation or in a list.
_FENCE = re.compile(r"[ \t>]*(?:[-*+] |\d{1,9}[.)] )?[ \t]*(`{3,}(?!.*`)|~{3,})")
#: Characters of a line that can be a fence.
_MAX_FENCE = 200

#: What the parser finds: text for the reader, a call, or a failure for the model.
Part = str | ToolInvocation | Failure


class ToolInvocationParser:
    """Parses one answer of a model. `parse` takes the whole answer; `feed` and `close` take a stream and give the same parts.

    Attributes:
        stopped: Whether a failure has ended the answer. The rest of it is ignored, so it need not be read.
        end: The position of the call or result with the failure. Only the text before it counts.
    """

    def __init__(self) -> None:
        self.stopped, self.end = False, 0
        # The text that may be the beginning of a tag, and its position in the answer.
        self._rest, self._offset = "", 0
        self._calls = self._examples = 0
        # The state in a text: the beginning and the last character of the line, its runs of backticks, the fence of the code block.
        self._line, self._last, self._runs, self._fence = "", "", 0, ""
        # The state in a call: its text so far, and whether the next character is in a JSON string.
        self._body: list[str] | None = None
        self._size, self._quoted = 0, False

    @staticmethod
    def parse(response: str) -> list[ToolInvocation | Failure]:
        """The calls and failures of a whole answer, in order. Raises nothing."""
        parser = ToolInvocationParser()
        parts = [*parser.feed(response), *parser.close()]
        return [part for part in parts if not isinstance(part, str)]

    def feed(self, chunk: str) -> list[Part]:
        """The parts that are complete after the next piece of the answer. Text is returned as soon as it can't be a tag."""
        data, parts, at = self._rest + chunk, list[Part](), 0
        self._rest = ""
        while at < len(data) and not self.stopped:
            after = (self._read_text if self._body is None else self._read_call)(data, at, parts)
            if after == at:
                self._rest = data[at:]
                break
            at = after
        self._offset += len(data) - len(self._rest)
        return parts

    def close(self) -> list[Part]:
        """The parts that only the end of the answer completes."""
        parts: list[Part] = []
        rest, self._rest = self._rest, ""
        if self.stopped:
            return parts
        if self._body is not None:
            self._body.append(rest)
            made = decoded("".join(self._body))
            if isinstance(made, Failure):
                made = _wrong(f"the {OPEN} at the end of the answer is cut off", f"{_FORM}, in one answer")
            self._add(made, parts)
        elif rest:
            parts.append(rest)
        if self._examples and not self._calls and not self.stopped:
            parts.append(
                _wrong(
                    f"a {OPEN} in code is an example and was not called", "to call the tool, write it outside of code"
                )
            )
        if not self.stopped:
            self.stopped, self.end = True, self._offset + len(rest)
        return parts

    # Text

    def _read_text(self, data: str, start: int, parts: list[Part]) -> int:
        """Read to the next call, or as far as the text can't be the beginning of a tag. Returns the position after it."""
        at = start
        for match in _NOTABLE.finditer(data, start):
            self._track(data[at : match.start()])
            at = match.end()
            if match[0] == "\n":
                self._end_line()
            elif self._in_code():
                self._examples += match[0] == OPEN
                self._track(match[0])
            else:
                if match.start() > start:
                    parts.append(data[start : match.start()])
                self.end = self._offset + match.start()
                self._begin(match[0], parts)
                return at
        end = _before_tag(data, at, OPEN, RESULT)
        self._track(data[at:end])
        if end > start:
            parts.append(data[start:end])
        return end

    def _begin(self, tag: str, parts: list[Part]) -> None:
        if tag == RESULT:
            why = "only the service writes a <tool_result>"
            self._stop(_wrong(why, "make the calls and end the answer; the next message has their results"), parts)
        elif self._calls == MAX_CALLS:
            why = f"the answer has more than {MAX_CALLS} calls"
            self._stop(_wrong(why, "write a tool that makes many calls in a loop"), parts)
        else:
            self._body, self._size, self._quoted = [], 0, False
            self._track("x")

    def _track(self, text: str) -> None:
        """Note the next text of a line."""
        if text:
            self._runs += len(_TICKS.findall(text)) - (self._last == "`" == text[0])
            self._line += text[: _MAX_FENCE - len(self._line)]
            self._last = text[-1]

    def _end_line(self) -> None:
        if self._fence:
            rest = self._line.strip(" \t>\r")
            if rest.startswith(self._fence) and not rest.strip(self._fence[0]):
                self._fence = ""
        elif fence := _FENCE.match(self._line):
            self._fence = fence[1]
        self._line, self._last, self._runs = "", "", 0

    def _in_code(self) -> bool:
        return bool(self._fence) or self._runs % 2 == 1 or _FENCE.match(self._line) is not None

    # Calls

    def _read_call(self, data: str, start: int, parts: list[Part]) -> int:
        """Read to the end of the call, or as far as the text can't be the beginning of a tag. Returns the position after it."""
        assert self._body is not None
        at, tag = start, ""
        while at < len(data):
            match = (_IN_STRING if self._quoted else _OUTSIDE).search(data, at)
            if match is None:
                at = len(data) if self._quoted else _before_tag(data, at, CLOSE, OPEN, RESULT)
                break
            at = match.end()
            if match[0] == '"':
                self._quoted = not self._quoted
            elif match[0] == "\\" and at < len(data):
                at += 1
            else:
                # A tag, or a backslash whose character is still missing.
                at, tag = match.start(), match[0].removeprefix("\\")
                break
        self._body.append(data[start:at])
        self._size += at - start
        if self._size > MAX_CALL:
            why = f"a {OPEN} has more than {MAX_CALL:,} characters"
            self._stop(_wrong(why, "write the content in several calls"), parts)
        elif tag == CLOSE:
            self._add(decoded("".join(self._body)), parts)
        elif tag:
            self._stop(_wrong(f"a {OPEN} is not closed before {tag}", _FORM), parts)
        return at + len(tag)

    def _add(self, made: ToolInvocation | Failure, parts: list[Part]) -> None:
        if isinstance(made, Failure):
            self._stop(made, parts)
        else:
            parts.append(made)
            self._calls += 1
            self._body = None

    def _stop(self, failure: Failure, parts: list[Part]) -> None:
        parts.append(failure.copy(message=f"{failure.message}; the rest of the answer was ignored"))
        self.stopped, self._body = True, None


def decoded(body: str) -> ToolInvocation | Failure:
    """The call that the JSON text ``{"name": …, "arguments": {…}}`` describes, or what is wrong with it."""
    document = read_object(body)
    if isinstance(document, Failure):
        return document
    for key in document:
        if key not in _KEYS:
            return _wrong(f"a {OPEN} has the unknown key {key[:80]!r}{did_you_mean(key[:80], _KEYS)}", _FORM)
    name, arguments = document.get("name"), document.get("arguments", {})
    if not isinstance(name, str) or not name:
        return _wrong(f'a {OPEN} has no text "name"', _FORM)
    if not isinstance(arguments, dict):
        return _wrong(f'the "arguments" of {name[:80]!r} are not an object', _FORM)
    return ToolInvocation(name, arguments)


def read_object(text: str) -> dict[str, Any] | Failure:
    """The JSON object of a text, or what is wrong with it. Line ends in strings are accepted, because models write sources so."""
    try:
        document = json.loads(text, strict=False, object_pairs_hook=_unique, parse_constant=_no_constant)
        # A lone surrogate can't be sent or saved.
        json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 30) : error.pos + 10]
        return _wrong(
            f"the call is not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}, near {near!r}",
            "escape each quote and each backslash in a text",
        )
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        return _wrong(f"the call can't be read: {why}", _FORM)
    return document if isinstance(document, dict) else _wrong("the call is not a JSON object", _FORM)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:80]!r} occurs twice")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _before_tag(data: str, start: int, *tags: str) -> int:
    """The position, not before `start`, of text at the end of `data` that may be the beginning of a tag."""
    at = data.find("<", max(start, len(data) - _LONGEST + 1))
    while at >= 0:
        if any(tag.startswith(data[at:]) for tag in tags):
            return at
        at = data.find("<", at + 1)
    return len(data)


def _wrong(message: str, hint: str) -> Failure:
    return Failure("invalid_arguments", message, hint=hint)

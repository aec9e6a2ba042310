"""What a provider answers with, put together: streamed as events, or all at once; and what its errors mean.

The form is that of OpenAI's `/chat/completions`, which most providers speak, each a little differently. So what is needed is asked
for strictly (a text, an end), and whatever else comes is passed over. A stream that ends without having said that it does was cut,
and half an answer is not an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.redaction import redacted_text

#: Bytes of one event, and characters of a whole answer.
MAX_EVENT, MAX_TEXT = 4 * MiB, 16 * MiB
#: Tokens that one answer can have used, at the most: more is a mistake of whoever counted.
MAX_COUNTED = 100_000_000
#: Bytes of a text that are taken for a token where nobody counts.
BYTES_PER_TOKEN = 3
#: Bytes that a token can stand for at the most, as in a long run of spaces: a count by which they were more is not believed.
MOST_BYTES_PER_TOKEN = 128
#: Characters that are looked at of what an error says, and that are kept of a word of the provider's.
MAX_SAID, MAX_WORD = 10_000, 100

#: Codes of errors in the middle of a stream, where there is no status, that may be gone later.
_PASSING = frozenset({"server_error", "overloaded_error", "rate_limit_exceeded", "service_unavailable", "timeout"})
_LINE = re.compile(rb"\r\n|\n|\r")
_TOO_LONG = re.compile(
    r"(?i)context.?(length|window)|maximum.{0,40}(context|tokens)|too many (input )?tokens|prompt is too long|input is too long"
)


class Events:
    """Server-sent events, as they come: the data of each that is whole. In time that is linear in what comes."""

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._length = 0
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False

    def of(self, piece: bytes) -> Iterator[bytes]:
        """The events that a piece completes.

        Raises:
            Failure: `too_large`: one has no end.
        """
        if not piece:
            return
        if self._after_return:
            # The second half of a line's end, whose first half was the last that came.
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r")
        first, *others = _LINE.split(piece)
        self._add(first)
        for rest in others:
            line = b"".join(self._open)
            self._open, self._length = [], 0
            yield from self._line(line)
            self._add(rest)

    def _add(self, part: bytes) -> None:
        self._open.append(part)
        self._length += len(part)
        if self._length + self._size > MAX_EVENT:
            raise Failure("too_large", f"the provider sent an event of more than {MAX_EVENT:,} bytes")

    def _line(self, line: bytes) -> Iterator[bytes]:
        if not line:
            if self._data:
                yield b"\n".join(self._data)
            self._data, self._size = [], 0
        elif line == b"data" or line.startswith(b"data:"):
            value = line[5:].removeprefix(b" ")
            self._data.append(value)
            self._size += len(value) + 1


class Completion:
    """The answer so far. `begun`: the provider has agreed to answer; `over`: it has said that this is all.

    `clean` takes secrets out of a text; nothing is cut before that, or half of one would stay.
    """

    def __init__(self) -> None:
        self.clean: Callable[[str], str] = str
        self.begun = False
        self.over = False
        self.finish_reason: str | None = None
        self.usage: tuple[int, int] | None = None
        self._parts: list[str] = []
        self._size = 0

    @property
    def text(self) -> str:
        """What it has said so far."""
        return "".join(self._parts)

    def finish(self) -> None:
        """Nothing more comes: what it has said can be handed on."""
        self._parts = [self.clean(self.text)]
        if self.finish_reason is not None:
            self.finish_reason = word(self.clean(self.finish_reason))

    def event(self, data: bytes) -> None:
        """Take in an event of a stream.

        Raises:
            Failure: `service_error`: it isn't what the protocol says, or says that something went wrong.
        """
        if data.strip() == b"[DONE]":
            self.over = True
            return
        self._document(_object(data), "delta")

    def whole(self, data: bytes) -> None:
        """Take in an answer that comes all at once. Raises as `event`."""
        self._document(_object(data), "message")
        if self.finish_reason is None and not self._parts:
            raise _unreadable("it holds no answer")
        self.over = True

    def _document(self, document: dict[str, Any], name: str) -> None:
        if document.get("error"):
            message, code = said(document)
            raise failed(200, self.clean(message), self.clean(code))
        usage = document.get("usage")
        if isinstance(usage, dict):
            counted = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
            if all(type(n) is int and 0 <= n <= MAX_COUNTED for n in counted):
                # Some count along the way, each time all so far.
                before = self.usage or (0, 0)
                self.usage = max(before[0], counted[0]), max(before[1], counted[1])  # type: ignore[assignment, type-var]
        choices = document.get("choices")
        if not isinstance(choices, list):
            raise _unreadable("it has no choices")
        first = choices[0] if choices else {}
        if not isinstance(first, dict):
            raise _unreadable("its choice is none")
        part = first.get(name)
        content = part.get("content") if isinstance(part, dict) else None
        if isinstance(content, str):
            self._parts.append(content.encode("utf-8", "replace").decode())
            self._size += len(content)
        if isinstance(first.get("finish_reason"), str):
            self.finish_reason = first["finish_reason"]
        if self._size > MAX_TEXT:
            raise Failure("too_large", f"the answer has more than {MAX_TEXT:,} characters")


def estimated(text: str) -> int:
    """About how many tokens a text has; rather too many."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def believable(count: int, text: str) -> bool:
    """Whether a text can have so few tokens."""
    return count * MOST_BYTES_PER_TOKEN >= len(text.encode("utf-8", "surrogatepass"))


def word(text: str) -> str:
    """A word of the provider's as it can be shown anywhere: short, and nothing in it that isn't seen."""
    return "".join(c if c.isprintable() else "?" for c in text[:MAX_WORD])


def said(document: Any) -> tuple[str, str]:
    """What an error's document says, and its code; both may be empty."""
    error = document.get("error", document) if isinstance(document, dict) else document
    if isinstance(error, dict):
        message = next((error[k] for k in ("message", "detail", "msg") if isinstance(error.get(k), str)), "")
        code = next((error[k] for k in ("code", "type") if isinstance(error.get(k), str)), "")
        return message, code
    return (error, "") if isinstance(error, str) else ("", "")


def refused(
    status: int, body: bytes, retry_after_ms: int | None, model: str, clean: Callable[[str], str] = str
) -> Failure:
    """The failure that an answer with another status than 200 is. `clean` as in `Completion`."""
    try:
        message, code = said(json.loads(body))
    except (ValueError, RecursionError):
        message, code = body.decode("utf-8", "replace"), ""
    return failed(status, clean(message), clean(code), retry_after_ms, model)


def failed(status: int, message: str, code: str = "", retry_after_ms: int | None = None, model: str = "") -> Failure:
    """The failure that a provider's error is, by its status, its code, and as a last resort by its words."""
    message = message[:MAX_SAID]
    told = redacted_text(" ".join(message.split()), 300)
    told = f": {told!r}" if told else ""
    details = {"status": status, "provider_code": word(code)}
    if code == "context_length_exceeded" or (status in (200, 400, 413, 422) and _TOO_LONG.search(message)):
        return Failure(
            "too_large",
            f"the prompt and the answer asked for are more than the model can hold{told}",
            hint="give a shorter prompt, or ask for fewer tokens",
            details=details,
        )
    if status in (401, 403):
        hint = "the owner should look at the provider's `api_key` and at what that key may do"
        return Failure("service_error", f"the provider doesn't accept the key{told}", hint=hint, details=details)
    if status == 404 or code == "model_not_found":
        hint = "ask for another model; or the owner's `base_url` is wrong"
        return Failure("not_found", f"the provider has no model {model[:100]!r}{told}", hint=hint, details=details)
    if status == 402 or code == "insufficient_quota":
        hint = "the owner should look at the account there"
        return Failure("service_error", f"the provider wants to be paid first{told}", hint=hint, details=details)
    if status == 429:
        return Failure(
            "rate_limited",
            f"the provider has had too many requests{told}",
            hint="call again after `retry_after_ms`" if retry_after_ms is not None else "call again in a while",
            retryable=True,
            retry_after_ms=retry_after_ms,
            rule="provider",
            details=details,
        )
    if 300 <= status < 400:
        hint = "the owner should put into `base_url` where it leads; redirects aren't followed"
        return Failure("service_error", f"the provider sends on to elsewhere ({status})", hint=hint, details=details)
    # What isn't implemented there won't be in a while.
    again = (status >= 500 and status not in (501, 505)) or status in (408, 425) or code in _PASSING
    return Failure(
        "service_error",
        f"the provider answered with {status if status != 200 else 'an error'}{told}",
        hint="call again in a while" if again else None,
        retryable=again,
        retry_after_ms=retry_after_ms,
        details=details,
    )


def _object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise _unreadable("it is not JSON") from None
    if not isinstance(document, dict):
        raise _unreadable("it is no object")
    return document


def _unreadable(why: str) -> Failure:
    return Failure(
        "service_error",
        f"what the provider sent can't be read: {why}",
        hint="the owner should see whether `base_url` is that of an OpenAI-compatible service",
    )

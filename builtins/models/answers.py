"""Assembles a provider's answer, streamed or not, and interprets its errors.

The protocol is OpenAI's `/chat/completions`, which providers implement with small differences. The necessary parts (the text and
the end of the answer) are checked strictly; all other fields are ignored. If a stream has no end marker, it was interrupted, and a
partial answer is a failure.
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
#: Tokens of one answer. A provider that reports more has made a mistake.
MAX_COUNTED = 100_000_000
#: Bytes per token, for estimates.
BYTES_PER_TOKEN = 3
#: The largest number of bytes of one token, for example of a long run of spaces. A token count that implies more is wrong.
MOST_BYTES_PER_TOKEN = 128
#: Characters that are read of an error message, and characters that are stored of a code or finish reason.
MAX_MESSAGE, MAX_WORD = 10_000, 100

#: Codes of temporary errors. They are needed for errors within a stream, which have no HTTP status.
_TEMPORARY = frozenset({"server_error", "overloaded_error", "rate_limit_exceeded", "service_unavailable", "timeout"})
_LINE = re.compile(rb"\r\n|\n|\r")
_TOO_LONG = re.compile(
    r"(?i)context.?(length|window)|maximum.{0,40}(context|tokens)|too many (input )?tokens|prompt is too long|input is too long"
)


class Events:
    """A parser of server-sent events, in linear time.

    Providers are not trusted. So an event that is too long is refused while it arrives; `httpx-sse` would collect all of it.
    """

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._length = 0
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False

    def of(self, piece: bytes) -> Iterator[bytes]:
        """The data of the events that are complete after this piece.

        Raises:
            Failure: `too_large`: an event is too long.
        """
        if not piece:
            return
        if self._after_return:
            # The previous piece ended between the two characters of a line end.
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
    """The answer received so far. `begun`: the provider has answered with status 200; `over`: it has marked the end.

    `clean` removes secrets from a text. Texts are cut only afterwards. Otherwise a part of a secret could remain.
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
        """The text so far."""
        return "".join(self._parts)

    def finish(self) -> None:
        """Clean the text at the end of the answer."""
        self._parts = [self.clean(self.text)]
        if self.finish_reason is not None:
            self.finish_reason = word(self.clean(self.finish_reason))

    def event(self, data: bytes) -> None:
        """Add an event of a stream.

        Raises:
            Failure: `service_error`: the event is invalid, or reports an error.
        """
        if data.strip() == b"[DONE]":
            self.over = True
            return
        self._document(_object(data), "delta")

    def whole(self, data: bytes) -> None:
        """Add an answer that is not streamed. Raises the same failures as `event`."""
        self._document(_object(data), "message")
        if self.finish_reason is None and not self._parts:
            raise _unreadable("it has no answer")
        self.over = True

    def _document(self, document: dict[str, Any], name: str) -> None:
        if document.get("error"):
            message, code = error_of(document)
            raise failed(200, self.clean(message), self.clean(code))
        usage = document.get("usage")
        if isinstance(usage, dict):
            counted = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
            if all(type(n) is int and 0 <= n <= MAX_COUNTED for n in counted):
                # Some providers repeat the total count in each event.
                before = self.usage or (0, 0)
                self.usage = max(before[0], counted[0]), max(before[1], counted[1])  # type: ignore[assignment, type-var]
        choices = document.get("choices")
        if not isinstance(choices, list):
            raise _unreadable("it has no choices")
        first = choices[0] if choices else {}
        if not isinstance(first, dict):
            raise _unreadable("its first choice is not an object")
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
    """An estimate of the tokens of a text, usually too high."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def believable(count: int, text: str) -> bool:
    """Whether `count` is a possible number of tokens for a text."""
    return count * MOST_BYTES_PER_TOKEN >= len(text.encode("utf-8", "surrogatepass"))


def word(text: str) -> str:
    """A code or finish reason of the provider, shortened and with printable characters only."""
    return "".join(c if c.isprintable() else "?" for c in text[:MAX_WORD])


def error_of(document: Any) -> tuple[str, str]:
    """The message and the code of an error document; both may be empty."""
    error = document.get("error", document) if isinstance(document, dict) else document
    if isinstance(error, dict):
        message = next((error[k] for k in ("message", "detail", "msg") if isinstance(error.get(k), str)), "")
        code = next((error[k] for k in ("code", "type") if isinstance(error.get(k), str)), "")
        return message, code
    return (error, "") if isinstance(error, str) else ("", "")


def refused(
    status: int, body: bytes, retry_after_ms: int | None, model: str, clean: Callable[[str], str] = str
) -> Failure:
    """The failure for a status other than 200. For `clean` see `Completion`."""
    try:
        message, code = error_of(json.loads(body))
    except (ValueError, RecursionError):
        message, code = body.decode("utf-8", "replace"), ""
    return failed(status, clean(message), clean(code), retry_after_ms, model)


def failed(status: int, message: str, code: str = "", retry_after_ms: int | None = None, model: str = "") -> Failure:
    """The failure for a provider's error. It depends on the status, then on the code, and finally on the message."""
    message = message[:MAX_MESSAGE]
    quoted = redacted_text(" ".join(message.split()), 300)
    quoted = f": {quoted!r}" if quoted else ""
    details = {"status": status, "provider_code": word(code)}
    if code == "context_length_exceeded" or (status in (200, 400, 413, 422) and _TOO_LONG.search(message)):
        return Failure(
            "too_large",
            f"prompt and answer do not fit into the model's context{quoted}",
            hint="use a shorter prompt or fewer max_tokens",
            details=details,
        )
    if status in (401, 403):
        hint = "the owner should check the provider's `api_key` and its permissions"
        return Failure("service_error", f"the provider rejects the key{quoted}", hint=hint, details=details)
    if status == 404 or code == "model_not_found":
        hint = "use another model, or the owner should check `base_url`"
        return Failure("not_found", f"the provider has no model {model[:100]!r}{quoted}", hint=hint, details=details)
    if status == 402 or code == "insufficient_quota":
        hint = "the owner should check the account"
        return Failure(
            "service_error", f"the account at the provider has no credit{quoted}", hint=hint, details=details
        )
    if status == 429:
        return Failure(
            "rate_limited",
            f"the provider limits the rate of requests{quoted}",
            hint="call again after `retry_after_ms`" if retry_after_ms is not None else "call again later",
            retryable=True,
            retry_after_ms=retry_after_ms,
            rule="provider",
            details=details,
        )
    if 300 <= status < 400:
        hint = "redirects are not followed; the owner should set `base_url` to the target"
        return Failure("service_error", f"the provider redirects ({status})", hint=hint, details=details)
    # 501 and 505 are permanent.
    temporary = (status >= 500 and status not in (501, 505)) or status in (408, 425) or code in _TEMPORARY
    return Failure(
        "service_error",
        f"the provider answered with {status if status != 200 else 'an error'}{quoted}",
        hint="call again later" if temporary else None,
        retryable=temporary,
        retry_after_ms=retry_after_ms,
        details=details,
    )


def _object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise _unreadable("it is not JSON") from None
    if not isinstance(document, dict):
        raise _unreadable("it is not an object")
    return document


def _unreadable(why: str) -> Failure:
    return Failure(
        "service_error",
        f"the provider sent an invalid answer: {why}",
        hint="the owner should check that `base_url` is an OpenAI-compatible service",
    )

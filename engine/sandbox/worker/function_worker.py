"""A worker that calls one function once. The function reads untrusted input, and may ask the service questions.

The worker is forked from a zygote that has imported the function. Values are JSON texts, because the values of a source can have
integers of any size, and msgpack has none above 64 bits. Messages to the worker::

    ["call", arguments]
    ["answer", value]

Messages from the worker::

    ["ready"]                                               it is confined, and waits for its arguments
    ["question", value]
    ["result", value]
    ["failure", {code, message, hint, retryable, details}]  the function raised a `Failure`
    ["exception", {type, message}]                          the function raised another exception
    ["memory"]                                              memory or stack is used up

Hostile input can control these messages, so the service doesn't trust them.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any, NoReturn

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import USED_UP, RunLimits
from albert_tools.engine.model.messages import brief, encodable
from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.codec import Unpacker, pack
from albert_tools.engine.sandbox.worker.fence import Fence, narrow_fence

#: Asks the service a question, and returns its answer.
Ask = Callable[[Any], Any]
Function = Callable[[Any, Ask], Any]

#: Bytes of a message to the worker. It trusts the service, so this is what the frame can express.
MAX_GIVEN = 1 << 32
#: The most characters of an exception's message, and the most bytes of a failure's details. More is cut off or left out.
_MAX_MESSAGE, _MAX_DETAILS = 2_000, 64 * 1024


class FunctionWorker:
    """Calls `function` with its arguments and a function that asks the service.

    Args:
        function: The function. Its arguments and its result are JSON.
        rehearsals: Arguments for calls before the fork, so that CPython specializes the code.
        recursion: Python's recursion limit.
        max_bytes: The most bytes of a result or a question.
    """

    closed = True
    #: The exceptions that mean that memory or stack is used up.
    used_up: tuple[type[Exception], ...] = USED_UP

    def __init__(self, function: Function, rehearsals: list[Any], recursion: int, max_bytes: int) -> None:
        self.recursion = recursion
        self._function = function
        self._rehearsals = rehearsals
        self._max_bytes = max_bytes
        self._unpacker = Unpacker(MAX_GIVEN)
        self._inbox: list[list[Any]] = []
        self._socket: socket.socket | None = None

    def fence(self, limits: RunLimits, kind: str) -> Fence:
        """The fence around this worker."""
        # For the text of a syntax error, CPython tries to open a file with the name of the source.
        return narrow_fence(limits, kind, ("open", "openat"))

    def rehearse(self) -> None:
        """Do nothing: the function takes too long. See `warm_up`."""

    def warm_up(self) -> bool:
        """Call the function with the arguments of the next rehearsal. Returns false after the last one."""
        if self._rehearsals:
            self._function(self._rehearsals.pop(0), lambda _: None)
        return bool(self._rehearsals)

    def connect(self, sock: socket.socket) -> None:
        """Set the socket for all messages."""
        self._socket = sock

    def serve(self) -> NoReturn:
        """Report that this process is confined, call the function once, and wait to be killed."""
        self._send("ready")
        try:
            self._call(self._receive())
        except self.used_up:
            used_up = True
        else:
            used_up = False
        if used_up:
            # After the `except` block, the objects of the exception are freed, so there is memory for the message.
            self._send("memory")
        while self._socket is not None and self._socket.recv(65_536):
            pass
        os._exit(0)

    def encoded(self, result: Any) -> str:
        """The result as JSON."""
        return json.dumps(result, separators=(",", ":"))

    def _call(self, arguments: Any) -> None:
        try:
            result = self.encoded(self._function(arguments, self._ask))
            if len(result) > self._max_bytes:
                raise Failure("result_limit", f"the result has more than {self._max_bytes:,} bytes")
        except self.used_up:
            raise
        except Failure as failure:
            self._send("failure", _described(failure))
        except BaseException as error:
            self._send("exception", {"type": type(error).__name__, "message": text_of(error)})
        else:
            self._send("result", result)

    def _ask(self, question: Any) -> Any:
        self._send("question", json.dumps(question))
        return self._receive()

    def _receive(self) -> Any:
        assert self._socket is not None
        while not self._inbox:
            data = self._socket.recv(65_536)
            if not data:
                os._exit(0)
            self._inbox.extend(self._unpacker.feed(data))
        return json.loads(self._inbox.pop(0)[1])

    def _send(self, kind: str, *value: Any) -> None:
        assert self._socket is not None
        # A text of the most bytes has a few more in a frame.
        self._socket.sendall(pack([kind], value[0], self._max_bytes + 64) if value else pack([kind]))


def _described(failure: Failure) -> dict[str, Any]:
    try:
        details = export(failure.details, _MAX_DETAILS)
    except Unexportable:
        details = {}
    return {
        "code": str(failure.code),
        "message": text_of(failure.message),
        "hint": None if failure.hint is None else text_of(failure.hint),
        "retryable": bool(failure.retryable),
        "details": details,
    }


def text_of(message: object) -> str:
    """A message, shortened and in valid Unicode. Empty if it has no text."""
    try:
        return encodable(brief(str(message), _MAX_MESSAGE))
    except Exception:
        return ""

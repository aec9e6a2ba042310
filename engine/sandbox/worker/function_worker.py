"""A worker that calls one function once. The function reads untrusted text, and may ask the service questions.

The worker is forked from a zygote that has imported the function and has called it before. Values are JSON texts, because the
values of a source can have integers of any size, and msgpack has none above 64 bits. Messages to the worker::

    ["call", arguments]
    ["answer", value]

Messages from the worker. The last four are those of a confined function (`confined_child`)::

    ["ready"]                       it is confined, and waits for its arguments
    ["question", value]
    ["result", value]
    ["failure", {code, message, hint, retryable, details}]
    ["exception", {type, message}]
    ["memory"]                      memory or stack is used up
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any, NoReturn

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import USED_UP
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER
from albert_tools.engine.sandbox.worker.codec import Unpacker, pack
from albert_tools.engine.sandbox.worker.confined_child import described, text_of

#: Asks the service a question, and returns its answer.
Ask = Callable[[Any], Any]
Function = Callable[[Any, Ask], Any]


class FunctionWorker:
    """Calls `function` with its arguments and a function that asks the service.

    Args:
        function: The function. Its arguments and its result are JSON.
        rehearsals: Arguments for calls before the fork, so that CPython specializes the code.
        recursion: Python's recursion limit.
        max_bytes: The most bytes of a result or a question. The service's messages have the limit of all values.
    """

    #: For the text of a syntax error, CPython tries to open a file with the name of the source.
    refused = ("open", "openat")

    def __init__(self, function: Function, rehearsals: list[Any], recursion: int, max_bytes: int) -> None:
        self.recursion = recursion
        self._function = function
        self._rehearsals = rehearsals
        self._max_bytes = max_bytes
        self._unpacker = Unpacker(MAX_ANSWER)
        self._inbox: list[list[Any]] = []
        self._socket: socket.socket | None = None

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
        except USED_UP:
            used_up = True
        else:
            used_up = False
        if used_up:
            # After the `except` block, the objects of the exception are freed, so there is memory for the message.
            self._send("memory")
        while self._socket is not None and self._socket.recv(65_536):
            pass
        os._exit(0)

    def _call(self, arguments: Any) -> None:
        try:
            result = json.dumps(self._function(arguments, self._ask), separators=(",", ":"))
        except USED_UP:
            raise
        except Failure as failure:
            self._send("failure", described(failure.code, failure.message, failure.hint, failure.retryable))
        except Exception as error:
            self._send("exception", {"type": type(error).__name__, "message": text_of(error)})
        else:
            if len(result) > self._max_bytes:
                message = f"the result has more than {self._max_bytes:,} bytes"
                self._send("failure", described("result_limit", message))
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
        self._socket.sendall(pack([kind], value[0], self._max_bytes) if value else pack([kind]))

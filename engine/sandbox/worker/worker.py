"""One worker. It runs one program once, and it has no authority.

The worker object is created before the fork and rehearsed once, so that CPython has already specialized the code. Then the
process is forked. If it is kept ready, it is rehearsed again, so that it gets its own memory pages. It is confined, and waits for
its one program. Messages are lists. Messages to the worker::

    ["run", {entry, lowered, code, recursion, log_bytes, result_bytes}, arguments]
    ["value", number, value]        the result of a call
    ["failure", number, {code, message, retryable}]

Messages from the worker::

    ["ready"]                       it is confined, and waits for its program
    ["code", code]                  the compiled program, if the service had none
    ["damaged", text]               the lowered text is not Python
    ["call", number, name, key, overlapping, arguments]
    ["print", text]
    ["result", value]
    ["error", {code, type, message, tool, retryable, lines}]
    ["limit", code, lines]

`code` is the compiled and marshalled program, or empty if it can't be used again. A worker compiles the text of a program that
runs for the first time, before it runs anything of it. The service keeps the code for the next worker and never unmarshals it.
`lines` are lines of the lowered text, outermost call first. After its last message, the worker waits until it is killed.
"""

from __future__ import annotations

import builtins
import io
import marshal
import os
import socket
import sys
import types
from collections import deque
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, ValuesView
from itertools import chain, compress, islice, repeat
from typing import Any, NoReturn

from albert_tools.engine.model.limits import MAX_ROUNDS, MAX_STRUCTURE, USED_UP, RunLimits
from albert_tools.engine.sandbox.worker import fibres
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, Unexportable
from albert_tools.engine.sandbox.worker.codec import Unpacker, pack
from albert_tools.engine.sandbox.worker.fence import Fence, narrow_fence
from albert_tools.engine.sandbox.worker.prelude import ToolError
from albert_tools.engine.sandbox.worker.world import facades, preload, program_builtins

#: The file name of the program's code in tracebacks.
FILENAME = "<tool>"
#: The most bytes of code that fit into a message. Larger code is compiled again for each run.
MAX_CODE = MAX_STRUCTURE - 4096
#: The most stack frames for this module's own work after the program.
RECURSION = 2_500
#: The most characters of an exception's message. The rest is cut off.
MAX_MESSAGE = 2_000

#: Compiled in the zygote, because compiling takes as long as the rest of a rehearsal.
_REHEARSAL = marshal.dumps(
    compile(
        """
def tool(n):
    rows = [{"n": i, "text": f"{i:>3}"} for i in range(n)]
    print(__call("tool", {"n": n}))
    try:
        return sorted(rows, key=lambda row: -row["n"])
    except ToolError as error:
        return error.message
""",
        FILENAME,
        "exec",
        dont_inherit=True,
        optimize=0,
    )
)


#: The classes of containers that raise an error if they change their size while a loop runs over them, or that never do.
_FIXED_SIZE = (str, bytes, tuple, dict, set, frozenset, range, deque, ItemsView, KeysView, ValuesView)


def prepare(modules: list[str]) -> Worker:
    """A worker for programs that may import these façades."""
    preload(modules)
    return Worker(facades(modules))


class Worker:
    """The program's side of the connection to the service."""

    recursion = RECURSION
    closed = True

    def __init__(self, made: dict[str, types.ModuleType]) -> None:
        self._socket: socket.socket | None = None
        self._unpacker = Unpacker(MAX_ANSWER)
        self._inbox: list[list[Any]] = []
        self._number = 0
        self._top_calls = 0
        self._top_key = ""
        self._log_left = 0
        self._result_bytes = 0
        self._buffer = bytearray(65_536)
        #: One item for each round that loops may still make, of all that are counted.
        self._rounds_left = chain(repeat(True, MAX_ROUNDS), self._out_of_rounds())
        self._tick = self._rounds_left.__next__
        self._world = {
            "__name__": "tool",
            "__builtins__": program_builtins(made, self._print),
            "__call": self._call,
            "__gather": self._gather,
            "__parallel": self._parallel,
            "__rounds": self._rounds,
            "__tick": self._tick,
            "__fatal": self._fatal,
        }

    def fence(self, limits: RunLimits, kind: str) -> Fence:
        """The fence around this worker."""
        return narrow_fence(limits, kind)

    def rehearse(self) -> None:
        """Run a small program through the same code and a socket, so that the first real program is fast."""
        settings = {
            "entry": "tool",
            "lowered": "",
            "code": _REHEARSAL,
            "recursion": 100,
            "log_bytes": 4096,
            "result_bytes": 4096,
        }
        service, own = socket.socketpair()
        with service, own:
            self.connect(own)
            for _ in range(2):
                service.sendall(pack(["value", 1, 1]))
                service.sendall(pack(["run", settings], {"n": 3}, MAX_ANSWER))
                self._number = 0
                answer = self._receive()
                message = self._receive()
                self._inbox.append(answer)
                self._run(message[1], message[2])
                service.recv(65_536)
        self._socket = None
        self._number = self._top_calls = 0

    def warm_up(self) -> bool:
        """Do nothing: `rehearse` is short and complete."""
        return False

    def connect(self, sock: socket.socket) -> None:
        """Set the socket for all further messages."""
        self._socket = sock

    def serve(self) -> NoReturn:
        """Report that this process is confined, run the one program, then wait to be killed."""
        self._send(["ready"])
        message = self._receive()
        self._run(message[1], message[2])
        self._wait()

    def _run(self, program: dict[str, Any], arguments: dict[str, Any]) -> None:
        self._log_left = program["log_bytes"]
        self._result_bytes = program["result_bytes"]
        namespace: dict[str, Any] = {**self._world}
        fresh = None if program["code"] else self._compiled(program["lowered"])
        try:
            sys.setrecursionlimit(program["recursion"])
            exec(fresh or marshal.loads(program["code"]), namespace)  # noqa: S102, S302
            result = namespace[program["entry"]](**arguments)
            sys.setrecursionlimit(RECURSION)
        except USED_UP:
            self._fatal()
        except BaseException as error:
            sys.setrecursionlimit(RECURSION)
            self._report(error)
            return
        try:
            frame = pack(["result"], result, self._result_bytes)
        except Unexportable as error:
            self._send(["error", _described(error.code, error.sentence("the result"))])
        except USED_UP:
            self._fatal()
        else:
            self._send_frame(frame)

    def _compiled(self, lowered: str) -> types.CodeType:
        """Compile a lowered text, and send the code. If the text is not Python, report this, and wait to be killed.

        For a syntax error, CPython tries to open a file, and the fence kills the worker. The service knows what this means.
        """
        try:
            code = compile(lowered, FILENAME, "exec", dont_inherit=True, optimize=0)
            saved = marshal.dumps(code)
            reusable = len(saved) <= MAX_CODE and _same_order(code, marshal.loads(saved))  # noqa: S302
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._send(["damaged", _text(str(error))])
            self._wait()
        self._send(["code", saved if reusable else b""])
        return code

    # Functions that programs call.

    def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        fibre = fibres.current()
        if fibre is not None:
            return fibres.call(fibre, name, arguments)
        key = f"{self._top_key}{self._top_calls}"
        self._top_calls += 1
        number = self.send_call(name, arguments, key, False)
        while True:
            answered, answer = self.receive()
            if answered == number:
                return answer()

    def _gather(self, reads: bool, body: Callable[..., Any], items: Iterator[tuple[Any, ...]]) -> list[Any]:
        """``parallel(f(x) for x in xs)``."""

        def one(arguments: tuple[Any, ...]) -> Callable[[], Any]:
            def run() -> Any:
                try:
                    return body(*arguments)
                except StopIteration as error:
                    # A generator expression raises the same error.
                    raise RuntimeError("generator raised StopIteration") from error

            return run

        return self._together(reads, (one(arguments) for arguments in items))

    def _parallel(self, reads: bool, *bodies: Callable[[], Any]) -> tuple[Any, ...]:
        """``parallel(a(), b())``."""
        return tuple(self._together(reads, iter(bodies)))

    def _together(self, reads: bool, bodies: Iterator[Callable[[], Any]]) -> list[Any]:
        fibre = fibres.current()
        if fibre is not None:
            # A body that already runs in parallel runs these bodies sequentially, and continues to number its calls.
            return [body() for body in bodies]
        key = f"{self._top_key}{self._top_calls}."
        self._top_calls += 1
        if reads:
            return fibres.gather(self, bodies, key, self._log)
        before = self._top_key, self._top_calls
        results = []
        try:
            for index, body in enumerate(bodies):
                self._top_key, self._top_calls = f"{key}{index}.", 0
                results.append(body())
        finally:
            self._top_key, self._top_calls = before
        return results

    def _rounds(self, items: Any) -> Iterable[Any]:
        """The items of a loop whose container may grow. Only the rounds over what was added are counted."""
        if type(items) is list:
            rest = iter(items)
            return chain(islice(rest, len(items)), compress(rest, self._rounds_left))
        # Python raises an error if one of these changes its size in the loop.
        return items if isinstance(items, _FIXED_SIZE) else compress(items, self._rounds_left)

    def _out_of_rounds(self) -> Iterator[bool]:
        """What follows after the last round of a run."""
        self._end("loop_limit", sys._getframe())
        yield True

    def _print(self, *values: Any, sep: str | None = " ", end: str | None = "\n") -> None:
        buffer = io.StringIO()
        builtins.print(*values, sep=sep, end=end, file=buffer)
        fibre = fibres.current()
        if fibre is not None:
            fibre.printed.append(buffer.getvalue())
        else:
            self._log(buffer.getvalue())

    def _fatal(self) -> NoReturn:
        """Report that memory or stack is used up, and wait to be killed."""
        sys.setrecursionlimit(RECURSION)
        error = sys.exc_info()[1]
        trace = error.__traceback__ if error is not None else None
        lines = _lines(trace)
        code = "recursion_limit" if isinstance(error, RecursionError) else "memory_limit"
        # Free the objects of the exception, so that there is memory for the report.
        del error, trace
        self._send(["limit", code, lines])
        self._wait()

    # The socket.

    def send_call(self, name: str, arguments: dict[str, Any], key: str, overlapping: bool) -> int:
        """Send a call. Returns the number of its answer.

        Raises:
            ToolError: an argument can't be exported (`not_json`, `result_limit`).
        """
        self._number += 1
        try:
            # Only one call at a time may have large arguments, because the service stores them until the call ends.
            most = self._result_bytes if overlapping else MAX_ANSWER
            frame = pack(["call", self._number, name, key, overlapping], arguments, most)
        except Unexportable as error:
            what = f"an argument of {name}"
            raise ToolError(error.sentence(what), tool=name, code=error.code) from None
        self._send_frame(frame)
        return self._number

    def receive(self) -> tuple[int, Callable[[], Any]]:
        """Wait for the next answer. Returns its number, and a function that returns the value or raises."""
        message = self._receive()
        if message[0] == "value":
            value = message[2]
            return message[1], lambda: value
        return message[1], lambda: _raise(message[1], message[2])

    def _receive(self) -> list[Any]:
        while not self._inbox:
            assert self._socket is not None
            # Reuse the buffer, because a new large buffer would cause page faults each time.
            size = self._socket.recv_into(self._buffer)
            if not size:
                os._exit(0)
            self._inbox.extend(self._unpacker.feed(bytes(memoryview(self._buffer)[:size])))
        return self._inbox.pop(0)

    def _log(self, text: str) -> None:
        if not text:
            return
        # Half a surrogate pair can't be sent. It is escaped, as CPython escapes it on stderr.
        data = text.encode("utf-8", "backslashreplace")
        self._log_left -= len(data)
        if self._log_left < 0:
            self._end("log_limit", sys._getframe(2))
        text = data.decode()
        for start in range(0, len(text), 65_536):
            self._send(["print", text[start : start + 65_536]])

    def _end(self, code: str, frame: Any) -> NoReturn:
        lines = []
        while frame is not None:
            if frame.f_code.co_filename == FILENAME:
                lines.append(frame.f_lineno)
            frame = frame.f_back
        self._send(["limit", code, lines[::-1][-20:]])
        self._wait()

    def _report(self, error: BaseException) -> None:
        lines = _lines(error.__traceback__)
        try:
            if isinstance(error, ToolError):
                message = _text(error.message)
                code = _text(error.code) if isinstance(error.code, str) else "tool_error"
                described = _described(
                    code, message, "ToolError", error.tool, bool(error.retryable), lines, error._call
                )
            else:
                described = _described("exception", _text(str(error)), type(error).__name__, lines=lines)
        except USED_UP:
            self._fatal()
        except Exception:
            described = _described("exception", "", type(error).__name__, lines=lines)
        self._send(["error", described])

    def _send(self, message: list[Any]) -> None:
        self._send_frame(pack(message))

    def _send_frame(self, frame: bytes | bytearray) -> None:
        if self._socket is not None:
            self._socket.sendall(frame)

    def _wait(self) -> NoReturn:
        while self._socket is not None and self._socket.recv(65_536):
            pass
        os._exit(0)


def _same_order(code: types.CodeType, loaded: types.CodeType) -> bool:
    """Whether the constant sets have the same order after marshalling, which adds their items in another order."""
    for a, b in zip(code.co_consts, loaded.co_consts, strict=True):
        if isinstance(a, frozenset) and list(a) != list(b):
            return False
        if isinstance(a, types.CodeType) and not _same_order(a, b):
            return False
    return True


def _raise(call: int, failure: dict[str, Any]) -> NoReturn:
    error = ToolError(failure["message"], tool=failure["tool"], code=failure["code"], retryable=failure["retryable"])
    error._call = call
    raise error


def _described(
    code: str,
    message: str,
    kind: str = "",
    tool: str | None = None,
    retryable: bool = False,
    lines: list[int] | None = None,
    call: int | None = None,
) -> dict[str, Any]:
    return {
        "code": code,
        "type": kind,
        "message": message,
        "tool": tool if isinstance(tool, str) else None,
        "retryable": retryable,
        "lines": lines or [],
        "call": call,
    }


def _text(message: str) -> str:
    short = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
    return short.encode("utf-8", "backslashreplace").decode()


def _lines(trace: types.TracebackType | None) -> list[int]:
    lines = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines[-20:]

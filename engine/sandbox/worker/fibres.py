"""`parallel`: runs read-only bodies concurrently. Apart from the time, the result is the same as in a sequential run.

Each body is a fibre (a greenlet), so a program needs no ``async``. When a body calls a tool, its fibre sends the message and is
suspended. Then the next body starts, or a body whose answer has arrived continues. Results, the first error, the output and the
keys of calls are the same as in a sequential run, in the order of the program.

After the first error, no further body starts. The bodies before it in the program's order finish, because one of them may fail
too, and then its error is the first. The bodies after it are pinned: they are never resumed, and no exception is raised in them,
because their ``finally`` blocks would run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from greenlet import getcurrent, greenlet

from albert_tools.engine.model.limits import MAX_FIBRES, USED_UP


class Line(Protocol):
    """The worker's end of the socket, as far as fibres need it."""

    def send_call(self, name: str, arguments: dict[str, Any], key: str, overlapping: bool) -> int:
        """Send a call. Returns the number of its answer."""

    def receive(self) -> tuple[int, Any]:
        """Wait for the next answer. Returns its number, and a function that returns the value or raises."""


class Fibre(greenlet):  # type: ignore[misc]
    """One body: its position in the program's order, its printed output, and its calls."""

    def __init__(self, body: Callable[[], Any], parent: Any, index: int, key: str) -> None:
        super().__init__(body, parent)
        self.index = index
        self.key = key
        self.calls = 0
        self.printed: list[str] = []


#: Fibres that never continue. Without a reference to them, greenlet would raise an exception in them.
_pinned: list[Fibre] = []
_NO_MORE = object()


def current() -> Fibre | None:
    """The fibre of the running body; None outside of `gather`."""
    running = getcurrent()
    return running if isinstance(running, Fibre) else None


def gather(line: Line, bodies: Iterator[Callable[[], Any]], key: str, emit: Callable[[str], None]) -> list[Any]:
    """Run the bodies, at most `MAX_FIBRES` at once. Returns their results in order.

    Args:
        line: The worker's end of the socket.
        bodies: Each body is created in the fibre that runs it. Its creation may raise and print, like the body itself.
        key: The prefix of the keys of calls.
        emit: Takes the output of the bodies, in order.

    Raises:
        Exception: the first error in the order of the program.
    """
    hub = getcurrent()
    results: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}
    waiting: dict[int, Fibre] = {}
    flying: dict[int, Fibre] = {}
    printed: dict[int, list[str]] = {}
    shown = started = 0
    exhausted = False

    def advance(fibre: Fibre, *value: Any) -> None:
        """Run a fibre until it calls a tool or ends."""
        nonlocal exhausted
        try:
            result = fibre.switch(*value)
        except USED_UP:
            raise
        except Exception as error:
            errors[fibre.index] = error
            del flying[fibre.index]
            return
        if fibre.dead:
            results[fibre.index] = result
            exhausted = exhausted or result is _NO_MORE
            del flying[fibre.index]
            return
        name, arguments, call_key = result
        waiting[line.send_call(name, arguments, call_key, True)] = fibre

    def show() -> None:
        nonlocal shown
        while shown in results or shown in errors or shown in flying:
            for text in printed.get(shown, ()):
                emit(text)
            printed.get(shown, []).clear()
            if shown in flying or shown in errors:
                return
            shown += 1

    while True:
        while not exhausted and not errors and len(flying) < MAX_FIBRES:
            fibre = Fibre(lambda: _next(bodies), hub, started, f"{key}{started}.")
            printed[started] = fibre.printed
            flying[started] = fibre
            started += 1
            advance(fibre)
            show()
        first = min(errors, default=None)
        if first is not None and all(index > first for index in flying):
            show()
            _pinned.extend(flying.values())
            raise errors[first]
        if exhausted and not flying:
            return [results[i] for i in range(started) if results[i] is not _NO_MORE]
        number, answer = line.receive()
        ready = waiting.pop(number, None)
        # Answers for bodies after the first error are dropped.
        if ready is not None and (first is None or ready.index < first):
            advance(ready, answer)
            show()


def _next(bodies: Iterator[Callable[[], Any]]) -> Any:
    try:
        body = next(bodies)
    except StopIteration:
        return _NO_MORE
    return body()


def call(fibre: Fibre, name: str, arguments: dict[str, Any]) -> Any:
    """Call a tool from a body. The body is suspended until the answer arrives."""
    key = f"{fibre.key}{fibre.calls}"
    fibre.calls += 1
    answer = fibre.parent.switch((name, arguments, key))
    return answer()

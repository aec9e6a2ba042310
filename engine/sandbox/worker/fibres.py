"""`parallel`: bodies that only read run together, and nobody can tell but by the clock.

Each body is a fibre (a greenlet), so a program needs no ``async``: where a body calls a tool, the fibre sends the message
and stands still, and the next body starts, or one whose answer has come goes on. Results, the first error, what is printed and the
keys of calls are those of the sequential run, in the order of the program. After the first error no later body starts; the
bodies before it finish, because one of them may fail too and then comes first; those after it are pinned where they stand:
never resumed, and never ended by an exception thrown into them, which a ``finally`` of theirs would see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from greenlet import getcurrent, greenlet

from albert_tools.engine.model.limits import MAX_FIBRES


class Line(Protocol):
    """The worker's end of the socket, as fibres use it."""

    def send_call(self, name: str, arguments: dict[str, Any], key: str, overlapping: bool) -> int:
        """Send a call; gives the number that its answer will carry."""

    def receive(self) -> tuple[int, Any]:
        """Wait for the next answer: its number, and a thunk that gives the value or raises."""


class Fibre(greenlet):  # type: ignore[misc]
    """One body: its place in the program's order, what it printed, and how it ended."""

    def __init__(self, body: Callable[[], Any], parent: Any, index: int, key: str) -> None:
        super().__init__(body, parent)
        self.index = index
        self.key = key
        self.calls = 0
        self.printed: list[str] = []


#: Fibres that must never go on; dropping the last reference would throw an exception into them.
_pinned: list[Fibre] = []
_NO_MORE = object()


def current() -> Fibre | None:
    """The body that is running, None outside of `gather`."""
    found = getcurrent()
    return found if isinstance(found, Fibre) else None


def gather(line: Line, bodies: Iterator[Callable[[], Any]], key: str, emit: Callable[[str], None]) -> list[Any]:
    """Run the bodies, at most `MAX_FIBRES` at once; their results in order.

    Args:
        line: Where calls go.
        bodies: Made one by one, each within the fibre that runs it; making one may raise and print like the body itself.
        key: The prefix of the calls' keys.
        emit: Takes what bodies print, in order.

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
        """Let a fibre go on until it calls or ends."""
        nonlocal exhausted
        try:
            result = fibre.switch(*value)
        except (MemoryError, RecursionError):
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
        # An answer for a pinned fibre is dropped, and so is one that comes after the first error for a later body.
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
    """A tool call out of a body: stand still until the answer is here."""
    key = f"{fibre.key}{fibre.calls}"
    fibre.calls += 1
    answer = fibre.parent.switch((name, arguments, key))
    return answer()

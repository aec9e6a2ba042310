"""The code inside a confined process: import, close the fence, read the arguments, call the function once, answer, end.

The order is important. The imports are the application's own code and trusted. The arguments are not trusted, so they are read
only after the fence is closed. Descriptor 0 is the socket to the service, and 1 and 2 are one pipe. No other descriptor is open.
The service sends the settings and the arguments. The process sends one of these messages (`json_frames`)::

    ["ready"]
    ["failed", text]                                        the function can't be prepared
    ["result", value]
    ["failure", {code, message, hint, retryable, details}]  the function raised a `Failure`
    ["exception", {type, message}]                          the function raised another exception
    ["memory"]                                              the memory is used up

Hostile arguments can control these messages, so the service doesn't trust them.
"""

from __future__ import annotations

import json
import os
import sys
import types
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from albert_tools.engine.model.messages import brief
from albert_tools.engine.sandbox.kernel.prctl import die_with_parent
from albert_tools.engine.sandbox.worker.confined_fence import FenceLimits, close_fence
from albert_tools.engine.sandbox.worker.json_frames import JsonUnpacker, frame

#: The most characters of an exception's message. The rest is cut off.
MAX_MESSAGE = 2_000


def main() -> NoReturn:
    """Prepare the process, and execute the one call."""
    messages = _messages()
    settings = next(messages)[0]
    try:
        die_with_parent(parent=settings["parent"])
        function = _function(settings)
        os.closerange(3, 1 << 16)
        limits = FenceLimits(settings["memory_bytes"], settings["cpu_seconds"])
        close_fence(settings["kind"], limits, list(_readable()))
    except BaseException as error:
        # The import of an application's module can raise anything, even `SystemExit`.
        _send("failed", f"{type(error).__name__}: {text_of(error)}")
        os._exit(1)
    _send("ready")
    used_up = False
    try:
        plain, packed = next(messages)
        arguments = {**plain, **{name: b64decode(text) for name, text in packed.items()}}
        _answer(function, arguments, settings["result_bytes"])
    except MemoryError:
        used_up = True
    if used_up:
        # After the `except` block, the objects of the exception are freed, so there is memory for the message.
        _send("memory")
    os._exit(0)


def _answer(function: Callable[..., Any], arguments: dict[str, Any], most: int) -> None:
    try:
        text = _encoded(function(**arguments))
        if isinstance(text, str):
            _send("failure", described("not_json", f"the result is not JSON: {text}"))
        elif len(text) > most:
            _send("failure", described("result_limit", f"the result has more than {most:,} bytes"))
        else:
            _send_bytes(text)
    except MemoryError:
        raise
    except BaseException as error:
        failure = sys.modules.get("albert_tools.engine.model.failure")
        if failure is not None and isinstance(error, failure.Failure):
            details = error.details if _is_json(error.details) else {}
            _send("failure", described(error.code, error.message, error.hint, error.retryable, details))
        else:
            _send("exception", {"type": type(error).__name__, "message": text_of(error)})


def _encoded(value: Any) -> bytes | str:
    """The encoded message of a result, or the error text if the result is not JSON."""
    try:
        return json.dumps(["result", value], allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return text_of(error)


def _function(settings: dict[str, Any]) -> Callable[..., Any]:
    from importlib import import_module

    for name in settings["imports"]:
        import_module(name)
    found: Any = import_module(settings["module"])
    for part in settings["name"].split("."):
        found = getattr(found, part)
    # For a primitive, use the function that it wraps.
    found = getattr(found, "function", found) if not isinstance(found, types.FunctionType) else found
    if not callable(found):
        raise TypeError(f"{settings['module']}.{settings['name']} is not a function")
    return found  # type: ignore[no-any-return]


def _readable() -> Iterator[str]:
    """The folders of libraries: Python's own, the installed ones, and the packages that were imported from other folders."""
    yield os.path.dirname(os.__file__)
    yield from (p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages", "lib-dynload"))
    for module in list(sys.modules.values()):
        for folder in vars(module).get("__path__") or () if isinstance(module, types.ModuleType) else ():
            if isinstance(folder, str):
                yield folder


def described(
    code: str, message: str, hint: str | None = None, retryable: bool = False, details: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The fields of a failure."""
    return {
        "code": code,
        "message": brief(str(message), MAX_MESSAGE),
        "hint": None if hint is None else brief(str(hint), MAX_MESSAGE),
        "retryable": bool(retryable),
        "details": details or {},
    }


def _is_json(value: Any) -> bool:
    try:
        return len(json.dumps(value, allow_nan=False)) <= 64 * 1024
    except (TypeError, ValueError, RecursionError):
        return False


def text_of(error: BaseException) -> str:
    """The shortened message of an exception."""
    try:
        return brief(str(error), MAX_MESSAGE)
    except Exception:
        return ""


def _send(*message: Any) -> None:
    _send_bytes(json.dumps(message).encode())


def _send_bytes(text: bytes) -> None:
    rest = memoryview(frame(text))
    while rest:
        rest = rest[os.write(0, rest) :]


def _messages() -> Iterator[list[Any]]:
    """The messages of the service. When the service closes the socket, the process ends."""
    unpacker = JsonUnpacker(sys.maxsize)
    while data := os.read(0, 1 << 20):
        yield from unpacker.feed(data)
    os._exit(0)

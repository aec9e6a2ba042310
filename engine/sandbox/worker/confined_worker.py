"""The worker of a confined function. Its zygote has imported the function, and has seen no input.

The order is important. The imports are the application's own code and trusted. The arguments are not trusted, so they are read only
after the fence is closed. Descriptor 0 is the socket to the service, and 1 and 2 are one pipe. No other descriptor is open. The
messages are those of `function_worker`, with ``[plain, packed]`` as arguments: those that are JSON, and bytes in base64.
"""

from __future__ import annotations

import json
import os
import sys
import types
from base64 import b64decode
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB, RunLimits
from albert_tools.engine.sandbox.worker.confined_fence import wide_fence
from albert_tools.engine.sandbox.worker.fence import Fence
from albert_tools.engine.sandbox.worker.function_worker import FunctionWorker, text_of

#: The most bytes of the answer, as JSON.
MAX_RESULT = 16 * MiB


def prepare(names: list[str]) -> ConfinedWorker:
    """The worker, before the fork. `names` are the module and the name of the function, and further modules to import."""
    module, name, *imports = names
    for each in imports:
        import_module(each)
    target: Any = import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    # For a primitive, use the function that it wraps.
    target = getattr(target, "function", target) if not isinstance(target, types.FunctionType) else target
    return ConfinedWorker(target)


class ConfinedWorker(FunctionWorker):
    """Calls `function` with its arguments, behind the wide fence."""

    closed = False
    used_up = (MemoryError,)

    def __init__(self, function: Callable[..., Any]) -> None:
        def call(arguments: Any, _: object) -> Any:
            plain, packed = arguments
            return function(**plain, **{name: b64decode(text) for name, text in packed.items()})

        super().__init__(call, [], sys.getrecursionlimit(), MAX_RESULT)

    def fence(self, limits: RunLimits, kind: str) -> Fence:
        """The fence around this worker."""
        return wide_fence(limits, kind, _readable())

    def encoded(self, result: Any) -> str:
        """The result as JSON.

        Raises:
            Failure: `not_json`.
        """
        try:
            return json.dumps(result, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise Failure("not_json", f"the result is not JSON: {text_of(error)}") from None


def _readable() -> Iterator[str]:
    """The folders of libraries: Python's own, the installed ones, and the packages that were imported from other folders."""
    yield os.path.dirname(os.__file__)
    yield from (p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages", "lib-dynload"))
    for module in list(sys.modules.values()):
        for folder in vars(module).get("__path__") or () if isinstance(module, types.ModuleType) else ():
            if isinstance(folder, str):
                yield folder

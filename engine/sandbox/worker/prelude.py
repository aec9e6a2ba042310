"""The language's additions to Python, in plain Python. With these five names, CPython can execute a source.

Tests use it for comparison: CPython executes an unchanged source under `prelude(...)`, and the sandbox must give the same result.
`ToolError` is the class that the sandbox itself raises.
"""

from __future__ import annotations

from collections.abc import Callable
from types import GeneratorType
from typing import Any


class ToolError(Exception):
    """A failed tool call, or a tool that gives up: ``raise ToolError("no such row")``.

    Attributes:
        message: A sentence.
        tool: The tool that failed; None if the program raised the error itself.
        code: Stable and machine-readable (`engine.model.error_codes.CODES`).
        retryable: Whether the same call may succeed later.
    """

    #: The number of the failed call, by which the service finds its failure. Programs can't read or set it.
    _call: int | None = None

    def __init__(
        self, message: Any = "", *, tool: str | None = None, code: str = "tool_error", retryable: bool = False
    ) -> None:
        super().__init__(message)
        self.message = str(message)
        self.tool = tool
        self.code = code
        self.retryable = retryable


class _Tools:
    """``tools.NAME(...)`` and ``tools.SERVER.NAME(...)``."""

    def __init__(self, call: Callable[[str, tuple[Any, ...], dict[str, Any]], Any], path: str = "") -> None:
        self._call = call
        self._path = path

    def __getattr__(self, name: str) -> _Tools:
        return _Tools(self._call, f"{self._path}.{name}" if self._path else name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._path, args, kwargs)


def _tool(*args: Any, **kwargs: Any) -> Any:
    """``@tool`` and ``@tool(timeout=60)``."""
    return args[0] if args and callable(args[0]) else lambda function: function


def _example(**kwargs: Any) -> Callable[[Any], Any]:
    """``@example(arguments={…}, result=…)``."""
    return lambda function: function


def _parallel(*parts: Any) -> Any:
    """``parallel(f(x) for x in xs)`` returns a list, ``parallel(a(), b())`` a tuple."""
    return list(parts[0]) if len(parts) == 1 and isinstance(parts[0], GeneratorType) else parts


def prelude(
    call: Callable[[str, tuple[Any, ...], dict[str, Any]], Any], print_: Callable[..., None] = print
) -> dict[str, Any]:
    """The globals for a source. `call` gets each tool call as (name, args, kwargs)."""
    return {
        "__name__": "tool",
        "tools": _Tools(call),
        "tool": _tool,
        "example": _example,
        "parallel": _parallel,
        "ToolError": ToolError,
        "print": print_,
    }

"""Validates the answer of a confined function. The answer is untrusted, like the input of the function.

A valid answer is a value of the domain, or a failure that the function can know.
"""

from __future__ import annotations

from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.child import believable, broke_protocol

#: The most bytes of a failure's details, as JSON.
MAX_DETAILS = 64 * 1024

_LATE_IMPORT = "with the fence closed it is too late to import that: name the module in `imports`"


def answer_of(name: str, message: list[Any], max_bytes: int) -> Any:
    """The value in a message of the function `name`.

    Raises:
        Failure: the function's own failure; `not_json`, `result_limit`, `memory_limit`, `sandbox_violation`.
    """
    match message:
        case ["result", value]:
            try:
                return export(value, max_bytes)
            except Unexportable as error:
                raise Failure(error.code, error.sentence(f"the result of {name}")) from None
        case ["failure", dict() as fields]:
            raise _own_failure(name, fields)
        case ["exception", {"type": str() as kind, "message": str() as text}]:
            raise Failure(
                "exception",
                _valid(f"{kind[:200]}: {text[:2000]}" if text else kind[:200]),
                hint=_LATE_IMPORT if kind in ("ImportError", "ModuleNotFoundError") else None,
                details={"type": _valid(kind[:200])},
            )
        case ["memory"]:
            raise Failure("memory_limit", f"{name} used up its memory", hint="give it less at once")
        case _:
            raise broke_protocol(name, "a message that confined functions don't send")


def _own_failure(name: str, fields: dict[str, Any]) -> Failure:
    code, message, hint, details = (fields.get(part) for part in ("code", "message", "hint", "details"))
    return Failure(
        str(code) if believable(code) else "exception",
        _valid(message[:4000]) if isinstance(message, str) else f"{name} failed",
        hint=_valid(hint[:2000]) if isinstance(hint, str) else None,
        retryable=fields.get("retryable") is True,
        details=_details(details) if isinstance(details, dict) else {},
    )


def _details(details: dict[str, Any]) -> dict[str, Any]:
    """The details, if they are valid and small. Without ``trail``, because the service writes it."""
    try:
        found: dict[str, Any] = export({k: v for k, v in details.items() if k != "trail"}, MAX_DETAILS)
    except Unexportable:
        return {}
    return found


def _valid(text: str) -> str:
    """A text without lone surrogates. JSON can contain them, UTF-8 can't."""
    return text.encode("utf-8", "replace").decode()

"""The failures in the answers of a confined function. They are untrusted, like the input of the function: a valid one is a failure
that the function can know.
"""

from __future__ import annotations

from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.child import believable, broke_protocol

#: The most bytes of a failure's details.
MAX_DETAILS = 64 * 1024

_LATE_IMPORT = "with the fence closed it is too late to import that: name the module in `imports`"


def failure_of(name: str, message: list[Any]) -> Failure:
    """The failure in a message of the function `name`; `sandbox_violation` if it is none."""
    match message:
        case ["failure", dict() as fields]:
            return _own_failure(name, fields)
        case ["exception", {"type": str() as kind, "message": str() as text}]:
            return Failure(
                "exception",
                f"{kind[:200]}: {text[:2000]}" if text else kind[:200],
                hint=_LATE_IMPORT if kind in ("ImportError", "ModuleNotFoundError") else None,
                details={"type": kind[:200]},
            )
        case ["memory"]:
            return Failure("memory_limit", f"{name} used up its memory", hint="give it less at once")
    return broke_protocol(name, "a message that confined functions don't send")


def _own_failure(name: str, fields: dict[str, Any]) -> Failure:
    code, message, hint, details = (fields.get(part) for part in ("code", "message", "hint", "details"))
    return Failure(
        str(code) if believable(code) else "exception",
        message[:4000] if isinstance(message, str) else f"{name} failed",
        hint=hint[:2000] if isinstance(hint, str) else None,
        retryable=fields.get("retryable") is True,
        details=_details(details) if isinstance(details, dict) else {},
    )


def _details(details: dict[str, Any]) -> dict[str, Any]:
    """The details, if they are valid and small. Without ``trail``, because the service writes it."""
    try:
        exported: dict[str, Any] = export({k: v for k, v in details.items() if k != "trail"}, MAX_DETAILS)
    except Unexportable:
        return {}
    return exported

"""Albert Tools: an agent writes new tools at run time, safely.

Names are loaded on first use, so importing the package takes almost no time. The zygote of the workers and ``albert run`` depend on
this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval as Approval
    from albert_tools.engine.authority.authorization import Answer as Answer
    from albert_tools.engine.authority.authorization import Question as Question
    from albert_tools.engine.authority.sessions import Budget as Budget
    from albert_tools.engine.authority.sessions import Session as Session
    from albert_tools.engine.call.tool_registry import ToolRegistry as ToolRegistry
    from albert_tools.engine.model.definition import ToolDefinition as ToolDefinition
    from albert_tools.engine.model.definition import ToolParameter as ToolParameter
    from albert_tools.engine.model.failure import Failure as Failure
    from albert_tools.engine.model.interrupted import InterruptedCall as InterruptedCall
    from albert_tools.engine.model.interrupted import Settled as Settled
    from albert_tools.engine.model.primitive import Primitive as Primitive
    from albert_tools.engine.model.primitive import primitive as primitive
    from albert_tools.engine.model.primitive import primitive_from_schema as primitive_from_schema
    from albert_tools.engine.model.protocols import CallContext as CallContext
    from albert_tools.engine.model.result import ToolInvocation as ToolInvocation
    from albert_tools.engine.model.result import ToolResult as ToolResult
    from albert_tools.engine.runs.runs import RunView as RunView
    from albert_tools.grammar.diagnostic import Diagnostic as Diagnostic
    from albert_tools.grammar.source_error import SourceError as SourceError
    from albert_tools.service import SyncToolService as SyncToolService
    from albert_tools.service import ToolService as ToolService

_PUBLIC = {
    "Answer": "albert_tools.engine.authority.authorization",
    "Approval": "albert_tools.engine.authority.approvals",
    "Budget": "albert_tools.engine.authority.sessions",
    "CallContext": "albert_tools.engine.model.protocols",
    "Diagnostic": "albert_tools.grammar.diagnostic",
    "Failure": "albert_tools.engine.model.failure",
    "InterruptedCall": "albert_tools.engine.model.interrupted",
    "Primitive": "albert_tools.engine.model.primitive",
    "Question": "albert_tools.engine.authority.authorization",
    "RunView": "albert_tools.engine.runs.runs",
    "Session": "albert_tools.engine.authority.sessions",
    "Settled": "albert_tools.engine.model.interrupted",
    "SourceError": "albert_tools.grammar.source_error",
    "SyncToolService": "albert_tools.service",
    "ToolDefinition": "albert_tools.engine.model.definition",
    "ToolInvocation": "albert_tools.engine.model.result",
    "ToolParameter": "albert_tools.engine.model.definition",
    "ToolRegistry": "albert_tools.engine.call.tool_registry",
    "ToolResult": "albert_tools.engine.model.result",
    "ToolService": "albert_tools.service",
    "primitive": "albert_tools.engine.model.primitive",
    "primitive_from_schema": "albert_tools.engine.model.primitive",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("albert-tools")
        except PackageNotFoundError:
            # The package is not installed; it runs from its sources.
            return "0+unknown"
    if name not in _PUBLIC:
        raise AttributeError(f"module 'albert_tools' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value

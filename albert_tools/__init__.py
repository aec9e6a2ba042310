"""Albert Tools: an agent writes new tools at run time, safely.

Names are loaded on first use, so importing the package takes almost no time. The zygote of the workers and ``albert run`` depend on
this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tools.engine.agent.invocation_parser import ToolInvocationParser as ToolInvocationParser
    from albert_tools.engine.authority.approvals import Approval as Approval
    from albert_tools.engine.authority.authorization import Answer as Answer
    from albert_tools.engine.authority.authorization import Question as Question
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
    from albert_tools.engine.model.session_budget import Budget as Budget
    from albert_tools.engine.runs.runs import RunView as RunView
    from albert_tools.grammar.diagnostic import Diagnostic as Diagnostic
    from albert_tools.grammar.source_error import SourceError as SourceError
    from albert_tools.service import SyncToolService as SyncToolService
    from albert_tools.service import ToolService as ToolService

#: Module → the public names that it defines.
_MODULES = {
    "engine.agent.invocation_parser": "ToolInvocationParser",
    "engine.authority.approvals": "Approval",
    "engine.authority.authorization": "Answer Question",
    "engine.authority.sessions": "Session",
    "engine.call.tool_registry": "ToolRegistry",
    "engine.model.definition": "ToolDefinition ToolParameter",
    "engine.model.failure": "Failure",
    "engine.model.interrupted": "InterruptedCall Settled",
    "engine.model.primitive": "Primitive primitive primitive_from_schema",
    "engine.model.protocols": "CallContext",
    "engine.model.result": "ToolInvocation ToolResult",
    "engine.model.session_budget": "Budget",
    "engine.runs.runs": "RunView",
    "grammar.diagnostic": "Diagnostic",
    "grammar.source_error": "SourceError",
    "service": "SyncToolService ToolService",
}
_PUBLIC = {name: f"albert_tools.{module}" for module, names in _MODULES.items() for name in names.split()}

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

"""Which operations of a tool that has several may be used: of `git`, for example, DIFF and not PUSH."""

from __future__ import annotations

from albert_tools.engine.govern.policy.decision import Decision
from albert_tools.engine.govern.policy.layers import Layer, Resource
from albert_tools.engine.model.definition import ToolDefinition


def judge_operation(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """What the rules say of an operation; None where they leave it to what holds for the whole tool."""
    operation = resource.name.upper()
    asked = None
    for layer in layers:
        for place, section in layer.sections(definition):
            if operation in section.forbidden_operations:
                message = f"{definition.name} may not be used to {operation}"
                return Decision("deny", f"{place}.forbidden_operations", "operation", message)
            allowed = section.allowed_operations
            if allowed is not None and operation not in allowed:
                message = f"{definition.name} may not be used to {operation}; it may {', '.join(sorted(allowed))}"
                hint = "use one of these, or ask the owner to add it"
                return Decision("deny", f"{place}.allowed_operations", "operation", message, hint)
            if operation in section.asking_operations and asked is None:
                message = f"{definition.name} asks a person before each {operation}"
                asked = Decision("ask", f"{place}.asking_operations", "approval_required", message)
    return asked

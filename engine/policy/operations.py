"""Which operations of a tool that has several may be used: of `git`, for example, DIFF and not PUSH.

Shipped is that git asks before what changes history, the working tree or a remote; what the owner names under `allowed_operations`
doesn't ask.
"""

from __future__ import annotations

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.layers import Layer, Resource

#: By tool: the operations that are asked about where the owner's rules don't name them.
SHIPPED_ASKING: dict[str, frozenset[str]] = {
    "git": frozenset(
        "CLONE FETCH PULL COMMIT PUSH BRANCH CHECKOUT MERGE REBASE RESET STASH TAG REMOTE".split(),
    ),
}


def judge_operation(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """What the rules say of an operation; None where they leave it to what holds for the whole tool."""
    operation = resource.name.upper()
    asked, named = None, False
    for layer in layers:
        for place, section in layer.sections(definition):
            if operation in section.forbidden_operations:
                message = f"{definition.name} may not be used to {operation}"
                return Decision("deny", f"{place}.forbidden_operations", "operation", message)
            allowed = section.allowed_operations
            named = named or (layer.owner and allowed is not None)
            if allowed is not None and operation not in allowed:
                message = f"{definition.name} may not be used to {operation}; it may {', '.join(sorted(allowed))}"
                hint = "use one of these, or ask the owner to add it"
                return Decision("deny", f"{place}.allowed_operations", "operation", message, hint)
            if operation in section.asking_operations and asked is None:
                message = f"{definition.name} asks a person before each {operation}"
                asked = Decision("ask", f"{place}.asking_operations", "approval_required", message)
    if asked is None and not named and operation in SHIPPED_ASKING.get(definition.name, ()):
        message = f"{definition.name} asks a person before each {operation}"
        hint = f"the owner can name it under tools.{definition.name}.allowed_operations"
        asked = Decision("ask", "shipped.asking_operations", "approval_required", message, hint)
    return asked

"""Which models may be asked, and at whose place: names as providers write them, with ``*`` for whatever stands there.

Where no rule speaks of them, what the owner has configured may be used: a provider without configuration can't be reached anyway.
"""

from __future__ import annotations

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.wildcards import Starred
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.layers import Layer, Resource

#: Names that a denial lists.
_MAX_SHOWN = 20


def judge_name(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """What the rules say of a provider or a model; None where they allow it."""
    for layer in layers:
        for place, section in layer.sections(definition):
            allowed = section.allowed_providers if resource.kind == "provider" else section.allowed_models
            if not _among(resource.name, allowed):
                return _denied(f"{place}.allowed_{resource.kind}s", definition, resource, allowed)
    return None


def _among(name: str, patterns: tuple[str, ...] | None) -> bool:
    return patterns is None or any(matches_name(name, pattern) for pattern in patterns)


def matches_name(name: str, pattern: str) -> bool:
    """Whether a pattern names `name`: letter by letter, ``*`` for any others."""
    return Starred.of(pattern).fits(name)


def _denied(rule: str, definition: ToolDefinition, resource: Resource, allowed: tuple[str, ...] | None) -> Decision:
    kind: str = resource.kind
    shown = ", ".join((allowed or ())[:_MAX_SHOWN]) or "none"
    return Decision(
        "deny",
        rule,
        "provider" if kind == "provider" else "model",
        f"the {kind} {resource.name[:256]!r} is not among those that {definition.name} may use: {shown}",
        "use one of these, or ask the owner to add it",
    )

"""Rules on the modes in which a tool may be called, and on gated tools.

In each file, the sections on a tool are combined: a mode is permitted if a section allows it or requires approval for it, and no
section forbids it. The owner's file is checked first, then the project's file. If the owner's file says nothing about the modes
of the tool, the shipped rules apply.
"""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.model.definition import MODES, Mode, ToolDefinition
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.layers import Layer, Section, views, written_at
from albert_tools.engine.policy.rule_kind import CategoryKey, Examined, Finding, ListKey, RuleKind
from albert_tools.engine.policy.shipped import BY_CATEGORY, COMPOSITE, NAMED


def _mode(text: str) -> str:
    if text not in MODES:
        raise ValueError(f"the modes are {', '.join(MODES)}, not {text!r}{did_you_mean(text, MODES)}")
    return text


ALLOWED = ListKey("allowed_in_modes", _mode, 16, "[NORMAL, ALERT]", "the modes in which calls are allowed")
ASKING = ListKey("requires_approval_in_modes", _mode, 16, "[DEGRADED]", "the modes in which calls need approval")
FORBIDDEN = ListKey("forbidden_in_modes", _mode, 16, "[LOCKDOWN]", "the modes in which calls are denied")
_KEYS = (ALLOWED, ASKING, FORBIDDEN)
CATEGORY = CategoryKey(
    "category", "network", "a category whose rules apply too, under `tools` alone; the tool's own category remains"
)


def permissions(layers: tuple[Layer, ...], definition: ToolDefinition, gated: bool, mode: Mode) -> list[Decision]:
    """The decisions that apply to every call of a tool in a mode, independent of its arguments. There is at least one."""
    name = definition.name
    if mode not in definition.allowed_modes:
        return [Decision("deny", "definition.allowed_modes", "tool_mode", f"{name} can't be used in {mode}")]
    seen_as = views(layers, definition)
    decisions = [d for view in seen_as for layer in layers if (d := _of_layer(layer, view, gated, mode)) is not None]
    if definition.approval:
        decisions.append(Decision("ask", "definition.approval", "approval_required", f"{name} always needs approval"))
    return decisions


def _of_layer(layer: Layer, definition: ToolDefinition, gated: bool, mode: Mode) -> Decision | None:
    name = definition.name
    if name in layer.deny:
        rule = f"{layer.place}deny"
        return Decision("deny", rule, "denied", f"{name} is denied by the rules", f"{written_at(rule)} lists it")
    sections = [(place, s) for place, s in layer.sections(definition) if _speaks_of_modes(s)]
    shipped = _shipped(definition, name in layer.allow)
    # A section on a category doesn't open a gated tool, because its author may not know which gated tools are in the category.
    opened = name in layer.allow or (layer.owner and any(place == f"tools.{name}" for place, _ in sections))
    if gated and not opened and (layer.owner or layer.says_allow):
        decision = _in_mode([*sections, shipped], name, mode)
        # If the mode denies the tool anyway, report the mode, because opening the tool would not help.
        return decision if decision.rationale == "mode" else _off(layer, name)
    if not sections and not layer.owner:
        return None
    return _in_mode(sections or [shipped], name, mode)


def _speaks_of_modes(section: Section) -> bool:
    return any(key.name in section for key in _KEYS)


def _shipped(definition: ToolDefinition, named: bool) -> tuple[str, Section]:
    """The shipped section for a tool, with its rule id. `named`: whether the file lists the tool under `allow`."""
    if named:
        return "allow", NAMED
    if definition.kind == "composite":
        return "shipped.saved_tools", COMPOSITE
    category = definition.category or "read_only"
    return f"shipped.categories.{category}", BY_CATEGORY[category]


def _off(layer: Layer, name: str) -> Decision:
    if not layer.owner:
        message, hint = f"the project's rules don't allow {name}", f"it can be added to {written_at('project.allow')}"
        return Decision("deny", "project.allow", "off_by_default", message, hint)
    hint = f"the owner can add `allow: [{name}]` to governance.yaml (`albert doctor` shows the path)"
    return Decision("deny", "gated", "off_by_default", f"{name} is off until the owner allows it", hint)


def _in_mode(sections: list[tuple[str, Section]], name: str, mode: Mode) -> Decision:
    def first(key: ListKey) -> str | None:
        return next((f"{place}.{key.name}" for place, s in sections if mode in (key.of(s) or ())), None)

    if rule := first(FORBIDDEN):
        hint = "`albert mode` shows why this mode is on; only a person can switch it" if mode != "NORMAL" else None
        return Decision("deny", rule, "mode", f"{name} is forbidden in {mode}", hint)
    if rule := first(ASKING):
        return Decision("ask", rule, "approval_required", f"{name} needs a person's approval in {mode}")
    if rule := first(ALLOWED):
        return Decision("allow", rule, "allowed")
    hint = f"{mode} can be added to {written_at(f'{sections[0][0]}.{ALLOWED.name}')}"
    return Decision("deny", "no_rule", "no_rule", f"no rule allows {name} in {mode}", hint)


def _lint(examined: Examined) -> Iterator[Finding]:
    place, tools = examined.place, examined.tools
    allowed, asked, forbidden = (set(key.of(examined.section) or ()) for key in _KEYS)
    for mode in sorted(allowed & (forbidden | asked)):
        stricter = FORBIDDEN if mode in forbidden else ASKING
        yield f"{place}.{ALLOWED.name}", f"{mode} has no effect here: `{stricter.name}` lists it too"
    for mode in sorted(asked & forbidden):
        yield f"{place}.{ASKING.name}", f"{mode} has no effect here: `{FORBIDDEN.name}` lists it too"
    meant = CATEGORY.of(examined.section)
    for d in tools:
        if meant not in (None, d.category):
            yield f"{place}.{CATEGORY.name}", f"the rules on {meant} apply too; those on {d.category} remain"
    if examined.group == "tools" and _speaks_of_modes(examined.section) and not allowed and not asked:
        yield place, "no mode is allowed, so every call is denied; write `deny` instead"
    for mode in sorted(allowed | asked):
        if tools and all(mode not in d.allowed_modes for d in tools):
            yield f"{place}.{ALLOWED.name}", f"the tool's definition doesn't permit {mode}"


MODE_RULES = RuleKind((*_KEYS, CATEGORY), for_composites=True, lint=_lint)

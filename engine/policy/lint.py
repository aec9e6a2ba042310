"""Finds rules without effect, and rules with an unexpected effect: unknown names, and keys that contradict each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.policy.layers import Layer, views
from albert_tools.engine.policy.rule_kind import Examined, Finding
from albert_tools.engine.policy.rule_table import RULES, without_effect

if TYPE_CHECKING:
    from albert_tools.engine.model.primitive import Primitive
    from albert_tools.engine.policy.settings import Governance


def lint(
    rules: Governance,
    primitives: Sequence[ToolDefinition],
    composites: Iterable[str],
    workspace: str = "",
    home: str = "",
) -> list[dict[str, str]]:
    """Each finding as ``{rule, message}``. Folders outside the workspace are checked if `workspace` and `home` are given."""
    known = {d.name: d for d in primitives}
    names = {*known, *composites, *rules.other_tools, *(rules.project.other_tools if rules.project is not None else ())}
    layers, seconds = rules.layers(), rules.limits.call_seconds
    findings: list[Finding] = []
    for layer in layers:
        findings += _names(layer, known, names)
        top = Examined(layers, layer, "", "", layer.everywhere, [*known.values()], workspace, home)
        findings += _section(top, names)
        for name, section in layer.tools.items():
            tools = [known[name]] if name in known else []
            examined = Examined(layers, layer, "tools", name, section, tools, workspace, home, seconds)
            findings += _section(examined, names)
        for category, section in layer.categories.items():
            tools = [d for d in known.values() if any(v.category == category for v in views(layers, d))]
            examined = Examined(layers, layer, "categories", category, section, tools, workspace, home, seconds)
            findings += _section(examined, names)
    return _as_documents(findings)


def lint_settings(
    rules: Governance, primitives: Sequence[Primitive], all_declared: Collection[str]
) -> list[dict[str, str]]:
    """Mistakes in the settings of primitives, each as ``{rule, message}``.

    `all_declared` names the primitives that accept only their declared settings.
    """
    known = {p.name: p for p in primitives}
    findings: list[Finding] = []
    for name, settings in rules.primitives.items():
        place, p = f"primitives.{name}", known.get(name)
        if p is None:
            findings.append((place, f"there is no primitive named {name!r}{did_you_mean(name, known)}"))
        elif p.settings is not None:
            findings += [(f"{place}.{at}".rstrip("."), message) for at, message in p.wrong_settings(settings)]
        elif settings and (p.context is None or name in all_declared):
            others = ", ".join(other for other, primitive in known.items() if primitive.settings is not None)
            findings.append((place, f"{name} has no settings; these have: {others}"))
    for name in rules.project.primitives if rules.project is not None else ():
        findings.append((f"project.primitives.{name}", "it has no effect: only the owner's file sets settings"))
    if rules.project is not None and rules.project.queues != type(rules)().queues:
        findings.append(("project.queues", "it has no effect: only the owner's file has queues"))
    return _as_documents(findings)


def _as_documents(findings: Iterable[Finding]) -> list[dict[str, str]]:
    return [{"rule": rule, "message": message} for rule, message in findings]


def _names(layer: Layer, known: Mapping[str, ToolDefinition], names: Collection[str]) -> Iterator[Finding]:
    """Names of tools that don't exist, or that are both allowed and denied."""
    for key, listed, existing in (
        ("allow", layer.allow, known),
        ("deny", layer.deny, names),
        ("tools", frozenset(layer.tools), names),
    ):
        kind = "primitive" if key == "allow" else "tool"
        for name in sorted(listed.difference(existing)):
            yield f"{layer.place}{key}.{name}", f"there is no {kind} named {name!r}{did_you_mean(name, existing)}"
    for rule in layer.flows:
        for name in {*rule.source.tools, *rule.to.tools} - {*names}:
            yield rule.place, f"there is no tool named {name!r}{did_you_mean(name, names)}"
    for name in sorted(layer.allow & layer.deny):
        yield f"{layer.place}allow.{name}", "it has no effect: `deny` lists the tool too"


def _section(examined: Examined, names: Collection[str]) -> Iterator[Finding]:
    """The findings of every rule kind in one section."""
    if examined.group == "categories" and not examined.tools:
        yield examined.place, "no primitive is of this category"
    composite = examined.group == "tools" and not examined.tools and examined.name in names
    for kind in RULES:
        keys = [f"`{key.name}`" for key in kind.keys if key.name in examined.section]
        if keys and composite and not kind.for_composites:
            yield (
                examined.place,
                f"{examined.name} is a composite, so {', '.join(keys)} has no effect: write it under the tools that it calls",
            )
        yield from kind.lint(examined)
        if examined.group == "categories" and examined.tools and not any(map(kind.concerns, examined.tools)):
            for key in kind.keys:
                if key.name in examined.section:
                    yield f"{examined.place}.{key.name}", f"each tool of this category {kind.not_for}"
    for definition in examined.tools if examined.group == "tools" else ():
        for name, message in without_effect(definition, examined.section):
            yield f"{examined.place}.{name}", f"denied until this is corrected: {message}"

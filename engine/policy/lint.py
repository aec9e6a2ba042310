"""Rules that say nothing, or not what they seem to: names of tools that there aren't, modes that take each other back."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.policy.extra_roots import root_of
from albert_tools.engine.policy.sections import Section

if TYPE_CHECKING:
    from albert_tools.engine.model.primitive import Primitive
    from albert_tools.engine.policy.layers import Layer
    from albert_tools.engine.policy.settings import Governance


def lint(
    rules: Governance, primitives: Sequence[ToolDefinition], saved: Iterable[str], workspace: str = "", home: str = ""
) -> list[dict[str, str]]:
    """Each finding as ``{rule, message}``. With `workspace` and `home`, absolute paths, also about folders beyond the workspace."""
    known = {d.name: d for d in primitives}
    names = {*known, *saved}
    found = [pair for layer in rules.layers() for pair in _of_layer(layer, known, names)]
    found += _rates(rules.layers(), known)
    if workspace:
        found += [pair for layer in rules.layers() for pair in _roots(layer, workspace, home)]
    return [{"rule": rule, "message": message} for rule, message in found]


def lint_settings(
    rules: Governance, primitives: Sequence[Primitive], all_declared: Collection[str]
) -> list[dict[str, str]]:
    """What is wrong with what the rules set of primitives, each finding as ``{rule, message}``.

    `all_declared` names those that have no other settings than they declare.
    """
    known = {p.name: p for p in primitives}
    found = []
    for name, settings in rules.primitives.items():
        place, p = f"primitives.{name}", known.get(name)
        if p is None:
            found.append((place, f"there is no primitive named {name!r}{did_you_mean(name, known)}"))
        elif p.settings is not None:
            found += [(f"{place}.{at}".rstrip("."), message) for at, message in p.wrong_settings(settings)]
        elif settings and (p.context is None or name in all_declared):
            found.append((place, f"{name} has no settings; {_settable(known)} have"))
    for name in rules.project.primitives if rules.project is not None else ():
        found.append((f"project.primitives.{name}", "it never counts: settings are the owner's file's alone"))
    return [{"rule": rule, "message": message} for rule, message in found]


def _settable(known: dict[str, Primitive]) -> str:
    return ", ".join(name for name, p in known.items() if p.settings is not None)


def _of_layer(layer: Layer, known: dict[str, ToolDefinition], names: set[str]) -> Iterator[tuple[str, str]]:
    for what, listed, meant in (
        ("allow", layer.allow, known.keys()),
        ("deny", layer.deny, names),
        ("tools", frozenset(layer.tools), names),
    ):
        kind = "primitive" if what == "allow" else "tool"
        for name in sorted(listed - meant):
            yield f"{layer.place}{what}.{name}", f"there is no {kind} named {name!r}{did_you_mean(name, meant)}"
    for name in sorted(layer.allow & layer.deny):
        yield f"{layer.place}allow.{name}", "it never counts: `deny` names the tool too"
    for name, section in layer.tools.items():
        definition = known.get(name)
        yield from _modes(f"{layer.place}tools.{name}", section, [definition] if definition else [])
        if definition is None and name in names and _touches(section):
            place = f"{layer.place}tools.{name}"
            yield (
                place,
                f"{name} is a saved tool: paths, hosts and sizes are judged in the calls that it makes, by their names",
            )
        if definition is not None:
            yield from _useless(f"{layer.place}tools.{name}", section, definition)
    for category, section in layer.categories.items():
        place = f"{layer.place}categories.{category}"
        members = [d for d in known.values() if d.category == category]
        if not members:
            yield place, "no primitive is of this category"
        yield from _modes(place, section, members)


def _modes(place: str, section: Section, tools: Sequence[ToolDefinition]) -> Iterator[tuple[str, str]]:
    forbidden = section.forbidden_in_modes or frozenset()
    asked = section.requires_approval_in_modes or frozenset()
    allowed = section.allowed_in_modes or frozenset()
    for mode in sorted(allowed & (forbidden | asked)):
        stronger = "forbidden_in_modes" if mode in forbidden else "requires_approval_in_modes"
        yield f"{place}.allowed_in_modes", f"{mode} never counts here: `{stronger}` has it too"
    for mode in sorted(asked & forbidden):
        yield f"{place}.requires_approval_in_modes", f"{mode} never counts here: `forbidden_in_modes` has it too"
    if section.speaks_of_modes and not allowed and not asked:
        yield place, "it allows no mode, so it forbids the tool altogether; `deny` says that more plainly"
    for mode in sorted(allowed | asked):
        if tools and all(mode not in d.allowed_modes for d in tools):
            yield f"{place}.allowed_in_modes", f"the tool's own definition doesn't permit {mode}"


def _roots(layer: Layer, workspace: str, home: str) -> Iterator[tuple[str, str]]:
    for kind, sections in (("tools", layer.tools), ("categories", layer.categories)):
        for name, section in sections.items():
            place = f"{layer.place}{kind}.{name}.allowed_paths"
            for pattern in section.allowed_paths or ():
                root = root_of(pattern, workspace, home)
                if root is None:
                    continue
                if not layer.owner:
                    yield place, f"{pattern!r} opens nothing beyond the workspace: a project's file can only tighten"
                elif root.problem is not None:
                    yield place, f"{pattern!r} opens nothing beyond the workspace: {root.problem}"
                elif not os.path.isdir(root.real):
                    yield place, f"{pattern!r} opens nothing beyond the workspace: there is no folder {root.written!r}"


def _rates(layers: Iterable[Layer], known: dict[str, ToolDefinition]) -> Iterator[tuple[str, str]]:
    """Numbers of calls that are never reached, because a lower one counts the same calls."""
    said: dict[tuple[str, str], tuple[str, int]] = {}
    for layer in layers:
        for kind, sections in (("tools", layer.tools), ("categories", layer.categories)):
            for name, section in sections.items():
                rate = section.rate_limit_per_hour
                if rate is None:
                    continue
                place = f"{layer.place}{kind}.{name}.rate_limit_per_hour"
                definition = known.get(name) if kind == "tools" else None
                lower = [s for s in (said.get((kind, name)),) if s]
                if definition is not None:
                    own = getattr(definition, "rate_limit", None)
                    lower += [("the tool's own definition", own)] if own is not None else []
                    of_category = layer.categories.get(definition.category)  # type: ignore[arg-type]
                    if of_category is not None and of_category.rate_limit_per_hour is not None:
                        by = f"{layer.place}categories.{definition.category}.rate_limit_per_hour"
                        lower.append((by, of_category.rate_limit_per_hour))
                for by, other in lower:
                    if other < rate:
                        yield place, f"{rate:,} calls are never reached: {by} says {other:,}"
                        break
                said[kind, name] = min(said.get((kind, name), (place, rate)), (place, rate), key=lambda s: s[1])


def _touches(section: Section) -> bool:
    """Whether it speaks of what a call touches."""
    of_modes = section._replace(
        allowed_in_modes=None,
        requires_approval_in_modes=None,
        forbidden_in_modes=None,
        timeout_seconds=None,
        rate_limit_per_hour=None,
    )
    return of_modes != Section()


def _useless(place: str, section: Section, definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    touches_files = {"read", "write", "delete"} & set(definition.effects)
    if (section.allowed_paths is not None or section.forbidden_paths) and not touches_files:
        yield f"{place}.allowed_paths", f"{definition.name} touches no files"
    speaks_of_hosts = (
        section.allowed_hosts is not None
        or section.forbidden_hosts
        or section.allowed_methods is not None
        or section.allowed_addresses is not None
    )
    if speaks_of_hosts and "network" not in definition.effects:
        yield f"{place}.allowed_hosts", f"{definition.name} doesn't use the network"
    for key in ("allowed_commands", "forbidden_commands", "dangerous_commands"):
        patterns: tuple[str, ...] | None = getattr(section, key)
        if patterns is None:
            continue
        if patterns and "execute" not in definition.effects:
            yield f"{place}.{key}", f"{definition.name} runs no commands"
        for pattern in patterns:
            if any(mark in _unquoted(pattern) for mark in (";", "|", "&", "<", ">", "$", "`")):
                yield f"{place}.{key}", f"{pattern!r} fits nothing: a pattern is of one program with its arguments"


def _unquoted(pattern: str) -> str:
    """A pattern of commands without what stands in quotes."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\\.", "", pattern)

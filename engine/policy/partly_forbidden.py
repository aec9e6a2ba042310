"""Finds paths and hosts that are forbidden to some tools and can be used by others.

This is allowed, but seldom meant: a secret that is forbidden to the tools that read is still open to commands. A list of what some
tools may use says nothing about commands, either. For each pattern or list, an example is judged like the path or the host of a
call. So it doesn't matter how the rules on the other tools are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from albert_tools.engine.model.definition import MODES
from albert_tools.engine.model.messages import listed
from albert_tools.engine.policy import host_rules, path_rules
from albert_tools.engine.policy.layers import Layer, Resource, Section
from albert_tools.engine.policy.path_patterns import PathPatterns, expanded
from albert_tools.engine.policy.rule_kind import Finding, ListKey
from albert_tools.engine.policy.rules import Policy

if TYPE_CHECKING:
    from albert_tools.engine.model.primitive import Primitive

#: The use of paths that gives a category its name. A rule on the tools that write is meant to protect files from changes, although
#: some of these tools read too.
_OF_CATEGORY = {"read_only": {"read"}, "system_write": {"write"}, "system_delete": {"delete"}}

#: The most tools that a message names.
_MAX_SHOWN = 6


def partly_forbidden(
    layers: tuple[Layer, ...], primitives: Sequence[Primitive], workspace: str, home: str
) -> Iterator[Finding]:
    """Yields a finding for each group of patterns that the same other tools can use."""
    policy = Policy(layers, workspace, home)
    usable = [p for p in primitives if any(policy.permits(p.definition, p.gated, m).verdict != "deny" for m in MODES)]
    for layer in layers:
        for place, section, tools in _sections(layer, primitives):
            yield from _past_lists(policy, place, section, tools, usable, workspace, home)
            for key in (path_rules.FORBIDDEN, host_rules.FORBIDDEN):
                groups: dict[tuple[str, ...], list[str]] = {}
                uses = {use for p in tools for use in _uses(p, key)}
                if key is path_rules.FORBIDDEN:
                    uses &= _OF_CATEGORY.get(place.rpartition("categories.")[2], uses)
                for pattern in key.of(section) or ():
                    example = _path(pattern, workspace, home) if key is path_rules.FORBIDDEN else _url(pattern)
                    others = () if example is None else _others(policy, key, example, uses, usable)
                    groups.setdefault(others, []).append(repr(pattern))
                for names, patterns in groups.items():
                    if names:
                        yield (
                            f"{place}.{key.name}",
                            f"{', '.join(patterns)} can still be used by {listed(names, _MAX_SHOWN)}; "
                            f"write `{key.name}` at the top of the file to forbid it to every tool",
                        )


def _past_lists(
    policy: Policy,
    place: str,
    section: Section,
    tools: Sequence[Primitive],
    usable: Sequence[Primitive],
    workspace: str,
    home: str,
) -> Iterator[Finding]:
    """Commands, and processes of mounted servers, that can use paths which the lists of a section leave out.

    A section on commands is not compared with commands of another category, such as git.
    """
    if not tools:
        return
    processes = [p for p in usable if "execute" in p.definition.effects or p.sees_workspace]
    if any(p.definition.category == "execute" for p in tools):
        processes = [p for p in processes if p.definition.category == "execute" or p.sees_workspace]
    uses = {use for p in tools for use in _uses(p, path_rules.FORBIDDEN)}
    uses &= _OF_CATEGORY.get(place.rpartition("categories.")[2], uses)
    example = f"{workspace}/elsewhere/example"
    for key, among in ((path_rules.WRITABLE, {"write", "delete"}), (path_rules.ALLOWED, uses)):
        patterns = key.of(section)
        if patterns is None or PathPatterns([(p, "") for p in patterns], workspace, home).match(example):
            continue
        if names := _others(policy, path_rules.FORBIDDEN, example, among, processes):
            can, fix = "changed", "write `writable_paths` at the top of the file, which holds for every tool"
            if "read" in among:
                can, fix = "used", "write `allowed_paths` under these, too"
            yield f"{place}.{key.name}", f"all other paths can still be {can} by {listed(names, _MAX_SHOWN)}; {fix}"


def _sections(layer: Layer, primitives: Sequence[Primitive]) -> Iterator[tuple[str, Section, list[Primitive]]]:
    for name, section in layer.tools.items():
        yield f"{layer.place}tools.{name}", section, [p for p in primitives if p.name == name]
    for category, section in layer.categories.items():
        among = [p for p in primitives if p.definition.category == category]
        yield f"{layer.place}categories.{category}", section, among


def _others(policy: Policy, key: ListKey, example: str, uses: set[str], usable: Sequence[Primitive]) -> tuple[str, ...]:
    """The tools that can make one of these uses of the example."""
    kind = "path" if key is path_rules.FORBIDDEN else "url"

    def can(primitive: Primitive, use: str) -> bool:
        decisions = policy.touches(primitive.definition, [Resource(kind, example, use)])
        return all(d.verdict != "deny" for d in decisions)

    return tuple(p.name for p in usable if any(can(p, use) for use in uses & _uses(p, key)))


def _uses(primitive: Primitive, key: ListKey) -> set[str]:
    """How a primitive uses the paths or the hosts that a call names. A command, and the process of a mounted server, can use all
    paths in the workspace."""
    effects = set(primitive.definition.effects)
    if key is host_rules.FORBIDDEN:
        return {"GET"} if primitive.urls or effects >= {"execute", "network"} else set()
    if primitive.sees_workspace:
        return {"read", "write", "delete"}
    if not primitive.paths:
        return set()
    return effects & {"read", "write", "delete"} if "execute" in effects else set(primitive.paths.values())


def _path(pattern: str, workspace: str, home: str) -> str | None:
    """A path that a pattern matches; None if none is found."""
    text = expanded(pattern, home, workspace).strip().removeprefix("**/").rstrip("/")
    text = re.sub(r"\[([^]!^])[^]]*\]", r"\1", re.sub(r"\*+|\?", "x", text)).replace("\\", "")
    path = text if text.startswith("/") else f"{workspace}/{text.removeprefix('./')}"
    return path if PathPatterns([(pattern, "")], workspace, home).match(path) else None


def _url(pattern: str) -> str:
    host = "example.org" if pattern == "*" else pattern.replace("*", "x")
    return f"https://[{host}]/" if ":" in host else f"https://{host}/"

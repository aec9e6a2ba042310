"""The rules of one file, and all files together, as decisions.

Two layers: the owner's rules, with what is shipped where they are silent, and the project's, which can only tighten. Each layer is
asked; the gravest answer holds. Within a layer everything that fits is asked too: a section of the category and one of the tool
weigh the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from albert_tools.engine.model.definition import Mode, ToolDefinition
from albert_tools.engine.policy.command_rules import judge_environment, judge_program, judge_shell
from albert_tools.engine.policy.decision import Decision, gravest
from albert_tools.engine.policy.extra_roots import root_of, roots_of
from albert_tools.engine.policy.hosts import judge_url, named_addresses
from albert_tools.engine.policy.layers import Layer, Resource
from albert_tools.engine.policy.model_rules import judge_name
from albert_tools.engine.policy.operations import judge_operation
from albert_tools.engine.policy.path_patterns import PathRules, expanded
from albert_tools.engine.policy.sections import (
    COMPOSITE,
    MAX_FILE_SIZE_MB,
    NAMED,
    SHIPPED,
    SHIPPED_FORBIDDEN_PATHS,
    Section,
)

if TYPE_CHECKING:
    from albert_tools.engine.policy.addresses import Network

#: Answers that are kept for each question of a policy; a service of very many tools begins anew.
_MAX_KEPT = 10_000


class _PathsOf(NamedTuple):
    """What is said of one tool's paths: what is forbidden, what each file allows (rule, patterns, whether it is the owner's), and
    what is open to it beyond the workspace, also as (pattern, rule)."""

    forbidden: PathRules
    allowed: list[tuple[str, PathRules, bool]]
    opened: PathRules
    beyond: tuple[tuple[str, str], ...]


#: Who judges what is no path, by its kind.
JUDGES: dict[str, Callable[[tuple[Layer, ...], ToolDefinition, Resource], Decision | None]] = {
    "url": judge_url,
    "operation": judge_operation,
    "environment": judge_environment,
    "program": judge_program,
    "shell": judge_shell,
    "provider": judge_name,
    "model": judge_name,
}


class Policy:
    """All rules in force, for one workspace. Safe to use from any thread; never changed, only replaced."""

    def __init__(self, layers: tuple[Layer, ...], workspace: str, home: str) -> None:
        self.layers = layers
        self._workspace = workspace
        # The paths that are judged have no link in them; a home folder often has (`/home` → `/var/home`).
        self._home = home = os.path.realpath(home)
        self._static: dict[tuple[str, str, bool, Mode], Decision] = {}
        self._rates: dict[tuple[str, str], tuple[tuple[str, int], ...]] = {}
        self._paths: dict[str, _PathsOf] = {}
        self._named: dict[str, tuple[Network, ...]] = {}
        self._opening = {p: root_of(p, workspace, home) for p in self._absolute()}
        #: The folders that the owner's rules open beyond the workspace, each once.
        self.roots = roots_of(self._opening.values())
        shipped = (expanded(p, self._home, workspace) for p in SHIPPED_FORBIDDEN_PATHS)
        self._shipped_inside = any(p.startswith(f"{workspace}/") for p in shipped)
        self._shipped_paths = PathRules(
            [(p, "shipped.forbidden_paths") for p in SHIPPED_FORBIDDEN_PATHS], workspace, home
        )

    # Which tools, in which modes.

    def permits(self, definition: ToolDefinition, gated: bool, mode: Mode) -> Decision:
        """What holds for every call of a tool in a mode, whatever its arguments."""
        key = definition.name, definition.version, gated, mode
        found = self._static.get(key)
        if found is None:
            if len(self._static) > _MAX_KEPT:
                self._static.clear()
            found = self._static[key] = gravest(self._permissions(definition, gated, mode))
        return found

    def _permissions(self, definition: ToolDefinition, gated: bool, mode: Mode) -> list[Decision]:
        name = definition.name
        if mode not in definition.allowed_modes:
            return [Decision("deny", "definition.allowed_modes", "tool_mode", f"{name} can't be used in {mode}")]
        found = [d for layer in self.layers for d in self._of_layer(layer, definition, gated, mode)]
        if definition.approval:
            found.append(Decision("ask", "definition.approval", "approval_required", f"{name} always asks a person"))
        return found

    def _of_layer(self, layer: Layer, definition: ToolDefinition, gated: bool, mode: Mode) -> list[Decision]:
        name = definition.name
        if name in layer.deny:
            hint = "the owner's governance.yaml says so" if layer.owner else "the project's governance.yaml says so"
            return [Decision("deny", f"{layer.place}deny", "denied", f"{name} is denied by the rules", hint)]
        sections = [(place, s) for place, s in layer.sections(definition) if s.speaks_of_modes]
        named = name in layer.allow
        # Only what speaks of the tool by its name opens it: of a category nobody reads which gated tools are in it.
        by_name = layer.owner and any(place == f"tools.{name}" for place, _ in sections)
        if gated and not named and (layer.owner or layer.says_allow) and not by_name:
            category = definition.category or "read_only"
            of_mode = self._in_mode([*sections, (f"shipped.categories.{category}", SHIPPED[category])], name, mode)
            if of_mode.rationale == "mode":
                # Allowing it by name would change nothing.
                return [of_mode]
            return [
                Decision(
                    "deny",
                    "gated" if layer.owner else "project.allow",
                    "off_by_default",
                    f"{name} is off until the owner allows it",
                    f"the owner can put `allow: [{name}]` into governance.yaml (`albert doctor` says where it is)",
                )
            ]
        if not sections:
            if not layer.owner:
                return []
            if named:
                sections = [("allow", NAMED)]
            elif definition.kind == "composite":
                sections = [("shipped.saved_tools", COMPOSITE)]
            else:
                category = definition.category or "read_only"
                sections = [(f"shipped.categories.{category}", SHIPPED[category])]
        return [self._in_mode(sections, name, mode)]

    @staticmethod
    def _in_mode(sections: list[tuple[str, Section]], name: str, mode: Mode) -> Decision:
        hint = "`albert mode` says since when, and why; switching it is the owner's" if mode != "NORMAL" else None
        for place, section in sections:
            if mode in (section.forbidden_in_modes or ()):
                return Decision("deny", f"{place}.forbidden_in_modes", "mode", f"{name} is forbidden in {mode}", hint)
        for place, section in sections:
            if mode in (section.requires_approval_in_modes or ()):
                rule = f"{place}.requires_approval_in_modes"
                return Decision("ask", rule, "approval_required", f"{name} needs a person's approval in {mode}")
        for place, section in sections:
            if mode in (section.allowed_in_modes or ()):
                return Decision("allow", f"{place}.allowed_in_modes", "allowed")
        hint = "say in governance.yaml in which modes it is allowed"
        return Decision("deny", "no_rule", "no_rule", f"no rule allows {name} in {mode}", hint)

    # What it touches.

    def touches(self, definition: ToolDefinition, resources: list[Resource]) -> list[Decision]:
        """What the rules say of what a call touches; nothing where they have nothing to say."""
        found = []
        for resource in resources:
            if resource.kind == "path":
                decision = self.path(definition, resource.name, resource.use)
            else:
                decision = JUDGES[resource.kind](self.layers, definition, resource)
            if decision is not None:
                found.append(decision)
        return found

    def path(self, definition: ToolDefinition, path: str, use: str) -> Decision | None:
        """What the rules say of an absolute path, canonical; None when they leave it to the workspace's bounds."""
        rules = self._rules_of(definition)
        hit = rules.forbidden.match(path) or self._shipped_paths.match(path)
        if hit:
            pattern, rule = hit
            return Decision(
                "deny", rule, "path", f"{self._shown(path)} is forbidden by {pattern!r}", "use another path"
            )
        beyond = path != self._workspace and not path.startswith(f"{self._workspace}/")
        opened = rules.opened.match(path) if beyond else None
        if beyond and opened is None:
            message = f"{self._shown(path)} is outside the workspace, and no rule opens it to {definition.name}"
            hint = f"the owner can put it under `allowed_paths` of {definition.name}"
            return Decision("deny", "outside_workspace", "outside_workspace", message, hint)
        for rule, patterns, owner in rules.allowed:
            # What the owner's rules say of a path beyond the workspace is that they open it.
            if not (beyond and owner) and patterns.match(path) is None:
                message = f"{self._shown(path)} is not among the paths that {definition.name} may {use}"
                return Decision("deny", rule, "path", message, "use a path that is, or ask the owner to add it")
        if opened is not None and use != "read":
            message = f"{self._shown(path)} is outside the workspace, where {definition.name} always asks to {use}"
            return Decision("ask", "shipped.outside_workspace_asks", "outside_workspace", message)
        return None

    def _absolute(self) -> Iterator[str]:
        """All patterns that could open a folder: the owner's only, for a project can't widen."""
        for layer in self.layers:
            if layer.owner:
                for section in (*layer.tools.values(), *layer.categories.values()):
                    yield from (p for p in section.allowed_paths or () if p.startswith(("/", "~", "$HOME")))

    def selective(self, definition: ToolDefinition) -> bool:
        """Whether rules about a tool speak of paths that may be in the workspace, so that not all of it is the tool's."""
        rules = self._rules_of(definition)
        return bool(rules.forbidden) or bool(rules.allowed) or self._shipped_inside

    def opened(self, definition: ToolDefinition) -> list[str]:
        """The patterns that open folders beyond the workspace to a tool, by the folders' real paths."""
        return [pattern for pattern, _ in self._rules_of(definition).beyond]

    def _shown(self, path: str) -> str:
        inside = path.removeprefix(f"{self._workspace}/")
        return repr("." if inside == self._workspace else inside)

    def _rules_of(self, definition: ToolDefinition) -> _PathsOf:
        found = self._paths.get(definition.name)
        if found is None:
            forbidden: list[tuple[str, str]] = []
            allowed: list[tuple[str, PathRules, bool]] = []
            opened: list[tuple[str, str]] = []
            for layer in self.layers:
                said: list[tuple[str, str]] = []
                for place, section in layer.sections(definition):
                    forbidden += [(p, f"{place}.forbidden_paths") for p in section.forbidden_paths]
                    said += [(p, f"{place}.allowed_paths") for p in section.allowed_paths or ()]
                    if layer.owner:
                        roots = (self._opening.get(p) for p in section.allowed_paths or ())
                        opened += [(r.pattern, f"{place}.allowed_paths") for r in roots if r and not r.problem]
                    if section.allowed_paths == ():
                        said.append(("/nothing/is/allowed", f"{place}.allowed_paths"))
                if said:
                    allowed.append((said[0][1], PathRules(said, self._workspace, self._home), layer.owner))
            found = self._paths[definition.name] = _PathsOf(
                PathRules(forbidden, self._workspace, self._home),
                allowed,
                PathRules(opened, self._workspace, self._home),
                tuple(opened),
            )
        return found

    def named_addresses(self, definition: ToolDefinition) -> tuple[Network, ...]:
        """The addresses that a tool may reach though they aren't public."""
        found = self._named.get(definition.name)
        if found is None:
            found = self._named[definition.name] = named_addresses(self.layers, definition)
        return found

    # How much.

    def max_file_bytes(self, definition: ToolDefinition) -> int:
        """The largest file that a tool may read or write: the lowest number that any rule names."""
        said = [s.max_file_size_mb for s in self._sections(definition) if s.max_file_size_mb is not None]
        return int(min(said, default=MAX_FILE_SIZE_MB) * 1024 * 1024)

    def timeout(self, definition: ToolDefinition) -> float:
        """Seconds that a call may take."""
        said = [s.timeout_seconds for s in self._sections(definition) if s.timeout_seconds is not None]
        return min([*said, definition.timeout])

    def rate_limits(self, definition: ToolDefinition) -> tuple[tuple[str, int], ...]:
        """Every window that a call is charged to, with the calls that it holds per hour: ``(("tool:write_file", 100), …)``.

        Where several speak of one window (both files, the tool's own definition) the lowest number holds.
        """
        key = definition.name, definition.version
        found = self._rates.get(key)
        if found is None:
            if len(self._rates) > _MAX_KEPT:
                self._rates.clear()
            found = self._rates[key] = tuple(self._windows(definition).items())
        return found

    def _windows(self, definition: ToolDefinition) -> dict[str, int]:
        found: dict[str, int] = {}
        own = getattr(definition, "rate_limit", None)
        if own is not None:
            found[f"tool:{definition.name}"] = own
        for layer in self.layers:
            for place, section in layer.sections(definition):
                if section.rate_limit_per_hour is not None:
                    of_tool = place.removeprefix("project.").startswith("tools.")
                    window = f"tool:{definition.name}" if of_tool else f"category:{definition.category}"
                    found[window] = min(section.rate_limit_per_hour, found.get(window, section.rate_limit_per_hour))
        return found

    def _sections(self, definition: ToolDefinition) -> list[Section]:
        return [s for layer in self.layers for _, s in layer.sections(definition)]

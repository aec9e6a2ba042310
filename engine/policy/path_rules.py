"""Rules on paths: which paths a tool may use, and which folders outside the workspace it may use.

`extra_roots` computes which folder a pattern opens. `path_patterns` defines the syntax of patterns and matches them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.messages import listed
from albert_tools.engine.policy.decision import Decision, strictest
from albert_tools.engine.policy.extra_roots import root_of, roots_of
from albert_tools.engine.policy.layers import Layer, rule_id, views, written_at
from albert_tools.engine.policy.path_patterns import PathPatterns, expanded, literal
from albert_tools.engine.policy.rule_kind import Examined, Finding, ListKey, RuleKind
from albert_tools.engine.policy.shipped import SHIPPED_FORBIDDEN_PATHS
from albert_tools.engine.policy.writable_paths import links, read_writable, writable_in_workspace, writable_path

#: The most paths that a hint lists, and decisions that are kept.
_MAX_SHOWN, _MAX_DECIDED = 6, 10_000

#: A pattern that matches no path. It represents an empty `allowed_paths`.
_NOTHING = "/nothing/is/allowed"


def read_pattern(text: str) -> str:
    """A pattern, unchanged. Raises ValueError if it is invalid."""
    PathPatterns([(text, "")], "/workspace", "/home/user")
    return text


ALLOWED = ListKey(
    "allowed_paths",
    read_pattern,
    4096,
    '["src/**", "*.md"]',
    "the only paths that may be used, as in `.gitignore`; "
    "`$WORKSPACE`, `$HOME` and `~` are replaced, `/data` is absolute ([more](#outside-the-workspace))",
)
FORBIDDEN = ListKey("forbidden_paths", read_pattern, 4096, '[secrets, "*.pem"]', "paths that are denied")

WRITABLE = ListKey(
    "writable_paths",
    read_writable,
    4096,
    "[src/**, docs/**]",
    "the only folders and files that may be changed or deleted; all others can still be read "
    "([more](#what-may-be-changed))",
)


class _List(NamedTuple):
    """A list of permitted paths: its first rule, its patterns, and whether it is from the owner's file. `writable` are the paths
    that the patterns of `writable_paths` name."""

    rule: str
    patterns: PathPatterns
    owner: bool
    writable: tuple[str, ...] = ()


class _PathsOf(NamedTuple):
    """The rules on paths for one tool. `allowed` has one list for each file, of all its sections; `writable` has one for each
    section. `opened` are the (pattern, rule) pairs for folders outside the workspace."""

    forbidden: PathPatterns
    allowed: list[_List]
    writable: list[_List]
    opened: PathPatterns
    opening: tuple[tuple[str, str], ...]
    forbidden_patterns: frozenset[str]


class PathJudge:
    """Decides about paths in one workspace. Safe to use from any thread."""

    def __init__(self, layers: tuple[Layer, ...], workspace: str, home: str) -> None:
        self._layers = layers
        self._workspace = workspace
        # The checked paths contain no links. But the path of the home folder often contains one (`/home` → `/var/home`).
        self._home = home = os.path.realpath(home)
        self._by_tool: dict[tuple[str, str | None], _PathsOf] = {}
        #: The decisions on paths: a call asks when it is judged, and again at each opened file.
        self._decided: dict[tuple[str, str | None, str, str], Decision | None] = {}
        self._seen: dict[tuple[str, str | None], list[_PathsOf]] = {}
        self._root_of = {pattern: root_of(pattern, workspace, home) for pattern in self._absolute()}
        #: The folders outside the workspace that the owner's rules open, without duplicates.
        self.roots = roots_of(self._root_of.values())
        shipped = (expanded(p, home, workspace) for p in SHIPPED_FORBIDDEN_PATHS)
        self._shipped_inside = any(p.startswith(f"{workspace}/") for p in shipped)
        self._shipped = self._patterns([(p, "shipped.forbidden_paths") for p in SHIPPED_FORBIDDEN_PATHS])

    def judge(self, definition: ToolDefinition, path: str, use: str) -> Decision | None:
        """The decision on an absolute, canonical path; None if no rule objects."""
        key = definition.name, definition.version, path, use
        if key not in self._decided:
            if len(self._decided) >= _MAX_DECIDED:
                self._decided.clear()
            found = [
                decision
                for rules in self._seen_as(definition)
                if (decision := self._judge(rules, definition.name, path, use)) is not None
            ]
            self._decided[key] = strictest(found) if found else None
        return self._decided[key]

    def _judge(self, rules: _PathsOf, tool: str, path: str, use: str) -> Decision | None:
        if (forbidden := self._forbidden(rules, path)) is not None:
            return forbidden
        shown, outside = self._shown(path), self._is_outside(path)
        if outside and rules.opened.match(path) is None:
            message = f"{shown} is outside the workspace, and no rule opens it to {tool}"
            hint = f"the owner can list it under `tools.{tool}.allowed_paths`"
            return Decision("deny", "outside_workspace", "outside_workspace", message, hint)
        # For a path outside, the owner's patterns were already matched against the real path (`opened`).
        lists = [each for each in rules.allowed if not (outside and each.owner)]
        for each in lists if use == "read" else [*lists, *rules.writable]:
            if each.patterns.match(path) is None:
                message = f"{shown} is not among the paths that {tool} may {use}"
                among = f" ({listed([self._shown(p) for p in each.writable], _MAX_SHOWN)})" if each.writable else ""
                hint = f"use a path that is listed{among}, or ask for it to be added to {written_at(each.rule)}"
                return Decision("deny", each.rule, "path", message, hint)
        if outside and use != "read":
            message = f"{shown} is outside the workspace, where each {use} needs approval"
            return Decision("ask", "shipped.outside_workspace_asks", "outside_workspace", message)
        return None

    def divides(self, definition: ToolDefinition, folder: str) -> bool:
        """Whether the rules may allow reading one path below a folder and deny another one."""
        divided = False
        for rules in self._seen_as(definition):
            if rules.forbidden.match(folder) or self._shipped.match(folder):
                return False
            divided = divided or rules.forbidden.reach(folder) or self._shipped.reach(folder)
            for patterns in self._readable(rules, folder):
                if not patterns.match(folder):
                    if not patterns.reach(folder):
                        return False
                    divided = True
        return divided

    def unreadable(self, definition: ToolDefinition, folder: str, names: Collection[str]) -> set[str]:
        """The names in a folder that `judge` denies reading. Nothing may forbid the folder itself.

        Much faster than to judge one path after the other.
        """
        found: set[str] = set()
        for rules in self._seen_as(definition):
            found.update(rules.forbidden.names_in(folder, names), self._shipped.names_in(folder, names))
            for patterns in self._readable(rules, folder):
                if not patterns.match(folder):
                    found.update({*names}.difference(patterns.names_in(folder, names)))
        return found

    def _readable(self, rules: _PathsOf, path: str) -> list[PathPatterns]:
        """The patterns all of which a path must match to be read."""
        outside = self._is_outside(path)
        lists = [each.patterns for each in rules.allowed if not (outside and each.owner)]
        return [rules.opened, *lists] if outside else lists

    def _is_outside(self, path: str) -> bool:
        return path != self._workspace and not path.startswith(f"{self._workspace}/")

    def _seen_as(self, definition: ToolDefinition) -> list[_PathsOf]:
        """The rules for each category in which a tool is judged."""
        key = definition.name, definition.category
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = [self._rules_of(view) for view in views(self._layers, definition)]
        return found

    def forbidden(self, definition: ToolDefinition, path: str) -> Decision | None:
        """The denial of a path that `forbidden_paths` name; None for other paths, also for those that no rule allows."""
        found = (self._forbidden(rules, path) for rules in self._seen_as(definition))
        return next((decision for decision in found if decision is not None), None)

    def _forbidden(self, rules: _PathsOf, path: str) -> Decision | None:
        hit = rules.forbidden.match(path) or self._shipped.match(path)
        if hit is None:
            return None
        pattern, rule = hit
        return Decision("deny", rule, "path", f"{self._shown(path)} is forbidden by {pattern!r}", "use another path")

    def selective(self, definition: ToolDefinition) -> bool:
        """Whether the rules may deny some paths inside the workspace to a tool."""
        return self._shipped_inside or any(rules.forbidden or rules.allowed for rules in self._seen_as(definition))

    def forbidden_globs(self, definition: ToolDefinition, top: str) -> list[str]:
        """The forbidden paths below a folder that the rules allow to the tool, as git's globs (`PathPatterns.globs`)."""
        return [
            *(glob for rules in self._seen_as(definition) for glob in rules.forbidden.globs(top)),
            *self._shipped.globs(top),
        ]

    def forbidden_patterns(self, definition: ToolDefinition) -> frozenset[str]:
        """The patterns of paths that are forbidden to the tool."""
        return self._rules_of(definition).forbidden_patterns

    def writable(self, definition: ToolDefinition) -> list[str] | None:
        """The paths in the workspace that `writable_paths` lets a tool change, with everything below them; None without such a
        rule. A path that is certainly a folder ends with a slash."""
        lists = [each.writable for rules in self._seen_as(definition) for each in rules.writable]
        if not lists:
            return None
        return writable_in_workspace(lists, self._workspace)

    def opened(self, definition: ToolDefinition) -> list[str]:
        """The patterns that open folders outside the workspace to a tool. They contain the real paths of the folders."""
        return [pattern for pattern, _ in self._rules_of(definition).opening]

    def _absolute(self) -> Iterator[str]:
        """The patterns that may open a folder. Only the owner's patterns can."""
        for layer in self._layers:
            if layer.owner:
                for section in (*layer.tools.values(), *layer.categories.values()):
                    yield from (p for p in ALLOWED.of(section) or () if p.startswith(("/", "~", "$HOME")))

    def _patterns(self, patterns: list[tuple[str, str]]) -> PathPatterns:
        return PathPatterns(patterns, self._workspace, self._home)

    def _shown(self, path: str) -> str:
        inside = path.removeprefix(f"{self._workspace}/")
        return repr("." if inside == self._workspace else inside)

    def _rules_of(self, definition: ToolDefinition) -> _PathsOf:
        key = definition.name, definition.category
        found = self._by_tool.get(key)
        if found is None:
            found = self._by_tool[key] = self._index(definition)
        return found

    def _index(self, definition: ToolDefinition) -> _PathsOf:
        forbidden: list[tuple[str, str]] = []
        allowed: list[_List] = []
        writable: list[_List] = []
        opening: list[tuple[str, str]] = []
        for layer in self._layers:
            merged: list[tuple[str, str]] = []
            for place, section in layer.sections(definition):
                forbidden += [(p, rule_id(place, FORBIDDEN.name)) for p in FORBIDDEN.of(section) or ()]
                if (changed := WRITABLE.of(section)) is not None:
                    paths = tuple(writable_path(p, self._workspace, self._home) for p in changed)
                    rule = rule_id(place, WRITABLE.name)
                    writable.append(
                        _List(rule, self._patterns([(literal(p), rule) for p in paths]), layer.owner, paths)
                    )
                patterns, rule = ALLOWED.of(section), f"{place}.{ALLOWED.name}"
                if patterns is None:
                    continue
                merged += [(p, rule) for p in patterns or (_NOTHING,)]
                if layer.owner:
                    roots = (self._root_of.get(p) for p in patterns)
                    opening += [(r.pattern, rule) for r in roots if r and not r.problem]
            if merged:
                allowed.append(_List(merged[0][1], self._patterns(merged), layer.owner))
        names = frozenset(pattern for pattern, _ in forbidden)
        return _PathsOf(self._patterns(forbidden), allowed, writable, self._patterns(opening), tuple(opening), names)


def _lint(examined: Examined) -> Iterator[Finding]:
    """Find absolute patterns that open no folder, and writable paths that are links."""
    if not examined.workspace:
        return
    for pattern, real in links(WRITABLE.of(examined.section) or (), examined.workspace, examined.home):
        message = f"{pattern!r} permits nothing: it is a link, or leads through one; write the real path, {real!r}"
        yield rule_id(examined.place, WRITABLE.name), message
    rule = f"{examined.place}.{ALLOWED.name}"
    for pattern in ALLOWED.of(examined.section) or ():
        root = root_of(pattern, examined.workspace, examined.home)
        if root is None:
            continue
        opens_nothing = f"{pattern!r} opens nothing outside the workspace"
        if not examined.layer.owner:
            yield rule, f"{opens_nothing}: a project's file can only tighten"
        elif root.problem is not None:
            yield rule, f"{opens_nothing}: {root.problem}"
        elif not os.path.isdir(root.real):
            yield rule, f"{opens_nothing}: there is no folder {root.written!r}"


PATHS = RuleKind(
    (ALLOWED, FORBIDDEN, WRITABLE),
    effects=frozenset({"read", "write", "delete"}),
    not_for="touches no files",
    lint=_lint,
)

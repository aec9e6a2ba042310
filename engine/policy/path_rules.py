"""Rules on paths: which paths a tool may use, and which folders outside the workspace it may use.

`extra_roots` computes which folder a pattern opens. `path_patterns` defines the syntax of patterns and matches them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.extra_roots import root_of, roots_of
from albert_tools.engine.policy.layers import Layer, rule_id, views
from albert_tools.engine.policy.path_patterns import PathPatterns, expanded, literal
from albert_tools.engine.policy.rule_kind import FILE_USES, Examined, Finding, ListKey, RuleKind
from albert_tools.engine.policy.shipped import SHIPPED_FORBIDDEN_PATHS
from albert_tools.engine.policy.tool_paths import Listed, PathRules, ToolPaths
from albert_tools.engine.policy.writable_paths import links, read_writable, writable_path

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


class PathJudge:
    """The rules on paths in one workspace. Safe to use from any thread."""

    def __init__(self, layers: tuple[Layer, ...], workspace: str, home: str) -> None:
        self._layers = layers
        self._workspace = workspace
        # The checked paths contain no links. But the path of the home folder often contains one (`/home` → `/var/home`).
        self._home = home = os.path.realpath(home)
        self._by_tool: dict[tuple[str, str | None], ToolPaths] = {}
        self._root_of = {pattern: root_of(pattern, workspace, home) for pattern in self._absolute()}
        #: The folders outside the workspace that the owner's rules open, without duplicates.
        self.roots = roots_of(self._root_of.values())
        shipped = (expanded(p, home, workspace) for p in SHIPPED_FORBIDDEN_PATHS)
        self._shipped_inside = any(p.startswith(f"{workspace}/") for p in shipped)

    def of(self, definition: ToolDefinition) -> ToolPaths:
        """The rules on the paths of a tool."""
        key = definition.name, definition.category
        tool_paths = self._by_tool.get(key)
        if tool_paths is None:
            seen_as = [self._rules_of(view) for view in views(self._layers, definition)]
            tool_paths = self._by_tool[key] = ToolPaths(definition.name, seen_as, self._workspace)
        return tool_paths

    def _absolute(self) -> Iterator[str]:
        """The patterns that may open a folder. Only the owner's patterns can."""
        for layer in self._layers:
            if layer.owner:
                for section in (*layer.tools.values(), *layer.categories.values()):
                    yield from (p for p in ALLOWED.of(section) or () if p.startswith(("/", "~", "$HOME")))

    def _patterns(self, patterns: list[tuple[str, str]]) -> PathPatterns:
        return PathPatterns(patterns, self._workspace, self._home)

    def _rules_of(self, definition: ToolDefinition) -> PathRules:
        forbidden = [(p, "shipped.forbidden_paths") for p in SHIPPED_FORBIDDEN_PATHS]
        allowed: list[Listed] = []
        writable: list[Listed] = []
        opening: list[tuple[str, str]] = []
        for layer in self._layers:
            merged: list[tuple[str, str]] = []
            for place, section in layer.sections(definition):
                forbidden += [(p, rule_id(place, FORBIDDEN.name)) for p in FORBIDDEN.of(section) or ()]
                if (changed := WRITABLE.of(section)) is not None:
                    paths = tuple(writable_path(p, self._workspace, self._home) for p in changed)
                    rule = rule_id(place, WRITABLE.name)
                    writable.append(
                        Listed(rule, self._patterns([(literal(p), rule) for p in paths]), layer.owner, paths)
                    )
                patterns, rule = ALLOWED.of(section), f"{place}.{ALLOWED.name}"
                if patterns is None:
                    continue
                merged += [(p, rule) for p in patterns or (_NOTHING,)]
                if layer.owner:
                    roots = (self._root_of.get(p) for p in patterns)
                    opening += [(r.pattern, rule) for r in roots if r and not r.problem]
            if merged:
                allowed.append(Listed(merged[0][1], self._patterns(merged), layer.owner))
        named = frozenset(pattern for pattern, _ in forbidden[len(SHIPPED_FORBIDDEN_PATHS) :])
        return PathRules(
            self._patterns(forbidden),
            named,
            self._shipped_inside or bool(named or allowed),
            allowed,
            writable,
            self._patterns(opening),
            [pattern for pattern, _ in opening],
        )


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
    effects=FILE_USES,
    uses=FILE_USES,
    not_for="touches no files",
    lint=_lint,
)

"""The rules on paths for one tool: which paths it may read, change and delete, and what they leave of a folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from albert_tools.engine.model.marked_paths import is_start_up
from albert_tools.engine.model.messages import listed
from albert_tools.engine.policy.decision import Decision, strictest
from albert_tools.engine.policy.layers import written_at
from albert_tools.engine.policy.path_patterns import PathPatterns
from albert_tools.engine.policy.writable_paths import writable_in_workspace

#: The most paths that a hint lists, and decisions that are kept.
_MAX_SHOWN, _MAX_DECIDED = 6, 2_000


class Listed(NamedTuple):
    """A list of permitted paths: its first rule, its patterns, and whether it is from the owner's file. `writable` are the paths
    that the patterns of `writable_paths` name."""

    rule: str
    patterns: PathPatterns
    owner: bool
    writable: tuple[str, ...] = ()


class PathRules(NamedTuple):
    """The rules on paths for a tool in one category. `forbidden` includes the shipped patterns, `named` are the others;
    `selective` says whether some paths inside the workspace may be denied. `allowed` has one list for each file, of all its
    sections; `writable` has one for each section. `opened` are the patterns of folders outside the workspace."""

    forbidden: PathPatterns
    named: frozenset[str]
    selective: bool
    allowed: Sequence[Listed]
    writable: Sequence[Listed]
    opened: PathPatterns
    opening: Sequence[str]


class ToolPaths:
    """The rules for a tool in each category in which it is judged, first its own. Safe to use from any thread."""

    def __init__(self, tool: str, seen_as: Sequence[PathRules], workspace: str) -> None:
        self._tool = tool
        self._seen_as = seen_as
        self.workspace = workspace
        #: Whether the rules may deny some paths inside the workspace.
        self.selective = any(rules.selective for rules in seen_as)
        #: The decisions on paths: a call asks when it is judged, and again at each opened file.
        self._decided: dict[tuple[str, str], Decision | None] = {}

    def judge(self, path: str, use: str) -> Decision | None:
        """The decision on an absolute, canonical path; None if no rule objects."""
        key = path, use
        if key not in self._decided:
            if len(self._decided) >= _MAX_DECIDED:
                self._decided.clear()
            decisions = [decision for rules in self._seen_as if (decision := self._judge(rules, path, use)) is not None]
            self._decided[key] = strictest(decisions) if decisions else None
        return self._decided[key]

    def _judge(self, rules: PathRules, path: str, use: str) -> Decision | None:
        if (forbidden := self._forbidden(rules, path)) is not None:
            return forbidden
        shown, outside = self._shown(path), self._is_outside(path)
        if outside and rules.opened.match(path) is None:
            message = f"{shown} is outside the workspace, and no rule opens it to {self._tool}"
            hint = f"the owner can list it under `tools.{self._tool}.allowed_paths`"
            return Decision("deny", "outside_workspace", "outside_workspace", message, hint)
        # For a path outside, the owner's patterns were already matched against the real path (`opened`).
        lists = [each for each in rules.allowed if not (outside and each.owner)]
        for each in lists if use == "read" else [*lists, *rules.writable]:
            if each.patterns.match(path) is None:
                message = f"{shown} is not among the paths that {self._tool} may {use}"
                among = f" ({listed([self._shown(p) for p in each.writable], _MAX_SHOWN)})" if each.writable else ""
                hint = f"use a path that is listed{among}, or ask for it to be added to {written_at(each.rule)}"
                return Decision("deny", each.rule, "path", message, hint)
        if outside and use != "read":
            message = f"{shown} is outside the workspace, where each {use} needs approval"
            return Decision("ask", "shipped.outside_workspace_asks", "outside_workspace", message)
        if use != "read" and is_start_up(self._inside(path)):
            message = f"{shown} is read by a shell, a tool or an editor that starts here, so each {use} needs approval"
            return Decision("ask", "shipped.start_up_files", "path", message)
        return None

    def divides(self, folder: str) -> bool:
        """Whether the rules may allow reading one path below a folder and deny another one."""
        divided = False
        for rules in self._seen_as:
            if rules.forbidden.match(folder):
                return False
            divided = divided or rules.forbidden.reach(folder)
            for patterns in self._readable(rules, folder):
                if not patterns.match(folder):
                    if not patterns.reach(folder):
                        return False
                    divided = True
        return divided

    def unreadable(self, folder: str, names: Collection[str]) -> set[str]:
        """The names in a folder that `judge` denies reading. Nothing may forbid the folder itself.

        Much faster than to judge one path after the other.
        """
        unreadable: set[str] = set()
        for rules in self._seen_as:
            unreadable.update(rules.forbidden.names_in(folder, names))
            for patterns in self._readable(rules, folder):
                if not patterns.match(folder):
                    unreadable.update({*names}.difference(patterns.names_in(folder, names)))
        return unreadable

    def _readable(self, rules: PathRules, path: str) -> list[PathPatterns]:
        """The patterns all of which a path must match to be read."""
        outside = self._is_outside(path)
        lists = [each.patterns for each in rules.allowed if not (outside and each.owner)]
        return [rules.opened, *lists] if outside else lists

    def forbidden(self, path: str) -> Decision | None:
        """The denial of a path that `forbidden_paths` name; None for other paths, also for those that no rule allows."""
        denials = (self._forbidden(rules, path) for rules in self._seen_as)
        return next((decision for decision in denials if decision is not None), None)

    def _forbidden(self, rules: PathRules, path: str) -> Decision | None:
        hit = rules.forbidden.match(path)
        if hit is None:
            return None
        pattern, rule = hit
        return Decision("deny", rule, "path", f"{self._shown(path)} is forbidden by {pattern!r}", "use another path")

    def forbidden_globs(self, top: str) -> list[str]:
        """The forbidden paths below an allowed folder, as git's globs relative to it (`PathPatterns.globs`)."""
        return [glob for rules in self._seen_as for glob in rules.forbidden.globs(top)]

    def forbids(self, patterns: Collection[str]) -> bool:
        """Whether rules other than the shipped ones forbid the paths of all these patterns."""
        return self._seen_as[0].named.issuperset(patterns)

    def writable(self) -> list[str] | None:
        """The paths in the workspace that `writable_paths` lets the tool change, with everything below them; None without such a
        rule. A path that is certainly a folder ends with a slash."""
        lists = [each.writable for rules in self._seen_as for each in rules.writable]
        return writable_in_workspace(lists, self.workspace) if lists else None

    @property
    def opened(self) -> list[str]:
        """The patterns that open folders outside the workspace. They contain the real paths of the folders."""
        return list(self._seen_as[0].opening)

    def _is_outside(self, path: str) -> bool:
        return path != self.workspace and not path.startswith(f"{self.workspace}/")

    def _shown(self, path: str) -> str:
        inside = self._inside(path)
        return repr("." if inside == self.workspace else inside)

    def _inside(self, path: str) -> str:
        """The path relative to the workspace, if it is in it."""
        return path.removeprefix(f"{self.workspace}/")

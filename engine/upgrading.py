"""Proposes new pins: checks stored sources again, against the newest versions of the tools that they call.

A tool keeps calling the versions that it was checked against, so it never changes silently. An upgrade makes a new version with the
same source, which waits for a review like any other. Tools are upgraded in the order of their depth, callees first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.model.definition import Json, ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.grammar.source_error import SourceError

#: Checks the source of a version again and runs its examples. Gets the definitions of tools that are not saved yet.
Recheck = Callable[[ToolVersion, Mapping[str, ToolDefinition]], Awaitable[ToolVersion]]


class Upgrade(Struct, frozen=True):
    """The upgrade of one tool.

    Attributes:
        before: The version whose source was checked again.
        after: The new version; empty if there is a `problem`.
        pins: The callees that have changed, each with the version before and the new one.
        problem: Why the tool can't be upgraded, or an empty text.
    """

    name: str
    before: str
    after: str = ""
    pins: tuple[tuple[str, str, str], ...] = ()
    problem: str = ""

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        pins: list[Json] = [{"name": name, "before": before, "after": after} for name, before, after in self.pins]
        return {
            "name": self.name, "before": self.before, "after": self.after or None, "pins": pins, "problem": self.problem,
        }  # fmt: skip


class Upgrader:
    """Upgrades saved tools.

    Args:
        registry: Says which version the name of a tool means.
        store: The saved tools.
        recheck: Checks the source of a version again.
        save: Stores a version, unless the newest one is no longer the second argument.
        revoked: Says whether a version is revoked or was rejected. Its source is not proposed again.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        store: ToolStore,
        recheck: Recheck,
        save: Callable[[ToolVersion, str], object],
        revoked: Callable[[ToolVersion], bool],
    ) -> None:
        self._registry = registry
        self._store = store
        self._recheck = recheck
        self._save = save
        self._revoked = revoked

    async def upgrade(self, name: str | None, dry_run: bool) -> list[Upgrade]:
        """Upgrade one tool, or all that need it. Tools that are up to date are left out.

        Raises:
            Failure: `unknown_tool`, `damaged` for the named tool; `io_error`.
        """
        proposed: dict[str, ToolDefinition] = {}
        found = []
        for version, newest in await asyncio.to_thread(self._versions, name):
            if version.definition.manifest is not None and not self._changed(version, proposed):
                continue
            upgrade = await self._upgraded(version, newest, proposed, dry_run)
            found += [upgrade] if upgrade is not None else []
        return found

    def _versions(self, name: str | None) -> list[tuple[ToolVersion, str]]:
        """The version that each name means, and the newest one."""
        names = [name] if name is not None else self._sound()
        load = self._registry.load or self._store.load
        found = [(version, self._store.load(version.name).version) for version in map(load, names)]
        found = [each for each in found if not self._revoked(each[0])]
        return sorted(found, key=lambda each: (each[0].definition.depth, each[0].name))

    def _sound(self) -> list[str]:
        return [s.name for s in self._store.list() if s.problem is None and self._registry.primitive(s.name) is None]

    def _changed(self, version: ToolVersion, proposed: Mapping[str, ToolDefinition]) -> bool:
        """Whether a callee has another version now, or none."""
        now = {c.name: proposed.get(c.name) or self._registry.get(c.name) for c in version.calls}
        return any(found is None or found.version != c.version for c in version.calls for found in [now[c.name]])

    async def _upgraded(
        self, version: ToolVersion, newest: str, proposed: dict[str, ToolDefinition], dry_run: bool
    ) -> Upgrade | None:
        name = version.name
        try:
            new = await self._recheck(version, proposed)
            if not dry_run:
                await asyncio.to_thread(self._save, new, newest)
        except SourceError as error:
            return Upgrade(name, version.version, problem=error.render())
        except Failure as failure:
            return Upgrade(name, version.version, problem=failure.message)
        if dry_run:
            proposed[name] = new.definition
        before = {c.name: c.version for c in version.calls}
        pins = tuple((c.name, before[c.name], c.version) for c in new.calls if c.version != before.get(c.name))
        return Upgrade(name, version.version, new.version, pins)

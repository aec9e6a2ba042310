"""Proposes new pins: checks stored sources again, against the newest versions of the tools that they call.

A tool keeps calling the versions that it was checked against, so it never changes silently. An upgrade makes a new version with the
same source, which waits for a review like any other. Tools are upgraded in the order of their depth, callees first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from albert_tools.engine.authoring import Authoring
from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.model.definition import Json, ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sources import Sources
from albert_tools.grammar.source_error import SourceError


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


class Upgrader(Struct, eq=False):
    """Upgrades saved tools."""

    context: ServiceContext
    lookup: Lookup
    sources: Sources
    authoring: Authoring

    async def upgrade(self, name: str | None, dry_run: bool) -> list[Upgrade]:
        """Upgrade one tool, or all that need it. Tools that are up to date are left out.

        Raises:
            Failure: `unknown_tool`, `damaged` for the named tool; `io_error`.
        """
        proposed: dict[str, ToolDefinition] = {}
        upgrades = []
        for version, newest in await asyncio.to_thread(self._versions, name):
            if self._changed(version, proposed):
                upgrades.append(await self._upgraded(version, newest, proposed, dry_run))
        return upgrades

    def _versions(self, name: str | None) -> list[tuple[ToolVersion, str]]:
        """The version that each name means, and the newest one."""
        names = [name] if name is not None else self._sound()
        pairs = [(version, self.lookup.store.load(version.name).version) for version in map(self.lookup.by_name, names)]
        # What the owner has revoked or rejected is not proposed again.
        pairs = [each for each in pairs if self.context.record.reviews.of(each[0]).state != "revoked"]
        return sorted(pairs, key=lambda each: (each[0].definition.depth, each[0].name))

    def _sound(self) -> list[str]:
        return [
            s.name
            for s in self.lookup.store.list()
            if s.problem is None and self.lookup.registry.primitive(s.name) is None
        ]

    def _changed(self, version: ToolVersion, proposed: Mapping[str, ToolDefinition]) -> bool:
        """Whether a callee has another version now, or none."""
        now = {c.name: proposed.get(c.name) or self.lookup.registry.get(c.name) for c in version.calls}
        return any(
            definition is None or definition.version != c.version for c in version.calls for definition in [now[c.name]]
        )

    async def _upgraded(
        self, version: ToolVersion, newest: str, proposed: dict[str, ToolDefinition], dry_run: bool
    ) -> Upgrade:
        name = version.name
        try:
            if dry_run:
                new = (await self.sources.compiled(version.source, version.author, proposed))[0]
            else:
                examined, _ = await self.authoring.examined(version.source, lambda _: None)
                new = replace(examined, author=version.author)
                await asyncio.to_thread(self.authoring.saved, new, (), newest)
        except SourceError as error:
            return Upgrade(name, version.version, problem=error.render())
        except Failure as failure:
            return Upgrade(name, version.version, problem=failure.message)
        if dry_run:
            proposed[name] = new.definition
        before = {c.name: c.version for c in version.calls}
        pins = tuple((c.name, before[c.name], c.version) for c in new.calls if c.version != before.get(c.name))
        return Upgrade(name, version.version, new.version, pins)

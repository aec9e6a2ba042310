"""Takes a tool over from another home, with the versions that it calls.

Each source is judged again here, callees first: it is checked, its examples run, and its manifest is made here. Approvals don't
come along. The hash of a version covers its content and the versions that it calls, so it arrives as the same version, or not at
all. A version only becomes the newest one here if it follows the newest one here in the other home's history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from albert_tools.engine.authoring import Authoring
from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.other_home import HISTORY, OtherHome
from albert_tools.engine.sources import Sources
from albert_tools.grammar.source_error import SourceError


class Received(Struct, frozen=True):
    """A version that was taken over. `outcome` is ``saved``, ``replaced`` or ``unchanged``; `state` is that of its review here."""

    name: str
    version: str
    outcome: str
    state: str


class Receiver(Struct, eq=False):
    """Takes tools over into this home."""

    context: ServiceContext
    store: ToolStore
    sources: Sources
    authoring: Authoring

    async def receive(
        self,
        version: ToolVersion,
        there: OtherHome,
        here: str,
        by: str,
        report_progress: Callable[[str], None] = lambda _: None,
    ) -> list[Received]:
        """Save a version and all that it calls, as far as they are not here yet. Both ledgers get an entry about each.

        Args:
            version: A version of the other home.
            there: The other home.
            here: The name of this home, for the other ledger.
            by: Who does this, for the ledgers.
            report_progress: Called with the name of each phase.

        Returns:
            All of them, callees first.

        Raises:
            Failure: `exists` if a name is taken by another tool, or by a later version; `outdated` if a source has another meaning
                here; `invalid_source`, `example_failed`, `permission_denied`; `damaged`, `io_error`. Callees may be saved already.
        """
        versions = await asyncio.to_thread(there.closure, version)
        missing = [each for each in versions if await asyncio.to_thread(self._is_missing, each, version)]
        for each in missing:
            await asyncio.to_thread(self._replaced, each, there)
        outcomes = {}
        for each in missing:
            outcomes[each.version] = await self._receive(each, there, by, report_progress)
            # As with a definition, the change remains in effect even if the entry can't be written.
            with suppress(Failure):
                there.ledger.append("copied", {"tool": each.name, "version": each.version, "to": here, "by": by})
        reviews = self.context.record.reviews
        return [
            Received(v.name, v.version, outcomes.get(v.version, "unchanged"), reviews.state(v.name, v.version).state)
            for v in versions
        ]

    def _is_missing(self, version: ToolVersion, wanted: ToolVersion) -> bool:
        """Whether this home lacks a version. A removed tool is still called by its callers."""
        history, _ = self.store.history(version.name, HISTORY)
        is_removed = version == wanted and not any(saved.current for saved in history)
        return is_removed or all(saved.version != version.version for saved in history)

    def _replaced(self, version: ToolVersion, there: OtherHome) -> str:
        """The newest version here, which this one replaces; empty if the name is free. Raises Failure `exists`."""
        name, saved = version.name, self.store.history(version.name, 1)[0]
        head = saved[0].version if saved and saved[0].current else ""
        known = there.history(name)
        own = known.index(version.version)
        if not head or head in known[own + 1 :]:
            return head
        if head in known:
            problem = f"the receiving home has a newer version of {name} than {version.version[:12]}"
            hint = f"`albert upgrade` makes the callers of {name} call the newest one; then try again"
        else:
            problem = f"the name {name} is taken: version {head[:12]} of the receiving home is unknown in {there.name}"
            hint = "give one of them another name; if one continues the other, define the other's source before it"
        raise Failure("exists", problem, hint=hint, tool=name)

    async def _receive(
        self, version: ToolVersion, there: OtherHome, by: str, report_progress: Callable[[str], None]
    ) -> str:
        name, callees = version.name, await self.sources.callees(version)
        pinned = {callee.name: callee.definition for callee in callees}
        try:
            made, warnings = await self.authoring.examined(
                version.source, lambda doing: report_progress(f"{name}: {doing}"), together=pinned
            )
        except SourceError as error:
            raise Failure(
                "invalid_source", f"the receiving home refuses {name}: {error.render()}", tool=name
            ) from error
        if made.version != version.version:
            changed = ", ".join(c.name for c in made.calls if c not in version.calls)
            problem = f"{name} does not mean the same in the receiving home" + (
                f": {changed} differs" if changed else ""
            )
            hint = "use the same release and the same primitives in both homes"
            raise Failure("outdated", problem, hint=hint, tool=name)
        head = await asyncio.to_thread(self._replaced, version, there)
        origin = {"from": there.name, "user": by}
        return (await asyncio.to_thread(self.authoring.saved, made, warnings, head, origin)).outcome

"""Analyses stored versions again whose manifests an earlier or later analysis has made.

A version's manifest has the number of its analysis. When the version is run or reviewed and the number is another one, the judging
process analyses the source again, against the tools that the version pins. The version remains the same. The new manifest replaces
the stored one, if the user of the process may store it. An approval covers what a manifest says, so it holds only if the new one
says the same.

The callees come first, because a manifest contains those of its callees. Two processes that do this at once write the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import Struct, field

from albert_tools.engine.call.target import Lookup
from albert_tools.engine.judging.source_judge import Judgement
from albert_tools.engine.model.definition import Callee, ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure


class Renewer(Struct, eq=False):
    """Analyses versions again, one at a time. `judge` checks a source that calls these saved tools."""

    lookup: Lookup
    judge: Callable[[str, Mapping[str, ToolDefinition]], Awaitable[Judgement]]
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: The renewed versions that this process may not store, by their hashes.
    _unstored: dict[str, ToolVersion] = field(default_factory=dict)

    async def renewed(self, version: ToolVersion, is_stored: bool = True) -> ToolVersion:
        """The version with a manifest of the present analysis. A version that can't run any more is returned as it is.

        Raises:
            Failure: `outdated` if the checker refuses the source now; `sandbox_unavailable`, `io_error`, `damaged`, ….
        """
        if version.is_current:
            return version
        async with self._one_at_a_time:
            return await self._renewed(version, is_stored)

    async def renew(self, calls: Iterable[Callee]) -> dict[str, ToolDefinition]:
        """Renew the saved tools among some callees. Returns those that needed it. Raises as `renewed`."""
        definitions = {}
        for callee in calls:
            if callee.kind == "composite":
                version = await asyncio.to_thread(self.lookup.store.load, callee.name, callee.version)
                renewed = await self.renewed(version)
                if renewed is not version:
                    definitions[callee.name] = renewed.definition
        return definitions

    async def _renewed(self, version: ToolVersion, is_stored: bool) -> ToolVersion:
        if is_stored:
            # Somebody else may have done it in the meantime.
            version = await asyncio.to_thread(self.lookup.store.load, version.name, version.version)
        if version.is_current or await asyncio.to_thread(self.lookup.outdated, version) is not None:
            return version
        if version.version in self._unstored:
            return self._unstored[version.version]
        pinned: dict[str, ToolDefinition] = {version.name: version.definition}
        for callee in version.calls:
            if callee.kind == "composite":
                callee_version = await asyncio.to_thread(self.lookup.store.load, callee.name, callee.version)
                pinned[callee.name] = (await self._renewed(callee_version, True)).definition
        judgement = await self.judge(version.source, pinned)
        checked = judgement.checked
        if checked is None or checked.calls != version.calls:
            why = next((d.message for d in judgement.diagnostics if d.severity == "error"), "it has other callees")
            raise Failure(
                "outdated",
                f"what {version.name} can do must be found out anew, and its source is refused now: {why}",
                hint="define it again; `albert upgrade` then upgrades the tools that call it",
                tool=version.name,
            )
        assert checked.definition.manifest is not None
        renewed = version.with_manifest(checked.definition.manifest)
        if is_stored:
            try:
                await asyncio.to_thread(self.lookup.store.renew, renewed)
            except Failure as failure:
                if failure.rule != "database.role":
                    raise
                # Only an author may store a manifest. This process uses it for its own runs.
                self._unstored[version.version] = renewed
        return renewed

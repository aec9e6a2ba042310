"""What only the owner does: reviews the versions of saved tools, decides about them, and upgrades them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from albert_tools.engine.authoring import Authoring
from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline.pipeline import Pipeline
from albert_tools.engine.runs.runs import RunManager
from albert_tools.engine.sources import Sources

if TYPE_CHECKING:
    from albert_tools.engine.authority.reviews import VersionState
    from albert_tools.engine.review.version_review import VersionReview
    from albert_tools.engine.upgrading import Upgrade


class OwnerDecisions(Struct, eq=False):
    """Decides for the owner."""

    context: ServiceContext
    pipeline: Pipeline
    runs: RunManager
    sources: Sources
    authoring: Authoring

    async def approve(
        self,
        name: str,
        by: str,
        version: str | None = None,
        why: str = "",
        manifest: str | None = None,
        seen: str | None = None,
    ) -> VersionState:
        """Approve a version of a saved tool, see `Reviews`.

        Args:
            name: The tool.
            by: Who does this, for the record.
            version: The version, or the beginning of its hash; the newest by default.
            why: The reason, for the record.
            manifest: The digest of the manifest that the reviewer has read; None for the stored manifest.
            seen: The state that the reviewer has seen; None if any other decision may be replaced.

        Returns:
            The new state of the version.

        Raises:
            Failure: `unknown_tool`, `damaged`, `outdated`, `io_error`.
        """

        stored = (await asyncio.to_thread(self.pipeline.lookup.look_up, name, version)).version
        if stored is None:
            raise Failure(
                "invalid_arguments", f"{name} is a primitive, which is offered to every agent whose lease covers it"
            )
        problem = await asyncio.to_thread(self.pipeline.lookup.outdated, stored)
        if problem is not None:
            raise Failure("outdated", f"{name} is outdated: {problem}", hint="define it again", tool=name)
        renewed = await self.sources.renewed(stored)
        await self.sources.demand_as_written(renewed)
        return await asyncio.to_thread(self.context.record.reviews.approve, renewed, by, why, manifest, seen)

    async def decide(
        self,
        name: str,
        decision: str,
        by: str,
        version: str,
        why: str = "",
        manifest: str | None = None,
        seen: str | None = None,
    ) -> VersionState:
        """Make a reviewer's decision about a version of a saved tool.

        Args:
            name: The tool.
            decision: One of `engine.authority.reviews.DECISIONS`.
            by: Who decides, for the record.
            version: The version, or the beginning of its hash.
            why: The reason. To reject, send back or revoke, it must be given.
            manifest: For an approval, the digest of the manifest that the reviewer has read.
            seen: For an approval, the state that the reviewer has seen.

        Raises:
            Failure: `invalid_arguments` if there is no such decision, if the state of the version does not allow it, or if the
                reason is missing; those of `approve`.
        """
        from albert_tools.engine.authority.reviews import DECISIONS, REASONED

        if decision not in DECISIONS:
            raise Failure("invalid_arguments", f"{decision!r} is not a decision", hint=f"one of {', '.join(DECISIONS)}")
        if decision in REASONED and not why.strip():
            raise Failure("invalid_arguments", "a reason is missing", hint="write one: the author reads it")
        if decision == "approve":
            return await self.approve(name, by, version, why, manifest, seen)
        return await asyncio.to_thread(getattr(self.context.record.reviews, decision), name, version, by, why)

    async def deprecate(self, name: str, by: str, why: str = "") -> VersionState:
        """End the approval of the active version of a saved tool. Agents are no longer offered it. It can still be found and run.

        Raises:
            Failure: `not_found` if no version is active; `io_error`, `damaged`.
        """

        def deprecated() -> VersionState:
            version = self.context.record.reviews.active().get(name)
            if version is None:
                raise Failure("not_found", f"{name} is not active", hint="`albert tools` shows which tools are active")
            return self.context.record.reviews.deprecate(name, version, by, why)

        return await asyncio.to_thread(deprecated)

    async def review(self, name: str, version: str | None = None, *, rerun: bool = True) -> VersionReview:
        """All that a reviewer needs about a version of a saved tool. Its examples and recorded runs are repeated without effects.

        Args:
            name: The tool.
            version: The version, or the beginning of its hash; the newest by default.
            rerun: Whether to repeat the examples and the recorded runs, which takes some seconds.

        Raises:
            Failure: `unknown_tool`, `damaged`, `io_error`; `invalid_arguments` for a primitive.
        """
        from albert_tools.engine.reviewing import Reviewer

        reviewer = Reviewer(self.context, self.pipeline, self.runs, self.sources)
        return await reviewer.review(name, version, rerun)

    async def upgrade(self, name: str | None = None, *, dry_run: bool = False) -> list[Upgrade]:
        """Check saved sources again, against the newest versions of the tools that they call, and save them as new versions.

        Args:
            name: The tool; by default all whose callees have changed.
            dry_run: Whether to save nothing and to run no examples.

        Returns:
            The upgrades, callees first. The new versions are pending.

        Raises:
            Failure: `unknown_tool`, `damaged`, `io_error`.
        """
        from albert_tools.engine.upgrading import Upgrader

        upgrader = Upgrader(self.context, self.pipeline.lookup, self.sources, self.authoring)
        return await upgrader.upgrade(name, dry_run)

"""Collects what a reviewer is shown about a version: from the store, the record, the examples and the recorded runs."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.examples import Observed, denied_tools, run_examples
from albert_tools.engine.model.definition import ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline.pipeline import Pipeline
from albert_tools.engine.policy.host_rules import host_of, lists_host
from albert_tools.engine.review.call_graph import call_graph
from albert_tools.engine.review.replays import replays
from albert_tools.engine.review.touched_files import touched_files
from albert_tools.engine.review.unusual import hosts_of
from albert_tools.engine.review.version_changes import changes
from albert_tools.engine.review.version_review import ExampleRun, VersionReview, expected_of
from albert_tools.engine.runs.runs import RunManager
from albert_tools.engine.sources import Sources


class Reviewer(Struct, eq=False):
    """Makes reviews of saved versions."""

    context: ServiceContext
    pipeline: Pipeline
    runs: RunManager
    sources: Sources

    async def review(self, name: str, version: str | None, rerun: bool) -> VersionReview:
        """The review of a version; of the newest one if `version` is None. Without `rerun`, nothing is run.

        Raises:
            Failure: `unknown_tool`, `damaged`, `io_error`; `invalid_arguments` for a primitive.
        """
        review = await self._current(name, version)
        if not rerun:
            return review
        examples: tuple[ExampleRun, ...] = ()
        problem = ""
        try:
            examples = await self._examples(review.version)
        except Failure as failure:
            problem = failure.message
        repeated = None
        if review.changes is not None:
            repeated = await replays(self.runs, name, review.changes.since, review.version.version, self._files_in)
        return replace(review, examples=examples, examples_problem=problem, replays=repeated)

    async def _examples(self, version: ToolVersion) -> tuple[ExampleRun, ...]:
        """Run the examples of a saved version. Raises as `define`."""
        _, examples, _ = await self.sources.compiled(version.source)
        denied = denied_tools(self.context, self.pipeline.lookup.registry.primitives(), None)
        observed: dict[int, Observed] = {}
        problems = await run_examples(version, examples, self.pipeline, denied, observed)
        failed = {problem["line"]: problem["message"] for problem in problems}
        runs = []
        for e in examples:
            seen = observed.get(e.line, Observed())
            files = touched_files([(effect.kind, effect.facts) for effect in seen.effects], e.files)
            problem = failed.get(e.line, "")
            runs.append(ExampleRun(e.line, e.arguments, expected_of(e), problem, tuple(sorted(seen.calls)), files))
        return tuple(runs)

    def _files_in(self, folder: str) -> list[str]:
        return [entry.path for entry in self.context.workspace.listing(folder or ".") if entry.type == "file"]

    async def _current(self, name: str, version: str | None) -> VersionReview:
        """The review without runs. If what the version can do can't be found out anew, the review says why."""
        tool_version = (await asyncio.to_thread(self.pipeline.lookup.look_up, name, version)).version
        if tool_version is None:
            raise Failure("invalid_arguments", f"{name} is a primitive; only saved tools are reviewed", tool=name)
        # The version that was approved last, if it is another one and can be loaded.
        reviews = self.context.record.reviews
        before = await asyncio.to_thread(reviews.last_approved, tool_version.name, tool_version.version)
        problem = ""
        try:
            tool_version = await self.sources.renewed(tool_version, True)
        except Failure as failure:
            problem = failure.message
        if before is not None:
            # If its source is refused now, the new version is compared with what was found out then.
            with suppress(Failure):
                before = await self.sources.renewed(before, True)
        collected = await asyncio.to_thread(self._collected, tool_version, before)
        return replace(collected, outdated=collected.outdated or problem or None)

    def _collected(self, version: ToolVersion, before: ToolVersion | None) -> VersionReview:
        reviews = self.context.record.reviews
        return VersionReview(
            version,
            reviews.of(version),
            reviews.author(version.name, version.version, version.author),
            outdated=self.pipeline.lookup.outdated(version, lambda name: True),
            listed_hosts=self._listed_hosts(version),
            flows=tuple(dict.fromkeys((d.verdict, d.message) for d in self.context.flow_decisions(version.definition))),
            changes=changes(before, version) if before is not None else None,
            graph=call_graph(
                version, self.pipeline.lookup.store.load, self._primitive, lambda callee: reviews.of(callee).state
            ),
        )

    def _listed_hosts(self, version: ToolVersion) -> frozenset[str]:
        authority = self.context.authority
        if authority is None:
            return frozenset()
        layers = authority.policy.layers
        return frozenset(
            host
            for call in version.manifest.calls
            for host in hosts_of(call)
            if (definition := self._primitive(call.tool)) is not None
            and lists_host(layers, definition, host_of(f"https://{host}") or "")
        )

    def _primitive(self, tool: str) -> ToolDefinition | None:
        try:
            return self.pipeline.lookup.look_up(tool, None).definition
        except Failure:
            return None

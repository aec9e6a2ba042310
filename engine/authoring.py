"""Defines and removes saved tools: checks a source, runs its examples, and saves it as a new version."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec import json as msgspec_json
from msgspec.structs import replace

from albert_tools.engine.actions import DEFINE, REMOVE, ActionRequest, Actions, Review
from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.errors import shown
from albert_tools.engine.model.definition import Json, ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import INDEX_FACTOR, STORED, on_disk
from albert_tools.engine.pipeline.lookup import demand_depth
from albert_tools.engine.pipeline.pipeline import Pipeline
from albert_tools.engine.policy.harmless import READ_ONLY, is_harmless
from albert_tools.engine.session_access import SessionAccess
from albert_tools.engine.sources import Source, Sources, shown_source

if TYPE_CHECKING:
    from albert_tools.grammar.diagnostic import Diagnostic

#: A version that was checked, the warnings about it, and the version that it replaces.
_Examined = tuple[ToolVersion, "tuple[Diagnostic, ...]", str]


class Defined(Struct, frozen=True):
    """The result of a definition: the version, and the checker's warnings.

    `outcome` is ``saved``, ``unchanged`` or ``replaced``. If it is ``replaced``, then `replaced` is the previous newest version.
    `callers` are the composites that still call an older version, because they were checked against it.
    """

    version: ToolVersion
    warnings: tuple[Diagnostic, ...]
    outcome: str
    replaced: str | None = None
    callers: tuple[str, ...] = ()


class Authoring(Struct, eq=False):
    """Defines and removes tools."""

    context: ServiceContext
    pipeline: Pipeline
    sources: Sources
    actions: Actions
    access: SessionAccess

    async def define(
        self, source: Source, progress: Callable[[str], None] | None = None, *, session: str | None = None
    ) -> ToolDefinition:
        """Check a source, run its examples, and save it as the newest version of its tool.

        Args:
            source: The text, or ``{name, description, parameters, implementation}``.
            progress: Called with the name of each phase: ``checking``, ``running 2 examples``, ``saving``.
            session: The token of the session that defines the tool, by the action ``define_tool``. A person is asked before the
                session replaces a tool that the owner or another session has defined.

        Returns:
            The definition of the saved version.

        Raises:
            SourceError: The source has errors. The exception contains all diagnostics.
            Failure: `example_failed` (expected and actual result are in `details`), `invalid_arguments`, `io_error`. In a session
                also those of a call: `permission_denied`, `suspended`, `budget_exceeded`, …
            RuntimeError: The service is closed.
        """
        return (await self.define_version(source, progress, session=session)).version.definition

    async def define_version(
        self,
        source: Source,
        progress: Callable[[str], None] | None = None,
        *,
        session: str | None = None,
        request: ActionRequest | None = None,
    ) -> Defined:
        """Like `define`, but also return the warnings, the replaced version, and the tools that still call an older version. A
        session is told those that its lease covers. `request` is its request, if it is known."""
        report_progress = progress or (lambda _: None)
        if session is None:
            version, warnings = await self.examined(source, report_progress)
            report_progress("saving")
            return await asyncio.to_thread(self.saved, version, warnings)

        async def review(before: _Examined | None) -> Review[_Examined]:
            version, warnings = (
                before[:2] if before is not None else await self.examined(source, report_progress, session)
            )
            head, why = await asyncio.to_thread(self._head, version.name, session, "replacing it", version.version)
            # The version also names the callees, so an answer does not cover the same source with other callees.
            facts = {"name": version.name, "version": version.version, "replaces": head}
            if why and (contents := self.access.contents(session)) is not None:
                # The question itself has only the beginning of a long text.
                facts["stored_source"] = await asyncio.to_thread(contents.put, version.source.encode())
            return Review((version, warnings, head), why, facts)

        async def save(examined: _Examined) -> Defined:
            report_progress("saving")
            return await asyncio.to_thread(self.saved, *examined)

        arguments = {"source": shown_source(source)}
        defined = await self.actions.perform_reviewed(DEFINE, arguments, session, review, save, request)
        self._notify_owner(defined)
        return replace(defined, callers=tuple(filter(self.access.coverage(session), defined.callers)))

    async def remove(self, name: str, *, session: str | None = None, request: ActionRequest | None = None) -> None:
        """Remove a saved tool. The store retains its versions, so tools that were checked against them can still run.

        Args:
            name: The tool.
            session: The token of the session that removes the tool, by the action ``remove_tool``. A person is asked before the
                session removes a tool that is active, or that the owner or another session has defined.
            request: The session's request, if it is known.

        Raises:
            Failure: `unknown_tool`; `permission_denied` if the tool is a primitive. In a session also those of a call.
        """

        def demand_saved() -> None:
            self.access.demand_covered(session, name)
            if self.pipeline.lookup.registry.primitive(name) is not None:
                raise Failure(
                    "permission_denied",
                    f"{name} is a primitive and can't be removed",
                    hint=f"to turn a primitive off, write `deny: [{name}]` in governance.yaml",
                    rule="primitive",
                    tool=name,
                )

        async def review(_: str | None) -> Review[str | None]:
            assert session is not None
            demand_saved()
            head, why = await asyncio.to_thread(self._head, name, session, "removing it")
            if not why and name in self.context.record.reviews.active():
                why = f"{name} is active, so removing it needs a person's approval"
            return Review(head, why, {"removes": head})

        async def delete(head: str | None) -> None:
            if head == "":
                # The store would name the nearest tool, which the session may not see.
                raise Failure(
                    "unknown_tool", f"no tool named {shown(name)}", hint="search_tools finds tools", tool=name
                )
            by = "" if session is None else self.access.session(session).id
            reviews = self.context.record.reviews
            # First, so that no approval outlives its tool if the process is killed in between.
            if (active := reviews.active().get(name)) is not None:
                reviews.deprecate(name, active, by, "removed")
            await asyncio.to_thread(self.pipeline.lookup.store.delete, name, head)
            self._record("removal", by, tool=name)

        if session is None:
            demand_saved()
            return await delete(None)
        return await self.actions.perform_reviewed(REMOVE, {"name": name}, session, review, delete, request)

    def _notify_owner(self, defined: Defined) -> None:
        """Run the owner's command if a new version waits for a review. Never fails."""
        with suppress(Failure):
            command = self.context.ruling(audit=False).governance.notify
            version = defined.version
            if (
                command
                and defined.outcome != "unchanged"
                and self.context.record.reviews.of(version).state == "pending"
            ):
                from albert_tools.engine.pipeline.notify import Notifier, about_version

                session = self.context.record.sessions.outermost(version.author)
                notice = about_version(version.name, version.version, session)
                notifier = self.context.resource_pool.get(Notifier)
                notifier.add(notice, command, self.context.root, self.context.ledger)

    def _head(self, name: str, token: str, what: str, version: str = "") -> tuple[str, str]:
        """The current version of a tool ("" if there is none, or the tool was removed: its name is free), and why a person must
        be asked before a session changes it. Nobody is asked if `version` already is the current version."""
        versions, _ = self.pipeline.lookup.store.history(name, 1)
        if not versions or not versions[0].current:
            return "", ""
        head = versions[0]
        if head.version == version or self.access.is_own(token, lambda: head.author):
            return head.version, ""
        whom = self.context.record.reviews.author(name, head.version, head.author)
        return head.version, f"{name} was defined by {whom}; {what} needs a person's approval"

    async def examined(
        self,
        source: Source,
        report_progress: Callable[[str], None],
        token: str | None = None,
        together: Mapping[str, ToolDefinition] | None = None,
    ) -> tuple[ToolVersion, tuple[Diagnostic, ...]]:
        """The version that a source makes, after its examples were run, and the checker's warnings. Raises as `define`.

        `together` has the tools that it calls in other versions than the newest ones.
        """
        from albert_tools.engine.examples import denied_tools, run_examples

        report_progress("checking")
        session = self.access.session(token) if token is not None else None
        author = session.id if session is not None else ""
        version, examples, diagnostics = await self.sources.compiled(source, author, together, token)
        self._demand_possible(version.definition)
        if examples:
            report_progress(f"running {len(examples):,} example{'s' if len(examples) > 1 else ''}")
            denied = denied_tools(self.context, self.pipeline.lookup.registry.primitives(), session)
            problems = await run_examples(version, examples, self.pipeline, denied)
            if problems:
                first = problems[0]
                raise Failure(
                    "example_failed",
                    _failed_examples(len(problems), len(examples), first),
                    hint=first.get("hint") or "correct the program or the example; nothing was saved",
                    tool=version.name,
                    line=first["line"],
                    details={"examples": problems},
                )
        return version, diagnostics

    def _demand_possible(self, definition: ToolDefinition) -> None:
        """Refuse a tool that the rules would not let run: with a flow that they deny, or nested too deep.

        Raises:
            Failure: `permission_denied`, `depth_limit`.
        """
        rules = self.context.governance
        if not isinstance(rules, Failure):
            demand_depth(definition.name, definition.depth, rules.limits.depth)
        denied = next((d for d in self.context.flow_decisions(definition) if d.verdict == "deny"), None)
        if denied is not None:
            raise denied.failure(definition.name)

    def saved(
        self,
        version: ToolVersion,
        warnings: tuple[Diagnostic, ...],
        over: str | None = None,
        origin: Mapping[str, str] = MappingProxyType({}),
    ) -> Defined:
        """Save a version that was examined. `origin` is recorded with it. Raises as the store's `save`, also for `over`."""
        versions, total = self.pipeline.lookup.store.history(version.name, 1)
        before = versions[0].version if versions and versions[0].current else None
        changed = self.pipeline.lookup.store.save(version, over)
        if changed:
            facts: dict[str, Json] = {"tool": version.name, "version": version.version, "replaced": before, **origin}
            if version.author:
                # Its file is indented (store/tools/storage.py).
                size = on_disk(len(msgspec_json.format(msgspec_json.encode(version.to_document()), indent=1)))
                indexed = len(version.source.encode()) + len(version.definition.description.encode())
                facts |= {"session": version.author, "used": {STORED: size + INDEX_FACTOR * indexed}}
            self._record("definition", version.author, **facts)
            self._activate_harmless(version)
        known = total > (before == version.version)
        callers = (
            tuple(c for c, v in self.pipeline.lookup.store.callers(version.name) if v != version.version)
            if known
            else ()
        )
        if not changed:
            return Defined(version, warnings, "unchanged", None, callers)
        if before in (None, version.version):
            return Defined(version, warnings, "saved", None, callers)
        return Defined(version, warnings, "replaced", before, callers)

    def _activate_harmless(self, version: ToolVersion) -> None:
        """Activate a new version without a review, if the owner's rules say so."""
        from albert_tools.engine.authority.reviews import BY_RULES

        rules, reviews = self.context.governance, self.context.record.reviews
        if isinstance(rules, Failure) or not rules.activates_harmless:
            return
        if is_harmless(version.manifest) and reviews.of(version).state == "pending":
            # The version is saved. If this fails, it is pending.
            with suppress(Failure):
                reviews.approve(version, BY_RULES, READ_ONLY)

    def _record(self, kind: str, author: str, **data: Json) -> None:
        """Append an entry about a change of the store. The change remains in effect even if the entry can't be written."""
        with suppress(Failure):
            self.context.ledger.append(kind, {**data, "by": author} if author else data)


def _failed_examples(failed: int, of: int, first: dict[str, Any]) -> str:
    which = f"the example in line {first['line']} failed"
    if failed > 1:
        which = f"{failed} of {of} examples failed; the first, in line {first['line']}"
    return f"{which}: {first['message']}"

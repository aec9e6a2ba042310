"""Checks sources in the judging process, against the tools that their programs can call.

A manifest contains those of its callees. So callees that another analysis has judged are analysed again first, see `Renewer`.
"""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.model.definition import ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import look_alike
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.engine.model.turns import Turns
from albert_tools.engine.session_access import SessionAccess

if TYPE_CHECKING:
    from albert_tools.engine.judging.accept import CheckedSource
    from albert_tools.engine.judging.answers import Outline
    from albert_tools.engine.judging.source_judge import Judgement, SourceJudge
    from albert_tools.engine.model.example import Example
    from albert_tools.engine.renewing import Renewer
    from albert_tools.engine.sandbox.worker.spawn import Spawned
    from albert_tools.grammar.diagnostic import Diagnostic

#: The text of a source, or its form ``{name, description, parameters, implementation}``.
Source = str | bytes | Mapping[str, Any]
#: The sources of a session that are judged at once; four processes judge those of all.
MAX_OF_SESSION = 2


class Checkup(Struct, frozen=True):
    """The result of checking one source. `examples` is the number of examples that `define` would run."""

    diagnostics: tuple[Diagnostic, ...]
    examples: int = 0


class Sources(Struct, eq=False):
    """Checks sources, and makes versions of them."""

    context: ServiceContext
    lookup: Lookup
    access: SessionAccess
    _source_judge: SourceJudge | None = None
    _renewer: Renewer | None = None
    _closed: bool = False
    _turns: Turns = field(default_factory=lambda: Turns(MAX_OF_SESSION))

    async def close(self) -> None:
        """End the judging process."""
        self._closed = True
        if self._source_judge is not None:
            await self._source_judge.close()

    async def check(self, source: Source, *, session: str | None = None) -> tuple[Diagnostic, ...]:
        """Check a source without saving it.

        Args:
            source: The text, or ``{name, description, parameters, implementation}``.
            session: The token of a session. For it, tools outside of its lease do not exist.

        Returns:
            All errors and warnings. The tuple is empty if there are no problems.

        Raises:
            Failure: `invalid_arguments` if the structured form is malformed; `permission_denied` if there is no such session.
        """
        return (await self._check(await self._text(source), session=session)).diagnostics

    async def check_together(
        self, sources: Sequence[str | bytes], *, session: str | None = None
    ) -> builtins.list[Checkup]:
        """Check several sources in order. Each one may call the tools of the sources before it. The results are in the same order.

        Raises:
            Failure: See `check`.
        """

        together: dict[str, ToolDefinition] = {}
        checkups = []
        for source in sources:
            diagnostics, checked = await self._check(await self._text(source), together, session=session)
            if checked is not None:
                together[checked.definition.name] = checked.definition
            checkups.append(Checkup(diagnostics, len(checked.examples) if checked else 0))
        return checkups

    async def format(self, source: str) -> str:
        """Write a source in canonical form.

        Raises:
            SourceError: The source can't be parsed.
            Failure: `sandbox_unavailable` if this machine can't confine the process that reads the source.
        """
        return await self._judge.format(source)

    async def outline(self, source: str) -> Outline:
        """The names of a source's public functions, and of the tools that it calls. Both are empty if it can't be parsed.

        Raises:
            Failure: See `format`.
        """
        return await self._judge.outline(source)

    async def prepare_judge(self, spawned: Spawned) -> None:
        """Use a zygote that ``spawn_zygote(JUDGING)`` has started. The service becomes responsible for it.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        await self._judge.start(spawned)

    async def compiled(
        self,
        source: Source,
        author: str = "",
        together: Mapping[str, ToolDefinition] | None = None,
        session: str | None = None,
    ) -> tuple[ToolVersion, tuple[Example, ...], tuple[Diagnostic, ...]]:
        """The version that a source makes, its examples, and the warnings. Raises as `define`."""
        text = await self._text(source)
        diagnostics, checked = await self._check(text, together, compiled=True, session=session)
        if checked is None:
            from albert_tools.grammar.source_error import SourceError

            raise SourceError(diagnostics, text)
        return _version(checked, author), checked.examples, diagnostics

    async def callees(self, version: ToolVersion) -> list[ToolVersion]:
        """The saved tools that a version calls, in the versions that it pins. Raises Failure `damaged`, `io_error`."""
        versions = []
        for callee in version.calls:
            if callee.kind == "composite":
                stored = await asyncio.to_thread(self.lookup.store.load, callee.name, callee.version)
                versions.append(await self.renewed(stored))
        return versions

    async def demand_as_written(self, version: ToolVersion) -> None:
        """Require that the stored program and manifest of a version, and of all that it calls, are what the sources make.

        The hash of a version only says that nothing was changed since somebody stored it. In a database with roles, that can be a
        person with SQL of his own.

        Raises:
            Failure: `outdated`; `sandbox_unavailable`, `io_error`, `damaged`.
        """
        pending, judged = [version], {version.version}
        while pending:
            version = pending.pop()
            stored = version.definition
            callees = await self.callees(version)
            pinned = {callee.name: callee.definition for callee in callees}
            checked = (await self._check(version.source, pinned, compiled=True)).checked
            made = None if checked is None else _version(checked).definition
            if made is None or (made.version, made.manifest_digest) != (stored.version, stored.manifest_digest):
                raise Failure(
                    "outdated",
                    f"what is stored of {version.name} is not what its source makes here",
                    hint="define it again from its source, and decide about that version",
                    tool=version.name,
                )
            # Its manifest contains those of its callees.
            reviews, new = self.context.record.reviews, [callee for callee in callees if callee.version not in judged]
            judged |= {callee.version for callee in new}
            pending += [callee for callee in new if not reviews.of(callee).approved]

    async def renewed(self, version: ToolVersion, is_stored: bool = True) -> ToolVersion:
        """The version with a manifest of the present analysis, see `Renewer`."""
        if version.is_current:
            return version
        return await self._renewing.renewed(version, is_stored)

    @property
    def _renewing(self) -> Renewer:
        from albert_tools.engine.renewing import Renewer

        if self._renewer is None:
            self._renewer = Renewer(self.lookup, self._check_pinned)
        return self._renewer

    async def _check_pinned(self, source: str, pinned: Mapping[str, ToolDefinition]) -> Judgement:
        return await self._judge.check(source, _Catalog(self.lookup, self.access, pinned, None))

    @property
    def _judge(self) -> SourceJudge:
        # A call of a tool doesn't need it.
        from albert_tools.engine.judging.source_judge import SourceJudge

        if self._closed:
            raise RuntimeError("this service is closed; open another one")
        self._source_judge = self._source_judge or SourceJudge()
        return self._source_judge

    async def _text(self, source: Source) -> str | bytes:
        """The text of a source. For a structured form, it is written from the form."""
        if isinstance(source, Mapping):
            from albert_tools.engine.structured import render_source

            try:
                source = await asyncio.to_thread(render_source, dict(source))
            except RecursionError:
                raise Failure(
                    "invalid_arguments", "the form is nested too deep", hint="write a simpler schema"
                ) from None
        if not isinstance(source, str | bytes):
            raise Failure(
                "invalid_arguments",
                f"expected a source, got {type(source).__name__}",
                hint="pass the text, or a form {name, description, parameters, implementation}",
            )
        return source

    async def _check(
        self,
        source: str | bytes,
        together: Mapping[str, ToolDefinition] | None = None,
        *,
        compiled: bool = False,
        session: str | None = None,
    ) -> Judgement:
        catalog = _Catalog(self.lookup, self.access, together or {}, session)
        async with self._turns.of(self.context.client_of(session)):
            judgement = await self._judge.check(source, catalog, compiled=compiled)
            checked = judgement.checked
            saved = [c for c in checked.calls if c.name not in catalog.together] if checked is not None else []
            renewed = await self._renewing.renew(saved)
            if renewed:
                # Its manifest contains those of its callees.
                catalog = _Catalog(self.lookup, self.access, {**catalog.together, **renewed}, session)
                return await self._judge.check(source, catalog, compiled=compiled)
            return judgement


class _Catalog(Struct, eq=False):
    """The tools that a source may call: primitives, then the tools that are checked together, then saved tools.

    With a session, only those that its lease covers.
    """

    lookup: Lookup
    access: SessionAccess
    together: Mapping[str, ToolDefinition]
    session: str | None

    def get(self, name: str) -> ToolDefinition | None:
        if name in self.together and self.lookup.registry.primitive(name) is None:
            return self.together[name]
        definition = self.lookup.registry.get(name)
        return definition if definition is not None and self.access.covers(self.session, name) else None

    def names(self) -> builtins.list[str]:
        known = filter(self.access.coverage(self.session), self.lookup.registry.names())
        return builtins.list(dict.fromkeys([*known, *self.together]))

    def outdated(self, name: str) -> str | None:
        return None if name in self.together else self.lookup.problem_of(name)

    def look_alike(self, name: str) -> str | None:
        # All names count, also for a session: a tool that looks like another one would deceive the others.
        if self.get(name) is not None:
            return None
        if self.lookup.registry.primitive(name) is not None:
            return name
        known = [*self.lookup.registry.primitive_names, *self.together, *RESERVED]
        # A store that can't be read has no tools.
        with suppress(Failure):
            known += self.lookup.store.alike(name)
        return look_alike(name, known)


def _version(checked: CheckedSource, author: str = "") -> ToolVersion:
    assert checked.program is not None
    created = datetime.now(UTC).isoformat(timespec="microseconds")
    whole = ToolVersion(
        checked.definition, checked.source, checked.program, checked.calls, created=created, author=author
    )
    return whole.named()


def shown_source(source: Source) -> str:
    """A source as the argument of an action, for the question and the record.

    Raises:
        Failure: `invalid_arguments`.
    """
    if isinstance(source, bytes):
        return source.decode("utf-8", "replace")
    try:
        return source if isinstance(source, str) else json.dumps(source, default=repr, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Failure("invalid_arguments", f"the source is not JSON: {error}") from error

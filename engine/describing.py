"""Describes one tool: what it is, what the rules decide about it, and its versions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.model.definition import Callee, Json, Mode, ToolDefinition
from albert_tools.engine.model.describe import confined_of, resources_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Saved
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.session_access import SessionAccess

if TYPE_CHECKING:
    from albert_tools.engine.authority.reviews import VersionState

#: The most versions that a description lists.
MAX_VERSIONS = 10


class Description(Struct, frozen=True):
    """All information about one tool. Only a composite has `source`, `calls`, `created`, `newest` and `versions`.

    Attributes:
        gated: Whether the tool needs the owner's permission.
        newest: For each composite that the tool calls, its newest version; None if that composite was removed.
        versions: The newest saved versions.
        users: The users of the database who defined versions, by version.
        total: The number of saved versions.
        resources: The parameters of a primitive that rules can refer to, each with its kind of resource.
        policy: The decision of the rules on every call in the current mode.
        bounds: The seconds per call and the calls per hour that the rules allow.
        confined: Which part of a primitive runs confined: ``function``, ``command``, or an empty text.
        review: The state of the version of a composite.
    """

    definition: ToolDefinition
    source: str = ""
    calls: tuple[Callee, ...] = ()
    created: str = ""
    outdated: str | None = None
    gated: bool = False
    newest: Mapping[str, str | None] = field(default_factory=dict)
    versions: tuple[Saved, ...] = ()
    users: Mapping[str, str] = field(default_factory=dict)
    total: int = 0
    resources: Mapping[str, str] = field(default_factory=dict)
    policy: Mapping[str, Json] = field(default_factory=dict)
    bounds: Mapping[str, Json] = field(default_factory=dict)
    confined: str = ""
    review: VersionState | None = None

    @property
    def changed(self) -> tuple[Callee, ...]:
        """The callees that were replaced or removed since. The tool keeps calling the versions that it was checked against."""
        return tuple(c for c in self.calls if self.newest.get(c.name, c.version) != c.version)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        from albert_tools.engine.review.manifest_view import view
        from albert_tools.engine.review.sentences import sentence

        d = self.definition
        about: dict[str, Json] = {}
        if d.manifest is not None:
            review = asdict(self.review) if self.review is not None else None
            about = {"sentence": sentence(d.manifest), "manifest": view(d.manifest), "review": review}
        return {
            "name": d.name,
            "kind": d.kind,
            "description": d.description,
            "signature": d.signature(),
            "parameters": d.parameters_schema(),
            "result": d.result,
            "depth": d.depth,
            "version": d.version,
            "created": self.created,
            "calls": [
                {"name": c.name, "kind": c.kind, "version": c.version, "newest": self.newest.get(c.name, c.version)}
                for c in self.calls
            ],
            "outdated": self.outdated,
            "gated": self.gated,
            "effects": list(d.effects),
            "timeout_seconds": d.timeout,
            **d.governance(),
            "confined": self.confined,
            "resources": dict(self.resources),
            "policy": dict(self.policy),
            "bounds": dict(self.bounds),
            "versions": [
                {
                    "version": v.version,
                    "created": v.created,
                    "current": v.current,
                    "author": v.author or None,
                    "user": self.users.get(v.version),
                }
                for v in self.versions
            ],
            "versions_total": self.total,
            **about,
            "source": self.source,
        }


class Describer(Struct, eq=False):
    """Describes tools."""

    context: ServiceContext
    lookup: Lookup
    access: SessionAccess

    async def describe(self, name: str, version: str | None = None, *, session: str | None = None) -> Description:
        """Describe one tool.

        Args:
            name: The tool.
            version: A version of a composite; the newest by default.
            session: The token of the session that asks. Its lease must cover the tool.

        Returns:
            Its definition, source and versions, and the decision of the rules.

        Raises:
            Failure: `unknown_tool` with the nearest name, `damaged`; `permission_denied` in a session.
        """
        if session is not None:
            self.access.demand_covered(session, name, version)
        primitive = self.lookup.registry.primitive(name)
        if primitive is not None and version in (None, primitive.definition.version):
            return self._judged(
                Description(
                    primitive.definition,
                    gated=primitive.gated,
                    resources=resources_of(primitive),
                    confined=confined_of(primitive),
                )
            )

        def load() -> Description:
            covers = self.access.coverage(session)
            named = partial(covers, author="")
            tool_version = self.lookup.look_up(name, version, covers=named).version
            assert tool_version is not None
            versions, total = self.lookup.store.history(name, MAX_VERSIONS)
            # A name can have versions of others from before it was removed.
            shown = [each for each in versions if covers(name, each.author)]
            definers = self.context.record.reviews.definers(name)
            description = Description(
                tool_version.definition,
                tool_version.source,
                tool_version.calls,
                tool_version.created,
                self.lookup.outdated(tool_version, named),
                newest=self.lookup.newest(tool_version.calls),
                versions=tuple(shown),
                users={each.version: definers[each.version] for each in shown if each.version in definers},
                total=total if len(shown) == len(versions) else len(shown),
                review=self.context.record.reviews.of(tool_version),
            )
            return self._judged(description)

        return await asyncio.to_thread(load)

    def standing(self, definition: ToolDefinition, gated: bool = False, mode: Mode | None = None) -> dict[str, Json]:
        """The decision of the rules on every call of a tool. The arguments of a call can make it stricter.

        Args:
            definition: The tool.
            gated: Whether it is a gated primitive.
            mode: The mode of the calls; None for the present one.

        Returns:
            A decision in the form of a result's ``policy``, with its ``hint``, the ``mode``, and what a person is asked about
            although every call is allowed (`asks`, such as ``new hosts``). If the rules can't be evaluated, the decision is a
            denial with the reason.
        """
        try:
            authority = self.context.ruling(audit=False).authority
        except Failure as why:
            said = Decision("deny", why.rule or "governance", "no_rule", why.message).as_dict()
            return {**said, "rationale_code": "unavailable", "hint": why.hint, "mode": None}
        mode = mode or authority.modes.mode
        decision = authority.policy.permits(definition, gated, mode)
        primitive = self.lookup.registry.primitive(definition.name) if decision.verdict == "allow" else None
        kinds = [] if primitive is None else [*(["url"] if primitive.urls else []), *primitive.judged.values()]
        asks: list[Json] = [*authority.policy.may_ask(definition, kinds)]
        return {**decision.as_dict(), "hint": decision.hint, "mode": mode, "asks": asks}

    def _judged(self, description: Description) -> Description:
        definition = description.definition
        bounds: dict[str, Json] = {}
        with suppress(Failure):
            rules = self.context.ruling(audit=False)
            bounds = {
                "timeout_seconds": rules.timeout(definition),
                "calls_per_hour": dict(rules.authority.policy.numbers(definition).rate_limits),
            }
        return replace(description, policy=self.standing(definition, description.gated), bounds=bounds)

    async def callers(self, name: str, *, session: str | None = None) -> tuple[str, ...]:
        """The composites that call a saved tool, in any version, by name; in a session those that its lease covers."""
        callers = await asyncio.to_thread(self.lookup.store.callers, name)
        return tuple(filter(self.access.coverage(session), (caller for caller, _ in callers)))

"""Lists and searches the tools."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from albert_tools.engine.call.context import ServiceContext
from albert_tools.engine.call.target import Lookup
from albert_tools.engine.describing import Describer
from albert_tools.engine.model.definition import CATEGORIES, Json, Mode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.protocols import Summary
from albert_tools.engine.model.reserved_names import NO_TOOL
from albert_tools.engine.session_access import SessionAccess, search_covered

if TYPE_CHECKING:
    from albert_tools.engine.other_home import Library

#: The families of the saved tools in lists: one's own, and those of the library, which can't be called before they are pulled.
SAVED, LIBRARY = "saved", "library"
#: The rationale codes of a denial that only applies in the current mode.
_OF_MODE = ("mode", "tool_mode")
#: The words of a search that primitives are compared with.
MAX_WORDS = 16


class Listed(Struct, frozen=True):
    """A tool in the list. `outdated` or `problem` says why the tool can't run.

    `changed` names callees that have a newer version. The tool keeps calling the older version that it was checked against.
    `category` is that of the rules; it is empty for a damaged tool. The family of a saved tool is ``saved``.
    `policy` is the decision of the rules on every call in the current mode, see `ToolService.standing`.
    """

    name: str
    kind: str
    description: str
    signature: str = ""
    family: str = ""
    category: str = ""
    version: str = ""
    versions: int = 0
    created: str = ""
    outdated: str | None = None
    problem: str | None = None
    changed: tuple[str, ...] = ()
    #: The version that agents are offered; empty if the tool is not active.
    active: str = ""
    #: The state of the newest version, and who has decided it.
    state: str = ""
    decided_by: str = ""
    effects: tuple[str, ...] = ()
    policy: Mapping[str, Json] = field(default_factory=dict)

    @property
    def hidden(self) -> bool:
        """Whether the current mode denies every call of the tool."""
        return self.policy.get("rationale_code") in _OF_MODE


class Listing(Struct, eq=False):
    """Lists tools."""

    context: ServiceContext
    lookup: Lookup
    describer: Describer
    access: SessionAccess
    library: Library | None = None

    async def list(
        self,
        category: str | None = None,
        *,
        family: str | None = None,
        hidden: bool = False,
        limit: int | None = None,
        after: str = "",
        mode: Mode | None = None,
    ) -> builtins.list[Listed]:
        """List the tools, all of them or a page.

        Args:
            category: Only the tools of this category of the rules, such as ``read_only``.
            family: Only the tools of this family, such as ``files``; ``saved`` for the saved tools.
            hidden: Whether to include primitives that the mode denies.
            limit: The most tools to return; None for all.
            after: The name of the last tool on the page before.
            mode: The mode in which the rules decide about the tools; None for the present one.

        Returns:
            Primitives in the order of registration, then saved tools by name. A damaged tool has a `problem`.

        Raises:
            Failure: `io_error` if the store can't be read; `invalid_arguments` if there is no such category.
        """
        if category is not None and category not in CATEGORIES:
            raise Failure(
                "invalid_arguments",
                f"there is no category {category!r}{did_you_mean(str(category), CATEGORIES)}",
                hint=f"the categories are {', '.join(CATEGORIES)}; `family` selects a family",
            )

        def chosen(tool: Listed) -> bool:
            return category in (None, tool.category) and family in (None, tool.family)

        primitives = self.lookup.registry.primitives()
        names = [p.name for p in primitives]
        if after in names:
            primitives, after = primitives[names.index(after) + 1 :], ""
        elif after:
            primitives = []
        listed = [t for t in (self._primitive(p, mode) for p in primitives) if (hidden or not t.hidden) and chosen(t)][
            :limit
        ]

        def saved() -> builtins.list[Listed]:
            if family not in (None, SAVED):
                return []
            if limit is None:
                return [
                    *filter(chosen, self._all_listed((s for s in self.lookup.store.list() if s.name > after), mode))
                ]
            rest: builtins.list[Listed] = []
            last = after
            while len(listed) + len(rest) < limit and (page := self.lookup.store.page(last, limit)):
                rest += [*filter(chosen, self._all_listed(page, mode))]
                last = page[-1].name
            return rest[: limit - len(listed)]

        return listed + await asyncio.to_thread(saved)

    async def search(self, text: str, limit: int = 20, *, session: str | None = None) -> builtins.list[Listed]:
        """Search the names, descriptions and sources of the tools.

        Args:
            text: The words to search for.
            limit: The most tools to return.
            session: The token of the session that asks. Tools outside of its lease are left out before the limit counts.

        Returns:
            Saved tools, the best match first, then tools of the library that are not here, then primitives. A quarter of the places
            is reserved for each of the two.

        Raises:
            Failure: `io_error` if the store can't be read.
        """
        words = [*dict.fromkeys(text.lower().split())][:MAX_WORDS]
        covers = self.access.coverage(session)
        primitives = []
        for primitive in self.lookup.registry.primitives():
            d = primitive.definition
            spoken = f"{d.name} {d.name.replace('_', ' ')} {d.description}".lower()
            if words and all(w in spoken for w in words) and covers(d.name):
                primitives.append(self._primitive(primitive))
        primitives.sort(key=lambda tool: any(w not in tool.name for w in words))
        shared = await asyncio.to_thread(self._in_library, text, limit // 4) if covers(NO_TOOL) else []
        places = max(0, limit - min(len(primitives), limit // 4) - len(shared))

        def saved(any_word: bool) -> builtins.list[Summary]:
            return search_covered(self.lookup.store, text, places, any_word, covers)[:places]

        saved_tools = await asyncio.to_thread(lambda: self._all_listed(saved(False) or saved(True)))
        return [*saved_tools, *shared, *primitives][: max(0, limit)]

    def _in_library(self, text: str, limit: int) -> builtins.list[Listed]:
        """The tools of the library that are not here in the same version."""
        if self.library is None:
            return []
        from albert_tools.engine.other_home import HISTORY

        return [
            Listed(
                v.name,
                LIBRARY,
                first_line(v.definition.description),
                v.definition.signature(),
                LIBRARY,
                v.definition.category,
                v.version,
                state=review.state,
                decided_by=review.by,
                effects=v.definition.effects,
            )
            for v, review in self.library.search(text, limit)
            if all(saved.version != v.version for saved in self.lookup.store.history(v.name, HISTORY)[0])
        ]

    def _primitive(self, primitive: Primitive, mode: Mode | None = None) -> Listed:
        d = primitive.definition
        policy = self.describer.standing(d, primitive.gated, mode)
        return Listed(
            d.name,
            "primitive",
            first_line(d.description),
            d.signature(),
            d.family,
            d.category,
            effects=d.effects,
            policy=policy,
        )

    def _all_listed(self, summaries: Iterable[Summary], mode: Mode | None = None) -> builtins.list[Listed]:
        active = self.context.record.reviews.active()
        return [self._listed(summary, active, mode) for summary in summaries]

    def _listed(self, summary: Summary, active: Mapping[str, str], mode: Mode | None) -> Listed:
        listed = Listed(
            name=summary.name,
            kind="composite",
            description=first_line(summary.description),
            family=SAVED,
            version=summary.version,
            versions=summary.versions,
            created=summary.created,
            problem=summary.problem,
        )
        if summary.problem is not None:
            return listed
        if self.lookup.registry.primitive(summary.name) is not None:
            hidden = f"a primitive of this application has the name {summary.name}, so calls reach that"
            return replace(listed, problem=hidden)
        try:
            version = self.lookup.by_name(summary.name)
        except Failure as failure:
            return replace(listed, problem=failure.message)
        newest = self.lookup.newest(version.calls)
        review = self.context.record.reviews.of(version)
        return replace(
            listed,
            description=first_line(version.definition.description),
            version=version.version,
            signature=version.definition.signature(),
            category=version.definition.category,
            outdated=self.lookup.outdated(version),
            changed=tuple(c.name for c in version.calls if newest.get(c.name, c.version) not in (c.version, None)),
            active=active.get(summary.name, ""),
            state=review.state,
            decided_by=review.by,
            effects=version.definition.effects,
            policy=self.describer.standing(version.definition, mode=mode),
        )


def first_line(text: str) -> str:
    """The first line of a description."""
    return text.strip().split("\n")[0]

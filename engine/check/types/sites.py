"""Which containers a source can change, so that what was found about their content is not certain.

A change of a value of a known type marks its sites as changed. A change of an unknown value can change any value that has
*escaped*: one that was stored where types are not followed. Everything that drops a type reports the sites in it as escaped, so
nothing can be changed unseen.
"""

from __future__ import annotations

from collections.abc import Iterable

from albert_tools.engine.check.types.value_types import Field, Site, Type, container, join, plain, sites_of

#: The classes whose values can change.
CHANGEABLE: dict[str, type] = {"list": list, "dict": dict, "set": set}


class Sites:
    """The sites that are assumed to change, and those that were found to."""

    def __init__(self, changed: frozenset[Site] | None) -> None:
        #: None if all sites are assumed to change.
        self.changed = changed
        self.seen: set[Site] = set()
        self.escaped: set[Site] = set()
        #: The classes of which unknown values are changed.
        self.unknown: set[str] = set()

    def found(self) -> frozenset[Site]:
        """The sites that the source can change."""
        return frozenset(self.seen | {site for site in self.escaped if site[1] in self.unknown})

    def escape(self, *types: Type) -> None:
        """Values of these types are stored where types are not followed."""
        for each in types:
            self.escaped |= sites_of(each)

    def change(self, type_: Type, names: Iterable[str]) -> None:
        """A value of a type is changed, in a way that only these classes have."""
        if type_ is None:
            self.unknown.update(names)
        for each in type_ or ():
            if each.site:
                self.seen.add((each.site, each.name))

    def known(self, site: int, name: str) -> bool:
        """Whether the values of a site keep their content."""
        return self.changed is not None and (site, name) not in self.changed

    def container(
        self, name: str, site: int, items: Type, fields: tuple[Field, ...] | None = None, odd_keys: str = ""
    ) -> Type:
        """The type of a new container with this content."""
        made = plain(name)
        if name not in CHANGEABLE or self.known(site, name):
            made = container(name, site, items, fields, odd_keys)
        self._keep(made, [items, *(f.type for f in fields or ())])
        return made

    def positions(self, types: list[Type], site: int = 0) -> Type:
        """The type of a new tuple of values of these types."""
        return self.container("tuple", site, None, tuple(Field(i, type_) for i, type_ in enumerate(types)))

    def join(self, types: Iterable[Type]) -> Type:
        """The type of a value that has one of the types."""
        all_ = list(types)
        joined = all_[0] if len(all_) == 1 else join(all_)
        self._keep(joined, all_)
        return joined

    def _keep(self, after: Type, before: list[Type]) -> None:
        kept = sites_of(after)
        for each in before:
            if each:
                self.escaped |= sites_of(each) - kept

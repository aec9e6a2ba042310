"""The registry of tools: the application's primitives and the store's saved tools."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from albert_tools.engine.model.definition import ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import look_alike
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.model.reserved_names import RESERVED


def _nothing() -> None:
    """Servers can't be mounted."""


class ToolRegistry:
    """Primitives and saved tools by name; a `Catalog` for the checker.

    Args:
        primitives: The primitives.
        store: The saved tools; None if there are only primitives.
        loaders: Further primitives by name. They come first in lists. Each one is loaded at its first use.

    Raises:
        TypeError, ValueError: See `register`.
    """

    def __init__(
        self,
        primitives: Iterable[Primitive] = (),
        store: ToolStore | None = None,
        loaders: Mapping[str, Callable[[], Primitive]] | None = None,
    ) -> None:
        self._primitives: dict[str, Primitive | Callable[[], Primitive]] = dict(loaders or {})
        self._store = store
        #: Loads the version of a saved tool that its name means, see `Reviews.by_name`. Without reviews it is the newest one.
        self.load: Callable[[str], ToolVersion] | None = store.load if store is not None else None
        #: Names of the primitives that the rules list and that were imported.
        self.imported: tuple[str, ...] = ()
        #: The primitives that are tools of mounted servers, each with what tells the server and the tool from others. Their
        #: descriptions are words of those servers.
        self.mounted: dict[str, str] = {}
        #: Why some of the imported ones are missing, one sentence for each; and the same about the mounted ones.
        self.import_problems: tuple[str, ...] = ()
        self.mount_problems: tuple[str, ...] = ()
        #: Looks whether other servers are mounted now, or other tools of theirs accepted, see `set_mounted`.
        self.refresh: Callable[[], None] = _nothing
        for primitive in primitives:
            self.register(primitive)

    def register(self, primitive: Primitive) -> None:
        """Add a primitive.

        Raises:
            TypeError: The object is not a primitive.
            ValueError: Another primitive or an action has the same name, or one that looks like it.
        """
        if not isinstance(primitive, Primitive):
            raise TypeError(f"{primitive!r} is not a primitive; put @primitive(effects=[…]) over the function")
        if primitive.name in RESERVED:
            raise ValueError(f"{primitive.name!r} is the name of an action; choose another name")
        if self._primitives.get(primitive.name, primitive) is not primitive:
            raise ValueError(f"there is a primitive named {primitive.name!r} already")
        like = look_alike(primitive.name, (*self._primitives, *RESERVED))
        if like is not None:
            raise ValueError(f"{primitive.name!r} looks like {like!r}, which is taken")
        self._primitives[primitive.name] = primitive

    def set_mounted(
        self, loaders: Mapping[str, Callable[[], Primitive]], marks: Mapping[str, str], problems: Iterable[str]
    ) -> None:
        """Replace the primitives of mounted servers. Each is loaded at its first use. One whose name is taken is left out.

        `marks` has what tells the server and the tool of each from others.
        """
        own = {name: entry for name, entry in self._primitives.items() if name not in self.mounted}
        taken = [name for name in loaders if name in own or name in RESERVED]
        self.mounted = {name: marks[name] for name in loaders if name not in taken}
        # Other threads read the registry, so it changes in one step.
        self._primitives = own | {name: loaders[name] for name in self.mounted}
        left_out = (
            f"the mounted tool {name} is left out: there is a primitive named {name!r} already" for name in taken
        )
        self.mount_problems = (*problems, *left_out)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why primitives are missing or can't be called, one sentence for each."""
        return (*self.import_problems, *self.mount_problems)

    def primitive(self, name: str) -> Primitive | None:
        """The primitive of that name, or None."""
        if "." in name:
            self.refresh()
        entry = self._primitives.get(name)
        if entry is None or isinstance(entry, Primitive):
            return entry
        # Two threads may both load the primitive. This is harmless: they get the same object.
        loaded = self._primitives[name] = entry()
        return loaded

    def primitives(self) -> list[Primitive]:
        """All primitives, in the order of registration; loads them."""
        self.refresh()
        return [primitive for name in list(self._primitives) if (primitive := self.primitive(name)) is not None]

    def get(self, name: str) -> ToolDefinition | None:
        """The definition that a call of `name` currently uses; None for an unknown or damaged tool. Primitives take precedence."""
        primitive = self.primitive(name)
        if primitive is not None:
            return primitive.definition
        if self._store is None or self.load is None or not self._store.has(name):
            return None
        try:
            return self.load(name).definition
        except Failure:
            return None

    @property
    def primitive_names(self) -> Collection[str]:
        """The names of the primitives; a view, which doesn't load them."""
        return self._primitives.keys()

    def names(self) -> list[str]:
        """Every name that can be called: primitives in the order of registration, then saved tools by name."""
        names = list(self._primitives)
        if self._store is not None:
            names += [name for name in self._store.names() if name not in self._primitives]
        return names

"""Abstract values, and the heap of containers.

An abstract value describes all values that an expression can have: its alternatives as a scalar, the places where its containers
are made (*sites*), and its origins. `data` are the origins of its content; `control` those that decide which value it is. Sites are
never told apart by time, so what a container holds is the join of all that was ever put in. That is what makes aliases harmless.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.tables import Rounds, Table
from albert_tools.engine.analysis.templates import Alternatives
from albert_tools.engine.model.manifest import Comparison, Origin

Origins: TypeAlias = frozenset[Origin]
#: Where containers are made: the context, the node, and what is made there.
Site: TypeAlias = Hashable

NO_ORIGINS: Origins = frozenset()
#: Precede an origin of which only the number of items or characters decides, a constant that a value was made with and does not
#: show, a constant that a decision has compared, and the text of an expression that has chosen items.
_SIZE, _MADE, _TESTED, _PICKED = "size:", "made:", "test:", "pick:"
#: Numbers that say nothing.
_PLAIN_NUMBERS = (0, 1, -1)
_NO_SITES: frozenset[Site] = frozenset()


class AbstractValue(NamedTuple):
    """What is known about a value."""

    alternatives: Alternatives = templates.NOTHING
    data: Origins = NO_ORIGINS
    control: Origins = NO_ORIGINS
    sites: frozenset[Site] = _NO_SITES

    def __or__(self, other: AbstractValue) -> AbstractValue:
        """One of the two."""
        if other is NEVER or self == other:
            return self
        if self is NEVER:
            return other
        alternatives = templates.union(self.alternatives, other.alternatives)
        return AbstractValue(
            alternatives,
            self.data | other.data | lost(alternatives, self.alternatives, other.alternatives),
            self.control | other.control,
            self.sites | other.sites,
        )

    def under(self, control: Origins) -> AbstractValue:
        """The value, if these origins decide about it, too."""
        return self if control <= self.control else self._replace(control=self.control | control)

    def widened(self) -> AbstractValue:
        """The value, with few alternatives."""
        alternatives = templates.widened(self.alternatives)
        return self._replace(alternatives=alternatives, data=self.data | lost(alternatives, self.alternatives))

    def constants(self) -> list[object] | None:
        """Its possible Python values, if they are all known. It may be empty."""
        if self.sites:
            return None
        constants = []
        for alternative in self.alternatives:
            scalar = templates.scalar_of(alternative)
            if scalar is None:
                return None
            constants.append(scalar[0])
        return constants

    @property
    def origins(self) -> Origins:
        """Its own origins, without those of what it contains."""
        return self.data | self.control


#: The value of what never happens.
NEVER = AbstractValue()
A_NUMBER = AbstractValue(templates.SOME_NUMBER)
A_BOOLEAN = AbstractValue(templates.TRUE_OR_FALSE)
NONE = AbstractValue(templates.NONE)
EMPTY_TEXT = AbstractValue(frozenset({()}))


def constant(value: object) -> AbstractValue:
    """The abstract value of one constant."""
    return AbstractValue(templates.constant(value))


def lost(kept: Alternatives, *before: Alternatives) -> Origins:
    """The marks of the constants in alternatives that others, which have taken their place, do not show."""
    if all(each is kept or each <= kept for each in before):
        return NO_ORIGINS
    shown = "\0".join(str(c) for c in templates.constants_in(kept))
    gone = (c for each in before for c in templates.constants_in(each - kept))
    return made_with(c for c in gone if str(c) not in shown)


def join(values: Iterable[AbstractValue]) -> AbstractValue:
    """One of several values."""
    joined = NEVER
    for value in values:
        joined = joined | value
    return joined


def sizes_of(origins: Iterable[Origin]) -> Origins:
    """These origins, marked as those of which only the number of items decides."""
    return frozenset(o if o.startswith((_SIZE, _MADE, _TESTED, _PICKED)) else f"{_SIZE}{o}" for o in origins)


def compared(origins: Origins, by: str = "", directly: Origins = NO_ORIGINS) -> Origins:
    """These origins, with the constants among them marked as those that a decision has compared; `directly` those that it has
    compared by the operator, function or method `by`."""
    return frozenset(
        _comparison(o[len(_MADE) :], by if o in directly else "") if o.startswith(_MADE) else o for o in origins
    )


def comparisons(tests: Iterable[Comparison]) -> Origins:
    """The marks of comparisons."""
    return frozenset(_comparison(json.dumps(c.constant), c.by) for c in tests)


def _comparison(constant: str, by: str) -> Origin:
    """The mark of a comparison with a constant, which is given as JSON."""
    return f"{_TESTED}[{constant}, {json.dumps(by)}]"


def picks(texts: Iterable[str]) -> Origins:
    """The marks of expressions that choose items, or their order."""
    return frozenset(f"{_PICKED}{text}" for text in texts)


def without_constants(origins: Origins) -> Origins:
    """These origins, without the constants that a value was made with."""
    return frozenset(o for o in origins if not o.startswith(_MADE))


def made_with(constants: Iterable[str | float | None]) -> Origins:
    """The marks of constants that a value is made with."""
    return frozenset(
        f"{_MADE}{json.dumps(c)}"
        for c in constants
        if c not in ("", None) and not isinstance(c, bool) and (isinstance(c, str) or c not in _PLAIN_NUMBERS)
    )


class Marks(NamedTuple):
    """What the marks of origins say: all origins without marks, those of which only the number of items decides, the constants, and
    the expressions that choose items."""

    origins: Origins
    counted: Origins
    made: frozenset[str | int | float]
    tested: frozenset[Comparison]
    picked: frozenset[str]


@lru_cache(maxsize=4096)
def marks_of(origins: Origins) -> Marks:
    """What the marks of origins say."""
    by_kind: dict[str, set[str]] = {_SIZE: set(), _MADE: set(), _TESTED: set(), _PICKED: set()}
    plain: set[str] = set()
    for origin in origins:
        marked = by_kind.get(origin[: len(_SIZE)])
        if marked is None:
            plain.add(origin)
        else:
            marked.add(origin[len(_SIZE) :])
    made = frozenset(map(json.loads, by_kind[_MADE]))
    tests = frozenset(Comparison(*json.loads(mark)) for mark in by_kind[_TESTED])
    return Marks(
        frozenset(plain | by_kind[_SIZE]), frozenset(by_kind[_SIZE] - plain), made, tests, frozenset(by_kind[_PICKED])
    )


@lru_cache(maxsize=4096)
def marks_in(alternatives: Alternatives) -> Origins:
    """The marks of the constants in alternatives, as those that a value is made with."""
    return made_with(templates.constants_in(alternatives))


class Key(NamedTuple):
    """A key of a container that is not a constant."""

    name: str


#: All other items or values; the keys of a dictionary that are not constants.
REST, KEYS = Key("rest"), Key("keys")
#: The texts that were written to a text buffer, one after the other.
WRITTEN = Key("written")
#: The most keys that a container tells apart.
MAX_KEYS = 40


class Container:
    """What a site holds. `kind` is ``list`` (and tuples, sets, iterators), ``dict``, or ``open`` for any JSON value.

    `sizes` are expressions for its number of items when it is made; `growth` says where it grows. See `call_bounds`.
    """

    __slots__ = ("blurred", "default", "fields", "foreign", "growth", "kind", "outside", "sizes")

    def __init__(self, kind: str, outside: bool) -> None:
        self.kind = kind
        #: Whether it comes from a parameter or an output, so that its shape carries data.
        self.outside = outside
        #: Whether a server has chosen its keys. They are no constants of the program, so all of them are in `KEYS`.
        self.foreign = False
        #: Whether it has too many keys to tell them apart.
        self.blurred = False
        #: The value that reading a missing key adds: a `defaultdict`.
        self.default: AbstractValue | None = None
        self.fields: dict[object, AbstractValue] = {}
        self.sizes: set[tuple[object, ...]] = set()
        self.growth: set[tuple[object, ...]] = set()

    def entries(self) -> list[tuple[object, AbstractValue]]:
        """What a copy holds, with the keys. Those that somebody else has chosen are not told apart in it."""
        return [(REST if self.foreign and not isinstance(k, Key) else k, item) for k, item in self.fields.items()]


#: Stands for a container that is not made yet.
NOWHERE = Container("list", False)


class Heap:
    """The containers of a program."""

    def __init__(self, rounds: Rounds) -> None:
        self.at: Table[Site, Container] = rounds.table(NOWHERE)
        #: Whether a container has one item for each one of a parameter or an output, whatever their content is.
        self._counted: Table[Site, bool | None] = rounds.table(None)
        #: How many containers were followed so far.
        self.followed = 0
        #: Whether so many rounds have passed that what still grows is widened.
        self.is_late = False

    def make(self, site: Site, kind: str = "list", *, outside: bool = False) -> AbstractValue:
        """The value of a container that is made at a site."""
        if self.at.peek(site) is NOWHERE:
            self.at[site] = Container(kind, outside)
        return AbstractValue(sites=frozenset({site}))

    def kind(self, site: Site) -> str:
        """The kind of a container, which never changes."""
        return self.at.peek(site).kind

    def put(self, site: Site, key: object, value: AbstractValue) -> None:
        """Add what a container can hold under a key."""
        container = self.at.peek(site)
        fields = container.fields
        if not isinstance(key, Key) and (container.blurred or (key not in fields and len(fields) > MAX_KEYS)):
            self._blur(site)
            self._put_key(site, key)
            key = REST
        old = fields.get(key)
        if old is not None and isinstance(key, int | float):
            # The first of 1, 1.0 and True stays the key.
            if not any(k == key and type(k) is type(key) for k in fields):
                self._put_key(site, key)
        new = value if old is None else old | value
        if old is None or new != old:
            fields[key] = new.widened() if self.is_late else new
            self.at.grown(site)

    def _blur(self, site: Site) -> None:
        """Forget which value is under which key."""
        container = self.at.peek(site)
        if container.blurred:
            return
        container.blurred = True
        for key in [k for k in container.fields if not isinstance(k, Key)]:
            value = container.fields.pop(key)
            self.put(site, REST, value)
            self._put_key(site, key)

    def _put_key(self, site: Site, key: object) -> None:
        container = self.at.peek(site)
        if container.kind != "list" and not container.foreign:
            self.put(site, KEYS, constant(key))

    def set_default(self, site: Site, value: AbstractValue) -> None:
        """Make a dictionary one that adds missing keys."""
        container = self.at.peek(site)
        new = value if container.default is None else container.default | value
        if new != container.default:
            container.default = new
            self.at.grown(site)

    def reorder(self, site: Site) -> None:
        """Items can change their places: each of them can now be anywhere."""
        container = self.at[site]
        if container.kind == "list" and any(not isinstance(k, Key) for k in container.fields):
            self.put(site, REST, join(v for k, v in container.fields.items() if not isinstance(k, Key)))

    def reach(self, value: AbstractValue) -> set[Site]:
        """The sites of a value, and of all that it contains."""
        reached: set[Site] = set()
        pending = [*value.sites]
        while pending:
            site = pending.pop()
            if site not in reached:
                reached.add(site)
                for inner in self.at[site].fields.values():
                    pending += inner.sites
                    self.followed += 1 + len(inner.sites)
        return reached

    def deep(self, value: AbstractValue) -> tuple[Origins, Origins]:
        """The data and the control of a value and of all that it contains. The constants in it are data, marked."""
        marks = marks_in(value.alternatives)
        if not value.sites:
            return value.data | marks, value.control
        data, control, keys = {*value.data, *marks}, set(value.control), set[str]()
        for site in self.reach(value):
            for key, inner in self.at[site].fields.items():
                data |= inner.data
                control |= inner.control
                data |= marks_in(inner.alternatives)
                if isinstance(key, str):
                    keys.add(key)
        return made_with(keys).union(data), frozenset(control)

    def sources(self, value: AbstractValue) -> Origins:
        """The data of a value and of all that it contains, without constants."""
        return without_constants(self.deep(value)[0])

    def condition(self, *values: AbstractValue) -> Origins:
        """All origins that a decision about values depends on."""
        origins = NO_ORIGINS
        for value in values:
            data, control = self.deep(value)
            origins |= without_constants(data) | control if data else control
        return origins

    def shape(self, value: AbstractValue) -> Origins:
        """The origins that decide how many items a value has, and in which order."""
        origins = set(value.data | value.control)
        for site in value.sites:
            container = self.at[site]
            for inner in container.fields.values():
                origins |= inner.control
                if container.outside:
                    origins |= inner.data
        return frozenset(origins)

    def count(self, site: Site, counted: bool) -> None:
        """Note whether a container has one item for each one of a parameter or an output. It stays one that has not."""
        old = self._counted.peek(site)
        new = old is not False and counted
        if new is not old:
            self._counted[site] = new

    def is_counted(self, value: AbstractValue) -> bool:
        """Whether a value has one item or character for each one of a parameter or an output."""
        has_given = all(map(templates.is_given, value.alternatives))
        return has_given and all(self._counted[site] for site in value.sites)

    def size(self, value: AbstractValue) -> Origins:
        """As `shape`. Origins of which only the number of items decides are marked."""
        if not self.is_counted(value):
            return self.shape(value)
        origins = set(sizes_of(value.data) | value.control)
        for container in (self.at[site] for site in value.sites):
            for inner in container.fields.values():
                origins |= inner.control
                if container.outside:
                    origins |= sizes_of(inner.data)
        return frozenset(origins)

    def items(self, value: AbstractValue) -> AbstractValue:
        """What an iteration over a value gives: items, keys, characters."""
        item = NEVER
        for site in value.sites:
            container = self.at[site]
            for key, inner in container.fields.items():
                if container.kind == "list":
                    item = item | inner
                elif container.kind == "open" or key is KEYS:
                    item = item | inner
                elif not isinstance(key, Key) and not container.foreign:
                    item = item | constant(key).under(inner.control)
        if value.alternatives:
            item = item | AbstractValue(templates.pieces(_texts_only(value.alternatives)))
        return AbstractValue(item.alternatives, item.data | value.data, item.control | value.control, item.sites)

    def values(self, value: AbstractValue) -> AbstractValue:
        """The values of a dictionary, or the items of a list, whatever their keys."""
        item = join(
            inner
            for site in value.sites
            for key, inner in self.at[site].fields.items()
            if key is not KEYS or self.kind(site) == "open"
        )
        return AbstractValue(item.alternatives, item.data | value.data, item.control | value.control, item.sites)

    def item(self, value: AbstractValue, key: AbstractValue) -> AbstractValue:
        """``value[key]``."""
        constants = key.constants()
        item = NEVER
        for site in value.sites:
            fields = self.at[site].fields
            if constants is None or self.kind(site) == "open" or any(isinstance(k, int) and k < 0 for k in constants):
                item = item | self.values(AbstractValue(sites=frozenset({site})))
            else:
                item = item | fields.get(REST, NEVER) | join(fields.get(k, NEVER) for k in constants)
        if value.alternatives:
            item = item | AbstractValue(templates.pieces(_texts_only(value.alternatives)))
        # A key that was chosen decides which item it is, and with many items it can say anything.
        data, decided = (key.data, key.origins) if constants is not None else (self.deep(key)[0], self.condition(key))
        return AbstractValue(
            item.alternatives, item.data | value.data | data, item.control | value.control | decided, item.sites
        )


def _texts_only(alternatives: Alternatives) -> Alternatives:
    return frozenset(t for t in alternatives if not isinstance(t, templates.Constant))

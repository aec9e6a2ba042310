"""The manifest of a saved tool: what its calls can do, computed from its source before it runs.

A manifest lists every call of a primitive that a run can make, through all saved tools, with what is known about its arguments: a
`Value` has *alternatives*, and a *template* is an alternative made of constant texts and *holes*. What happens at run time lies
inside the manifest: the pipeline holds an approved version to it, and tests hold the analysis to it.

These are frozen structs of msgspec, and also the stored JSON form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

#: The number of the present analysis. Raise it with each change after which a source can have another manifest. Then stored
#: versions are analysed again.
ANALYSIS = 10

#: Where a value comes from: ``parameter:NAME``, or ``call:N`` for the output of `calls[N]` of the same manifest.
Origin: TypeAlias = str

HoleKind = Literal[
    "parameter", "output", "part", "quoted", "path", "number", "word", "below", "inside", "name", "any",
    "json", "query", "row", "base64", "percent", "joined", "bytes",
]  # fmt: skip
#: The kinds of holes that are a value in an encoding.
ENCODED = frozenset({"json", "query", "row", "base64", "percent", "joined"})


class Hole(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An unknown part of a text.

    Attributes:
        kind: ``parameter``: the value of a parameter, or of a place in it. ``output``: a text in the output of a call. ``part``: a
            piece of `of`, for example one line of it. ``quoted``: `of` as one word for a shell. ``path``: `of` as a path in normal
            form: ``a/b`` for ``./a//b``. ``number``: digits, sign, point.
            ``word``: letters, digits, ``-`` and ``_`` only. ``below``: nothing, or ``/`` and any path that does not lead up.
            ``inside``: a relative path in normal form that does not lead up. ``name``: the last name of a path, without a slash.
            ``any``: any text.
            The others are `value` in an encoding: ``json``; ``query``, as in a URL; ``row``, of CSV; ``base64`` and ``percent``
            of a text; ``joined``: any number of such texts, with `of` between them. ``bytes``: not text, never in a manifest.
        name: The parameter.
        call: The index of the call.
        path: The place in the parameter or the output: ``.rows[*].name``. ``*`` is any key or item; ``~`` at the end means
            that it can be at any place below.
        of: The template of which this is a piece or another form, or which separates.
        data: For ``any``: where the text may come from, if that is known.
        value: What is encoded.
    """

    kind: HoleKind
    name: str = ""
    call: int = -1
    path: str = ""
    of: tuple[Part, ...] = ()
    data: tuple[Origin, ...] = ()
    value: Value | None = None


Part: TypeAlias = str | Hole
#: A template, or a JSON constant that is not a text. The empty template is the empty text.
Alternative: TypeAlias = tuple[Part, ...] | int | float | bool | None


class Symbol(Struct, frozen=True, order=True, omit_defaults=True, forbid_unknown_fields=True):
    """An unknown number in a bound: the ``length`` of a text, list or object, or the ``value`` of an integer; at least 0."""

    kind: Literal["length", "value"]
    origin: Origin
    path: str = ""


class Term(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One term of a polynomial: a number times the product of symbols."""

    times: int
    of: tuple[Symbol, ...] = ()


#: A sum of terms: at most this often. None if there is no bound; the empty sum is 0.
Bound: TypeAlias = tuple[Term, ...] | None


class Value(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is known about a value: it is one of `alternatives`, or a container.

    Attributes:
        alternatives: The texts, numbers, booleans and null that it can be.
        data: The origins of its content, and of all that it contains.
        control: The origins that decide which value it is.
        items: The items, if it can be a list: one value that describes each of them.
        places: The items by place, if it is a list of exactly these.
        fields: The values under known keys, if it can be an object.
        rest: The values under other keys.
        open: Whether it can be any JSON value besides.
        made: Constants that the value was made with, and that it does not show. Only of a whole argument or result.
    """

    alternatives: tuple[Alternative, ...] = ()
    data: tuple[Origin, ...] = ()
    control: tuple[Origin, ...] = ()
    items: Value | None = None
    places: tuple[Value, ...] | None = None
    fields: dict[str, Value] | None = None
    rest: Value | None = None
    open: bool = False
    #: The most items that a list or object has.
    size: Bound = None
    made: tuple[str | int | float, ...] = ()

    def __hash__(self) -> int:
        return hash((self.alternatives, self.items, self.places, self.rest, self.open))


#: When a call is made: the number of a step of the tool, then of a step in that step, and so on. Of two calls whose steps differ at
#: a place that both have, the one with the lower number there is certainly made first, each time. Of others, nothing is known.
Step: TypeAlias = tuple[int, ...]

#: Among the arguments of a planned call: every argument, if it is not known which ones are given. Those in `uses` are listed, too.
ANY_NAME = "*"


class Comparison(Struct, frozen=True, array_like=True):
    """A comparison with a constant. `by` is the operator, function or method, such as ``<`` or ``endswith``; empty if the constant
    was made into something else before."""

    constant: str | int | float
    by: str = ""


class PlannedCall(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A call of a primitive that a run can make.

    Attributes:
        tool: The primitive.
        effects: The primitive's effects.
        line: The line of the source. For a call by a saved tool: the line that calls the saved tool.
        via: The saved tools between the source and this call, outermost first.
        arguments: What is known about each argument that can be given, or about all of them under `ANY_NAME`. An argument that is
            not given has its default.
        uses: What the primitive does with its arguments, by parameter: ``read``, ``write`` or ``delete`` for paths; ``url``; the
            kinds of `primitive.JUDGED`; ``destination`` and ``payload`` for others. The rest is neutral.
        source: The kind of source that its output is: ``file``, ``web``, ``mail``, ``clock``, ``command``, ``model``, ``server``,
            ``random``; empty if the output says nothing about the outside.
        control: The origins that decide whether and how often the call is made.
        bound: How often it is made at most, in one run of the tool.
        step: When it is made.
        counted: Those of `control` of which only the number of items or characters decides: the call is made once for each one.
        compared: The comparisons that decide whether the call is made, or what it is given.
        picked: The expressions that choose items of lists, or their order, for the same: ``sorted(names)``, ``names[3:]``.
        has_times: Whether the primitive declares a ``time`` in its output.
    """

    tool: str
    effects: tuple[str, ...] = ()
    line: int = 0
    via: tuple[str, ...] = ()
    arguments: dict[str, Value] = {}
    uses: dict[str, str] = {}
    source: str = ""
    control: tuple[Origin, ...] = ()
    bound: Bound = None
    step: Step = ()
    counted: tuple[Origin, ...] = ()
    compared: tuple[Comparison, ...] = ()
    picked: tuple[str, ...] = ()
    has_times: bool = False

    def used(self, *uses: str) -> list[Value]:
        """The arguments that are used so."""
        return [self.arguments[name] for name, use in self.uses.items() if use in uses and name in self.arguments]


class Manifest(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """All that a run of a saved tool can do.

    Attributes:
        effects: The effects of all calls.
        calls: The calls, in the order of the source.
        result: The result.
        printed: The origins of what it prints.
        raised: The origins of the messages of its errors.
        analysis: The number of the analysis that has made it; 0 if it is not known. An approval does not cover it.
        given_up: The line at which the analysis took too long, so that everything is possible; 0 if it has ended.
    """

    effects: tuple[str, ...] = ()
    calls: tuple[PlannedCall, ...] = ()
    result: Value = Value(open=True)
    printed: tuple[Origin, ...] = ()
    raised: tuple[Origin, ...] = ()
    analysis: int = 0
    given_up: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The stored JSON form. Fields with default values are left out."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    @classmethod
    def from_dict(cls, document: Any) -> Manifest:
        """Read the stored form. Raises ValueError if it has another form."""
        return msgspec.convert(document, cls)


#: The fact that a place in an output shows when something was done.
TIME = "time"


class Declared(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a primitive declares about its data, for the analysis of its callers.

    Attributes:
        uses: As in `PlannedCall`.
        outputs: What is true of a place in the output, by path (``.paths[*]``): ``same as P`` and ``below P`` for a path relative
            to the argument of the parameter P, ``word``, ``number``, ``time``, ``at most P items`` or ``at most 100 items``.
        little: The places of the output that carry little: counts, flags, sizes.
        source: As in `PlannedCall`.
    """

    uses: dict[str, str] = {}
    outputs: dict[str, str] = {}
    little: tuple[str, ...] = ()
    source: str = ""

    @property
    def has_times(self) -> bool:
        """As in `PlannedCall`."""
        return TIME in self.outputs.values()


def with_paths(template: tuple[Part, ...]) -> tuple[Part, ...]:
    """A template with the paths in it as they are before they get their normal form."""
    expanded: list[Part] = []
    for part in template:
        expanded += with_paths(part.of) if isinstance(part, Hole) and part.kind == "path" else [part]
    return tuple(expanded)


def constants_shown(value: Value) -> Iterator[str | float | None]:
    """The constants that a value shows: its keys, its numbers, and the constant parts of its texts, also inside of holes."""
    for each in values_in(value):
        yield from each.fields or ()
        pending: list[Alternative] = [*each.alternatives]
        while pending:
            one = pending.pop()
            if not isinstance(one, tuple):
                yield one
                continue
            yield from (part for part in one if isinstance(part, str))
            for hole in (part for part in one if isinstance(part, Hole)):
                pending.append(hole.of)
                if hole.value is not None:
                    yield from constants_shown(hole.value)


def values_in(value: Value) -> Iterator[Value]:
    """A value, and all values inside it."""
    yield value
    inner = [value.items, value.rest, *(value.places or ()), *(value.fields or {}).values()]
    for one in inner:
        if one is not None:
            yield from values_in(one)


def alternatives_in(value: Value) -> Iterator[tuple[Alternative, tuple[Origin, ...]]]:
    """All that a value and the values inside it can be, with the origins. Of an open value it is any text, too."""
    for each in values_in(value):
        yield from ((one, each.data) for one in each.alternatives)
        if each.open:
            yield (Hole("any"),), each.data


def data_of(*values: Value) -> tuple[Origin, ...]:
    """The origins of the content of values, each once."""
    return tuple(dict.fromkeys(o for value in values for each in values_in(value) for o in each.data))


def call_of(origin: Origin) -> int | None:
    """The index of the call whose output an origin is; None for a parameter."""
    kind, _, index = origin.partition(":")
    return int(index) if kind == "call" else None

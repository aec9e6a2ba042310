"""The abstract value of a parameter or an output, from its JSON Schema.

Every text is a hole that names its place. What a schema leaves open is a container that contains itself, so that everything that is
read from it has the same origins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import (
    A_BOOLEAN,
    A_NUMBER,
    KEYS,
    NONE,
    REST,
    AbstractValue,
    Origins,
    Site,
    constant,
    join,
)
from albert_tools.engine.model.manifest import Hole, Symbol

#: The deepest place whose path is told apart, and the most places of one value. A schema can refer to itself many times.
_MAX_DEPTH, _MAX_PLACES = 8, 200

Schema = Mapping[str, Any]


class Source(NamedTuple):
    """Where a value comes from. `hole` makes the hole of a place; `facts` are alternatives that are known of a place."""

    site: Site
    hole: Callable[[str], Hole]
    data: Origins
    facts: Mapping[str, templates.Alternatives]
    #: The sizes that are known of lists, by place; see `call_bounds`.
    sizes: Mapping[str, tuple[object, ...]]
    #: Whether a number is a hole, too: the value of a parameter is known when the tool is called.
    exact_numbers: bool
    #: Whether the texts and the keys that the schema lists are constants. A server has written its schema itself.
    lists_constants: bool = True


def from_schema(analysis: Analysis, schema: Schema, source: Source) -> AbstractValue:
    """The value that a schema allows."""
    return _Places(analysis, source, schema.get("$defs", {})).value(schema, "", 0)


class _Places:
    """Makes the value of each place. After many places, the rest is open."""

    def __init__(self, analysis: Analysis, source: Source, definitions: Schema) -> None:
        self._analysis = analysis
        self._source = source
        self._definitions = definitions
        self._left = _MAX_PLACES

    def value(self, schema: Schema, path: str, depth: int) -> AbstractValue:
        data = self._source.data
        fact = self._source.facts.get(path)
        if fact is not None:
            # The fact says nothing about null.
            is_null = "null" in _kinds(schema) or any("null" in _kinds(s) for s in schema.get("anyOf", ()))
            return AbstractValue(fact, data) | NONE if is_null else AbstractValue(fact, data)
        self._left -= 1
        if "$ref" in schema:
            schema = self._definitions.get(str(schema["$ref"]).rpartition("/")[2], {})
        if depth > _MAX_DEPTH or self._left < 0:
            return self._open(path)
        if "anyOf" in schema:
            return join(self.value(s, path, depth + 1) for s in schema["anyOf"])
        is_scalar = not {"array", "object"} & set(_kinds(schema))
        if self._source.exact_numbers and not path and is_scalar and schema:
            # The value of a whole parameter is known when the tool is called, even if it is a number.
            return AbstractValue(frozenset({(self._source.hole(path),)}), data)
        if ("enum" in schema or "const" in schema) and self._source.lists_constants:
            values = schema.get("enum", [schema.get("const")])
            if any(isinstance(v, list | dict) for v in values):
                return self._open(path)
            self._analysis.listed.update(v for v in values if isinstance(v, str))
            return join(map(constant, values))._replace(data=data)
        kinds = _kinds(schema)
        return (
            join(self._of_kind(k, schema, path, depth) for k in kinds)._replace(data=data)
            if kinds
            else self._open(path)
        )

    def _of_kind(self, kind: str, schema: Schema, path: str, depth: int) -> AbstractValue:
        match kind:
            case "string":
                return AbstractValue(frozenset({(self._source.hole(path),)}))
            case "integer" | "number":
                return A_NUMBER
            case "boolean":
                return A_BOOLEAN
            case "null":
                return NONE
            case "array" if isinstance(schema.get("items"), Mapping) or "prefixItems" in schema:
                made, site = self._container(path, "list")
                for i, place in enumerate(schema.get("prefixItems", ())):
                    self._analysis.heap.put(site, i, self.value(place, f"{path}[{i}]", depth + 1))
                # Without `maxItems`, any other items can follow.
                others = schema.get("items", {})
                if schema.get("maxItems", math.inf) > len(schema.get("prefixItems", ())) and others is not False:
                    inner = others if isinstance(others, Mapping) else {}
                    self._analysis.heap.put(site, REST, self.value(inner, f"{path}[*]", depth + 1))
                return made
            case "object":
                named, more = schema.get("properties", {}), schema.get("additionalProperties", True)
                if (not named and not isinstance(more, Mapping)) or "patternProperties" in schema:
                    return self._open(path)
                made, site = self._container(path, "dict")
                self._analysis.heap.at.peek(site).foreign = not self._source.lists_constants
                for name, inner in named.items():
                    self._analysis.heap.put(site, name, self.value(inner, f"{path}.{name}", depth + 1))
                if more is not False:
                    inner = more if isinstance(more, Mapping) else {}
                    self._analysis.heap.put(site, REST, self.value(inner, f"{path}.*", depth + 1))
                if more is not False or not self._source.lists_constants:
                    key = AbstractValue(frozenset({(self._source.hole(f"{path}~"),)}), self._source.data)
                    self._analysis.heap.put(site, KEYS, key)
                return made
        return self._open(path)

    def _container(self, path: str, kind: str) -> tuple[AbstractValue, Site]:
        site = (self._source.site, path, kind)
        made = self._analysis.heap.make(site, kind, outside=True)
        self._size(site, path)
        return made, site

    def _open(self, path: str) -> AbstractValue:
        """Any JSON value."""
        site = (self._source.site, path, "open")
        made = self._analysis.heap.make(site, "open", outside=True)
        self._size(site, f"{path}~")
        hole = self._source.hole(f"{path}~")
        whole = AbstractValue(frozenset({(hole,)}), self._source.data, sites=made.sites)
        self._analysis.heap.put(site, REST, whole)
        return whole

    def _size(self, site: Site, path: str) -> None:
        self._analysis.heap.count(site, True)
        (origin,) = self._source.data
        self._analysis.sized(site, *self._source.sizes.get(path, ("symbol", Symbol("length", origin, path))))


def _kinds(schema: Schema) -> list[str]:
    kinds = schema.get("type", ())
    return [kinds] if isinstance(kinds, str) else list(kinds)

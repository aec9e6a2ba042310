"""What a tool looks like from outside: its name, its parameters, its result, its effects.

Plain frozen dataclasses, so that running a saved tool loads nothing heavy; where a definition comes from
outside (the structured form of `define`, configuration), pydantic reads it through these same classes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

Json = Any
Schema = dict[str, Any]

#: What a call can do to the world. `read` alone lets `parallel` overlap; everything else is one at a time.
Effect = Literal["read", "write", "delete", "execute", "network", "secret"]
EFFECTS: tuple[str, ...] = get_args(Effect)

#: What a tool is to policy: the gravest of its effects, unless it says something else.
Category = Literal["read_only", "system_write", "system_delete", "execute", "network", "inference", "artifact"]
CATEGORIES: tuple[str, ...] = get_args(Category)

#: The states that a whole installation can be in; what a tool may do depends on it.
Mode = Literal["NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"]
MODES: tuple[Mode, ...] = get_args(Mode)

#: How much a person should think before saying yes.
Risk = Literal["low", "medium", "high"]

Kind = Literal["primitive", "composite"]

_CATEGORY_OF_EFFECT: tuple[tuple[str, Category], ...] = (
    ("execute", "execute"),
    ("delete", "system_delete"),
    ("network", "network"),
    ("secret", "network"),
    ("write", "system_write"),
)
_RISKS: dict[str, Risk] = {"execute": "high", "system_delete": "high", "network": "medium", "system_write": "medium"}

#: Seconds a call may take when nobody says otherwise.
DEFAULT_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """One parameter. `schema` is its JSON Schema (2020-12); `default` counts only when not `required`."""

    name: str
    schema: Schema
    description: str = ""
    required: bool = True
    default: Json = None


class Invariant(NamedTuple):
    """What holds between parameters. `rule` is ``excludes``: at the most one of `names` is given, neither false nor null. Where one
    is `needed`, the primitive itself refuses a call without any.
    """

    rule: Literal["excludes"]
    names: tuple[str, ...]
    needed: bool = False


def excludes(*names: str) -> Invariant:
    """The invariant that at the most one of these parameters is given: ``excludes("create_only", "append")``."""
    return Invariant("excludes", names)


def one_of(*names: str) -> Invariant:
    """As `excludes`, of parameters of which one is needed; that one is given, the primitive sees to: ``one_of("pid", "name")``."""
    return Invariant("excludes", names, needed=True)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as callers see it, primitive or composite.

    `result` is a JSON Schema; `depth` counts nested saved tools (a primitive is 0, a composite 1 + its deepest
    callee); `timeout` is in seconds; `version` is the content hash of a composite or the schema hash of a
    primitive. `category` and `risk` follow from the effects where they aren't given. `allowed_modes` bounds what policy can
    allow; `approval` means that a person is asked whatever policy says. `rate_limit` is in calls per hour, None for as many as
    policy allows; `sandbox` says that it is to run confined.
    """

    name: str
    description: str
    parameters: tuple[ToolParameter, ...]
    result: Schema
    effects: tuple[str, ...]
    kind: Kind = "primitive"
    depth: int = 0
    timeout: float = DEFAULT_TIMEOUT
    version: str = ""
    family: str = ""
    idempotent: bool = False
    category: Category | Literal[""] = ""
    risk: Risk | Literal[""] = ""
    allowed_modes: tuple[Mode, ...] = MODES
    approval: bool = False
    rate_limit: int | None = None
    sandbox: bool = False
    invariants: tuple[Invariant, ...] = ()
    _schema: Schema | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.category:
            object.__setattr__(self, "category", category_of(self.effects))
        if not self.risk:
            object.__setattr__(self, "risk", _RISKS.get(self.category, "low"))

    def parameter(self, name: str) -> ToolParameter | None:
        """The parameter of that name, or None."""
        return next((p for p in self.parameters if p.name == name), None)

    @property
    def by_hash(self) -> tuple[str, ...]:
        """The parameters of which records have only the hash: their schema says ``"x-recorded": "hash"``."""
        return tuple(p.name for p in self.parameters if p.schema.get("x-recorded") == "hash")

    def parameters_schema(self) -> Schema:
        """All parameters as one JSON Schema object, closed to other names."""
        properties = {}
        for p in self.parameters:
            entry = dict(p.schema)
            if p.description:
                entry["description"] = p.description
            if not p.required:
                entry["default"] = p.default
            properties[p.name] = entry
        whole = {
            "type": "object",
            "properties": properties,
            "required": [p.name for p in self.parameters if p.required],
            "additionalProperties": False,
        }
        groups = [list(i.names) for i in self.invariants]
        if groups:
            whole["x-excludes"] = groups
            # The same for validators that know only the standard.
            pairs = [_both(pair) for names in groups for pair in combinations(names, 2)]
            whole["not"] = pairs[0] if len(pairs) == 1 else {"anyOf": pairs}
        return whole

    def governance(self) -> dict[str, Json]:
        """What it is to policy, in JSON."""
        return {
            "category": self.category,
            "risk": self.risk,
            "allowed_modes": list(self.allowed_modes),
            "approval": self.approval,
            "sandbox": self.sandbox,
            "rate_limit_per_hour": self.rate_limit,
            "idempotent": self.idempotent,
        }

    @property
    def schema(self) -> Schema:
        """As `parameters_schema`, made once: to hold arguments against, not to be changed."""
        if self._schema is None:
            object.__setattr__(self, "_schema", self.parameters_schema())
        assert self._schema is not None
        return self._schema

    def signature(self) -> str:
        """One line for people and models: ``read_file(path: string, encoding: string = "utf-8") -> string``."""
        parts = []
        for p in self.parameters:
            text = f"{p.name}: {spell(p.schema)}"
            parts.append(text if p.required else f"{text} = {json.dumps(p.default, ensure_ascii=False)}")
        return f"{self.name}({', '.join(parts)}) -> {spell(self.result)}"

    def schema_hash(self) -> str:
        """sha256 (hex) over what a caller depends on: parameters in order with what holds between them, result, effects."""
        content: dict[str, Json] = {
            "name": self.name,
            "parameters": [[p.name, p.schema, p.required, p.default] for p in self.parameters],
            "result": self.result,
            "effects": sorted(self.effects),
        }
        if self.invariants:
            # Whether one is needed is the primitive's own to refuse.
            content["invariants"] = [[i.rule, i.names] for i in self.invariants]
        return digest(content)


def _both(names: tuple[str, str]) -> Schema:
    """The schema of an object that gives both."""
    return {"required": list(names), "properties": {n: {"not": {"enum": [False, None]}} for n in names}}


def category_of(effects: Iterable[str]) -> Category:
    """The category of a tool with these effects: that of the gravest."""
    found = set(effects)
    return next((category for effect, category in _CATEGORY_OF_EFFECT if effect in found), "read_only")


def spell(schema: Schema) -> str:
    """A JSON Schema in a few words: ``array of string``, ``string or null``, ``{path: string}``."""
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        return " | ".join(json.dumps(v, ensure_ascii=False) for v in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(spell(s) for s in schema["anyOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and schema.get("items"):
        return f"array of {spell(schema['items'])}"
    if kind == "object" and schema.get("properties"):
        required = schema.get("required", ())
        inner = ", ".join(f"{k}{'' if k in required else '?'}: {spell(v)}" for k, v in schema["properties"].items())
        return f"{{{inner}}}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {spell(schema['additionalProperties'])}"
    return str(kind) if kind else "any"


def canonical(value: Json) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(value: Json) -> str:
    """sha256 (64 hex digits) of `canonical(value)`."""
    return hashlib.sha256(canonical(value)).hexdigest()


@dataclass(frozen=True, slots=True)
class Callee:
    """What a saved tool depends on: a composite by its version, a primitive by its schema hash."""

    name: str
    kind: Kind
    version: str


@dataclass(frozen=True, slots=True)
class Program:
    """What a worker needs to run a tool: the lowered text, the function to call, the façades it imports.

    `lines[i]` is the line of the tool's own text that lowered line ``i + 1`` came from.
    """

    name: str
    entry: str
    lowered: str
    imports: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolVersion:
    """One immutable version of a saved tool. `version` is the hash of `content()`; `created` is ISO 8601, UTC."""

    definition: ToolDefinition
    source: str
    program: Program
    calls: tuple[Callee, ...] = ()
    language: int = 1
    created: str = ""
    version: str = field(default="")

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name

    def content(self) -> Json:
        """What the version is named by: everything that decides what it does; not when it was made."""
        d = self.definition
        return {
            "name": d.name,
            "description": d.description,
            "parameters": [
                {
                    "name": p.name,
                    "schema": p.schema,
                    "description": p.description,
                    "required": p.required,
                    "default": p.default,
                }
                for p in d.parameters
            ],
            "result": d.result,
            "effects": list(d.effects),
            "depth": d.depth,
            "timeout": d.timeout,
            "source": self.source.split("\n"),
            "entry": self.program.entry,
            "imports": list(self.program.imports),
            "lowered": self.program.lowered.split("\n"),
            "lowered_sha256": hashlib.sha256(self.program.lowered.encode()).hexdigest(),
            "lines": list(self.program.lines),
            "calls": {c.name: {"kind": c.kind, "version": c.version} for c in self.calls},
            "language": self.language,
        }

    def named(self) -> ToolVersion:
        """This version under its proper name, the hash of its content."""
        from dataclasses import replace

        name = digest(self.content())
        return replace(self, version=name, definition=replace(self.definition, version=name))

    def to_document(self) -> Json:
        """The stored JSON form."""
        return {**self.content(), "created": self.created, "version": self.version}

    @classmethod
    def from_document(cls, document: Json) -> ToolVersion:
        """Read the stored form back and prove it: the content must hash to the version it is named by.

        Raises:
            ValueError: the document has another shape, or is not what was saved.
        """
        try:
            parameters = tuple(
                ToolParameter(p["name"], p["schema"], p["description"], p["required"], p["default"])
                for p in document["parameters"]
            )
            definition = ToolDefinition(
                name=document["name"],
                description=document["description"],
                parameters=parameters,
                result=document["result"],
                effects=tuple(document["effects"]),
                kind="composite",
                depth=document["depth"],
                timeout=document["timeout"],
                version=document["version"],
            )
            program = Program(
                name=document["name"],
                entry=document["entry"],
                lowered="\n".join(document["lowered"]),
                imports=tuple(document["imports"]),
                lines=tuple(document["lines"]),
            )
            version = cls(
                definition=definition,
                source="\n".join(document["source"]),
                program=program,
                calls=tuple(Callee(name, c["kind"], c["version"]) for name, c in sorted(document["calls"].items())),
                language=document["language"],
                created=document["created"],
                version=document["version"],
            )
            if digest(version.content()) != version.version:
                raise ValueError("the content does not match the hash it was saved under")
            wrong = _misshapen(version)
            if wrong:
                raise ValueError(f"its {wrong} is not what it should be")
            # Whoever lists tools spells all schemas.
            definition.signature()
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the document is not a tool version ({error!r})") from error
        return version


def _misshapen(version: ToolVersion) -> str | None:
    """The first part of a stored version that has another type than it should; its hash only says that nothing was lost."""
    d, program = version.definition, version.program
    parts: dict[str, bool] = {
        "name": _texts(d.name, d.description, version.created, program.entry),
        "source": _texts(version.source, program.lowered, *program.imports),
        "effects": all(e in EFFECTS for e in d.effects),
        "depth": type(d.depth) is int and type(version.language) is int,
        "timeout": type(d.timeout) in (int, float) and d.timeout > 0,
        "lines": all(type(n) is int for n in program.lines),
        "calls": all(c.kind in get_args(Kind) and _texts(c.version) and c.version.isalnum() for c in version.calls),
        "parameters": all(
            _texts(p.name, p.description) and isinstance(p.schema, dict) and type(p.required) is bool
            for p in d.parameters
        ),
        "result": isinstance(d.result, dict),
    }
    return next((name for name, right in parts.items() if not right), None)


def _texts(*values: object) -> bool:
    return all(isinstance(v, str) for v in values)

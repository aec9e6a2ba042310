"""The definition of a tool as its callers see it (`ToolDefinition`), and one saved version of a composite (`ToolVersion`).

These are frozen structs of msgspec. A saved tool can therefore run without the slow import of pydantic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct
from msgspec import json as msgspec_json
from msgspec.structs import force_setattr, replace

from albert_tools.engine.model.manifest import ANALYSIS, Declared, Manifest

Json = Any
Schema = dict[str, Any]

#: The kinds of effects of a call. `parallel` overlaps calls that only read; other calls run one at a time.
Effect = Literal["read", "write", "delete", "execute", "network", "secret"]
EFFECTS: tuple[str, ...] = get_args(Effect)

#: The category of a tool in the policy. It follows from the strongest effect, unless the tool states another category.
Category = Literal["read_only", "system_write", "system_delete", "execute", "network", "inference", "artifact"]
CATEGORIES: tuple[str, ...] = get_args(Category)

#: The capability modes. Rules may differ between modes.
Mode = Literal["NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"]
MODES: tuple[Mode, ...] = get_args(Mode)

#: How carefully a person should check a call before approving it.
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

#: Python's names of JSON's types.
TYPE_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
#: The deepest nesting of a schema's description. Deeper references only have their names.
MAX_SPELLED_DEPTH = 20
#: The default timeout of a call, in seconds.
DEFAULT_TIMEOUT = 30.0


class ToolParameter(Struct, frozen=True):
    """One parameter. `schema` is its JSON Schema (2020-12). `default` only applies if the parameter is not `required`."""

    name: str
    schema: Schema
    description: str = ""
    required: bool = True
    default: Json = None

    def as_dict(self) -> dict[str, Json]:
        """The JSON form. The keyword arguments of the constructor have the same names."""
        return {name: getattr(self, name) for name in ("name", "schema", "description", "required", "default")}


class Invariant(NamedTuple):
    """A condition between parameters. ``excludes``: at most one of `names` is given. False and null count as not given.

    If `needed` is true, one of them must be given. The primitive itself checks this.
    """

    rule: Literal["excludes"]
    names: tuple[str, ...]
    needed: bool = False


def excludes(*names: str) -> Invariant:
    """The condition that at most one of these parameters is given: ``excludes("create_only", "append")``."""
    return Invariant("excludes", names)


def one_of(*names: str) -> Invariant:
    """The condition that exactly one is given: ``one_of("pid", "name")``. The primitive itself checks that one is given."""
    return Invariant("excludes", names, needed=True)


class ToolDefinition(Struct, frozen=True, dict=True):
    """A tool as callers see it, primitive or composite.

    `result` is a JSON Schema. `depth` counts nested saved tools: it is 0 for a primitive, and 1 + the deepest callee for a
    composite. `timeout` is in seconds. `version` is the content hash of a composite or the schema hash of a primitive. By default,
    `category` and `risk` follow from the effects. Policy can allow the tool only in `allowed_modes`. If `approval` is true, a
    person is always asked. `rate_limit` is in calls per hour; None means that only policy limits the calls. A tool with `sandbox`
    runs confined. `declared` is what a primitive says about its data; `manifest` is what a composite can do.
    A primitive has no manifest, nor a source while it is checked.
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
    declared: Declared = Declared()
    manifest: Manifest | None = None

    def __post_init__(self) -> None:
        if not self.category:
            force_setattr(self, "category", category_of(self.effects))
        if not self.risk:
            force_setattr(self, "risk", _RISKS.get(self.category, "low"))

    def parameter(self, name: str) -> ToolParameter | None:
        """The parameter with that name, or None."""
        return next((p for p in self.parameters if p.name == name), None)

    def with_defaults(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call, with defaults for the missing ones."""
        return {p.name: p.default for p in self.parameters if not p.required} | dict(arguments)

    @cached_property
    def only_reads(self) -> bool:
        """Whether a call has no effect except reading."""
        return set(self.effects) <= {"read"}

    @cached_property
    def none_by_default(self) -> frozenset[str]:
        """The optional parameters whose default is None."""
        return frozenset(p.name for p in self.parameters if not p.required and p.default is None)

    @cached_property
    def by_hash(self) -> tuple[str, ...]:
        """The parameters of which the record stores only a hash. Their schema contains ``"x-recorded": "hash"``."""
        return tuple(p.name for p in self.parameters if p.schema.get("x-recorded") == "hash")

    @cached_property
    def manifest_digest(self) -> str:
        """The digest of what the manifest of a composite says."""
        assert self.manifest is not None
        return digest(replace(self.manifest, analysis=0).as_dict())

    def parameters_schema(self) -> Schema:
        """All parameters as one JSON Schema object that allows no other names."""
        properties = {}
        definitions: dict[str, Schema] = {}
        for p in self.parameters:
            entry = dict(p.schema)
            own = entry.get("$defs", {})
            if all(definitions.get(name, part) == part for name, part in own.items()):
                # References of JSON Schema begin at the root. The parameters of a composite share their TypedDicts.
                definitions |= entry.pop("$defs", {})
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
        if definitions:
            whole["$defs"] = definitions
        groups = [list(i.names) for i in self.invariants]
        if groups:
            whole["x-excludes"] = groups
            # The same condition in standard JSON Schema, for other validators.
            pairs = [_both(pair) for names in groups for pair in combinations(names, 2)]
            whole["not"] = pairs[0] if len(pairs) == 1 else {"anyOf": pairs}
        return whole

    def governance(self) -> dict[str, Json]:
        """The facts about the tool that the policy uses, as JSON."""
        return {
            "category": self.category,
            "risk": self.risk,
            "allowed_modes": list(self.allowed_modes),
            "approval": self.approval,
            "sandbox": self.sandbox,
            "rate_limit_per_hour": self.rate_limit,
            "idempotent": self.idempotent,
        }

    @cached_property
    def schema(self) -> Schema:
        """`parameters_schema`, computed once. Do not change the returned value."""
        return self.parameters_schema()

    def signature(self) -> str:
        """One line for people and models: ``read_file(path: str, encoding: str = "utf-8") -> str``."""
        parts = []
        for p in self.parameters:
            text = f"{p.name}: {spell(p.schema)}"
            parts.append(text if p.required else f"{text} = {literal(p.default)}")
        return f"{self.name}({', '.join(parts)}) -> {spell(self.result)}"

    def schema_hash(self) -> str:
        """sha256 (hex) of the facts that callers depend on: the parameters in order, the invariants, the result, the effects."""
        content: dict[str, Json] = {
            "name": self.name,
            "parameters": [[p.name, p.schema, p.required, p.default] for p in self.parameters],
            "result": self.result,
            "effects": sorted(self.effects),
        }
        if self.invariants:
            # `needed` is not part of the hash, because the primitive itself checks it.
            content["invariants"] = [[i.rule, i.names] for i in self.invariants]
        return digest(content)


def _both(names: tuple[str, str]) -> Schema:
    """The schema of an object that contains both names."""
    return {"required": list(names), "properties": {n: {"not": {"enum": [False, None]}} for n in names}}


def composite(
    callees: Iterable[ToolDefinition],
    *,
    name: str,
    description: str,
    parameters: tuple[ToolParameter, ...],
    result: Schema,
    timeout: float,
    manifest: Manifest | None = None,
) -> ToolDefinition:
    """The definition of a composite. Its effects and its depth follow from its callees."""
    called = list(callees)
    joined = {effect for c in called for effect in c.effects}
    return ToolDefinition(
        name=name,
        description=description,
        parameters=parameters,
        result=result,
        effects=tuple(e for e in EFFECTS if e in joined),
        kind="composite",
        depth=1 + max((c.depth for c in called), default=0),
        timeout=timeout,
        manifest=manifest,
    )


def pins_of(callees: Mapping[str, ToolDefinition]) -> tuple[Callee, ...]:
    """The pins of a composite that calls these tools."""
    return tuple(Callee(name, c.kind, c.version) for name, c in sorted(callees.items()))


def category_of(effects: Iterable[str]) -> Category:
    """The category of a tool with these effects. The strongest effect decides."""
    all_effects = set(effects)
    return next((category for effect, category in _CATEGORY_OF_EFFECT if effect in all_effects), "read_only")


def spell(schema: Schema, definitions: dict[str, Schema] | None = None, depth: int = 0) -> str:
    """A short description of a JSON Schema, with Python's names: ``list[str]``, ``str | None``, ``{path: str, size?: int}``.

    An object with named fields is written with its fields; those with a question mark may be missing. Each schema in ``$defs`` is
    described where it is used first. Later uses only have its name.
    """
    if definitions is None:
        definitions = dict(schema.get("$defs", {}))
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        target = definitions.pop(name, None) if depth < MAX_SPELLED_DEPTH else None
        return spell(target, definitions, depth + 1) if isinstance(target, dict) else name

    def inner(part: Schema) -> str:
        return spell(part, definitions, depth + 1)

    if "const" in schema:
        return f"Literal[{literal(schema['const'])}]"
    if "enum" in schema:
        return f"Literal[{', '.join(literal(v) for v in schema['enum'])}]"
    if "anyOf" in schema:
        return " | ".join(inner(s) for s in schema["anyOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(TYPE_NAMES.get(str(k), str(k)) for k in kind)
    if kind == "array" and schema.get("items"):
        return f"list[{inner(schema['items'])}]"
    if kind == "object" and schema.get("properties"):
        required = schema.get("required", ())
        fields = ", ".join(f"{k}{'' if k in required else '?'}: {inner(v)}" for k, v in schema["properties"].items())
        return f"{{{fields}}}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {inner(schema['additionalProperties'])}]"
    return TYPE_NAMES.get(str(kind), str(kind)) if kind else "Any"


def literal(value: Json) -> str:
    """A JSON value as Python writes it: ``None``, ``True``, ``["a", 1]``."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(v) for v in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(k)}: {literal(v)}' for k, v in value.items())}}}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def canonical(value: Json) -> bytes:
    """The canonical JSON text of a value: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def json_form(value: Struct | tuple[Struct, ...] | None) -> Any:
    """The JSON form of structs: dicts of their fields, in which tuples are lists."""
    return msgspec_json.decode(msgspec_json.encode(value))


def digest(value: Json) -> str:
    """sha256 (64 hex digits) of `canonical(value)`."""
    return hashlib.sha256(canonical(value)).hexdigest()


class Callee(Struct, frozen=True):
    """A pinned tool that a saved tool calls. A composite is pinned by its version, a primitive by its schema hash."""

    name: str
    kind: Kind
    version: str


class Program(Struct, frozen=True):
    """The data with which a worker runs a tool: the lowered text, the function to call, the imported façades.

    Lowered line ``i + 1`` was made from line `lines[i]` of the source.
    """

    name: str
    entry: str
    lowered: str
    imports: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


class ToolVersion(Struct, frozen=True):
    """One immutable version of a saved tool. `version` is the hash of `content()`; `created` is ISO 8601, UTC.

    `author` is the id of the session that defined it; empty for the owner.
    """

    definition: ToolDefinition
    source: str
    program: Program
    calls: tuple[Callee, ...] = ()
    language: int = 1
    created: str = ""
    version: str = ""
    author: str = ""

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name

    @property
    def manifest(self) -> Manifest:
        """What it can do. Each version has a manifest when it is stored or run."""
        assert self.definition.manifest is not None
        return self.definition.manifest

    @property
    def is_current(self) -> bool:
        """Whether the present analysis has made its manifest."""
        return self.manifest.analysis == ANALYSIS

    def with_manifest(self, manifest: Manifest) -> ToolVersion:
        """The same version with another manifest. The manifest is no part of its hash."""
        return replace(self, definition=replace(self.definition, manifest=manifest))

    def content(self) -> Json:
        """The content whose hash is the name of the version. It determines the behaviour; the time of saving is not part of it."""
        d = self.definition
        return {
            "name": d.name,
            "description": d.description,
            "parameters": [p.as_dict() for p in d.parameters],
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
        """The same version with the hash of its content as its name."""
        name = digest(self.content())
        return replace(self, version=name, definition=replace(self.definition, version=name))

    def to_document(self) -> Json:
        """The stored JSON form."""
        by = {"author": self.author} if self.author else {}
        about: Json = {"created": self.created, "version": self.version, "manifest": self.manifest.as_dict()}
        return {**self.content(), **about, **by}

    @classmethod
    def from_document(cls, document: Json) -> ToolVersion:
        """Read the stored form and verify that the hash of the content is the name of the version.

        Raises:
            ValueError: The document has another form, or it was changed.
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
                manifest=Manifest.from_dict(document["manifest"]),
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
                author=document.get("author", ""),
            )
            if digest(version.content()) != version.version:
                raise ValueError("the content does not match the hash it was saved under")
            part = _misshapen(version)
            if part:
                raise ValueError(f"its {part} has the wrong type")
            # Lists of tools describe all schemas, so a schema that can't be described is refused here.
            definition.signature()
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the document is not a tool version ({error!r})") from error
        return version


def _misshapen(version: ToolVersion) -> str | None:
    """The first part of a stored version with a wrong type. The hash does not prove that the content has the right form."""
    d, program = version.definition, version.program
    parts: dict[str, bool] = {
        "name": _texts(d.name, d.description, version.created, version.author, program.entry),
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

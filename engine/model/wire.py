"""The models as JSON from outside: read strictly, or refused with everything that is wrong.

Inside, tools, calls and results are plain dataclasses, so that a run loads nothing heavy. What comes from elsewhere (a
socket, a file, another language) passes here first, through pydantic, and is one of those dataclasses afterwards: no
text where a number belongs, no name that we don't know, no value that couldn't cross the boundary, no schema that the
evaluator would trip over. Import this only where that happens.

Each of the four forms reads (`read`), writes (`write`) and describes itself (`schema`); what one writes it reads back
as the same.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from albert_tools.engine.model.bounds import MAX_IDENTIFIER, MAX_ITEMS, MAX_REASON_GIVEN, MAX_TRACE
from albert_tools.engine.model.definition import (
    MODES,
    PARAMETER_TYPES,
    Category,
    Invariant,
    Kind,
    Mode,
    ParameterType,
    Risk,
    ToolDefinition,
    ToolParameter,
    type_of,
)
from albert_tools.engine.model.definition import Effect as EffectName
from albert_tools.engine.model.failure import CODES, Failure, FailureCategory
from albert_tools.engine.model.limits import MAX_NODES, MAX_VALUE_DEPTH
from albert_tools.engine.model.parameter_types import DedupeKey, Identifier, TimeoutSeconds
from albert_tools.engine.model.primitive import NAME
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.model.schema import Bound, Violation, violations

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def _crossing(value: Any) -> Any:
    """A value that can cross the boundary; see the language's page for which can."""
    count = 0
    level = [value]
    for _ in range(MAX_VALUE_DEPTH + 1):
        below: list[Any] = []
        for one in level:
            count += 1
            if isinstance(one, dict):
                below += one.values()
                if not all(isinstance(key, str) and _unicode(key) for key in one):
                    raise ValueError("the keys of an object are valid Unicode strings")
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str):
                if not _unicode(one):
                    raise ValueError("a string must be valid Unicode, without half a surrogate pair")
            elif isinstance(one, float):
                if not math.isfinite(one):
                    raise ValueError("a number must be finite")
            elif isinstance(one, int):
                if not -(2**63) <= one < 2**63:
                    raise ValueError("an integer must fit in 64 bits")
            elif one is not None:
                raise ValueError(f"{type(one).__name__} is not JSON")
        if count > MAX_NODES:
            raise ValueError(f"there are more than {MAX_NODES:,} values in it")
        if not below:
            return value
        level = below
    raise ValueError(f"it nests deeper than {MAX_VALUE_DEPTH}")


def _unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")

#: Keywords of the evaluator, with what each must be.
_KEYWORDS: dict[str, Callable[[Any], bool]] = {
    "type": lambda v: v in _TYPES if isinstance(v, str) else _list(v) and all(k in _TYPES for k in v) and bool(v),
    "enum": lambda v: _list(v),
    "required": lambda v: _list(v) and all(isinstance(n, str) for n in v),
    "format": lambda v: isinstance(v, str),
    "pattern": lambda v: isinstance(v, str) and _compiles(v),
    **{k: lambda v: type(v) is int and v >= 0 for k in ("minLength", "maxLength", "minItems", "maxItems")},
    **{
        k: lambda v: type(v) in (int, float)
        for k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    },
    "x-excludes": lambda v: _list(v) and all(_list(g) and all(isinstance(n, str) for n in g) for g in v),
    "additionalProperties": lambda v: isinstance(v, bool | dict),
    "items": lambda v: isinstance(v, bool | dict),
    "description": lambda v: isinstance(v, str),
    "title": lambda v: isinstance(v, str),
}


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _inner(schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas within a schema; what should hold schemas and doesn't is given as it is."""
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield schema[name]
    for name in ("properties", "$defs"):
        part = schema.get(name, {})
        yield from part.values() if isinstance(part, dict) else [part]
    for name in ("anyOf", "oneOf", "prefixItems"):
        if name in schema:
            part = schema[name]
            yield from part if isinstance(part, list) and part else [None]


def _readable(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that the evaluator reads, whatever it is to be held against.

    Raises:
        ValueError: a keyword is not what it should be, or a ``$ref`` leads nowhere or only to itself.
    """
    _crossing(schema)
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, dict):
        raise ValueError("$defs is an object of schemas")
    pending: list[Any] = [schema]
    while pending:
        one = pending.pop()
        if not isinstance(one, dict):
            raise ValueError("a part of the schema is no schema")
        if "$defs" in one and one is not schema:
            raise ValueError("$defs stands at the top of a schema")
        for name, right in _KEYWORDS.items():
            if name in one and not right(one[name]):
                raise ValueError(f"{name} can't be that in a schema")
        if "$ref" in one:
            _resolved(one, definitions)
        pending += _inner(one)
    return schema


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """That a ``$ref`` leads to something that consumes a part of the value before it comes back."""
    seen: set[str] = set()
    pending: list[Any] = [schema]
    while pending:
        one = pending.pop()
        if not isinstance(one, dict):
            continue
        if "$ref" not in one:
            for combiner in ("anyOf", "oneOf"):
                alternatives = one.get(combiner)
                pending += alternatives if isinstance(alternatives, list) else []
            continue
        ref = one["$ref"]
        name = ref.removeprefix("#/$defs/") if isinstance(ref, str) and ref.startswith("#/$defs/") else None
        if name is None or "/" in name or name not in definitions:
            raise ValueError("$ref names one of the schema's own $defs: #/$defs/NAME")
        if name in seen:
            raise ValueError(f"$ref leads from {name!r} only back to itself, or to it twice")
        seen.add(name)
        pending.append(definitions[name])


Value = Annotated[Any, AfterValidator(_crossing), Field(json_schema_extra={"description": "Any JSON value."})]
Values = Annotated[dict[str, Any], AfterValidator(_crossing)]
SchemaPart = Annotated[dict[str, Any], AfterValidator(_readable)]
Text = Annotated[str, AfterValidator(_crossing)]
Name = Annotated[str, Field(pattern="^" + NAME.pattern.replace(r"\Z", "$")), AfterValidator(_crossing)]
Label = Annotated[str, Bound(maxLength=MAX_IDENTIFIER), AfterValidator(_crossing)]
Known = Annotated[Identifier, AfterValidator(_crossing)]
Timestamp = Annotated[str, Bound(format="albert-time")]
HexId = Annotated[str, Field(pattern="^[0-9a-f]{16}([0-9a-f]{16})?$")]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Seconds = Annotated[float, Field(ge=0)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class ParameterForm(_Form):
    """A parameter: its type in a word (null where there are several), and precisely."""

    name: Name
    type: ParameterType | None = None
    schema_: SchemaPart = Field(alias="schema")
    description: Text = ""
    required: bool = True
    default: Value = None

    @model_validator(mode="after")
    def _agrees(self) -> ParameterForm:
        if "type" in self.model_fields_set and self.type != type_of(self.schema_):
            raise ValueError(
                f"type says {self.type}, the schema {type_of(self.schema_)}; it is one of {PARAMETER_TYPES}"
            )
        # With definitions that lead back to themselves, that could take for ever.
        judged = not self.required and self.default is not None and "$defs" not in self.schema_
        if judged and violations(self.default, self.schema_):
            raise ValueError("the default breaks the schema")
        return self

    def made(self) -> ToolParameter:
        """The parameter."""
        return ToolParameter(self.name, self.schema_, self.description, self.required, self.default)

    @staticmethod
    def told(of: ToolParameter) -> dict[str, Any]:
        """The JSON form."""
        return {
            "name": of.name,
            "type": of.type,
            "schema": of.schema,
            "description": of.description,
            "required": of.required,
            "default": of.default,
        }


class InvariantForm(_Form):
    """What holds between parameters."""

    rule: Literal["excludes"]
    names: Annotated[list[Name], Field(min_length=2, max_length=MAX_ITEMS)]
    needed: bool = False


class DefinitionForm(_Form):
    """A tool as callers see it. `timeout` is in seconds; category and risk follow from the effects when empty."""

    name: Known
    description: Text
    parameters: Annotated[list[ParameterForm], Field(max_length=MAX_ITEMS)]
    result: SchemaPart
    effects: Annotated[list[EffectName], Field(max_length=MAX_ITEMS)]
    kind: Kind = "primitive"
    depth: Count = 0
    timeout: TimeoutSeconds = 30.0
    version: Label = ""
    family: Label = ""
    idempotent: bool = False
    category: Category | Literal[""] = ""
    risk: Risk | Literal[""] = ""
    allowed_modes: Annotated[list[Mode], Field(max_length=MAX_ITEMS)] = list(MODES)
    approval: bool = False
    sandbox: bool = False
    rate_limit_per_hour: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    invariants: Annotated[list[InvariantForm], Field(max_length=MAX_ITEMS)] = []

    @model_validator(mode="after")
    def _agrees(self) -> DefinitionForm:
        names = [p.name for p in self.parameters]
        if len(set(names)) < len(names):
            raise ValueError("two parameters have the same name")
        for invariant in self.invariants:
            stray = set(invariant.names) - set(names)
            if stray:
                raise ValueError(f"an invariant speaks of {min(stray)!r}, which is no parameter")
        return self

    def made(self) -> ToolDefinition:
        """The definition."""
        return ToolDefinition(
            name=self.name,
            description=self.description,
            parameters=tuple(p.made() for p in self.parameters),
            result=self.result,
            effects=tuple(self.effects),
            kind=self.kind,
            depth=self.depth,
            timeout=self.timeout,
            version=self.version,
            family=self.family,
            idempotent=self.idempotent,
            category=self.category,
            risk=self.risk,
            allowed_modes=tuple(self.allowed_modes),
            approval=self.approval,
            rate_limit=self.rate_limit_per_hour,
            sandbox=self.sandbox,
            invariants=tuple(Invariant(i.rule, tuple(i.names), i.needed) for i in self.invariants),
        )

    @staticmethod
    def told(of: ToolDefinition) -> dict[str, Any]:
        """The JSON form."""
        return {
            "name": of.name,
            "description": of.description,
            "parameters": [ParameterForm.told(p) for p in of.parameters],
            "result": of.result,
            "effects": list(of.effects),
            "kind": of.kind,
            "depth": of.depth,
            "timeout": of.timeout,
            "version": of.version,
            "family": of.family,
            **of.governance(),
            "invariants": [{"rule": i.rule, "names": list(i.names), "needed": i.needed} for i in of.invariants],
        }


class InvocationForm(_Form):
    """A request to run a tool."""

    tool: Known
    arguments: Values
    version: Known | None = None
    session: Known | None = None
    request_id: Known | None = None
    dedupe_key: Annotated[DedupeKey, AfterValidator(_crossing)] | None = None
    trace: Annotated[Text, Field(min_length=1, max_length=MAX_TRACE)] | None = None
    timestamp: Timestamp = ""
    reason: Annotated[Text, Field(max_length=MAX_REASON_GIVEN)] | None = None

    def made(self) -> ToolInvocation:
        """The invocation."""
        return ToolInvocation(**dict(self))

    @staticmethod
    def told(of: ToolInvocation) -> dict[str, Any]:
        """The JSON form."""
        return {name: getattr(of, name) for name in InvocationForm.model_fields} | {"arguments": dict(of.arguments)}


class EffectForm(_Form):
    """Something that was done; further names are its facts."""

    model_config = ConfigDict(extra="allow")

    kind: Known
    tool: Known

    @model_validator(mode="after")
    def _crosses(self) -> EffectForm:
        _crossing(self.__pydantic_extra__)
        return self


class SourceForm(_Form):
    """Where in a saved tool's text it failed."""

    tool: Text | None = None
    line: Count


class ErrorForm(_Form):
    """What went wrong. `type` and `category` follow from the code."""

    code: Literal[tuple(CODES)]  # type: ignore[valid-type]
    type: str | None = None
    category: FailureCategory | None = None
    message: Text
    hint: Text | None = None
    retryable: bool = False
    retry_after_ms: Count | None = None
    rule: Text | None = None
    tool: Text | None = None
    source: SourceForm | None = None
    details: Values = {}

    @model_validator(mode="after")
    def _agrees(self) -> ErrorForm:
        known = CODES[self.code]
        if self.type not in (None, known.kind) or self.category not in (None, known.category):
            raise ValueError(f"{self.code} is of type {known.kind} and category {known.category}")
        trail = self.details.get("trail", [])
        if not isinstance(trail, list) or not all(
            isinstance(step, dict) and isinstance(step.get("tool"), str) for step in trail
        ):
            raise ValueError("details.trail is a list of steps, {tool, line} each")
        return self

    def made(self) -> Failure:
        """The failure."""
        return Failure(
            code=self.code,
            message=self.message,
            hint=self.hint,
            retryable=self.retryable,
            retry_after_ms=self.retry_after_ms,
            rule=self.rule,
            tool=self.tool,
            line=None if self.source is None else self.source.line,
            details=self.details,
        )


class PolicyForm(_Form):
    """The verdict of the rules; further names are kept."""

    model_config = ConfigDict(extra="allow")

    verdict: Literal["allow", "ask", "deny"]
    allowed: bool
    rule_id: Text | None
    rationale_code: Text | None
    message: Text

    @model_validator(mode="after")
    def _crosses(self) -> PolicyForm:
        _crossing(self.__pydantic_extra__)
        return self


#: Fields of a result that its own form leaves out or rounds.
_WHOLE = (
    *("request_id", "seconds", "own_seconds", "repeated", "timestamp_utc", "policy"),
    *("family", "budget_consumed", "trace_id", "span_id", "run_id", "metadata"),
)


class ResultForm(_Form):
    """The one answer to an invocation: an output or an error, never both. Times are in seconds."""

    ok: bool
    tool: Text
    version: Label = ""
    output: Value = None
    error: ErrorForm | None = None
    request_id: Text | None = None
    effects: list[EffectForm] = []
    log: Text = ""
    seconds: Seconds = 0.0
    own_seconds: Seconds = 0.0
    calls: Count = 0
    repeated: bool = False
    timestamp_utc: Timestamp = ""
    policy: PolicyForm | None = None
    family: Label = ""
    budget_consumed: dict[Known, Count | Seconds] = {}
    trace_id: HexId | None = None
    span_id: HexId | None = None
    run_id: HexId | None = None
    metadata: Values = {}

    @model_validator(mode="after")
    def _agrees(self) -> ResultForm:
        if self.ok is not (self.error is None):
            raise ValueError("a result is ok, or has an error")
        if self.error is not None and self.output is not None:
            raise ValueError("a result with an error has no output")
        return self

    def made(self) -> ToolResult:
        """The result."""
        found = {name: value for name, value in self if name not in ("ok", "error", "effects", "policy")}
        found["policy"] = None if self.policy is None else dict(self.policy)
        effects = tuple(Effect(e.kind, e.tool, dict(e.__pydantic_extra__ or {})) for e in self.effects)
        return ToolResult(**found, error=None if self.error is None else self.error.made(), effects=effects)

    @staticmethod
    def told(of: ToolResult) -> dict[str, Any]:
        """The JSON form: that of `ToolResult.as_dict`, with nothing left out or rounded."""
        return of.as_dict() | {name: getattr(of, name) for name in _WHOLE}


class Wire(Generic[T]):
    """One of the models in JSON."""

    def __init__(self, form: Any, told: Callable[[T], dict[str, Any]]) -> None:
        self._form = form
        self._told = told

    def read(self, text: str | bytes) -> T:
        """The value that a JSON text is.

        Raises:
            pydantic.ValidationError: it is none; with everything that is wrong (`told_wrong` says it in our words).
        """
        made: T = self._form.model_validate_json(text).made()
        return made

    def write(self, value: T) -> str:
        """The JSON text of a value.

        Raises:
            ValueError, TypeError: it holds what isn't JSON.
        """
        return json.dumps(self._told(value), ensure_ascii=False, allow_nan=False)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema (2020-12) of what `read` takes."""
        found: dict[str, Any] = self._form.model_json_schema(by_alias=True)
        return found


PARAMETER: Wire[ToolParameter] = Wire(ParameterForm, ParameterForm.told)
DEFINITION: Wire[ToolDefinition] = Wire(DefinitionForm, DefinitionForm.told)
INVOCATION: Wire[ToolInvocation] = Wire(InvocationForm, InvocationForm.told)
RESULT: Wire[ToolResult] = Wire(ResultForm, ResultForm.told)


def told_wrong(error: ValidationError) -> list[Violation]:
    """What pydantic found, as ``{field, rule, message}`` like everything else that is found."""
    found = []
    for one in error.errors(include_url=False, include_input=False):
        field = ""
        for part in one["loc"]:
            field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else str(part)
        message = one["msg"].removeprefix("Value error, ")
        found.append({"field": field, "rule": one["type"], "message": f"{field}: {message}" if field else message})
    return found

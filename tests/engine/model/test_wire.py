"""The models as JSON: what is written is read back as the same, and whatever else comes in is refused in words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from albert_tools import Failure, ToolDefinition, ToolInvocation, ToolParameter, ToolResult
from albert_tools.builtins.catalog import builtin_primitives
from albert_tools.engine.model.definition import CATEGORIES, EFFECTS, MODES, Invariant
from albert_tools.engine.model.failure import CODES
from albert_tools.engine.model.result import Effect
from albert_tools.engine.model.schema import violations
from albert_tools.engine.model.wire import DEFINITION, INVOCATION, PARAMETER, RESULT, told_wrong

WIRES: list[Any] = [PARAMETER, DEFINITION, INVOCATION, RESULT]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
labels = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
names = st.from_regex(r"\A[A-Za-z][A-Za-z0-9_]{0,10}\Z")
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(texts, values, max_size=3)
schemas = st.sampled_from(
    [
        {},
        {"type": "string", "minLength": 1, "format": "albert-path"},
        {"type": ["integer", "null"], "maximum": 3},
        {"enum": ["a", "b"]},
        {"type": "array", "items": {"type": "boolean"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"below": {"$ref": "#/$defs/T"}}}}},
        {"anyOf": [{"type": "string"}, {"type": "array"}]},
    ]
)
parameters = st.builds(ToolParameter, names, schemas, texts)


@st.composite
def definitions(draw: st.DrawFn) -> ToolDefinition:
    own = draw(st.lists(parameters, max_size=4, unique_by=lambda p: p.name))
    excluding = (
        (Invariant("excludes", (own[0].name, own[1].name), draw(st.booleans())),)
        if len(own) > 1 and draw(st.booleans())
        else ()
    )
    return ToolDefinition(
        draw(labels),
        draw(texts),
        tuple(own),
        draw(schemas),
        tuple(draw(st.lists(st.sampled_from(EFFECTS), max_size=3))),
        kind=draw(st.sampled_from(["primitive", "composite"])),
        depth=draw(st.integers(0, 8)),
        timeout=draw(st.floats(0.001, 3600)),
        version=draw(texts),
        family=draw(texts),
        idempotent=draw(st.booleans()),
        category=draw(st.sampled_from(["", *CATEGORIES])),  # type: ignore[arg-type]
        risk=draw(st.sampled_from(["", "low", "high"])),  # type: ignore[arg-type]
        allowed_modes=tuple(draw(st.lists(st.sampled_from(MODES), max_size=3))),
        approval=draw(st.booleans()),
        rate_limit=draw(st.none() | st.integers(1, 10_000)),
        sandbox=draw(st.booleans()),
        invariants=excluding,
    )


invocations = st.builds(
    ToolInvocation,
    tool=labels,
    arguments=objects,
    version=st.none() | labels,
    session=st.none() | labels,
    request_id=st.none() | labels,
    dedupe_key=st.none() | texts,
    trace=st.none() | labels,
    timestamp=st.just("") | st.datetimes().map(lambda t: t.isoformat()),
    reason=st.none() | texts,
)
failures = st.builds(
    Failure,
    st.sampled_from(list(CODES)),
    texts,
    hint=st.none() | texts,
    retryable=st.booleans(),
    retry_after_ms=st.none() | st.integers(0, 10**6),
    rule=st.none() | texts,
    tool=st.none() | texts,
    line=st.none() | st.integers(0, 1000),
    details=st.dictionaries(texts.filter(lambda t: t != "trail"), values, max_size=3)
    | st.builds(lambda tool: {"trail": [{"tool": tool, "line": 3}]}, texts),
)
facts = st.dictionaries(texts.filter(lambda t: t not in ("kind", "tool")), values, max_size=3)
budgets = st.dictionaries(labels, st.integers(0, 2**40) | st.floats(0, 1e6), max_size=3)
seconds = st.floats(0, 1e6)


@st.composite
def results(draw: st.DrawFn) -> ToolResult:
    error = draw(st.none() | failures)
    return ToolResult(
        draw(labels),
        draw(values) if error is None else None,
        error,
        version=draw(texts),
        request_id=draw(st.none() | texts),
        effects=tuple(draw(st.lists(st.builds(Effect, labels, labels, facts), max_size=3))),
        log=draw(texts),
        seconds=draw(seconds),
        own_seconds=draw(seconds),
        run_id=draw(st.none() | st.just("0123456789abcdef")),
        calls=draw(st.integers(0, 1000)),
        repeated=draw(st.booleans()),
        timestamp_utc=draw(st.just("") | st.datetimes().map(lambda t: t.isoformat())),
        policy=draw(
            st.none()
            | st.fixed_dictionaries(
                {
                    "verdict": st.sampled_from(["allow", "ask", "deny"]),
                    "allowed": st.booleans(),
                    "rule_id": st.none() | texts,
                    "rationale_code": st.none() | texts,
                    "message": texts,
                }
            )
        ),
        family=draw(texts),
        budget_consumed=draw(budgets),
        trace_id=draw(st.none() | st.just("ab" * 16)),
        span_id=draw(st.none() | st.just("cd" * 8)),
        metadata=draw(objects),
    )


@given(parameters)
def test_a_parameter_comes_back(parameter: ToolParameter) -> None:
    assert PARAMETER.read(PARAMETER.write(parameter)) == parameter


@given(definitions())
def test_a_definition_comes_back(definition: ToolDefinition) -> None:
    assert DEFINITION.read(DEFINITION.write(definition)) == definition


@given(invocations)
def test_an_invocation_comes_back(invocation: ToolInvocation) -> None:
    assert invocation.violations() == []
    assert INVOCATION.read(INVOCATION.write(invocation)) == invocation


@given(results())
def test_a_result_comes_back(result: ToolResult) -> None:
    assert RESULT.read(RESULT.write(result)) == result
    # The short form is one of it, too.
    short = RESULT.read(json.dumps(result.as_dict()))
    assert (short.output, short.error, short.effects) == (result.output, result.error, result.effects)
    json.dumps(result.strict(), allow_nan=False)


@pytest.mark.parametrize("primitive", builtin_primitives(), ids=lambda p: p.name)
def test_the_primitives_come_back(primitive: Any) -> None:
    assert DEFINITION.read(DEFINITION.write(primitive.definition)) == primitive.definition


GOOD: list[dict[str, Any]] = [
    {"name": "a", "type": "string", "schema": {"type": "string"}, "required": False, "default": "x"},
    json.loads(DEFINITION.write(builtin_primitives()[0].definition)),
    json.loads(INVOCATION.write(ToolInvocation("t", {"a": [1, {"b": None}]}, timestamp="2025-03-01T12:00:00Z"))),
    json.loads(
        RESULT.write(
            ToolResult(
                "t",
                error=Failure("not_found", "no", line=3, details={"trail": [{"tool": "u", "line": 1}]}),
                effects=(Effect("read", "read_file", {"path": "a"}),),
                policy={"verdict": "allow", "allowed": True, "rule_id": "r", "rationale_code": "c", "message": ""},
            )
        )
    ),
]
odd = values | st.just({"$ref": "#/$defs/T"}) | st.just({"type": ["string", 3]}) | st.just([{}]) | st.just(2**70)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, item in inner for p in places(item, (*path, key)))]


@given(st.data())
def test_whatever_comes_is_read_or_refused(data: st.DataObject) -> None:
    """One part of something good is replaced, taken away or added to: all that can come of it is a value or a refusal."""
    which = data.draw(st.integers(0, 3))
    document = json.loads(json.dumps(GOOD[which]))
    path = data.draw(st.sampled_from(places(document)))
    if path:
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        if data.draw(st.booleans()):
            holder[path[-1]] = data.draw(odd)
        else:
            del holder[path[-1]]
    else:
        document = {**document, data.draw(texts): data.draw(odd)} if data.draw(st.booleans()) else data.draw(odd)
    try:
        made = WIRES[which].read(json.dumps(document))
    except ValidationError as error:
        refusals = told_wrong(error)
        made = None
    if made is None:
        assert refusals
        return
    # What was let in can be used: written, spelled, held against values.
    assert WIRES[which].read(WIRES[which].write(made)) == made
    if isinstance(made, ToolDefinition):
        made.signature()
        for value in (None, True, 0, "a", ["a"], {"path": "a", "encoding": ["b"]}):
            violations({"path": value}, made.schema)


@given(st.binary(max_size=40) | st.text(max_size=40))
@pytest.mark.parametrize("wire", WIRES)
def test_what_is_no_json_is_refused(wire: Any, text: Any) -> None:
    with pytest.raises(ValidationError):
        wire.read(text)


PARAMETER_OF = '{"name": "a", "schema": %s}'
INVOCATION_OF = '{"tool": "t", "arguments": {"a": %s}}'


@pytest.mark.parametrize(
    ("wire", "text", "said"),
    [
        (INVOCATION, INVOCATION_OF % "NaN", "a number must be finite"),
        (INVOCATION, INVOCATION_OF % "1e999", "a number must be finite"),
        (INVOCATION, INVOCATION_OF % 2**63, "an integer must fit in 64 bits"),
        (INVOCATION, INVOCATION_OF % '"\\ud800"', "Invalid JSON"),
        (INVOCATION, INVOCATION_OF % ("[" * 1000), "Invalid JSON: recursion limit"),
        (INVOCATION, '{"tool": 1, "arguments": {}}', "tool: "),
        (INVOCATION, '{"tool": "", "arguments": {}}', "tool: must not be empty"),
        (INVOCATION, '{"tool": "t", "arguments": []}', "arguments: "),
        (INVOCATION, '{"tool": "t", "arguments": {}, "more": 1}', "more: "),
        (INVOCATION, '{"tool": "t", "arguments": {}, "timestamp": "{soon}"}', "timestamp: must be a date and time"),
        (PARAMETER, '{"name": "1a", "schema": {}}', "name: "),
        (PARAMETER, '{"name": "a\\n", "schema": {}}', "name: "),
        (PARAMETER, '{"name": "a", "schema_": {}}', "schema: "),
        (PARAMETER, '{"name": "a", "type": "integer", "schema": {"type": "integer"}}', "type: "),
        (PARAMETER, '{"name": "a", "type": "string", "schema": {"type": "integer"}}', "type says string, the schema"),
        (PARAMETER, '{"name": "a", "schema": {"type": "string"}, "required": false, "default": 1}', "the default"),
        (PARAMETER, PARAMETER_OF % '{"type": "text"}', "type can't be that"),
        (PARAMETER, PARAMETER_OF % '{"pattern": "("}', "pattern can't be that"),
        (PARAMETER, PARAMETER_OF % '{"properties": {"a": {"minLength": "1"}}}', "minLength can't be that"),
        (PARAMETER, PARAMETER_OF % '{"properties": []}', "a part of the schema is no schema"),
        (PARAMETER, PARAMETER_OF % '{"anyOf": []}', "a part of the schema is no schema"),
        (PARAMETER, PARAMETER_OF % '{"$ref": "#"}', "$ref names one of"),
        (PARAMETER, PARAMETER_OF % '{"$defs": 3}', "$defs is an object"),
        (PARAMETER, PARAMETER_OF % '{"items": {"$defs": {}}}', "$defs stands at the top"),
        (PARAMETER, PARAMETER_OF % '{"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}', "back to itself"),
        (
            PARAMETER,
            PARAMETER_OF % '{"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}}',
            "back to itself",
        ),
        (RESULT, '{"ok": true, "tool": "t", "error": {"code": "timeout", "message": ""}}', "ok, or has an error"),
        (RESULT, '{"ok": false, "tool": "t", "error": {"code": "nope", "message": ""}}', "error.code: "),
        (
            RESULT,
            '{"ok": false, "tool": "t", "error": {"code": "timeout", "type": "NotFound", "message": ""}}',
            "is of type Timeout",
        ),
        (
            RESULT,
            '{"ok": false, "tool": "t", "error": {"code": "timeout", "message": "", "details": {"trail": [1]}}}',
            "a list of steps",
        ),
        (
            RESULT,
            '{"ok": false, "tool": "t", "output": 1, "error": {"code": "timeout", "message": ""}}',
            "a result with an error has no output",
        ),
        (RESULT, '{"ok": true, "tool": "t", "trace_id": "xyz"}', "trace_id: "),
        (RESULT, '{"ok": true, "tool": "t", "seconds": Infinity}', "seconds: "),
    ],
)
def test_refusals(wire: Any, text: str, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        wire.read(text)
    assert said in " ".join(v["message"] for v in told_wrong(caught.value))


def test_a_definition_whose_parts_do_not_agree() -> None:
    twice = {**GOOD[1], "parameters": [GOOD[0], GOOD[0]]}
    stray = {**GOOD[1], "invariants": [{"rule": "excludes", "names": ["path", "z"]}]}
    for document, said in ((twice, "the same name"), (stray, "speaks of 'z'")):
        with pytest.raises(ValidationError, match=said):
            DEFINITION.read(json.dumps(document))


def test_everything_is_told_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        INVOCATION.read('{"tool": "", "dedupe_key": "%s", "trace": 1}' % ("k" * 257))
    assert [(v["field"], v["rule"]) for v in told_wrong(caught.value)] == [
        ("tool", "min_length"),
        ("arguments", "missing"),
        ("dedupe_key", "max_length"),
        ("trace", "string_type"),
    ]


@pytest.mark.parametrize(("wire", "good"), list(zip(WIRES, GOOD, strict=True)))
def test_each_form_has_a_schema_that_its_values_fit(wire: Any, good: Any) -> None:
    schema = wire.schema()
    assert schema["additionalProperties"] is False
    assert violations(good, schema) == []
    assert violations({**good, "more": 1}, schema)


@pytest.mark.parametrize("name", ["tool", "version", "session", "request_id", "trace", "dedupe_key"])
def test_the_fields_of_an_invocation_at_the_edge(name: str) -> None:
    def rules(length: int) -> list[str]:
        return [v["rule"] for v in ToolInvocation(**{"tool": "t", "arguments": {}, name: "a" * length}).violations()]

    most = 512 if name == "trace" else 256
    assert rules(most) == []
    assert rules(most + 1) == ["max_length"]
    assert rules(0) == ([] if name == "dedupe_key" else ["min_length"])


def test_pydantic_is_loaded_by_this_module_alone() -> None:
    code = (
        "import sys, albert_tools.engine.model.result, albert_tools.engine.model.parameter_types; print(*sys.modules)"
    )
    top = Path(__file__).parents[3]
    loaded = subprocess.run([sys.executable, "-c", code], cwd=top, capture_output=True, text=True, check=True).stdout
    assert not {"pydantic", "pydantic_core", "annotated_types"} & set(loaded.split())

"""Types are certain: in CPython, what is reported fails each time it is reached, and a result fits the schema that was inferred."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.check.checker import check
from albert_tools.engine.check.codes import TYPES
from albert_tools.engine.check.types import operations
from albert_tools.engine.model.validation import violations
from albert_tools.engine.sandbox.worker.boundary_values import export
from albert_tools.engine.sandbox.worker.prelude import prelude
from tests.helpers.effort import examples
from tests.helpers.harness import catalog, chunks

MISSING = object()
CODES = {code.code for code in TYPES}
INFO = {
    "path": "a",
    "type": "file",
    "size_bytes": 1,
    "sha256": None,
    "modified": "",
    "accessed": "",
    "changed": "",
    "mode": "",
    "link_target": None,
}
ANSWERS: dict[str, Any] = {"file_info": INFO, "list_directory": [{"path": "a", "type": "file", "size_bytes": 2}]}

_VALUES = ["None", "1", "2.5", '"x"', "True", "[]", "{}", "given", '[1, "a"]', '{"path": 1}', '("a", 1)', "{1, 2}"]
_NAMES = "abcd"
#: One operation each, so that a line of a program that is reached is an operation that is reached.
_STATEMENTS = [
    "{a} = VALUE",
    '{a} = tools.file_info(path="x")',
    '{a} = tools.list_directory(path="x")',
    "{a} = {b}",
    "{a} = {b} + {c}",
    "{a} += {b}",
    "{a} = {b} < {c}",
    "{a} = {b} in {c}",
    "{a} = -{b}",
    "{a} = {b}[{c}]",
    "{a} = {b}[KEY]",
    "{a} = {b}.get(KEY)",
    "{a}[KEY] = {b}",
    "{a}[0] = {b}",
    "del {a}[KEY]",
    "{a}.append({b})",
    "{a}.update({b})",
    "{a} = {b}.setdefault(KEY, {c})",
    "{a} = {b}.pop()",
    "{a} = {b}.upper()",
    "{a} = {b}.items()",
    "{a} = len({b})",
    "{a} = int({b})",
    "{a} = list({b})",
    "{a} = sorted({b}, key=str)",
    "{a} = [{b}]",
    "{a} = ({b}, {c})",
    '{a} = {{"path": {b}, "size": {c}}}',
    "{a} = [x for x in {b}]",
    "{a}, {b} = {c}",
    "{a} = {b} or {c}",
    "{a} = {b} if {c} else {d}",
    "{a} = _first({b}, {c})",
    "_change({a})",
]
_HEADS = [
    "if {a} is None:",
    "if isinstance({a}, str):",
    "if not isinstance({a}, (int, list)):",
    'if {a} == "x":',
    'if {a} in ("x", 1):',
    "if {a}:",
    "for {a} in {b}:",
    "for {a} in (1, 2):",
    "try:",
]
_RESULTS = ["a", "b", "[a, b]", '{"path": b}']
_KEYS = ['"path"', '"pth"', '"size"', '"size_bytes"', '"x"']


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """Tools with lines that often fail."""

    def pick(options: Any) -> str:
        return str(draw(st.sampled_from(options)))

    def line(template: str) -> str:
        names = {place: pick(_NAMES) for place in "abcd"}
        return template.format(**names).replace("VALUE", pick(_VALUES)).replace("KEY", pick(_KEYS))

    def block(depth: int, indent: str) -> list[str]:
        lines: list[str] = []
        for _ in range(draw(st.integers(1, 5))):
            if depth and draw(st.booleans()) and draw(st.booleans()):
                head = line(pick(_HEADS))
                lines += [indent + head, *block(depth - 1, indent + "    ")]
                if head == "try:":
                    kind = pick(["TypeError", "Exception", "(KeyError, ValueError)"])
                    lines += [f"{indent}except {kind}:", *block(depth - 1, indent + "    ")]
                    continue
                if head.startswith("for") and draw(st.booleans()):
                    lines += [f"{indent}    if {pick(_NAMES)}:", f"{indent}        {pick(['break', 'continue'])}"]
                if draw(st.booleans()):
                    lines += [f"{indent}else:", *block(depth - 1, indent + "    ")]
            else:
                lines.append(indent + line(pick(_STATEMENTS)))
        return lines

    body = [f"    {name} = {pick(_VALUES)}" for name in _NAMES]
    helper = [f"    {name} = {pick(_VALUES)}".replace("given", "None") for name in "cd"]
    return "\n".join(
        [
            "def _first(a, b):",
            *helper,
            *(s.replace("_first(", "_other(").replace("given", "None") for s in block(1, "    ")),
            "    return a",
            "",
            "def _other(a, b):",
            f"    return {pick(_RESULTS)}",
            "",
            "def _change(a):",
            f"    a[{pick(_KEYS)}] = {pick(_VALUES).replace('given', 'None')}",
            "",
            "def t(given: dict[str, str] | list[int] | str | None):",
            '    """Do something."""',
            *body,
            *block(2, "    "),
            f"    return {pick(_NAMES)}",
            "",
        ]
    )


@examples(50)
@given(programs(), st.sampled_from([None, "text", [3, 4], {"path": "p"}]))
def test_what_is_reported_fails_each_time_and_a_result_fits(source: str, argument: Any) -> None:
    report = check(source, catalog())
    found = report.diagnostics
    assert {d.code for d in found} <= CODES | {"unused-result", "unassigned"}, (source, found)
    # A program can change its argument.
    survived, result = _run(
        source, copy.deepcopy(argument), {d.span.line for d in found if d.code in CODES - {"not-json"}}
    )
    assert survived is None, f"line {survived} of\n{source}\n{found}"
    if report.checked is None and {d.code for d in found if d.severity == "error"} == {"not-json"}:
        (line,) = {d.span.line for d in found if d.code == "not-json"}  # the last: the only `return` of the tool
        assert result is MISSING, f"line {line} of\n{source}\n{found}"
    if report.checked is not None:
        assert result is MISSING or not violations(result, report.checked.definition.result), source


def _run(source: str, argument: Any, failing: set[int]) -> tuple[int | None, Any]:
    """The first of these lines that CPython runs without an exception, and what the tool returns, if that is JSON."""
    reached: dict[FrameType, int] = {}
    survived: list[int] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != "<tool>" or frame.f_code.co_name.startswith("<"):
            return None
        line = reached.pop(frame, None)
        if line is not None and event in ("line", "return"):
            survived.append(line)
        if event == "line" and frame.f_lineno in failing:
            reached[frame] = frame.f_lineno
        return trace

    def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = ANSWERS[name]
        return [dict(one) for one in answer] if isinstance(answer, list) else dict(answer)

    names = {**prelude(call), "Any": Any}
    exec(compile(source, "<tool>", "exec", dont_inherit=True), names)  # noqa: S102 (written by the strategy)
    before = sys.gettrace()
    sys.settrace(trace)
    result = MISSING
    try:
        result = export(names["t"](argument), 1_000_000)
    except Exception:
        # Most of these programs fail.
        pass
    finally:
        sys.settrace(before)
    return (survived[0] if survived else None), result


@pytest.mark.parametrize("path", sorted(Path("examples/tools").glob("*.tool")), ids=lambda p: p.stem)
def test_an_example_has_no_finding(path: Path) -> None:
    assert not CODES & {d.code for d in check(path.read_text(encoding="utf-8"), catalog()).diagnostics}


def test_a_program_that_runs_right_has_no_finding() -> None:
    found = [
        (c.id, d.message) for c in chunks("run") for d in check(c.source, catalog()).diagnostics if d.code in CODES
    ]
    assert found == []


@pytest.mark.parametrize("name", operations.SAMPLES)
def test_the_samples_are_of_their_class(name: str) -> None:
    classes = {"None": "NoneType", "re.Match": "Match", "re.Pattern": "Pattern"}
    if name not in ("lazy", "view"):
        assert {type(value).__name__ for value in operations.SAMPLES[name]()} == {classes.get(name, name)}


@pytest.mark.parametrize(
    ("body", "schema"),
    [
        ("return len(path)", {"type": "integer"}),
        ("return path if limit else None", {"type": ["string", "null"]}),
        ("return tools.read_file(path=path)", {}),
        (
            'return {"path": path, "text": tools.read_file(path=path)}',
            {
                "type": "object",
                "properties": {"path": {"type": "string"}, "text": {}},
                "required": ["path", "text"],
                "additionalProperties": False,
            },
        ),
        (
            'found = {"path": path}\n    found[path] = 1\n    return found',
            {"type": "object", "additionalProperties": {}},
        ),
        ("return [path.upper() for _ in range(limit)]", {"type": "array", "items": {"type": "string"}}),
    ],
)
def test_a_result_without_an_annotation_has_the_schema_of_what_is_returned(body: str, schema: Any) -> None:
    checked = check(f'def t(path: str, limit: int):\n    """Make."""\n    {body}\n', catalog()).checked
    assert checked is not None
    assert checked.definition.result == schema

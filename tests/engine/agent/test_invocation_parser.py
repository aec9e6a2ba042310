"""Calls in a model's text: what is a call, what is a failure, and that a stream gives the same as the whole text."""

from __future__ import annotations

import itertools
import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools import Failure, ToolInvocation, ToolInvocationParser
from albert_tools.engine.agent.invocation_parser import MAX_CALL, MAX_CALLS
from tests.helpers.effort import examples

CUT_OFF = "the <tool_call> at the end of the answer is cut off; the rest of the answer was ignored"


def call(name: str = "t", /, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def seen(text: str) -> list[Any]:
    """What a text contains: (name, arguments) of calls, messages of failures."""
    return [shown(part) for part in ToolInvocationParser.parse(text)]


def shown(part: str | ToolInvocation | Failure) -> Any:
    if isinstance(part, ToolInvocation):
        return part.tool, part.arguments
    return part.message if isinstance(part, Failure) else part


def streamed(pieces: list[str]) -> list[Any]:
    """The same for a stream. Neighbouring texts are joined."""
    parser = ToolInvocationParser()
    found: list[Any] = []
    for part in [part for piece in pieces for part in parser.feed(piece)] + parser.close():
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return [part if isinstance(part, str) else [shown(part)] for part in found]


def test_calls_are_found_in_the_text_around_them_in_order() -> None:
    text = f"First I look.\n{call('a', x=1)}\nthen {call('b')} and {call('c', t='</tool_call><tool_call>')}."
    assert ToolInvocationParser().parse("no call at all < 3 </tool_call>") == []
    assert seen(text) == [("a", {"x": 1}), ("b", {}), ("c", {"t": "</tool_call><tool_call>"})]
    assert "".join(p for p in streamed([text]) if isinstance(p, str)) == "First I look.\n\nthen  and ."


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"name": "t"}', ("t", {})),
        ('\n{"arguments": {"s": "two\nlines"},\n "name": "t"}\n', ("t", {"s": "two\nlines"})),
        ('{"name": "t", "arguments": {"s": "\\ud834\\udd1e"}}', ("t", {"s": "𝄞"})),
        ("", "not JSON: expecting value at line 1"),
        ("t(x=1)", "not JSON"),
        ('{"name": "t", "arguments": {"s": "a "quote""}}', "expecting ',' delimiter at line 1, column 38, near"),
        ('{"name": "t"} {"name": "u"}', "extra data"),
        ('{"name": "t", "name": "u"}', "the key 'name' occurs twice"),
        ('{"name": "t", "arguments": {"a": 1, "b": {"c": 1, "c": 2}}}', "the key 'c' occurs twice"),
        ('["t"]', "not a JSON object"),
        ('{"arguments": {}}', 'no text "name"'),
        ('{"name": 3}', 'no text "name"'),
        ('{"name": "t", "arguments": "{}"}', "are not an object"),
        ('{"name": "t", "argument": {}}', "unknown key 'argument'; did you mean 'arguments'?"),
        ('{"name": "t", "arguments": {"n": NaN}}', "NaN is not JSON"),
        ('{"name": "t", "arguments": {"n": ' + "9" * 5000 + "}}", "can't be read"),
        ('{"name": "t", "arguments": ' + "[" * 100_000, "nested too deeply"),
        ('{"name": "t", "arguments": {"s": "\\ud834"}}', "surrogate"),
        ("<tool_call>", "not closed before <tool_call>"),
        ('{"name": "t"}<tool_call>{"name": "u"}', "not closed before <tool_call>"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_call_is_complete_or_a_failure_and_nothing_after_a_failure_is_called(body: str, expected: Any) -> None:
    text = f"{call('before')}<tool_call>{body}</tool_call>"
    parser = ToolInvocationParser()
    parts = parser.feed(text + call("after") + "text")
    assert isinstance(parts[0], ToolInvocation)
    if isinstance(expected, str):
        assert len(parts) == 2
        assert isinstance(parts[1], Failure)
        assert expected in parts[1].message
        assert parts[1].hint
        assert parser.stopped
        assert parser.end == len(call("before"))
    else:
        assert [shown(part) for part in parts[1:]] == [expected, ("after", {}), "text"]


def test_an_open_call_at_the_end_is_made_only_if_its_json_is_complete() -> None:
    assert seen('<tool_call>{"name": "t"}\n') == [("t", {})]
    assert seen('<tool_call>{"name": "t", "arguments": {"a": "b') == [CUT_OFF]
    # An argument with a broken quote swallows the rest. It never becomes a call.
    broken = '<tool_call>{"name": "t", "arguments": {"a": "b}}</tool_call> and ' + call("u", x="y")
    assert seen(broken) == [CUT_OFF]


def test_a_result_that_the_model_writes_is_refused_with_all_that_follows() -> None:
    text = f'{call("a")}<tool_result name="a">{{"ok": true}}</tool_result>All done. {call("b")}'
    assert seen(text) == [
        ("a", {}),
        "only the service writes a <tool_result>; the rest of the answer was ignored",
    ]
    assert streamed(list(text))[1:] == [[seen(text)[1]]]


@pytest.mark.parametrize(
    "example",
    [
        "```\n{}\n```",
        "Like this:\n```json\n{}\n```\n",
        "~~~~ xml\n```\n~~~\n{}\n~~~~",
        "1. Example:\n   ```\n   {}\n   ```",
        "> ```\n> {}\n> ```",
        "- ```\n  {}",
        "in code: `{}`",
        "``{}``",
        "`as {} here`",
        "```{}```",
    ],
)
def test_a_call_in_code_is_an_example(example: str) -> None:
    text = example.replace("{}", call("t"))
    assert seen(text) == ["a <tool_call> in code is an example and was not called"]
    assert streamed(list(text))[0] == text
    # After the example, or with a real call in the answer, nothing needs to be said.
    if "`" in example[-4:]:
        assert seen(f"{text}\n{call('real')}") == [("real", {})]


def test_the_end_of_an_answer_without_failure_is_its_length() -> None:
    text = f"a {call()} b <tool"
    parser = ToolInvocationParser()
    for piece in text:
        parser.feed(piece)
    parser.close()
    assert parser.end == len(text)


def test_text_with_backticks_before_a_call_hides_no_call() -> None:
    assert seen(f"`a` and ``b`` and ```c``` {call()}\n```py\nx\n```\n{call()}") == [("t", {}), ("t", {})]


def test_ten_thousand_calls_are_bounded_in_number_and_memory() -> None:
    parser = ToolInvocationParser()
    found = []
    tracemalloc.start()
    for number in range(10_000):
        found += parser.feed(call("t", n=number, text="x" * 1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == MAX_CALLS + 1
    assert isinstance(found[-1], Failure)
    assert f"more than {MAX_CALLS} calls" in found[-1].message
    assert parser.stopped
    assert peak < 2_000_000


def test_a_giant_call_is_refused_without_being_stored() -> None:
    parser = ToolInvocationParser()
    assert parser.feed('<tool_call>{"name": "t", "arguments": {"s": "') == []
    tracemalloc.start()
    found = [part for _ in range(2000) for part in parser.feed("x" * 10_000)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 1
    assert "more than 1,048,576 characters" in shown(found[0])
    assert peak < 3 * MAX_CALL


@pytest.mark.parametrize(
    "unit",
    ["<", "<tool_call", "</tool_call>", "`", "```\n", "\n", "`<tool_call>", '"', "\\", '{"', "<tool_resul", "x `"],
)
@pytest.mark.parametrize("start", ["", '<tool_call>{"a": "', "<tool_call>"])
def test_time_is_proportional_to_the_text(start: str, unit: str) -> None:
    def seconds(length: int) -> float:
        text = start + unit * (length // len(unit))
        began = time.process_time()
        ToolInvocationParser.parse(text)
        parser = ToolInvocationParser()
        for at in range(0, len(text), 7):
            parser.feed(text[at : at + 7])
        parser.close()
        return time.process_time() - began

    # Quadratic time would be 256 times as long. A busy machine can disturb one measurement.
    assert any(seconds(64_000) < 64 * max(seconds(4_000), 0.001) for _ in range(3))


_PIECES = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "<tool_result", '{"name": "t"}', '{"name": "u", "arguments": {"a": "', '"}}'),
        *(
            "<",
            "tool_call>",
            '"',
            "\\",
            "`",
            "```",
            "~~~",
            "\n",
            "> ",
            "- ",
            "text ",
            "{",
            "}",
            "\ud800",
            "é",
            "\r",
            " ",
        ),
        call("t", a="b"),
    ]
)


@examples(300)
@given(text=st.lists(_PIECES, max_size=30).map("".join), cuts=st.lists(st.integers(0, 400), max_size=12))
def test_a_stream_gives_the_same_at_any_split(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]
    whole = streamed([text])
    assert streamed(pieces) == whole
    assert streamed(list(text)) == whole
    assert [part[0] for part in whole if isinstance(part, list)] == seen(text)


@examples(100)
@given(
    arguments=st.dictionaries(
        st.text(max_size=5), st.text() | st.integers() | st.lists(st.text(max_size=3), max_size=2)
    )
)
def test_any_arguments_survive(arguments: dict[str, Any]) -> None:
    for ascii_only in (True, False):
        text = json.dumps({"name": "t", "arguments": arguments}, ensure_ascii=ascii_only)
        assert seen(f"a <tool_call>{text}</tool_call> b") == [("t", arguments)]

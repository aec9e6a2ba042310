"""Examples in a source: how they compare files and results, which effects they may have, and the report of a failed example."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import Any

import pytest

from albert_tools import CallContext, primitive
from albert_tools.engine import examples
from albert_tools.engine.model.difference import difference
from tests.engine.conftest import DONE, one

KEY_ERROR = {"code": "exception", "message": "KeyError: 'a'", "line": 4}
OTHER_DICT = "the result differs at .a: expected 1, got True"
OTHER_FILE = "the file 'a' differs: expected '1', got '2'"
ONCE = "@example(arguments={})\n"
LAUNCH = 'return tools.launch(name="x")'


def test_files_are_written_and_compared(bench: Any) -> None:
    bench.define(
        'text = tools.read_file(path="a/b/c.txt")\n    tools.write_file(path="a/d.txt", content=text.upper())',
        above='@example(arguments={}, files={"a/b/c.txt": "hi"}, expect_files={"a/d.txt": "HI"}, result=None)\n',
    )
    assert not (bench.work / "a").exists()


@pytest.mark.parametrize(
    ("example", "body", "message", "expected", "got"),
    [
        ('result="y"', 'return "x"', "the result differs: expected 'y', got 'x'", "y", "x"),
        ("result=1", "return True", "the result differs: expected 1, got True", 1, True),
        ("result=(1, [2])", "return [1, 2]", "the result differs at [1]: expected [2], got 2", [1, [2]], [1, 2]),
        ('result={"a": 1}', 'return {"a": True}', OTHER_DICT, {"a": 1}, {"a": True}),
        ("result=None", "return 0", "the result differs: expected None, got 0", None, 0),
        ('result=""', 'return "x" * 500', "the result differs: expected '', got '" + "x" * 118 + "…", "", "x" * 500),
        ('raises="ValueError"', "return 1", "it should fail with ValueError, but it gave 1", "ValueError", 1),
        (
            'raises="E"',
            'return {}["a"]',
            "it should fail with E, but it failed in line 4 with exception: KeyError: 'a'",
            "E",
            KEY_ERROR,
        ),
        ('expect_files={"a": "1"}', "return 1", "there should be a file 'a': there is nothing at 'a'", "1", None),
        ('files={"a": "2"}, expect_files={"a": "1"}', "return 1", OTHER_FILE, "1", "2"),
    ],
)  # fmt: skip
def test_a_failed_example_reports_expected_and_actual_values(
    bench: Any, example: str, body: str, message: str, expected: Any, got: Any
) -> None:
    failure = bench.refused(body, f"@example(arguments={{}}, {example})\n")
    assert failure.message == f"the example in line 1 failed: {message}"
    assert failure.hint == "correct the program or the example; nothing was saved"
    assert (failure.line, failure.tool) == (1, "never_saved")
    (told,) = failure.details["examples"]
    assert (told["expected"], told["got"]) == (expected, got)
    assert json.dumps(failure.as_dict())


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        ({"a": [{"n": 1}] * 99}, {"a": [{"n": 1}] * 98 + [{"n": 2}]}, "at .a[98].n: expected 1, got 2"),
        ({"a b": None}, {}, "at ['a b']: expected None, got nothing"),
        ({}, {"b": [0]}, "at .b: expected nothing, got [0]"),
        ([[1, 2]], [[1]], "at [0][1]: expected 2, got nothing"),
        ([1], [1, "x"], "at [1]: expected nothing, got 'x'"),
        ([], {}, ": expected [], got {}"),
        (
            ["a" * 90 + "b"],
            ["a" * 90 + "c"],
            "at [0] character 91: expected …'" + "a" * 20 + "b', got …'" + "a" * 20 + "c'",
        ),
        ("x\n" * 40 + "y z\n", "x\n" * 40 + "y z", "at line 41: expected …'y z\\n', got …'y z'"),
        ("x" * 61, "", ": expected '" + "x" * 61 + "', got ''"),
    ],
)
def test_a_failed_example_shows_the_first_difference(expected: Any, got: Any, said: str) -> None:
    assert str(difference(expected, got)) == f"differs{' ' if said[0] != ':' else ''}{said}"
    assert difference(expected, expected) is None


def test_a_failure_has_its_own_hint(bench: Any) -> None:
    failure = bench.refused('return tools.read_file(path="a.tx")', '@example(arguments={}, files={"a.txt": ""})\n')
    assert "it failed in line 4: there is nothing at 'a.tx'" in failure.message
    assert "a.txt" in f"{failure.message} {failure.hint}"


def test_all_failed_examples_are_reported(bench: Any) -> None:
    above = "@example(arguments={}, result=1)\n@example(arguments={}, result=2)\n@example(arguments={}, result=3)\n"
    failure = bench.refused("return 2", above)
    assert [e["line"] for e in failure.details["examples"]] == [1, 3]


@pytest.mark.parametrize("kind", ["ValueError", "exception"])
def test_names_of_failures(bench: Any, kind: str) -> None:
    bench.define('raise ValueError("x")', above=f'@example(arguments={{}}, raises="{kind}")\n')


@pytest.mark.parametrize("kind", ["not_found", "ToolError"])
def test_names_of_failures_of_tools(bench: Any, kind: str) -> None:
    bench.define('tools.read_file(path="a")', above=f'@example(arguments={{}}, raises="{kind}")\n')


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a/..", ".", "", ".albert/governance.yaml", "a/"])
def test_files_stay_in_the_scratch_folder(bench: Any, path: str) -> None:
    failure = bench.refused("return 1", f"@example(arguments={{}}, files={{{path!r}: ''}})\n")
    assert "its files can't be written: " in failure.message


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ('{"a": "", "a/b": ""}', "'a/b' is in a folder that is a file"),
        ('{"a": "", "a/b/c": ""}', "'a/b/c' is in a folder that is a file"),
        (f'{{"{"n" * 300}/b": ""}}', "File name too long"),
        ('{"a\\0/b": ""}', "NUL"),
        ('{"a": "\\ud800"}', "the text for 'a' contains half a surrogate pair"),
    ],
)
def test_files_that_can_not_be_written(bench: Any, files: str, said: str) -> None:
    assert said in bench.refused("return 1", f"@example(arguments={{}}, files={files})\n").message


def test_effects_outside_need_a_stub(bench: Any) -> None:
    for call in ('tools.launch(name="x")', 'tools.http_request(url="http://x/")', "tools.secret()"):
        name = call.split(".")[1].split("(")[0]
        failure = bench.refused(f"return {call}", "@example(arguments={})\n")
        assert f"an example can't call {name} for real" in failure.message
        assert failure.hint == f'give its answer in the example: stubs={{"{name}": …}}'
    assert bench.done == []


def pay(path: str, context: CallContext) -> str:
    """Pay an invoice."""
    DONE.append(path)
    return path


def test_effects_inside_are_real(bench: Any) -> None:
    above = '@example(arguments={}, result="a", expect_files={"note.txt": "a"})\n'
    bench.define('tools.write_file(path="note.txt", content="a")\n    return "a"', above=above)
    assert not (bench.work / "note.txt").exists()
    # An application's tool may act anywhere, whatever it declares.
    bench.service.register(primitive(effects=["write"], paths={"path": "read"})(pay))
    for body in ("return tools.look()", 'return tools.note(text="a")', 'return tools.pay(path="a.txt")'):
        assert "an example can't call" in bench.refused(body, "@example(arguments={})\n").message
    assert bench.done == []


def test_the_owners_denial_applies_in_examples(make_bench: Any) -> None:
    bench = make_bench(governance={"deny": ["look", "note"]})
    for body in ("return tools.look()", 'return tools.note(text="a")'):
        assert "is denied by the rules" in bench.refused(body, "@example(arguments={})\n").message
    assert bench.done == []
    bench.define("return tools.look()", above='@example(arguments={}, stubs={"look": "7"}, result="7")\n')


def test_an_example_reads_nothing_that_the_rules_ask_about(make_bench: Any) -> None:
    bench = make_bench(governance={"tools": {"budget": {"requires_approval_in_modes": ["NORMAL"]}}})
    assert (
        "budget needs a person's approval" in bench.refused("return tools.budget()", "@example(arguments={})\n").message
    )


def test_a_denial_in_an_example_names_its_reason(make_bench: Any) -> None:
    above = "@example(arguments={})\n"
    bench = make_bench(governance={"deny": ["note"], "tools": {"launch": {"requires_approval_in_modes": ["NORMAL"]}}})
    failure = bench.refused('return tools.note(text="a")', above)
    assert "note is denied by the rules" in failure.message
    assert failure.hint == "`deny` in the owner's governance.yaml lists it"
    failure = bench.refused('return tools.launch(name="a")', above)
    assert "launch needs a person's approval in NORMAL" in failure.message
    bench.service.within(lambda s: s.modes.switch("LOCKDOWN", "a test", "to see"))
    failure = bench.refused("return tools.look()", above)
    assert "look is forbidden in LOCKDOWN" in failure.message
    assert failure.hint == "`albert mode` shows why this mode is on; only a person can switch it"


def test_without_rules_examples_have_no_effects_outside(make_bench: Any) -> None:
    bench = make_bench(governance={"nonsense": 1})
    assert "can't be used" in bench.refused("return tools.look()", "@example(arguments={})\n").message
    assert bench.done == []
    bench.define('tools.write_file(path="a", content="a")', above="@example(arguments={})\n")


def test_stubs(bench: Any) -> None:
    bench.define(
        "return tools.weigh()",
        above='@example(arguments={}, stubs={"weigh": {"a": (1, None)}}, result={"a": [1, None]})\n',
    )
    twice = "return [tools.launch(name='x'), tools.launch(name='y')]"
    bench.define(twice, above='@example(arguments={}, stubs={"launch": {"$each": ["1", "2"]}}, result=["1", "2"])\n')
    failure = bench.refused(twice, '@example(arguments={}, stubs={"launch": {"$each": ["1"]}})\n')
    assert "the stub of launch has no answer left" in failure.message
    assert failure.hint == "add one to its `$each` for every call"
    fails = '{"$fails": "network_error", "message": "cut off"}'
    caught = (
        'try:\n        tools.launch(name="x")\n    except ToolError as e:\n        return [e.code, e.message, e.tool]'
    )
    above = f'@example(arguments={{}}, stubs={{"launch": {fails}}}, result=["network_error", "cut off", "launch"])\n'
    bench.define(caught, above=above)
    assert bench.done == []


def test_stubs_for_saved_tools_and_their_schemas(bench: Any) -> None:
    bench.define(LAUNCH, "inner")
    bench.define("return tools.inner()", above='@example(arguments={}, stubs={"inner": 5}, result=5)\n')
    # The calls of the inner tool are answered by stubs, too.
    bench.define("return tools.inner()", above='@example(arguments={}, stubs={"launch": "6"}, result="6")\n')
    failure = bench.refused(
        "return tools.launch(name=n)", '@example(arguments={"n": 3}, stubs={"launch": "1"})\n', "n: Any"
    )
    assert "name: expected str, got int 3" in failure.message


@pytest.mark.parametrize(
    ("stub", "said"),
    [
        ('{"$each": 5}', 'the stub of launch takes a list of answers: {"$each": [first, second]}'),
        ('{"$fails": [1]}', "fails with [1], which is not a code; for example: not_found"),
        ('{"$fails": "not_fond"}', "fails with 'not_fond', which is not a code; did you mean 'not_found'?"),
        ('{"$each": [1, {"$fails": 3}]}', "fails with 3, which is not a code"),
    ],
)
def test_malformed_stubs(bench: Any, stub: str, said: str) -> None:
    assert said in bench.refused(LAUNCH, f'@example(arguments={{}}, stubs={{"launch": {stub}}})\n').message


def test_an_endless_example_times_out(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("albert_tools.engine.examples.MAX_SECONDS", 0.3)
    refused = bench.refused("tools.sleep(seconds=20)", "@example(arguments={})\n").message
    # The clock of the run or the clock of the call ends the example.
    assert re.search(r"stopped after 0\.\d+ s|did not answer within 0\.\d+ s", refused)


def test_progress_is_reported(bench: Any) -> None:
    import asyncio

    told: list[str] = []
    source = '@example(arguments={}, result=1)\n@example(arguments={})\ndef t() -> int:\n    """One."""\n    return 1\n'
    service = bench.service.service
    asyncio.run_coroutine_threadsafe(service.define(source, told.append), bench.service._loop).result()
    assert told == ["checking", "running 2 examples", "saving"]


def test_a_session_whose_examples_take_long_leaves_places_for_others(bench: Any) -> None:
    async def race(service: Any) -> list[bool]:
        flood, other = (service.open_session(client)[1] for client in ("flood", "other"))
        begun: list[str] = []
        flooding = [
            asyncio.create_task(
                service.define(one("tools.sleep(seconds=8)", f"slow_{n}", above=ONCE), begun.append, session=flood)
            )
            for n in range(6)
        ]
        while begun.count("running 1 example") < 6:
            await asyncio.sleep(0.01)
        await service.define(one("return 1", "quick", above=ONCE), session=other)
        done = [task.done() for task in flooding]
        for task in flooding:
            task.cancel()
        await asyncio.gather(*flooding, return_exceptions=True)
        return done

    assert bench.service.run(race) == [False] * 6


def test_the_examples_of_a_source_share_scratch_space(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "MAX_SCRATCH_BYTES", 1024 * 1024)
    body = 'for i in range(2):\n        tools.write_file(path="a", content="x" * 300_000)'
    bench.define(body, above="@example(arguments={})\n")
    failure = bench.refused(body, "@example(arguments={})\n" * 2)
    assert [e["line"] for e in failure.details["examples"]] == [2]
    assert "the examples write more than 1 MiB together" in failure.message


def test_the_examples_of_a_source_share_time(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "MAX_TOTAL_SECONDS", 0.001)
    failure = bench.refused("return sum(range(10**6))", "@example(arguments={})\n" * 3)
    *_, last = failure.details["examples"]
    assert (last["line"], last["message"]) == (1, "the examples take more than 0.001 s together")


def test_the_report_of_failed_examples_is_limited(bench: Any) -> None:
    failure = bench.refused('return "x" * 600_000', '@example(arguments={}, result="")\n' * 3)
    found = failure.details["examples"]
    assert [("got" in e, "the result differs" in e["message"]) for e in found] == [
        (True, True),
        (False, True),
        (False, True),
    ]


def test_the_files_of_an_example_count_to_its_time_and_do_not_stop_the_service(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, threads = examples._place, set()

    def watched(*arguments: Any) -> None:
        threads.add(threading.current_thread())
        place(*arguments)

    monkeypatch.setattr(examples, "_place", watched)
    monkeypatch.setattr(examples, "MAX_SECONDS", 0.001)
    files = {f"f{i}": "" for i in range(100)}
    failure = bench.refused("return 1", f"@example(arguments={{}}, files={files})\n")
    assert failure.message == "the example in line 1 failed: its files take more than 0.001 s to write"
    assert bench.service._thread not in threads


def test_examples_take_no_places_from_requests(make_bench: Any) -> None:
    bench = make_bench()
    bench.service._service._pipeline._slots = asyncio.Semaphore(0)
    bench.define("return 1", above="@example(arguments={}, result=1)\n")


def test_the_result_of_an_example_is_small(bench: Any) -> None:
    failure = bench.refused('return "x" * 2_000_000', "@example(arguments={})\n")
    assert "the result is larger than 1,048,576 bytes" in failure.message

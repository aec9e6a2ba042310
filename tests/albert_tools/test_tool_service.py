"""The service as an application uses it, with the real store, sandbox and files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools import Failure, SourceError, SyncToolService, ToolService, primitive
from albert_tools.engine.model.error_codes import CODES
from albert_tools.store.tools.tool_store import TinyToolStore
from albert_tools.testing import scratch_workspace
from tests.helpers.effort import examples
from tests.helpers.gate import GATE, hold, until_async

DONE: list[str] = []


@primitive(effects=["write"])
def launch(name: str) -> str:
    """Launch something; it is remembered."""
    DONE.append(name)
    return name


@primitive(effects=["read"])
def odd(kind: str) -> Any:
    """Return a value that is not JSON, or raise."""
    match kind:
        case "set":
            return {1, 2}
        case "nan":
            return float("nan")
        case "fault":
            raise KeyError("a secret detail")
    return kind


@primitive(effects=["read"], timeout=0.3)
async def slow(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "done"


@primitive(effects=["read"], gated=True)
def secret() -> str:
    """Tell the secret."""
    return "told"


PRIMITIVES = [launch, odd, slow, secret, hold]

COUNT = '''
@example(arguments={"path": "a.txt"}, files={"a.txt": "one two"}, result=2)
def count_words(path: str, least: int = 1) -> int:
    """Count the words of a file.

    Args:
        path: The file.
        least: Letters that a word must have.
    """
    print("reading", path)
    return len([w for w in tools.read_file(path=path).split() if len(w) >= least])
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path.resolve() / "work"
    (work / ".albert").mkdir(parents=True)
    (work / "a.txt").write_text("one two three")
    return work


@pytest.fixture
def service(tmp_path: Path, folder: Path) -> Iterator[SyncToolService]:
    DONE.clear()
    with SyncToolService.open(home=tmp_path / "home", workspace=folder, primitives=PRIMITIVES) as opened:
        yield opened


def one(body: str, name: str = "t", parameters: str = "") -> str:
    return f'def {name}({parameters}) -> Any:\n    """Do it."""\n    {body}\n'


def code(service: SyncToolService, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
    error = service.invoke(name, arguments, **options).error
    assert error is not None
    assert error.message
    return error.code


# Defining, pins, versions


def test_define_then_run_here_and_in_another_process(service: SyncToolService, tmp_path: Path, folder: Path) -> None:
    definition = service.define(COUNT)
    assert definition.signature() == "count_words(path: str, least: int = 1) -> int"
    result = service.invoke("count_words", {"path": "a.txt"}, request_id="r1")
    assert (result.value(), result.log, result.calls, result.request_id) == (3, "reading a.txt\n", 1, "r1")
    assert [(e.kind, e.tool, e.facts["path"]) for e in result.effects] == [("read", "read_file", "a.txt")]
    script = (
        "import sys\nfrom albert_tools import SyncToolService\n"
        "with SyncToolService.open(home=sys.argv[1], workspace=sys.argv[2]) as s:\n"
        "    print(s.invoke('count_words', {'path': 'a.txt', 'least': 4}).value())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "home"), str(folder)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"


def test_a_definition_lists_no_other_tools(service: SyncToolService, monkeypatch: pytest.MonkeyPatch) -> None:
    service.define('def other() -> int:\n    """One."""\n    return 1\n')
    for name in ("list", "names", "page"):
        monkeypatch.setattr(TinyToolStore, name, lambda *_: 1 / 0)
    for number in (1, 2):
        service.define(f'def one() -> int:\n    """One."""\n    return {number}\n')
    with pytest.raises(SourceError, match="'Other' looks like 'other'"):
        service.define('def Other() -> int:\n    """One."""\n    return 1\n')


def test_callers_keep_the_version_that_they_were_checked_against(service: SyncToolService) -> None:
    service.define(one("return 1", "inner"))
    service.define(one("return tools.inner() + 10", "outer"))
    service.define(one("return 2", "inner"))
    assert service.invoke("inner").value() == 2
    assert service.invoke("outer").value() == 11
    service.remove("inner")
    assert code(service, "inner") == "unknown_tool"
    assert service.invoke("outer").value() == 11


def test_depth_is_limited_at_definition(service: SyncToolService) -> None:
    service.define(one("return 1", "t1"))
    for i in range(2, 9):
        service.define(one(f"return tools.t{i - 1}() + 1", f"t{i}"))
    assert service.invoke("t8").value() == 8
    with pytest.raises(SourceError, match="depth"):
        service.define(one("return tools.t8() + 1", "t9"))


def test_a_changed_primitive_makes_its_callers_outdated(service: SyncToolService, tmp_path: Path, folder: Path) -> None:
    service.define(one('return tools.odd(kind="x")'))
    service.define(one("return tools.t()", "above"))

    @primitive(name="odd", effects=["read"])
    def changed(kind: str, more: int) -> str:
        """Changed."""
        return kind * more

    for primitives, said in (([changed], "odd has changed"), ([], "has no odd")):
        with SyncToolService.open(home=tmp_path / "home", workspace=folder, primitives=primitives) as other:
            listed = {t.name: t.outdated for t in other.list()}
            assert said in str(listed["t"])
            assert said in str(listed["above"])
            assert code(other, "above") == "outdated"
    with SyncToolService.open(home=tmp_path / "home", workspace=folder, primitives=[changed]) as other:
        other.define(one('return tools.odd(kind="x", more=2)'))
        assert other.invoke("t").value() == "xx"


def test_a_tool_can_not_have_a_primitives_name(service: SyncToolService) -> None:
    with pytest.raises(SourceError, match="is a primitive"):
        service.define(one("return 1", "read_file"))
    with pytest.raises(ValueError, match="already"):
        service.register(primitive(name="read_file")(lambda: None))


def test_a_name_that_looks_like_another_is_refused(service: SyncToolService) -> None:
    service.define(one("return 1", "tell_1"))
    for name, like in (
        ("Bash", "bash"),
        ("read_File", "read_file"),
        ("read_fi1e", "read_file"),
        ("Read__FiIe", "read_file"),
        ("TELL_1", "tell_1"),
        ("tell_I", "tell_1"),
        ("tell_l", "tell_1"),
    ):
        with pytest.raises(SourceError, match=f"'{name}' looks like '{like}', which is a tool already") as caught:
            service.define(one("return 1", name))
        assert [d.code for d in caught.value.diagnostics] == ["name-taken"]
    with pytest.raises(ValueError, match="'Read_file' looks like 'read_file', which is taken"):
        service.register(primitive(name="Read_file")(lambda: None))
    # A tool can be defined again, and a letter more or less is another name.
    for name in ("tell_1", "tell", "tel_1", "read_files"):
        service.define(one("return 2", name))
    looks = service.service.check_together([one("return 1", "fresh_0"), one("return 1", "fresh_O")])
    assert [[d.code for d in found.diagnostics] for found in service._wait(looks)] == [[], ["name-taken"]]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "name: is required"),
        ({"name": "x y", "description": "d", "implementation": "return 1"}, "not a name"),
        ({"name": "x", "description": "d", "implementation": "  "}, "implementation: must not be empty"),
        ({"name": "x", "description": "d", "implementation": "return 1", "extra": 1}, "extra"),
        (
            {"name": "x", "description": "d", "implementation": "return 1", "parameters": [{"name": "a=1):\n x"}]},
            "not a name",
        ),
        (
            {
                "name": "x",
                "description": "d",
                "implementation": "return 1",
                "parameters": [{"name": "a", "type": "int\n    x"}],
            },
            "type",
        ),
    ],
)
def test_malformed_forms(service: SyncToolService, form: dict[str, Any], said: str) -> None:
    with pytest.raises(Failure, match=said) as caught:
        service.define(form)
    assert caught.value.code == "invalid_arguments"


def test_structured_form(service: SyncToolService) -> None:
    form = {
        "name": "repeat",
        "description": 'Repeat a text.\n\nIt says """so""" and \\n.',
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": 'A "text"'},
                "times": {"type": "integer", "default": 2},
            },
            "required": ["text"],
        },
        "implementation": "    if times < 0:\n        raise ToolError('no')\n    return text * times",
    }
    service.define(form)
    assert service.invoke("repeat", {"text": "ab"}).value() == "abab"
    assert service.describe("repeat").definition.description.startswith("Repeat a text.")


# Examples


@pytest.mark.parametrize(
    ("example", "said"),
    [
        ('arguments={"path": "a.txt"}, files={"a.txt": "x"}, result="y"', "the result differs"),
        ('arguments={"path": "b.txt"}, result="y"', "it failed in line 4: there is nothing at 'b.txt'"),
        ('arguments={"path": "a.txt"}, files={"a.txt": "x"}, raises="not_found"', "it should fail with not_found"),
        ('arguments={"path": "a.txt"}, files={"a.txt": "x"}, expect_files={"a.txt": "z"}', "differs: expected"),
        ('arguments={"path": "a.txt"}, files={"../a.txt": "x"}', "not a path inside"),
    ],
)
def test_a_failing_example_prevents_saving(service: SyncToolService, example: str, said: str) -> None:
    source = f"@example({example})\n" + one("return tools.read_file(path=path)", "shown", "path: str")
    with pytest.raises(Failure) as caught:
        service.define(source)
    assert caught.value.code == "example_failed"
    assert said in caught.value.message
    assert code(service, "shown", {"path": "a.txt"}) == "unknown_tool"


def test_examples_have_no_effect_outside_their_workspace(service: SyncToolService) -> None:
    for call, said in (('tools.launch(name="x")', "launch"), ('tools.bash(command="id")', "bash")):
        with pytest.raises(Failure, match="for real"):
            service.define("@example(arguments={})\n" + one(f"return {call}", "shown"))
        stubbed = f'@example(arguments={{}}, stubs={{"{said}": 7}}, result=7)\n' + one(f"return {call}", "shown")
        service.define(stubbed)
    assert DONE == []


def test_stubs_answer_in_turn_and_can_fail(service: SyncToolService) -> None:
    caught = 'try:\n        tools.launch(name="y")\n    except ToolError as e:\n        return [a, e.code]'
    body = 'a = tools.launch(name="x")\n    ' + caught
    stubs = '{"launch": {"$each": ["first", {"$fails": "timeout"}]}}'
    service.define(f"@example(arguments={{}}, stubs={stubs}, result=['first', 'timeout'])\n" + one(body))
    assert DONE == []


# Validating


def test_all_violations_are_reported_at_once(service: SyncToolService) -> None:
    service.define(COUNT)
    found = service.validate("count_words", {"least": "x", "paht": 1})
    assert {(v["field"], v["rule"]) for v in found} == {("path", "required"), ("least", "type"), ("paht", "unknown")}
    assert code(service, "count_words", {"least": "x"}) == "invalid_arguments"
    for bad in ({"path": {1}}, {"path": float("nan")}, {"path": "\ud800"}, {1: 2}, {"path": 2**70}):
        assert code(service, "count_words", bad) == "invalid_arguments"
    with pytest.raises(Failure, match="did you mean 'count_words'"):
        service.validate("count_word", {})


def test_invalid_outputs_of_primitives(service: SyncToolService) -> None:
    assert code(service, "odd", {"kind": "set"}) == "invalid_result"
    assert code(service, "odd", {"kind": "nan"}) == "invalid_result"
    error = service.invoke("odd", {"kind": "fault"}).error
    assert error is not None
    assert error.code == "internal_error"
    service.define(
        one('try:\n        tools.odd(kind="set")\n    except ToolError as e:\n        return [e.code, e.tool]')
    )
    assert service.invoke("t").value() == ["invalid_result", "odd"]


# Authorization


def test_without_a_workspace_everything_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    monkeypatch.chdir(bare)
    with SyncToolService.open(home=tmp_path / "home") as service:
        service.define(one("return 1"))
        error = service.invoke("t").error
        assert error is not None
        assert error.denied
        assert error.code == "governance_unavailable"
        assert "mkdir .albert" in str(error.hint)


@pytest.mark.parametrize(
    ("user", "project", "tool", "expected"),
    [
        (None, None, "secret", "permission_denied"),
        ("allow: [secret]", None, "secret", None),
        ("allow: [secret]", "deny: [secret]", "secret", "permission_denied"),
        ("allow: [secret]", "allow: [http_request]", "secret", "permission_denied"),
        (None, "allow: [secret]", "secret", "permission_denied"),
        (None, None, "bash", "suspended"),
        ("allow: [bash]", None, "bash", None),
        ("allow: [bash]", "deny: [bash]", "bash", "permission_denied"),
        ("deny: [list_directory]", None, "list_directory", "permission_denied"),
        ("alow: [bash]", None, "list_directory", "governance_unavailable"),
        ("- x", None, "list_directory", "governance_unavailable"),
        ("allow: [", None, "list_directory", "governance_unavailable"),
        ("limits: {own_seconds: -1}", None, "list_directory", "governance_unavailable"),
        ("#" * 300_000, None, "list_directory", "governance_unavailable"),
        (None, "limits: {own_seconds: 0.5}", "list_directory", None),
    ],
)
def test_rules(
    tmp_path: Path, folder: Path, user: str | None, project: str | None, tool: str, expected: str | None
) -> None:
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    if user is not None:
        (config / "governance.yaml").write_text(user)
    if project is not None:
        (folder / ".albert" / "governance.yaml").write_text(project)
    with SyncToolService.open(home=tmp_path / "home", workspace=folder, primitives=PRIMITIVES) as service:
        error = service.invoke(tool, {"command": "true"} if tool == "bash" else {}).error
        assert (error.code if error else None) == expected
        assert error is None or error.denied or expected == "suspended"


def test_a_linked_rules_file_is_not_read(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "real.yaml").write_text("allow: [bash]")
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").symlink_to(tmp_path / "real.yaml")
    with SyncToolService.open(home=tmp_path / "home", workspace=folder) as service:
        assert code(service, "list_directory") == "governance_unavailable"


def test_rules_given_in_python(tmp_path: Path, folder: Path) -> None:
    rules = {"allow": ["bash"], "limits": {"calls": 2}}
    with SyncToolService.open(home=tmp_path / "home", workspace=folder, governance=rules) as service:
        assert service.invoke("bash", {"command": "echo hi"}).value()["output"] == "hi\n"
        service.define(one("for i in range(3):\n        tools.current_time()"))
        assert code(service, "t") == "call_limit"
    with SyncToolService.open(home=tmp_path / "home", workspace=folder, governance=tmp_path / "none.yaml") as service:
        assert code(service, "list_directory") == "governance_unavailable"


def test_a_denied_call_is_a_tool_error_with_its_hint(service: SyncToolService) -> None:
    service.define(one("try:\n        tools.secret()\n    except ToolError as e:\n        return [e.code, e.tool]"))
    assert service.invoke("t").value() == ["permission_denied", "secret"]
    service.define(one("return tools.secret()", "through"))
    error = service.invoke("through").error
    assert error is not None
    assert (error.code, error.rule, error.line) == ("permission_denied", "gated", 3)
    assert "`allow: [secret]`" in str(error.hint)
    service.define(one('raise ToolError("no", code="permission_denied")', "faked"))
    assert code(service, "faked") == "tool_error"


# Executing


def test_a_slow_primitive_times_out(service: SyncToolService) -> None:
    assert code(service, "slow", {"seconds": 30.0}) == "timeout"
    assert service.invoke("slow", {"seconds": 0.0}).value() == "done"


def test_a_tool_never_gets_more_time_than_its_caller_has(service: SyncToolService) -> None:
    service.define(one("tools.sleep(seconds=50)", "sleeper"))
    service.define("@tool(timeout=0.5)\n" + one("tools.sleeper()"))
    # The call and the program end at the same time, and either can be first.
    assert code(service, "t") in ("run_limit", "timeout")


def test_a_failed_result_contains_its_effects(service: SyncToolService, folder: Path) -> None:
    service.define(one('tools.write_file(path="b.txt", content="b")\n    raise ToolError("later")'))
    result = service.invoke("t")
    assert result.error is not None
    assert (result.error.code, result.error.message, result.error.line) == ("tool_error", "later", 4)
    assert [e.as_dict()["path"] for e in result.effects] == ["b.txt"]
    assert (folder / "b.txt").read_text() == "b"


def test_dedupe_keys(service: SyncToolService) -> None:
    first = service.invoke("launch", {"name": "a"}, dedupe_key="k")
    again = service.invoke("launch", {"name": "a"}, dedupe_key="k", request_id="r2")
    assert (first.value(), again.value(), again.repeated, again.request_id) == ("a", "a", True, "r2")
    assert code(service, "launch", {"name": "b"}, dedupe_key="k") == "dedupe_conflict"
    token = service.within(lambda s: s.open_session("other"))[1]
    assert service.invoke("launch", {"name": "b"}, dedupe_key="k", session=token).value() == "b"
    assert DONE == ["a", "b"]


def test_cancelling_stops_the_program(tmp_path: Path, folder: Path) -> None:
    DONE.clear()
    GATE.reset()

    async def main() -> None:
        async with ToolService.open(home=tmp_path / "home", workspace=folder, primitives=PRIMITIVES) as service:
            await service.define(one('tools.hold()\n    tools.launch(name="late")'))
            task = asyncio.create_task(service.invoke("t"))
            await until_async(lambda: GATE.begun)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert GATE.cancelled == 1
            GATE.open()
            assert (await service.invoke("launch", {"name": "well"})).value() == "well"
            assert DONE == ["well"]

    asyncio.run(main())


def test_calls_from_many_threads(service: SyncToolService) -> None:
    service.define(one("return n * n", "square", "n: int"))
    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(lambda n: service.invoke("square", {"n": n}).value(), range(40)))
    assert found == [n * n for n in range(40)]


# Lists and descriptions


def test_only_the_first_words_of_a_long_search_count(service: SyncToolService) -> None:
    words = " ".join(f"word{i}" for i in range(16))
    service.define(f'def listed() -> int:\n    """{words}."""\n    return 1\n')
    assert [t.name for t in service.search(words.upper())] == ["listed"]
    assert [t.name for t in service.search(f"{words} {'nothing ' * 500_000}")] == ["listed"]
    assert service.search(f"{words.replace('word', 'nothing')} {words}") == []


def test_list_search_describe_remove(service: SyncToolService, tmp_path: Path) -> None:
    service.define(COUNT)
    names = [t.name for t in service.list()]
    assert names[:2] == ["read_file", "write_file"]
    assert names[-1] == "count_words"
    assert [t.name for t in service.search("words of a file")] == ["count_words"]
    assert next(t.name for t in service.search("folder list")) == "list_directory"
    assert json.dumps(service.describe("count_words").as_dict())
    assert service.describe("secret").gated
    with pytest.raises(Failure, match="can't be removed"):
        service.remove("bash")
    entry = next((tmp_path / "home" / "tools").rglob("count_words.json"))
    entry.write_text(entry.read_text().replace("read_file", "write_all"))
    listed = next(t for t in service.list() if t.name == "count_words")
    assert listed.problem
    assert code(service, "count_words", {"path": "a.txt"}) == "damaged"


def test_a_file_in_place_of_the_tools(tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "tools").write_text("in the way")
    with SyncToolService.open(home=home, workspace=folder) as service:
        with pytest.raises(Failure) as caught:
            service.define(one("return 1"))
        assert caught.value.code == "io_error"


def test_closing_twice(service: SyncToolService) -> None:
    service.close()
    service.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(), x, max_size=3),
    max_leaves=8,
)


@examples(15)
@given(
    name=st.sampled_from(["list_directory", "read_file", "odd", "nothing", ""]),
    arguments=st.dictionaries(st.sampled_from(["path", "kind", "recursive", "x"]), JSON, max_size=3),
)
def test_any_arguments_get_exactly_one_result(anywhere: SyncToolService, name: str, arguments: dict[str, Any]) -> None:
    result = anywhere.invoke(name, arguments)
    assert result.ok or result.error.code in CODES  # type: ignore[union-attr]
    json.dumps(result.as_dict())


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncToolService]:
    with scratch_workspace({"a.txt": "a"}) as scratch:
        home = tmp_path_factory.mktemp("home")
        with SyncToolService.open(home=home, workspace=scratch.folder, primitives=PRIMITIVES) as opened:
            yield opened

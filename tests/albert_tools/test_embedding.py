"""What an application does besides defining and running tools: foreign tools, its own choice of tools, sources that run once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import CallContext, Failure, SourceError, SyncToolService, ToolService, primitive_from_schema

FIND = {
    "type": "object",
    "description": "Find customers.",
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "Part of a name."},
        "limit": {"type": "integer", "default": 3},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
    },
    "required": ["name"],
    "$defs": {"tag": {"enum": ["new", "old"]}},
}

Open = Callable[..., SyncToolService]


def found(name: str, limit: int, tags: tuple[str, ...] = ("no tags",)) -> list[Any]:
    return [name, limit, list(tags)]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    (tmp_path / "work" / ".albert").mkdir(parents=True)
    made: list[SyncToolService] = []

    def make(**options: Any) -> SyncToolService:
        made.append(SyncToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", **options))
        return made[-1]

    yield make
    for service in made:
        service.close()


def test_a_primitive_from_a_schema_under_a_dotted_name(opened: Open) -> None:
    service = opened(primitives=[primitive_from_schema("crm.find", FIND, found)], governance={"deny": ["crm.drop"]})
    described = service.describe("crm.find")
    assert (described.definition.description, described.definition.family) == ("Find customers.", "crm")
    # The default of the schema applies; without one, that of the function.
    assert service.invoke("crm.find", {"name": "Ada"}).value() == ["Ada", 3, ["no tags"]]
    assert service.invoke("crm.find", {"name": "Ada", "tags": ["new"], "limit": 1}).value() == ["Ada", 1, ["new"]]
    wrong = service.invoke("crm.find", {"name": "", "tags": ["newer"]}).error
    assert wrong is not None
    assert [v["field"] for v in wrong.details["violations"]] == ["name", "tags[0]"]
    source = 'def t(name: str) -> list:\n    """Find."""\n    return tools.crm.find(name=name)\n'
    service.define(source)
    assert service.invoke("t", {"name": "Bo"}).value() == ["Bo", 3, ["no tags"]]
    with pytest.raises(SourceError) as caught:
        service.define(source.replace("crm.find", "crm.fnd"))
    assert str(caught.value) == (
        "3:12 [unknown-tool] no tool named 'crm.fnd'; did you mean 'crm.find'?\n  help: write tools.crm.find"
    )
    listing = caught.value.render("mine.tool")
    assert " --> mine.tool:3:12\n  |\n3 |     return tools.crm.fnd(name=name)\n" in listing
    assert "3 +     return tools.crm.find(name=name)\n" in listing


def test_a_primitive_from_a_schema_gets_the_context(opened: Open) -> None:
    async def left(context: CallContext, **given: Any) -> list[Any]:
        return [context.remaining > 0, given]

    schema = {"type": "object", "properties": {"text": {"type": ["string", "null"]}}}
    service = opened(primitives=[primitive_from_schema("left", schema, left, effects=["read"])])
    assert service.invoke("left", {"text": "a"}).value() == [True, {"text": "a"}]
    assert service.invoke("left").value() == [True, {}]


@pytest.mark.parametrize(
    ("name", "schema", "said"),
    [
        ("crm.", {"type": "object"}, "can't be a tool's name"),
        ("crm.class", {"type": "object"}, "can't be a tool's name"),
        ("t", {"type": "array"}, "its type must be object"),
        ("t", {"type": "object", "properties": {"a": {"allOf": []}}}, "the keyword 'allOf' is not supported"),
        ("t", {"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}}, "there is no '#/$defs/B'"),
        ("t", {"type": "object", "properties": {"a": {"$ref": "#/$defs"}}}, "there is no '#/$defs'"),
        ("t", {"type": "object", "properties": {"a": {"type": "text"}}}, "'type' can't be 'text'"),
        ("t", {"type": "object", "properties": {"a-b": {}}}, "'a-b' can't be the name of a parameter"),
        ("t", {"type": "object", "required": ["b"]}, "it requires 'b', which is no property"),
        ("t", {"type": "object", "properties": {"b": {}}}, "the function does not take the arguments"),
        ("t", {"type": "object", "properties": {"a": {"type": "string", "default": 1}}}, "the default of 'a' breaks"),
    ],
)
def test_schemas_that_are_refused(name: str, schema: Any, said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        primitive_from_schema(name, schema, lambda a=1: a)


def test_the_application_chooses_the_built_in_primitives(opened: Open) -> None:
    assert [t.name for t in opened(builtins=["read_file", "bash"]).list()] == ["read_file", "bash"]
    service = opened(builtins=[])
    assert service.list() == []
    assert service.invoke("current_time").error.code == "unknown_tool"  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="there is no built-in primitive 'raed_file'; did you mean 'read_file'"):
        opened(builtins=["raed_file"])


def test_a_list_of_one_category_or_family(opened: Open) -> None:
    service = opened(builtins=["read_file", "write_file", "bash", "current_time"])
    service.define('def pure() -> int:\n    """One."""\n    return 1\n')
    service.define(
        'def sets(text: str) -> Any:\n    """Write."""\n    return tools.write_file(path="a", content=text)\n'
    )

    def names(*category: str, **family: str) -> list[str]:
        return [t.name for t in service.list(*category, **family)]

    assert names("read_only") == ["read_file", "current_time", "pure"]
    assert names("system_write") == ["write_file", "sets"]
    assert names(family="files") == ["read_file", "write_file"]
    assert names(family="saved") == ["pure", "sets"]
    assert names("system_write", family="saved") == ["sets"]
    assert names("network") == names(family="none") == []
    with pytest.raises(Failure, match="there is no category 'read_onli'; did you mean 'read_only'"):
        names("read_onli")


async def test_a_service_that_was_not_entered_does_nothing(tmp_path: Path) -> None:
    service = ToolService.open(home=tmp_path / "home", workspace=tmp_path)
    for work in (
        service.invoke("current_time"),
        service.define(SOURCE),
        service.check(SOURCE),
        service.run_source(SOURCE),
        service.prepare("t"),
    ):
        with pytest.raises(RuntimeError, match="not entered; write `async with"):
            await work
    assert not (tmp_path / "home" / "tools").exists()


# Sources that run once

SOURCE = '''
@example(arguments={"n": 1}, result="never compared")
def t(n: int) -> list:
    """Write and read."""
    print("writing")
    tools.write_file(path="a.txt", content="x" * n)
    return [tools.read_file(path="a.txt"), n]
'''
ASKS = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}}


def test_a_source_runs_once_and_is_not_saved(opened: Open) -> None:
    service = opened()
    result = service.run_source(SOURCE, {"n": 2}, request_id="r")
    assert (result.success, result.value(), result.log, result.request_id) == (True, ["xx", 2], "writing\n", "r")
    assert service.invoke("t", {"n": 2}).error.code == "unknown_tool"  # type: ignore[union-attr]
    assert service.invoke("t", {"n": 2}, version=result.version).error.code == "unknown_tool"  # type: ignore[union-attr]
    form = {"name": "t", "description": "Return.", "implementation": "return [1, 2]"}
    assert service.run_source(form).value() == [1, 2]
    assert service.run_source(SOURCE, {"n": "2"}).error.code == "invalid_arguments"  # type: ignore[union-attr]
    # The entry of the call names the source, and its content is stored.
    entries = service.records(["call"])
    entry = next(e.data for e in entries if e.data["tool"] == "t")
    assert entry["version"] == result.version
    assert b"tools.write_file" in service.service.contents(None).get(entry["source"])  # type: ignore[union-attr]
    assert [e.data["tool"] for e in entries].count("write_file") == 1
    replayed = service.within(lambda s: s.runs).replay(str(result.run_id))
    assert service._wait(replayed).value() == ["xx", 2]


def test_a_source_that_waits_is_resumed_by_another_service(opened: Open, tmp_path: Path) -> None:
    waiting = opened(governance=ASKS).run_source(SOURCE, {"n": 3})
    assert waiting.error is not None
    assert waiting.error.code == "suspended"
    assert waiting.run_id is not None
    other = opened(governance=ASKS)
    question = other.within(lambda s: s.approvals.all(("open",)))[0]
    other.within(lambda s: s.approvals.answer(question.id, "once", "ada"))
    assert other.resume(waiting.run_id).value() == ["xxx", 3]


def test_a_lease_decides_whether_a_session_may_run_sources(opened: Open) -> None:
    service = opened()

    def token(*tools: str) -> str:
        return service.within(lambda s: s.open_session("agent", tools=tools))[1]

    error = service.run_source(SOURCE, {"n": 1}, session=token("t", "write_file", "read_file")).error
    assert error is not None
    assert (error.rule, "write_file" in error.message) == ("lease.tools", False)
    with pytest.raises(SourceError, match="no tool named 'write_file'"):
        service.run_source(SOURCE, {"n": 1}, session=token("run_source", "read_file"))
    assert service.run_source(SOURCE, {"n": 1}, session=token("run_source", "write_file", "read_file")).ok
    assert service.run_source(SOURCE, {"n": 1}, session="none").error.rule == "session.unknown"  # type: ignore[union-attr]

"""What an agent does through MCP: list tools, write one, run it, get it listed, watch it, and cancel it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, MCPError, types

from albert_tools import ToolService
from albert_tools.engine.model.reserved_names import AGENT_TOOLS
from albert_tools.surfaces.mcp import offers
from albert_tools.surfaces.mcp.server import mcp_server
from tests.surfaces.mcp.conftest import WAYS, Place, said, until

#: A tool that prints, and calls another tool.
TOOL = '''
def {name}(path: str) -> dict[str, int]:
    """Count the letters of a file.

    Args:
        path: The file.
    """
    print("reading")
    text = tools.read_file(path=path)
    return {{"letters": len(text)}}
'''


@pytest.mark.parametrize("way", WAYS)
async def test_an_agent_writes_a_tool_and_gets_it_listed_when_the_owner_approves_it(place: Place, way: str):
    name = f"count_{WAYS.index(way)}"
    steps: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        assert done == len(steps) + 1
        steps.append(message)

    async with place.connect(way) as client:
        before = [tool.name for tool in (await client.list_tools()).tools]
        assert before[: len(AGENT_TOOLS)] == list(AGENT_TOOLS)
        assert "read_file" in before
        defined = await client.call_tool("define_tool", {"source": TOOL.format(name=name)})
        assert defined.structured_content["outcome"] == "saved"
        ran = await client.call_tool(
            "run_tool", {"name": name, "arguments": {"path": "notes.md"}}, progress_callback=progress
        )
        assert ran.structured_content == {"letters": 5}
        assert steps == [f"{name}: reading", "calls read_file"]
        steps.clear()
        assert [tool.name for tool in (await client.list_tools()).tools] == before

        if "older" in way:
            place.albert("review", name, "--approve")
            await until(lambda: "notifications/tools/list_changed" in place.changes)
        else:
            async with client.listen(tools_list_changed=True) as changes:
                place.albert("review", name, "--approve")
                await asyncio.wait_for(anext(aiter(changes)), 30)

        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools)[: len(before)] == before
        assert tools[name].description == "Count the letters of a file."
        assert tools[name].annotations == types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        called = await client.call_tool(name, {"path": "notes.md"}, progress_callback=progress)
        assert called.structured_content == {"letters": 5}
        assert steps == [f"{name}: reading", "calls read_file"]
        place.albert("review", name, "--deprecate")


@pytest.mark.parametrize("way", ["http", "http, older"])
async def test_a_client_can_name_the_turn_of_a_call(place: Place, way: str):
    async with place.connect(way) as client:
        for meta in ({"albert-tools/turn": "7"}, {"albert-tools/turn": 7}):
            await client.call_tool("read_file", {"path": "notes.md"}, meta=meta)
    lines = place.albert("ledger", "query", "--json").document()["entries"]
    calls = [e for e in lines if e["kind"] == "call" and e["tool"] == "read_file"]
    assert [call.get("turn") for call in calls[-2:]] == ["7", None]


@pytest.mark.parametrize("way", ["http", "http, older"])
async def test_failures_are_results_and_unknown_tools_are_errors_of_the_protocol(place: Place, way: str):
    async with place.connect(way) as client:
        missing = await client.call_tool("read_file", {"path": "missing.md"})
        assert missing.is_error
        assert said(missing).startswith("not_found: there is nothing at 'missing.md'")
        assert missing.meta["albert/error"]["code"] == "not_found"
        refused = await client.call_tool("define_tool", {"source": "def t( -> int:\n    return 1\n"})
        assert refused.is_error
        assert "error[" in said(refused)
        assert refused.meta["albert/error"]["details"]["diagnostics"][0]["span"]["line"] == 1
        wrong = await client.call_tool("read_file", {"path": 1, "more": 2})
        assert wrong.meta["albert/error"]["code"] == "invalid_arguments"
        inner = await client.call_tool("run_tool", {"name": "no_such_tool"})
        assert inner.meta["albert/error"]["code"] == "unknown_tool"
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("no_such_tool", {})
        assert unknown.value.code == types.INVALID_PARAMS
        with pytest.raises(MCPError) as cursor:
            await client.list_tools(cursor="x")
        assert cursor.value.code == types.INVALID_PARAMS


async def test_the_version_that_is_active_is_called_until_the_owner_approves_another(place: Place):
    old = 'def answer() -> int:\n    """Answer."""\n    return 1\n'
    async with place.connect("http") as client:
        await client.call_tool("define_tool", {"source": old})
        place.albert("review", "answer", "--approve")
        await client.call_tool("define_tool", {"source": old.replace("1", "2")})
        assert (await client.call_tool("answer", {})).structured_content == {"result": 1}
        place.albert("review", "answer", "--approve")
        assert (await client.call_tool("answer", {})).structured_content == {"result": 2}
        place.albert("review", "answer", "--deprecate")


@pytest.mark.parametrize("way", ["stdio", "http", "http, older"])
async def test_cancelling_a_request_kills_its_processes(place: Place, way: str):
    seconds = f"98765{WAYS.index(way)}"

    def sleeping() -> list[Any]:
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or []
            if line[-2:] == ["sleep", seconds]:
                found.append(process)
        return found

    source = (
        f'def wait() -> str:\n    """Wait."""\n    tools.bash(command="sleep {seconds}", timeout=3000)\n    return ""\n'
    )
    async with place.connect(way) as client:
        call = asyncio.create_task(client.call_tool("run_source", {"source": source}))
        await until(sleeping)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: not sleeping())
        assert not (await client.call_tool("read_file", {"path": "notes.md"})).is_error


@pytest.mark.parametrize("way", ["http", "http, older"])
async def test_the_server_promises_what_it_keeps_and_describes_itself(place: Place, way: str):
    async with place.connect(way) as client:
        promised = client.server_capabilities
        assert promised.tools.list_changed
        assert promised.resources.list_changed
        assert not promised.resources.subscribe
        assert not promised.prompts.list_changed
        assert client.server_info.title == "Albert Tools"
        (icon,) = client.server_info.icons
        assert icon.src.startswith("data:image/svg+xml,")


async def test_schemas_have_no_lists_of_types(place: Place):
    source = '''
def pick(count: int | None, sizes: list[int | str], type: str = "all") -> dict[str, int | None]:
    """Pick."""
    return {type: count}
'''
    async with place.connect("http") as client:
        defined = await client.call_tool("define_tool", {"source": source})
        assert not defined.is_error, said(defined)
        place.albert("review", "pick", "--approve")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for tool in tools.values():
            assert '"type": [' not in json.dumps([tool.input_schema, tool.output_schema]), tool.name
        pick = tools["pick"]
        assert pick.title == "Pick"
        assert tools["read_file"].title == "Read file"
        assert pick.input_schema["properties"] == {
            "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "sizes": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
            "type": {"type": "string", "default": "all"},
        }
        assert (await client.call_tool("pick", {"count": None, "sizes": [1]})).structured_content == {"all": None}
        place.albert("review", "pick", "--deprecate")


async def test_names_of_tools_and_topics_are_completed(place: Place):
    async with place.connect("http") as client:

        async def completed(ref: Any, name: str, value: str) -> list[str]:
            return (await client.complete(ref, {"name": name, "value": value})).completion.values

        guide = types.PromptReference(name="guide")
        assert await completed(guide, "tools", "read_f") == ["read_file"]
        assert await completed(guide, "tools", "bash,write_t, read_f") == ["bash,write_t,read_file"]
        assert await completed(guide, "tokens", "1") == []
        # An answer that repeats much has fewer values.
        assert len(await completed(guide, "tools", "read_file," * 100)) > 40
        repeated = await completed(guide, "tools", "x" * 50_000 + ",")
        assert 0 < sum(map(len, repeated)) < 3 * 50_000
        assert await completed(guide, "tools", "x" * 500_000 + ",") == []
        template = types.ResourceTemplateReference(uri="albert://tools/{name}")
        assert "list_runs" in await completed(template, "name", "list")
        topic = types.ResourceTemplateReference(uri="albert://help/{topic}")
        assert await completed(topic, "topic", "not_f") == ["not_found"]


async def test_the_list_comes_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "project" / ".albert").mkdir(parents=True)
    monkeypatch.setattr(offers, "PAGE", 10)
    async with ToolService.open(home=tmp_path / "home", workspace=tmp_path / "project") as service:
        _, token = service.open_session("a client")
        async with Client(mcp_server(service, lambda: token), cache=None) as client:
            names, cursor = [], None
            while not names or cursor is not None:
                page = await client.list_tools(cursor=cursor)
                assert len(page.tools) == 10 or page.next_cursor is None
                names += [tool.name for tool in page.tools]
                cursor = page.next_cursor
        assert names == [offer.name for offer in await service.offered(session=token)]


async def test_pages_tools_and_the_guide_are_resources_and_prompts(place: Place):
    source = 'def twice(text: str) -> str:\n    """Twice."""\n    return text * 2\n'
    async with place.connect("http") as client:
        await client.call_tool("define_tool", {"source": source})
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        assert listed == ["albert://guide", "albert://help/"]
        assert (await client.read_resource("albert://tools/twice")).contents[0].text == source
        assert "read_file" in (await client.read_resource("albert://tools/read_file")).contents[0].text
        assert "not_found" in (await client.read_resource("albert://help/")).contents[0].text
        assert "What to do" in (await client.read_resource("albert://help/not_found")).contents[0].text
        guide = (await client.read_resource("albert://guide")).contents[0].text
        (prompt,) = (await client.list_prompts()).prompts
        said = (await client.get_prompt(prompt.name, {"tools": "read_file"})).messages[0].content
        assert guide.splitlines()[0] == said.text.splitlines()[0]
        templates = (await client.list_resource_templates()).resource_templates
        assert "albert://tools/{name}" in [template.uri_template for template in templates]
        for uri in ("albert://tools/missing", "albert://nothing", "file:///etc/passwd", "albert://results/b3:0"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)

"""A call that needs a person: the client's user answers if the owner lets them, otherwise a person at the owner's terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, types

from tests.surfaces.mcp.conftest import WAYS, Place, make_place, said

#: A tool that has done something before it asks.
STEPS = '''
def steps_{n}(name: str) -> str:
    """Do one thing, then ask."""
    tools.bash(command="seq 1")
    tools.write_file(path=name, content="written")
    return "done"
'''


class Person:
    """The client's user, who always gives the same answer."""

    def __init__(self, action: Any, content: dict[str, Any] | None = None) -> None:
        self.answer = types.ElicitResult(action=action, content=content)
        self.asked: list[types.ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.asked.append(params)
        return self.answer


def yes() -> Person:
    return Person("accept", {"allow": True})


async def write(client: Client, path: str) -> types.CallToolResult:
    return await client.call_tool("write_file", {"path": path, "content": "hello\nthere"})


@pytest.mark.parametrize("way", WAYS[1:])
async def test_the_user_of_the_client_allows_calls_and_a_run_goes_on_where_it_waited(place: Place, way: str):
    n, person = WAYS.index(way), yes()
    project = place.albert.project
    async with place.connect(way, ask=person) as client:
        assert not (await write(client, f"yes{n}.txt")).is_error
        assert (project / f"yes{n}.txt").read_text() == "hello\nthere"
        (question,) = person.asked
        assert question.message.startswith(f'May write_file be called?\n  path = "yes{n}.txt"\n')
        # The text of an argument begins no line.
        assert '  content = "hello\\nthere"' in question.message.splitlines()
        assert question.requested_schema["properties"]["allow"]["default"] is False

        await client.call_tool("define_tool", {"source": STEPS.format(n=n)})
        ran = await client.call_tool("run_tool", {"name": f"steps_{n}", "arguments": {"name": f"run{n}.txt"}})
        assert said(ran) == "done"
        assert person.asked[1].message.startswith(f"May write_file be called, called by steps_{n}?\n")
        (run, *_) = (await client.call_tool("list_runs", {})).structured_content["runs"]
        assert (run["tool"], run["state"]) == (f"steps_{n}", "done")
    entries = place.albert("ledger", "query", "--json", "-n", "40").document()["entries"]
    by = [entry["by"] for entry in entries if entry["kind"] == "answered"]
    assert by[-1] == "the user of 'mcp', by MCP elicitation"


@pytest.mark.parametrize(
    ("action", "content"),
    [
        ("decline", None),
        ("accept", {"allow": False}),
        # A client that submits the form untouched, or that sends something else.
        ("accept", {}),
        ("accept", {"allow": "true"}),
    ],
)
@pytest.mark.parametrize("way", ["http", "http, older"])
async def test_no_answer_but_a_clear_yes_allows_a_call(place: Place, way: str, action: str, content: Any):
    person = Person(action, content)
    async with place.connect(way, ask=person) as client:
        refused = await write(client, "refused.txt")
    assert refused.meta["albert/error"]["code"] == "permission_denied"
    assert len(person.asked) == 1
    assert not (place.albert.project / "refused.txt").exists()


@pytest.mark.parametrize("way", ["http", "http, older"])
async def test_a_dismissed_question_stays_open_and_is_asked_again(place: Place, way: str):
    async with place.connect(way, ask=Person("cancel")) as client:
        waits = await write(client, f"later {way}.txt")
    assert waits.meta["albert/error"]["code"] == "suspended"
    person = yes()
    async with place.connect(way, ask=person) as client:
        assert not (await write(client, f"later {way}.txt")).is_error
    assert len(person.asked) == 1


@pytest.fixture
def quiet(tmp_path: Path) -> Place:
    """A place whose owner lets no client answer."""
    return make_place(tmp_path)


async def test_without_the_owners_consent_nobody_asks_the_client(quiet: Place):
    person, token = yes(), quiet.session()
    async with quiet.connect("stdio", ask=person, token=token) as client:
        waits = await write(client, "quiet.txt")
        assert waits.is_error
        approval = waits.meta["albert/error"]["details"]["approval"]
        assert f"`albert approvals answer {approval} once`; then make the same call again" in said(waits)
        # The client claims that its user has answered.
        with pytest.raises(MCPError, match="requestState"):
            await client.call_tool(
                "write_file",
                {"path": "quiet.txt", "content": "hello\nthere"},
                input_responses={"approval": types.ElicitResult(action="accept", content={"allow": True})},
                request_state=json.dumps({"approval": approval}),
            )
        assert (await write(client, "quiet.txt")).is_error
        quiet.albert("approvals", "answer", approval, "once")
        assert not (await write(client, "quiet.txt")).is_error
        assert (await write(client, "quiet.txt")).is_error

        await client.call_tool("define_tool", {"source": STEPS.format(n=9)})
        call = ("run_tool", {"name": "steps_9", "arguments": {"name": "run.txt"}})
        first = (await client.call_tool(*call)).meta["albert/error"]["details"]["approval"]
        # The same call waits for the same answer. It is not a second run.
        assert (await client.call_tool(*call)).meta["albert/error"]["details"]["approval"] == first
        quiet.albert("approvals", "answer", first, "once")
        assert said(await client.call_tool(*call)) == "done"
        (run, *others) = [
            r for r in (await client.call_tool("list_runs", {})).structured_content["runs"] if r["tool"] == "steps_9"
        ]
        assert (run["state"], others) == ("done", [])
    assert person.asked == []


async def test_a_client_that_cannot_ask_gets_the_command_for_the_owner(place: Place):
    async with place.connect("http") as client:
        assert "albert approvals answer" in said(await write(client, "cannot.txt"))


async def test_replacing_a_tool_of_the_owner_asks_too(place: Place):
    source = 'def owned() -> int:\n    """Owned."""\n    return 1\n'
    place.albert.write("owned.tool", source)
    place.albert("define", "owned.tool")
    person = yes()
    async with place.connect("http", ask=person) as client:
        replaced = await client.call_tool("define_tool", {"source": source.replace("1", "2")})
    assert replaced.structured_content["outcome"] == "replaced"
    assert person.asked[0].message.startswith("May define_tool be called?\n")
    assert "    return 2" in person.asked[0].message.replace("\\n", "\n")


async def test_an_answer_survives_a_restart_and_works_once(tmp_path: Path):
    place = make_place(tmp_path, "--elicit")
    place.serve()
    place.token, other = place.session(), place.session()
    accepted: Any = {"approval": types.ElicitResult(action="accept", content={"allow": True})}
    arguments = {"path": "once.txt", "content": "1"}
    async with place.connect("http", ask=yes()) as client:
        asked = await client.session.call_tool("write_file", arguments, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
    state = asked.request_state
    assert state is not None
    place.stop()
    assert (place.albert.home / "state" / "mcp" / "key").stat().st_mode & 0o777 == 0o600
    place.serve()

    async def answer(client: Client, given: dict[str, Any], sealed: str) -> Any:
        return await client.session.call_tool(
            "write_file", given, input_responses=accepted, request_state=sealed, allow_input_required=True
        )

    async with place.connect("http", ask=yes(), token=other) as client:
        with pytest.raises(MCPError, match="requestState"):
            await answer(client, arguments, state)
    async with place.connect("http", ask=yes()) as client:
        for given, sealed in (({**arguments, "content": "2"}, state), (arguments, state[:-4] + "AAAA")):
            with pytest.raises(MCPError, match="requestState"):
                await answer(client, given, sealed)
        assert not (await answer(client, arguments, state)).is_error
        (place.albert.project / "once.txt").unlink()
        assert (await answer(client, arguments, state)).is_error
    assert not (place.albert.project / "once.txt").exists()
    place.stop()

"""The server that the official conformance suite tests: `albert mcp --http`, with what the suite asks for by name.

It is the product's application with its handlers, limits and checks of Host, Origin and token. Added are:

- the token. The suite sends none, so each request gets it here;
- tools, resources and prompts named ``test_…``, as the suite describes them; `conformance_inputs` has those that ask for input.
  What an application can express is a primitive or a saved tool. The other ones (images, sampling, forms of other shapes,
  subscriptions to resources) are features of MCP that Albert Tools does not have: here, they show that its server does not stand
  in their way.

``python -m tests.surfaces.mcp.conformance_server`` prints its URL.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import tempfile
import warnings
import zlib
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from albert_tools import Failure, ToolService, primitive
from albert_tools.surfaces.http_server import LOOPBACK, listen, serve
from albert_tools.surfaces.mcp.http import MAX_CONNECTIONS, PATH, SessionTokens, http_app, session_token
from albert_tools.surfaces.mcp.server import mcp_server
from albert_tools.surfaces.mcp.team_gate import TeamGate
from tests.surfaces.mcp.conformance_inputs import ROUNDS, demand_sampling, questions

warnings.simplefilter("ignore")
Context = ServerRequestContext[Any, Any]
PROGRESS = '''
def test_tool_with_progress() -> str:
    """Report progress three times."""
    for part in [0, 50, 100]:
        print(f"{part} of 100")
    return "done"
'''

CHANGE = '''
def {name}() -> str:
    """Change the list of tools."""
    return ""
'''


@primitive(effects=["read"])
def test_simple_text() -> str:
    """Return a simple text."""
    return "This is a simple text response for testing."


@primitive(effects=["read"])
def test_error_handling() -> str:
    """Fail."""
    raise Failure("io_error", "This tool intentionally returns an error for testing")


def png() -> str:
    """A picture of one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return base64.b64encode(whole).decode()


def wav() -> str:
    """A sound without samples."""
    form = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", 0)
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(form)) + form).decode()


def text(said: str) -> types.TextContent:
    return types.TextContent(text=said)


def embedded(uri: str, mime: str, said: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime, text=said))


IMAGE = types.ImageContent(data=png(), mime_type="image/png")
CONTENT: dict[str, list[types.ContentBlock]] = {
    "test_image_content": [IMAGE],
    "test_audio_content": [types.AudioContent(data=wav(), mime_type="audio/wav")],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_reconnection": [text("Reconnection test completed")],
}
TEXT = {"type": "string"}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
FORMS: dict[str, dict[str, Any]] = {
    "test_elicitation": {"username": TEXT, "email": TEXT},
    "test_elicitation_sep1034_defaults": {
        "name": {**TEXT, "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {**TEXT, "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "test_elicitation_sep1330_enums": {
        "untitledSingle": {**TEXT, "enum": OPTIONS},
        "titledSingle": {**TEXT, "oneOf": TITLED},
        "legacyEnum": {**TEXT, "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {**TEXT, "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}
JSON_SCHEMA = types.Tool(
    name="json_schema_2020_12_tool",
    description="Tool with JSON Schema 2020-12 features",
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"type": "object", "properties": {"street": TEXT, "city": TEXT}}},
        "properties": {"name": TEXT, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    },
)


async def call(ctx: Context, params: types.CallToolRequestParams) -> list[types.ContentBlock] | None:
    """The content of a tool that is not a tool of the service."""
    if params.name in CONTENT:
        return CONTENT[params.name]
    arguments = params.arguments or {}
    if params.name in FORMS:
        form = {"type": "object", "properties": FORMS[params.name]}
        answer = await ctx.session.elicit_form(arguments.get("message", "Please answer"), form, ctx.request_id)
        return [text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")]
    if params.name == "test_sampling":
        message = types.SamplingMessage(role="user", content=text(arguments["prompt"]))
        sampled = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
        return [text(f"LLM response: {sampled.content}")]
    if params.name == "test_missing_capability":
        demand_sampling(ctx)
        return [text("the client has declared sampling")]
    if params.name == "test_logging_tool":
        return [text("nothing is logged unless the request asks for it")]
    if params.name in ROUNDS:
        return [
            text(f"state-ok: {json.dumps({key: str(value) for key, value in (params.input_responses or {}).items()})}")
        ]
    if params.name == "test_tool_with_logging":
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
        return [text("logged")]
    return None


RESOURCES: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
    ),
    "test://static-binary": types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=png()),
    "test://template/123/data": types.TextResourceContents(
        uri="test://template/123/data",
        mime_type="application/json",
        text='{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
    ),
}


def messages(name: str, given: dict[str, str]) -> list[types.ContentBlock] | None:
    """The messages of a prompt."""
    match name:
        case "test_input_required_result_prompt":
            return [text("The prompt uses the context that the client has given.")]
        case "test_simple_prompt":
            return [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            return [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return [resource, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            return [IMAGE, text("Please analyze the image above.")]
    return None


def extend(sdk: Server[Any], service: ToolService) -> None:
    """Add what the suite asks for. Everything else goes to the product's handlers."""

    def before(method: str, own: Callable[[Context, Any], Awaitable[Any]]) -> None:
        entry = sdk.get_request_handler(method)
        assert entry is not None

        async def handler(ctx: Context, params: Any) -> Any:
            found = await own(ctx, params)
            return found if found is not None else await entry.handler(ctx, params)

        sdk.add_request_handler(method, entry.params_type, handler)

    async def tools(ctx: Context, params: Any) -> Any:
        listed = await list_tools(ctx, params)
        return listed.model_copy(update={"tools": [*listed.tools, JSON_SCHEMA]})

    async def call_tool(ctx: Context, params: Any) -> Any:
        if params.name == "test_trigger_tool_change":
            name = f"changed_{next(numbers)}"
            await service.define(CHANGE.format(name=name))
            await service.approve(name, "the suite")
            return types.CallToolResult(content=[text("the owner has approved another tool")])
        if asked := questions(ctx, params):
            return asked
        content = await call(ctx, params)
        return None if content is None else types.CallToolResult(content=content)

    async def read(ctx: Context, params: Any) -> Any:
        found = RESOURCES.get(params.uri)
        return None if found is None else types.ReadResourceResult(contents=[found])

    async def prompt(ctx: Context, params: Any) -> Any:
        if asked := questions(ctx, params):
            return asked
        found = messages(params.name, params.arguments or {})
        said = [types.PromptMessage(role="user", content=content) for content in found or ()]
        return None if found is None else types.GetPromptResult(messages=said)

    async def nothing(ctx: Context, params: Any) -> Any:
        return types.EmptyResult()

    async def complete(ctx: Context, params: Any) -> Any:
        return types.CompleteResult(completion=types.Completion(values=["test"]))

    numbers = count()
    listing = sdk.get_request_handler("tools/list")
    assert listing is not None
    list_tools = listing.handler
    before("tools/list", tools)
    before("tools/call", call_tool)
    before("resources/read", read)
    before("prompts/get", prompt)
    sdk.add_request_handler("resources/subscribe", types.SubscribeRequestParams, nothing)
    sdk.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, nothing)
    sdk.add_request_handler("logging/setLevel", types.SetLevelRequestParams, nothing)
    sdk.add_request_handler("completion/complete", types.CompleteRequestParams, complete)


async def main() -> None:
    """Serve until the process is stopped."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "project" / ".albert").mkdir(parents=True)
        async with ToolService.open(
            home=Path(folder) / "home",
            workspace=Path(folder) / "project",
            governance={},
            primitives=[test_simple_text, test_error_handling],
        ) as service:
            await service.define(PROGRESS)
            await service.approve("test_tool_with_progress", "the suite")
            _, token = service.open_session("the suite")
            server = mcp_server(service, session_token)
            extend(server, service)
            app = http_app(server, SessionTokens(service), LOOPBACK, TeamGate(service))

            async def with_token(scope: Any, receive: Any, send: Any) -> None:
                if scope["type"] == "http":
                    bearer = (b"authorization", f"Bearer {token}".encode())
                    scope = {**scope, "headers": [*scope["headers"], bearer]}
                await app(scope, receive, send)

            listening, port = listen(LOOPBACK, 0)
            url = f"http://{LOOPBACK}:{port}{PATH}"
            await serve(with_token, listening, MAX_CONNECTIONS, lambda _: "the suite", lambda: print(url, flush=True))


if __name__ == "__main__":
    asyncio.run(main())

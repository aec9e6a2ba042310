"""An honest server, written with the official SDK: a tracker of issues, over stdio, or over HTTP on the port of an argument."""

import sys

from mcp.server import MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, ToolAnnotations

server = MCPServer("tracker")
#: The issues that were created.
created = []


@server.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))
def find_issues(text: str, limit: int = 2) -> list[str]:
    """Find issues that contain a text."""
    return [f"{text} {n}" for n in range(limit)]


@server.tool(name="create-issue")
def create_issue(title: str) -> int:
    """Create an issue, and return its number."""
    created.append(title)
    return len(created)


@server.tool()
async def choose() -> InputRequiredResult:
    """Ask the client's user."""
    form = ElicitRequestFormParams(message="Which one?", requested_schema={"type": "object", "properties": {}})
    return InputRequiredResult(input_requests={"which": ElicitRequest(params=form)})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()

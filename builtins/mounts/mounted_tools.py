"""The tools of mounted servers as primitives: ``tracker.create_issue`` is called as ``tools.tracker.create_issue(…)``.

The definitions are those that the owner has accepted, so nothing is started and no library of the protocol is loaded before the
first call. What a server says about the effects of a tool counts only if the owner trusts the server. Otherwise a tool counts as
one that may do anything a command may do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from albert_tools.builtins.mounts.mount import Mount, PinnedTool, read_mounts, suspended_tools
from albert_tools.builtins.mounts.server_limits import CALL_SECONDS
from albert_tools.builtins.mounts.server_schemas import plain_text, quoted
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.model.definition import EFFECTS, Effect, digest
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import HomeFile
from albert_tools.engine.model.messages import install_command
from albert_tools.engine.model.primitive import DataUse, Primitive, primitive_from_schema
from albert_tools.engine.model.protocols import CallContext

#: The effects of a tool whose server is not trusted.
_UNKNOWN = frozenset({"read", "write", "delete", "execute", "network"})
#: Characters of an error of a server.
_MAX_ERROR = 4000


def set_mounts(registry: ToolRegistry, file: HomeFile, state: Path) -> None:
    """Give a registry the tools of the mounted servers. If the file can't be read, it has none of them.

    The folder `state` has the suspended tools, see `suspended_tools`.
    """
    try:
        mounts = read_mounts(file).values()
    except Failure as failure:
        registry.set_mounted({}, {}, [failure.message])
        return

    def is_present(name: str, mark: str) -> bool:
        registry.refresh()
        return registry.mounted.get(name) == mark

    tools = {f"{m.name}.{tool.name}": (m, tool) for m in mounts for tool in m.tools}
    loaders = {name: partial(mounted_primitive, *pair, state, is_present) for name, pair in tools.items()}
    marks = {name: mark_of(*pair) for name, pair in tools.items()}
    suspended = [
        f"{m.name}.{name} is suspended: it {what}; compare it with `albert mount look {m.name}`"
        for m in mounts
        for name, what in suspended_tools(state, m).items()
    ]
    registry.set_mounted(loaders, marks, suspended)


def mark_of(mount: Mount, tool: PinnedTool) -> str:
    """What tells a tool of a server from others: a digest of how the server is started and of what it says about the tool."""
    return digest([msgspec.to_builtins(msgspec.structs.replace(mount, tools=())), tool.hash])


def mounted_primitive(
    mount: Mount, tool: PinnedTool, state: Path | None = None, is_present: Callable[[str, str], bool] = lambda *_: True
) -> Primitive:
    """A tool as a primitive. The folder `state` gets the suspended tools. `is_present` says whether the owner still has this tool
    of this server mounted.

    Raises:
        Failure: `damaged` if somebody has made the pinned definition invalid.
    """

    async def call(_context: CallContext, **arguments: Any) -> Any:
        # A person may have taken a while to answer the question about the call.
        if not await asyncio.to_thread(is_present, name, mark):
            raise Failure("unknown_tool", f"{name} was unmounted or replaced before the call was made", tool=name)
        connection = (await _connections(_context)).to(mount, state)
        given = {tool.remote_names.get(name, name): value for name, value in arguments.items()}
        return output_of(f"{mount.name}.{tool.name}", tool, await connection.call(_context, tool, given))

    name, mark = f"{mount.name}.{tool.name}", mark_of(mount, tool)
    effects = effects_of(mount, tool.hints)
    said = f" says: {json.dumps(tool.description, ensure_ascii=False)}" if tool.description else " offers it."
    try:
        made = primitive_from_schema(
            name,
            tool.parameters,
            call,
            # One sentence, because a list shows only the first one.
            description=f"The mounted server {mount.name}{said}",
            result=tool.result if tool.result is not None else {"type": "string"},
            effects=effects,
            uses=uses_of(tool, effects),
            source="server",
            timeout=CALL_SECONDS,
            family=mount.name,
            idempotent=mount.trust and tool.hints.get("idempotentHint", False),
        )
        # Answers and saved tools are about this tool of this server, not about another one of the same name.
        version = digest([made.definition.version, mark])
        definition = msgspec.structs.replace(made.definition, version=version)
        return msgspec.structs.replace(made, definition=definition, sees_workspace=not mount.url)
    except TypeError as error:
        raise Failure("damaged", f"mounts.json: {error}", hint=f"mount {mount.name} again") from None


def effects_of(mount: Mount, hints: Mapping[str, bool]) -> list[Effect]:
    """The effects of a tool. Hints of a trusted server have the protocol's defaults: destructive, and open to the world."""
    effects = set(_UNKNOWN)
    if mount.trust:
        effects = {"read"}
        if not hints.get("readOnlyHint", False):
            effects |= {"write", "delete"} if hints.get("destructiveHint", True) else {"write"}
        if mount.url or mount.hosts or hints.get("openWorldHint", True):
            effects.add("network")
    if mount.secrets:
        effects.add("secret")
    return [effect for effect in EFFECTS if effect in effects]  # type: ignore[misc]


def uses_of(tool: PinnedTool, effects: Collection[str]) -> dict[str, DataUse]:
    """The uses of the arguments. A server doesn't say which are recipients or amounts: if the tool does more than read, all are."""
    return {} if set(effects) <= {"read"} else dict.fromkeys(tool.parameters.get("properties", {}), "destination")


def output_of(name: str, tool: PinnedTool, result: Any) -> Any:
    """The output of a call: the structured result if the tool declares one, otherwise its text.

    Raises:
        Failure: `tool_error` with the server's message; `invalid_result`.
    """
    text = "\n".join(_text_of(block) for block in result.content)
    if result.is_error:
        raise Failure("tool_error", f"{name} failed; {quoted(plain_text(text, _MAX_ERROR))}", tool=name)
    if tool.result is None:
        if not text and result.structured_content is not None:
            return json.dumps(result.structured_content, ensure_ascii=False)
        return text
    if result.structured_content is None:
        raise Failure("invalid_result", f"{name} declares a structured result, and its server returned none", tool=name)
    return result.structured_content


def _text_of(block: Any) -> str:
    """The text of a part of a result. Of a part that is no text, what it is."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource" and hasattr(block.resource, "text"):
        return str(block.resource.text)
    if block.type in ("resource", "resource_link"):
        uri = block.uri if block.type == "resource_link" else block.resource.uri
        return f"[resource {plain_text(uri, 500)}]"
    return f"[{plain_text(block.type, 40)}, left out]"


def listing_primitive(mount: Mount) -> Primitive:
    """A primitive that connects to a server and returns what it says about its tools. Only `albert mount` registers it."""

    async def mount_server(
        _context: CallContext, name: str, server: str, hosts: list[str], secrets: list[str]
    ) -> list[dict[str, Any]]:
        listing: list[dict[str, Any]] = await (await _connections(_context)).to(mount).listing(_context)
        return listing

    texts = {"type": "array", "items": {"type": "string"}}
    return primitive_from_schema(
        "mount_server",
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "server": {"type": "string"}, "hosts": texts, "secrets": texts},
            "required": ["name", "server", "hosts", "secrets"],
        },
        mount_server,
        description="Connect to a server and list its tools.",
        result={"type": "array"},
        effects=effects_of(mount, {}),
        timeout=CALL_SECONDS,
    )


async def _connections(context: CallContext) -> Any:
    """The connections of the service. The library of the protocol is loaded here.

    Raises:
        Failure: `service_error` if the library is not installed.
    """
    try:
        # It takes half a second.
        module = await asyncio.to_thread(import_module, "albert_tools.builtins.mounts.connection")
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("albert_tools"):
            raise
        why = "the tools of mounted servers need the package `mcp`"
        raise Failure("service_error", why, hint=install_command("mcp")) from None
    return context.keep(module.Connections)

"""Pins the tools of a server: what they are called here, what is shown of them, and a hash of all that the server says about them.

The input is JSON as the server sent it, of any content. A tool that our language can't call is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from albert_tools.builtins.mounts.mount import TWICE, PinnedTool
from albert_tools.builtins.mounts.server_schemas import (
    MAX_DESCRIPTION,
    Unusable,
    identifier,
    parameters_schema,
    plain_text,
    result_schema,
)
from albert_tools.engine.model.bounds import KiB
from albert_tools.engine.model.definition import canonical, digest
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import look_alike
from albert_tools.engine.model.primitive import MAX_NAME

#: Tools of one server, and bytes of what it says about one of them.
MAX_TOOLS, MAX_TOOL_BYTES = 500, 64 * KiB

#: What a server says about a tool. Its other statements, such as icons, are shown to nobody.
_SAID = ("name", "description", "inputSchema", "outputSchema", "annotations")
#: The annotations. The first is about a tool that only reads; the others are about one that does more.
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class Pinned(NamedTuple):
    """The tools that can be mounted, for each other tool a sentence that says why not, and the hashes of all of them."""

    tools: tuple[PinnedTool, ...]
    refused: tuple[str, ...]
    hashes: Mapping[str, str]


def pinned_hash(tool: Mapping[str, Any]) -> str:
    """The hash of all that a server says about a tool. If it is nested too deeply, it has none, and is never accepted."""
    try:
        return digest({key: tool.get(key) for key in _SAID})
    except RecursionError:
        return "none"


def hashes_of(listing: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The hash of each tool in the listing of a server, by its name there."""
    hashes: dict[str, str] = {}
    for tool in listing:
        name = str(tool.get("name"))
        # Of several tools with one name, none is the accepted one.
        hashes[name] = TWICE if name in hashes else pinned_hash(tool)
    return hashes


def pinned(server: str, listing: Sequence[Mapping[str, Any]]) -> Pinned:
    """Pin the tools in the listing of a server.

    Args:
        server: The name of the mount.
        listing: The tools, as JSON of the protocol.

    Raises:
        Failure: `too_large`.
    """
    if len(listing) > MAX_TOOLS:
        raise Failure("too_large", f"{server} has more than {MAX_TOOLS} tools")
    tools: list[PinnedTool] = []
    refused: list[str] = []
    for tool in listing:
        shown = repr(plain_text(tool.get("name"), 80))
        try:
            size = len(canonical({key: tool.get(key) for key in _SAID}))
            if size > MAX_TOOL_BYTES:
                raise Unusable(f"its description and schema have {size:,} bytes; the limit is {MAX_TOOL_BYTES:,}")
            tools.append(_pinned(server, tool))
        except Unusable as why:
            refused.append(f"{shown}: {why}")
        except RecursionError:
            refused.append(f"{shown}: its schema is nested too deeply")
    return Pinned(tuple(_apart(server, tools, refused)), tuple(refused), hashes_of(listing))


def _pinned(server: str, tool: Mapping[str, Any]) -> PinnedTool:
    remote = str(tool.get("name"))
    name = identifier(remote)
    if len(server) + 1 + len(name) > MAX_NAME:
        raise Unusable(f"its name is longer than {MAX_NAME} characters")
    parameters, remote_names = parameters_schema(tool.get("inputSchema"))
    hints = tool.get("annotations")
    hints = hints if isinstance(hints, Mapping) else {}
    return PinnedTool(
        name=name,
        remote=remote,
        description=plain_text(tool.get("description"), MAX_DESCRIPTION),
        parameters=parameters,
        remote_names=remote_names,
        result=result_schema(tool.get("outputSchema")),
        hints={key: hints[key] for key in HINTS if isinstance(hints.get(key), bool)},
        hash=pinned_hash(tool),
    )


def _apart(server: str, tools: Iterable[PinnedTool], refused: list[str]) -> list[PinnedTool]:
    """The tools whose names can't be confused with each other. Of those that can, none is mounted: the order must not matter."""
    candidates = list(tools)
    kept = []
    for tool in candidates:
        others = [other for other in candidates if other is not tool]
        same = next((o.remote for o in others if o.name == tool.name), None)
        like = None if same else look_alike(tool.name, [o.name for o in others])
        if same is not None:
            shown, other = plain_text(tool.remote, 80), plain_text(same, 80)
            refused.append(f"{shown!r}: it and {other!r} would both be {server}.{tool.name}")
        elif like is not None:
            refused.append(f"{plain_text(tool.remote, 80)!r}: {server}.{tool.name} looks like {server}.{like}")
        else:
            kept.append(tool)
    return kept

"""What the owner has mounted: servers of the Model Context Protocol (MCP), each with the definitions that the owner has accepted.

The file ``mounts.json`` of the home has all of it, so a service knows the tools without starting a server. Only
`albert mount` writes it. A tool is pinned by a hash of everything that its server says about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from albert_tools.engine.model.definition import Schema
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import HomeFile

#: The folder in the state folder with the suspended tools of each mount: what has changed, by the hash of the accepted tool.
SUSPENDED = "mounts"
#: The hash of a tool whose name is listed more than once. No accepted tool has it.
TWICE = ""


class PinnedTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool as the owner has accepted it.

    Attributes:
        name: Its name in programs, without the name of the mount.
        remote: Its name at the server.
        description: The server's words, cut to a bounded text without invisible characters.
        parameters: The schema of its arguments, with only the keywords that a call is checked by.
        remote_names: The server's name of each parameter that has another one here.
        result: The schema of its structured result; None if it returns text.
        hints: The server's annotations: ``readOnlyHint``, …
        hash: The hash of everything that the server says about it.
    """

    name: str
    remote: str
    description: str
    parameters: Schema
    remote_names: dict[str, str]
    result: Schema | None
    hints: dict[str, bool]
    hash: str


class Mount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server: a `command` that is run confined, or a `url`.

    Attributes:
        name: The first part of the names of its tools.
        hosts: The hosts that the process of the server may reach.
        secrets: The secrets that its process has in its environment; for a `url`, the bearer token.
        trust: Whether its annotations count.
        tools: Its tools.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    trust: bool = False
    tools: tuple[PinnedTool, ...] = ()


def read_mounts(file: HomeFile) -> dict[str, Mount]:
    """The mounts by name; empty without a file.

    Raises:
        Failure: `damaged`, `io_error`.
    """
    data = file.read()
    if data is None:
        return {}
    try:
        return {mount.name: mount for mount in msgspec.json.decode(data, type=list[Mount])}
    except (msgspec.MsgspecError, RecursionError) as error:
        hint = "correct it, or delete it and mount the servers again"
        raise Failure("damaged", f"{file} can't be used: {error}", hint=hint) from None


def written(mounts: Iterable[Mount]) -> bytes:
    """The content of the file."""
    return msgspec.json.format(msgspec.json.encode(sorted(mounts, key=lambda m: m.name)), indent=1)


def suspended_tools(folder: Path, mount: Mount) -> dict[str, str]:
    """The tools that were suspended when they were last compared, each with what has changed."""
    changes = _stored(folder, mount)
    return {tool.name: changes[tool.hash] for tool in mount.tools if tool.hash in changes}


def _stored(folder: Path, mount: Mount) -> dict[str, str]:
    """What has changed, by the hash of the accepted tool."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / f"{mount.name}.json").read_bytes(), type=dict[str, str])
    return {}


def difference(tool: PinnedTool, hashes: Mapping[str, str]) -> str | None:
    """How a tool differs from the accepted one; None if it doesn't. `hashes`: those of the server's tools, by their names there."""
    now = hashes.get(tool.remote)
    if now == tool.hash:
        return None
    if now == TWICE:
        return "is listed more than once by its server"
    return "has another description or schema than the accepted one" if now else "is no longer at its server"


def note_suspended(folder: Path, mount: Mount, hashes: Mapping[str, str]) -> None:
    """Store the suspended tools of a mount for `suspended_tools`; `hashes` as for `difference`. If that fails, they are suspended
    nevertheless."""
    changes = {tool.hash: what for tool in mount.tools if (what := difference(tool, hashes)) is not None}
    if changes == _stored(folder, mount):
        return
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = folder / f".{mount.name}.new"
        new.write_bytes(msgspec.json.encode(changes))
        new.replace(folder / f"{mount.name}.json")

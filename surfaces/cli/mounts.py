"""``albert mount`` and ``albert unmount``: the MCP servers whose tools are primitives here.

A server is only mounted, and a changed tool is only accepted, after a person has seen what the server says about its tools. These
texts are hostile input: they are printed as quoted data, with escapes for everything that a terminal or a reader could mistake.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from albert_tools.builtins.mounts.mount import (
    SUSPENDED,
    Mount,
    PinnedTool,
    note_suspended,
    read_mounts,
    suspended_tools,
    written,
)
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import HomeFile
from albert_tools.engine.model.messages import counted
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.visible_text import escape_invisible, look_alikes
from albert_tools.surfaces.cli.service_options import home_of, open_service
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.builtins.mounts.pinning import Pinned
    from albert_tools.service import ToolService

_USAGE = "albert mount NAME -- COMMAND…, albert mount NAME URL, albert mount look NAME, or albert mount list"


def mount(options: argparse.Namespace, console: Console) -> int:
    """Mount a server, compare it with what was accepted, or list the mounts."""
    from albert_tools.surfaces.text.person import demand_person

    home = home_of(options)
    file = home.mounts
    match options.words:
        case [] | ["list"] if not options.server:
            demand_person("mounted servers are listed")
            return _list(file, home.local.state / SUSPENDED, console)
        case ["look", name] if not options.server:
            demand_person("a server's tools are accepted")
            return asyncio.run(_look(options, file, _mounted(file, name), console))
        case [name, *urls] if len(urls) + bool(options.server) == 1:
            demand_person("a server is mounted")
            return asyncio.run(_mount(options, file, _new(options, file, name, "".join(urls)), console))
    raise Usage("mount: name a server, and its command or URL", _USAGE)


def unmount(options: argparse.Namespace, console: Console) -> int:
    """Forget a server and its tools."""
    from albert_tools.surfaces.text.person import demand_person

    demand_person("a server is unmounted")
    file = home_of(options).mounts
    server = _mounted(file, options.name)
    _save(file, server.name, None)
    if console.json:
        console.document({"ok": True, "name": server.name})
    else:
        console.say(f"unmounted {server.name}; saved tools that call its tools can't run any more")
    return 0


def _new(options: argparse.Namespace, file: HomeFile, name: str, url: str) -> Mount:
    """The mount that the options describe."""
    from albert_tools.builtins.mounts.server_schemas import identifier
    from albert_tools.builtins.net.secrets import value_of
    from albert_tools.engine.policy.host_rules import read_host

    if name in ("list", "look") or identifier(name) != name or len(name) > 40:
        raise Usage(f"mount: {one_line(name)!r} can't be the name of a server", "use at most 40 letters, digits and _")
    if name in read_mounts(file):
        raise Failure("exists", f"there is a mounted server {name} already", hint=f"`albert unmount {name}` removes it")
    hosts = []
    for host in options.host:
        try:
            hosts.append(read_host(host))
        except ValueError as error:
            raise Usage(f"--host: {error}", "name each host that the server may reach") from None
        if hosts[-1] == "*":
            raise Usage("--host: * would be every host", "name each host that the server may reach")
    if url:
        _check_url(url, options)
    for secret in options.secret:
        value_of(secret)
    return Mount(name, tuple(options.server), url, tuple(hosts), tuple(options.secret), options.trust)


def _check_url(url: str, options: argparse.Namespace) -> None:
    from albert_tools.builtins.net.urls import read_url

    try:
        parsed = read_url(url)
    except Failure as failure:
        raise Usage(f"mount: {failure.message}", "write https://HOST/PATH, or a command after --") from None
    if parsed.scheme == "http" and parsed.host not in ("localhost", "127.0.0.1", "::1"):
        raise Usage("mount: the connection to another machine must be encrypted", "write https://")
    if options.host:
        raise Usage("--host is about a server that is a command; a URL names its own host", "leave it out")
    if len(options.secret) > 1:
        raise Usage("--secret: a URL takes one secret, which is sent as its bearer token", "give one")


async def _mount(options: argparse.Namespace, file: HomeFile, new: Mount, console: Console) -> int:
    async with _service(options) as service:
        pinned = await _pinned(service, new)
        accepted = msgspec.structs.replace(new, tools=pinned.tools)
        if not console.json:
            _show_server(accepted, console)
            for tool in accepted.tools:
                _show_tool(service, accepted, tool, console)
            _show_refused(pinned, console)
    if not accepted.tools:
        raise Failure(
            "not_found", f"{new.name} has no tool that can be mounted", details={"refused": list(pinned.refused)}
        )
    if not _confirmed(options, console, f"Mount {new.name} with {_count(accepted.tools)}?"):
        return 1
    _save(file, new.name, accepted)
    _note_differences(options, accepted, pinned)
    return _done(accepted, pinned, console, f"mounted {new.name}: {_count(accepted.tools)}")


async def _look(options: argparse.Namespace, file: HomeFile, known: Mount, console: Console) -> int:
    async with _service(options) as service:
        pinned = await _pinned(service, known)
        accepted = msgspec.structs.replace(known, tools=pinned.tools)
        before = {tool.remote: tool for tool in known.tools}
        changed = [tool for tool in pinned.tools if before.pop(tool.remote, None) != tool]
        if not console.json:
            _show_server(accepted, console)
            for tool in changed:
                old = next((t for t in known.tools if t.remote == tool.remote), None)
                console.say(console.paint("changed from" if old else "new", "yellow") + ":")
                if old is not None:
                    _show_tool(service, known, old, console)
                    console.say(console.paint("to", "yellow") + ":")
                _show_tool(service, accepted, tool, console)
            for tool in before.values():
                console.say(f"{console.paint('gone', 'yellow')}: {known.name}.{tool.name}")
            _show_refused(pinned, console)
    _note_differences(options, known, pinned)
    if not changed and not before:
        return _done(known, pinned, console, f"{known.name}: nothing has changed")
    if not _confirmed(options, console, f"Accept {_count(accepted.tools)} of {known.name} as they are now?"):
        return 1
    _save(file, known.name, accepted)
    _note_differences(options, accepted, pinned)
    return _done(accepted, pinned, console, f"accepted {known.name}")


def _service(options: argparse.Namespace) -> ToolService:
    """A service in which the connection to a server is approved: the person has just typed it."""
    from albert_tools.engine.authority.authorization import Answer, Question
    from albert_tools.surfaces.text.person import person

    async def ask(_: Question) -> Answer:
        return Answer("once", f"{person()}, by `albert mount`")

    return open_service(options, ask=ask, output_bytes=64 * 1024 * 1024)


async def _pinned(service: ToolService, server: Mount) -> Pinned:
    """Connect to a server and pin its tools. The connection is a call, so it is judged and recorded."""
    from albert_tools.builtins.mounts.mounted_tools import listing_primitive
    from albert_tools.builtins.mounts.pinning import pinned

    primitive = listing_primitive(server)
    service.register(primitive)
    where = server.url or json.dumps(server.command)
    arguments = {"name": server.name, "server": where, "hosts": list(server.hosts), "secrets": list(server.secrets)}
    listing = (await service.invoke(primitive.name, arguments)).value()
    return pinned(server.name, listing)


def _note_differences(options: argparse.Namespace, server: Mount, pinned: Pinned) -> None:
    """Note which accepted tools of a server differ from those that it has now."""
    note_suspended(home_of(options).local.state / SUSPENDED, server, pinned.hashes)


def _mounted(file: HomeFile, name: str) -> Mount:
    mounts = read_mounts(file)
    if name not in mounts:
        near = did_you_mean(name, mounts)
        raise Failure("not_found", f"there is no mounted server {one_line(name)!r}{near}", hint="`albert mount list`")
    return mounts[name]


def _save(file: HomeFile, name: str, server: Mount | None) -> None:
    """Write a mount, or delete it. Other processes may write at the same time."""
    with file.locked():
        mounts = read_mounts(file)
        mounts.pop(name, None)
        if server is not None:
            mounts[name] = server
        file.write(written(mounts.values()))


def _confirmed(options: argparse.Namespace, console: Console, question: str) -> bool:
    from albert_tools.surfaces.text.approval_prompt import confirmed

    if options.yes:
        return True
    if not console.interactive or sys.stdin is None or not sys.stdin.isatty():
        raise Usage(
            "mount: there is nobody to confirm it", "read what the server says, then add --yes, or run it in a terminal"
        )
    console.flush()
    if confirmed(question):
        return True
    console.note("nothing was changed")
    return False


def _done(server: Mount, pinned: Pinned, console: Console, said: str) -> int:
    if console.json:
        console.document({"ok": True, "mount": msgspec.to_builtins(server), "refused": list(pinned.refused)})
    else:
        console.say(said)
    return 0


def _list(file: HomeFile, state: Path, console: Console) -> int:
    mounts = read_mounts(file)
    if console.json:
        documents = [
            {**msgspec.to_builtins(server), "suspended": suspended_tools(state, server)} for server in mounts.values()
        ]
        console.document({"ok": True, "mounts": documents})
        return 0
    for server in mounts.values():
        _show_server(server, console)
        suspended = suspended_tools(state, server)
        for tool in server.tools:
            what = suspended.get(tool.name)
            said = (
                f"  {console.paint('suspended', 'yellow')}: it {what}; `albert mount look {server.name}`"
                if what
                else ""
            )
            console.say(f"  {server.name}.{tool.name}{said}", 4)
    if not mounts:
        console.note("no server is mounted; `albert mount NAME -- COMMAND…` mounts one")
    return 0


def _show_server(server: Mount, console: Console) -> None:
    import shlex

    console.say(f"{console.paint(server.name, 'cyan')}  {one_line(server.url or shlex.join(server.command))}", 4)
    sees = "" if server.url else "runs confined to the workspace; "
    hosts = "" if server.url else f"reaches {', '.join(server.hosts) or 'no host'}; "
    secrets = f"gets {', '.join(server.secrets)}" if server.secrets else "gets no secret"
    trust = "its annotations are trusted" if server.trust else "its annotations are ignored"
    console.say(console.paint(f"    {sees}{hosts}{secrets}; {trust}", "dim"), 4)


def _show_tool(service: ToolService, server: Mount, tool: PinnedTool, console: Console) -> None:
    from albert_tools.builtins.mounts.mounted_tools import mounted_primitive

    definition = mounted_primitive(server, tool).definition
    verdict = service.standing(definition).get("verdict") or "deny"
    console.say(f"  {console.paint(one_line(escape_invisible(definition.signature())), 'bold')}", 6)
    said = one_line(escape_invisible(json.dumps(tool.description, ensure_ascii=False)))
    console.say(f"      the server's words: {said}", 6)
    if alike := look_alikes(tool.description):
        console.say(f"      ! letters that look like others: {alike}", 6)
    does = {"allow": "allow", "ask": "ask about", "deny": "deny"}[verdict]
    console.say(f"      may {', '.join(definition.effects)}; the rules {does} each call", 6)


def _show_refused(pinned: Pinned, console: Console) -> None:
    for sentence in pinned.refused:
        console.say(f"  {console.paint('left out', 'yellow')}: {one_line(sentence)}", 6)


def _count(tools: tuple[PinnedTool, ...]) -> str:
    return counted(len(tools), "tool")

"""Shell completion. argcomplete completes commands and options; this module completes names, versions, ids and arguments.

argcomplete offers only what begins with the typed prefix. If a lookup raises a `Failure`, there are no completions.
"""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.tools.stored_tools import StoredTools
from albert_tools.surfaces.cli.service_options import home_of
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.hints import DIGITS

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import State

#: Versions that are offered.
MAX_VERSIONS = 20
#: Runs that are searched.
MAX_RUNS = 50


def completion(options: argparse.Namespace, console: Console) -> int:
    """Print the script for a shell: ``eval "$(albert completion bash)"``."""
    import argcomplete

    script = argcomplete.shellcode(["albert"], shell=options.shell) + "\n"  # type: ignore[attr-defined]
    if console.json:
        console.document({"ok": True, "shell": options.shell, "script": script})
    else:
        console.write(script)
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the completions that the shell requested, and exit."""
    import argcomplete

    # Offer options only after a dash. Otherwise they would hide the names.
    argcomplete.autocomplete(parser, always_complete_options=False)


def names(prefix: str, options: argparse.Namespace) -> list[str]:
    """The tools. The primitives are offered even if the store can't be read."""
    from albert_tools.builtins.catalog import PLACES

    with suppress(Failure):
        return [*PLACES, *saved(prefix, options)]
    return [*PLACES]


def saved(prefix: str, options: argparse.Namespace) -> list[str]:
    """The saved tools."""
    return [s.name for s in _store(options).list()]


def versions(prefix: str, options: argparse.Namespace) -> list[str]:
    """The versions of the tool on the command line, newest first."""
    history, _ = _store(options).history(getattr(options, "name", None) or "", MAX_VERSIONS)
    return [v.version[:DIGITS] for v in history]


def topics(prefix: str, options: argparse.Namespace) -> list[str]:
    """The topics of ``albert help``."""
    from albert_tools.engine.agent.language_help import topics

    return [*topics()]


def sessions(prefix: str, options: argparse.Namespace) -> list[str]:
    """The open sessions."""
    from albert_tools.engine.authority.sessions import Sessions

    return [s.id for s in Sessions(_log(options)).all() if not s.ended]


def approvals(prefix: str, options: argparse.Namespace) -> list[str]:
    """Approvals that can be shown or revoked."""
    return _approvals(options, ("open", "yes", "standing"))


def open_approvals(prefix: str, options: argparse.Namespace) -> list[str]:
    """Questions that can be answered."""
    return _approvals(options, ("open",))


def _approvals(options: argparse.Namespace, states: tuple[State, ...]) -> list[str]:
    from albert_tools.engine.authority.approvals import Approvals

    return [a.id for a in Approvals(_log(options)).all(states)]


def runs(prefix: str, options: argparse.Namespace) -> list[str]:
    """The newest runs."""
    return [r.id for r in Runs(_log(options)).list(MAX_RUNS)]


def unfinished_runs(prefix: str, options: argparse.Namespace) -> list[str]:
    """The newest runs that can be resumed or cancelled."""
    over = ("done", "failed", "cancelled")
    return [r.id for r in Runs(_log(options)).list(MAX_RUNS) if r.state not in over]


def arguments(prefix: str, options: argparse.Namespace) -> list[str]:
    """``key=`` for each argument that is still missing. After ``key=``, the possible values of the argument."""
    definition = _definition(options)
    key, equals, _ = prefix.partition("=")
    if equals:
        parameter = definition.parameter(key)
        return [f"{key}={value}" for value in (_values(parameter.schema) if parameter else [])]
    typed = {pair.partition("=")[0].removesuffix(":") for pair in getattr(options, "arguments", None) or []}
    return [f"{p.name}=" for p in definition.parameters if p.name not in typed]


def _values(schema: dict[str, Any]) -> list[str]:
    if schema.get("type") == "boolean":
        return ["true", "false"]
    constants = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]
    texts = [value if isinstance(value, str) else json.dumps(value) for value in constants]
    return texts + [text for part in schema.get("anyOf", ()) for text in _values(part)]


def _definition(options: argparse.Namespace) -> ToolDefinition:
    from albert_tools.builtins.catalog import PLACES, builtin

    name = getattr(options, "name", None) or ""
    if name in PLACES:
        return builtin(name).definition
    return _store(options).load(name, getattr(options, "version", None)).definition


def _store(options: argparse.Namespace) -> StoredTools:
    """The tool store.

    Raises:
        Failure: `io_error`.
    """
    return home_of(options).tools


def _log(options: argparse.Namespace) -> Record:
    return home_of(options).record

"""Shell completion. argcomplete completes commands and options; this module completes names, versions, ids and arguments.

If a lookup fails, there are no completions, because an error message would spoil the command line.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.tools.tool_store import TinyToolStore
from albert_tools.surfaces.cli.console import Console
from albert_tools.surfaces.cli.hints import DIGITS
from albert_tools.surfaces.cli.service_options import homes_of

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
    """The tools whose names begin with `prefix`."""
    from albert_tools.builtins.catalog import builtin_primitives

    return [p.name for p in builtin_primitives() if p.name.startswith(prefix)] + saved(prefix, options)


def saved(prefix: str, options: argparse.Namespace) -> list[str]:
    """The saved tools whose names begin with `prefix`."""
    try:
        return [s.name for s in _store(options).list() if s.name.startswith(prefix)]
    except Failure:
        return []


def versions(prefix: str, options: argparse.Namespace) -> list[str]:
    """The versions of the tool on the command line, newest first."""
    try:
        found, _ = _store(options).history(getattr(options, "name", None) or "", MAX_VERSIONS)
    except Failure:
        return []
    return [v.version[:DIGITS] for v in found if v.version.startswith(prefix)]


def codes(prefix: str, options: argparse.Namespace) -> list[str]:
    """The codes of errors and diagnostics."""
    from albert_tools.engine.check.codes import CODES as DIAGNOSTIC_CODES
    from albert_tools.engine.model.error_codes import CODES as ERROR_CODES

    return [code for code in (*ERROR_CODES, *DIAGNOSTIC_CODES) if code.startswith(prefix)]


def sessions(prefix: str, options: argparse.Namespace) -> list[str]:
    """The open sessions."""
    from albert_tools.engine.authority.sessions import Sessions

    try:
        return [s.id for s in Sessions(_log(options)).all() if not s.ended and s.id.startswith(prefix)]
    except Failure:
        return []


def approvals(prefix: str, options: argparse.Namespace) -> list[str]:
    """Approvals that can be shown or revoked."""
    return _approvals(prefix, options, ("open", "yes", "standing"))


def open_approvals(prefix: str, options: argparse.Namespace) -> list[str]:
    """Questions that can be answered."""
    return _approvals(prefix, options, ("open",))


def _approvals(prefix: str, options: argparse.Namespace, states: tuple[State, ...]) -> list[str]:
    from albert_tools.engine.authority.approvals import Approvals

    try:
        return [a.id for a in Approvals(_log(options)).all(states) if a.id.startswith(prefix)]
    except Failure:
        return []


def runs(prefix: str, options: argparse.Namespace) -> list[str]:
    """The newest runs."""
    try:
        return [r.id for r in Runs(_log(options)).list(MAX_RUNS) if r.id.startswith(prefix)]
    except Failure:
        return []


def unfinished_runs(prefix: str, options: argparse.Namespace) -> list[str]:
    """The newest runs that can be resumed or cancelled."""
    try:
        found = Runs(_log(options)).list(MAX_RUNS)
    except Failure:
        return []
    over = ("done", "failed", "cancelled")
    return [r.id for r in found if r.id.startswith(prefix) and r.state not in over]


def arguments(prefix: str, options: argparse.Namespace) -> list[str]:
    """``key=`` for each argument that is still missing. After ``key=``, the possible values of the argument."""
    definition = _definition(options)
    if definition is None:
        return []
    key, equals, _ = prefix.partition("=")
    if equals:
        parameter = definition.parameter(key)
        values = [f"{key}={value}" for value in (_values(parameter.schema) if parameter else [])]
        return [value for value in values if value.startswith(prefix)]
    typed = {pair.partition("=")[0].removesuffix(":") for pair in getattr(options, "arguments", None) or []}
    return [f"{p.name}=" for p in definition.parameters if p.name.startswith(prefix) and p.name not in typed]


def _values(schema: dict[str, Any]) -> list[str]:
    if schema.get("type") == "boolean":
        return ["true", "false"]
    found = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]
    texts = [value if isinstance(value, str) else json.dumps(value) for value in found]
    return texts + [text for part in schema.get("anyOf", ()) for text in _values(part)]


def _definition(options: argparse.Namespace) -> ToolDefinition | None:
    from albert_tools.builtins.catalog import builtin_primitives

    name = getattr(options, "name", None) or ""
    for primitive in builtin_primitives():
        if primitive.name == name:
            return primitive.definition
    try:
        return _store(options).load(name, getattr(options, "version", None)).definition
    except Failure:
        return None


def _store(options: argparse.Namespace) -> TinyToolStore:
    """The tool store.

    Raises:
        Failure: `io_error`.
    """
    homes = homes_of(options)
    return TinyToolStore(homes.tools, lambda: homes.cache)


def _log(options: argparse.Namespace) -> Record:
    return Record(homes_of(options).state / "record")

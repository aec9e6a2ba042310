"""Describes the effect of a call in one line: ``wrote notes.txt, 12 bytes``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.messages import counted
from albert_tools.surfaces.text.console import one_line

#: The type of a directory entry, in everyday words.
_TYPES = {"directory": "folder", "symlink": "link"}


def effect_line(kind: str, facts: Mapping[str, Any]) -> str:
    """One line about an effect. Empty for a read, and for commands that Albert Tools itself needed."""
    if kind == "write" and "artifact" in facts:
        return f"published {one_line(str(facts['artifact']))}, {_bytes(facts.get('size_bytes'))}"
    if kind == "write" and "batch" in facts:
        return f"queued {one_line(str(facts.get('called')))} for {counted(facts.get('items', 0), 'item')}"
    if kind in ("write", "delete"):
        path = one_line(str(facts.get("path")))
        if facts.get("type", "file") != "file":
            return f"{'made' if kind == 'write' else 'deleted'} the {_TYPES.get(str(facts['type']), 'object')} {path}"
        return f"{'wrote' if kind == 'write' else 'deleted'} {path}, {_bytes(facts.get('size_bytes'))}"
    if kind == "execute" and facts.get("operation") == "CONFIG":
        # Albert Tools asks git which programs it would start. Exit code 1 means no programs; here it would look like a failure.
        return ""
    if kind == "execute" and "server" in facts:
        return f"called {one_line(str(facts.get('remote')))} of the mounted server {one_line(str(facts['server']))}"
    if kind == "execute":
        return f"ran {one_line(_command(facts))!r}, {_ending(facts)}"
    if kind == "network" and facts.get("refused"):
        return f"did not reach {one_line(_asked(facts))} ({one_line(str(facts['refused']))})"
    if kind == "network":
        return f"asked {one_line(_asked(facts))}"
    return "" if kind == "read" else kind


def _bytes(size: Any) -> str:
    size = size if isinstance(size, int) else 0
    return counted(size, "byte")


def _asked(facts: Mapping[str, Any]) -> str:
    """The address that was requested, or the model with the tokens it used."""
    if "model" not in facts:
        return str(facts.get("url", ""))
    tokens = facts.get("model_tokens")
    about = "about " if facts.get("estimated") else ""
    used = f", {about}{counted(tokens, 'token')}" if isinstance(tokens, int) else ""
    return f"{facts['model']} of {facts.get('provider')}{used}"


def _ending(facts: Mapping[str, Any]) -> str:
    """How a command ended."""
    if facts.get("exit_code") is not None:
        return f"exit code {facts['exit_code']}"
    seconds = facts.get("seconds")
    return f"which was ended after {seconds:g} s" if isinstance(seconds, int | float) else "which did not end by itself"


def _command(facts: Mapping[str, Any]) -> str:
    """The command as a person would type it."""
    if "command" in facts:
        return str(facts["command"])
    if "argv" in facts:
        return shlex.join(facts["argv"])
    program = ["git", str(facts["operation"]).lower()] if "operation" in facts else [str(facts.get("program"))]
    return shlex.join([*program, *facts.get("args", [])])

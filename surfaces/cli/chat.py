"""``albert chat``: a chat with a model that calls the tools. It needs the extra ``chat``."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from albert_tools.engine.model.messages import install_command
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.usage_error import Usage


def chat(options: argparse.Namespace, console: Console) -> int:
    """Run the chat. Returns the exit code."""
    missing = [name for name in ("anthropic", "openai", "prompt_toolkit", "rich") if find_spec(name) is None]
    if missing:
        raise Usage(f"albert chat needs {', '.join(missing)}", f"install them: {install_command('chat')}")
    from albert_tools.surfaces.chat.command import run_chat

    return run_chat(options, console)

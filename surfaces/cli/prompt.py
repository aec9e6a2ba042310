"""``albert prompt``: the guide for a model that writes tools, see `engine.agent.guide`."""

from __future__ import annotations

import argparse

from albert_tools.surfaces.cli.service_options import in_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console


def prompt(options: argparse.Namespace, console: Console) -> int:
    """Print the guide."""
    tools = [name.strip() for name in options.tools.split(",") if name.strip()]
    text = in_service(options, lambda service: service.guide(tools, options.tokens, session=token(), commands=True))
    if console.json:
        console.document({"ok": True, "prompt": text})
    else:
        console.write(text)
    return 0

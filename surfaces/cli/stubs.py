"""``albert stubs``: the stub file for type checkers and editors, see `engine.agent.stub_file`."""

from __future__ import annotations

import argparse

from albert_tools.surfaces.cli.service_options import in_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console


def stubs(options: argparse.Namespace, console: Console) -> int:
    """Print the stub file."""
    text = in_service(options, lambda service: service.stubs(session=token()))
    if console.json:
        console.document({"ok": True, "stubs": text})
    else:
        console.write(text)
    return 0

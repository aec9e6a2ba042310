"""The fork server imports this module before it forks children (`tests.helpers.children`)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import argcomplete  # noqa: F401
import hypothesis  # noqa: F401
import psutil  # noqa: F401
import pytest  # noqa: F401
import tinydb  # noqa: F401
import yaml  # noqa: F401

import albert_tools
import tests.helpers.children  # noqa: F401
from albert_tools.grammar.parse import parse

# The other surfaces load the large libraries of their protocols, which few tests need.
LIBRARY = Path(albert_tools.__path__[0])
for package in ("engine", "builtins", "store", "surfaces/cli"):
    # Not `pkgutil`, which enters no folder without an `__init__.py`.
    for path in sorted(LIBRARY.glob(f"{package}/**/*.py")):
        if path.stem != "__main__":
            module = path.relative_to(LIBRARY.parent).with_suffix("").parts
            import_module(".".join(module).removesuffix(".__init__"))

# The parser's table takes long to build, and each home caches its own table.
parse("")

"""Packs a program of this package into one text, for a Python that can't import the package.

The processes that prepare a command have only the standard library: they may use the system's Python, and the package may not be
visible to them. So they get the source of their module, and of its `kernel` modules, on the command line.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from albert_tools.engine.sandbox.command.confinement import PATH

_ROOM = "albert_tools.engine.sandbox"

_LOADER = """
import sys
for name, text in {modules!r}:
    module = sys.modules[name] = type(sys)(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""


def python() -> str:
    """A Python interpreter for such a program: this one, or the system's if another user owns this one."""
    if os.access(sys.executable, os.X_OK):
        return sys.executable
    return shutil.which("python3", path=PATH) or sys.executable


def script(program: str, kernel: Sequence[str]) -> str:
    """The text of a program for ``-c``. It calls the program's `main`.

    Args:
        program: A module in `command` that defines `main`.
        kernel: The modules in `kernel` that it imports, in import order.
    """
    names = [*(f"{_ROOM}.kernel.{name}" for name in kernel), f"{_ROOM}.command.{program}"]
    return _LOADER.format(modules=[(name, _source(name)) for name in names])


def _source(name: str) -> str:
    spec = find_spec(name)
    assert spec is not None
    text: str = spec.loader.get_source(name)  # type: ignore[union-attr]
    return text

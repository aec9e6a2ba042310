"""Programs of this package as one text, for a Python that can't import it.

The processes that prepare a command have only the standard library: their Python may be the system's, and they may run where the
package isn't visible. So they get the source of their own module, and of the kernel's modules that it imports, on the command line.
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
    """A Python for such a program: this one, or the system's where this one belongs to another user."""
    if os.access(sys.executable, os.X_OK):
        return sys.executable
    return shutil.which("python3", path=PATH) or sys.executable


def script(program: str, kernel: Sequence[str]) -> str:
    """The text of a program that can be run with ``-c``; it calls the program's `main`.

    Args:
        program: A module of the command room, which defines `main`.
        kernel: The kernel's modules that it imports, each before those that import it.
    """
    names = [*(f"{_ROOM}.kernel.{name}" for name in kernel), f"{_ROOM}.command.{program}"]
    return _LOADER.format(modules=[(name, _source(name)) for name in names])


def _source(name: str) -> str:
    spec = find_spec(name)
    assert spec is not None
    text: str = spec.loader.get_source(name)  # type: ignore[union-attr]
    return text

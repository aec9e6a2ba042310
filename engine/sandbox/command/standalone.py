"""Packs a program of this package into one text, for a Python that can't import the package.

The processes that prepare a command have only the standard library: they may use the system's Python, and the package may not be
visible to them. So they get their module, and its `kernel` modules, as one text. It contains the compiled code too, because
compiling takes a new process some milliseconds. Only the same Python can load this code; another one compiles the sources.
"""

from __future__ import annotations

import marshal
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from albert_tools.engine.sandbox.command.confinement import PATH

_ROOM = "albert_tools.engine.sandbox"

_LOADER = """
import marshal, sys
for name, text, code in {modules!r}:
    module = sys.modules[name] = type(sys)(name)
    exec(marshal.loads(code) if sys.version == {version!r} else text, module.__dict__)
main = module.main
"""


def python() -> str:
    """A Python interpreter for such a program: this one, or the system's if another user owns this one.

    The real path, because a virtual environment takes a millisecond longer to start, and such a program imports nothing of it.
    """
    own = os.path.realpath(sys.executable)
    if os.access(own, os.X_OK):
        return own
    return shutil.which("python3", path=PATH) or sys.executable


def script(program: str, kernel: Sequence[str]) -> str:
    """The text of a program for `python`. It defines the program's `main`; append the call.

    Args:
        program: A module in `command` that defines `main`.
        kernel: The modules in `kernel` that it imports, in import order.
    """
    names = [*(f"{_ROOM}.kernel.{name}" for name in kernel), f"{_ROOM}.command.{program}"]
    modules = []
    for name in names:
        text = _source(name)
        modules.append((name, text, marshal.dumps(compile(text, name, "exec"))))
    return _LOADER.format(modules=modules, version=sys.version)


def _source(name: str) -> str:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    # Under pytest, a loader may have no source.
    return Path(spec.origin).read_text("utf-8")

"""The application's own primitives. The owner's rules list them: ``primitives_from: [shop.tools, "shop.mail:send_invoice"]``.

The service imports them once, when it starts. They are authorized, recorded and listed like the built-in primitives. A function
needs `@primitive`, which states its effects. If a primitive can't be imported, the service runs without it. The problem is then
reported by `albert doctor`, in lists, and to a caller of an unknown tool. Modules in the workspace are never imported: tools can
write in the workspace, and a tool must not be able to change the service.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.model.messages import describe_fault
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.primitive import Primitive


class _Missing(Exception):
    """The reason why an entry can't be used."""


def add_primitives(registry: ToolRegistry, entries: Iterable[str], workspace: str | None) -> None:
    """Import and register the primitives that `entries` name. Entries that fail go to `registry.import_problems`.

    Args:
        registry: The registry to which the primitives are added. A primitive is not added if its name is already used.
        entries: ``package.module:name`` for a primitive or a list of primitives; ``package.module`` for all primitives that are
            declared in a module.
        workspace: The absolute path of the workspace; modules in it are refused.
    """
    problems = list(registry.import_problems)
    imported = list(registry.imported)
    for entry in entries:
        try:
            for primitive in _found(entry, workspace):
                _register(registry, primitive)
                imported.append(primitive.name)
        except _Missing as missing:
            problems.append(f"primitives_from: {entry}: {missing}")
        except KeyboardInterrupt:
            raise
        except BaseException as fault:
            # A module can have a `__getattr__`, and its values can raise anything.
            problems.append(f"primitives_from: {entry}: it can't be read: {describe_fault(fault)}")
    registry.import_problems = tuple(problems)
    registry.imported = tuple(dict.fromkeys(imported))


def _register(registry: ToolRegistry, primitive: Primitive) -> None:
    try:
        registry.register(primitive)
    except ValueError as taken:
        raise _Missing(f"{taken}; give it a name of its own, @primitive(name=…)") from None


def _found(entry: str, workspace: str | None) -> list[Primitive]:
    name, _, attribute = entry.partition(":")
    module = _imported(name, workspace)
    if not attribute:
        own = [v for v in vars(module).values() if isinstance(v, Primitive) and v.function.__module__ == name]
        if not own:
            raise _Missing("it has no function under @primitive(effects=[…])")
        return own
    if not hasattr(module, attribute):
        raise _Missing(f"it has no {attribute!r}{did_you_mean(attribute, vars(module))}")
    value: Any = getattr(module, attribute)
    primitives = list(value) if isinstance(value, list | tuple) else [value]
    for each in primitives:
        if not isinstance(each, Primitive):
            what = "a function" if callable(each) else f"of type {type(each).__name__}"
            raise _Missing(f"it is {what} and no primitive; put @primitive(effects=[…]) over the function")
    return primitives


def _imported(name: str, workspace: str | None) -> ModuleType:
    """Import a module. Each parent package is checked before it is imported."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        above = ".".join(parts[:i])
        try:
            # A module's prints must not become part of our output.
            with contextlib.redirect_stdout(sys.stderr):
                spec = importlib.util.find_spec(above)
                if spec is None:
                    hint = (
                        "install it in the Python that runs Albert Tools"
                        if i == 1
                        else f"{'.'.join(parts[: i - 1])} has none"
                    )
                    raise _Missing(f"there is no module {above!r}: {hint}")
                _outside(
                    above,
                    [spec.origin if spec.has_location else None, *(spec.submodule_search_locations or ())],
                    workspace,
                )
                module = importlib.import_module(above)
        except (_Missing, KeyboardInterrupt):
            raise
        except BaseException as fault:
            # A module can raise anything, `SystemExit` too.
            raise _Missing(f"its import failed: {describe_fault(fault)}") from fault
    return module


def _outside(name: str, places: Iterable[str | None], workspace: str | None) -> None:
    if workspace is None:
        return
    root = os.path.realpath(workspace)
    for place in places:
        if place and os.path.commonpath([root, os.path.realpath(place)]) == root:
            raise _Missing(f"{name} is in the workspace, where tools can change it; install it elsewhere")

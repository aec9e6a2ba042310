"""The application's own primitives, which the owner's rules name: ``primitives_from: [shop.tools, "shop.mail:send_invoice"]``.

They are imported once, when the service starts, into its own process, and are authorized, recorded and listed like those that come
with Albert Tools. What can't be had is left out, so it can't be called, and is told: by `albert doctor`, by lists, and to whoever
calls a tool that there isn't. A function must stand under `@primitive`, for nobody else can say what its effects are. What lies in
the workspace is never imported: tools can write there, and what they write must not become part of what judges them.
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

from albert_tools.engine.call.errors import describe_fault
from albert_tools.engine.call.registry import ToolRegistry
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.primitive import Primitive


class _Missing(Exception):
    """Why an entry names nothing that can be used."""


def add_primitives(registry: ToolRegistry, entries: Iterable[str], workspace: str | None) -> None:
    """Import what `entries` name and register it; what can't be had goes to `registry.problems`.

    Args:
        registry: Where they go. A name that is taken stays with who has it.
        entries: ``package.module:name`` for a primitive, or a list of them, of that name; ``package.module`` for all primitives
            that are declared in a module.
        workspace: The folder that tools work in, absolute; modules in it are refused.
    """
    problems = list(registry.problems)
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
            # A module may answer for itself when it is asked for a name, and its values may be odd ones.
            problems.append(f"primitives_from: {entry}: what it names can't be looked at: {describe_fault(fault)}")
    registry.problems = tuple(problems)
    registry.imported = tuple(dict.fromkeys(imported))


def _register(registry: ToolRegistry, primitive: Primitive) -> None:
    try:
        registry.register(primitive)
    except ValueError:
        raise _Missing(
            f"the name {primitive.name!r} is taken by another primitive; give it one of its own, @primitive(name=…)"
        ) from None


def _found(entry: str, workspace: str | None) -> list[Primitive]:
    name, _, attribute = entry.partition(":")
    module = _imported(name, workspace)
    if not attribute:
        own = [v for v in vars(module).values() if isinstance(v, Primitive) and v.function.__module__ == name]
        if not own:
            raise _Missing("no function of it stands under @primitive(effects=[…])")
        return own
    if not hasattr(module, attribute):
        raise _Missing(f"there is no {attribute!r} in it{did_you_mean(attribute, vars(module))}")
    value: Any = getattr(module, attribute)
    found = list(value) if isinstance(value, list | tuple) else [value]
    for each in found:
        if not isinstance(each, Primitive):
            what = "a function" if callable(each) else f"of type {type(each).__name__}"
            raise _Missing(f"it is {what} and no primitive; put @primitive(effects=[…]) over the function")
    return found


def _imported(name: str, workspace: str | None) -> ModuleType:
    """The module, each package above it looked at before it is run."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        above = ".".join(parts[:i])
        try:
            # What a module prints while it is imported is no answer of ours.
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
            # Whatever somebody's module raises, `SystemExit` too.
            raise _Missing(f"its import failed: {describe_fault(fault)}") from fault
    return module


def _outside(name: str, places: Iterable[str | None], workspace: str | None) -> None:
    if workspace is None:
        return
    root = os.path.realpath(workspace)
    for place in places:
        if place and os.path.commonpath([root, os.path.realpath(place)]) == root:
            raise _Missing(f"{name} lies in the workspace, where tools can change it; install it elsewhere")

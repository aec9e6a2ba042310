"""The names that a program can use: a few built-ins, and façades of a few modules.

They are built once, before any worker is forked. A façade is a module object with only the names of its table, so a program can't
reach other names. CPython imports some modules at their first use. They are imported here, because a worker can't open files.
"""

from __future__ import annotations

import builtins
import copy
import functools
import importlib
import io
import os
import re
import time
import types
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.limits import USED_UP
from albert_tools.engine.sandbox.worker.prelude import ToolError

#: For each façade, the modules that its functions import during a call: C code with the program's built-ins (``strptime``,
#: ``f"{d:%Y}"``, templates of `re`), or a function of the library (`Counter.most_common`).
_WITHIN_CALLS: dict[str, tuple[str, ...]] = {
    "ast": ("re",),
    "calendar": ("datetime", "time", "locale"),
    "collections": ("heapq", "operator", "copyreg"),
    "copy": ("copyreg", "weakref"),
    "datetime": ("_strptime", "time", "calendar", "locale"),
    "decimal": ("numbers", "collections", "contextvars"),
    "difflib": ("heapq", "collections"),
    "fractions": ("decimal", "operator"),
    "html": ("html.entities",),
    "ipaddress": ("re",),
    "json": ("re",),
    "re": ("re", "copyreg", "functools", "enum"),
    "statistics": ("decimal", "bisect", "collections", "heapq", "random"),
    "string": ("re", "collections"),
    "textwrap": ("re",),
    "urllib.parse": ("re", "unicodedata", "ipaddress", "functools"),
    "uuid": ("hashlib",),
}
_INTERNAL = frozenset(name for names in _WITHIN_CALLS.values() for name in names)


def preload(modules: Sequence[str]) -> None:
    """Import the modules, and the modules that they import at their first use."""
    for name in modules:
        importlib.import_module(name)
        for part in _WITHIN_CALLS.get(name, ()):
            importlib.import_module(part)
    if "zoneinfo" in modules:
        _load_time_zones()
    for encoding in vocabulary.ENCODINGS:
        "".encode(encoding)
    for error in ("strict", "ignore", "replace", "backslashreplace", "xmlcharrefreplace", "namereplace"):
        "\xe9".encode("ascii" if error != "strict" else "utf-8", error)
    # Load the time zone and the locale.
    time.strftime("%c %Z %A %B %p", time.localtime(0))
    if "datetime" in modules:
        time.strptime("1970", "%Y")
    # For a relative path, the library would ask for the current folder. A program has no current folder.
    os.getcwd = lambda: "/"


def _load_time_zones() -> None:
    """Read the data of all time zones into memory. It is that of the package `tzdata`, so it is the same on every machine."""
    from zoneinfo import ZoneInfoNotFoundError, _common

    folder = os.path.dirname(str(importlib.import_module("tzdata").__file__))
    data: dict[str, bytes] = {}
    with open(os.path.join(folder, "zones"), encoding="ascii") as zones:
        for name in zones.read().split():
            with open(os.path.join(folder, "zoneinfo", name), "rb", buffering=0) as zone:
                data[name] = zone.read()

    def load(key: str) -> io.BytesIO:
        if key not in data:
            raise ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(data[key])

    _common.load_tzdata = load  # type: ignore[assignment]


def facades(modules: Iterable[str]) -> dict[str, types.ModuleType]:
    """The façades of `modules` and of their packages, by name."""
    made: dict[str, types.ModuleType] = {}
    for name in modules:
        real = importlib.import_module(name)
        facade = made.setdefault(name, types.ModuleType(name))
        for entry in vocabulary.facades()[name]:
            head = entry.split(".")[0]
            if hasattr(real, head):
                setattr(facade, head, _without_address(name, head, getattr(real, head)))
        package, _, child = name.rpartition(".")
        if package:
            setattr(made.setdefault(package, types.ModuleType(package)), child, facade)
    return made


#: The place of an object in memory, in CPython's text for it. It differs in each run.
_ADDRESS = re.compile(r" (?:at|@) 0x[0-9a-fA-F]+")


def _without_address(module: str, name: str, value: Any) -> Any:
    """A name of a module. The texts of the objects that it makes have no address."""
    if module == "hashlib" or (module, name) == ("csv", "writer"):
        return lambda *args, **kwargs: _wrapper(value(*args, **kwargs))
    if (module, name) == ("copy", "deepcopy"):
        # A second argument is filled with addresses.
        return lambda x: value(x)
    if (module, name) == ("ast", "literal_eval"):
        return functools.partial(_literal_eval, value)
    if isinstance(value, type) and value.__repr__ is object.__repr__:  # type: ignore[comparison-overlap]
        text = f"<{value.__module__}.{value.__qualname__} object>"
        return type(name, (value,), {"__repr__": lambda self: text, "__module__": value.__module__, "__slots__": ()})
    if type(value).__repr__ is object.__repr__ and not callable(value):  # type: ignore[comparison-overlap]
        # An object that the module has made, such as `calendar.month_name`. CPython's own object keeps its class.
        value = copy.copy(value)
        value.__class__ = _without_address(module, type(value).__name__, type(value))
    return value


def _literal_eval(read: Callable[[str], Any], node_or_string: str) -> Any:
    """`ast.literal_eval`, without the address of a node in its error."""
    try:
        return read(node_or_string)
    except ValueError as error:
        error.args = tuple(_ADDRESS.sub("", str(part)) for part in error.args)
        raise


class _Wrapper:
    """An object of C code whose class can't be extended. `_wrapper_class` adds its attributes."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return _ADDRESS.sub("", repr(self._inner))

    def __reduce_ex__(self, protocol: Any) -> Any:
        # No copy shares the inner object.
        return self._inner.__reduce_ex__(protocol)


def _wrapper(inner: Any) -> _Wrapper:
    return _wrapper_class(type(inner))(inner)  # type: ignore[arg-type]


@cache
def _wrapper_class(kind: type) -> type[_Wrapper]:
    """The wrapper for the objects of a class. It has the name of the class, and its public attributes."""
    names = [name for name in dir(kind) if not name.startswith("_")]
    own: dict[str, Any] = {name: property(attrgetter(f"_inner.{name}")) for name in names}
    if "copy" in own:
        own["copy"] = lambda self: _wrapper(self._inner.copy())
    return type(kind.__name__, (_Wrapper,), {**own, "__slots__": ()})


def importer(made: dict[str, types.ModuleType]) -> Callable[..., types.ModuleType]:
    """The `__import__` of programs. It finds façades and loads nothing.

    C code that imports during a call uses this function too, but it then takes the module from `sys.modules`. So such an import
    is not refused; it gets an empty module.
    """
    nothing = types.ModuleType("nothing")

    def import_(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> types.ModuleType:
        if level == 0 and name in made:
            return made[name] if fromlist or "." not in name else made[name.split(".")[0]]
        if level == 0 and name in _INTERNAL:
            return nothing
        raise ImportError(f"no module named {name!r}")

    return import_


def program_builtins(made: dict[str, types.ModuleType], print_: Callable[..., None]) -> dict[str, Any]:
    """The built-ins of programs."""
    namespace: dict[str, Any] = {name: getattr(builtins, name) for name in vocabulary.BUILTINS}
    namespace.update({name: getattr(builtins, name) for name in vocabulary.EXCEPTIONS})
    namespace["print"] = print_
    namespace["ToolError"] = ToolError
    namespace["__import__"] = importer(made)
    # Lowered f-strings use these functions. Programs can't name or replace them.
    namespace.update({"__str": str, "__repr": repr, "__ascii": ascii, "__format": format, "__join": "".join})
    namespace["__Fatal"] = USED_UP
    # A program can hide the plain names.
    namespace.update({"__Exception": Exception, "__dict": dict})
    # `type` alone would lead to classes.
    namespace.update({"__type": lambda value: type(value), "__type_name": lambda value: type(value).__name__})
    namespace["__factory"] = _Factory
    return namespace


class _Factory(functools.partial[Any]):
    """A lambda that makes the missing values of a `defaultdict`. Unlike that of a function, its text has no address."""

    def __repr__(self) -> str:
        return f"<function {self.func.__qualname__}>"

    def __deepcopy__(self, memo: Any) -> _Factory:
        return self

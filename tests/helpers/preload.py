"""The fork server imports this module before it forks children (`tests.helpers.children`)."""

from __future__ import annotations

import gc
import pkgutil
from importlib import import_module

import argcomplete  # noqa: F401
import hypothesis  # noqa: F401
import psutil  # noqa: F401
import pytest  # noqa: F401
import tinydb  # noqa: F401
import tree_sitter_bash  # noqa: F401
import yaml  # noqa: F401

import albert_tools
import tests.helpers.children  # noqa: F401
from albert_tools.builtins.catalog import PLACES
from albert_tools.grammar.parse import parse

# The other surfaces load the large libraries of their protocols, which few tests need.
for name in ("checkup", "service", *sorted({f"builtins.{place}" for place in PLACES.values()})):
    import_module(f"albert_tools.{name}")
for package in ("engine", "store", "surfaces.cli", "surfaces.worker"):
    for module in pkgutil.walk_packages(
        [f"{albert_tools.__path__[0]}/{package.replace('.', '/')}"], f"albert_tools.{package}."
    ):
        if not module.name.endswith("__main__"):
            import_module(module.name)

# The parser's table takes long to build.
parse("")

# What is never collected is never written, so a fork shares its pages.
gc.collect()
gc.freeze()

"""Imports point in one direction: between the folders, between the subfolders of the engine, and between modules.

Imports inside functions and under `TYPE_CHECKING` count too. Python never runs into such a circle, but a reader does.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: The other folders that each folder may import.
FOLDERS = {
    "grammar": set[str](),
    "engine": {"grammar"},
    "builtins": {"grammar", "engine"},
    "store": {"grammar", "engine"},
    "telemetry": {"grammar", "engine"},
    "albert_tools": {"grammar", "engine", "builtins", "store", "telemetry"},
    "surfaces": {"grammar", "engine", "builtins", "store", "telemetry", "albert_tools"},
}

#: The other subfolders of the engine that each subfolder may import. Modules directly in the engine may import all of
#: them.
ROOMS = {
    "model": set[str](),
    "check": {"model"},
    "compile": {"model", "check"},
    "analysis": {"model", "check"},
    "sandbox.kernel": {"model"},
    "sandbox.worker": {"model", "sandbox.kernel"},
    "sandbox.command": {"model", "sandbox.kernel"},
    "judging": {"model", "check", "compile", "analysis", "sandbox.worker"},
    "shell": {"model"},
    "policy": {"model", "shell"},
    "workspace": {"model", "policy", "sandbox.command"},
    "authority": {"model", "policy", "workspace"},
    "call": {"model", "sandbox.worker", "policy", "workspace", "authority"},
    "runs": {"model", "sandbox.worker", "policy", "authority", "call"},
    "pipeline": {"model", "sandbox.worker", "shell", "policy", "workspace", "authority", "call", "runs"},
    "review": {"model", "shell", "authority", "call", "runs"},
    "suggest": {"model"},
    # The agent's own tools use the service, so it may import everything but is imported by nothing in the engine.
    "agent": {"model", "check", "authority", "call", "policy", None},
}


@cache
def modules() -> dict[str, Path]:
    """Return every module of the product, by its name without `albert_tools`: `engine.policy.hosts`."""
    found = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).glob("*.py" if folder == "albert_tools" else "**/*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def named(target: str) -> str:
    """Shorten `albert_tools.engine.model` to `engine.model`. Modules directly in the package keep the package's name."""
    inner = target.removeprefix("albert_tools.")
    return inner if inner.partition(".")[0] in FOLDERS else target


@cache
def imports(module: str) -> frozenset[str]:
    """Return the modules of the product that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = named(f"{node.module}.{alias.name}")
                found.add(inner if inner in modules() else named(node.module))
        elif isinstance(node, ast.Import):
            found |= {named(alias.name) for alias in node.names}
    return frozenset(found & modules().keys() - {module})


def room(module: str) -> str | None:
    """Return the subfolder of the engine that contains a module. Returns None for modules outside every subfolder."""
    inner = module.removeprefix("engine.") + "."
    return next((r for r in ROOMS if module != inner and inner.startswith(f"{r}.")), None)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_import_one_way(folder: str) -> None:
    allowed = FOLDERS[folder] | {folder}
    here = [m for m in modules() if m.partition(".")[0] == folder]
    wrong = [f"{m} -> {other}" for m in here for other in imports(m) if other.partition(".")[0] not in allowed]
    assert here
    assert wrong == []


@pytest.mark.parametrize("name", ROOMS)
def test_subfolders_of_the_engine_import_one_way(name: str) -> None:
    allowed = ROOMS[name] | {name}
    here = [m for m in modules() if m.startswith("engine.") and room(m) == name]
    targets = [(m, other) for m in here for other in imports(m) if other.startswith("engine.")]
    assert here
    assert [f"{m} -> {other}" for m, other in targets if room(other) not in allowed] == []


def test_the_texts_of_the_surfaces_import_no_surface() -> None:
    here = [m for m in modules() if m.startswith("surfaces.text.")]
    assert here
    assert [
        f"{m} -> {other}" for m in here for other in imports(m) if other.startswith("surfaces.") and other not in here
    ] == []


def test_no_two_modules_import_each_other() -> None:
    pairs = [f"{m} <-> {other}" for m in modules() for other in imports(m) if m < other and m in imports(other)]
    assert pairs == []


def test_no_file_name_occurs_twice_in_the_engine() -> None:
    names = Counter(path.name for module, path in modules().items() if module.startswith("engine"))
    assert [name for name, count in names.items() if count > 1 and name != "__init__.py"] == []


def test_no_file_name_occurs_twice_in_the_tests() -> None:
    names = Counter(path.name for path in (ROOT / "tests").glob("**/*.py"))
    assert [
        name for name, count in names.items() if count > 1 and name not in ("__init__.py", "__main__.py", "conftest.py")
    ] == []


def test_every_folder_with_modules_is_installed() -> None:
    """The wheel has the packages that `pyproject.toml` lists. The clone runs without the list."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT).parts for path in modules().values()}
    assert sorted(listed) == sorted(
        ".".join(["albert_tools", *(p for p in parts if p != "albert_tools")]) for parts in folders
    )


def test_the_surfaces_use_no_private_parts_of_the_service() -> None:
    """A surface says to the service what it needs. What the service judges calls with stays inside of the engine."""
    found = [
        f"{module}: {node.attr}"
        for module, path in modules().items()
        if module.startswith(("surfaces.", "albert_tools."))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if isinstance(node.value, ast.Name | ast.Attribute) and ast.unparse(node.value).endswith("service")
    ]
    assert found == []

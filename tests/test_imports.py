"""Dependencies point one way: each folder imports only from its left."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ["grammar", "engine", "builtins", "store", "telemetry", "albert_tools", "surfaces"]
MAY = {
    "grammar": {"grammar"},
    "engine": {"grammar", "engine"},
    "builtins": {"grammar", "engine", "builtins"},
    "store": {"grammar", "engine", "store"},
    "telemetry": {"grammar", "engine", "telemetry"},
    "albert_tools": {"grammar", "engine", "builtins", "store", "telemetry", "albert_tools"},
    "surfaces": set(ORDER),
}


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "albert_tools":
                names = [f"albert_tools.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        for name in names:
            if name == "albert_tools" or name.startswith("albert_tools."):
                part = [*name.split("."), "albert_tools"][1]
                found.add(part if part in ORDER else "albert_tools")
    return found


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_imports_only_from_its_left(folder: str) -> None:
    files = [p for p in sorted((ROOT / folder).glob("**/*.py")) if not p.is_symlink()]
    if folder == "albert_tools":
        files = sorted((ROOT / folder).glob("*.py"))
    wrong = {str(p.relative_to(ROOT)): imported(p) - MAY[folder] for p in files}
    assert not {path: parts for path, parts in wrong.items() if parts}

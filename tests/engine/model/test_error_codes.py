"""The registry of error codes. Each code is raised somewhere in the product, and each kind has the form of a class name."""

from __future__ import annotations

import re
from pathlib import Path

from albert_tools.engine.model.error_codes import CODES

ROOT = Path(__file__).parents[3]
FOLDERS = ("engine", "builtins", "store", "albert_tools", "surfaces", "telemetry")


def test_each_code_is_used() -> None:
    product = [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "error_codes.py" and not path.is_symlink()
    ]
    used = {name for path in product for name in re.findall(r'"([a-z_]+)"', path.read_text(encoding="utf-8"))}
    assert sorted(set(CODES) - used) == []


def test_each_kind_is_a_class_name() -> None:
    assert [code.kind for code in CODES.values() if not re.fullmatch(r"([A-Z][a-z]*)+", code.kind)] == []

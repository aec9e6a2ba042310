"""``albert stubs``: what it prints, as type checkers understand it. The commands are those of docs/editors.md."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService, primitive_from_schema
from tests.surfaces.conftest import ROOT, TOOLS, Albert

PAGE = (ROOT / "docs" / "editors.md").read_text("utf-8")
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "inner": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["name"],
    "additionalProperties": False,
}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer"},
        "kind": {"enum": ["a", "b", None]},
        "many": {"type": "array", "items": {"type": ["integer", "null"]}, "default": [123456789] * 10},
    },
    "required": ["kind"],
}
RESULT = {
    "type": "object",
    "properties": {"content-type": {"type": "string"}, "tree": {"$ref": "#/$defs/tree"}, "more": {"type": "object"}},
    "required": ["content-type", "tree"],
    "additionalProperties": False,
    "$defs": {"tree": TREE},
}
ODD = '''def odd() -> None:
    """Try the file."""
    found = tools.crm.list(kind="a", limit=1)
    reveal_type(found["content-type"])
    reveal_type(found["tree"]["inner"][0]["inner"])
    found["more"]
    tools.crm.list(kind="c", limit=None)
    tools.crm.str()
'''
WRONG = '''def wrong(path: str) -> str:
    """Make mistakes."""
    tools.read_file(path=3)
    tools.read_flie(path=path)
    tools.count_lines(folder=".", deep=True)
    texts = parallel(tools.read_file(path=p) for p in [path])
    text, info = parallel(tools.read_file(path=path), tools.file_info(path=path))
    reveal_type((texts, text, info["sha256"]))
    return info["size_byte"]
'''


def checked(folder: Path) -> list[str]:
    """The codes of what mypy reports in a folder with the stub file, and the types that it reveals; by the commands of the page."""
    *_, script = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", script.replace("$ mkdir", "mkdir").replace("\n$ ", "\n")],
        cwd=folder,
        env={**os.environ, "PATH": path, "MYPY_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    found = re.findall(r"^checked/(\S+:\d+): (?:error: .*\[(.*)\]|note: Revealed type is \"(.*)\")$", done.stdout, re.M)
    assert len(found) == len(re.findall("error: |Revealed", done.stdout)), done.stdout
    return [" ".join(filter(None, parts)) for parts in found]


@pytest.mark.slow
def test_mypy_knows_the_tools_and_accepts_the_examples(albert: Albert) -> None:
    sources = sorted(TOOLS.glob("*.tool"))
    assert albert("define", *map(str, sources)).code == 0
    for source in sources:
        albert.write(source.name, source.read_text("utf-8"))
    albert.write("wrong.tool", WRONG)
    albert.write("__builtins__.pyi", albert("stubs").out)
    assert sorted(checked(albert.project)) == [
        # The first tool of the README returns the result of a tool as a `dict`; the page says why this is reported.
        "find_and_replace.py:17 return-value",
        "wrong.py:3 arg-type",
        "wrong.py:4 attr-defined",
        "wrong.py:5 call-arg",
        "wrong.py:8 tuple[list[str], str, str | None]",
        "wrong.py:9 typeddict-item",
    ]


def test_any_schema_and_any_text_make_a_valid_file(tmp_path: Path) -> None:
    said = 'Find """ and \\u0041 and \\" and \x1b\u202e.\n\nReturns "all"'
    odd = [
        primitive_from_schema("crm.list", PARAMETERS, lambda **_: {}, description=said, result=RESULT),
        primitive_from_schema("crm.str", {"type": "object"}, lambda: None, description=said),
    ]
    with SyncToolService.open(home=tmp_path / "home", builtins=[], primitives=odd) as service:
        text = service.stubs()
    methods = {n.name: ast.get_docstring(n) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
    assert methods["str"] == said.replace("\x1b\u202e", "\\x1b\\u202e")
    (tmp_path / "__builtins__.pyi").write_text(text)
    (tmp_path / "odd.tool").write_text(ODD)
    assert [re.sub(r"TypedDict\(.*\}\)", "tree", line) for line in checked(tmp_path)] == [
        "odd.py:4 str",
        "odd.py:5 list[tree]",
        "odd.py:7 arg-type",
        "odd.py:7 arg-type",
    ]


@pytest.mark.surfaces
def test_pyright_knows_the_tools_without_an_import(albert: Albert) -> None:
    albert.write("wrong.tool", WRONG)
    albert.write("__builtins__.pyi", albert("stubs").out)
    command = [Path(sys.executable).parent / "basedpyright", "--level", "error", "wrong.tool"]
    done = subprocess.run(command, cwd=albert.project, capture_output=True, text=True)
    assert re.findall(r"wrong.tool:(\d+):", done.stdout) == ["3", "4", "5", "9"]


def test_a_session_sees_the_tools_of_its_lease(albert: Albert) -> None:
    albert.write("shout.tool", 'def shout(text: str) -> str:\n    """Shout."""\n    return text.upper()\n')
    assert albert("define", "shout.tool").code == 0
    token = albert("session", "new", "--tools", "read_file,shout").out.strip()
    text = albert("stubs", "--json", env={"ALBERT_SESSION": token}).document()["stubs"]
    (tools,) = [n for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == "_Tools"]
    assert [n.name for n in tools.body if isinstance(n, ast.FunctionDef)] == ["read_file", "shout"]
    assert albert("stubs", env={"ALBERT_SESSION": "alb_no"}).code == 3

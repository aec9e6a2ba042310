"""find_files and search_text on real folders: what they find, what they leave alone, and where they stop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from albert_tools.builtins.files import line_search
from albert_tools.builtins.files.find_files import find_files
from albert_tools.builtins.files.line_search import find_ripgrep
from albert_tools.builtins.files.search_text import search_text
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.workspace.workspace import Workspace

RIPGREP = find_ripgrep("/nowhere")


async def find(context: Any, pattern: str, **more: Any) -> Any:
    return (await call_primitive(find_files, {"pattern": pattern, **more}, context))["paths"]


async def search(context: Any, pattern: str, **more: Any) -> Any:
    return await call_primitive(search_text, {"pattern": pattern, **more}, context)


def lines(result: Any) -> list[tuple[str, int]]:
    return [(m["path"], m["line"]) for m in result["matches"]]


@pytest.fixture(params=["ripgrep", "re2"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way of searching; everything here must hold for both."""
    if request.param == "re2":
        monkeypatch.setattr(line_search, "find_ripgrep", lambda workspace: None)
    elif RIPGREP is None:
        pytest.skip("ripgrep is not installed")
    return str(request.param)


@pytest.fixture
def tree(root: Path) -> Path:
    for path, text in {
        "a.py": "import os\n",
        "src/b.py": "import re\nimport os\n",
        "src/.hidden/c.py": "import os",
        "src/node_modules/d.py": "import os\n",
        ".git/e.py": "import os\n",
        ".gitignore": "src\n*.py\n",
        ".ignore": "*\n",
        ".rgignore": "*\n",
        "src/f.bin": "import os\n\0",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "latin").write_bytes(b"import os \xff\n")
    (root.parent / "outside").mkdir()
    (root.parent / "outside" / "g.py").write_text("import os\n")
    (root / "out").symlink_to("../outside")
    (root / "link.py").symlink_to("../outside/g.py")
    os.mkfifo(root / "fifo.py")
    return root


async def test_finding(context: Any, tree: Path) -> None:
    all_of = ["a.py", "src/.hidden/c.py", "src/b.py", "src/node_modules/d.py"]
    assert await find(context, "*.py") == all_of
    assert await find(context, "*.py", path="src") == all_of[1:]
    assert await find(context, "*.py", path=str(tree / "src")) == all_of[1:]
    assert await find(context, "b.py", path="src/b.py") == ["src/b.py"]
    assert await find(context, "*.py", exclude=["node_modules", ".*"]) == ["a.py", "src/b.py"]
    assert await find(context, "*.py", exclude=["src/*"]) == ["a.py"]
    assert await find(context, "*", type="directory") == [".git", "src", "src/.hidden", "src/node_modules"]
    assert await find(context, "*.py", type="any") == [*all_of[:1], "fifo.py", "link.py", *all_of[1:]]
    assert await find(context, "*.py", path=".git") == [".git/e.py"]
    assert await find(context, "*.rs") == []


async def test_finding_no_more_than_wanted(context: Any, tree: Path) -> None:
    for limit, truncated in ((3, True), (4, False), (5, False)):
        found = await call_primitive(find_files, {"pattern": "*.py", "limit": limit}, context)
        assert (len(found["paths"]), found["truncated"]) == (min(limit, 4), truncated)


async def test_searching(context: Any, tree: Path, engine: str) -> None:
    """Neither ignore files nor links have a say; what is no text is passed over."""
    found = await search(context, r"^import o.$")
    assert lines(found) == [("a.py", 1), ("src/.hidden/c.py", 1), ("src/b.py", 2), ("src/node_modules/d.py", 1)]
    assert (found["files"], found["skipped"], found["truncated"]) == (7, 2, False)
    assert lines(await search(context, "import o.", path="src", exclude=["node_modules", ".*"])) == [("src/b.py", 2)]
    assert lines(await search(context, "IMPORT R.", include=["*.py"], ignore_case=True)) == [("src/b.py", 1)]
    assert lines(await search(context, "o.", path="src/b.py")) == [("src/b.py", 1), ("src/b.py", 2)]
    with pytest.raises(Failure) as caught:
        await search(context, "o.", path="out")
    assert caught.value.rule == "outside_workspace"


async def test_searching_no_more_than_wanted(context: Any, tree: Path, engine: str) -> None:
    for limit, count, files in ((1, 1, 5), (3, 3, 7), (4, 4, 7), (9, 4, 7)):
        found = await search(context, r"import\sos", limit=limit)
        assert (len(found["matches"]), found["truncated"]) == (count, limit < 4)
        assert found["files"] == files


async def test_a_long_line_is_cut(context: Any, root: Path, engine: str) -> None:
    (root / "a").write_text("x" + "é" * 5000 + "end\n" + "\U0001f600" * 600)
    found = await search(context, r"end$|\x{1f600}")
    assert [m["text"] for m in found["matches"]] == ["x" + "é" * 499, "\U0001f600" * 500]


async def test_a_program_in_the_workspace_is_not_run(context: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = root / "rg"
    program.write_text(f"#!/bin/sh\ntouch {root}/was-run\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}:.:{os.environ['PATH']}")
    monkeypatch.chdir(root)
    assert lines(await search(context, "touc.")) == [("rg", 2)]
    assert not (root / "was-run").exists()


CONTENT = st.one_of(st.text("ab\n é\r", max_size=40).map(str.encode), st.binary(max_size=40))
SEARCHED = st.sampled_from(["a.", "^b", "a$", "[^a]", r"\bb", "é|a{2}", r"\s+$", "x*", r"a\W"])


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CONTENT, max_size=6), SEARCHED, st.booleans(), st.integers(1, 10))
def test_the_same_with_ripgrep_and_without(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], pattern: str, ignore_case: bool, limit: int
) -> None:
    root = tmp_path_factory.mktemp("search").resolve()
    for n, content in enumerate(contents):
        (root / f"d{n % 2}").mkdir(exist_ok=True)
        (root / f"d{n % 2}" / f"{n}").write_bytes(content)
    found = []
    for way in (find_ripgrep, lambda workspace: None):
        with pytest.MonkeyPatch.context() as patch, Workspace(root) as workspace:
            patch.setattr(line_search, "find_ripgrep", way)
            effects: list[Any] = []
            context = Told(workspace, effects)
            result = search_text.function(context, pattern, ignore_case=ignore_case, limit=limit)
            found.append((result, effects))
    assert found[0] == found[1]


class Told:
    """A call context that remembers the effects."""

    def __init__(self, workspace: Workspace, effects: list[Any]) -> None:
        self.workspace = workspace
        self._effects = effects

    def effect(self, kind: str, **facts: Any) -> None:
        self._effects.append((kind, facts))


async def test_what_is_too_deep_is_said_and_can_be_passed_over(context: Any, root: Path) -> None:
    (root / "near.txt").write_text("needle\n")
    folder = root / "deep"
    for _ in range(210):
        folder.mkdir()
        folder /= "d"
    (folder.parent / "far.txt").write_text("needle\n")
    for asked in (find(context, "*.txt"), search(context, "needle")):
        with pytest.raises(Failure) as caught:
            await asked
        assert (caught.value.code, "200 deep" in caught.value.message) == ("too_large", True)
    assert await find(context, "*.txt", exclude=["deep"]) == ["near.txt"]
    assert lines(await search(context, "needle", exclude=["deep"])) == [("near.txt", 1)]
    assert await find(context, "*.txt", path="deep" + "/d" * 100) == ["deep" + "/d" * 209 + "/far.txt"]

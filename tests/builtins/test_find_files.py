"""find_files and search_text on real folders: the files that they find, the files that they skip, and their limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins.files.find_files import find_files
from albert_tools.builtins.files.search_text import search_text
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive


async def find(context: Any, pattern: str, **more: Any) -> Any:
    return (await call_primitive(find_files, {"pattern": pattern, **more}, context))["paths"]


async def search(context: Any, pattern: str, **more: Any) -> Any:
    return await call_primitive(search_text, {"pattern": pattern, **more}, context)


def lines(result: Any) -> list[tuple[str, int]]:
    return [(m["path"], m["line"]) for m in result["matches"]]


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


async def test_the_limit_of_finding(context: Any, tree: Path) -> None:
    for limit, truncated in ((3, True), (4, False), (5, False)):
        found = await call_primitive(find_files, {"pattern": "*.py", "limit": limit}, context)
        assert (len(found["paths"]), found["truncated"]) == (min(limit, 4), truncated)


async def test_searching(context: Any, tree: Path) -> None:
    """Ignore files and links have no effect; binary files are skipped."""
    found = await search(context, r"^import o.$")
    assert lines(found) == [("a.py", 1), ("src/.hidden/c.py", 1), ("src/b.py", 2), ("src/node_modules/d.py", 1)]
    assert (found["files"], found["skipped"], found["truncated"]) == (7, 2, False)
    assert lines(await search(context, "import o.", path="src", exclude=["node_modules", ".*"])) == [("src/b.py", 2)]
    assert lines(await search(context, "IMPORT R.", include=["*.py"], ignore_case=True)) == [("src/b.py", 1)]
    assert lines(await search(context, "o.", path="src/b.py")) == [("src/b.py", 1), ("src/b.py", 2)]
    with pytest.raises(Failure) as caught:
        await search(context, "o.", path="out")
    assert caught.value.rule == "outside_workspace"


async def test_the_limit_of_searching(context: Any, tree: Path) -> None:
    for limit, count, files in ((1, 1, 5), (3, 3, 7), (4, 4, 7), (9, 4, 7)):
        found = await search(context, r"import\sos", limit=limit)
        assert (len(found["matches"]), found["truncated"]) == (count, limit < 4)
        assert found["files"] == files


async def test_a_long_line_is_cut(context: Any, root: Path) -> None:
    (root / "a").write_text("x" + "é" * 5000 + "end\n" + "\U0001f600" * 600)
    found = await search(context, r"end$|\x{1f600}")
    assert [m["text"] for m in found["matches"]] == ["x" + "é" * 499, "\U0001f600" * 500]


async def test_folders_that_are_too_deep_can_be_excluded(context: Any, root: Path) -> None:
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

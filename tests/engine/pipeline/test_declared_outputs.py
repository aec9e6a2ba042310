"""Outputs that contradict what their primitive declares, and the declarations of the built-in primitives on real files."""

from __future__ import annotations

from typing import Any

import pytest

from albert_tools import primitive


@primitive(effects=["read"], paths={"path": "read"}, outputs={"": "at most limit items", "[*]": "below path"})
def names(path: str, found: list[str], limit: int = 2) -> list[str]:
    """Return the names that it is given."""
    return found


@pytest.fixture
def bench(make_bench: Any) -> Any:
    return make_bench(primitives=[names], governance={"allow": ["move_file", "delete_file"]})


def test_a_listing_that_names_a_path_above_its_folder_fails(bench: Any) -> None:
    assert bench.value("names", path="src", found=["src/a"]) == ["src/a"]
    error = bench.error("names", path="src", found=["src/a", "secrets"])
    assert (error.code, error.tool) == ("invalid_result", "names")
    assert error.message == (
        "the output of names contradicts its declaration: [*] is declared as `below path`, which is false for 'secrets'"
    )
    assert bench.error("names", path=".", found=["a", "b", "c"]).message == (
        "the output of names contradicts its declaration: the output is declared as `at most limit items`, "
        "which is false for 3 items"
    )
    bench.define(
        'try:\n        return tools.names(path="src", found=["x"])\n    except ToolError as e:\n        return e.code'
    )
    assert bench.value("t") == "invalid_result"


def test_the_declarations_of_file_tools_hold_for_every_spelling_of_a_path(bench: Any) -> None:
    folder = bench.work / "src" / "..inner"
    folder.mkdir(parents=True)
    (folder / "a b.txt").write_text("one\n")
    (bench.work / "link").symlink_to("src")
    for path in (".", "src", "./src//", str(bench.work), f"{bench.work}/src/", "link", "link/..inner", "src/..inner"):
        listed = bench.value("list_directory", path=path, recursive=True)
        found = bench.value("find_files", path=path, pattern="*.txt")["paths"]
        lines = bench.value("search_text", path=path, pattern="one")["matches"]
        assert found
        assert {entry["path"] for entry in listed} >= set(found) == {line["path"] for line in lines}
    file = bench.value("find_files", path="link/..inner/a b.txt", pattern="*")
    assert file["paths"] == ["link/..inner/a b.txt"]
    for path in ("new.txt", "./src//new.txt", f"{bench.work}/src/new.txt"):
        assert bench.value("write_file", path=path, content="x")["path"] in ("new.txt", "src/new.txt")
        assert bench.value("edit_file", path=path, old_text="x", new_text="y")["line"] == 1
        assert bench.value("copy_file", source=path, target=f"{path}.copy")["size_bytes"] == 1
        assert bench.value("move_file", source=f"{path}.copy", target=f"{path}.moved")["size_bytes"] == 1
        assert bench.value("delete_file", path=f"{path}.moved")["type"] == "file"
        assert not bench.value("make_directory", path="src/")["created"]

"""`similar` names saved tools that do nearly the same, and no tool that clearly does something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from albert_tools.engine.agent.similar import LEAST, MAX_SIMILAR, similar, similarity
from albert_tools.engine.model.definition import ToolDefinition, ToolParameter
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers.versions import make

REPLACE = ("find_and_replace", "path find replace", "Replace every occurrence of a text in a file.")
TODOS = ("list_todos", "folder", "List the TODO comments of a folder.")
COUNT = ("count_words", "path", "Count the words in a file.")
CONVERT = ("csv_to_json", "path", "Convert a CSV file to JSON.")


def tool(name: str, parameters: str, description: str) -> ToolDefinition:
    declared = tuple(ToolParameter(p, {"type": "string"}) for p in parameters.split())
    return ToolDefinition(name, description, declared, {}, ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (REPLACE, ("replace_text", "path old new", "Replace all occurrences of a text in a file")),
        (REPLACE, ("replaceInFile", "path old new", "Replace a text in a file by another")),
        (("load_json", "folder", "Read the JSON files below a folder"), ("read_json", "folder", "Read all JSON files in a folder")),
        (COUNT, ("word_count", "path", "Count how many words a file has.")),
        (("add", "numbers", "Add numbers"), ("sum_numbers", "numbers", "Add all the numbers")),
        (("fetch", "url", "Fetch a page, again while it is busy"), ("fetch_busy", "url tries", "Fetch a busy page again")),
        (TODOS, ("todos", "path", "List TODO comments in a folder.\n\nIt reads all files.")),
        (CONVERT, ("convert_csv_to_json", "source target", "Convert a CSV file to a JSON file")),
        (("übersetze", "text", "Übersetze einen Text"), ("übersetze_text", "text", "Übersetze den Text")),
    ],
)  # fmt: skip
def test_nearly_the_same(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert similarity(tool(*one), tool(*other)) == similarity(tool(*other), tool(*one)) >= LEAST


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CONVERT, ("json_to_csv", "path", "Convert a JSON file to CSV.")),
        (COUNT, ("count_lines", "path", "Count the lines in a file.")),
        (COUNT, REPLACE),
        (COUNT, ("read_words", "path", "Read the words of a list, each with its rank and its meaning.")),
        (TODOS, ("check_links", "folder", "Check the links of a folder.")),
        (("create_user", "name", "Create a user."), ("delete_user", "name", "Delete a user.")),
        (("first_line", "path", "Return the first line of a file"), ("last_line", "path", "Return the last line of a file")),
        (("largest", "folder", "List the largest files"), ("newest", "folder", "List the newest files")),
        (("encrypt", "text", "Encrypt a text"), ("decrypt", "text", "Decrypt a text")),
        (("notes", "n", "Write notes."), ("read_notes", "n", "Read notes.")),
        (("f", "", ""), ("g", "", "")),
    ],
)  # fmt: skip
def test_clearly_different(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert similarity(tool(*one), tool(*other)) == similarity(tool(*other), tool(*one)) < LEAST


def test_the_store_is_searched(tmp_path: Path) -> None:
    store = TinyToolStore(tmp_path / "tools")
    assert similar(store, tool(*REPLACE)) == []
    found = {
        "find_and_replace": REPLACE[2],
        "replace_text": "Replace all occurrences of a text in a file",
        "replace_all": "Replace every occurrence of a text in files",
        "replace_words": "Replace occurrences of a word",
        "replace_in_file": "Replace a text in a file",
        **{f"other_{i}": f"Write the text number {i} to a file" for i in range(30)},
    }
    for name, description in found.items():
        store.save(replace(make(name, description=description), calls=()).named())
    # The tool itself is saved already, and has every word.
    assert similar(store, tool(*REPLACE)) == ["replace_all", "replace_text", "replace_in_file"]
    assert len(similar(store, tool(*REPLACE))) == MAX_SIMILAR
    assert similar(store, tool(*COUNT)) == []
    store.delete("replace_all")
    (damaged,) = tmp_path.rglob("replace_text*")
    damaged.write_text("{}")
    assert similar(store, tool(*REPLACE)) == ["replace_in_file"]

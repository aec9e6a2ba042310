"""What primitives declare about their outputs: the declarations that are refused, and the outputs that contradict them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from albert_tools import Primitive, primitive
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.output_facts import contradiction


class Row(TypedDict):
    path: str
    name: str | None
    kind: Literal["a", "b"]
    size: int


class Rows(TypedDict):
    rows: list[Row]
    by_name: dict[str, Row]
    more: Any


def declared(**options: Any) -> Primitive:
    @primitive(paths={"folder": "read"}, effects=["read"], **options)
    def rows(folder: str, to: str = "", limit: int = 3, most: int | None = None) -> Rows: ...

    return rows


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"uses": {"x": "payload"}}, "`uses` names 'x', which is no parameter"),
        ({"uses": {"to": "target"}}, "unknown use 'target'; use one of destination, payload"),
        (
            {"uses": {"folder": "payload"}},
            "`uses` names 'folder', which is a path, a URL or judged, so its use is known",
        ),
        (
            {"source": "disk"},
            "unknown source 'disk'; use one of file, web, mail, clock, command, model, server, random",
        ),
        ({"outputs": {"rows": "little"}}, "a place is written like '.paths[*].name'"),
        ({"outputs": {".lines": "word"}}, "says 'word' of '.lines', but the result has no such place"),
        ({"outputs": {".rows.path": "word"}}, "the result has no such place"),
        ({"outputs": {".rows[*].path": "short"}}, "there is no such fact; use 'same as P', 'below P'"),
        ({"outputs": {".rows[*].size": "word"}}, "it is not always a text"),
        ({"outputs": {".rows[*].path": "little"}}, "only numbers, booleans and enumerations carry little"),
        ({"outputs": {".rows": "little"}}, "only numbers, booleans and enumerations carry little"),
        ({"outputs": {".rows[*].path": "at most 3 items"}}, "it is not always a list or an object"),
        ({"outputs": {".rows": "at most size items"}}, "there is no parameter 'size'"),
        ({"outputs": {".rows": "at most to items"}}, "the parameter 'to' is not always an integer"),
        ({"outputs": {".rows": "at most most items"}}, "the parameter 'most' is not always an integer"),
        ({"outputs": {".rows[*].path": "below to"}}, "`paths` does not name 'to'"),
        ({"outputs": {".rows[*].path": "same as x"}}, "there is no parameter 'x'"),
        ({"outputs": {".rows[*].path": "same as limit"}}, "the parameter 'limit' is not always a text"),
    ],
)
def test_invalid_declarations(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        declared(**options)
    assert said in str(caught.value)


def normal(path: str) -> str:
    """The normal form of a path, like that of a workspace at ``/work``."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Failure("permission_denied", path)
    if not path.startswith("/"):
        return "/".join(parts) or "."
    return "/".join(parts[1:]) or "." if parts[:1] == ["work"] else "/" + "/".join(parts)


def of(path: Any, **more: Any) -> Any:
    """An output with one row."""
    return {"rows": [{"path": path, "name": None, "kind": "a", "size": 1} | more], "by_name": {}, "more": None}


FOUR = {"rows": [of("a")["rows"][0]] * 4, "by_name": {}, "more": None}


@pytest.mark.parametrize(
    ("outputs", "arguments", "output", "why"),
    [
        ({".rows[*].path": "below folder"}, {"folder": "src"}, of("src/a/..b"), None),
        ({".rows[*].path": "below folder"}, {"folder": "src"}, of("src"), None),
        ({".rows[*].path": "below folder"}, {"folder": "./src//"}, of("src/a"), None),
        ({".rows[*].path": "below folder"}, {"folder": "/work/src"}, of("src/a"), None),
        ({".rows[*].path": "below folder"}, {"folder": "src"}, of("./src/a"), None),
        ({".rows[*].path": "below folder"}, {"folder": "/else"}, of("/else/a"), None),
        ({".rows[*].path": "below folder"}, {"folder": "/"}, of("/else/a"), None),
        ({".rows[*].path": "below folder"}, {"folder": "."}, of("a"), None),
        ({".rows[*].path": "below folder"}, {"folder": "."}, of("/work/a"), None),
        ({".rows[*].path": "below folder"}, {"folder": "src"}, of("source/a"), "'source/a'"),
        ({".rows[*].path": "below folder"}, {"folder": "src"}, of("srcs"), "'srcs'"),
        ({".rows[*].path": "below folder"}, {"folder": "src"}, of("."), "'.'"),
        ({".rows[*].path": "below folder"}, {"folder": "src"}, of("src/../a"), "'src/../a'"),
        ({".rows[*].path": "below folder"}, {"folder": "."}, of("../a"), "'../a'"),
        ({".rows[*].path": "below folder"}, {"folder": "."}, of("/etc/passwd"), "'/etc/passwd'"),
        ({".rows[*].path": "below folder"}, {"folder": "/"}, of("/etc/passwd"), None),
        ({".rows[*].path": "same as folder"}, {"folder": "src//"}, of("src"), None),
        ({".rows[*].path": "same as folder"}, {"folder": "src//"}, of("src//"), None),
        ({".rows[*].path": "same as folder"}, {"folder": "src"}, of("src/a"), "'src/a'"),
        ({".rows[*].path": "same as to"}, {"to": "a//b"}, of("a//b"), None),
        ({".rows[*].path": "same as to"}, {"to": "a//b"}, of("a/b"), "'a/b'"),
        ({".rows[*].path": "word"}, {}, of("a-B_9"), None),
        ({".rows[*].path": "word"}, {}, of("a\n"), "'a\\n'"),
        ({".rows[*].path": "word"}, {}, of("é"), "'é'"),
        ({".rows[*].path": "number"}, {}, of("-1.5"), None),
        ({".rows[*].path": "number"}, {}, of("1e5"), "'1e5'"),
        ({".rows[*].name": "word"}, {}, of("a"), None),
        ({".rows[*].name": "word"}, {}, of("a", name="b c"), "'b c'"),
        ({".rows": "at most 3 items"}, {}, of("a"), None),
        ({".rows": "at most 3 items"}, {}, FOUR, "4 items"),
        ({".rows": "at most limit items"}, {"limit": 4}, FOUR, None),
        ({".rows": "at most limit items"}, {"limit": 3}, FOUR, "4 items"),
        ({".by_name[*].path": "word"}, {}, {"rows": [], "by_name": {"x": {"path": "a b"}}, "more": 0}, "'a b'"),
        ({".more": "word"}, {}, {"rows": [], "by_name": {}, "more": [1]}, "1 items"),
        ({".more.deep[*]": "time"}, {}, {"rows": [], "by_name": {}, "more": {"deep": ["at noon", 1]}}, None),
        ({".more.deep[*]": "word"}, {}, {"rows": [], "by_name": {}, "more": {"deep": ["a", 1]}}, "1"),
    ],
)
def test_contradictions(outputs: dict[str, str], arguments: dict[str, Any], output: Any, why: str | None) -> None:
    definition = declared(outputs=outputs).definition
    found = contradiction(definition, definition.with_defaults({"folder": "src", **arguments}), output, normal)
    (place, fact), *_ = outputs.items()
    assert found == (why and f"{place} is declared as `{fact}`, which is false for {why}")


PARTS = st.lists(st.sampled_from(["a", "b", "a b", "..", ".", "", "...", "work"]), max_size=4).map("/".join)


def inside(normalize: Callable[[str], str], path: str, folder: str) -> bool:
    """Whether a path is a folder or in it, by comparing parts."""
    found, top = normalize(path), normalize(folder)
    if top == ".":
        return not found.startswith("/")
    return [*found.split("/")][: len(top.split("/"))] == top.split("/")


@given(folder=PARTS, path=PARTS)
def test_a_path_below_a_folder_begins_with_its_parts(folder: str, path: str) -> None:
    definition = declared(outputs={".rows[*].path": "below folder"}).definition
    # A path in the workspace is in the root, too, but only its absolute form begins so.
    assume(path and folder and ".." not in folder.split("/") and normal(folder).strip("/"))
    found = contradiction(definition, definition.with_defaults({"folder": folder}), of(path), normal)
    assert (found is None) == (".." not in path.split("/") and inside(normal, path, folder))

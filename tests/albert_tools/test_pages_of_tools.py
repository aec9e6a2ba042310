"""Pages of the list of tools, and searches in a store with many tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from albert_tools import SyncToolService
from albert_tools.engine.model.nearest_name import nearest
from tests.helpers.versions import make

SAVED = [f"read_{i:02}" for i in range(30)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncToolService]:
    folder = tmp_path_factory.mktemp("lists")
    (folder / "work").mkdir()
    with SyncToolService.open(home=folder / "home", workspace=folder / "work") as service:
        for name in SAVED:
            version = make(name, description="Read a file.")
            definition = replace(version.definition, effects=("read",) if name < "read_20" else ("write",), category="")
            service.service.store.save(replace(version, definition=definition, calls=()).named())
        yield service


@pytest.mark.parametrize("size", [1, 7, 31, 100])
def test_pages_make_the_whole_list(service: SyncToolService, size: int) -> None:
    whole = [t.name for t in service.list()]
    assert whole[-30:] == SAVED
    pages, after = list[str](), ""
    while page := service.list(limit=size, after=after):
        assert len(page) <= size
        pages += [t.name for t in page]
        after = pages[-1]
    assert pages == whole
    assert len(service.list(limit=0)) == 0


def test_pages_with_a_filter(service: SyncToolService) -> None:
    writing = [t.name for t in service.list("system_write")]
    first = service.list("system_write", limit=len(writing) - 3)
    assert [t.name for t in first] == writing[:-3]
    assert [t.name for t in service.list("system_write", limit=9, after=first[-1].name)] == writing[-3:]
    assert [t.name for t in service.list(family="saved", limit=2)] == SAVED[:2]
    assert [t.name for t in service.list(family="saved", after="read_28")] == SAVED[29:]
    files = [t.name for t in service.list(family="files")]
    assert [t.name for t in service.list(family="files", limit=3, after=files[1])] == files[2:5]


def test_primitives_are_found_among_many_saved_tools(service: SyncToolService) -> None:
    found = [t.name for t in service.search("read file", 8)]
    assert len(found) == 8
    assert found[-2:] == ["read_file", "edit_file"]
    assert set(found[:6]) <= set(SAVED)
    assert service.search("read file", 1)[0].name in SAVED
    assert service.search("read file", 0) == []


def test_a_misspelt_name_is_found_among_many() -> None:
    others = [f"aaaaa_{i:04}" for i in range(1000)]
    assert nearest("zebra_pem", [*others, "zebra_pen"]) == "zebra_pen"
    assert nearest("zepra_pen", [*others, "zebra_pen"]) == "zebra_pen"

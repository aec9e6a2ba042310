"""An example of a source, which is run before its tool is saved."""

from __future__ import annotations

from msgspec import Struct


class Example(Struct, frozen=True):
    """An ``@example(...)`` of the source: the arguments, the initial files and stubs, and the expected outcome."""

    arguments: dict[str, object]
    files: dict[str, str]
    expect_files: dict[str, str]
    stubs: dict[str, object]
    line: int
    has_result: bool = False
    result: object = None
    raises: str | None = None

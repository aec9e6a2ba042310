"""What the store's tests share: tools to save, stores to save them in, and children that save meanwhile."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from albert_tools.engine.model.definition import Callee, Program, ToolDefinition, ToolParameter, ToolVersion
from albert_tools.store.tools import TinyToolStore

MakeVersion = Callable[..., ToolVersion]


def _make(name: str = "shout", text: str = "a.upper()", description: str = "Shout it.") -> ToolVersion:
    source = f'def {name}(a: str) -> str:\n    """{description}"""\n    return {text}\n'
    return ToolVersion(
        definition=ToolDefinition(
            name=name,
            description=description,
            parameters=(ToolParameter("a", {"type": "string"}, "What to shout — ä, 字."),),
            result={"type": "string"},
            effects=("read",),
            kind="composite",
            depth=1,
        ),
        source=source,
        program=Program(name, name, source, ("tools",), (1, 2, 3)),
        calls=(Callee("read_file", "primitive", "0" * 64),),
        created="2025-01-01T00:00:00Z",
    ).named()


@pytest.fixture(scope="session")
def make() -> MakeVersion:
    """A named version: `make(name, text, description)`; every other text is another version."""
    return _make


@pytest.fixture
def store(tmp_path: Path) -> TinyToolStore:
    """An empty store with a cache."""
    return TinyToolStore(tmp_path / "tools", tmp_path / "cache")


@pytest.fixture(scope="session")
def fork() -> Callable[[Callable[[], None]], int]:
    """`fork(work)` runs `work` in a child, which ends with 0, or 1 when it raised; gives the child's id."""

    def start(work: Callable[[], None]) -> int:
        sys.stdout.flush()
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    return start

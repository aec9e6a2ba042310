"""A workspace on disk, and a call context that collects effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.sandbox.command.confinement import found
from albert_tools.engine.workspace.workspace import Workspace
from tests.helpers.governed import Governed, governing


@dataclass
class Context:
    """The context of a call, with fields that tests can set."""

    workspace: Workspace
    remaining: float = 30.0
    settings: dict[str, Any] = field(default_factory=dict)
    effects: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    contents: Any = None
    key: str = "run:1"
    progress: Callable[[str], None] | None = None

    def effect(self, kind: str, **facts: Any) -> None:
        self.effects.append((kind, facts))

    def record_seen(self) -> None:
        pass

    def guard_requests(self) -> Callable[[], None]:
        return self.record_seen

    def keep(self, make: Callable[[], Any]) -> Any:
        return None  # So each command starts its own launcher.


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def context(root: Path) -> Iterator[Context]:
    with Workspace(root) as workspace:
        yield Context(workspace)


@pytest.fixture(params=["bwrap", "landlock"])
def confinement(request: pytest.FixtureRequest, context: Context) -> str:
    """The confinement of the test's commands."""
    assert request.param in found().kinds, f"the tests need {request.param}: {found().missing.get(request.param)}"
    context.settings["confinement"] = request.param
    return str(request.param)


@pytest.fixture
def govern(tmp_path: Path) -> Iterator[Callable[..., Governed]]:
    """Makes homes, each with a service: ``govern(governance={…})``."""
    with governing(tmp_path) as make:
        yield make

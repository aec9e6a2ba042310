"""A plugin for pytest: a service in a temporary home and workspace.

A `conftest.py` loads it: ``pytest_plugins = ["albert_tools.pytest_plugin"]``. It is no entry point, because pytest would
then rewrite the assertions of the whole package.

A test overrides the first three fixtures to say what the service is like, in its module, its class or a `conftest.py`::

    @pytest.fixture
    def albert_answers():
        return {"http_request": {"status": 200, ...}}

    def test_my_tool(albert_service, albert_calls):
        albert_service.define(SOURCE)
        assert albert_service.invoke("my_tool", {"city": "Oslo"}).value() == 7
        assert [call.tool for call in albert_calls()] == ["my_tool", "http_request"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Each run of pytest loads this module, so the fixtures import what they need.
if TYPE_CHECKING:
    from albert_tools.engine.model.primitive import Primitive
    from albert_tools.service import SyncToolService
    from albert_tools.testing import Answer, RecordedCall


@pytest.fixture
def albert_rules() -> Mapping[str, Any] | str | Path:
    """The rules, as a mapping or as the path of a file. Default: those that apply if the owner has written none."""
    return {}


@pytest.fixture
def albert_primitives() -> list[Primitive]:
    """The application's primitives. Default: none."""
    return []


@pytest.fixture
def albert_answers() -> Mapping[str, Answer]:
    """Answers in place of primitives, by name, see `albert_tools.testing.Answer`. Default: each primitive really runs."""
    return {}


@pytest.fixture
def albert_workspace(tmp_path: Path) -> Path:
    """The folder that tools work in, empty."""
    folder = tmp_path / "albert_workspace"
    (folder / ".albert").mkdir(parents=True)
    return folder


@pytest.fixture
def albert_service(
    tmp_path: Path,
    albert_workspace: Path,
    albert_rules: Mapping[str, Any] | str | Path,
    albert_primitives: list[Primitive],
    albert_answers: Mapping[str, Answer],
) -> Iterator[SyncToolService]:
    """An open service. Its home is new, so it has no saved tools, and each call is in its record."""
    from albert_tools.service import SyncToolService
    from albert_tools.testing import with_answers

    chosen, builtins = with_answers(albert_primitives, albert_answers)
    with SyncToolService.open(
        home=tmp_path / "albert_home",
        workspace=albert_workspace,
        governance=albert_rules,
        primitives=chosen,
        builtins=builtins,
    ) as service:
        yield service


@pytest.fixture
def albert_calls(albert_service: SyncToolService) -> Callable[[], list[RecordedCall]]:
    """A function that returns the calls in the service's record, in order."""
    from albert_tools.testing import recorded_calls

    return lambda: recorded_calls(albert_service)

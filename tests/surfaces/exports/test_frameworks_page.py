"""The lines of docs/frameworks.md run as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.pages import blocks

pytestmark = pytest.mark.surfaces
FIRST, *OTHERS = [code for code, _ in blocks("frameworks.md")]
FRAMEWORKS = ("langchain", "pydantic_ai", "openai_agents", "smolagents")


@pytest.mark.parametrize(("framework", "code"), list(zip(FRAMEWORKS, OTHERS, strict=True)), ids=FRAMEWORKS)
def test_the_lines_run(framework: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALBERT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project" / ".albert").mkdir(parents=True)
    names: dict[str, Any] = {"model": model_of(framework)}
    exec(FIRST, names)  # noqa: S102 (the page's own lines)
    try:
        exec(code, names)  # noqa: S102
        made = names.get("tools") or names["agent"]
        assert "read_file" in [tool.name for tool in made] if isinstance(made, list) else made is not None
    finally:
        names["service"].close()


def model_of(framework: str) -> Any:
    """A model that is never called."""
    if framework == "pydantic_ai":
        return "test"
    if framework == "smolagents":
        from smolagents import Model

        return Model()
    return None

"""Presets: complete starting points for the owner's rules, and for the tools of a session.

`albert policy init` writes a preset as a file with comments. `albert session new --preset` opens a session for the tools that the
preset allows without approval. The shipped rules decide about everything that a preset doesn't mention.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.definition import CATEGORIES, MODES, ToolDefinition

_STARTER = Path(__file__).parent / "starter.yaml"


class Preset(NamedTuple):
    """`allowed` are the categories of tools that need no approval in NORMAL. `categories` is the section of that name in YAML."""

    about: str
    allowed: frozenset[str]
    categories: str


def _forbidden(category: str) -> str:
    return f"  {category}: {{forbidden_in_modes: [{', '.join(MODES)}]}}\n"


def _trusted(category: str) -> str:
    return f"  {category}: {{allowed_in_modes: [NORMAL], requires_approval_in_modes: [ALERT, DEGRADED, RECOVERY]}}\n"


_LIMITS = """\
  system_write: {max_file_size_mb: 10, rate_limit_per_hour: 1000}
"""

PRESETS = {
    "read-only": Preset(
        "tools may read the workspace, and change nothing",
        frozenset({"read_only"}),
        "".join(_forbidden(category) for category in CATEGORIES if category != "read_only"),
    ),
    "standard": Preset(
        "tools may write in the workspace; commands, deletions and new hosts need approval",
        frozenset({"read_only", "system_write", "artifact", "network", "inference"}),
        f"{_LIMITS}  system_delete: {{rate_limit_per_hour: 200}}\n",
    ),
    "trusted": Preset(
        "also commands and deletions need no approval; dangerous commands and new hosts still do",
        frozenset(CATEGORIES),
        f"{_LIMITS}{_trusted('system_delete')}{_trusted('execute')}",
    ),
}


def tools_of(name: str, definitions: Iterable[ToolDefinition]) -> list[str] | None:
    """The tools of a session with this preset; None if the preset allows all tools."""
    allowed = PRESETS[name].allowed
    return None if allowed == set(CATEGORIES) else [d.name for d in definitions if d.category in allowed]


def starter(name: str) -> str:
    """The text of a rules file for a preset."""
    preset = PRESETS[name]
    text = _STARTER.read_text("utf-8")
    return text.format(preset=name, about=preset.about, categories=preset.categories)

"""What the owner can set of the primitives that run commands, under ``primitives: {bash: …}``."""

from __future__ import annotations

from typing import Any

#: How a command is confined, and the most that it may take: MiB of memory, and processes at once.
COMMAND_SETTINGS: dict[str, dict[str, Any]] = {
    "confinement": {"enum": ["bwrap", "landlock", "seatbelt"]},
    "memory_mb": {"type": "number", "minimum": 16, "maximum": 2**20},
    "processes": {"type": "integer", "minimum": 1, "maximum": 2**20},
}

#: Besides, who commits.
GIT_SETTINGS: dict[str, dict[str, Any]] = {
    **COMMAND_SETTINGS,
    "user_name": {"type": "string"},
    "user_email": {"type": "string"},
}

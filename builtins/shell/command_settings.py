"""Settings of the primitives that run commands, under ``primitives: {bash: …}`` in governance.yaml."""

from __future__ import annotations

from typing import Any

#: The confinement, and the limits of memory (MiB) and of processes.
COMMAND_SETTINGS: dict[str, dict[str, Any]] = {
    "confinement": {"enum": ["bwrap", "landlock", "seatbelt"]},
    "memory_mb": {"type": "number", "minimum": 16, "maximum": 2**20},
    "processes": {"type": "integer", "minimum": 2, "maximum": 2**20},
}

#: The same settings, and the author of commits.
GIT_SETTINGS: dict[str, dict[str, Any]] = {
    **COMMAND_SETTINGS,
    "user_name": {"type": "string"},
    "user_email": {"type": "string"},
}

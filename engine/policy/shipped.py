"""The shipped rules: what applies where the owner's file says nothing.

The shipped section of a category applies to a tool whose modes the owner's file doesn't mention, neither by name nor by category
nor in `allow` or `deny`. What the file does say about modes replaces the shipped section.
"""

from __future__ import annotations

from albert_tools.engine.model.definition import Category
from albert_tools.engine.policy.layers import Section


def _modes(*, allow: str = "", ask: str = "", forbid: str = "LOCKDOWN") -> Section:
    return {
        "allowed_in_modes": tuple(allow.split()),
        "requires_approval_in_modes": tuple(ask.split()),
        "forbidden_in_modes": tuple(forbid.split()),
    }


_ASKS = _modes(ask="NORMAL ALERT DEGRADED RECOVERY")

#: LOCKDOWN forbids everything. RECOVERY allows tools that only read, and asks about all others.
BY_CATEGORY: dict[Category, Section] = {
    "read_only": _modes(allow="NORMAL ALERT DEGRADED RECOVERY"),
    "system_write": _modes(allow="NORMAL ALERT", ask="DEGRADED RECOVERY"),
    "system_delete": _ASKS,
    "execute": _ASKS,
    "network": _modes(allow="NORMAL DEGRADED", ask="ALERT RECOVERY"),
    "inference": _modes(allow="NORMAL", ask="ALERT DEGRADED RECOVERY"),
    "artifact": _modes(allow="NORMAL ALERT", ask="DEGRADED RECOVERY"),
}

#: A composite does nothing by itself; each of its calls is judged like a direct one.
COMPOSITE = _modes(allow="NORMAL ALERT DEGRADED RECOVERY")

#: A tool that the owner's file lists under `allow`.
NAMED = _modes(allow="NORMAL ALERT DEGRADED", ask="RECOVERY")

#: Files that no tool reaches, even inside the workspace.
SHIPPED_FORBIDDEN_PATHS = (
    "/System",
    "/Library",
    "/etc/shadow",
    "/proc",
    "/sys",
    "/dev",
    "$HOME/.ssh",
    "$HOME/.aws",
    "$HOME/.gnupg",
    "$HOME/.netrc",
    "$HOME/.mozilla",
    "$HOME/.config/google-chrome",
    "$HOME/.config/chromium",
    "$HOME/.config/BraveSoftware",
    "$HOME/Library/Application Support/Google/Chrome",
    "$HOME/Library/Application Support/Firefox",
    "$HOME/Library/Safari",
    "$HOME/Library/Keychains",
    "$HOME/.albert",
    "$HOME/.config/albert",
    "$HOME/.cache/albert",
    "$HOME/.local/state/albert",
    "$HOME/Library/Application Support/albert",
    "$HOME/Library/Caches/albert",
)

#: Those of them that hold no secrets, but are too large to search or hold no regular files.
SHIPPED_FORBIDDEN_PUBLIC = ("/System", "/Library", "/proc", "/sys", "/dev")

#: MiB of one file, read or written, where no rule sets another size.
MAX_FILE_SIZE_MB = 10.0

#: All shipped rules: part of what the revision of the rules is computed from.
SHIPPED_RULES = (BY_CATEGORY, COMPOSITE, NAMED, SHIPPED_FORBIDDEN_PATHS, MAX_FILE_SIZE_MB)

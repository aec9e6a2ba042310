"""The shipped rules. They apply if the owner's file has no rule on the same subject.

Example: the shipped section of a category applies to a tool if the owner's file doesn't set its modes: not by name, not by
category, and not in `allow` or `deny`. If the owner's file sets the modes, its section replaces the shipped section.
"""

from __future__ import annotations

from albert_tools.engine.model.definition import Category
from albert_tools.engine.policy.flow_rules import SHIPPED_FLOWS, SHIPPED_PRIVATE_PATHS
from albert_tools.engine.policy.layers import Section


def _modes(*, allow: str = "", ask: str = "") -> Section:
    return {
        "allowed_in_modes": tuple(allow.split()),
        "requires_approval_in_modes": tuple(ask.split()),
        "forbidden_in_modes": ("LOCKDOWN",),
    }


_ASKS = _modes(ask="NORMAL ALERT DEGRADED RECOVERY")

#: LOCKDOWN forbids everything. RECOVERY allows read-only tools and asks about all others.
BY_CATEGORY: dict[Category, Section] = {
    "read_only": _modes(allow="NORMAL ALERT DEGRADED RECOVERY"),
    "system_write": _modes(allow="NORMAL", ask="ALERT DEGRADED RECOVERY"),
    "system_delete": _ASKS,
    "execute": _ASKS,
    "network": _modes(allow="NORMAL DEGRADED", ask="ALERT RECOVERY"),
    "inference": _modes(allow="NORMAL", ask="ALERT DEGRADED RECOVERY"),
    "artifact": _modes(allow="NORMAL ALERT", ask="DEGRADED RECOVERY"),
}

#: A composite does nothing by itself. Each of its calls is authorized like a direct call.
COMPOSITE = _modes(allow="NORMAL ALERT DEGRADED RECOVERY")

#: The section for a tool that the owner's file lists under `allow`.
NAMED = _modes(allow="NORMAL ALERT DEGRADED", ask="RECOVERY")

#: Paths that no tool can reach, even inside the workspace.
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

#: The forbidden paths without secrets. They are too large to search, or contain no regular files.
SHIPPED_FORBIDDEN_PUBLIC = ("/System", "/Library", "/proc", "/sys", "/dev")

#: The most MiB of a file that a tool may read or write, if no rule sets another size.
MAX_FILE_SIZE_MB = 10.0

#: All shipped rules. They are part of the revision of the rules.
SHIPPED_RULES = (
    BY_CATEGORY,
    COMPOSITE,
    NAMED,
    SHIPPED_FORBIDDEN_PATHS,
    MAX_FILE_SIZE_MB,
    SHIPPED_FLOWS,
    SHIPPED_PRIVATE_PATHS,
)

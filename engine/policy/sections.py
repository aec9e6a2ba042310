"""A section of the rules: what is said of one tool or of one category; and the sections that are shipped.

Where the owner's file says nothing of a tool, neither by name nor by category nor in `allow` or `deny`, the shipped section of
its category holds. What it does say takes the place of what is shipped, not of what else it says.
"""

from __future__ import annotations

from typing import NamedTuple

from albert_tools.engine.model.definition import Category, Mode


class Section(NamedTuple):
    """None means that the file doesn't say. Paths are git-ignore-style patterns; sizes are in MiB."""

    allowed_in_modes: frozenset[Mode] | None = None
    requires_approval_in_modes: frozenset[Mode] | None = None
    forbidden_in_modes: frozenset[Mode] | None = None
    allowed_paths: tuple[str, ...] | None = None
    forbidden_paths: tuple[str, ...] = ()
    max_file_size_mb: float | None = None
    allowed_hosts: tuple[str, ...] | None = None
    forbidden_hosts: tuple[str, ...] = ()
    allowed_methods: tuple[str, ...] | None = None
    allowed_addresses: tuple[str, ...] | None = None
    allowed_commands: tuple[str, ...] | None = None
    dangerous_commands: tuple[str, ...] = ()
    forbidden_commands: tuple[str, ...] = ()
    allowed_operations: tuple[str, ...] | None = None
    asking_operations: tuple[str, ...] = ()
    forbidden_operations: tuple[str, ...] = ()
    allowed_providers: tuple[str, ...] | None = None
    allowed_models: tuple[str, ...] | None = None
    timeout_seconds: float | None = None
    rate_limit_per_hour: int | None = None

    @property
    def speaks_of_modes(self) -> bool:
        """Whether it says in which modes the tool may be used."""
        return not (
            self.allowed_in_modes is None
            and self.requires_approval_in_modes is None
            and self.forbidden_in_modes is None
        )


def _modes(*, allow: str = "", ask: str = "", forbid: str = "LOCKDOWN") -> Section:
    def names(text: str) -> frozenset[Mode]:
        return frozenset(text.split())  # type: ignore[arg-type]

    return Section(names(allow), names(ask), names(forbid))


_ASKS = _modes(ask="NORMAL ALERT DEGRADED RECOVERY")

#: In lockdown nothing is done; in recovery tools that only read, and everything else asks.
SHIPPED: dict[Category, Section] = {
    "read_only": _modes(allow="NORMAL ALERT DEGRADED RECOVERY"),
    "system_write": _modes(allow="NORMAL ALERT", ask="DEGRADED RECOVERY"),
    "system_delete": _ASKS,
    "execute": _ASKS,
    "network": _modes(allow="NORMAL DEGRADED", ask="ALERT RECOVERY"),
    "inference": _modes(allow="NORMAL", ask="ALERT DEGRADED RECOVERY"),
    "artifact": _modes(allow="NORMAL ALERT", ask="DEGRADED RECOVERY"),
}

#: A saved tool by itself does nothing; each of its calls is judged as if it had been made by hand.
COMPOSITE = _modes(allow="NORMAL ALERT DEGRADED RECOVERY")

#: A tool that the owner has named under `allow`.
NAMED = _modes(allow="NORMAL ALERT DEGRADED", ask="RECOVERY")

#: Files that no tool reaches, wherever the workspace lies.
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

#: Those of them that hold no secrets, but are too large to look through or no files at all.
SHIPPED_FORBIDDEN_PUBLIC = ("/System", "/Library", "/proc", "/sys", "/dev")

#: MiB of one file, read or written, where no rule says another size.
MAX_FILE_SIZE_MB = 10.0

#: The most that a rule can say: MiB of a file (what a read is bounded by anyway), seconds of a call, calls per hour (a tool that
#: is called more often than every few milliseconds is not limited by the hour).
MAX_RULE_FILE_SIZE_MB = 1024
MAX_RULE_TIMEOUT_SECONDS = 3600
MAX_RULE_RATE_PER_HOUR = 1_000_000

#: All that holds where a file is silent: part of what a revision of the rules stands for.
SHIPPED_RULES = (SHIPPED, COMPOSITE, NAMED, SHIPPED_FORBIDDEN_PATHS, MAX_FILE_SIZE_MB)

"""Activations: the saved tools that the owner offers to agents by name, each in one version.

A new version of a tool is not offered until the owner activates it. So what an agent is offered never changes because an agent has
defined something. A tool that is not active can be found and run, too.
"""

from __future__ import annotations

from albert_tools.engine.model.protocols import Record


class Activations:
    """The active tools of a home."""

    def __init__(self, ledger: Record) -> None:
        self._ledger = ledger

    def all(self) -> dict[str, str]:
        """The version of each active tool, by name. Raises Failure `io_error`, `damaged`."""
        return self._ledger.activations.all()

    def changed(self) -> int:
        """A number that is greater after each change, by any process. Raises as `all`."""
        return self._ledger.activations.changed()

    def set(self, tool: str, version: str, by: str) -> bool:
        """Make a version the active one; an empty text means none. Returns whether that was a change. Raises as `all`."""
        with self._ledger.transaction():
            if self.all().get(tool, "") == version:
                return False
            self._ledger.append("activation", {"tool": tool, "version": version, "by": by})
        return True

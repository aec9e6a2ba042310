"""The stage of the mode. A lack of disk or memory can change the mode."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.call.context import Call, Run


async def mode(call: Call, run: Run) -> Call:
    """Add the mode in which the rules judge the call."""
    modes = run.service.modes
    modes.look()
    return replace(call, mode=modes.mode)

"""Stage 5: the present mode. A lack of disk or memory can change it."""

from __future__ import annotations

from albert_tools.engine.call.context import Call, Run


async def mode(call: Call, run: Run) -> Call:
    """Add the mode in which the rules judge the call."""
    modes = run.service.modes
    modes.look()
    return call._replace(mode=modes.mode)

"""The common code with which a process restricts itself: workers, confined functions, and commands behind Landlock.

The callers define the rights; this module defines the order of the steps. Every step is permanent and applies to root too.
"""

from __future__ import annotations

import sys

from albert_tools.engine.sandbox.kernel.landlock import Grant, restrict
from albert_tools.engine.sandbox.kernel.prctl import drop_capabilities, no_new_privileges
from albert_tools.engine.sandbox.kernel.rlimits import lower
from albert_tools.engine.sandbox.kernel.seccomp import install


def restrict_process(
    *,
    limits: dict[str, int],
    grants: list[Grant] | None = None,
    filter_program: bytes | None = None,
    filter_flags: int = 0,
    without_capabilities: bool = False,
) -> None:
    """Restrict the calling process. Outside Linux, only the resource limits apply.

    Args:
        limits: Resource limits by name.
        grants: The rights that Landlock still allows; None for no use of Landlock.
        filter_program: The seccomp filter; None for no filter.
        filter_flags: The flags of the filter.
        without_capabilities: Whether to drop all capabilities.

    Raises:
        OSError: the kernel refuses. The process must not continue.
    """
    if sys.platform != "linux":
        lower(limits)
        return
    no_new_privileges()
    if grants is not None:
        restrict(grants)
    lower(limits)
    if without_capabilities:
        drop_capabilities()
    if filter_program is not None:
        install(filter_program, filter_flags)

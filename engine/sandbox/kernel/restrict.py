"""The common code with which a process restricts itself: workers, confined functions, and commands behind Landlock.

The callers define the rights; this module defines the order of the steps. Every step is permanent and applies to root too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from albert_tools.engine.sandbox.kernel.landlock import Grant, restrict
from albert_tools.engine.sandbox.kernel.prctl import drop_capabilities
from albert_tools.engine.sandbox.kernel.rlimits import lowered, set_limit
from albert_tools.engine.sandbox.kernel.seccomp import prepared


def restriction(
    *,
    limits: dict[str, int],
    grants: list[Grant] | None = None,
    filter_program: bytes | None = None,
    filter_flags: int = 0,
    without_capabilities: bool = False,
) -> Callable[[], None]:
    """The function that restricts the process that calls it. Outside Linux, only the resource limits apply. The process, or the one
    that has forked it, must have called `no_new_privileges`.

    It is prepared before a fork, because each memory page that a new process touches is copied first. It raises OSError if the
    kernel refuses; then the process must not continue.

    Args:
        limits: Resource limits by name.
        grants: The rights that Landlock still allows; None for no use of Landlock.
        filter_program: The seccomp filter; None for no filter.
        filter_flags: The flags of the filter.
        without_capabilities: Whether to drop all capabilities.
    """
    lower = lowered(limits)
    on_linux = sys.platform == "linux"
    install = prepared(filter_program, filter_flags) if on_linux and filter_program is not None else None

    def close() -> None:
        if on_linux and grants is not None:
            restrict(grants)
        for which, pair in lower:
            set_limit(which, pair)
        if on_linux and without_capabilities:
            drop_capabilities()
        if install is not None:
            install()

    return close

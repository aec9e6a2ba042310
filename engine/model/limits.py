"""Every bound on a run, named, with its reason. All may be set lower by configuration; none higher by a program.

Named tuples here and in `vocabulary`, not dataclasses: the workers' zygote loads both, and `dataclasses` takes as long as all else.
"""

from __future__ import annotations

from typing import NamedTuple

MiB = 1024 * 1024


class RunLimits(NamedTuple):
    """The bounds of one run of a saved tool. Times are seconds, sizes are bytes."""

    #: The program's own time: the clock stands while a tool call is out.
    own_seconds: float = 30.0
    #: From start to result, calls included.
    run_seconds: float = 600.0
    #: Longest single tool call.
    call_seconds: float = 300.0
    #: Processor time of the worker; catches what the own-time clock can't see (fibres that compute while others wait).
    cpu_seconds: int = 30
    #: Memory the program may take on top of the bare worker's.
    memory_bytes: int = 256 * MiB
    #: Result as it crosses the boundary, strings included.
    result_bytes: int = 16 * MiB
    #: Everything printed in a run.
    log_bytes: int = 1 * MiB
    #: Tool calls in a run.
    calls: int = 1_000
    #: Frames of the stack, as CPython counts them; its own default.
    recursion: int = 1000


#: Saved tools that call saved tools: a primitive counts 0, a composite 1 + its deepest callee.
MAX_TOOL_DEPTH = 8
#: Fibres of one `parallel` that may be in flight at once.
MAX_FIBRES = 64
#: Nodes (values, keys) in one value that crosses the boundary; each visit of a shared part counts.
MAX_NODES = 1_000_000
#: Nesting of one value that crosses the boundary.
MAX_VALUE_DEPTH = 200
#: The structure of one frame; strings longer than `LARGE_STRING` travel beside it.
MAX_STRUCTURE = 1 * MiB
LARGE_STRING = 16 * 1024

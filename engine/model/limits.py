"""The limits of a run. Configuration may lower them; a program cannot raise them.

Named tuples here and in `vocabulary`, not dataclasses: the workers' zygote loads both modules, and importing `dataclasses`
would double its start-up time.
"""

from __future__ import annotations

from typing import NamedTuple

MiB = 1024 * 1024


class RunLimits(NamedTuple):
    """The bounds of one run of a saved tool. Times are seconds, sizes are bytes."""

    #: The program's own time; the clock stops during tool calls.
    own_seconds: float = 30.0
    #: From start to result, calls included.
    run_seconds: float = 600.0
    #: Longest single tool call.
    call_seconds: float = 300.0
    #: Processor time of the worker; also counts fibres that compute while others wait for calls.
    cpu_seconds: int = 30
    #: Memory of the program, on top of the bare worker's.
    memory_bytes: int = 256 * MiB
    #: The encoded result, strings included.
    result_bytes: int = 16 * MiB
    #: Everything printed in a run.
    log_bytes: int = 1 * MiB
    #: Tool calls in a run.
    calls: int = 1_000
    #: Stack frames, as CPython counts them; CPython's default.
    recursion: int = 1000


#: Nesting of saved tools: a primitive counts 0, a composite 1 + its deepest callee.
MAX_TOOL_DEPTH = 8
#: Fibres of one `parallel` that run at once.
MAX_FIBRES = 64
#: Values and keys in one value that crosses the boundary; a shared part counts each time.
MAX_NODES = 1_000_000
#: Nesting of one value that crosses the boundary.
MAX_VALUE_DEPTH = 200
#: Bytes of one frame without its large strings; those longer than `LARGE_STRING` bytes travel beside it.
MAX_STRUCTURE = 1 * MiB
LARGE_STRING = 16 * 1024

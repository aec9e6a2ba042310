"""The limits of a run. The owner sets them; a program cannot raise them.

This module and `vocabulary` use named tuples instead of dataclasses. The workers' zygote loads both modules, and importing
`dataclasses` would double its start-up time.
"""

from __future__ import annotations

from typing import NamedTuple

from albert_tools.engine.model.bounds import MAX_TIMEOUT_SECONDS

MiB = 1024 * 1024

#: What Python raises when memory or stack is used up. Where it is caught, not even a tuple can be made, so this one exists already.
USED_UP = (MemoryError, RecursionError)


class RunLimits(NamedTuple):
    """The bounds of one run of a saved tool. Times are seconds, sizes are bytes."""

    #: The program's own time. The clock stops during tool calls.
    own_seconds: float = 30.0
    #: The time from start to result, including calls.
    run_seconds: float = 600.0
    #: The duration of a single tool call.
    call_seconds: float = 300.0
    #: Processor time of the worker. It includes fibres that compute while other fibres wait for calls.
    cpu_seconds: int = 30
    #: Memory of the program, in addition to the memory of the worker itself.
    memory_bytes: int = 256 * MiB
    #: The encoded result, including its strings. Also the arguments of each call inside `parallel`.
    result_bytes: int = 16 * MiB
    #: The total size of the printed texts of a run.
    log_bytes: int = 1 * MiB
    #: Tool calls in a run.
    calls: int = 1_000
    #: Nesting of saved tools, see `MAX_TOOL_DEPTH`.
    depth: int = 8
    #: Stack frames, as CPython counts them. This is CPython's default.
    recursion: int = 1000


class LoopLimits(NamedTuple):
    """The bounds of an agent that repeats its requests without end. The owner may set any other bounds.

    A program's calls are bounded by `RunLimits`.
    """

    #: The same request that fails again and again, with no other request in between.
    identical_failures: int = 10
    #: The requests of one session. The calls of a program are not requests.
    requests_per_hour: int = 10_000


#: The highest limits that the owner can set. Most are the defaults. A call may take as long as its arguments can ask for.
MOST_OF_RUN = RunLimits(run_seconds=float(MAX_TIMEOUT_SECONDS), call_seconds=float(MAX_TIMEOUT_SECONDS))
MOST_OF_LOOPS = LoopLimits(1_000_000, 1_000_000)

#: Nesting of saved tools: it is 0 for a primitive, and 1 + the deepest callee for a composite.
MAX_TOOL_DEPTH = RunLimits().depth
#: Fibres of one `parallel` that run at the same time.
MAX_FIBRES = 64
#: Rounds of one `for` statement whose container grows in its body.
MAX_ROUNDS = 1_000_000
#: Values and keys in one value that is sent between worker and service. A part that occurs several times is counted each time.
MAX_NODES = 1_000_000
#: Nesting of one value that is sent between worker and service.
MAX_VALUE_DEPTH = 200
#: Bytes of one frame without its large strings. Strings longer than `LARGE_STRING` bytes are sent separately.
MAX_STRUCTURE = 1 * MiB
LARGE_STRING = 16 * 1024

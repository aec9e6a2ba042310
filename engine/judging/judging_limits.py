"""The bounds of the judging process, and the name under which a zygote loads it."""

from __future__ import annotations

from albert_tools.engine.model.limits import MiB, RunLimits
from albert_tools.engine.sandbox.worker.spawn import Work

#: Processor time and memory for one source. The largest source that a person would write, 128 KiB, needs a fifth of each.
BOUNDS = RunLimits(cpu_seconds=10, memory_bytes=512 * MiB)
#: The time for one source, in seconds. It is longer than the processor time, because a machine can be busy.
MAX_SECONDS = 30.0
#: The most bytes of one message: the lowered program of the largest source is smaller.
MAX_ANSWER = 2 * MiB
#: The most characters of a tool's name in a question, and the most questions. No source can call more tools.
MAX_NAME, MAX_QUESTIONS = 300, 20_000
#: Python's recursion limit in the judging process. It has almost no frames of its own.
RECURSION = 1_200

#: The modules of the tasks. Formatting alone needs few of their imports.
FORMATTING = ("albert_tools.engine.judging.format_task",)
ALL_TASKS = ("albert_tools.engine.judging.check_task", *FORMATTING)

JUDGING = Work("albert_tools.engine.judging.judging_worker", ("lark", "RestrictedPython"))

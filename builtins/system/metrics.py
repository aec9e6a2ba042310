"""How the machine is: a look at processor, memory, disk and graphics cards, taken in a tenth of a second.

Graphics cards are asked for with `nvidia-smi`, which comes with every driver of theirs, so nothing has to be installed for it; and
where a driver hangs, as drivers do, it is a process that can be killed, not a thread of this one. Without it there are none.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypedDict

from albert_tools.builtins.system.program_output import found, lines_of
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds over which the processor's use is taken.
SAMPLE_SECONDS = 0.1
#: Seconds that the graphics cards' driver may take to answer; then there are none.
GPU_SECONDS = 5.0
#: Graphics cards that are told of.
MAX_GPUS = 64

_GPU_QUERY = "name,utilization.gpu,memory.total,memory.used,temperature.gpu"
_MiB = 1024 * 1024


class Cpu(TypedDict):
    """The processor: `percent` of all cores together, 0 to 100."""

    percent: float
    logical_cores: int
    physical_cores: int | None


class Load(TypedDict):
    """How many processes wanted to run, on average over so many minutes."""

    one: float
    five: float
    fifteen: float


class Memory(TypedDict):
    """Memory, in bytes; `percent` is what can't be had."""

    total_bytes: int
    available_bytes: int
    used_bytes: int
    percent: float


class Swap(TypedDict):
    """Memory on the disk, in bytes."""

    total_bytes: int
    used_bytes: int
    percent: float


class Disk(TypedDict):
    """The file system that the workspace is on, in bytes; `free_bytes` is what a user can still have."""

    total_bytes: int
    used_bytes: int
    free_bytes: int
    percent: float


class Gpu(TypedDict):
    """A graphics card; null is what its driver doesn't tell."""

    name: str
    percent: float | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    temperature_celsius: float | None


class Metrics(TypedDict):
    """What `system_metrics_snapshot` answers."""

    unix: float
    cpu: Cpu
    load: Load | None
    memory: Memory
    swap: Swap
    disk: Disk
    gpus: list[Gpu]
    processes: int
    uptime_seconds: float


@primitive(effects=["read"], family="system", timeout=30)
async def system_metrics_snapshot(context: CallContext) -> Metrics:
    """Measure how busy the machine is now: processor, load, memory, disk and graphics cards.

    Returns {"unix", "cpu", "load", "memory", "swap", "disk", "gpus", "processes", "uptime_seconds"}:
    "unix" is when, in seconds since 1970; "cpu" is {"percent", "logical_cores", "physical_cores"}, with the use of all
    cores together over a tenth of a second, 0 to 100; "load" is {"one", "five", "fifteen"}, the usual averages over so
    many minutes, or null where the system has none; "memory" is {"total_bytes", "available_bytes", "used_bytes",
    "percent"}; "swap" the same without "available_bytes"; "disk" is the file system of the workspace:
    {"total_bytes", "used_bytes", "free_bytes", "percent"}; "gpus" is a list of {"name", "percent",
    "memory_total_bytes", "memory_used_bytes", "temperature_celsius"}, empty where there is no NVIDIA card (or its
    driver doesn't answer), null for what a card doesn't tell; "processes" is how many there are.

    In a container most figures are the whole machine's. Fails with `io_error` where the system tells nothing.
    """
    import asyncio

    cards = asyncio.ensure_future(gpus())
    try:
        measured = await asyncio.to_thread(_measured, str(context.workspace.root))
        found_cards = await cards
    finally:
        cards.cancel()
    context.effect("read", what="system metrics")
    return {**measured, "gpus": found_cards}  # type: ignore[typeddict-item]


def _measured(root: str) -> dict[str, Any]:
    import time

    import psutil

    from albert_tools.engine.model.failure import Failure

    try:
        percent = psutil.cpu_percent(SAMPLE_SECONDS)
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        disk = psutil.disk_usage(root)
        return {
            "unix": time.time(),
            "cpu": {
                "percent": percent,
                "logical_cores": psutil.cpu_count() or 1,
                "physical_cores": psutil.cpu_count(logical=False),
            },
            "load": _load(),
            "memory": {
                "total_bytes": memory.total,
                "available_bytes": memory.available,
                "used_bytes": memory.used,
                "percent": memory.percent,
            },
            "swap": {"total_bytes": swap.total, "used_bytes": swap.used, "percent": swap.percent},
            "disk": {
                "total_bytes": disk.total,
                "used_bytes": disk.used,
                "free_bytes": disk.free,
                "percent": disk.percent,
            },
            "processes": len(psutil.pids()),
            "uptime_seconds": round(max(0.0, time.time() - psutil.boot_time()), 3),
        }
    except (psutil.Error, OSError) as error:
        raise Failure("io_error", f"the system doesn't tell how it is: {error}") from None


def _load() -> Load | None:
    try:
        one, five, fifteen = os.getloadavg()
    except OSError:
        return None
    return {"one": one, "five": five, "fifteen": fifteen}


async def gpus(program: str | None = None) -> list[Gpu]:
    """The graphics cards, by `nvidia-smi` (`program` is where that is, looked up when not given); none where it doesn't answer."""
    import asyncio
    from contextlib import aclosing

    program = program or found("nvidia-smi")
    if program is None:
        return []
    told: list[Gpu] = []
    try:
        async with (
            asyncio.timeout(GPU_SECONDS),
            aclosing(lines_of([program, f"--query-gpu={_GPU_QUERY}", "--format=csv,noheader,nounits"])) as lines,
        ):
            async for line in lines:
                card = _gpu(line.decode("utf-8", "replace"))
                if card is not None:
                    told.append(card)
                if len(told) >= MAX_GPUS:
                    break
    except (TimeoutError, OSError):
        return []
    return told


def _gpu(line: str) -> Gpu | None:
    """A card, of one line of CSV; None for anything else, such as a sentence about a driver that isn't loaded."""
    # A name may hold a comma, a figure never does.
    parts = [part.strip() for part in line.rsplit(",", 4)]
    if len(parts) != 5 or not parts[0]:
        return None
    percent, total, used, temperature = (_figure(part, float) for part in parts[1:])
    return {
        "name": parts[0][:200],
        "percent": percent,
        "memory_total_bytes": None if total is None else int(total * _MiB),
        "memory_used_bytes": None if used is None else int(used * _MiB),
        "temperature_celsius": temperature,
    }


def _figure(text: str, read: Callable[[str], float]) -> float | None:
    """A number; None for ``[N/A]`` and the like."""
    try:
        value = read(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e15 else None

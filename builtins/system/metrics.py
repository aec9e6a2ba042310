"""Measures how busy the machine is: processor, memory, disk and graphics cards. The measurement takes a tenth of a second.

Graphics cards are measured with the program `nvidia-smi`, which is installed with every NVIDIA driver. Drivers sometimes block,
and a separate process can then be killed, unlike a thread of the service. If the program is not installed, no cards are listed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypedDict

from albert_tools.builtins.system.program_output import found, lines_of
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import CallContext

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds over which the use of the processor is measured.
SAMPLE_SECONDS = 0.1
#: The timeout of the graphics driver, in seconds. If the driver does not answer, no cards are listed.
GPU_SECONDS = 5.0
#: Graphics cards of one result.
MAX_GPUS = 64

_GPU_QUERY = "name,utilization.gpu,memory.total,memory.used,temperature.gpu"
_MiB = 1024 * 1024

#: The figures of a result.
_FIGURES = (
    ".unix",
    ".cpu.percent",
    ".load.one",
    ".memory.percent",
    ".swap.percent",
    ".disk.percent",
    ".disk.free_bytes",
    ".processes",
    ".uptime_seconds",
)


class Cpu(TypedDict):
    """The processor: `percent` of all cores together, 0 to 100."""

    percent: float
    logical_cores: int
    physical_cores: int | None


class Load(TypedDict):
    """The average number of runnable processes over 1, 5 and 15 minutes."""

    one: float
    five: float
    fifteen: float


class Memory(TypedDict):
    """Memory, in bytes; `percent` is the share that is not available."""

    total_bytes: int
    available_bytes: int
    used_bytes: int
    percent: float


class Swap(TypedDict):
    """Swap space, in bytes."""

    total_bytes: int
    used_bytes: int
    percent: float


class Disk(TypedDict):
    """The file system of the workspace, in bytes. `free_bytes` is the space that ordinary users can still use."""

    total_bytes: int
    used_bytes: int
    free_bytes: int
    percent: float


class Gpu(TypedDict):
    """A graphics card; a field is null if the driver does not report it."""

    name: str
    percent: float | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    temperature_celsius: float | None


class Metrics(TypedDict):
    """Result of `system_metrics_snapshot`."""

    unix: float
    cpu: Cpu
    load: Load | None
    memory: Memory
    swap: Swap
    disk: Disk
    gpus: list[Gpu]
    processes: int
    uptime_seconds: float


@primitive(
    effects=["read"],
    family="system",
    outputs={".gpus": f"at most {MAX_GPUS} items"} | dict.fromkeys(_FIGURES, "little"),
    source="command",
    timeout=30,
)
async def system_metrics_snapshot(context: CallContext) -> Metrics:
    """Measure how busy the machine is: processor, load, memory, disk and graphics cards.

    Returns {"unix", "cpu", "load", "memory", "swap", "disk", "gpus", "processes", "uptime_seconds"}. "unix" is the time in
    seconds since 1970. "cpu" is {"percent", "logical_cores", "physical_cores"}: the use of all cores together over a tenth of
    a second, 0 to 100. "load" is {"one", "five", "fifteen"}, the load averages over so many minutes, or null if the system
    has none. "memory" is {"total_bytes", "available_bytes", "used_bytes", "percent"}, "swap" the same without
    "available_bytes", "disk" the file system of the workspace: {"total_bytes", "used_bytes", "free_bytes", "percent"}. "gpus"
    lists NVIDIA cards as {"name", "percent", "memory_total_bytes", "memory_used_bytes", "temperature_celsius"}, null for a
    figure that a card does not report; it is empty without such a card or without an answer of its driver. "processes" is
    the number of processes.

    In a container most figures are those of the whole machine. Fails with `io_error` if the system reports nothing.
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
        raise Failure("io_error", f"the system's metrics can't be read: {error}") from None


def _load() -> Load | None:
    try:
        one, five, fifteen = os.getloadavg()
    except OSError:
        return None
    return {"one": one, "five": five, "fifteen": fifteen}


async def gpus(program: str | None = None) -> list[Gpu]:
    """The graphics cards that `nvidia-smi` lists; empty if it does not answer. `program` replaces the installed program."""
    import asyncio
    from contextlib import aclosing

    program = program or found("nvidia-smi")
    if program is None:
        return []
    cards: list[Gpu] = []
    try:
        async with (
            asyncio.timeout(GPU_SECONDS),
            aclosing(lines_of([program, f"--query-gpu={_GPU_QUERY}", "--format=csv,noheader,nounits"])) as lines,
        ):
            async for line in lines:
                card = _gpu(line.decode("utf-8", "replace"))
                if card is not None:
                    cards.append(card)
                if len(cards) >= MAX_GPUS:
                    break
    except (TimeoutError, OSError):
        return []
    return cards


def _gpu(line: str) -> Gpu | None:
    """Parse a line of CSV. Returns None for any other line, such as a message about a missing driver."""
    # Only the name may contain a comma.
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
    """A number; None for ``[N/A]`` and similar."""
    try:
        value = read(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e15 else None

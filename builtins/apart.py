"""Calling a function in a process of its own, which is killed when its time is up and has little to break.

For functions that read what strangers wrote: bytes and JSON in, JSON out. The process has no environment, no files to write,
and bounds of processor time and memory; whatever it does, the service lives on, and a failure says what happened.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.bounds import GiB, MiB
from albert_tools.engine.model.failure import Failure

if TYPE_CHECKING:
    from asyncio.subprocess import Process

#: Bytes of its memory, and of what it answers with.
MAX_MEMORY, MAX_ANSWER = 1 * GiB, 8 * MiB
#: Seconds that it takes at the most.
MAX_SECONDS = 30.0

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from albert_tools.builtins import apart; apart.child()"
)


async def call_apart(function: str, arguments: dict[str, Any], seconds: float) -> Any:
    """What ``module:function`` answers to these arguments, JSON or bytes each.

    Raises:
        Failure: `timeout`, `memory_limit`; `io_error`: it could not be done, or ended otherwise.
    """
    import asyncio

    seconds = min(seconds, MAX_SECONDS)
    asked = {"function": function, "seconds": seconds, "arguments": {k: _packed(v) for k, v in arguments.items()}}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-X", "utf8", "-c", _BOOT, json.dumps([p for p in sys.path if p] or [os.getcwd()])),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            answer = await _conversation(process, json.dumps(asked).encode())
            code = await process.wait()
    except TimeoutError:
        raise Failure(
            "timeout", f"reading it took longer than {seconds:.3g} s", hint="read something smaller"
        ) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
    if len(answer) > MAX_ANSWER:
        raise Failure("too_large", f"reading it gave more than {MAX_ANSWER:,} bytes")
    try:
        said = json.loads(answer)
        return said["answer"]
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    if answer == b'{"memory": true}':
        raise Failure(
            "memory_limit", "reading it took more memory than there is for that", hint="read something smaller"
        )
    raise Failure(
        "io_error", f"it can't be read: the process that reads it ended with {code}", hint="read something else"
    )


async def _conversation(process: Process, data: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()
    answer = bytearray()
    while len(answer) <= MAX_ANSWER and (piece := await process.stdout.read(65536)):
        answer += piece
    if len(answer) > MAX_ANSWER:
        process.kill()
    return bytes(answer)


def child() -> None:
    """What the process does."""
    import resource
    from importlib import import_module

    asked = json.load(sys.stdin.buffer)
    out, sys.stdout = sys.stdout, sys.stderr
    module, _, name = asked["function"].partition(":")
    function = getattr(import_module(module), name)
    arguments = {k: _unpacked(v) for k, v in asked["arguments"].items()}
    for what, most in (
        (resource.RLIMIT_AS, MAX_MEMORY),
        (resource.RLIMIT_CPU, int(asked["seconds"]) + 1),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        # macOS knows no bound of memory.
        with suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    try:
        answer = json.dumps({"answer": function(**arguments)})
    except MemoryError:
        answer = '{"memory": true}'
    out.write(answer)
    out.flush()
    os._exit(0)


def _packed(value: Any) -> Any:
    import base64

    return {"$bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _unpacked(value: Any) -> Any:
    import base64

    return base64.b64decode(value["$bytes"]) if isinstance(value, dict) and "$bytes" in value else value

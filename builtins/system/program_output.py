"""The output of a program of the system's own (`journalctl`, `nvidia-smi`), line by line, for as long as somebody wants more.

Such a program is part of what a primitive is, not something that an agent asks for: its name is fixed, each argument is one word of
ours, its environment holds nothing of this process's, and it is killed as soon as nobody reads on. What it prints is bounded by
whoever reads; a line is cut where it is too long to be one.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

#: Where programs of the system's own lie.
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
#: Bytes of one line; what is behind is left out.
MAX_LINE = 256 * 1024
_BLOCK = 64 * 1024


def found(program: str, path: str = PATH) -> str | None:
    """Where a program of the system's own is; None where there is none."""
    return shutil.which(program, path=path)


async def lines_of(argv: Sequence[str]) -> AsyncGenerator[bytes, None]:
    """The lines that a program prints, without their ends; to be closed (``aclosing``) by whoever stops before the end.

    Raises:
        OSError: it can't be started.
    """
    import asyncio

    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": PATH, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
        start_new_session=True,
    )
    assert process.stdout is not None
    rest, over = b"", False
    try:
        while block := await process.stdout.read(_BLOCK):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                if not over:
                    yield line[:MAX_LINE]
                over = False
            if len(rest) > MAX_LINE:
                if not over:
                    yield rest[:MAX_LINE]
                rest, over = b"", True
        if rest and not over:
            yield rest
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

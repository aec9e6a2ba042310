"""Reads the output of a system program (`journalctl`, `nvidia-smi`) line by line.

Such a program is part of a primitive, and an agent cannot choose it. Its name and arguments come from the primitive. Its
environment has only a path and a locale. It is killed when its output is no longer read. The caller limits the number of lines;
long lines are cut.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

#: Folders of the system's programs.
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
#: Bytes of one line. The rest of a longer line is dropped.
MAX_LINE = 256 * 1024
_BLOCK = 64 * 1024


def found(program: str) -> str | None:
    """The path of a system program; None if the program is not installed."""
    return shutil.which(program, path=PATH)


async def lines_of(argv: Sequence[str]) -> AsyncGenerator[bytes, None]:
    """Yields the lines of a program's output, without line ends. Close the generator (``aclosing``) to stop before the end.

    Raises:
        OSError: the program can't be started.
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
    rest, too_long = b"", False
    try:
        while block := await process.stdout.read(_BLOCK):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                if not too_long:
                    yield line[:MAX_LINE]
                too_long = False
            if len(rest) > MAX_LINE:
                if not too_long:
                    yield rest[:MAX_LINE]
                rest, too_long = b"", True
        if rest and not too_long:
            yield rest
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        # asyncio sees the end of a program only after that of its output, which it may have stopped to read.
        while await process.stdout.read(_BLOCK):
            pass
        await process.wait()

"""The output of a command while it runs, for the person who waits: whole lines, bounded, and without what looks like a secret.

What a quick command prints is in its result at once, so nothing is said of it.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Callable

from albert_tools.engine.model.redaction import redacted_text

#: Seconds after which a command counts as slow, and seconds between two texts.
AFTER, EVERY = 1.0, 0.25
#: Bytes of output that are said of one command, and of one line.
MOST, MOST_OF_LINE = 64 * 1024, 4 * 1024
_KEY = re.compile(r"-----BEGIN (?!.*-----END )", re.DOTALL)
_ENDED = "… further output is in the result\n"


class LiveOutput:
    """Collects the output of one command. `say` gets texts that end with a newline."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.time() + AFTER
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = MOST
        self._text = self._before = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, data: bytes) -> None:
        """The command has printed something."""
        if self._left <= 0:
            return
        self._text += self._decoder.decode(data[: self._left]).replace("\r\n", "\n").replace("\r", "\n")
        self._left -= len(data)
        if self._timer is None:
            self._timer = self._loop.call_at(self._next, self._flush)

    def close(self) -> None:
        """The command has ended: the rest is in its result."""
        self._left = 0
        if self._timer is not None:
            self._timer.cancel()

    def _flush(self) -> None:
        self._timer = None
        self._next = self._loop.time() + EVERY
        end = self._text.rfind("\n") + 1
        # A key extends over several lines.
        if begun := _KEY.search(self._text, 0, end):
            end = self._text.rfind("\n", 0, begun.start()) + 1
        lines, self._text = self._text[:end], self._text[end:]
        if len(self._text) > MOST_OF_LINE and not _KEY.search(self._text):
            self._text = f"{self._text[:80]} …"
        if lines:
            # The name of a secret can end one text, and its value begin the next one.
            known = redacted_text(self._before, MOST)
            both = redacted_text(self._before + lines, 2 * MOST)
            self._before = lines.splitlines(keepends=True)[-1]
            self._say(both.removeprefix(known))
        if self._left <= 0:
            self._say(_ENDED)

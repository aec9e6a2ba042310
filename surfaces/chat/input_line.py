"""The line in which the user writes messages, the last line of the terminal. It stays there while something is printed above it.

Earlier messages are saved for the arrow keys, in a file of their owner.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from prompt_toolkit import ANSI, PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from albert_tools.store.private_folder import make_private

#: Bytes of the file. A longer one begins anew.
_MAX_FILE = 1024 * 1024
#: A question waits until the user has typed nothing for so many seconds. Otherwise the next word of a message could be its answer.
_PAUSE = 1.0
#: The message that Ctrl-D stands for.
QUIT = "/quit"


class InputLine:
    """Reads messages from the terminal while `read` runs."""

    def __init__(self, folder: Path) -> None:
        make_private(folder, "the conversations")
        path = folder / "typed"
        # The library would create a file that others can read.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if os.fstat(handle).st_size > _MAX_FILE:
            os.ftruncate(handle, 0)
        os.close(handle)
        #: The messages that `next` has not returned yet.
        self.waiting: list[str] = []
        self._arrived = asyncio.Event()
        self._shown, self._typed_at = "", 0.0
        self._interrupted: Callable[[], None] = lambda: None
        self._session: PromptSession[str] = PromptSession(
            self._prompt, history=FileHistory(str(path)), key_bindings=self._keys()
        )
        self._session.app.erase_when_done = True
        self._buffer = self._session.default_buffer
        self._buffer.accept_handler = self._accept
        self._buffer.on_text_changed += self._typed

    async def read(self, interrupted: Callable[[], None]) -> None:
        """Read messages until this is cancelled or the terminal is closed. Then the last message is `QUIT`.

        `interrupted` is called for each Ctrl-C.
        """
        self._interrupted = interrupted
        try:
            while True:
                try:
                    await self._session.prompt_async(default=self._buffer.text, set_exception_handler=False)
                except KeyboardInterrupt:
                    # On a terminal that can't move the cursor, the library has its own meaning of Ctrl-C.
                    interrupted()
        except EOFError:
            pass
        finally:
            self.add(QUIT)

    async def next(self) -> str:
        """The next message, not empty."""
        while not self.waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return self.waiting.pop(0)

    def add(self, message: str) -> None:
        """Let a message wait as if it were typed."""
        self.waiting.append(message)
        self._arrived.set()

    def take_back(self) -> None:
        """Put the waiting messages back into the line, before what is half typed."""
        if self.waiting:
            self._buffer.document = Document("\n".join([*self.waiting, self._buffer.text]).rstrip("\n"))
            self.waiting.clear()

    def clear(self) -> None:
        """Forget what is half typed."""
        self._buffer.reset()

    def show(self, text: str) -> None:
        """Show a text, with colours, directly above the line. It replaces the one before."""
        self._shown = text
        self._session.app.invalidate()

    @contextmanager
    def above(self) -> Iterator[None]:
        """A block that prints. What it prints stays above the line. It must not await anything."""
        app = self._session.app
        if app.is_running:
            app.renderer.erase()
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            app.invalidate()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """A block in which a question has the terminal. Afterwards the line is there again, with what is half typed."""
        while self._buffer.text and (left := self._typed_at + _PAUSE - time.monotonic()) > 0:
            await asyncio.sleep(left)
        async with in_terminal():
            yield

    def _prompt(self) -> ANSI:
        lines = self._shown.split("\n")[3 - self._session.output.get_size().rows :]
        return ANSI("\n".join([*filter(None, lines), "› "]))

    def _accept(self, buffer: Buffer) -> bool:
        if text := buffer.text.strip():
            self.add(text)
        return False

    def _typed(self, _: Buffer) -> None:
        self._typed_at = time.monotonic()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c", filter=has_focus(DEFAULT_BUFFER))
        @keys.add("<sigint>")
        def _(_: KeyPressEvent) -> None:
            self._interrupted()

        @keys.add("c-d", filter=has_focus(DEFAULT_BUFFER) & Condition(lambda: not self._buffer.text))
        def _(_: KeyPressEvent) -> None:
            self.add(QUIT)

        return keys

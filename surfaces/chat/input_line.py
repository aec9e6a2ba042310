"""The line in which the user writes a message. Earlier messages are saved for the arrow keys, in a file of their owner."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from albert_tools.store.private_folder import make_private

#: Bytes of the file. A longer one begins anew.
_MAX_FILE = 1024 * 1024


class InputLine:
    """Reads messages from the terminal."""

    def __init__(self, folder: Path) -> None:
        make_private(folder, "the conversations")
        path = folder / "typed"
        # The library would create a file that others can read.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if os.fstat(handle).st_size > _MAX_FILE:
            os.ftruncate(handle, 0)
        os.close(handle)
        keys = KeyBindings()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        self._session: PromptSession[str] = PromptSession(history=FileHistory(str(path)), key_bindings=keys)

    async def read(self) -> str:
        """The next message.

        Raises:
            EOFError: The user has typed Ctrl-D.
            KeyboardInterrupt: The user has typed Ctrl-C.
        """
        return await self._session.prompt_async("› ")

"""The sources that are open in an editor. Each is checked when it has not changed for a moment, one check at a time.

A change ends the check of the text before it. So a source that takes long to check, as far as the judging process allows that,
does not delay the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from albert_tools.engine.model.failure import Failure
from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.service import ToolService

#: Seconds without a change before a source is checked.
PAUSE = 0.2


class Buffer(Struct, eq=False):
    """An open source. `findings` are those of this text; empty while it is not checked yet."""

    version: int
    text: str
    findings: tuple[Diagnostic, ...] = ()
    checking: asyncio.Task[None] | None = None


class Buffers:
    """Checks the open sources, each by the address that the client gives it.

    Args:
        publish: Called with the address of a source when its findings are known.
        session: The token of the session whose tools the sources may call; None for the owner.
    """

    def __init__(self, service: ToolService, session: str | None, publish: Callable[[str, Buffer], None]) -> None:
        self._service = service
        self._session = session
        self._publish = publish
        self._open: dict[str, Buffer] = {}

    def get(self, uri: str) -> Buffer | None:
        """An open source; None for any other document."""
        return self._open.get(uri)

    def put(self, uri: str, version: int, text: str) -> None:
        """A source was opened or changed."""
        self.remove(uri)
        self._open[uri] = Buffer(version, text)
        self.check(uri)

    def check(self, uri: str) -> None:
        """Check a source, again if something else has changed."""
        buffer = self._open.get(uri)
        if buffer is not None:
            _stop(buffer)
            buffer.checking = asyncio.create_task(self._check(uri, buffer))

    def remove(self, uri: str) -> None:
        """A source was closed."""
        buffer = self._open.pop(uri, None)
        if buffer is not None:
            _stop(buffer)

    def close(self) -> None:
        """End all checks."""
        for uri in [*self._open]:
            self.remove(uri)

    async def _check(self, uri: str, buffer: Buffer) -> None:
        await asyncio.sleep(PAUSE)
        try:
            buffer.findings = await self._service.check(buffer.text, session=self._session)
        except Failure as failure:
            message = f"the source can't be checked: {failure.message}"
            buffer.findings = (Diagnostic(failure.code, message, Span(1, 1, 1, 1), hint=failure.hint),)
        self._publish(uri, buffer)


def _stop(buffer: Buffer) -> None:
    if buffer.checking is not None:
        buffer.checking.cancel()

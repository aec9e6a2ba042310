"""Which contents a session may read: those that it has stored, and those that a result has named.

Only the server's memory knows this. After a restart, a client stores a content again, or repeats its request with the same dedupe
key: the result names the content again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from albert_tools.builtins.catalog import PLACES
from albert_tools.engine.model.result import ToolResult

#: The sessions that were used last, and the contents of one session that were named last.
MAX_SESSIONS, MAX_CONTENTS = 256, 2_000
#: The fields in which our own tools name a value that they have stored or found. `publish_artifact` only repeats its argument.
_FIELDS = {"get_artifact": ("content_hash",), "publish_artifact": ()}
_FIELDS_OF_OTHERS = ("handle", "text_hash")


class KnownContents:
    """The contents of each session."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def add(self, session: str, *refs: str) -> None:
        """Let a session read these contents."""
        mine = self._known.setdefault(session, OrderedDict())
        self._known.move_to_end(session)
        for ref in refs:
            mine[ref] = None
            mine.move_to_end(ref)
        while len(mine) > MAX_CONTENTS:
            mine.popitem(last=False)
        while len(self._known) > MAX_SESSIONS:
            self._known.popitem(last=False)

    def has(self, session: str, ref: str) -> bool:
        """Whether the session may read a content."""
        return ref in self._known.get(session, ())


def named_in(result: ToolResult) -> list[str]:
    """The references that a result names. A saved tool can write anything into its result, so that doesn't count."""
    output: Any = result.output
    if not isinstance(output, Mapping):
        return []
    if result.tool in PLACES:
        fields = _FIELDS.get(result.tool, _FIELDS_OF_OTHERS)
        return [output[name] for name in fields if isinstance(output.get(name), str)]
    return [output["handle"]] if result.truncated and isinstance(output.get("handle"), str) else []

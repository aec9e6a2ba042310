"""Handing an output over: whole, or where it is large a part of it and a handle to all of it.

Only what goes to whoever called from outside is cut. Between the steps of a program values are whole.
"""

from __future__ import annotations

import msgspec

from albert_tools.engine.call.context import Request
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure

#: Bytes of the beginning and of the end that are shown of a large output.
SHOWN_BYTES = 4096
#: The family of the tools that read what is kept.
READERS = "artifacts"


def handed(output: Json, request: Request, family: str) -> Json:
    """The output, or ``{truncated, handle, size_bytes, kind, head, tail}`` of one that is larger than may be handed over.

    `handle` is for `read_result`. A text is kept as itself, anything else as JSON; `kind` says which. The answers of the
    `family` that reads what is kept are bounded by themselves, and kept no second time.
    """
    surroundings = request.surroundings
    if (
        surroundings.contents is None
        or surroundings.scratch
        or family == READERS
        or output is None
        or isinstance(output, bool | int | float)
    ):
        return output
    is_text = isinstance(output, str)
    if is_text and len(output) * 4 <= surroundings.output_bytes:
        return output
    data = output.encode("utf-8", "surrogatepass") if is_text else msgspec.json.encode(output)
    if len(data) <= surroundings.output_bytes:
        return output
    try:
        handle = surroundings.contents.put(data)
        request.recorder.handed(request.run.id, handle, len(data))
    except Failure:
        # No room to keep it: whoever called gets it whole, which is more than was promised.
        return output
    return {
        "truncated": True,
        "handle": handle,
        "size_bytes": len(data),
        "kind": "text" if is_text else "json",
        "head": data[:SHOWN_BYTES].decode("utf-8", "ignore"),
        "tail": data[-SHOWN_BYTES:].decode("utf-8", "ignore"),
    }

"""Large outputs. The caller gets the beginning, the end, and a handle to the stored value.

Only the results of requests are shortened. The steps of a program exchange complete values.
"""

from __future__ import annotations

from albert_tools.engine.call import ledger
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.call.journal_reader import stored_form
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import QUOTA

#: The number of bytes that the caller gets from the beginning, and from the end.
SHOWN_BYTES = 4096
#: The family of the tools that read stored values. The results of these tools have a maximum size and are never stored again.
READERS = "artifacts"


def keep_output(call: Call, run: Run, output: Json) -> None:
    """Store the output of a call if it is large, before the call's end is recorded. So a refusal is recorded, too.

    Raises:
        Failure: `budget_exceeded` if the output may not be stored for the session. The effects of the call remain.
    """
    try:
        if not call.depth:
            run.report.shown = output_or_handle(output, run)
        elif run.session.id is not None:
            run.journal.keep(output)
    except Failure as failure:
        if failure.rule != QUOTA:
            raise
        raise failure.copy(message=f"{call.name} has ended, but its result is lost: {failure.message}") from None


def output_or_handle(output: Json, run: Run) -> Json:
    """The output; or ``{truncated, handle, size_bytes, kind, head, tail}`` if it exceeds `ServiceContext.output_bytes`.

    The tool `read_result` accepts the handle. A string is stored as text and any other value as JSON; `kind` is ``text`` or
    ``json``.

    Raises:
        Failure: `budget_exceeded` if the output may not be stored for the session.
    """
    service = run.service
    if (
        run.contents is None
        or run.target.definition.family == READERS
        or output is None
        or isinstance(output, bool | int | float)
    ):
        return output
    is_text = isinstance(output, str)
    if is_text and len(output) * 4 <= service.output_bytes:
        return output
    data = stored_form(output)
    if len(data) <= service.output_bytes:
        return output
    try:
        handle = run.contents.put(data)
        ledger.handed(run, handle, len(data))
    except Failure as failure:
        if failure.rule == QUOTA:
            raise
        # The output can't be stored, so the caller gets all of it.
        return output
    return {
        "truncated": True,
        "handle": handle,
        "size_bytes": len(data),
        "kind": "text" if is_text else "json",
        "head": data[:SHOWN_BYTES].decode("utf-8", "ignore"),
        "tail": data[-SHOWN_BYTES:].decode("utf-8", "ignore"),
    }

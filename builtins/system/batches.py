"""Batches: one tool is called for each of many items, by the workers of a queue."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import BatchAccess, CallContext
from albert_tools.engine.model.schema import Bound

#: The most items of one run, and the most results that one call returns.
MAX_PART = 1000

Part = Annotated[int, Bound(minimum=1, maximum=MAX_PART)]


class Started(TypedDict):
    """The result of `start_batch`."""

    batch: str
    runs: int


class Progress(TypedDict):
    """The result of `read_batch`."""

    tool: str
    items: int
    runs: dict[str, int]
    results: list[dict[str, Any]]
    next_item: int | None


@primitive(
    effects=["write"],
    category="artifact",
    timeout=300.0,
    idempotent=True,
    uses={"tool": "tool", "items": "items"},
    schemas={
        "tool": {"minLength": 1, "maxLength": 128},
        "items": {"minItems": 1},
        "queue": {"minLength": 1, "maxLength": 80},
    },
    outputs={".batch": "word", ".runs": "little"},
)
async def start_batch(
    context: CallContext, tool: str, items: list[dict[str, Any]], queue: str = "default", per_run: Part = 100
) -> Started:
    """Call a tool for each of many items later, by the workers of a queue. For more calls than a run may have.

    Returns {"batch", "runs"}: "batch" is the id for read_batch, "runs" the number of runs that were queued. In a program, the
    name of the tool is written as a text, "summarize", and the calls are made in the version that the program was checked
    against. Each call passes the rules when it is made. All items are checked before the first run is queued.

    Fails with `unknown_tool`, `invalid_arguments` (an item has wrong arguments, the rules have no such queue),
    `permission_denied` (also in a run of a batch), `outdated` (the tool has a newer version: define this one again),
    `rate_limited`, `budget_exceeded`, `not_found` (no runs are recorded here), `io_error`.

    Args:
        tool: The name of the tool, for example "summarize".
        items: The arguments of each call, for example [{"path": "a.txt"}, {"path": "b.txt"}].
        queue: The queue whose workers make the calls.
        per_run: The most items of one run.
    """
    batch, runs = await _batches(context).start(tool, items, queue, per_run)
    context.effect("write", batch=batch, called=tool, items=len(items), runs=runs)
    return {"batch": batch, "runs": runs}


@primitive(
    effects=["read"],
    idempotent=True,
    uses={"batch": "batch"},
    schemas={"batch": {"minLength": 1, "maxLength": 16}, "first": {"minimum": 0}},
    outputs={".items": "little", ".next_item": "little", ".results": "at most count items"},
    # The results can be those of any tool. A page of the web is the least trusted.
    source="web",
)
def read_batch(context: CallContext, batch: str, first: int = 0, count: Part = 100) -> Progress:
    """Read the results of a batch, in the order of its items, as far as its runs have ended.

    Returns {"tool", "items", "runs", "results", "next_item"}: "items" is the number of items, "runs" the number of runs by
    state ({"done": 3, "queued": 7}), "results" has {"value": …} for each item from `first` on, or {"error": …} with a message,
    and "next_item" is the first item that is not among them, null at the end. If no result is there yet, "results" is empty.

    Fails with `not_found` (this session has started no such batch), `damaged`, `invalid_arguments`, `io_error`.

    Args:
        batch: The id, as start_batch returned it.
        first: The number of the first item, from 0.
        count: The most results to return.
    """
    progress: Progress = _batches(context).read(batch, first, count)
    context.effect("read", batch=batch, items=len(progress["results"]))
    return progress


def _batches(context: CallContext) -> BatchAccess:
    if context.batches is None:
        raise Failure("not_found", "no runs are recorded here, so there are no batches")
    return context.batches

"""The hint for a tool whose target already exists: name another path, or allow the tool to replace the target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext


@contextmanager
def occupied(context: CallContext, path: str, otherwise: str, name: str = "") -> Iterator[None]:
    """Add a hint to a failure because `path` exists: `otherwise`.

    If `path` is a folder, the hint is the path of a file `name` in it.
    """
    try:
        yield
    except Failure as failure:
        if failure.code in ("exists", "not_a_file"):
            folder = False
            with suppress(Failure):
                folder = context.workspace.info(path).type == "directory"
            if folder:
                inside = f"{path.rstrip('/')}/{name}" if name else f"{path.rstrip('/')}/…"
                failure.hint = f"it is a folder: name the file too, {inside!r}"
            elif failure.code == "exists" and failure.hint is None:
                failure.hint = otherwise
        raise

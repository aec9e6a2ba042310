"""Tell the caller of a composite that somebody else has changed it."""

from __future__ import annotations

from albert_tools.engine.call.context import Run
from albert_tools.engine.model.definition import Json


def changed_by_others(run: Run) -> dict[str, Json]:
    """``{"changed": …}`` for the metadata of a result, if somebody else has defined the version that a request runs in place of an
    earlier one: since the session was opened, or for the owner at any time. Otherwise empty."""
    version = run.target.version
    if version is None or run.options.unsaved is not None or run.invocation.version is not None:
        return {}
    if run.session.knows(version):
        return {}
    before = run.lookup.before(version.name)
    if not before:
        return {}
    whom = f"the session {version.author}" if version.author else "the owner"
    return {
        "changed": {
            "message": f"{version.name} was changed by {whom} at {version.created[:19]}",
            "by": version.author or None,
            "at": version.created,
            "before": before,
        }
    }

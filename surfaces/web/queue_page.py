"""What waits for a person: questions and versions in one queue, by session, in pages.

A page has the next items of the fair order (`engine.authority.waiting`), grouped by session. So also the first page has something
of each session.
"""

from __future__ import annotations

from typing import Any

from albert_tools.engine.authority.approvals import PAGE, Approval
from albert_tools.engine.authority.reviews import VersionState
from albert_tools.engine.authority.waiting import waiting
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.recorded_call import call_text
from albert_tools.engine.review.sentences import sentence
from albert_tools.service import ToolService
from albert_tools.surfaces.text.times import moment
from albert_tools.surfaces.web.tool_pages import when

#: Characters of an argument, and of the name of a client.
_ARGUMENT, _CLIENT = 200, 60


def queue_page(service: ToolService, page: int) -> dict[str, Any]:
    """The values of one page of the queue, from 1 on."""
    queue = waiting(service.approvals, service.reviews)
    pages = max(1, -(-len(queue) // PAGE))
    # The page may have become too high: others decide meanwhile.
    page = max(1, min(page, pages))
    active = service.reviews.active()
    clients = {session.id: (session.client, session.ended) for session in service.sessions.all()}
    groups: dict[str, dict[str, Any]] = {}
    for each in queue[(page - 1) * PAGE :][:PAGE]:
        client, ended = clients.get(each.session, ("", False))
        group = groups.setdefault(
            each.session, {"session": each.session, "client": brief(client, _CLIENT), "ended": ended, "items": []}
        )
        item = each.item
        group["items"].append(_question(item) if isinstance(item, Approval) else _version(service, item, active))
    return {
        "total": len(queue),
        "groups": [{**group, "all": sum(w.session == name for w in queue)} for name, group in groups.items()],
        "page": page,
        "pages": pages,
    }


def _question(approval: Approval) -> dict[str, Any]:
    return {
        "question": approval.id,
        "tool": approval.tool,
        "callers": approval.callers,
        "call": call_text(approval.tool, approval.arguments, _ARGUMENT),
        "message": approval.message,
        "time": moment(approval.asked),
        "session": approval.session,
    }


def _version(service: ToolService, state: VersionState, active: dict[str, str]) -> dict[str, Any]:
    row = {
        "question": "",
        "name": state.tool,
        "version": state.version,
        "time": when(state.time),
        "replaces": state.tool in active,
        "session": state.by,
        "user": service.reviews.definers(state.tool).get(state.version, ""),
    }
    try:
        version = service.store.load(state.tool, state.version)
    except Failure as failure:
        return {**row, "effects": (), "sentence": failure.message}
    return {**row, "effects": version.definition.effects, "sentence": sentence(version.manifest)}

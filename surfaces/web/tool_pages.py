"""The pages of saved tools: the list of all tools, and one version with all that a reviewer needs."""

from __future__ import annotations

import asyncio
from typing import Any

from albert_tools.engine.authority.reviews import REASONED, VersionState
from albert_tools.engine.listing import SAVED, Listed
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.review.manifest_view import split
from albert_tools.engine.review.version_review import VersionReview
from albert_tools.service import ToolService
from albert_tools.surfaces.text.times import moment, since_1970
from albert_tools.surfaces.web.graph_svg import MAX_BOXES, graph_svg
from albert_tools.surfaces.web.source_lines import source_lines

#: Tools of one page of a list. Runs of one tool, and the newest runs of all tools among which they are looked for.
PAGE, MAX_RUNS, SEARCHED = 50, 10, 50
#: The decisions that are possible in each state.
VERDICTS = {
    "pending": ["approve", "send_back", "reject"],
    "draft": ["approve", "reject"],
    "active": ["deprecate", "revoke"],
    "deprecated": ["approve", "revoke"],
    "revoked": ["approve"],
}


def next_waiting(service: ToolService, after: str) -> VersionState | None:
    """The pending version of the next tool after this name, or of the first tool; None if no other tool has one."""
    waiting = [state for state in service.reviews.queue() if state.tool != after]
    return next((state for state in waiting if state.tool > after), waiting[0] if waiting else None)


async def tools_page(service: ToolService, query: str, after: str) -> dict[str, Any]:
    """The values of the list of saved tools: those that a search finds, or a page of all."""
    if query:
        listed = [tool for tool in await service.search(query, PAGE) if tool.kind == "composite"]
    else:
        listed = await service.list(family=SAVED, limit=PAGE, after=after)
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "effects": tool.effects,
            "problem": tool.problem,
            "state": "damaged" if tool.problem else (await asyncio.to_thread(_state, service, tool)),
        }
        for tool in listed
    ]
    full = not query and len(listed) == PAGE
    return {"tools": tools, "query": query, "next_page": listed[-1].name if full else "", "page_size": PAGE}


async def tool_page(service: ToolService, name: str, version: str | None, rerun: bool) -> dict[str, Any]:
    """The values of the page of one version; the newest if `version` is None. With `rerun`, its examples and the recorded runs are
    repeated.

    Raises:
        Failure: `unknown_tool`, `damaged`, `invalid_arguments` for a primitive.
    """
    review = await service.review(name, version, rerun=rerun)
    values = await asyncio.to_thread(_version_values, service, review)
    return {**values, "review": review, "rerun": rerun}


def _version_values(service: ToolService, review: VersionReview) -> dict[str, Any]:
    version = review.version
    definition, name = version.definition, version.name
    return {
        "name": name,
        "state": service.reviews.of(version),
        "lines": split(review.lines),
        "claim": f"{definition.signature()}\n\n{definition.description}",
        "source": source_lines(version.source, version.manifest.calls),
        "diff": [_diff_line(line) for line in review.changes.source] if review.changes else [],
        "graph": graph_svg(review.graph) if any(n.kind == "composite" for n in review.graph[1:]) else None,
        "undrawn": max(0, len(review.graph) - MAX_BOXES),
        "verdicts": VERDICTS.get(service.reviews.of(version).state, []),
        "reasoned": REASONED,
        "versions": [(state, when(state.time)) for state in service.reviews.all(name)],
        "runs": [(run, when(run.created)) for run in service.runs.list(SEARCHED) if run.tool == name][:MAX_RUNS],
        "searched": SEARCHED,
    }


def _diff_line(line: str) -> tuple[str, str, str]:
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return (
        kinds.get(line[:1], "same"),
        line[:1] if line[:1] in ("+", "-") else " ",
        line if line[:1] == "@" else line[1:],
    )


def when(time: str) -> str:
    """An ISO 8601 time for people."""
    at = since_1970(time)
    return moment(at) if at is not None else ""


def _state(service: ToolService, tool: Listed) -> str:
    try:
        return service.reviews.state(tool.name, tool.version).state
    except Failure:
        return "damaged"

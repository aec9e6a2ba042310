"""Proposals to complete the name of a tool, or the arguments of its call."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lsprotocol import types

from albert_tools.engine.listing import first_line
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.describe import shape_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.visible_text import safe
from albert_tools.service import ToolService
from albert_tools.surfaces.lsp.positions import Places
from albert_tools.surfaces.lsp.written_names import MAX_CALL, begun_tool, open_call

#: The most tools that are proposed at once. When more of the name is written, the editor asks again.
MAX_PROPOSED = 200


def proposals(service: ToolService, session: str | None, places: Places, at: types.Position) -> types.CompletionList:
    """The proposals at a place. There are none if the session has ended; the findings say so."""
    before = places.before(at, MAX_CALL)
    written = begun_tool(before)
    try:
        if written is None:
            return types.CompletionList(False, [*_arguments(service, session, before)])
        definitions = [*islice(_tools(service, session, written), MAX_PROPOSED + 1)]
    except Failure:
        return types.CompletionList(False, [])
    _, column = places.line(at)
    whole = types.Range(places.place(at.line, column - len(written)), at)
    return types.CompletionList(len(definitions) > MAX_PROPOSED, [_name(d, whole) for d in definitions[:MAX_PROPOSED]])


def _tools(service: ToolService, session: str | None, beginning: str) -> Iterator[ToolDefinition]:
    """The tools that programs of the session may call, and whose names begin so."""
    covers = service.coverage(session)
    for name in service.registry.names():
        if name.startswith(beginning) and covers(name):
            # A damaged tool has no definition.
            definition = service.registry.get(name)
            if definition is not None:
                yield definition


def _name(d: ToolDefinition, written: types.Range) -> types.CompletionItem:
    return types.CompletionItem(
        d.name,
        kind=types.CompletionItemKind.Function,
        detail=d.signature(),
        documentation=safe(first_line(d.description)),
        text_edit=types.TextEdit(written, d.name),
    )


def _arguments(service: ToolService, session: str | None, before: str) -> Iterator[types.CompletionItem]:
    """The parameters that are not given yet, in their order."""
    name, given = open_call(before) or ("", set[str]())
    definition = service.registry.get(name) if name and service.covers(session, name) else None
    for i, p in enumerate(definition.parameters if definition is not None else ()):
        if p.name not in given:
            yield types.CompletionItem(
                f"{p.name}=",
                kind=types.CompletionItemKind.Variable,
                detail=shape_of(p),
                documentation=safe(p.description),
                sort_text=f"{i:03}",
            )

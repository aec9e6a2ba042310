"""The description of a name at a place: a tool, a module, a name of the language.

Descriptions of tools are words of agents and of mounted servers. So they are plain texts: Markdown could load pictures.
"""

from __future__ import annotations

from lsprotocol import types

from albert_tools.engine.agent.language_help import language_help
from albert_tools.engine.describing import Description
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.visible_text import one_line, safe
from albert_tools.engine.review.sentences import sentence
from albert_tools.service import ToolService
from albert_tools.surfaces.lsp.positions import Places
from albert_tools.surfaces.lsp.written_names import tool_at, topic_at


async def hover(service: ToolService, session: str | None, places: Places, at: types.Position) -> types.Hover | None:
    """The description at a place, or None. A tool that the session may not call has none; the findings say so."""
    line, column = places.line(at)
    tool = tool_at(line, column)
    if tool is None:
        topic = topic_at(line, column)
        if topic is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, language_help(topic)["text"]))
    name, start, end = tool
    try:
        text = _described(await service.describe(name, session=session))
    except Failure:
        return None
    where = types.Range(places.place(at.line, start), places.place(at.line, end))
    return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, text), where)


def _described(description: Description) -> str:
    """What `albert show` says about a tool, without the details of its rules."""
    d, policy = description.definition, description.policy
    parameters = [f"  {p.name}: {one_line(p.description)}" for p in d.parameters if p.description]
    parts = [d.signature(), safe(d.description.strip()), "\n".join(parameters)]
    facts = [sentence(d.manifest)] if d.manifest is not None else []
    facts.append(f"effects: {', '.join(d.effects) or 'none'}")
    if policy:
        mode = f" in {policy['mode']}" if policy.get("mode") else ""
        why = f": {one_line(policy['message'])}" if policy["message"] else ""
        facts.append(f"now: {policy['verdict']}{mode}{why}")
    facts += [f"outdated: {one_line(description.outdated)}"] if description.outdated else []
    return "\n\n".join(part for part in [*parts, "\n".join(facts)] if part)

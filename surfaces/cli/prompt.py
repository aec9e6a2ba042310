"""``albert prompt``: the guide for a model that writes tools.

The guide is `guide.md` (tests run its programs) and a list of the tools. Primitives are listed with their results, saved tools
with their first line. The text depends only on the tools and the rules, so a model's provider can cache it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from albert_tools.engine.service import Listed
from albert_tools.surfaces.cli.console import Console, safe
from albert_tools.surfaces.cli.service_options import in_service
from albert_tools.surfaces.cli.session_tools import may, session_of_environment

if TYPE_CHECKING:
    from albert_tools.engine.model.primitive import Primitive
    from albert_tools.service import ToolService

#: Saved tools that are listed. A model finds other tools by searching.
MAX_SAVED = 30

#: Statements that apply to all tools.
_NOTES = (
    "- Paths are relative to the workspace; `..` is refused.",
    "- [asks]: a person is asked first; [denied]: the rules deny it; [off]: denied until the owner allows it.",
    "- Patterns of tools are RE2, without lookaround and backreferences; `re` in a program has both.",
    '- A result that is too large is `{"truncated": true, "handle": "b3:…", "size_bytes", "kind", "head", "tail"}`, or has a',
    "  `handle` that isn't null: `read_result(handle=…)` reads the rest. Programs get whole values.",
)


def prompt(options: argparse.Namespace, console: Console) -> int:
    """Print the guide."""

    async def collect(service: ToolService) -> str:
        session = session_of_environment(service)
        primitives = [_line(service, p) for p in service.registry.primitives() if may(service, session, p.name)]
        saved = [t for t in await service.list() if t.kind == "composite" and not t.problem and not t.outdated]
        return guide(primitives, [t for t in saved if may(service, session, t.name)])

    text = in_service(options, collect)
    if console.json:
        console.document({"ok": True, "prompt": text})
    else:
        console.write(text)
    return 0


def _line(service: ToolService, primitive: Primitive) -> str:
    """A primitive with its signature, its first paragraph and the paragraph about its result."""
    d = primitive.definition
    first, *others = (" ".join(paragraph.split()) for paragraph in d.description.split("\n\n"))
    result = f" {others[0]}" if others and others[0].startswith(("Returns", "Each")) else ""
    return f"- `{d.signature()}`: {first}{result}{_mark(service.standing(d, primitive.gated))}"


def _mark(policy: Mapping[str, Any]) -> str:
    """The decision on the tool. Empty if the tool is allowed."""
    if policy.get("rationale_code") == "off_by_default":
        return " [off]"
    return {"ask": " [asks]", "deny": " [denied]"}.get(str(policy.get("verdict")), "")


def guide(primitives: list[str], saved: list[Listed]) -> str:
    """The text of the guide."""
    lines = [(files("albert_tools.surfaces.cli") / "guide.md").read_text(encoding="utf-8").rstrip("\n"), ""]
    lines += _NOTES
    lines += ["", *primitives]
    if saved:
        lines += ["", "Saved:", "", *(f"- `{t.signature}`: {safe(t.description)}" for t in saved[:MAX_SAVED])]
        if len(saved) > MAX_SAVED:
            lines.append(f"- and {len(saved) - MAX_SAVED} more")
    return "\n".join(lines) + "\n"

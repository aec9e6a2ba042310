"""The findings about a source that depend on the tools that exist: its name, and its callees."""

from __future__ import annotations

from collections.abc import Callable

from albert_tools.engine.check.checker import Report
from albert_tools.engine.check.finding_limits import capped
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.scopes import spelled
from albert_tools.engine.model.protocols import Catalog
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.grammar.diagnostic import Diagnostic


def with_existing_tools(
    report: Report,
    catalog: Catalog,
    outdated: Callable[[str], str | None],
    look_alike: Callable[[str], str | None],
) -> Report:
    """The report of a check, with the findings of `codes.WHEN_DEFINED`.

    Args:
        report: The report.
        catalog: The existing tools.
        outdated: Why a callee can't run, or None.
        look_alike: An existing tool whose name could be mistaken for a name, or None. It is the name itself for a tool that the
            session doesn't know.
    """
    if report.checked is None:
        return report
    facts = report.checked.facts
    assert facts.tool is not None
    refused: list[Diagnostic] = []
    name = spelled(facts.tool.name)
    taken = catalog.get(name)
    if name in RESERVED or (taken is not None and taken.kind == "primitive"):
        kind = "an action" if name in RESERVED else "a primitive"
        refused.append(
            error(
                "name-taken",
                facts.tool.name_span,
                f"{name!r} is {kind}; a saved tool needs a name of its own",
                hint=f"call it something else, for example my_{name}",
            )
        )
    elif like := look_alike(name):
        is_like = "is" if like == name else f"looks like {like!r}, which is"
        refused.append(
            error(
                "name-taken",
                facts.tool.name_span,
                f"{name!r} {is_like} a tool already",
                hint="choose a name that nobody mistakes for it",
            )
        )
    else:
        # The tool would already be outdated when it is saved.
        refused += [
            error(
                "outdated-callee",
                node.span,
                f"{callee!r} is outdated: {why}",
                hint=f"define {callee} again first, from its source",
            )
            for node, callee in facts.callees
            if (why := outdated(callee))
        ]
    if not refused:
        return report
    return Report(capped((*report.diagnostics, *refused)), None)

"""What the functions of `re` and the methods of its patterns return."""

from __future__ import annotations

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.calls import Invocation, call_back, is_written
from albert_tools.engine.analysis.containers import new_list, new_tuple, numbers, only_site, text_of
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import NONE, REST, AbstractValue, compared, constant, join, marks_in
from albert_tools.grammar import tree

#: The functions and methods that search a text.
MATCHING = frozenset({"match", "search", "fullmatch", "findall", "finditer"})


def match_objects(
    analysis: Analysis, node: tree.Node, name: str, subject: AbstractValue, arguments: list[AbstractValue]
) -> AbstractValue:
    """A match, a list of matches, or a list of texts. All texts in them are pieces of the subject."""
    data, control = analysis.heap.deep(join(arguments))
    data = compared(data, name, marks_in(join(arguments[:1]).alternatives))
    known = templates.pieces(subject.alternatives) if subject.alternatives and not subject.sites else templates.ANYTHING
    piece = AbstractValue(known, data, control)
    site = analysis.site(node, "match")
    container = analysis.heap.make(site, "open", outside=True)
    analysis.heap.put(site, REST, piece | NONE)  # a group that has not matched
    match = AbstractValue(data=data, control=control, sites=container.sites)
    if name in ("match", "search", "fullmatch"):
        return match | NONE
    groups = new_list(analysis, node, "groups", piece)
    analysis.sized(only_site(groups), "unknown")
    item = match if name == "finditer" else piece | groups if name == "findall" else piece | NONE
    made = new_list(analysis, node, "matches", item)
    patterns = join(arguments[:1]).constants() or ["("]
    if name == "split" and any("(" in str(p) for p in patterns):
        analysis.sized(only_site(made), "unknown")  # the groups are items, too
    elif name == "split":
        # An empty pattern separates all characters, and has two more empty pieces.
        analysis.sized(
            only_site(made),
            "sum",
            analysis.remember(node, constant("xx"), "more"),
            analysis.remember(node, subject, "subject"),
        )
    else:
        analysis.sized(only_site(made), "pieces", analysis.remember(node, subject, "subject"))
    return AbstractValue(data=data, control=data | control, sites=made.sites)


def replaced(
    analysis: Analysis,
    call: Invocation,
    name: str,
    function: tree.Expr | None,
    subject: AbstractValue,
    arguments: list[AbstractValue],
) -> AbstractValue:
    """The result of `sub` and `subn`. `function` is the replacement, a text or a callback."""
    if function is not None and not isinstance(function, tree.Strings):
        match = match_objects(analysis, function, "search", subject, arguments)
        pieces = new_list(analysis, function, "pieces", match)
        analysis.sized(only_site(pieces), "pieces", analysis.remember(function, subject, "subject"))
        if is_written(analysis, function):
            decided = call.control | analysis.heap.condition(join(arguments))
            arguments = [*arguments, call_back(analysis, call.node, function, [match], decided, pieces)]
    text = text_of(analysis, *arguments)
    return text if name == "sub" else new_tuple(analysis, call.node, [text, numbers(analysis, *arguments)])

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
    a: Analysis, node: tree.Node, name: str, subject: AbstractValue, every: list[AbstractValue]
) -> AbstractValue:
    """A match, a list of matches, or a list of texts. All texts in them are pieces of the subject."""
    data, control = a.heap.deep(join(every))
    data = compared(data, name, marks_in(join(every[:1]).alternatives))
    known = templates.pieces(subject.alternatives) if subject.alternatives and not subject.sites else templates.ANYTHING
    piece = AbstractValue(known, data, control)
    site = a.site(node, "match")
    found = a.heap.make(site, "open", outside=True)
    a.heap.put(site, REST, piece | NONE)  # a group that has not matched
    match = AbstractValue(data=data, control=control, sites=found.sites)
    if name in ("match", "search", "fullmatch"):
        return match | NONE
    groups = new_list(a, node, "groups", piece)
    a.sized(only_site(groups), "unknown")
    item = match if name == "finditer" else piece | groups if name == "findall" else piece | NONE
    made = new_list(a, node, "matches", item)
    patterns = join(every[:1]).constants() or ["("]
    if name == "split" and any("(" in str(p) for p in patterns):
        a.sized(only_site(made), "unknown")  # the groups are items, too
    elif name == "split":
        # An empty pattern separates all characters, and has two more empty pieces.
        a.sized(only_site(made), "sum", a.remember(node, constant("xx"), "more"), a.remember(node, subject, "subject"))
    else:
        a.sized(only_site(made), "pieces", a.remember(node, subject, "subject"))
    return AbstractValue(data=data, control=data | control, sites=made.sites)


def replaced(
    a: Analysis,
    call: Invocation,
    name: str,
    function: tree.Expr | None,
    subject: AbstractValue,
    every: list[AbstractValue],
) -> AbstractValue:
    """The result of `sub` and `subn`. `function` is the replacement, a text or a callback."""
    if function is not None and not isinstance(function, tree.Strings):
        match = match_objects(a, function, "search", subject, every)
        pieces = new_list(a, function, "pieces", match)
        a.sized(only_site(pieces), "pieces", a.remember(function, subject, "subject"))
        if is_written(a, function):
            decided = call.control | a.heap.condition(join(every))
            every = [*every, call_back(a, call.node, function, [match], decided, pieces)]
    text = text_of(a, *every)
    return text if name == "sub" else new_tuple(a, call.node, [text, numbers(a, *every)])

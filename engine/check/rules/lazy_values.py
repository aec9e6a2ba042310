"""Lazy values are consumed where they are created, or soon after, by a name that is used once (`lazy_names`).

``map``, ``zip``, ``csv.reader``, ``re.finditer``, generator expressions and similar values may be used in a ``for`` header, or as
an argument of a function that consumes them. They can't be kept, returned or stored otherwise, for three reasons: they would be
evaluated later than the source suggests, they could be nested without limit, and they can't be part of a result. The rewrite is
``list(...)``. It is only a fix where the lazy value itself can't be used: elsewhere the values would be made at another time."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, called_name, tool_name
from albert_tools.engine.check.lazy_names import lazy_names
from albert_tools.engine.check.rule import error, wrap
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Fix
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "lazy-value",
        "A lazy value is kept instead of being consumed where it is made.",
        "It would run later than it is written, and it can't leave the program.",
        example=in_tool("return map(str.upper, path.split())"),
        rewrite=in_tool("return list(map(str.upper, path.split()))"),
    ),
)

#: Built-ins that consume an iterator, or that return a lazy value which is checked itself.
CONSUMERS = frozenset(
    """list tuple set frozenset dict sum min max any all sorted next iter enumerate zip map filter""".split()
)
#: Functions of façades that consume an iterator, or that return a lazy value which is checked itself.
FACADE_CONSUMERS = frozenset(
    """collections.Counter collections.OrderedDict collections.deque functools.reduce math.fsum math.prod math.lcm
    math.gcd statistics.mean statistics.fmean statistics.median statistics.mode statistics.multimode
    statistics.stdev statistics.pstdev statistics.variance statistics.pvariance statistics.median_low
    statistics.median_high statistics.quantiles heapq.nlargest heapq.nsmallest heapq.merge csv.reader
    csv.DictReader itertools.accumulate itertools.chain itertools.chain.from_iterable itertools.combinations
    ipaddress.collapse_addresses itertools.combinations_with_replacement itertools.compress itertools.dropwhile
    itertools.filterfalse itertools.groupby itertools.islice itertools.pairwise itertools.permutations
    itertools.product itertools.starmap itertools.takewhile itertools.zip_longest shlex.join
    posixpath.commonprefix posixpath.commonpath urllib.parse.urlencode""".split()
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every lazy value."""
    named = {id(value) for value in consumed_names(facts).values()}
    for node in facts.every(tree.Call, tree.GeneratorExp):
        if lazy(facts, node) and not consumed(facts, node) and id(node) not in named:
            yield error(
                "lazy-value",
                node,
                f"{_name(node)} is lazy and must be consumed where it is made",
                hint="wrap it in list(…); a name may hold it if it is consumed once, later in the same block, and nothing that"
                " it reads changes in between",
                fix=_list_of(facts, node) if _unusable(facts, node) else None,
            )


def consumed_names(facts: Facts) -> dict[int, tree.Expr]:
    """The lazy values that a name holds until they are consumed, by id of the node where the name is consumed."""
    return lazy_names(facts, lazy, consumed)


def _unusable(facts: Facts, node: tree.Expr) -> bool:
    """Whether the lazy value can only cause an error here: as a result, as an argument of a tool, for its length or an item."""
    above = facts.parent(node)
    match above:
        case tree.Return():
            return facts.tool is not None and facts.function_of(above) is facts.tool
        case tree.Keyword():
            call = facts.parent(above)
            return isinstance(call, tree.Call) and tool_name(call.func) is not None
        case tree.Call():
            return tool_name(above.func) is not None or called_name(above) == "len"
        case tree.Subscript():
            return above.value is node
    return False


def _list_of(facts: Facts, node: tree.Expr) -> Fix:
    if isinstance(node, tree.GeneratorExp) and _has_parentheses(facts, node):
        return wrap(node, "list", "", "make a list")
    return wrap(node, "list(", ")", "make a list")


def lazy(facts: Facts, node: tree.Node) -> bool:
    """Whether an expression creates a lazy iterator."""
    if isinstance(node, tree.GeneratorExp):
        return True
    if not isinstance(node, tree.Call):
        return False
    func = node.func
    if isinstance(func, tree.Name) and func.id in vocabulary.BUILTINS:
        return vocabulary.BUILTINS[func.id].lazy
    entry = facts.entry(func)
    if entry is not None:
        return entry.lazy
    return isinstance(func, tree.Attribute) and func.attr in vocabulary.LAZY_METHODS and facts.facade(func) is None


def consumed(facts: Facts, node: tree.Node) -> bool:
    """Whether the code around `node` consumes it immediately."""
    above = facts.parent(node)
    match above:
        case tree.For():
            return above.iter is node
        case tree.Comprehension():
            return above.iter is node
        case tree.Starred():
            holder = facts.parent(above)
            return isinstance(holder, tree.Call | tree.List | tree.Tuple | tree.Set)
        case tree.Compare():
            return above.left is not node and above.ops == ("in",)
        case tree.Assign():
            return above.value is node and all(isinstance(t, tree.Tuple | tree.List) for t in above.targets)
        case tree.AugAssign():
            return above.op == "+"
        case tree.IfExp():
            return above.test is not node and consumed(facts, above)
        case tree.Call():
            return any(a is node for a in above.args) and _consumes(facts, above, node)
    return False


def _consumes(facts: Facts, call: tree.Call, node: tree.Node) -> bool:
    func = call.func
    match called_name(call):
        case "parallel":
            return True  # the rule for parallel checks it
        case "iter":
            return consumed(facts, call)
        case "min" | "max":
            return len(call.args) == 1
        case "next" | "sum":
            return call.args[0] is node  # a default or a start value is returned unchanged
        case name if name in CONSUMERS:
            return True
    named = facts.facade(func)
    if named == ("functools", "reduce"):
        return len(call.args) > 1 and call.args[1] is node  # so is the initial value
    if named is not None:
        return f"{named[0]}.{named[1]}" in FACADE_CONSUMERS
    if isinstance(func, tree.Attribute) and func.attr == "fromkeys":
        return call.args[0] is node  # the value is kept
    return isinstance(func, tree.Attribute) and func.attr in vocabulary.CONSUMING_METHODS


def _name(node: tree.Call | tree.GeneratorExp) -> str:
    if isinstance(node, tree.GeneratorExp):
        return "a generator expression"
    func = node.func
    return f"{func.attr if isinstance(func, tree.Attribute) else getattr(func, 'id', 'this')}(…)"


def _has_parentheses(facts: Facts, node: tree.GeneratorExp) -> bool:
    lines = facts.lines
    return lines[node.span.line - 1][node.span.column - 1 : node.span.column] == "("

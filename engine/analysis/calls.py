"""Calls of helpers, and callbacks."""

from __future__ import annotations

from typing import NamedTuple

from albert_tools.engine.analysis.containers import anything, booleans, concern, put_all, read_keys, taken, text_of
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import NEVER, REST, AbstractValue, Origins, join
from albert_tools.grammar import tree

#: The functions that take all items of an iterator, whatever they are.
_READS_ALL = frozenset(
    "parallel list tuple set frozenset dict sorted sum min max join Counter deque extend update".split()
)
#: Those that make items one by one and never stop by themselves. What consumes them can.
_PASSES_ALL = frozenset("enumerate iter reader DictReader StringIO chain from_iterable zip_longest pairwise".split())
#: Others that call a function once for each item.
_CALLS_FOR_ALL = frozenset("map filter sort reduce sub subn".split())


class Arguments(NamedTuple):
    """The arguments of a call. `more` describes all items that ``*xs`` and ``**options`` can add."""

    positional: list[AbstractValue]
    named: dict[str, AbstractValue]
    more: AbstractValue

    @property
    def all(self) -> list[AbstractValue]:
        """Every argument."""
        more = [self.more] if self.more is not NEVER else []
        return [*self.positional, *self.named.values(), *more]

    def get(self, place: int, name: str = "") -> AbstractValue | None:
        """An argument by its place or its name; None if it is not given."""
        if place < len(self.positional):
            return self.positional[place]
        if name in self.named:
            return self.named[name]
        return self.more if self.more is not NEVER else None


class Invocation(NamedTuple):
    """A call of a function of the language."""

    node: tree.Call
    arguments: Arguments
    control: Origins

    @property
    def all(self) -> list[AbstractValue]:
        """Every argument."""
        return self.arguments.all


def arguments_of(analysis: Analysis, node: tree.Call, control: Origins) -> Arguments:
    """Evaluate the arguments of a call."""
    positional: list[AbstractValue] = []
    named: dict[str, AbstractValue] = {}
    more = NEVER
    for argument in node.args:
        value = analysis.evaluate(argument, control)
        if isinstance(argument, tree.Starred):
            more = more | analysis.heap.items(value).under(analysis.heap.shape(value))
        elif more is NEVER:
            positional.append(value)
        else:
            more = more | value  # its place is not known
    for keyword in node.keywords:
        value = analysis.evaluate(keyword.value, control)
        if keyword.arg is not None:
            named[keyword.arg] = named.get(keyword.arg, NEVER) | value
        else:
            # The keys decide which parameter gets a value, and can get into a dictionary.
            named_values = taken(analysis, analysis.heap.values(value), analysis.heap.items(value))
            more = more | named_values.under(analysis.heap.shape(value))
    return Arguments(positional, named, more)


def call_helper(analysis: Analysis, node: tree.Node, name: str, given: Arguments, control: Origins) -> AbstractValue:
    """The result of a helper."""
    instance = analysis.instance_of(name, node)
    for i, p in enumerate(analysis.facts.functions[name].params):
        value = given.get(i, p.name) if not p.keyword_only else given.named.get(p.name)
        if value is not None:
            analysis.grow(analysis.parameters, (instance, p.name), value)
        if given.more is not NEVER:
            analysis.grow(analysis.parameters, (instance, p.name), given.more)
    # In a loop, the exception of an earlier call decides whether this one is made.
    analysis.add(
        analysis.controls,
        instance,
        control | analysis.frame.failing | (analysis.failures[instance] if analysis.frame.loops else frozenset()),
    )
    analysis.called(instance, node)
    analysis.frame.failing |= analysis.failures[instance]
    for seen in analysis.frame.watching:
        seen.origins |= analysis.evaluated[instance]
    return analysis.results[instance]


def call_back(
    analysis: Analysis,
    node: tree.Node,
    function: tree.Expr,
    arguments: list[AbstractValue],
    control: Origins,
    over: AbstractValue,
) -> AbstractValue:
    """The result of a callback, which a function of the language calls at most once for each item of `over`."""
    control = control | analysis.heap.size(over)
    if analysis.may_stop:
        with analysis.stopping(function, control) as decided:
            return _call_back(analysis, function, arguments, decided, over).under(decided)
    return _call_back(analysis, function, arguments, control, over)


def _call_back(
    analysis: Analysis, function: tree.Expr, arguments: list[AbstractValue], control: Origins, over: AbstractValue
) -> AbstractValue:
    outer = analysis.frame.loops
    # In the first rounds, nothing may be known of `over`. A call that is recorded then keeps the loops around it.
    loop = (analysis.frame.instance, id(function))
    analysis.grow(analysis.iterated, loop, over)
    analysis.frame.loops = (*outer, loop)
    try:
        if isinstance(function, tree.Lambda):
            with analysis.scope():
                for p, value in zip(function.params, arguments, strict=False):
                    analysis.frame.locals[p.name] = value
                for p in function.params[len(arguments) :]:
                    if p.default is not None:
                        analysis.frame.locals[p.name] = analysis.evaluate(p.default, control)
                return analysis.evaluate(function.body, control)
        if isinstance(function, tree.Name) and function.id in analysis.facts.functions:
            analysis.note_use(function)
            return call_helper(analysis, function, function.id, Arguments(arguments, {}, NEVER), control)
        if (analysis.facts.facade(function) or ("", ""))[0] in ("heapq", "bisect"):
            for argument in arguments:
                put_all(analysis, argument, REST, join(arguments).under(control))
                concern(analysis, argument, control | analysis.heap.condition(*arguments))
        if analysis.facts.facade(function) == ("io", "StringIO"):
            analysis.note(analysis.buffers, analysis.site(function, "callback"))
        made = analysis.evaluate(function, control)
        if not (isinstance(function, tree.Attribute) and function.attr == "get"):
            read_keys(analysis, control, made, *arguments)
        return anything(analysis, function, made, *arguments, tag="callback")
    finally:
        analysis.frame.loops = outer


def ends_early(analysis: Analysis, node: tree.Call) -> bool:
    """Whether a call can end before it has taken all items of an argument, or called a function for all of them."""
    name = name_of(node)
    if name in _READS_ALL or name in _PASSES_ALL:
        return False
    return any(is_lazy(analysis, x) for x in node.args) or (name not in _CALLS_FOR_ALL and has_callback(analysis, node))


def name_of(node: tree.Call) -> str:
    """The name of the function or method that a call names."""
    return node.func.id if isinstance(node.func, tree.Name) else getattr(node.func, "attr", "")


def is_lazy(analysis: Analysis, node: tree.Expr) -> bool:
    """Whether an expression makes items one by one, so that what consumes them decides how many are made. So does a text buffer."""
    if (analysis.frame.instance, id(node)) in analysis.buffer_nodes:
        return True
    match node:
        case tree.GeneratorExp():
            return True
        case tree.Name() if (analysis.frame.instance, node.id) in analysis.held:
            return True
        case tree.IfExp():
            return is_lazy(analysis, node.body) or is_lazy(analysis, node.orelse)
        case tree.Call() if name_of(node) in _READS_ALL:
            return False
        case tree.Call(func=tree.Name(id="map" | "filter")):
            return True
        case tree.Call() if isinstance(node.func, tree.Name) or analysis.facts.facade(node.func) is not None:
            return has_callback(analysis, node) or any(is_lazy(analysis, x) for x in node.args)
    return False


def has_callback(analysis: Analysis, node: tree.Call) -> bool:
    """Whether a function that is written in the source is among the arguments of a call."""
    return any(is_written(analysis, x) for x in (*node.args, *(k.value for k in node.keywords)))


def is_written(analysis: Analysis, node: tree.Expr) -> bool:
    """Whether an expression is a lambda or the name of a helper."""
    return isinstance(node, tree.Lambda) or (isinstance(node, tree.Name) and node.id in analysis.facts.functions)


def places_of(analysis: Analysis, function: tree.Expr) -> int:
    """How many parameters a callback has, if it is written in the source."""
    if isinstance(function, tree.Name) and function.id in analysis.facts.functions:
        return len(analysis.facts.functions[function.id].params)
    return len(function.params) if isinstance(function, tree.Lambda) else 0


def keyword_callback(call: Invocation, name: str) -> tree.Expr | None:
    """The function that is given as ``key=`` or under another name; None if there is none."""
    return next((k.value for k in call.node.keywords if k.arg == name and not _is_none(k.value)), None)


def _is_none(node: tree.Expr) -> bool:
    return isinstance(node, tree.Constant) and node.value is None


def error_of(analysis: Analysis, call: Invocation) -> AbstractValue:
    """A new exception. A handler can read and change the containers that it carries."""
    sites = join(call.all).sites
    analysis.throw(AbstractValue(sites=sites))
    return anything(analysis, call.node, *call.all) if sites else text_of(analysis, *call.all)


def text_result(analysis: Analysis, call: Invocation) -> AbstractValue:
    """A text that is computed from the arguments."""
    return text_of(analysis, *call.all)


def truth_result(analysis: Analysis, call: Invocation) -> AbstractValue:
    """A boolean that is computed from the arguments."""
    return booleans(analysis, *call.all, by=name_of(call.node))

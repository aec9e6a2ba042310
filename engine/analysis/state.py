"""The state of an analysis: what is known so far about each function, container and call.

The analysis runs all functions again and again until nothing new is found. Every table only grows, so that ends. A *context* tells
calls of a helper apart by the places that call it.

What nobody reads before the end is no table: the calls and their arguments, the callers, what is printed and raised.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias, TypeVar

from albert_tools.engine.analysis.tables import Rounds, Table
from albert_tools.engine.analysis.values import NEVER, NO_ORIGINS, NONE, AbstractValue, Heap, Origins, Site, picks
from albert_tools.engine.check.checker import Checked
from albert_tools.engine.check.facts import BINDING, attribute_chain, bindings, fixed_names, walk_own
from albert_tools.engine.check.rules.assignment import is_always_true
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.manifest import Hole, Origin, PlannedCall
from albert_tools.grammar import tree

#: The most rounds until nothing new may be found, and the most expressions that they may evaluate for each node of the source.
MAX_ROUNDS, MAX_STEPS_PER_NODE, MIN_STEPS = 60, 60, 40_000
#: The most containers that may be followed from one to the other.
MAX_FOLLOWED = 10_000_000
#: The rounds after which what still grows is widened.
LATE = 6
#: The most contexts that a helper has. After that, all its calls share one.
MAX_CONTEXTS = 24

#: A function in a context. The module's own statements have the name "".
Instance: TypeAlias = tuple[str, tuple[int, ...]]
#: A loop in an instance.
Loop: TypeAlias = tuple[Instance, int]
Environment: TypeAlias = dict[str, AbstractValue]
K = TypeVar("K")

MODULE: Instance = ("", ())
#: The context of the tool where its own source calls it.
_INSIDE = (0,)


class TooMuch(Exception):
    """The analysis takes too long. The manifest then says that everything is possible. `line` is where it was given up."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


class Recorded:
    """One place that calls a primitive, in one context. `planned` is the callee's own plan if a saved tool makes the call."""

    def __init__(
        self, index: int, tool: ToolDefinition, node: tree.Node, instance: Instance, loops: tuple[Loop, ...]
    ) -> None:
        self.index = index
        self.tool = tool
        self.line = node.span.line
        self.node = id(node)
        self.instance = instance
        self.loops = loops
        self.arguments: dict[str, AbstractValue] = {}
        self.control: Origins = NO_ORIGINS
        self.via: tuple[str, ...] = ()
        self.planned: PlannedCall | None = None
        self.place: Hashable = None

    @property
    def origin(self) -> Origin:
        """The origin of its output."""
        return f"call:{self.index}"


class Seen:
    """All that was evaluated in a part of the program, and what decided about it."""

    def __init__(self) -> None:
        self.origins: set[Origin] = set()
        self.sites: set[Site] = set()

    def all(self, heap: Heap) -> Origins:
        """Its origins, and those of all that the containers hold."""
        return frozenset(self.origins) | heap.condition(AbstractValue(sites=frozenset(self.sites)))


class Frame:
    """The function that is being run: its locals, the loops around the statement, the scopes that watch what is evaluated."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.locals: Environment = {}
        self.loops: tuple[Loop, ...] = ()
        #: What is evaluated in the function, and in each `try` and each expression that can stop early around this place.
        self.watching: list[Seen] = []
        #: What each `try` around the statement assigns, at any time.
        self.assigned: list[Environment] = []
        #: The locals of the scopes around a comprehension or a callback.
        self.outer: list[Environment] = []
        #: For each loop around the statement: the names that it binds, and their values at a `break` and at a `continue`.
        self.jumps: list[tuple[frozenset[str], Environment, Environment]] = []
        #: What decides whether a `raise` or an `assert` has ended the function before this place, so that no later call is made.
        self.failing: Origins = NO_ORIGINS


class Substitution(NamedTuple):
    """The arguments of one call of a saved tool, and the recorded calls that its manifest's calls became. `key` names the call."""

    key: Hashable
    arguments: dict[str, AbstractValue]
    calls: tuple[Recorded, ...]


class Analysis:
    """All that is known about a program. `evaluate` and `run` are the functions for expressions and for blocks."""

    def __init__(
        self,
        checked: Checked,
        evaluate: Callable[[Analysis, tree.Expr, Origins], AbstractValue],
        run: Callable[[Analysis, tuple[tree.Stmt, ...], Origins], object],
    ) -> None:
        self.checked = checked
        self.facts = checked.facts
        self._evaluate, self._run = evaluate, run
        self.rounds = Rounds()
        self.heap = Heap(self.rounds)
        assert self.facts.tool is not None
        self.entry: Instance = (self.facts.tool.name, ())
        self.parameters: Table[tuple[Instance, str], AbstractValue] = self.rounds.table(NEVER)
        self.results: Table[Instance, AbstractValue] = self.rounds.table(NEVER)
        #: What decides whether a function is called, and all that it evaluates.
        self.controls: Table[Instance, Origins] = self.rounds.table(NO_ORIGINS)
        self.evaluated: Table[Instance, Origins] = self.rounds.table(NO_ORIGINS)
        #: What decides whether it ends with an exception.
        self.failures: Table[Instance, Origins] = self.rounds.table(NO_ORIGINS)
        #: The places that call a function: the caller, the loops around the call, and the node of the call.
        self.callers: dict[Instance, set[tuple[Instance, tuple[Loop, ...], int]]] = defaultdict(set)
        #: By loop: the locals at its head, what it runs over, and what decides whether it ends early.
        self.heads: Table[Loop, Environment] = self.rounds.table(Environment())
        self.iterated: Table[Loop, AbstractValue] = self.rounds.table(NEVER)
        self.exits: Table[Hashable, Origins] = self.rounds.table(NO_ORIGINS)
        #: The names that hold lazy values, by function.
        self.held: set[tuple[Instance, str]] = set()
        #: The text buffers.
        self.buffers: set[Site] = set()
        #: The expressions that can be one of them.
        self.buffer_nodes: set[tuple[Instance, int]] = set()
        #: Values whose length a bound needs.
        self.lengths: Table[Hashable, AbstractValue] = self.rounds.table(NEVER)
        #: The texts that the schemas of parameters and outputs list. The program has not chosen them.
        self.listed: set[str] = set()
        #: The numbers of the values that holes encode, by their keys in `lengths`.
        self.encoded: dict[Hashable, int] = {}
        self.calls: dict[Hashable, Recorded] = {}
        self.substitutions: dict[Hashable, Substitution] = {}
        self.printed: Origins = NO_ORIGINS
        self.raised: Origins = NO_ORIGINS
        #: The containers that exceptions carry. A handler can read and change them.
        self.thrown = NEVER
        self.constants: Environment = {}
        #: All values that a walrus gives a name. Laziness, comprehensions and the order of evaluation don't matter then.
        self.walrus: Table[tuple[Instance, str], AbstractValue] = self.rounds.table(NEVER)
        #: All values of the variables that nested functions read or bind: these may run at any time.
        self.shared: Table[str, AbstractValue] = self.rounds.table(NEVER)
        #: All values of the names that lambdas and generators read.
        self.ever: Table[tuple[Instance, str], AbstractValue] = self.rounds.table(NEVER)
        self._captured = {
            n.id
            for f in self.facts.every(tree.Lambda, tree.GeneratorExp)
            for n in tree.walk(f)
            if isinstance(n, tree.Name)
        }
        #: Whether a callback can end the iteration that calls it.
        self.may_stop = any(n.id == "StopIteration" for n in self.facts.every(tree.Name)) or any(
            isinstance(c.func, tree.Name) and c.func.id == "next" and len(c.args) < 2
            for c in self.facts.every(tree.Call)
        )
        self.frame = Frame(MODULE)
        #: The expression or statement that is being run.
        self.current: tree.Node = self.facts.module
        #: The first statement of this round that has found something new.
        self.first_change: tree.Node | None = None
        self._bound: dict[int, frozenset[str]] = {}
        self._picks: dict[int, Origins] = {}
        self._contexts: dict[str, set[tuple[int, ...]]] = defaultdict(set)
        self._calling = self._functions_with_calls()
        self._found: dict[Instance, None] = {}
        self._steps = max(MIN_STEPS, MAX_STEPS_PER_NODE * len(self.facts.nodes))
        self.live: set[Instance] = set()

    def _functions_with_calls(self) -> frozenset[str]:
        direct = {f.name for node, _ in self.facts.tool_calls if (f := self.facts.function_of(node)) is not None}
        return frozenset(name for name in self.facts.functions if direct & {name, *self.facts.reaches(name)})

    # The rounds

    def solve(self) -> None:
        """Run everything until nothing new is found. Raises TooMuch."""
        for number in range(MAX_ROUNDS):
            self.rounds.begin()
            self.first_change = None
            self.heap.is_late = number >= LATE
            self.frame = Frame(MODULE)
            module = self.facts.module.body
            self.run(
                tuple(s for s in module if isinstance(s, tree.Assign | tree.AnnAssign) and self._is_value(s)),
                NO_ORIGINS,
            )
            self.constants = self.frame.locals
            self.live = set()
            order: list[Instance] = []
            pending = [self.entry]
            while pending:
                instance = pending.pop()
                if instance not in self.live:
                    self.live.add(instance)
                    order.append(instance)
                    self._found = {}
                    self._run_function(instance)
                    pending += reversed(self._found)
            if not self.rounds.changed:
                return
            # Arguments have gone from callers to callees. On the way back, results go from callees to callers.
            for instance in reversed(order[1:]):
                self._run_function(instance)
        raise TooMuch((self.first_change or self.current).span.line)

    def _is_value(self, stmt: tree.Assign | tree.AnnAssign) -> bool:
        return stmt.value is not None and id(stmt.value) not in self.facts.annotations

    def _run_function(self, instance: Instance) -> None:
        self.frame = Frame(instance)
        seen = Seen()
        self.frame.watching.append(seen)
        function = self.facts.functions[instance[0]]
        for p in function.params:
            value = self.parameters[instance, p.name]
            if p.default is not None and instance != self.entry:
                value = value | self.evaluate(p.default, NO_ORIGINS)
            self.assign(p.name, value)
        self.run(function.body, self.controls[instance])
        self.add(self.failures, instance, self.frame.failing)
        if not never_falls_off(function.body):
            self.grow(self.results, instance, NONE.under(self.controls[instance]))
        self.add(self.evaluated, instance, seen.all(self.heap))

    def evaluate(self, node: tree.Expr, control: Origins) -> AbstractValue:
        """The value of an expression that is evaluated if `control` lets it. Raises TooMuch."""
        self._steps -= 1
        if self._steps < 0 or self.heap.followed > MAX_FOLLOWED:
            raise TooMuch(self.current.span.line)
        outer, self.current = self.current, node
        value = self._evaluate(self, node, control)
        self.current = outer
        for seen in self.frame.watching:
            seen.origins.update(value.data, value.control, control)
            seen.sites |= value.sites
        return value

    @contextmanager
    def stopping(self, node: object, control: Origins) -> Iterator[Origins]:
        """A part of the program that stops when something in it says so. Yields what decides about its parts."""
        place, seen = (self.frame.instance, id(node), "stops"), Seen()
        self.frame.watching.append(seen)
        yield control | self.exits[place]
        self.frame.watching.pop()
        self.add(self.exits, place, seen.all(self.heap))

    def run(self, body: tuple[tree.Stmt, ...], control: Origins) -> object:
        """Run a block of statements."""
        return self._run(self, body, control)

    # Tables

    def grow(self, table: Table[K, AbstractValue], key: K, value: AbstractValue) -> None:
        """Add to a table of values."""
        old = table.peek(key)
        new = old | value
        if new != old:
            table[key] = new.widened() if self.heap.is_late else new

    def add(self, table: Table[K, Origins], key: K, origins: Origins) -> None:
        """Add to a table of origins."""
        old = table.peek(key)
        if not origins <= old:
            table[key] = old | origins

    def note(self, known: set[K], *more: K) -> None:
        """Add to a set. Each reader wants to know all that is in it."""
        if not known.issuperset(more):
            known.update(more)
            self.rounds.changed = True

    def remember(self, node: object, value: AbstractValue, tag: str = "") -> Hashable:
        """Keep a value whose length a bound needs. Returns the key of the table `lengths`."""
        key = (self.frame.instance, id(node), tag)
        self.grow(self.lengths, key, value)
        return key

    def encoded_value(self, key: Hashable) -> int:
        """The number of a value that a hole encodes. `key` finds the value in `lengths`."""
        return self.encoded.setdefault(key, len(self.encoded))

    def content_of(self, hole: Hole) -> AbstractValue:
        """The value that a hole encodes."""
        return self.lengths[[*self.encoded][hole.call]]

    def picked(self, node: tree.Node) -> Origins:
        """The mark of an expression that chooses items, or their order."""
        mark = self._picks.get(id(node))
        if mark is None:
            span, lines = node.span, self.facts.lines[node.span.line - 1 : node.span.end_line]
            lines[-1] = lines[-1][: span.end_column - 1]
            lines[0] = lines[0][span.column - 1 :]
            text = "\n".join(lines)
            # One line, without comments.
            mark = self._picks[id(node)] = picks([ast.unparse(ast.parse(f"({text}\n)", mode="eval"))])
        return mark

    def throw(self, value: AbstractValue) -> None:
        """Note what an exception carries."""
        new = self.thrown | value
        if new != self.thrown:
            self.thrown = new
            self.rounds.changed = True

    def note_buffer(self, node: object) -> None:
        """Note that an expression can be a text buffer."""
        self.note(self.buffer_nodes, (self.frame.instance, id(node)))

    def site(self, node: object, tag: str = "") -> Site:
        """The site of a container that an expression makes."""
        return (self.frame.instance, id(node), tag)

    def changed_by(self, site: Site, amount: Hashable = None) -> None:
        """Note that a container grows here: by one item, or by the length of the value that was remembered as `amount`."""
        self.heap.count(site, False)
        entry = (self.frame.instance, self.frame.loops, amount, id(self.current))
        growth = self.heap.at.peek(site).growth
        if entry not in growth:
            growth.add(entry)
            self.heap.at.grown(site)

    def sized(self, site: Site, *size: object) -> None:
        """Note a size that a container can have when it is made."""
        sizes = self.heap.at.peek(site).sizes
        if size not in sizes:
            sizes.add(size)
            self.heap.at.grown(site)

    # Names

    def bound_in(self, stmt: tree.Stmt) -> frozenset[str]:
        """The names that a statement binds, at any depth."""
        names = self._bound.get(id(stmt))
        if names is None:
            nodes = list(tree.walk(stmt))
            assigned = {b.name for node in nodes if isinstance(node, BINDING) for b in bindings(node)}
            names = frozenset(assigned.union(*map(fixed_names, nodes)))
            self._bound[id(stmt)] = names
        return names

    def lookup(self, name: str) -> AbstractValue:
        """The value of a name."""
        if name in self.facts.scopes.captured:
            return self.shared[name]
        local = self.frame.locals.get(name)
        if local is None:
            local = self.constants.get(name, NEVER)
        return local | self.walrus[self.frame.instance, name]

    def note_use(self, node: tree.Expr) -> None:
        """Note that a function, a module or a table is used. It may not be defined yet: that is an exception, too."""
        root, _ = attribute_chain(node)
        if isinstance(root, tree.Name):
            origins = self.lookup(root.id).origins
            for seen in self.frame.watching:
                seen.origins |= origins

    def assign(self, name: str, value: AbstractValue) -> None:
        """Bind a local name."""
        if name in self.facts.scopes.captured:
            self.grow(self.shared, name, value)
            return
        self.frame.locals[name] = value
        if name in self._captured:
            self.grow(self.ever, (self.frame.instance, name), value)
        for scope in self.frame.assigned:
            scope[name] = scope.get(name, NEVER) | value

    def evaluate_lazy(self, node: tree.Expr, control: Origins) -> AbstractValue:
        """The value of an expression whose items are made later, with the values that names have then."""
        before = self.frame.locals
        self.frame.locals = {k: v | self.ever[self.frame.instance, k] for k, v in before.items()}
        value = self.evaluate(node, control)
        self.frame.locals = before
        return value

    @contextmanager
    def scope(self) -> Iterator[None]:
        """An inner scope: what it binds is forgotten afterwards, except names that a walrus binds."""
        before = self.frame.locals
        self.frame.locals = dict(before)
        self.frame.outer.append(before)
        try:
            yield
        finally:
            self.frame.locals = self.frame.outer.pop()

    def assign_walrus(self, name: str, value: AbstractValue) -> None:
        """Bind a name in this scope and in those around it."""
        if name in self.facts.scopes.captured:
            self.assign(name, value)
            return
        self.grow(self.walrus, (self.frame.instance, name), value)
        self.assign(name, value | self.frame.locals.get(name, NEVER))
        for scope in self.frame.outer:
            scope[name] = scope.get(name, NEVER) | value

    # Contexts

    def instance_of(self, name: str, node: object) -> Instance:
        """The instance of a function that is called at a node. A recursive one has only one, and the tool has another than the
        call from outside."""
        if name == self.entry[0]:
            return (name, _INSIDE)
        if name in self.facts.reaches(name):
            return (name, ())
        depth = 2 if name in self._calling else 1
        context = (*self.frame.instance[1], id(node))[-depth:]
        known = self._contexts[name]
        if context not in known and len(known) >= MAX_CONTEXTS:
            return (name, ())
        known.add(context)
        return (name, context)

    def called(self, instance: Instance, node: object = None) -> None:
        """Note that the running function calls an instance here."""
        self._found[instance] = None
        self.callers[instance].add((self.frame.instance, self.frame.loops, id(node)))


def never_falls_off(body: tuple[tree.Stmt, ...]) -> bool:
    """Whether a block certainly ends with `return` or `raise`."""
    last = body[-1]
    match last:
        case tree.Return() | tree.Raise():
            return True
        case tree.If() if last.orelse:
            branch: tree.If | None = last
            while branch is not None:
                if not never_falls_off(branch.body) or not branch.orelse:
                    return False
                inner = tree.elif_of(branch)
                if inner is None:
                    return never_falls_off(branch.orelse)
                branch = inner
        case tree.While():
            return is_always_true(last.test) and not any(isinstance(n, tree.Break) for n in walk_own(*last.body))
        case tree.Try() if not last.finalbody:
            ends = last.orelse or last.body
            return never_falls_off(ends) and all(never_falls_off(h.body) for h in last.handlers)
    return False

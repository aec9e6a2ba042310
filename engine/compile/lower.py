"""Lowering turns a checked program into the Python text that a worker runs.

The language is a subset of Python. Lowering removes the parts that the worker does not need (decorators, docstrings,
annotations with their imports and aliases, TypedDict classes) and rewrites the constructs that the language adds:

- ``tools.read_file("a")`` becomes ``__call('read_file', {'path': 'a'})``. This sends a message with the arguments by name.
- ``parallel(f(x) for x in xs)`` becomes ``__gather(reads, lambda x: f(x), ((x,) for x in xs))``, and ``parallel(a(), b())`` becomes
  ``__parallel(reads, lambda: a(), lambda: b())``. `reads` is true if all tools that can be called only read. Their calls may then
  overlap.
- The body of a ``while`` begins with ``__tick()``, and ``for x in xs`` becomes ``for x in __rounds(xs)`` if `xs` may grow in the
  loop. Both count the rounds of the whole run, and end the process at the limit.
- ``type(x) is int`` becomes ``__type(x) is int``, and ``type(x).__name__`` becomes ``__type_name(x)``.
- ``defaultdict(lambda: 0)`` becomes ``defaultdict(__factory(lambda: 0))``, so that its text has no address.
- Every ``try`` gets a first handler for `MemoryError` and `RecursionError` that ends the process. So a program never sees a limit
  as an exception, and no ``finally`` runs after it.

Nothing else changes. No guards are added, so the code runs at CPython's speed. Lowering starts from CPython's tree of the source,
which equals the checked tree (`grammar.second_reading`). The result is a text and a map from its lines to the lines of the source.
The text is stored with the version.
"""

from __future__ import annotations

import ast
from functools import cached_property
from itertools import pairwise
from typing import Any

from msgspec import Struct

from albert_tools.engine.check.checker import Checked
from albert_tools.engine.check.facts import Facts, called_name, tool_name
from albert_tools.engine.check.growing_loops import growing_iterables
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.grammar import tree
from albert_tools.grammar.python_parser import parse_python
from albert_tools.grammar.second_reading import twins

_CHANGED_BY_READING = frozenset({("io", "StringIO"), ("collections", "defaultdict")})
_READERS = frozenset({("csv", "reader"), ("csv", "DictReader")})


class Lowered(Struct, frozen=True):
    """The lowered text. `module` is CPython's tree of it. `lines[i]` is the source line for line ``i + 1`` of `text`."""

    text: str
    module: ast.Module
    lines: tuple[int, ...]


def lower(checked: Checked) -> Lowered:
    """The lowered text of a checked program.

    Raises:
        AssertionError: The text does not parse to the lowered tree. This is a defect of Albert Tools, and nothing is saved.
    """
    for plain_strings in (False, True):
        parsed = checked.facts.take_python()
        module = _Lowering(checked.facts, parsed, plain_strings).module(parsed)
        try:
            text = ast.unparse(module) + "\n"
            again = parse_python(text)
        except (ValueError, SyntaxError):
            continue
        lines = _line_map(text, module, again)
        if lines is not None:
            return Lowered(text, again, lines)
    raise AssertionError("the lowered text does not parse to the lowered tree")


class _Lowering(ast.NodeTransformer):
    def __init__(self, facts: Facts, parsed: ast.Module, plain_strings: bool) -> None:
        self.facts = facts
        #: Write f-strings as calls, because Python 3.11 allows no backslash in their fields.
        self.plain_strings = plain_strings
        self.tools_of: dict[str, set[str]] = {name: set() for name in facts.functions}
        for node, name in facts.tool_calls:
            function = facts.function_of(node)
            if function is not None:
                self.tools_of[function.name].add(name)
        self.growing = growing_iterables(facts)
        calls = [call for call in facts.every(tree.Call) if isinstance(call.func, tree.Name)]
        self.typed_dicts = {call.span for call in calls if called_name(call) in facts.typed_dicts}
        self.types = {call.span for call in calls if facts.is_type_question(call)}
        self.factories = {node.span for node in facts.every(tree.Lambda) if facts.makes_defaults(node)}
        self.reading = {call.span for call in calls if called_name(call) == "parallel" and self._only_reads(call)}
        decided = self.growing or self.typed_dicts or self.types or self.factories or self.reading
        #: The place of each of CPython's nodes in our tree, if anything depends on it.
        self.places = {id(theirs): ours.span for ours, theirs in twins(facts.parsed, parsed)} if decided else {}

    def module(self, module: ast.Module) -> ast.Module:
        body = [stmt for stmt in module.body if not self._is_alias(stmt)]
        lowered = [new for stmt in body if isinstance(new := self.visit(stmt), ast.stmt)]
        return ast.Module(body=lowered, type_ignores=[])

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list) and not body:
            body.append(ast.copy_location(ast.Pass(), node))
        return node

    # Removed.

    def _is_alias(self, stmt: ast.stmt) -> bool:
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [getattr(stmt, "target", None)]
        return isinstance(targets[0], ast.Name) and targets[0].id in self.facts.aliases

    def visit_Import(self, node: ast.Import) -> ast.stmt | None:
        node.names = [a for a in node.names if a.name != "typing"]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        types = vocabulary.ANNOTATION_NAMES.get(str(node.module), {})
        node.names = [a for a in node.names if a.name not in types]
        return node if node.names else None

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | None:
        """Remove a docstring or any other constant that is a statement, because it has no effect."""
        if isinstance(node.value, ast.Constant):
            return None
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        if node.value is None:
            # An annotation alone makes the name a variable of its function.
            never = ast.Assign([node.target], ast.Constant(None))
            return ast.copy_location(ast.If(ast.Constant(False), [ast.copy_location(never, node)], []), node)
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    # Made explicit.

    def visit_If(self, node: ast.If) -> ast.stmt:
        chain = [node]
        while len(chain[-1].orelse) == 1 and isinstance(following := chain[-1].orelse[0], ast.If):
            chain.append(following)
        # A chain of `elif` can be too long for recursion, so each branch is visited alone.
        for branch in chain[:-1]:
            branch.orelse = []
        for branch in chain:
            self.generic_visit(branch)
        for branch, following in pairwise(chain):
            branch.orelse = [following]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.decorator_list = []
        node.returns = None
        self.generic_visit(node)
        return node

    def visit(self, node: ast.AST) -> Any:
        """Lower a node. What a loop runs over is wrapped if it may grow meanwhile."""
        new = super().visit(node)
        if isinstance(node, ast.expr) and self.places.get(id(node)) in self.growing:
            return ast.copy_location(_call("__rounds", new), node)
        return new

    def visit_While(self, node: ast.While) -> ast.stmt:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(_call("__tick")), node))
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        self.generic_visit(node)
        if node.type is None:
            node.type = ast.copy_location(_name("__Exception"), node)
        return node

    def visit_Try(self, node: ast.Try) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        if not node.finalbody:
            node.handlers.insert(0, _fatal(node))
            return node
        # When the stack is full, even `__fatal` can't be called. So the error propagates until the call is possible. In the
        # meantime no `finally` may run, even if the error comes from a handler or an `else`.
        if node.handlers:
            inner = ast.Try(node.body, [_fatal(node), *node.handlers], node.orelse, [])
            node.body, node.orelse = [ast.copy_location(inner, node)], []
        node.handlers = [_fatal(node, _fine(False, node))]
        node.finalbody = [ast.copy_location(ast.If(_name("__fine"), node.finalbody, []), node)]
        return [_fine(True, node), node]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = _tool_name(node.func)
        if name is not None:
            return self._tool_call(node, name)
        if isinstance(node.func, ast.Name):
            if node.func.id == "parallel":
                return self._parallel(node)
            if self.places.get(id(node)) in self.types:
                return ast.copy_location(_call("__type", self.visit(node.args[0])), node)
            if self.places.get(id(node)) in self.typed_dicts:
                node.func = ast.copy_location(_name("__dict"), node.func)
        self.generic_visit(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        made = self.places.get(id(node)) in self.factories
        self.generic_visit(node)
        return ast.copy_location(_call("__factory", node), node) if made else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if node.attr == "__name__" and self.places.get(id(node.value)) in self.types:
            assert isinstance(node.value, ast.Call)
            return ast.copy_location(_call("__type_name", self.visit(node.value.args[0])), node)
        self.generic_visit(node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        if not self.plain_strings:
            self.generic_visit(node)
            return node
        return ast.copy_location(self._join(node), node)

    def _join(self, node: ast.JoinedStr) -> ast.expr:
        parts: list[ast.expr] = []
        for value in node.values:
            if not isinstance(value, ast.FormattedValue):
                parts.append(value)
                continue
            inner = self.visit(value.value)
            if value.conversion != -1:
                inner = _call({115: "__str", 114: "__repr", 97: "__ascii"}[value.conversion], inner)
            spec = ast.Constant("") if value.format_spec is None else self._join(value.format_spec)  # type: ignore[arg-type]
            parts.append(_call("__format", inner, spec))
        return _call("__join", ast.Tuple(parts, ast.Load()))

    def _tool_call(self, node: ast.Call, name: str) -> ast.expr:
        definition = self.facts.catalog.get(name)
        assert definition is not None
        keys = [p.name for p in definition.parameters[: len(node.args)]] + [str(k.arg) for k in node.keywords]
        values = [self.visit(v) for v in [*node.args, *(k.value for k in node.keywords)]]
        arguments = ast.Dict([ast.Constant(k) for k in keys], values)
        return ast.copy_location(_call("__call", ast.Constant(name), arguments), node)

    def _parallel(self, node: ast.Call) -> ast.expr:
        reads = ast.Constant(self.places.get(id(node)) in self.reading)
        first = node.args[0]
        if len(node.args) == 1 and isinstance(first, ast.GeneratorExp):
            names = list(dict.fromkeys(n for g in first.generators for n in _targets(g.target)))
            arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
            body = ast.Lambda(arguments, self.visit(first.elt))
            items = ast.GeneratorExp(
                ast.Tuple([_name(n) for n in names], ast.Load()), [self.visit(g) for g in first.generators]
            )
            return ast.copy_location(_call("__gather", reads, body, items), node)
        none = ast.arguments([], [], None, [], [], None, [])
        return ast.copy_location(
            _call("__parallel", reads, *(ast.Lambda(none, self.visit(a)) for a in node.args)), node
        )

    def _only_reads(self, call: tree.Call) -> bool:
        """Whether all bodies of a `parallel` only read."""
        return all(self._body_only_reads(body) for body in call.args)

    def _body_only_reads(self, body: tree.Expr) -> bool:
        called: list[str] = []
        entered: set[str] = set()
        for node in tree.walk(body):
            if isinstance(node, tree.Call) and (name := tool_name(node.func)):
                called.append(name)
            elif isinstance(node, tree.Name) and node.id in self.facts.functions:
                entered |= {node.id} | self.facts.reaches(node.id)
        call = body.elt if isinstance(body, tree.GeneratorExp) else body
        # The body is a single call, so it reads all its values in order when it starts.
        alone = not entered and len(called) == 1 and isinstance(call, tree.Call) and tool_name(call.func) is not None
        if not alone and any(maker not in entered or self._is_entered_elsewhere(maker, body) for maker in self._makers):
            return False  # several bodies could share a stream or a `defaultdict`
        called += [name for function in entered for name in self.tools_of[function]]
        definitions = [self.facts.catalog.get(name) for name in called]
        return all(isinstance(d, ToolDefinition) and d.only_reads for d in definitions)

    def _is_entered_elsewhere(self, maker: str | None, body: tree.Expr) -> bool:
        """Whether a function can also run outside of a body of a `parallel`, or around it."""
        inside = {id(node) for node in tree.walk(body)}
        home = self.facts.function_of(body)
        # The function around the body runs outside of it, and so does all that it reaches by other mentions.
        outside = [home.name] if home is not None else []
        for node, function in self._mentions:
            if id(node) not in inside and function is home:
                outside += [node.id, *self.facts.reaches(node.id)]
        return maker in outside

    @cached_property
    def _mentions(self) -> list[tuple[tree.Name, tree.FunctionDef | None]]:
        """The names of functions, with the functions around them."""
        names = (n for n in self.facts.every(tree.Name) if n.id in self.facts.functions)
        return [(n, self.facts.function_of(n)) for n in names]

    @cached_property
    def _makers(self) -> set[str | None]:
        """The functions that create a stream or a `defaultdict`; None for the module.

        Reading changes both: a stream advances, and a `defaultdict` gets a new key. The text does not show this to any rule.
        """
        makers: set[str | None] = set()
        for node in self.facts.every(tree.Call):
            if self.facts.facade(node.func) not in _CHANGED_BY_READING:
                continue
            above = self.facts.parent(node)
            if isinstance(above, tree.Call) and self.facts.facade(above.func) in _READERS:
                continue  # csv.reader(io.StringIO(text)) is not shared
            function = self.facts.function_of(node)
            makers.add(function.name if function is not None else None)
        return makers


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_name(name), list(args), [])


def _fatal(node: ast.AST, *before: ast.stmt) -> ast.ExceptHandler:
    return ast.copy_location(ast.ExceptHandler(_name("__Fatal"), None, [*before, ast.Expr(_call("__fatal"))]), node)


def _fine(value: bool, node: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name("__fine", ast.Store())], ast.Constant(value)), node)


def _tool_name(func: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(func, ast.Attribute):
        parts.append(func.attr)
        func = func.value
    if parts and isinstance(func, ast.Name) and func.id == "tools":
        return ".".join(reversed(parts))
    return None


def _targets(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _line_map(text: str, ours: ast.Module, again: ast.Module) -> tuple[int, ...] | None:
    """The source line of each line of `text`. None if the trees differ, except in positions and the `u` prefix of strings."""
    lines = [0] * text.count("\n")
    pending: list[tuple[Any, Any]] = [(ours, again)]
    while pending:
        a, b = pending.pop()
        if type(a) is not type(b):
            return None
        if isinstance(a, ast.AST):
            place, source = getattr(b, "lineno", None), getattr(a, "lineno", None)
            if place is not None and source is not None and not lines[place - 1]:
                lines[place - 1] = source
            if isinstance(a, ast.Constant):
                # Python considers 1, 1.0 and True equal, and nan different from itself.
                if type(a.value) is not type(b.value) or repr(a.value) != repr(b.value):
                    return None
            else:
                names = [n for n in a._fields if n not in ("type_comment", "type_ignores")]
                pending += [(getattr(a, n, None), getattr(b, n, None)) for n in reversed(names)]
        elif isinstance(a, list):
            if len(a) != len(b):
                return None
            pending += zip(reversed(a), reversed(b), strict=True)
        elif a != b:
            return None
    last = 1
    for i, line in enumerate(lines):
        last = lines[i] = line or last
    return tuple(lines)

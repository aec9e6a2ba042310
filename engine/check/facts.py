"""The facts about a source that the rules share.

A table can state the meaning of each name, and no analysis is needed: the tree is resolved (`scopes`), so a name of a function, a
module, a type or the language means the same wherever it stands. Any other name is a variable of its function.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from functools import cached_property
from typing import Any, TypeVar, overload

from msgspec import Struct, field

from albert_tools.engine.check.scopes import VARIABLE, bound_name, resolve, spelled
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.protocols import Catalog
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Span
from albert_tools.grammar.python_parser import parse_python

_Node = TypeVar("_Node", bound=tree.Node)

COMPREHENSIONS = (tree.ListComp, tree.SetComp, tree.DictComp, tree.GeneratorExp)
#: The classes of nodes that bind names in the scope around them, and all that bind names.
BIND_LOCALS = (
    tree.Assign,
    tree.AnnAssign,
    tree.AugAssign,
    tree.For,
    tree.NamedExpr,
    tree.ExceptHandler,
    tree.MatchCase,
)
BINDING = (*BIND_LOCALS, tree.Comprehension, tree.Param)


class Binding(Struct, frozen=True):
    """A name, the place that binds it, and the kind of binding (``parameter``, ``assignment``, ``loop variable``, …)."""

    name: str
    span: Span
    form: str


class Facts(Struct, eq=False, dict=True):
    """A module with its tables. `catalog` contains the tools that the module can call.

    `module` becomes the resolved tree; `parsed` is the one that was given.
    """

    module: tree.Module
    catalog: Catalog
    _python: ast.Module | SyntaxError | None = None
    parents: dict[int, tree.Node] = field(default_factory=dict)
    functions: dict[str, tree.FunctionDef] = field(default_factory=dict)
    typed_dicts: dict[str, tree.ClassDef] = field(default_factory=dict)
    constants: dict[str, tree.Assign | tree.AnnAssign] = field(default_factory=dict)
    #: Name → type, for constants that are types: ``Json = dict[str, Any]``. Only annotations may use them.
    aliases: dict[str, tree.Expr] = field(default_factory=dict)
    #: Name → module, for `import m` and `import m as x`. The name `urllib` stands for `urllib.parse`.
    modules: dict[str, str] = field(default_factory=dict)
    #: Name → (module, entry name), for `from m import x`.
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    _reached: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parsed = self.module
        self.scopes = resolve(self.module)
        self.module = self.scopes.module
        for node in self.nodes:
            for child in tree.children(node):
                self.parents[id(child)] = node
        for stmt in self.module.body:
            match stmt:
                case tree.FunctionDef():
                    self.functions.setdefault(stmt.name, stmt)
                case tree.ClassDef():
                    self.typed_dicts.setdefault(stmt.name, stmt)
                case tree.Assign() | tree.AnnAssign():
                    for b in bindings(stmt):
                        self.constants.setdefault(b.name, stmt)
        for function in self.every(tree.FunctionDef):
            if not isinstance(self.parent(function), tree.ClassDef):
                self.functions.setdefault(function.name, function)
        for stmt in self.every(tree.Import, tree.ImportFrom):
            for alias in stmt.names:
                if isinstance(stmt, tree.Import):
                    self.modules[bound_name(alias)] = alias.name
                elif f"{stmt.module}.{alias.name}" in vocabulary.MODULES:
                    self.modules[bound_name(alias)] = f"{stmt.module}.{alias.name}"
                else:
                    self.imported[bound_name(alias)] = (stmt.module, alias.name)
        for stmt in self.module.body:
            match stmt:
                case tree.Assign(targets=(tree.Name(id=named),), value=value):
                    if self._is_type(value) and self.constants.get(named) is stmt:
                        self.aliases[named] = value
                case tree.AnnAssign(value=value) if value and self.type_name(stmt.annotation) == "TypeAlias":
                    self.aliases[stmt.target.id] = value

    def take_python(self) -> ast.Module:
        """CPython's tree of the source. Each caller may change its own, so only the first one gets the tree of the parser."""
        taken, self._python = self._python, None
        return taken if isinstance(taken, ast.Module) else parse_python(self.module.source)

    def _is_type(self, node: tree.Expr) -> bool:
        match node:
            case tree.BinOp(op="|"):
                return self._is_type(node.left) or self._is_type(node.right)
            case tree.Subscript():
                return self._is_type(node.value)
        return self.type_name(node) is not None

    def type_name(self, node: tree.Node) -> str | None:
        """The type that a name or a dotted name means: ``str``, ``Row``, ``list`` for `typing.List`, ``datetime.date``."""
        if not isinstance(node, tree.Name | tree.Attribute):
            return None
        plain = (vocabulary.PLAIN_TYPES, vocabulary.TYPING, self.typed_dicts, self.aliases)
        if isinstance(node, tree.Name) and any(node.id in names for names in plain):
            return node.id
        module, name = self.facade(node) or ("", "")
        entry = self.entry(node)
        if entry is not None and entry.kind == "class":
            return f"{module}.{name}"
        return vocabulary.ANNOTATION_NAMES.get(module, {}).get(name)

    @cached_property
    def tool(self) -> tree.FunctionDef | None:
        """The public function, if there is exactly one."""
        return self.public[0] if len(self.public) == 1 else None

    @cached_property
    def public(self) -> tuple[tree.FunctionDef, ...]:
        """The functions at module level whose names don't begin with an underscore."""
        functions = (f for f in self.functions.values() if self.parent(f) is self.module)
        return tuple(f for f in functions if not f.name.startswith("_") and f.name not in self.scopes.lambdas)

    @cached_property
    def tool_calls_itself(self) -> bool:
        """Whether the tool is also called as a function of its source. Then its arguments need not fit its schema."""
        return self.tool is not None and any(self.tool.name in callees for callees in self.edges.values())

    @cached_property
    def nodes(self) -> tuple[tree.Node, ...]:
        """Every node, parents before children."""
        return tuple(tree.walk(self.module))

    @cached_property
    def refused_classes(self) -> tuple[tree.ClassDef, ...]:
        """The classes that are not a TypedDict."""
        return tuple(c for c in self.every(tree.ClassDef) if not is_typed_dict(c))

    @cached_property
    def _index(self) -> dict[type[tree.Node], list[tree.Node]]:
        index: dict[type[tree.Node], list[tree.Node]] = {}
        for node in self.nodes:
            index.setdefault(type(node), []).append(node)
        return index

    @overload
    def every(self, cls: type[_Node], /) -> Iterator[_Node]: ...

    @overload
    def every(self, *classes: type[tree.Node]) -> Iterator[Any]: ...

    def every(self, *classes: type[tree.Node]) -> Iterator[Any]:
        """The `nodes` of these classes, class by class."""
        for cls in classes:
            yield from self._index.get(cls, ())

    @cached_property
    def unbound(self) -> dict[int, tree.Name]:
        """The names that are read but never bound, by id of the node."""
        names = {}
        for node in self.every(tree.Name):
            is_unbound = id(node) in self.scopes.unbound and self.fixed(node.id) is None
            if node.id == "type" and self.is_type_question(self.parent(node) or node):
                continue
            # Other rules check annotations, decorators, patterns, classes and other statements of the module.
            if (is_unbound or self.only_in_annotations(node.id)) and not self._is_read_elsewhere(node):
                names[id(node)] = node
        return names

    def _is_read_elsewhere(self, node: tree.Name) -> bool:
        if id(node) in self.annotations or id(node) in self.decorating:
            return True
        above = self.parent(node)
        top = next((a for a in self.ancestors(node) if self.parent(a) is self.module), node)
        if not isinstance(top, tree.FunctionDef | tree.ClassDef | tree.Assign | tree.AnnAssign):
            return True  # the statement is refused as a whole
        return isinstance(above, tree.MatchClass | tree.ClassDef) or any(t is node for t in targets(above or node))

    def unbound_below(self, node: tree.Expr) -> bool:
        """Whether an attribute chain begins with a name that is never bound. Another finding reports that name."""
        return id(attribute_chain(node)[0]) in self.unbound

    def only_in_annotations(self, name: str) -> bool:
        """Whether a name of the source means a type, or a part of `typing`, that programs don't have at run time."""
        module, what = self.imported.get(name, (self.modules.get(name, ""), ""))
        return name in self.aliases or module == "typing" or what in vocabulary.ANNOTATION_NAMES.get(module, {})

    @cached_property
    def annotations(self) -> frozenset[int]:
        """The ids of all nodes inside annotations and aliases of types."""
        roots: list[tree.Expr | None] = [n.annotation for n in self.every(tree.Param, tree.AnnAssign)]
        roots += [*(f.returns for f in self.every(tree.FunctionDef)), *self.aliases.values()]
        for cls in self.every(tree.ClassDef):
            roots += [*cls.bases, *(k.value for k in cls.keywords)]
        return frozenset(id(n) for root in roots if root is not None for n in tree.walk(root))

    @cached_property
    def decorating(self) -> frozenset[int]:
        """The ids of all nodes inside decorators."""
        above = self.every(tree.FunctionDef, tree.ClassDef)
        return frozenset(id(n) for f in above for d in f.decorators for n in tree.walk(d))

    def locals_in(self, function: tree.FunctionDef) -> frozenset[str]:
        """The variables of a function: its parameters and all names bound in its body, except in inner scopes."""
        symbols = self.scopes.scopes[id(function)].symbols.values()
        return frozenset(s.name for s in symbols if VARIABLE in s.meanings)

    def names_in(self, function: tree.FunctionDef) -> frozenset[str]:
        """The local names of a function: its variables, the functions in it, and what it imports."""
        return frozenset(s.name for s in self.scopes.scopes[id(function)].symbols.values())

    def own_nodes(self, function: tree.FunctionDef) -> Iterator[tree.Node]:
        """The nodes of a function's body, without those of the functions in it."""
        return walk_own(*function.body)

    @cached_property
    def tables(self) -> dict[str, tree.Dict]:
        """The dictionaries of functions by their names: ``{"add": lambda a, b: a + b, "max": max}``.

        Such a name is bound once. It is only indexed to call what it finds, or asked for a key, and only in its own function.
        """
        made: dict[str, tree.Assign] = {}
        for stmt in self.every(tree.Assign):
            match stmt:
                case tree.Assign(targets=(tree.Name(id=name),), value=tree.Dict(values=values)) if any(
                    map(self._is_function_value, values)
                ):
                    made[name] = stmt
        if not made:
            return {}
        bound = Counter(b.name for n in self.every(*BINDING) for b in bindings(n))
        uses: defaultdict[str, list[tree.Name]] = defaultdict(list)
        for node in self.every(tree.Name):
            uses[node.id].append(node)
        tables: dict[str, tree.Dict] = {}
        for name, stmt in made.items():
            home = self.function_of(stmt)
            inside = {id(node) for node in tree.walk(stmt.value)}
            others = (use for use in uses[name] if use is not stmt.targets[0])
            if (
                not any(id(use) in inside for use in uses[name])
                and bound[name] == 1
                and all(self._is_table_use(use, home) for use in others)
            ):
                assert isinstance(stmt.value, tree.Dict)
                tables[name] = stmt.value
        return tables

    def _is_function_value(self, node: tree.Expr) -> bool:
        if isinstance(node, tree.Lambda):
            return True
        entry = self.entry(node)
        if entry is not None:
            return entry.kind in ("function", "class") and not entry.lazy and entry.callback is None
        if not isinstance(node, tree.Name):
            return False
        builtin = vocabulary.BUILTINS.get(node.id)
        return node.id in self.functions or (builtin is not None and builtin.pure and not builtin.lazy)

    def _is_table_use(self, node: tree.Name, home: tree.FunctionDef | None) -> bool:
        above = self.parent(node)
        if home is not None and self.function_of(node) is not home:
            return False
        if isinstance(above, tree.Compare):
            return above.left is not node and set(above.ops) <= {"in", "not in"}
        return isinstance(above, tree.Subscript) and above.value is node and self.is_called(above)

    def table_of(self, func: tree.Expr) -> tree.Dict | None:
        """The dictionary of functions that a call chooses from: ``operations[op](a, b)``, ``{"neg": abs}[op](a)``."""
        match func:
            case tree.Subscript(value=tree.Name(id=name)):
                return self.tables.get(name)
            case tree.Subscript(value=tree.Dict(values=values) as table) if any(map(self._is_function_value, values)):
                return table
        return None

    @cached_property
    def called_tables(self) -> tuple[tree.Dict, ...]:
        """All dictionaries of functions: those with names, and those that are indexed where they are written."""
        inline = (c.func.value for c in self.every(tree.Call) if isinstance(c.func, tree.Subscript))
        written = (d for d in inline if isinstance(d, tree.Dict) and any(map(self._is_function_value, d.values)))
        return (*self.tables.values(), *written)

    @cached_property
    def table_calls(self) -> Counter[int]:
        """How many calls choose from each dictionary of functions, by its id."""
        chosen = (self.table_of(c.func) for c in self.every(tree.Call))
        return Counter(id(table) for table in chosen if table is not None)

    def is_in_table(self, node: tree.Expr) -> bool:
        """Whether a function is a value of a dictionary of functions."""
        return id(node) in self._in_tables

    @cached_property
    def _in_tables(self) -> frozenset[int]:
        return frozenset(id(v) for table in self.called_tables for v in table.values if self._is_function_value(v))

    @cached_property
    def assigned_attributes(self) -> frozenset[int]:
        """The ids of attributes that are assigned to. A single finding reports such an assignment."""
        binders = self.every(tree.Assign, tree.AugAssign, tree.For, tree.Comprehension)
        return frozenset(id(t) for node in binders for t in targets(node) if isinstance(t, tree.Attribute))

    @cached_property
    def rebound(self) -> frozenset[str]:
        """Names that can't have the meaning that the source gives them. Only the binding is reported, not its consequences."""
        bound = (b.name for n in self.every(*BINDING) for b in bindings(n))
        return frozenset(name for name in bound if name in vocabulary.PRELUDE) | {
            s.name for s in self.scopes.repeated if s.scope.kind != "module"
        }

    def language_has(self, name: str) -> bool:
        """Whether a name means something in every source, if nothing hides it."""
        return name in vocabulary.BUILTINS or name in vocabulary.EXCEPTIONS or name in vocabulary.PLAIN_TYPES

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the source."""
        return self.module.source.split("\n")

    def parent(self, node: tree.Node) -> tree.Node | None:
        """The parent of a node."""
        return self.parents.get(id(node))

    def captured_through(self, part: tree.Node) -> frozenset[str]:
        """The variables of other functions that calls in a part of the source can read or change."""
        if not self.scopes.captures:
            return frozenset()
        named = {n.id for n in tree.walk(part) if isinstance(n, tree.Name) and n.id in self.functions}
        reached = named.union(*(self.reaches(name) for name in named))
        return frozenset().union(*(self.scopes.captures.get(name, ()) for name in reached))

    def is_called(self, node: tree.Node) -> bool:
        """Whether a node is the function of a call: ``f`` in ``f(x)``."""
        above = self.parent(node)
        return isinstance(above, tree.Call) and above.func is node

    def ancestors(self, node: tree.Node) -> Iterator[tree.Node]:
        """The ancestors of a node, nearest first."""
        above = self.parents.get(id(node))
        while above is not None:
            yield above
            above = self.parents.get(id(above))

    def function_of(self, node: tree.Node) -> tree.FunctionDef | None:
        """The function that contains `node`."""
        return next((a for a in self.ancestors(node) if isinstance(a, tree.FunctionDef)), None)

    def fixed(self, name: str) -> str | None:
        """The fixed meaning of a name, in words; None for a name that can be bound."""
        return next((meaning for names, meaning in self._meanings if name in names), None)

    @cached_property
    def _meanings(self) -> tuple[tuple[Container[str], str], ...]:
        return (
            (vocabulary.PRELUDE, "part of the language"),
            (vocabulary.BUILTINS, "a built-in"),
            (vocabulary.EXCEPTIONS, "an exception"),
            (self.functions, "a function of this source"),
            (self.typed_dicts, "a TypedDict of this source"),
            (self.modules, "imported"),
            (self.imported, "imported"),
        )

    def is_type_question(self, call: tree.Node) -> bool:
        """Whether a type is compared, or asked for: ``type(x) is int``, ``type(x).__name__``, ``isinstance(y, type(x))``."""
        match call:
            case tree.Call(func=tree.Name(id="type") as func, args=(value,), keywords=()):
                above = self.parent(call)
                named = isinstance(above, tree.Attribute) and above.attr == "__name__"
                asked = called_name(above) == "isinstance"
                plain = id(func) in self.scopes.unbound and not isinstance(value, tree.Starred)
                return plain and (named or asked or isinstance(above, tree.Compare))
        return False

    def makes_defaults(self, node: tree.Expr) -> bool:
        """Whether an expression is what a `defaultdict` calls for a missing key."""
        above = self.parent(node)
        return (
            isinstance(above, tree.Call)
            and above.args[:1] == (node,)
            and self.facade(above.func) == ("collections", "defaultdict")
        )

    def facade(self, node: tree.Expr) -> tuple[str, str] | None:
        """``(module, dotted entry)`` if an expression names a part of a façade, otherwise None.

        The façade's table need not contain the entry. For a module alone, the entry is empty.
        """
        root, parts = attribute_chain(node)
        if not isinstance(root, tree.Name):
            return None
        if root.id in self.imported:
            module, name = self.imported[root.id]
            return module, ".".join([name, *parts])
        if root.id not in self.modules:
            return None
        module = self.modules[root.id]
        first, *rest = module.split(".")
        if spelled(root.id) == first and parts[: len(rest)] == rest:
            parts = parts[len(rest) :]
        return module, ".".join(parts)

    def entry(self, node: tree.Expr) -> vocabulary.Entry | None:
        """The façade entry that an expression names, if the table contains it."""
        named = self.facade(node)
        return None if named is None else vocabulary.facades().get(named[0], {}).get(named[1])

    def is_exception(self, node: tree.Expr) -> bool:
        """Whether an expression names an exception of the language or of a façade."""
        if isinstance(node, tree.Name) and (node.id in vocabulary.EXCEPTIONS or node.id == "ToolError"):
            return True
        entry = self.entry(node)
        return entry is not None and entry.kind == "exception"

    @property
    def import_line(self) -> int:
        """The line before which an import can be inserted: the first statement after the docstring and ``__future__``."""
        body = self.module.body
        early = (s for s in body if not isinstance(s, tree.ExprStmt) and getattr(s, "module", "") != "__future__")
        first = next(early, body[-1])
        decorators = first.decorators if isinstance(first, tree.FunctionDef | tree.ClassDef) else ()
        return decorators[0].span.line if decorators else first.span.line

    @cached_property
    def tool_calls(self) -> tuple[tuple[tree.Call, str], ...]:
        """Every call ``tools.NAME(...)`` or ``tools.SERVER.NAME(...)`` with its name, in order."""
        return tuple((node, name) for node in self.every(tree.Call) if (name := tool_name(node.func)) is not None)

    @cached_property
    def batch_tools(self) -> tuple[tree.Expr, ...]:
        """The arguments that name the tools of batches: ``tools.start_batch(tool="NAME", …)``."""
        arguments: list[tree.Expr] = []
        for call, name in self.tool_calls:
            definition = self.catalog.get(name)
            if definition is None:
                continue
            for i, p in enumerate(definition.parameters):
                if definition.declared.uses.get(p.name) == "tool":
                    arguments += [*(k.value for k in call.keywords if k.arg == p.name), *call.args[i : i + 1]]
        return tuple(arguments)

    @cached_property
    def callees(self) -> tuple[tuple[tree.Expr, str], ...]:
        """The place and the name of each tool that is called, now or in a batch."""
        texts = ((node, text_of(node)) for node in self.batch_tools)
        return (
            *((call.func, name) for call, name in self.tool_calls),
            *((node, text) for node, text in texts if text is not None),
        )

    @cached_property
    def edges(self) -> dict[str, dict[str, Span]]:
        """The call graph of the source's functions: caller → callee → first place. A use as a callback counts as a call."""
        graph: dict[str, dict[str, Span]] = {name: {} for name in self.functions}
        for node in self.every(tree.Name):
            if node.id in self.functions:
                caller = self.function_of(node)
                if caller is not None and caller.name in graph:
                    graph[caller.name].setdefault(node.id, node.span)
        for node in self.every(tree.Name) if self.tables else ():
            caller = self.function_of(node)
            if node.id in self.tables and caller is not None and caller.name in graph:
                for value in self.tables[node.id].values:
                    if isinstance(value, tree.Name) and value.id in self.functions:
                        graph[caller.name].setdefault(value.id, node.span)
        return graph

    def reaches(self, start: str) -> frozenset[str]:
        """The functions that a call of `start` can reach. `start` itself is only included if it is recursive."""
        known = self._reached.get(start)
        if known is not None:
            return known
        reached: set[str] = set()
        pending = list(self.edges.get(start, ()))
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                pending.extend(self.edges.get(name, ()))
        return self._reached.setdefault(start, frozenset(reached))


def walk_own(*nodes: tree.Node) -> Iterator[tree.Node]:
    """`nodes` and their descendants, without those of functions among them. The functions themselves are included."""
    pending = list(reversed(nodes))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, tree.FunctionDef):
            pending += reversed(tree.children(node))


def docstring(function: tree.FunctionDef) -> str | None:
    """The docstring as written in the source, or None."""
    match function.body[0]:
        case tree.ExprStmt(value=tree.Strings() as strings) if isinstance(strings.constant, str):
            return strings.constant
    return None


def is_typed_dict(cls: tree.ClassDef) -> bool:
    """Whether a class is a TypedDict: ``class Row(TypedDict):``."""
    match cls.bases:
        case (tree.Name(id="TypedDict") | tree.Attribute(value=tree.Name(id="typing"), attr="TypedDict"),):
            return True
    return False


def tool_name(func: tree.Expr) -> str | None:
    """``NAME`` or ``SERVER.NAME`` if `func` is ``tools.NAME`` or ``tools.SERVER.NAME``, otherwise None."""
    root, parts = attribute_chain(func)
    return ".".join(parts) if parts and isinstance(root, tree.Name) and root.id == "tools" else None


def attribute_chain(node: tree.Expr) -> tuple[tree.Expr, list[str]]:
    """The expression before the first dot, and the names after the dots: ``a`` and ``["b", "c"]`` for ``a.b.c``."""
    names: list[str] = []
    while isinstance(node, tree.Attribute):
        names.append(node.attr)
        node = node.value
    names.reverse()
    return node, names


def targets(node: tree.Node) -> Iterator[tree.Expr]:
    """The names, items and attributes that `node` itself assigns or deletes."""
    match node:
        case tree.Assign(targets=all_targets) | tree.Delete(targets=all_targets):
            for target in all_targets:
                yield from tree.single_targets(target)
        case tree.AugAssign(target=target) | tree.For(target=target) | tree.Comprehension(target=target):
            yield from tree.single_targets(target)
        case tree.AnnAssign(target=target) | tree.NamedExpr(target=target):
            yield target


def pattern_bindings(pattern: tree.Pattern) -> Iterator[Binding]:
    """The names that a `case` pattern captures."""
    for node in tree.walk(pattern):
        if isinstance(node, tree.MatchAs | tree.MatchStar) and node.name:
            yield Binding(node.name, node.span, "capture")
        elif isinstance(node, tree.MatchMapping) and node.rest:
            yield Binding(node.rest, node.span, "capture")


#: The kind of binding for each class of nodes that has `targets` and does not delete them.
_FORMS: dict[type[tree.Node], str] = {
    tree.Assign: "assignment",
    tree.AnnAssign: "assignment",
    tree.AugAssign: "assignment",
    tree.For: "loop variable",
    tree.Comprehension: "comprehension variable",
    tree.NamedExpr: "walrus",
}


def called_name(node: tree.Node | None) -> str | None:
    """``f`` if a node is the call ``f(…)`` of a plain name, otherwise None."""
    match node:
        case tree.Call(func=tree.Name(id=name)):
            return name
    return None


def fixed_names(node: tree.Node) -> Iterator[str]:
    """The names of functions and modules that a statement binds."""
    match node:
        case tree.FunctionDef(name=name):
            yield name
        case tree.Import(names=names) | tree.ImportFrom(names=names):
            yield from map(bound_name, names)


def bindings(node: tree.Node) -> Iterator[Binding]:
    """Every name that `node` itself binds. Names that its descendants bind are not included."""
    form = _FORMS.get(type(node))
    if form is not None:
        for target in targets(node):
            if isinstance(target, tree.Name):
                yield Binding(target.id, target.span, form)
    match node:
        case tree.ExceptHandler(name=str() as handled):
            yield Binding(handled, node.span, "exception name")
        case tree.MatchCase():
            yield from pattern_bindings(node.pattern)
        case tree.Param():
            yield Binding(node.name, node.span, "parameter")


def text_of(node: tree.Expr) -> str | None:
    """The value of a text without fields; None for every other expression."""
    value = node.constant if isinstance(node, tree.Strings) else None
    return value if isinstance(value, str) else None

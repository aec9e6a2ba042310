"""Which binding each name of a source means.

Python decides this from the text alone. A name that a function binds anywhere is local in the whole function, and hides any other
meaning there. Comprehensions and lambdas have scopes of their own. A name that is bound in no scope around it is a built-in.

`resolve` finds the binding of each name. Then it gives another name to each binding whose spelling alone could mislead: to what
hides a name of the language, a function or a module, and to what other functions than its own can reach. So in the resolved tree,
equal names that matter mean the same, and all tables go by name. The new name is the old one with a mark and a number; `spelled`
gives the old one back. A lambda that an assignment names becomes a function. The program that runs is made of the original text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree

#: What separates a name from its number. No source can contain this character outside of an escape.
MARK = "\u2800"
_NUMBERED = re.compile(f"{MARK}\\d+")

#: The names that mean something in every source, if nothing hides them. Those of the prelude can't be hidden.
_LANGUAGE = frozenset(
    {"type", *vocabulary.BUILTINS, *vocabulary.EXCEPTIONS, *vocabulary.PLAIN_TYPES, *vocabulary.TYPING}
    - vocabulary.PRELUDE
)
#: What a binding gives its name: a kind, and which function, class or module it is. All variables are the same.
Meaning: TypeAlias = tuple[object, ...]
VARIABLE: Meaning = ("variable",)


def spelled(name: str) -> str:
    """A name as the source spells it."""
    return name.partition(MARK)[0]


def as_spelled(text: str) -> str:
    """A text, such as a message, in which all names are as the source spells them."""
    return _NUMBERED.sub("", text) if MARK in text else text


def bound_name(alias: tree.Alias) -> str:
    """The name that an import binds: ``urllib`` for ``import urllib.parse``."""
    return alias.asname or alias.name.split(".")[0]


class Symbol:
    """A name in the scope that binds it. `meanings` are those of its bindings, each with the first node that gives it."""

    __slots__ = ("captured", "changed_inside", "meanings", "name", "scope", "spelling")

    def __init__(self, spelling: str, scope: Scope) -> None:
        self.spelling = spelling
        self.name = spelling
        self.scope = scope
        self.meanings: dict[Meaning, tree.Node] = {}
        #: Whether a nested function reads or binds it, and whether one binds it.
        self.captured = False
        self.changed_inside = False

    @property
    def is_fixed(self) -> bool:
        """Whether it is the name of a function, a class or a module."""
        return any(meaning is not VARIABLE for meaning in self.meanings)


class Scope:
    """A module, function, lambda, comprehension or class, with the names that it binds."""

    __slots__ = ("function", "kind", "node", "nonlocals", "parent", "symbols")

    def __init__(self, kind: str, node: tree.Node, parent: Scope | None) -> None:
        self.kind = kind
        self.node = node
        self.parent = parent
        self.symbols: dict[str, Symbol] = {}
        self.nonlocals: set[str] = set()
        #: The function around it, or the module. A function is its own.
        self.function: Scope = self if kind in ("module", "function") or parent is None else parent.function

    def bind(self, name: str, node: tree.Node, meaning: Meaning = VARIABLE) -> None:
        """Note that a node binds a name here."""
        symbol = self.symbols.get(name)
        if symbol is None:
            symbol = self.symbols[name] = Symbol(name, self)
        symbol.meanings.setdefault(meaning, node)

    def lookup(self, name: str) -> Symbol | None:
        """What a name means here; None if nothing binds it. Functions don't see the names of a class around them."""
        scope: Scope | None = self
        while scope is not None:
            if (scope.kind != "class" or scope is self) and name in scope.symbols:
                return scope.symbols[name]
            scope = scope.parent
        return None

    def visible(self) -> frozenset[str]:
        """The names of all functions, lambdas and comprehensions around."""
        names: set[str] = set()
        scope: Scope | None = self
        while scope is not None and scope.kind != "module":
            names.update(scope.symbols)
            scope = scope.parent
        return frozenset(names)


class Scopes(NamedTuple):
    """The result of `resolve`.

    Attributes:
        module: The tree in which names that matter are unique.
        scopes: The scope of each function, by the id of its node in `module`.
        unbound: The names that nothing binds, by the id of the node, each with its scope.
        captures: The variables of functions around it that a function reads or binds, by its name.
        captured: All these variables.
        changed_inside: Those that a nested function binds.
        lambdas: The names of functions that are lambdas in the source.
        repeated: The names of functions, classes and modules that have more than one meaning in a scope, with the scope.
    """

    module: tree.Module
    scopes: dict[int, Scope]
    unbound: dict[int, Scope]
    captures: dict[str, frozenset[str]]
    captured: frozenset[str]
    changed_inside: frozenset[str]
    lambdas: frozenset[str]
    repeated: tuple[Symbol, ...]


def resolve(module: tree.Module) -> Scopes:
    """The bindings of all names of a source."""
    reader = _Reader()
    reader.read(module)
    return _Resolver(reader).scopes(module)


class _Reader:
    """Makes the scopes, and collects every name with its scope."""

    def __init__(self) -> None:
        #: Each name that is read or bound, and each binding that is no such node.
        self.names: list[tuple[tree.Name, Scope]] = []
        self.binders: list[tuple[tree.Node, Scope]] = []
        self.scopes: list[Scope] = []
        self._pending: list[tuple[tree.Node, Scope]] = []

    def read(self, module: tree.Module) -> None:
        """Read a whole source."""
        self._later(self._scope("module", module, None), module.body)
        pending = self._pending
        while pending:
            node, scope = pending.pop()
            visit = _VISIT.get(type(node))
            if visit is not None:
                visit(self, node, scope)
            else:
                pending += [(child, scope) for child in reversed(tree.children(node))]
        # Scopes around others come first.
        for scope in self.scopes:
            for name in scope.nonlocals:
                bound = scope.symbols.pop(name, None)
                meant = scope.parent.lookup(name) if scope.parent is not None else None
                if bound is not None and meant is not None:
                    # What is bound here is a further meaning of the name around it.
                    meant.meanings = {**bound.meanings, **meant.meanings}

    def _scope(self, kind: str, node: tree.Node, parent: Scope | None) -> Scope:
        scope = Scope(kind, node, parent)
        self.scopes.append(scope)
        return scope

    def _later(self, scope: Scope, nodes: Iterable[tree.Node | None]) -> None:
        self._pending += [(node, scope) for node in reversed([*nodes]) if node is not None]

    def _bind(self, name: str, node: tree.Node, scope: Scope, meaning: Meaning = VARIABLE) -> None:
        scope.bind(name, node, meaning)
        self.binders.append((node, scope))

    def name(self, node: tree.Name, scope: Scope) -> None:
        self.names.append((node, scope))

    def function(self, node: tree.FunctionDef, scope: Scope) -> None:
        self._bind(node.name, node, scope, ("function", id(node)))
        inner = self._scope("function", node, scope)
        self._later(inner, node.body)
        self._parameters(node.params, inner, scope)
        self._later(scope, (*node.decorators, node.returns))

    def lambda_(self, node: tree.Lambda, scope: Scope) -> None:
        inner = self._scope("lambda", node, scope)
        self._later(inner, (node.body,))
        self._parameters(node.params, inner, scope)

    def _parameters(self, params: tuple[tree.Param, ...], inner: Scope, outer: Scope) -> None:
        for p in params:
            self._bind(p.name, p, inner)
            self._later(outer, (p.annotation, p.default))

    def comprehension(self, node: Any, scope: Scope) -> None:
        inner = self._scope("comprehension", node, scope)
        first, *others = node.generators
        parts = [node.key, node.value] if isinstance(node, tree.DictComp) else [node.elt]
        for g in others:
            self._targets(g.target, inner, g)
            self._later(inner, (*g.ifs, g.iter, g.target))
        self._targets(first.target, inner, first)
        self._later(inner, (*parts, *first.ifs, first.target))
        self._later(scope, (first.iter,))

    def class_(self, node: tree.ClassDef, scope: Scope) -> None:
        self._bind(node.name, node, scope, ("class", id(node)))
        self._later(self._scope("class", node, scope), node.body)
        self._later(scope, (*node.decorators, *node.bases, *node.keywords))

    def _targets(self, target: tree.Expr, scope: Scope, node: tree.Node) -> None:
        for part in tree.single_targets(target):
            if isinstance(part, tree.Name):
                scope.bind(part.id, node)

    def assign(self, node: tree.Assign, scope: Scope) -> None:
        match node:
            case tree.Assign(targets=(tree.Name(id=name),), value=tree.Lambda(params=params, body=body)):
                scope.bind(name, node, ("function", id(node)))
                inner = self._scope("function", node, scope)
                self._later(inner, (body,))
                self._parameters(params, inner, scope)
                return
        for target in node.targets:
            self._targets(target, scope, node)
        self._later(scope, (*node.targets, node.value))

    def one_target(self, node: Any, scope: Scope) -> None:
        self._targets(node.target, scope, node)
        self._later(scope, tree.children(node))

    def delete(self, node: tree.Delete, scope: Scope) -> None:
        for target in node.targets:
            self._targets(target, scope, node)
        self._later(scope, node.targets)

    def walrus(self, node: tree.NamedExpr, scope: Scope) -> None:
        holder = scope
        while holder.kind == "comprehension" and holder.parent is not None:
            holder = holder.parent
        holder.bind(node.target.id, node)
        self._later(scope, (node.target, node.value))

    def named(self, node: Any, scope: Scope) -> None:
        name = node.rest if isinstance(node, tree.MatchMapping) else node.name
        if name:
            self._bind(name, node, scope)
        self._later(scope, tree.children(node))

    def import_(self, node: tree.Import | tree.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            if isinstance(node, tree.ImportFrom):
                self._bind(bound_name(alias), alias, scope, ("import", node.module, alias.name))
            else:
                # `import a.b` binds the package.
                module = alias.name if alias.asname else alias.name.split(".")[0]
                self._bind(bound_name(alias), alias, scope, ("import", module))

    def nonlocal_(self, node: tree.Nonlocal, scope: Scope) -> None:
        scope.nonlocals.update(node.names)
        self.binders.append((node, scope))


_VISIT: dict[type[tree.Node], Callable[[_Reader, Any, Scope], None]] = {
    tree.Name: _Reader.name,
    tree.FunctionDef: _Reader.function,
    tree.Lambda: _Reader.lambda_,
    **dict.fromkeys((tree.ListComp, tree.SetComp, tree.DictComp, tree.GeneratorExp), _Reader.comprehension),
    tree.ClassDef: _Reader.class_,
    tree.Assign: _Reader.assign,
    **dict.fromkeys((tree.AnnAssign, tree.AugAssign, tree.For), _Reader.one_target),
    tree.Delete: _Reader.delete,
    tree.NamedExpr: _Reader.walrus,
    **dict.fromkeys((tree.ExceptHandler, tree.MatchAs, tree.MatchStar, tree.MatchMapping), _Reader.named),
    **dict.fromkeys((tree.Import, tree.ImportFrom), _Reader.import_),
    tree.Nonlocal: _Reader.nonlocal_,
}


class _Resolver:
    """Names the symbols that a reader has found."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._module = reader.scopes[0]
        self._functions = {id(s.node): s for s in reader.scopes if s.kind == "function"}
        #: What each name means, by the id of its node.
        self._meant: dict[int, Symbol] = {}
        self._captures: dict[Scope, set[Symbol]] = {}

    def scopes(self, module: tree.Module) -> Scopes:
        """The resolved source."""
        unbound: dict[int, Scope] = {}
        for node, scope in self._reader.names:
            symbol = self._use(node.id, scope)
            if symbol is None:
                unbound[id(node)] = scope
            else:
                self._meant[id(node)] = symbol
        for scope in self._reader.scopes:
            for name in scope.nonlocals:
                if (symbol := self._use(name, scope)) is not None:
                    symbol.changed_inside = True
        renamed = 0
        for symbol in self._symbols():
            if self._misleads(symbol):
                renamed += 1
                symbol.name = f"{symbol.spelling}{MARK}{renamed}"
        new = self._new_nodes(module) if renamed else {}
        captured = {s for symbols in self._captures.values() for s in symbols}
        return Scopes(
            new.get(id(module), module),  # type: ignore[arg-type]
            {id(new.get(key, scope.node)): scope for key, scope in self._functions.items()},
            unbound,
            {self._name_of(f): frozenset(s.name for s in symbols) for f, symbols in self._captures.items()},
            frozenset(s.name for s in captured),
            frozenset(s.name for s in captured if s.changed_inside),
            frozenset(self._name_of(f) for key, f in self._functions.items() if isinstance(f.node, tree.Assign)),
            tuple(s for s in self._symbols() if s.is_fixed and len(s.meanings) > 1),
        )

    def _symbols(self) -> Iterator[Symbol]:
        for scope in self._reader.scopes:
            if scope.kind != "class":
                yield from scope.symbols.values()

    def _use(self, name: str, scope: Scope) -> Symbol | None:
        """What a name means in a scope. It is noted if the name is a variable of another function."""
        symbol = scope.lookup(name)
        if symbol is not None and symbol.scope.function not in (scope.function, self._module) and not symbol.is_fixed:
            symbol.captured = True
            self._captures.setdefault(scope.function, set()).add(symbol)
        return symbol

    def _misleads(self, symbol: Symbol) -> bool:
        """Whether a symbol needs a name of its own."""
        name = symbol.spelling
        if name in vocabulary.PRELUDE:
            return False  # a finding reports the binding
        if symbol.scope is not self._module:
            return symbol.captured or symbol.is_fixed or name in _LANGUAGE or name in self._module.symbols
        if any(isinstance(node, tree.Assign) for node in symbol.meanings.values() if symbol.is_fixed):
            return True  # it is no public function
        types_alone = any(m[:1] == ("import",) and m[1] in vocabulary.ANNOTATION_NAMES for m in symbol.meanings)
        return name in _LANGUAGE and not types_alone and not any(m[0] == "class" for m in symbol.meanings)

    def _name_of(self, function: Scope) -> str:
        """The name of a function."""
        assert function.parent is not None
        match function.node:
            case tree.Assign(targets=(tree.Name(id=spelling),)) | tree.FunctionDef(name=spelling):
                symbol = function.parent.lookup(spelling)
                return symbol.name if symbol is not None else spelling
        raise AssertionError("not a function")

    # The tree with the new names

    def _new_nodes(self, module: tree.Module) -> dict[int, tree.Node]:
        """The nodes that change, by the ids of those that they replace."""
        binders = {id(node): scope for node, scope in self._reader.binders}
        nodes = [*tree.walk(module)]
        keywords = dict(pair for node in nodes if isinstance(node, tree.Call) for pair in self._keywords(node))
        new: dict[int, tree.Node] = {}
        # Children before parents.
        for node in reversed(nodes):
            changes = self._changes(node, binders, keywords)
            for name in node.__struct_fields__:
                value = getattr(node, name)
                if type(value) is tuple:
                    if any(id(part) in new for part in value):
                        changes[name] = tuple(new.get(id(part), part) for part in value)
                elif id(value) in new:
                    changes[name] = new[id(value)]
            if changes:
                new[id(node)] = replace(node, **changes)
            if id(node) in self._functions and isinstance(node, tree.Assign):
                new[id(node)] = self._function(node, new)
        return new

    def _function(self, node: tree.Assign, new: dict[int, tree.Node]) -> tree.FunctionDef:
        """The function that a named lambda is."""
        made: Any = new.get(id(node.value), node.value)
        name = self._name_of(self._functions[id(node)])
        body = (tree.Return(made.body.span, made.body),)
        return tree.FunctionDef(node.span, name, made.params, None, body, (), node.targets[0].span)

    def _changes(self, node: tree.Node, binders: dict[int, Scope], keywords: dict[int, str]) -> dict[str, Any]:
        """The fields of a node that contain other names."""
        if isinstance(node, tree.Name):
            symbol = self._meant.get(id(node))
            return {"id": symbol.name} if symbol is not None and symbol.name != node.id else {}
        if isinstance(node, tree.Keyword):
            return {"arg": keywords[id(node)]} if id(node) in keywords else {}
        scope = binders.get(id(node))
        if scope is None:
            return {}
        if isinstance(node, tree.Nonlocal):
            meant = [scope.lookup(name) for name in node.names]
            return {"names": tuple(s.name if s else n for s, n in zip(meant, node.names, strict=True))}
        if isinstance(node, tree.Alias):
            name = bound_name(node)
            field = "asname"
        else:
            field = "rest" if isinstance(node, tree.MatchMapping) else "name"
            name = getattr(node, field)
        symbol = scope.lookup(name)
        return {field: symbol.name} if symbol is not None and symbol.name != name else {}

    def _keywords(self, call: tree.Call) -> Iterator[tuple[int, str]]:
        """The named arguments of a call of a function of the source whose parameters have other names."""
        symbol = self._meant.get(id(call.func))
        for meaning, node in symbol.meanings.items() if symbol is not None else ():
            parameters = self._functions[id(node)].symbols if meaning[0] == "function" else {}
            for keyword in call.keywords:
                if keyword.arg in parameters:
                    yield id(keyword), parameters[keyword.arg].name

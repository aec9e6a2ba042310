"""The types of expressions, and the findings about operations that always fail.

An expression is visited once for each state of the names that it reads. Whatever is not described here has an unknown type, and all
that it is given escapes (`sites`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from albert_tools.engine.check.facts import COMPREHENSIONS
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.check.types import operations
from albert_tools.engine.check.types.narrowing import falsy, named, narrowed, truthy
from albert_tools.engine.check.types.sites import CHANGEABLE
from albert_tools.engine.check.types.source_types import SourceTypes, State
from albert_tools.engine.check.types.value_types import Alternative, Field, Type, constant, plain, spell, widened
from albert_tools.engine.check.written import written
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.nearest_name import nearest
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic

#: The most combinations of alternatives that are compared.
_MAX_COMBINATIONS = 64
#: The most names with a known type. Each branch copies them.
MAX_NAMES = 200

#: The hint where nothing better is known.
CONVERT = "convert the value, or use another one"

#: For each exception, the names of handlers that catch it.
CAUGHT_BY = {
    "TypeError": {"TypeError", "Exception"},
    "KeyError": {"KeyError", "LookupError", "Exception"},
    "AttributeError": {"AttributeError", "Exception"},
    "ToolError": {"ToolError", "Exception"},
}


#: The classes of keys that JSON does not have.
_ODD_KEYS = frozenset({"None", "bool", "int", "float", "bytes", "tuple", "frozenset"})


class Expressions:
    """The expressions of one function, or of the module's constants."""

    def __init__(self, source: SourceTypes, function: tree.FunctionDef | None, quiet: bool) -> None:
        self.source = source
        self.facts = source.facts
        self.sites = source.sites
        self.function = function
        #: Whether findings are dropped, because the same code is visited again.
        self.quiet = quiet
        own = self.facts.locals_in(function) if function else frozenset(self.facts.constants)
        #: Variables that other functions can change at any time are not followed.
        self.locals = own - self.facts.scopes.captured
        #: The exceptions that are caught around the statement.
        self.caught: list[frozenset[str]] = [frozenset(source.excused[function.name] if function else ())]
        #: The names whose types are dropped at the end of a statement around this one.
        self.dropped: list[frozenset[str]] = []
        #: The last type of each node.
        self.types: dict[int, Type] = {}

    # Findings

    def report(self, finding: Diagnostic, exception: str | None) -> None:
        """Report an operation that raises `exception` each time, unless a handler may expect that."""
        caught_by = CAUGHT_BY[exception] if exception else set()
        if not self.quiet and all(caught_by.isdisjoint(names) for names in self.caught):
            self.source.found.append(finding)

    def fails(self, test: Callable[..., bool], *types: Type) -> bool:
        """Whether an operation fails for all alternatives of its operands."""
        count = 1
        for each in types:
            if not each:
                return False
            count *= len(each)
        if count > _MAX_COMBINATIONS:
            return False
        return all(test(*(a.name for a in chosen)) for chosen in itertools.product(*(t or () for t in types)))

    # Names

    def bind(self, name: str, type_: Type, s: State) -> None:
        """Give a name a value of a type."""
        s.pop(name, None)
        if any(name in names for names in self.dropped):
            self.sites.escape(type_)
        if type_ is None or name in self.facts.rebound or name in self.facts.scopes.captured:
            self.sites.escape(type_)
            return
        if len(s) >= MAX_NAMES:
            self.forget([next(iter(s))], s)
        s[name] = type_

    def forget(self, names: Iterable[str], s: State) -> None:
        """Drop the types of names."""
        for name in names:
            self.sites.escape(s.pop(name, None))

    def merge(self, a: State | None, b: State | None) -> State | None:
        """The state where two paths join. None is a path that is not taken."""
        if a is None or b is None:
            return b if a is None else a
        merged: State = {}
        for name, type_ in a.items():
            other = b.get(name)
            if other is type_:
                merged[name] = type_
                continue
            joined = self.sites.join([type_, other])
            if joined is not None:
                merged[name] = joined
        self.sites.escape(*(type_ for name, type_ in b.items() if name not in a))
        return merged

    def _become(self, s: State, other: State | None) -> None:
        """Set the names of a state to those of another."""
        if other is not None and other is not s:
            s.clear()
            s.update(other)

    def assign(self, target: tree.Expr, type_: Type, s: State) -> None:
        """Assign a value of a type to a target."""
        match target:
            case tree.Name(id=name):
                self.bind(name, type_, s)
            case tree.Tuple(elts=parts) | tree.List(elts=parts):
                self._unpack(target, parts, type_, s)
            case tree.Starred(value=value):
                self.sites.escape(type_)
                self.assign(value, plain("list"), s)
            case tree.Subscript():
                base, index = self.expr(target.value, s), self.expr(target.slice, s)
                if self.fails(operations.storing, base, index):
                    self.operand(target, f"items of {spell(base)} can't be assigned by {spell(index)}", base)
                self.change(target.slice, base)
                self.sites.escape(type_)
            case _:
                self.sites.escape(type_)
                self.parts(target, s)

    def _unpack(self, target: tree.Expr, parts: tuple[tree.Expr, ...], type_: Type, s: State) -> None:
        only = type_[0] if type_ and len(type_) == 1 else None
        starred = any(isinstance(p, tree.Starred) for p in parts)
        if only is not None and only.name == "tuple" and only.fields and len(only.fields) == len(parts) and not starred:
            for part, field in zip(parts, only.fields, strict=True):
                self.assign(part, field.type, s)
            return
        items = self.items(target, type_)
        for part in parts:
            self.assign(part, items, s)

    def change(self, index: tree.Expr, type_: Type) -> None:
        """An item of a container of a type is changed."""
        if isinstance(index, tree.Strings):
            names = ["dict"]
        elif isinstance(index, tree.Slice):
            names = ["list"]
        else:
            names = list(CHANGEABLE)
        self.sites.change(type_, names)

    # Expressions

    def parts(self, node: tree.Node, s: State) -> Type:
        """Visit all parts of a node whose type is not known. What they are escapes."""
        for child in tree.children(node):
            self.sites.escape(self.expr(child, s))
        return None

    def expr(self, node: tree.Node, s: State) -> Type:
        """The type of an expression. `s` is updated by the names that it binds."""
        type_ = self.types[id(node)] = self._expr(node, s)
        if self.source.has_mutators and isinstance(node, tree.Name | tree.Attribute) and written(self.facts, node):
            self.sites.change(None, CHANGEABLE)  # a callback that changes what it is given
        return type_

    def _expr(self, node: tree.Node, s: State) -> Type:
        match node:
            case tree.Name():
                return self._name(node, s)
            case tree.Constant(value=value):
                return None if value is ... else constant(value)
            case tree.Strings():
                return self._strings(node, s)
            case tree.BinOp():
                return self._binary(node, s)
            case tree.Compare():
                return self._compare(node, s)
            case tree.UnaryOp():
                return self._unary(node, s)
            case tree.BoolOp():
                return self._bool(node, s)
            case tree.IfExp():
                return self._choice(node, s)
            case tree.Call():
                return self.call(node, s)
            case tree.Subscript():
                return self._subscript(node, s)
            case tree.Attribute():
                return self._attribute(node, s)
            case tree.NamedExpr():
                type_ = self.expr(node.value, s)
                self.bind(node.target.id, type_, s)
                return type_
            case tree.List() | tree.Tuple() | tree.Set():
                return self._display(node, s)
            case tree.Dict():
                return self._dict(node, s)
            case tree.Lambda():
                # A function of a dict is called later, when names have other types.
                self.sites.escape(self.body_of(node, None, {} if self.facts.is_in_table(node) else s))
                return None
            case tree.Slice():
                self.parts(node, s)
                return plain("slice")
        if isinstance(node, COMPREHENSIONS):
            return self._comprehension(node, s)
        return self.parts(node, s)

    def call(self, node: tree.Call, s: State) -> Type:
        """The type of a call."""
        raise NotImplementedError

    def body_of(self, node: tree.Lambda, first: Type, s: State) -> Type:
        """The type that a lambda returns, if its first parameter has the type `first`."""
        inner = dict(s)
        for i, p in enumerate(node.params):
            if p.default is not None:
                self.sites.escape(self.expr(p.default, s))
            self.bind(p.name, first if i == 0 and p.default is None else None, inner)
        return self.expr(node.body, inner)

    def _name(self, node: tree.Name, s: State) -> Type:
        name = node.id
        if name in self.facts.functions and name not in self.locals:
            self.excuse(name)
        if name in s:
            return s[name]
        hidden = name in self.locals or name in self.source.inner_names
        return None if hidden else self.source.constants.get(name)

    def excuse(self, helper: str) -> None:
        """A helper is called here, so the handlers here catch its exceptions."""
        self.source.excused[helper].update(*self.caught)

    def _strings(self, node: tree.Strings, s: State) -> Type:
        if node.constant is not None:
            return constant(node.constant)
        for piece in node.pieces:
            if isinstance(piece, tree.FText):
                self._fields(piece.parts, s)
        return plain("str")

    def _fields(self, parts: Iterable[str | tree.Field], s: State) -> None:
        for part in parts:
            if isinstance(part, tree.Field):
                self.expr(part.value, s)
                self._fields(part.spec or (), s)

    def _binary(self, node: tree.BinOp, s: State) -> Type:
        left, right = self.expr(node.left, s), self.expr(node.right, s)
        return self.operator(node, node.op, operations.binary, left, right)

    def operator(self, node: tree.Node, op: str, test: Callable[..., bool], left: Type, right: Type) -> Type:
        """The type of the result of an operator."""
        if self.fails(lambda a, b: test(op, a, b), left, right):
            texts = op == "+" and {"str"} < {a.name for a in (*(left or ()), *(right or ()))}
            hint = 'write an f-string, for example f"{a}{b}", or convert with str(…)' if texts else None
            self.operand(node, f"{op!r} never works between {spell(left)} and {spell(right)}", left, right, hint=hint)
            return None
        if not left or not right:
            result: Type = None
        else:
            pairs = itertools.product(left, right)
            result = self.sites.join([operations.result_of_binary(op, a.name, b.name) for a, b in pairs])
        self.sites.escape(left, right)
        return result

    def _compare(self, node: tree.Compare, s: State) -> Type:
        left = self.expr(node.left, s)
        for i, (op, part) in enumerate(zip(node.ops, node.comparators, strict=True)):
            # The evaluation of a chain stops at the first false comparison.
            inner = dict(s) if i else s
            right = self.expr(part, inner)
            if i:
                self._become(s, self.merge(s, inner))
            if op not in operations.EQUALITY and self.fails(
                lambda a, b, op=op: operations.binary(op, a, b), left, right
            ):
                self.operand(node, f"{op!r} never works between {spell(left)} and {spell(right)}", left, right)
            left = right
        return plain("bool")

    def _unary(self, node: tree.UnaryOp, s: State) -> Type:
        if node.op == "not":
            true, false = self.condition(node.operand, s)
            self._become(s, self.merge(true, false))
            return plain("bool")
        operand = self.expr(node.operand, s)
        if self.fails(lambda a: operations.unary(node.op, a), operand):
            self.operand(node, f"{node.op!r} never works on {spell(operand)}", operand)
            return None
        numbers = {"bool": "int", "int": "int", "float": "float"}
        if operand and all(a.name in numbers for a in operand):
            return self.sites.join([plain(numbers[a.name]) for a in operand])
        return None

    def _bool(self, node: tree.BoolOp, s: State) -> Type:
        true, false = self.condition(node, s)
        self._become(s, self.merge(true, false))
        return self.types[id(node)]

    def _choice(self, node: tree.IfExp, s: State) -> Type:
        true, false = self.condition(node.test, s)
        types = [self.expr(part, t) for part, t in ((node.body, true), (node.orelse, false)) if t is not None]
        self._become(s, self.merge(true, false))
        return self.sites.join(types) if types else None

    def condition(self, node: tree.Expr, s: State) -> tuple[State | None, State | None]:
        """The states if `node` is true and if it is false. None: this never happens."""
        match node:
            case tree.BoolOp():
                ends: State | None = None
                through: State | None = s
                types: list[Type] = []
                for value in node.values:
                    if through is None:
                        break
                    true, false = self.condition(value, through)
                    type_ = self.types[id(value)]
                    through, left = (true, false) if node.op == "and" else (false, true)
                    ends = self.merge(ends, left)
                    end = value is node.values[-1]
                    types.append(type_ if end else falsy(type_) if node.op == "and" else truthy(type_))
                self.types[id(node)] = self.sites.join(types)
                return (through, ends) if node.op == "and" else (ends, through)
            case tree.UnaryOp(op="not"):
                true, false = self.condition(node.operand, s)
                self.types[id(node)] = plain("bool")
                return false, true
        inner = dict(s)
        type_ = self.expr(node, inner)
        name = named(node)
        outcomes: list[State | None] = []
        for holds in (True, False):
            possible = truthy(type_) if holds else falsy(type_)
            state: State | None = dict(inner) if possible is None or possible else None
            if state is not None and name is not None and (name in self.locals or name in self.source.inner_names):
                known = inner.get(name)
                narrow = narrowed(node, known, holds)
                if narrow == ():
                    state = None
                elif narrow is not None and narrow != known:
                    state[name] = narrow
            outcomes.append(state)
        return outcomes[0], outcomes[1]

    def _display(self, node: tree.List | tree.Tuple | tree.Set, s: State) -> Type:
        name = {tree.List: "list", tree.Tuple: "tuple", tree.Set: "set"}[type(node)]
        types: list[Type] = []
        for part in node.elts:
            if isinstance(part, tree.Starred):
                types.append(self.items(part.value, self.expr(part.value, s)))
            else:
                types.append(self.expr(part, s))
                if name == "set":
                    self._key(part, types[-1])
        if not types:
            return plain(name)
        if name == "tuple" and not any(isinstance(part, tree.Starred) for part in node.elts):
            return self.sites.positions(types, id(node))
        return self.sites.container(name, id(node), self.sites.join([widened(t) for t in types]))

    def _key(self, node: tree.Node, type_: Type) -> None:
        if self.fails(operations.hashing, type_):
            self.operand(
                node, f"{spell(type_)} can't be a key or an item of a set", type_, hint="use a tuple or a text"
            )

    def _dict(self, node: tree.Dict, s: State) -> Type:
        fields: dict[str, Type] | None = {}
        odd_keys = ""
        for key, value in zip(node.keys, node.values, strict=True):
            kind = None if key is None else self.expr(key, s)
            type_ = self.expr(value, s)
            if key is not None:
                self._key(key, kind)
                odd_keys = odd_keys or _odd(kind, "some")
            if fields is not None and isinstance(key, tree.Strings) and isinstance(key.constant, str):
                fields[key.constant] = widened(type_)
            else:
                fields = None
        if not fields:
            self.sites.escape(*(self.types.get(id(v)) for v in node.values))
            return self.sites.container("dict", id(node), None, None, odd_keys) if odd_keys else plain("dict")
        return self.sites.container("dict", id(node), None, tuple(Field(k, t) for k, t in fields.items()))

    def _comprehension(self, node: tree.ListComp | tree.SetComp | tree.DictComp | tree.GeneratorExp, s: State) -> Type:
        if self.source.has_walrus:
            walruses = {n.target.id for n in tree.walk(node) if isinstance(n, tree.NamedExpr)}
            self.dropped.append(frozenset(walruses))
            self.forget(walruses, s)
        inner: State | None = dict(s)
        for g in node.generators:
            if inner is None:
                break
            self.assign(g.target, self.items(g.iter, self.expr(g.iter, inner)), inner)
            for test in g.ifs:
                if inner is not None:
                    inner, _ = self.condition(test, inner)
        items: Type = None
        odd_keys = ""
        if inner is not None and isinstance(node, tree.DictComp):
            key = self.expr(node.key, inner)
            self._key(node.key, key)
            self.sites.escape(key)
            odd_keys = _odd(key, "all")
            items = widened(self.expr(node.value, inner))
        elif inner is not None and not isinstance(node, tree.DictComp):
            items = widened(self.expr(node.elt, inner))
            if isinstance(node, tree.SetComp):
                self._key(node.elt, items)
        if self.source.has_walrus:
            self.dropped.pop()
        names: dict[type[tree.Node], str] = {tree.ListComp: "list", tree.SetComp: "set", tree.DictComp: "dict"}
        return self.sites.container(names.get(type(node), "lazy"), id(node), items, None, odd_keys)

    # Items, attributes and keys

    def items(self, node: tree.Node, type_: Type) -> Type:
        """The items of what is iterated at `node`."""
        if self.fails(operations.iterating, type_):
            self.operand(node, f"{spell(type_)} can't be iterated", type_)
            return None
        if type_ is None:
            return None
        item_types = [self._items(a) for a in type_ if not operations.iterating(a.name)]
        items = self.sites.join(item_types) if item_types else None
        if items is None:
            self.sites.escape(tuple(a for a in type_ if a.name != "dict"))
        return items or None

    def _items(self, alternative: Alternative) -> Type:
        if alternative.name in ("str", "range"):
            return plain("str" if alternative.name == "str" else "int")
        if alternative.name == "bytes":
            return plain("int")
        if alternative.name == "dict":
            return plain("str") if alternative.fields is not None else None
        return self.values(alternative)

    def values(self, alternative: Alternative) -> Type:
        """All values in a container."""
        return self.sites.join([f.type for f in alternative.fields]) if alternative.fields else alternative.items

    def _subscript(self, node: tree.Subscript, s: State) -> Type:
        base, index = self.expr(node.value, s), self.expr(node.slice, s)
        key = node.slice.constant if isinstance(node.slice, tree.Strings) else None
        key = key if isinstance(key, str) else None
        closed = [a.fields for a in base or () if a.name == "dict" and a.fields is not None]
        if key is not None and closed and self.fails(lambda a: a == "dict" or operations.indexing(a, "str"), base):
            if all(key not in {f.key for f in fields} for fields in closed) and self._all_closed(base):
                self._unknown_key(node, key, base)
                return None
        elif self.fails(operations.indexing, base, index):
            self.operand(node, f"{spell(base)} can't be indexed by {spell(index)}", base)
            return None
        if base is None or not base:
            return None
        position = index[0].constant[0] if index and len(index) == 1 and index[0].constant else None
        possible = [a for a in base if a.name not in ("None", "bool", "int", "float")]
        item = self.sites.join([self._item(a, index, position, id(node)) for a in possible]) if possible else None
        if item is None:
            self.sites.escape(base)
        return item

    def _all_closed(self, base: Type) -> bool:
        return all(a.name != "dict" or a.fields is not None for a in base or ())

    def _item(self, alternative: Alternative, index: Type, position: object, site: int) -> Type:
        """The item of a container. Nothing is known about a container that has no such item: the operation fails there."""
        if alternative.name == "str":
            return plain("str")
        if index == plain("slice"):
            return self.sites.container("list", site, alternative.items) if alternative.name == "list" else None
        if alternative.fields is not None:
            exact = [f.type for f in alternative.fields if f.key == position and type(f.key) is type(position)]
            if exact:
                return exact[0]
        return self.values(alternative) if alternative.name in ("list", "dict", "tuple") else None

    def _unknown_key(self, node: tree.Subscript, key: str, base: Type) -> None:
        keys = [str(f.key) for a in base or () for f in a.fields or () if a.name == "dict"]
        near = nearest(key, keys)
        made_here = any(a.site in self.source.displays for a in base or ())
        if made_here and near is None:
            return  # a dict of the source with a key of its own: the program may want the KeyError
        self.report(
            error(
                "unknown-key",
                node.slice,
                f"there is no key {key!r}" + (f"; did you mean {near!r}?" if near else ""),
                hint=f"the keys are {', '.join(dict.fromkeys(keys[:12]))}{', …' if len(keys) > 12 else ''}",
                fix=replace(node.slice, f'"{near}"') if near and near.isidentifier() else None,
            ),
            "KeyError",
        )

    def _attribute(self, node: tree.Attribute, s: State) -> Type:
        if self.facts.facade(node) is not None:
            return None
        type_ = self.expr(node.value, s)
        if node.attr in vocabulary.ATTRIBUTES:
            self.attribute(node, type_)
        self.sites.escape(type_)
        return None

    def attribute(self, node: tree.Attribute, type_: Type) -> bool:
        """Report an attribute that no value of a type has. Whether it is missing."""
        if not self.fails(lambda a: not operations.has_attribute(a, node.attr), type_):
            return False
        names = sorted({n for a in type_ or () for n in operations.methods(a.name)})
        near = nearest(node.attr, names, cutoff=0.75)
        hint = f"its methods are {', '.join(names[:12])}{', …' if len(names) > 12 else ''}" if names else _advice(type_)
        what = f"{spell(type_)} has no {'method' if self.facts.is_called(node) else 'attribute'} {node.attr!r}"
        self.report(
            error("missing-attribute", node.attr_span, what + (f"; did you mean {near!r}?" if near else ""), hint=hint),
            "AttributeError",
        )
        return True

    def operand(self, node: tree.Node, message: str, *types: Type, hint: str | None = None) -> None:
        """Report an operation that raises TypeError for these types."""
        advice = hint or next(filter(None, map(_advice, types)), CONVERT)
        self.report(error("operand-type", node, message, hint=advice), "TypeError")


def _advice(type_: Type) -> str:
    if any(a.name == "None" for a in type_ or ()):
        return "the value is None here; give it another value, or test it first"
    if any(a.name == "slice" for a in type_ or ()):
        return "only texts, lists and tuples have slices"
    return ""


def _odd(key: Type, which: str) -> str:
    """`which`, if a key is certainly no text. What can't be a key at all has another finding."""
    return which if key and all(a.name in _ODD_KEYS for a in key) else ""

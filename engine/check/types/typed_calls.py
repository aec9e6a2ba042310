"""The types of calls: tools, helpers, built-ins, functions of modules, and methods."""

from __future__ import annotations

from albert_tools.engine.check.annotation_schemas import is_literal
from albert_tools.engine.check.facts import is_typed_dict, tool_name
from albert_tools.engine.check.format_call import template_of
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.rules.function_calls import USAGE
from albert_tools.engine.check.types import operations, signatures
from albert_tools.engine.check.types.schema_fit import never_fits, why_no_json
from albert_tools.engine.check.types.sites import CHANGEABLE
from albert_tools.engine.check.types.source_types import State
from albert_tools.engine.check.types.typed_expressions import CONVERT, Expressions
from albert_tools.engine.check.types.value_types import Alternative, Field, Type, from_schema, plain, spell, widened
from albert_tools.engine.check.written import written
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.definition import ToolParameter
from albert_tools.engine.model.definition import spell as spell_schema
from albert_tools.engine.model.validation import violations
from albert_tools.grammar import tree

#: Built-ins that don't keep what they are given, and don't pass it to a callback. What they return has its items, or none of it.
_ITEMS_ONLY = frozenset(
    """abs all any ascii bin bool chr divmod enumerate float format frozenset hex int isinstance len list oct ord print range repr
    reversed round set sorted str sum tuple zip""".split()
)
#: Built-ins that read the items of one argument.
_READERS = frozenset("enumerate frozenset iter list max min reversed set sorted tuple".split())
#: Modules whose functions don't keep what they are given, and return new values.
_FRESH = frozenset({"base64", "hashlib", "html", "json", "math", "posixpath", "re", "shlex", "textwrap"})
#: Classes that contain no other values.
_SIMPLE = frozenset({"None", "bool", "int", "float", "str", "bytes", "range", "re.Match", "re.Pattern"})


class Calls(Expressions):
    """The calls of one function."""

    def call(self, node: tree.Call, s: State) -> Type:
        """The type of a call. The containers that it changes are noted."""
        type_ = self._call(node, s)
        for changed in written(self.facts, node):
            method = node.func.attr if isinstance(node.func, tree.Attribute) else ""
            names = [name for name, kind in CHANGEABLE.items() if hasattr(kind, method)]
            self.sites.change(self.types.get(id(changed)), names or CHANGEABLE)
        return type_

    def _call(self, node: tree.Call, s: State) -> Type:
        func = node.func
        tool = tool_name(func)
        if tool is not None:
            return self._tool(node, tool, s)
        if isinstance(func, tree.Name) and func.id not in self.locals and func.id not in self.facts.rebound:
            name = func.id
            if name in self.facts.functions:
                return self._helper(node, self.facts.functions[name], s)
            if name in self.facts.typed_dicts and is_typed_dict(self.facts.typed_dicts[name]):
                return self._typed_dict(node, s)
            if name in vocabulary.BUILTINS:
                return self._builtin(node, name, s)
            if name == "parallel":
                return self._parallel(node, s)
        named = self.facts.facade(func)
        if named is not None:
            return self._facade(node, *named, s)
        if isinstance(func, tree.Attribute):
            return self._method(node, func, s)
        return self.parts(node, s)

    def _arguments(self, node: tree.Call, s: State, callback: tree.Expr | None = None) -> list[Type]:
        """The types of all arguments but a callback, those by position first."""
        types = [self.expr(a.value if isinstance(a, tree.Starred) else a, s) for a in node.args]
        return types + [self.expr(k.value, s) for k in node.keywords if k.value is not callback]

    def _check(self, node: tree.Call, name: str, types: list[Type]) -> bool:
        """Report a call of a built-in or a function of a module that fails for these types. Whether it fails."""
        if not _is_plain(node) or not operations.can_try(name) or not types:
            return False
        if not self.fails(lambda *names: operations.calling(name, names), *types):
            return False
        given = " and ".join(spell(t) for t in types)
        usage = f"write {USAGE[name]}" if name in USAGE else CONVERT
        self.report(error("argument-type", node, f"{name} never works on {given}", hint=usage), "TypeError")
        return True

    # Tools and helpers

    def _tool(self, node: tree.Call, name: str, s: State) -> Type:
        types = self._arguments(node, s)
        definition = self.facts.catalog.get(name)
        if definition is None:
            return None
        named = {p.name: p for p in definition.parameters}
        given = [*zip(definition.parameters, node.args, types, strict=False)]
        given += [
            (named[k.arg], k.value, t)
            for k, t in zip(node.keywords, types[len(node.args) :], strict=True)
            if k.arg in named
        ]
        for parameter, value, type_ in given:
            if isinstance(value, tree.Starred):
                break
            # Another rule checks literals.
            if not is_literal(value) and never_fits(type_, parameter.schema):
                self._refused(value, name, parameter, type_)
        if not self.source.trusts_tools:
            return None
        return from_schema(definition.result, id(node), self.sites.changed)

    def _refused(self, node: tree.Expr, name: str, parameter: ToolParameter, type_: Type) -> None:
        if (no_json := why_no_json(type_)) is not None:
            self.report(error("not-json", node, no_json[0], hint=no_json[1]), "ToolError")
            return
        takes = parameter.description or spell_schema(parameter.schema)
        values = [v for a in type_ or () for v in a.constant]
        schema_violations = violations(values[0], parameter.schema, parameter.name) if len(values) == 1 else []
        why = (
            schema_violations[0]["message"]
            if schema_violations
            else f"{parameter.name}: expected {spell_schema(parameter.schema)}, got {spell(type_)}"
        )
        message = f"{name} does not take this value: {why}"
        self.report(error("argument-type", node, message, hint=f"{parameter.name}: {takes}"), "ToolError")

    def _helper(self, node: tree.Call, helper: tree.FunctionDef, s: State) -> Type:
        types = self._arguments(node, s)
        self.excuse(helper.name)
        if helper.name in self.source.opaque or not _is_plain(node, keywords=True):
            self.sites.escape(*types)
            for p in helper.params:
                self.source.arguments[helper.name][p.name].append(None)
        elif not self.quiet:
            self._give(node, helper, types)
        return self.source.results.get(helper.name)

    def _give(self, node: tree.Call, helper: tree.FunctionDef, types: list[Type]) -> None:
        """Note the types of the arguments, for the parameters of the helper."""
        given = dict(zip([p.name for p in helper.params if not p.keyword_only], types[: len(node.args)], strict=False))
        given |= {str(k.arg): t for k, t in zip(node.keywords, types[len(node.args) :], strict=True)}
        noted = self.source.arguments[helper.name]
        for p in helper.params:
            default = None if p.default is None else self.expr(p.default, {})
            noted[p.name].append(widened(given.get(p.name, default)))

    def _typed_dict(self, node: tree.Call, s: State) -> Type:
        types = self._arguments(node, s)
        if node.args or any(k.arg is None for k in node.keywords):
            self.sites.escape(*types)
            return plain("dict")
        fields = tuple(Field(k.arg, widened(t)) for k, t in zip(node.keywords, types, strict=True))
        return self.sites.container("dict", id(node), None, fields)

    def _parallel(self, node: tree.Call, s: State) -> Type:
        types = self._arguments(node, s)
        if len(node.args) == 1 and isinstance(node.args[0], tree.GeneratorExp):
            return self.sites.container("list", id(node), types[0][0].items if types[0] else None)
        if not _is_plain(node):
            self.sites.escape(*types)
            return None
        return self.sites.positions(types, id(node))

    # Built-ins and modules

    def _builtin(self, node: tree.Call, name: str, s: State) -> Type:
        if name == "isinstance":
            self._arguments(node, s)
            return plain("bool")
        key = next((k.value for k in node.keywords if k.arg == "key"), None)
        callback = key if isinstance(key, tree.Lambda) else None
        given = self._arguments(node, s, callback)
        types, keywords = given[: len(node.args)], given[len(node.args) :]
        if self._check(node, name, types):
            return None
        first = types[0] if types else None
        simple = _is_plain(node, keywords=True)
        reads = simple and name in _READERS and (len(types) == 1 or (name == "enumerate" and types))
        items = self.items(node.args[0], first) if reads else None
        if callback is not None:
            self.sites.escape(self.body_of(callback, items, s))
        elif key is not None:
            self.sites.escape(items)
        if name not in _ITEMS_ONLY:
            self.sites.escape(*types)
        self.sites.escape(*keywords)
        if simple:
            made = self._made(node, name, types, items)
            if made is None:
                self.sites.escape(*types)  # it may contain what it was made of
            return made
        self.sites.escape(*types)
        return signatures.of_builtin(name)

    def _made(self, node: tree.Call, name: str, types: list[Type], items: Type) -> Type:
        """The type of the result of a built-in. `items` are those of its first argument."""
        site = id(node)
        match name:
            case "list" | "sorted" | "set" | "tuple" | "frozenset" if types:
                return self.sites.container(name if name != "sorted" else "list", site, widened(items))
            case "reversed" | "iter":
                return self.sites.container("lazy", site, items)
            case "enumerate":
                return self.sites.container("lazy", site, self.sites.positions([plain("int"), items]))
            case "zip":
                rows = [self.items(a, t) for a, t in zip(node.args, types, strict=True)]
                return self.sites.container("lazy", site, self.sites.positions(rows))
            case "min" | "max" if len(types) == 1 and not any(k.arg == "default" for k in node.keywords):
                return items
            case "sum" if len(types) == 1 and not node.keywords:
                numbers = self.items(node.args[0], types[0])
                return plain("int") if numbers and all(a.name in ("int", "bool") for a in numbers) else None
        return signatures.of_builtin(name)

    def _facade(self, node: tree.Call, module: str, name: str, s: State) -> Type:
        types = self._arguments(node, s)
        spelled = f"{module}.{name}"
        if self._check(node, spelled, types):
            return None
        given = (*node.args, *(k.value for k in node.keywords))
        callback = any(
            isinstance(a, tree.Lambda) or (isinstance(a, tree.Name) and a.id in self.facts.functions) for a in given
        )
        made = signatures.of_facade(spelled, types[0] if types else None)
        # A value of an unknown type may contain what it was made of.
        if made is None or module not in _FRESH or callback or not _is_plain(node, keywords=True):
            self.sites.escape(*types)
        return made

    # Methods

    def _method(self, node: tree.Call, func: tree.Attribute, s: State) -> Type:
        base = self.expr(func.value, s)
        key = next((k.value for k in node.keywords if k.arg == "key" and isinstance(k.value, tree.Lambda)), None)
        types = self._arguments(node, s, key)
        if key is not None:
            items = self.items(func.value, base) if base and all(a.name == "list" for a in base) else None
            self.sites.escape(self.body_of(key, items, s))
        name = func.attr
        if template_of(node) is not None:
            return plain("str")
        if name not in vocabulary.METHODS or self.attribute(func, base):
            self.sites.escape(base, *types)
            return None
        if types and _is_plain(node) and self._refuses(node, func, base, types):
            return None
        if not base or any(a.name not in _SIMPLE for a in base):
            self.sites.escape(*types)
        possible = [a for a in base or () if operations.has_attribute(a.name, name)]
        result = self.sites.join([self._result(a, name, node, types) for a in possible]) if possible else None
        if result is None:
            self.sites.escape(base)
        return result

    def _refuses(self, node: tree.Call, func: tree.Attribute, base: Type, types: list[Type]) -> bool:
        """Report a method that fails for these arguments. Whether it fails."""
        if not self.fails(lambda own, *names: operations.calling_method(own, func.attr, names), base, *types):
            return False
        given = " and ".join(spell(t) for t in types)
        message = f"{spell(base)}.{func.attr} never works on {given}"
        self.report(error("argument-type", node.args[0], message, hint=CONVERT), "TypeError")
        return True

    def _result(self, alternative: Alternative, name: str, node: tree.Call, types: list[Type]) -> Type:
        """What a method of a value returns."""
        site = id(node)
        if signatures.splits(alternative.name, name):
            return self.sites.container("list", site, plain("str"))
        if name == "copy" and alternative.name in CHANGEABLE:
            return self.sites.container(alternative.name, site, alternative.items, alternative.fields)
        if alternative.name != "dict":
            return signatures.of_method(alternative.name, name)
        keys = plain("str") if alternative.fields is not None else None
        match name:
            case "items":
                return self.sites.container("view", site, self.sites.positions([keys, self.values(alternative)]))
            case "values":
                return self.sites.container("view", site, self.values(alternative))
            case "keys":
                return self.sites.container("view", site, keys)
            case "get" if types and not node.keywords:
                return self._got(alternative, node, types[1] if len(types) > 1 else plain("None"))
        return signatures.of_method("dict", name)

    def _got(self, alternative: Alternative, node: tree.Call, default: Type) -> Type:
        """What ``d.get(key, default)`` returns."""
        key = node.args[0].constant if isinstance(node.args[0], tree.Strings) else None
        if key is None or alternative.fields is None:
            return self.sites.join([self.values(alternative), default])
        field = next((f for f in alternative.fields if f.key == key), None)
        if field is None:
            return default
        return field.type if field.required else self.sites.join([field.type, default])


def _is_plain(node: tree.Call, keywords: bool = False) -> bool:
    """Whether a call has only arguments by position, or also named ones, and nothing is unpacked."""
    return not any(isinstance(a, tree.Starred) for a in node.args) and (
        all(k.arg is not None for k in node.keywords) if keywords else not node.keywords
    )

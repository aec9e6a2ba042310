"""Generates whole tools with arguments. The checker accepts them, they terminate, and they call tools of a catalogue.

The tools contain arithmetic that may fail, text, containers and their aliases, finite loops, lists that grow, names that may have
no value or that hide others, nested functions, lazy values, handlers, exceptions that are raised later, helpers, `match`,
f-strings, `parallel`, the statements of `generated_idioms`, and tool calls with and without a handler. What a tool returns is used
by its schema.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tests.generators.choices import Choices
from tests.generators.generated_expressions import KINDS, ExpressionWriter, Scope
from tests.generators.generated_idioms import CHANGING, READING


class ToolNames(Protocol):
    """The part of a catalogue that programs need: names, and definitions with `parameters`, `result` and `depth`."""

    def names(self) -> Iterable[str]:
        """The names of the tools that programs may call."""

    def get(self, name: str) -> Any:
        """The definition of one tool."""


@dataclass(frozen=True, slots=True)
class Program:
    """A tool, and the arguments for a call of it."""

    source: str
    arguments: dict[str, Any]


def program(choices: Choices, catalog: ToolNames, name: str = "t") -> Program:
    """A program of these choices."""
    tools = [tool for tool in catalog.names() if tool != name and _can_be_called(tool, catalog.get(tool))]
    return _ProgramWriter(choices, catalog, tools).program(name)


#: The most saved tools that call each other, as the checker allows. A generated tool adds one.
_MAX_DEPTH = 8


def _can_be_called(name: str, definition: Any) -> bool:
    """Whether a program can call a tool with literal arguments."""
    words = [*name.split("."), *(p.name for p in definition.parameters if p.required)]
    return all(map(_is_name, words)) and getattr(definition, "depth", 0) < _MAX_DEPTH


def _is_name(word: str) -> bool:
    return word.isidentifier() and word.isascii() and not keyword.iskeyword(word) and not word.startswith("_")


_MODULES = "base64 bisect collections copy csv functools heapq io itertools json posixpath re urllib.parse".split()

_RESULTS = ["Any", "str", "list", "dict"]
#: The widest indentation at which a call still gets a `try` of its own: the checker refuses blocks that are nested too deep.
_DEEPEST = 20
_TEXTS = ["a", "", "docs/a.txt", "Hello, World", "3", "äöü", "a b c", "../x", "/etc/passwd", "a\nb"]


class _ProgramWriter(ExpressionWriter):
    def __init__(self, choices: Choices, catalog: ToolNames, tools: list[str]) -> None:
        super().__init__(choices)
        self.catalog = catalog
        self.tools = tools
        self.names = 0
        self.name = ""
        #: Whether the function may change its arguments. Helpers that `parallel` can reach may not.
        self.may_change = True
        self.is_tool = False
        self.returns = "Any"
        #: The number of loops around the statement.
        self.loops = 0

    def once(self) -> str:
        """A name that the program binds only once."""
        self.names += 1
        return f"only{self.names}"

    def program(self, name: str) -> Program:
        self.name = name
        helper = Scope({"int": ["n"], "str": ["s", "BASE"]})
        lines = ['BASE = "docs"', "", "", "def _help(n: int, s: str) -> str:", '    """Help."""']
        self.may_change = False
        lines += self.block(helper, "    ", 1)
        lines += [f"    return {self.expr(helper, 'str', 2)}", "", ""]
        self.may_change = True
        self.loops = 1  # it can be called in a loop
        keeper = Scope({"int": ["n"], "str": ["s", "BASE"], "texts": ["held"]})
        lines += ["def _keep(held: list, n: int, s: str) -> None:", '    """Keep."""']
        lines += [*self.block(keeper, "    ", 0), "    held.append(s)", "", ""]
        self.is_tool, self.loops = True, 0
        scope = Scope({"int": ["n"], "str": ["s", "BASE"], "list": ["xs"], "dict": ["d"]})
        self.returns = self.pick(_RESULTS)
        lines += [f"def {name}(n: int, s: str, xs: list[int], d: dict[str, int]) -> {self.returns}:"]
        lines += ['    """Do something."""', "    out = []", *self.block(scope, "    ", 2, top=True)]
        lines.append(f"    {self.result(scope, 2)}")
        text = "\n".join(lines) + "\n"
        imports = [f"import {module}\n" for module in _MODULES if f"{module}." in text]
        return Program("".join([*imports, "\n", text]), self.arguments())

    def result(self, scope: Scope, depth: int) -> str:
        match self.returns:
            case "str":
                return f"return {self.text(scope, depth)}"
            case "dict":
                return f'return {{"text": {self.text(scope, depth)}, "out": out}}'
        kinds = [self.pick(KINDS) for _ in range(2)]
        return f"return [out, {', '.join(self.expr(scope, kind, depth) for kind in kinds)}]"

    def arguments(self) -> dict[str, Any]:
        def numbers() -> list[int]:
            return [self.choices.below(25) - 5 for _ in range(self.choices.below(5))]

        return {
            "n": self.pick([1, 0, 2, 3, 7, -1, -3]),
            "s": self.pick(_TEXTS),
            "xs": numbers(),
            "d": dict(zip("abc", numbers(), strict=False)),
        }

    # Statements.

    def block(self, scope: Scope, indent: str, depth: int, top: bool = False) -> list[str]:
        lines: list[str] = []
        for _ in range(1 + self.choices.below(2 + depth + 3 * top)):
            lines += self.statement(scope, indent, depth)
        return lines

    def loop(self, scope: Scope, indent: str, depth: int) -> list[str]:
        self.loops += 1
        lines = self.block(scope, indent, depth)
        self.loops -= 1
        return lines

    def stored(self, text: str) -> str:
        """A text for a container. In a loop it is cut off: otherwise a text could be doubled in each round."""
        return f"({text})[:99]" if self.loops else text

    def statement(self, scope: Scope, indent: str, depth: int) -> list[str]:
        kinds = "assign print assign assign assign lazy record record alias idiom idiom idiom".split()
        if self.tools:
            kinds += ["call"] * 8
        if self.may_change:
            kinds += ["change", "change", "grow"]
            if self.is_tool:
                kinds += ["out", "out", "augment", "keep"]
                kinds += ["parallel"] if self.tools else []
        if depth:
            kinds += ["if", "for", "try", "match", "unpack", "maybe", "rows", "rows"]
        if self.chance(30):
            kinds = ["give_up", "raise", "stop"] if self.is_tool else ["give_up", "raise"]
        write: Callable[..., list[str]] = getattr(self, f"_{self.pick(kinds)}")
        return write(scope, indent, depth)

    def _assign(self, scope: Scope, indent: str, depth: int) -> list[str]:
        kind = self.pick(KINDS)
        value = self.expr(scope, kind, 2)
        return [f"{indent}{scope.new(kind)} = {value}"]

    def _augment(self, scope: Scope, indent: str, depth: int) -> list[str]:
        name = self.pick(scope.variables["int"])
        return [f"{indent}{name} {self.pick(['+=', '-='])} {self.expr(scope, 'int', 1)}"]

    def _print(self, scope: Scope, indent: str, depth: int) -> list[str]:
        return [f"{indent}print({self.expr(scope, self.pick(KINDS), 1)}, {self.expr(scope, 'str', 0)})"]

    def _out(self, scope: Scope, indent: str, depth: int) -> list[str]:
        return [f"{indent}out.append({self.expr(scope, self.pick(KINDS), 2)})"]

    def _stop(self, scope: Scope, indent: str, depth: int) -> list[str]:
        # No program stops always: the checker refuses statements that can't be reached.
        return [f"{indent}if {self.expr(scope, 'bool', 1)}:", f"{indent}    {self.result(scope, 1)}"]

    def _give_up(self, scope: Scope, indent: str, depth: int) -> list[str]:
        return [f"{indent}if {self.expr(scope, 'bool', 1)}:", f"{indent}    raise ToolError({self.text(scope, 1)})"]

    def _record(self, scope: Scope, indent: str, depth: int) -> list[str]:
        keys = ["path", "text"]
        values = ", ".join(f'"{key}": {self.text(scope, 1)}' for key in keys)
        name = scope.fresh("record")
        scope.records.append((name, keys))
        scope.places.setdefault("str", []).extend(f"{name}['{key}']" for key in keys)
        return [f"{indent}{name} = {{{values}}}"]

    def _alias(self, scope: Scope, indent: str, depth: int) -> list[str]:
        if scope.records and self.chance():
            old, keys = self.pick(scope.records)
            name = scope.fresh("record")
            scope.records.append((name, keys))
            scope.places.setdefault("str", []).extend(f"{name}['{key}']" for key in keys)
            return [f"{indent}{name} = {old}"]
        kind = self.pick([k for k in ("texts", "list", "dict") if scope.variables.get(k)] or ["str"])
        old = self.pick(scope.variables[kind])
        return [f"{indent}{scope.new(kind)} = {old}"]

    def _change(self, scope: Scope, indent: str, depth: int) -> list[str]:
        options = []
        if scope.records:
            name, keys = self.pick(scope.records)
            options.append(f'{name}["{self.pick(keys)}"] = {self.stored(self.text(scope, 2))}')
        if scope.variables.get("texts"):
            name = self.pick(scope.variables["texts"])
            options.append(f"{name}.append({self.stored(self.text(scope, 2))})")
            options.append(f"{name}.{self.pick(['reverse()', 'sort()', 'clear()'])}")
        if scope.variables.get("dict"):
            name = self.pick(scope.variables["dict"])
            options.append(f"{name}[{self.stored(self.expr(scope, 'str', 1))}] = {self.expr(scope, 'int', 1)}")
        return [indent + self.pick(options)] if options else self._record(scope, indent, depth)

    def _keep(self, scope: Scope, indent: str, depth: int) -> list[str]:
        held = scope.variables.get("texts")
        if not held:
            return [f"{indent}{scope.new('texts')} = []"]
        text = self.stored(self.text(scope, 1))
        return [f"{indent}_keep({self.pick(held)}, {self.expr(scope, 'int', 1)}, {text})"]

    def _call(self, scope: Scope, indent: str, depth: int) -> list[str]:
        tool, call = self.tool_call(scope)
        schema = self.catalog.get(tool).result
        name, step = scope.fresh("any"), indent + "    "
        if self.chance(3) and len(indent) <= _DEEPEST:
            inner = scope.inner()
            inner.add_places(name, schema)
            return [
                f"{indent}try:",
                f"{step}{name} = {call}",
                *self.block(inner, step, max(0, depth - 1)),
                f"{indent}except ToolError as error:",
                f"{step}print(error.code, error.message)",
                *([f"{indent}finally:", f'{step}print("done")'] if self.chance(3) else []),
            ]
        scope.add_places(name, schema)
        return [f"{indent}{name} = {call}"]

    def _parallel(self, scope: Scope, indent: str, depth: int) -> list[str]:
        name = scope.fresh("any")
        if self.chance():
            body = scope.inner()
            kind = self.pick(["list", "texts"])
            variable = "i" if kind == "list" else "x"
            body.variables = {**body.variables, "int" if kind == "list" else "str": [variable]}
            work = self.pick(
                [self.tool_call(body)[1], f"_help({self.expr(body, 'int', 0)}, {self.expr(body, 'str', 0)})"]
            )
            found = f"parallel({work} for {variable} in {self.expr(scope, kind, 1)})"
        else:
            found = f"parallel({self.tool_call(scope)[1]}, {self.expr(scope, 'int', 1)})"
        return [f"{indent}{name} = {found}", f"{indent}out.append({name})"]

    def _rows(self, scope: Scope, indent: str, depth: int) -> list[str]:
        inner = scope.inner()
        if scope.rows and not self.chance(4):
            text, schema = self.pick(scope.rows)
            name = inner.fresh("row")
            inner.add_places(name, schema)
            head = f"for {name} in {text}:"
        elif self.chance(3):
            value = self.expr(scope, "dict", 1)
            head = f"for {inner.new('str')}, {inner.new('int')} in {value}.items():"
        else:
            value = self.expr(scope, "texts", 1)
            inner.keep_texts()
            if self.chance(3):
                head = f"for {inner.new('int')}, {inner.new('str')} in enumerate({value}):"
            else:
                head = f"for {inner.new('str')} in {value}:"
        return [indent + head, *self.loop(inner, indent + "    ", depth - 1)]

    def _maybe(self, scope: Scope, indent: str, depth: int) -> list[str]:
        step, inner = indent + "    ", scope.inner()
        kind, name = self.pick(KINDS), self.once()
        value = self.expr(inner, kind, 1)
        head = self.pick([f"if {self.expr(scope, 'bool', 1)}", f"for x in {self.expr(scope, 'list', 1)}"])
        lines = [f"{indent}{head}:", f"{step}{name} = {value}"]
        if self.chance(4):
            return [*lines, f"{indent}print({name})"]
        after = [f"{indent}except Exception as error:", f"{step}print(error)"]
        return [*lines, f"{indent}try:", f"{step}print({name})", *after]

    def _grow(self, scope: Scope, indent: str, depth: int) -> list[str]:
        step = indent + "    "
        kind = self.pick([k for k in ("list", "texts") if scope.variables.get(k)] or [""])
        if not kind:
            return self._assign(scope, indent, depth)
        name, variable = self.pick(scope.variables[kind]), self.once()
        more = self.expr(scope, "int" if kind == "list" else "str", 1)
        return [
            f"{indent}for {variable} in {name}:",
            f"{step}if len({name}) < 9:",
            f"{step}    {name}.append({variable} + {more})",
        ]

    def _lazy(self, scope: Scope, indent: str, depth: int) -> list[str]:
        name, value = self.once(), self.expr(scope, "list", 1)
        made = self.pick([f"(x + 1 for x in {value} if x)", f"map(abs, {value})", f"enumerate({value})"])
        between = f"{indent}print({self.expr(scope, 'int', 1)})"
        return [f"{indent}{name} = {made}", between, f"{indent}for x in {name}:", f"{indent}    print(x)"]

    def _raise(self, scope: Scope, indent: str, depth: int) -> list[str]:
        name, step = self.once(), indent + "    "
        lines = [f"{indent}{name} = None", f"{indent}try:", f"{step}print({self.expr(scope, 'int', 2)})"]
        lines += [f"{indent}except Exception as error:", f"{step}{name} = error"]
        if self.chance(4):
            return [*lines, f"{indent}if {name}:", f"{step}raise {name}"]
        lines += [f"{indent}try:", f"{step}raise {name} or NotImplementedError({self.expr(scope, 'str', 0)})"]
        return [*lines, f"{indent}except Exception as error:", f"{step}print(error, error.args)"]

    def _if(self, scope: Scope, indent: str, depth: int) -> list[str]:
        step = indent + "    "
        lines = [f"{indent}if {self.expr(scope, 'bool', 1)}:", *self.block(scope.inner(), step, depth - 1)]
        if self.chance():
            lines += [f"{indent}else:", *self.block(scope.inner(), step, depth - 1)]
        return lines

    def _for(self, scope: Scope, indent: str, depth: int) -> list[str]:
        step, inner = indent + "    ", scope.inner()
        value = self.expr(scope, "list", 1)
        variable = inner.new("int")
        lines = [f"{indent}for {variable} in {value}:", *self.loop(inner, step, depth - 1)]
        if self.chance(3):
            lines += [f"{step}if {self.expr(inner, 'bool', 0)}:", f"{step}    {self.pick(['break', 'continue'])}"]
            lines += [f"{step}print({variable})"]
        if self.chance(3):
            lines += [f"{indent}else:", f'{step}print("all")']
        return lines

    def _try(self, scope: Scope, indent: str, depth: int) -> list[str]:
        step = indent + "    "
        error = self.pick(["ZeroDivisionError", "(KeyError, IndexError)", "ValueError", "Exception", "ToolError"])
        lines = [f"{indent}try:", *self.block(scope.inner(), step, depth - 1), f"{indent}except {error}:"]
        lines += [f'{step}print("caught")']
        if self.chance():
            lines += [f"{indent}finally:", f'{step}print("finally")']
        return lines

    def _match(self, scope: Scope, indent: str, depth: int) -> list[str]:
        step, inner = indent + "    ", scope.inner()
        lines = [f"{indent}match {self.expr(scope, self.pick(KINDS), 1)}:"]
        pattern = self.pick(["0 | 1", "[first, *rest]", '{"a": found}', "str() as word", "True", '"a"'])
        if pattern.endswith("word"):
            inner.places.setdefault("str", []).append("word")
        lines += [f"{step}case {pattern}:", *self.block(inner, step + "    ", depth - 1)]
        return [*lines, f"{step}case _:", f'{step}    print("other")']

    def _unpack(self, scope: Scope, indent: str, depth: int) -> list[str]:
        kind, of = self.pick([("list", "int"), ("texts", "str")])
        value = f"({self.expr(scope, kind, 1)} or [{self.expr(scope, of, 0)}])"
        return [f"{indent}{scope.new(of)}, *{scope.new(kind)} = {value}"]

    def _idiom(self, scope: Scope, indent: str, depth: int) -> list[str]:
        template = self.pick([*READING, *(CHANGING if self.is_tool else ())])
        owned = [kind for kind in ("texts", "dict") if f"<own {kind}>" in template]
        has_tools = set(re.findall(r"tools\.(\w+)", template)).issubset(self.tools)
        if not (has_tools and all(map(scope.variables.get, owned))) or ("<call>" in template and not self.tools):
            return self._assign(scope, indent, depth)
        names = {mark: self.once() for mark in ("<x>", "<y>") if mark in template}
        made: list[tuple[str, str]] = []

        def part(found: re.Match[str]) -> str:
            match found[1].split():
                case ["own", kind]:
                    return str(self.pick(scope.variables[kind]))
                case ["new", kind]:
                    made.append((kind, scope.fresh(kind)))
                    return made[-1][1]
                case ["text"]:
                    return self.text(scope, 1)
                case ["test"]:
                    return self.test(scope)
                case ["self"]:
                    return self.name
                case ["call"]:
                    return self.tool_call(scope)[1]
                case [kind]:
                    return names.get(found[0]) or self.expr(scope, kind, 1)
            raise AssertionError(template)

        lines: list[str] = []
        self.loops += 1
        for line in template.split("\n"):
            if line.endswith("<block>"):
                inner = scope.inner()
                inner.keep_texts()
                lines += self.block(inner, indent + line.removesuffix("<block>"), max(0, depth - 1))
            else:
                lines.append(indent + re.sub("<([a-z ]+)>", part, line))
        self.loops -= 1
        for kind, name in made:
            scope.variables.setdefault(kind, []).append(name)
        return lines

    # Calls.

    def tool_call(self, scope: Scope) -> tuple[str, str]:
        """A tool, and a call of it."""
        name = self.pick(self.tools)
        definition = self.catalog.get(name)
        arguments = []
        for p in definition.parameters:
            known = _kind(p.schema) is not None
            use = definition.declared.uses.get(p.name)
            if use == "tool":
                arguments.append(f'{p.name}="{self.pick(self.tools)}"')
            elif use == "items":
                arguments.append(f'{p.name}=[{{"path": y}} for y in [*{self.expr(scope, "texts", 1)}, "a"]]')
            elif p.required or (known and _is_name(p.name) and self.chance(4)):
                arguments.append(f"{p.name}={self.argument(scope, p.schema)}")
        return name, f"tools.{name}({', '.join(arguments)})"

    def argument(self, scope: Scope, schema: Any) -> str:
        kind = _kind(schema) or "str"
        if any(str(part.get("format", "")).endswith("hash") for part in (schema, *schema.get("anyOf", ()))):
            return repr("b3:" + "0" * 64)
        if kind == "enum":
            return repr(self.pick(schema["enum"]))
        value = self.text(scope, 2) if kind == "str" else self.expr(scope, kind, 1)
        # The checker checks a known value against the parameter's schema, but this module reads only a part of the schema.
        if kind == "int" and schema.keys() - {"type"}:
            return str(self.pick(["n", f"min(abs({value}), 40) + 1"]))
        maker = "list" if kind == "texts" else kind
        may_be_known = _literal(value) or value.isidentifier()
        return f"{maker}({value})" if may_be_known and schema.keys() - {"type"} else value


def _kind(schema: Any) -> str | None:
    """The kind of expressions that fit a parameter; None if no kind does."""
    if "enum" in schema:
        return "enum"
    if "anyOf" in schema:
        return next(filter(None, map(_kind, schema["anyOf"])), None)
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "string":
            return "str"
        case "integer" | "number":
            return "int"
        case "boolean":
            return "bool"
        case "array":
            return {"string": "texts", "integer": "list"}.get(schema.get("items", {"type": "integer"}).get("type"))
        case "object":
            values = schema.get("additionalProperties", {"type": "integer"})
            return "dict" if isinstance(values, dict) and values.get("type") == "integer" else None
    return None


def _literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True

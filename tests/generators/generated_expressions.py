"""Generates expressions by type, so that most of a generated program is meaningful.

The kinds of values are ``int``, ``str``, ``bool``, ``list`` (of integers), ``dict`` (from texts to integers) and ``texts`` (a list
of texts). A `Scope` has the variables of each kind, and *places*: expressions that can be read but not assigned, for example
``r1['path']``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.generators.choices import Choices, pick

KINDS = ["int", "str", "list", "dict", "bool", "texts"]

#: Some have the same place in a hash table.
_SET_ITEMS = [0, 8, 16, 24, -36, 17, 9, 41]
_MARKS = ['"/"', '","', '"."', '" "', '"="']
_ENDS = ['".txt"', '"/b"', '""', '".bak"', '"/"']
_STARTS = ["", "docs/", "https://example.org/", "rm "]
_LITERALS = {
    "int": ["0", "1", "-1", "7", "255", "1000000007"],
    "str": ['"a"', '""', '"b c"', "'it'", '"7"', '"ß"', '"a,b"', '"docs/a.txt"', '"./x//y"'],
    "list": ["[]", "[1]", "[3, 1, 2]", "[0, -1]"],
    "dict": ["{}", '{"a": 1}', '{"b": 2, "a": 3}'],
    "bool": ["True", "False"],
    "texts": ["[]", '["a"]', '["b", "a/b.txt", ""]'],
    "any": ["None"],
}


class Scope:
    """The variables and places in scope, by kind.

    Attributes:
        rows: Expressions for lists of objects, each with the JSON schema of an item.
        records: Names of dictionaries of texts that the program made, with their keys.
    """

    def __init__(self, variables: dict[str, list[str]]) -> None:
        self.variables = variables
        self.places: dict[str, list[str]] = {}
        self.rows: list[tuple[str, Any]] = []
        self.records: list[tuple[str, list[str]]] = []
        self.count = 0

    def inner(self) -> Scope:
        """A scope for a block. What the block adds is not visible outside."""
        scope = Scope({kind: list(found) for kind, found in self.variables.items()})
        scope.places = {kind: list(found) for kind, found in self.places.items()}
        scope.rows = list(self.rows)
        scope.records = list(self.records)
        scope.count = self.count + 100
        return scope

    def new(self, kind: str) -> str:
        """A new variable."""
        name = self.fresh(kind)
        self.variables.setdefault(kind, []).append(name)
        return name

    def fresh(self, kind: str) -> str:
        """A new name that no expression uses."""
        self.count += 1
        return f"{kind[0] if kind != 'texts' else 'ts'}{self.count}"

    def keep_texts(self) -> None:
        """Change no list of texts here, so that a loop over one ends. Lists of integers only grow up to a size."""
        self.places["texts"] = [*self.places.get("texts", ()), *self.variables.pop("texts", ())]

    def readable(self, kind: str) -> list[str]:
        """The variables and places of a kind."""
        return [*self.variables.get(kind, ()), *self.places.get(kind, ())]

    def add_places(self, text: str, schema: Any) -> None:
        """Add what can be read in a value of this schema. `text` is an expression for the value."""
        kind = _kind(schema)
        if kind is not None:
            self.places.setdefault(kind, []).append(text)
        elif schema.get("type") == "array" and schema.get("items", {}).get("type") == "object":
            self.rows.append((text, schema["items"]))
        elif schema.get("type") == "object":
            for key in schema.get("required", ()):
                self.add_places(f"{text}['{key}']", schema["properties"][key])


def _kind(schema: Any) -> str | None:
    found = {"string": "str", "integer": "int", "boolean": "bool"}.get(str(schema.get("type")))
    if schema.get("type") == "array":
        return {"string": "texts", "integer": "list"}.get(str(schema.get("items", {}).get("type")))
    if "enum" in schema and all(isinstance(value, str) for value in schema["enum"]):
        return "str"
    return found


class ExpressionWriter:
    """Writes expressions from choices."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def pick(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return pick(self.choices, options)

    def chance(self, of: int = 2) -> bool:
        """True in one of `of` cases."""
        return self.choices.below(of) == 1

    def expr(self, scope: Scope, kind: str, depth: int) -> str:
        """An expression of a kind, of limited depth."""
        if depth <= 0 or self.choices.below(4) == 0:
            known = scope.readable(kind)
            if known and self.choices.below(4) < 3:
                return str(self.pick(known))
            return str(self.pick(_LITERALS[kind]))

        def e(kind: str) -> str:
            return self.expr(scope, kind, depth - 1)

        options = _RISKY[kind] if kind in _RISKY and self.chance(15) else _OPTIONS[kind]
        return str(self.pick(options)(self, scope, e))

    def text(self, scope: Scope, depth: int) -> str:
        """A text as programs make paths, URLs and commands: of constants, variables and pieces of other texts."""

        def e(kind: str) -> str:
            return self.expr(scope, kind, depth - 1)

        return str(self.pick(_TEXTS)(self, scope, e))

    def test(self, scope: Scope) -> str:
        """A question about a parameter of the function, so that other arguments often have another answer."""
        names = {"n": "n > 2", "s": 's > "b"', "xs": "len(xs) > 1", "d": "len(d) > 1"}
        known = {name for kind in ("int", "str", "list", "dict") for name in scope.readable(kind)}
        return str(self.pick([text for name, text in names.items() if name in known] or ["True"]))


Make = Callable[[ExpressionWriter, Scope, Callable[[str], str]], str]


def _f_string(w: ExpressionWriter, s: Scope, e: Callable[[str], str]) -> str:
    return f'f"{{{w.pick(s.variables["int"])}:>4}}|{{{w.pick(s.variables["str"])}!r}}"'


_OPTIONS: dict[str, list[Make]] = {
    "int": [
        lambda w, s, e: f"({e('int')} {w.pick(['+', '-', '&', '|', '^'])} {e('int')})",
        # The factor is a constant, so a loop can't square a number repeatedly.
        lambda w, s, e: f"({e('int')} * {w.pick(['2', '-3', '10'])})",
        lambda w, s, e: f"len({e(w.pick(['str', 'list', 'dict', 'texts']))})",
        lambda w, s, e: f"sum({e('list')})",
        lambda w, s, e: f"{e('dict')}.get({e('str')}, {e('int')})",
        lambda w, s, e: f"max({e('list')}, default={e('int')})",
        lambda w, s, e: f"({e('int')} if {e('bool')} else {e('int')})",
        lambda w, s, e: f"abs({e('int')})",
        lambda w, s, e: f"{e('str')}.find({e('str')})",
    ],
    "str": [
        lambda w, s, e: f"({e('str')} + {e('str')})",
        lambda w, s, e: f"{e('str')}.{w.pick(['upper', 'strip', 'title', 'lower', 'swapcase'])}()",
        _f_string,
        lambda w, s, e: f"str({e(w.pick(['int', 'list', 'bool', 'dict']))})",
        lambda w, s, e: f"{e('str')}[{e('int')}:]",
        lambda w, s, e: f'",".join(str(x) for x in {e("list")})',
        lambda w, s, e: f"{e('str')}.replace({e('str')}, {e('str')})",
        lambda w, s, e: f"json.dumps({e(w.pick(['int', 'list', 'dict', 'str']))})",
        lambda w, s, e: f'"/".join({e("texts")})',
        lambda w, s, e: f"({e('str')} if {e('bool')} else {e('str')})",
        lambda w, s, e: f"({e('str')} {w.pick(['or', 'and'])} {e('str')})",
        lambda w, s, e: w.text(s, 1),
        lambda w, s, e: f"{e('str')}.{w.pick(['partition', 'rpartition'])}({w.pick(_MARKS)})[{w.pick([0, 2])}]",
        lambda w, s, e: f"next((x for x in {e('texts')} if x > {e('str')}), {e('str')})",
    ],
    "list": [
        lambda w, s, e: f"[x * {e('int')} for x in {e('list')} if x > {e('int')}]",
        lambda w, s, e: f"sorted({e('list')}, key=lambda x: -x)",
        lambda w, s, e: f"list(range({e('int')} % 7))",
        lambda w, s, e: f"({e('list')} + {e('list')})",
        lambda w, s, e: f"{e('list')}[{e('int')}:{e('int')}]",
        lambda w, s, e: f"[{e('int')}, {e('int')}]",
        lambda w, s, e: f"[len(w) for w in {e('str')}.split()]",
        lambda w, s, e: f"list({e('dict')}.values())",
        lambda w, s, e: f"list(map(abs, {e('list')}))",
        lambda w, s, e: f"list({{{', '.join(str(w.pick(_SET_ITEMS)) for _ in range(4))}}})",
    ],
    "dict": [
        lambda w, s, e: f"{{{e('str')}: {e('int')}, {e('str')}: {e('int')}}}",
        lambda w, s, e: f"{{str(x): x for x in {e('list')}}}",
        lambda w, s, e: f"{{**{e('dict')}, {e('str')}: {e('int')}}}",
        lambda w, s, e: f"dict(zip({e('str')}, {e('list')}))",
    ],
    "bool": [
        lambda w, s, e: w.test(s),
        lambda w, s, e: f"({e('int')} {w.pick(['<', '==', '>=', '!='])} {e('int')})",
        lambda w, s, e: f"({e('str')} in {e('str')})",
        lambda w, s, e: f"(not {e('bool')})",
        lambda w, s, e: f"({e('bool')} {w.pick(['and', 'or'])} {e('bool')})",
        lambda w, s, e: (
            f"isinstance([{e(w.pick(['int', 'str', 'list']))}][0], {w.pick(['int', 'str', '(list, dict)'])})"
        ),
        lambda w, s, e: f"any(x > {e('int')} for x in {e('list')})",
        lambda w, s, e: f"(0 <= {e('int')} < {e('int')})",
        lambda w, s, e: f"({e('str')} == {e('str')})",
        lambda w, s, e: f"({e('str')} in {e('texts')})",
        lambda w, s, e: f"{e('str')}.{w.pick(['startswith', 'endswith'])}({e('str')})",
    ],
    "texts": [
        lambda w, s, e: f"[{e('str')}, {e('str')}]",
        lambda w, s, e: f"{e('str')}.split({w.pick(_MARKS)})",
        lambda w, s, e: f"{e('str')}.splitlines()",
        lambda w, s, e: f"[x.strip() for x in {e('texts')} if x]",
        lambda w, s, e: f"[x for x in {e('texts')} if {e('bool')}]",
        lambda w, s, e: f"sorted({e('texts')})",
        lambda w, s, e: f"list({e('dict')})",
        lambda w, s, e: f"({e('texts')} + {e('texts')})",
        lambda w, s, e: f"{e('texts')}[{e('int')}:]",
        lambda w, s, e: f"list(dict.fromkeys({e('texts')}))",
        lambda w, s, e: f"[a + b for a, b in zip({e('texts')}, {e('texts')})]",
    ],
}

#: Expressions that often fail.
_RISKY: dict[str, list[Make]] = {
    "int": [
        lambda w, s, e: f"int({e('str')})",
        lambda w, s, e: f"{e('list')}[{e('int')}]",
        lambda w, s, e: f"{e('dict')}[{e('str')}]",
        lambda w, s, e: f"({e('int')} {w.pick(['//', '%'])} {e('int')})",
        lambda w, s, e: f"divmod({e('int')}, {e('int')})[0]",
    ],
    "str": [
        lambda w, s, e: f"{e('texts')}[{e('int')}]",
        lambda w, s, e: f"{e('str')}[{e('int')}]",
    ],
}


_TEXTS: list[Make] = [
    lambda w, s, e: w.expr(s, "str", 0),
    lambda w, s, e: f"({e('str')} + {w.pick(_ENDS)})",
    lambda w, s, e: f'f"{w.pick(_STARTS)}{{{w.pick(s.readable("str"))}}}{w.pick(_ENDS)[1:-1]}"',
    lambda w, s, e: f'f"{{{w.pick(s.readable("str"))}}}/{{{w.pick(s.variables["int"])}}}"',
    lambda w, s, e: f"posixpath.join({e('str')}, {e('str')})",
    lambda w, s, e: f"posixpath.{w.pick(['dirname', 'basename', 'normpath'])}({e('str')})",
    lambda w, s, e: f"posixpath.splitext({e('str')})[0]",
    lambda w, s, e: f"{e('str')}.{w.pick(['removesuffix', 'removeprefix'])}({w.pick(_ENDS)})",
    lambda w, s, e: f"{e('str')}.split({w.pick(_MARKS)})[{w.pick(['0', '-1'])}]",
    lambda w, s, e: f're.sub("[^a-z0-9]+", "-", {e("str")})',
    lambda w, s, e: f'("https://" + {e("str")} + "/" + {e("str")})',
    lambda w, s, e: f'("%s/%s" % ({e("str")}, {e("int")}))',
]

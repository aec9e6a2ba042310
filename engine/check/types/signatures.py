"""What built-ins, methods and functions of modules return, as far as it depends only on their name and the class of a value.

A row has a type and the names that return it. What is in no row can return anything.
"""

from __future__ import annotations

from albert_tools.engine.check.types.value_types import Type, plain

_BUILTINS = {
    "bool": "all any bool isinstance",
    "str": "ascii bin chr format hex oct repr str",
    "int": "int len ord",
    "float": "float",
    "bytes": "bytes",
    "range": "range",
    "lazy": "enumerate filter iter map reversed zip",
    "None": "print",
    "list": "list sorted",
    "tuple": "tuple",
    "dict": "dict",
    "set": "set",
    "frozenset": "frozenset",
}

_METHODS = {
    "str": {
        "str": """capitalize casefold center expandtabs join ljust lower lstrip removeprefix removesuffix replace rjust rstrip strip
            swapcase title translate upper zfill""",
        "int": "count find index rfind rindex",
        "bool": """endswith isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle
            isupper startswith""",
        "list[str]": "rsplit split splitlines",
        "tuple": "partition rpartition",
        "bytes": "encode",
    },
    "bytes": {"str": "decode hex"},
    "int": {"int": "bit_count bit_length", "bytes": "to_bytes", "tuple": "as_integer_ratio"},
    "float": {"bool": "is_integer"},
    "list": {"None": "append clear extend insert remove reverse sort", "int": "count index"},
    "tuple": {"int": "count index"},
    "dict": {"None": "clear update", "view": "items keys values"},
    "set": {
        "None": """add clear difference_update discard intersection_update remove symmetric_difference_update update""",
        "bool": "isdisjoint issubset issuperset",
    },
    "re.Match": {"tuple": "groups span", "int": "end start", "dict": "groupdict"},
    "re.Pattern": {
        "list": "findall split",
        "re.Match|None": "fullmatch match search",
        "lazy": "finditer",
    },
}

_FACADES = {
    "str": """html.escape html.unescape json.dumps
        shlex.join shlex.quote textwrap.dedent textwrap.fill textwrap.indent textwrap.shorten urllib.parse.quote
        urllib.parse.quote_plus urllib.parse.unquote urllib.parse.unquote_plus""",
    "list[str]": "shlex.split textwrap.wrap",
    "bool": "math.isclose math.isfinite math.isinf math.isnan posixpath.isabs",
    "float": "math.cos math.exp math.fsum math.log10 math.log2 math.sin math.sqrt math.tan",
    "int": "math.ceil math.comb math.floor math.factorial math.gcd math.isqrt math.lcm",
    "list": "re.findall re.split",
    "re.Match|None": "re.fullmatch re.match re.search",
    "re.Pattern": "re.compile",
    "lazy": "re.finditer",
    "tuple": "posixpath.splitext posixpath.split",
}
#: The functions that return a text for texts, and bytes for bytes.
_SAME = frozenset(f"posixpath.{name}" for name in "basename dirname join normpath".split()) | {"re.escape"}


def _type(text: str) -> Type:
    """The type that a row names. The content of a container is not known."""
    return plain(*text.partition("[")[0].split("|"))


_BY_BUILTIN = {name: _type(row) for row, names in _BUILTINS.items() for name in names.split()}
_BY_FACADE = {name: _type(row) for row, names in _FACADES.items() for name in names.split()}
_BY_METHOD = {
    (kind, name): row for kind, rows in _METHODS.items() for row, names in rows.items() for name in names.split()
}


def of_builtin(name: str) -> Type:
    """What a built-in returns."""
    return _BY_BUILTIN.get(name)


def of_facade(name: str, first: Type) -> Type:
    """What a function of a module returns: ``json.dumps``. `first` is the type of its first argument."""
    if name in _SAME:
        return plain("str") if first and all(a.name == "str" for a in first) else None
    return _BY_FACADE.get(name)


def of_method(kind: str, name: str) -> Type:
    """What a method of a value of a class returns."""
    row = _BY_METHOD.get((kind, name))
    return None if row is None else _type(row)


def splits(kind: str, name: str) -> bool:
    """Whether a method returns a list of texts."""
    return _BY_METHOD.get((kind, name)) == "list[str]"

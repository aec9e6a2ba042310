"""Every name that a source reads is bound in the source or part of the language."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.nearest_name import nearest
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "unknown-name",
        "A name is read that nothing binds.",
        "Python would raise NameError, but only on the path that nobody tried.",
        example=in_tool("return pth"),
        rewrite=in_tool("return path"),
    ),
    FindingCode(
        "outside-name",
        "A built-in of Python is used that is not in the language.",
        "Such names reach files, the interpreter or the program itself.",
        example=in_tool("return open(path)"),
        rewrite=in_tool("return tools.read_file(path=path)"),
    ),
)


#: Names of Python that models often use, and their replacements.
OUTSIDE: dict[str, str] = {
    "open": "read with tools.read_file(path=…) and write with tools.write_file(path=…, content=…)",
    "input": "take it as a parameter of the tool",
    "eval": "parse the text yourself: json.loads, int, float",
    "exec": "a program can't run text; write a helper",
    "compile": "a program can't run text; for patterns use re.compile",
    "getattr": "name the attribute: value.attr; for dicts use d.get(key)",
    "setattr": "use a dict: d[key] = value",
    "hasattr": "use isinstance(value, str), or key in d",
    "delattr": "use a dict: del d[key]",
    "type": "use isinstance(value, str), type(value) == str or type(value).__name__",
    "id": "compare with == or is",
    "hash": "use hashlib.sha256(text.encode()).hexdigest()",
    "globals": "name the value",
    "locals": "name the value",
    "vars": "name the value",
    "dir": "name the value",
    "object": "use None, or a dict",
    "self": "there are no classes; pass its fields as parameters",
    "super": "there are no classes; write helpers",
    "bytearray": "use bytes, or a list of int",
    "memoryview": "use bytes and slices",
    "complex": "keep two floats",
    "callable": "functions are not values here",
    "exit": "return from the function",
    "quit": "return from the function",
    "__import__": "import a module at the top: import json",
    "OSError": "a tool that fails raises ToolError",
    "IOError": "a tool that fails raises ToolError",
    "FileNotFoundError": "catch ToolError and compare error.code == 'not_found'",
    "PermissionError": "catch ToolError and compare error.code == 'permission_denied'",
    "TimeoutError": "catch ToolError and compare error.code == 'timeout'",
    "BaseException": "catch Exception",
    "KeyboardInterrupt": "catch Exception",
    "SystemExit": "catch Exception",
    "MemoryError": "running out of memory ends the program and can't be caught; leave the handler out",
    "RecursionError": "recursing too deeply ends the program and can't be caught; leave the handler out",
}


#: Constants of other languages and JSON.
_CONSTANTS = {"true": "True", "false": "False", "null": "None", "nil": "None", "undefined": "None", "none": "None"}


_TO_TOOL_ERROR = {"OSError", "IOError", "FileNotFoundError", "PermissionError", "TimeoutError"}


#: The most unknown names for which a similar name is searched, because the search is slow.
MAX_SUGGESTIONS = 50


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every name that is read but never bound."""
    for i, node in enumerate(facts.unbound.values()):
        scope = facts.scopes.unbound.get(id(node))
        visible = scope.visible() if scope is not None else frozenset[str]()
        yield _unknown(facts, node, visible if i < MAX_SUGGESTIONS else None)


def _unknown(facts: Facts, node: tree.Name, names: frozenset[str] | None) -> Diagnostic:
    """The finding about an unknown name. `names` are the locals that can be suggested; None to suggest no name."""
    name = node.id
    above = facts.parent(node)
    raised = isinstance(above, tree.Raise) or isinstance(facts.parent(above or node), tree.Raise)
    if name in OUTSIDE:
        return error(
            "outside-name",
            node,
            f"{name!r} is not in the language",
            hint='raise ToolError("…")' if raised and name in _TO_TOOL_ERROR else OUTSIDE[name],
        )
    if name in _CONSTANTS:
        return error(
            "unknown-name",
            node,
            f"nothing is named {name!r}; did you mean {_CONSTANTS[name]!r}?",
            fix=replace(node, _CONSTANTS[name]),
        )
    if name in vocabulary.TYPING or facts.only_in_annotations(name):
        return error(
            "outside-name",
            node,
            f"{name!r} is allowed only in annotations",
            hint="name the value itself, or isinstance(x, str)",
        )
    if name.startswith("__"):
        return error(
            "private-name",
            node,
            f"the name {name!r} begins with two underscores",
            hint="a program can't look at itself or its surroundings; pass what it needs as parameters",
        )
    module = name if name in vocabulary.MODULES else ("urllib.parse" if name == "urllib" else None)
    if module:
        top = Span(facts.import_line, 1, facts.import_line, 1)
        return error(
            "unknown-name",
            node,
            f"the module {module!r} is used but not imported",
            hint=f"add: import {module}",
            fix=Fix(f"import {module}", (Edit(top, f"import {module}\n"),)),
        )
    if name in vocabulary.INSTEAD:
        return error(
            "unknown-module", node, f"the module {name!r} is not in the language", hint=vocabulary.INSTEAD[name]
        )
    if facts.catalog.get(name) is not None:
        return error(
            "unknown-name",
            node,
            f"the tool {name!r} is called as tools.{name}(…)",
            hint=f"write tools.{name}(argument=value)",
            fix=replace(node, f"tools.{name}") if isinstance(facts.parent(node), tree.Call) else None,
        )
    if isinstance(above, tree.Attribute) and names is not None and above.attr in names:
        return error(
            "unknown-name",
            node,
            f"nothing is named {name!r}; parameters are variables",
            hint=f"write {above.attr}",
            fix=replace(above, above.attr) if not hasattr(builtins, name) else None,
        )
    # A local is more likely than a built-in with a similar name. Functions and exceptions are only suggested where they are
    # allowed.
    functions = [*facts.functions, *vocabulary.BUILTINS] if facts.is_called(node) else []
    caught = raised or isinstance(above, tree.ExceptHandler | tree.Tuple)
    exceptions = sorted(vocabulary.EXCEPTIONS | {"ToolError"}) if caught else []
    others = [*facts.constants, *facts.modules, *facts.imported, *functions, *exceptions]
    near = None
    if names is not None:
        near = nearest(name, sorted(names, key=lambda n: (n[0] != name[0], n))) or nearest(name, others, cutoff=0.75)
    other = 'raise ToolError("…")' if raised else "assign it first, or take it as a parameter"
    return error(
        "unknown-name",
        node,
        f"nothing is named {name!r}" + (f"; did you mean {near!r}?" if near else ""),
        hint=None if near else other,
        # Python may know the name. Then the source has a meaning, and the fix would change it.
        fix=replace(node, near) if near and not hasattr(builtins, name) else None,
    )

"""Rewrite ``'{} of {n:>3}'.format(a, n=b)`` as an f-string, where both do exactly the same.

`str.format` evaluates all arguments and then formats them; an f-string formats each before it evaluates the next. So the arguments
must have no effects, unless there is only one. Fields that read attributes or items, and nested fields, have no rewrite."""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import Formatter

from albert_tools.engine.check.facts import Facts, tool_name
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Edit, Fix

#: A literal with simple escapes only. Others can contain or produce braces.
_LITERAL = re.compile(r"""([rR]?)("|')((?:[^\\\n]|\\[nrt\\'"])*)\2""")
_FIELD = re.compile(r"[0-9]*|[A-Za-z_][A-Za-z_0-9]*")
_SPEC = re.compile(r"""[^{}\\'"\n]*""")

_SIMPLE = (tree.Name, tree.Constant)
_HARMLESS = (*_SIMPLE, tree.Strings, tree.Text, tree.BinOp, tree.UnaryOp, tree.Compare, tree.Subscript, tree.Attribute)


def format_call_fix(facts: Facts, call: tree.Call) -> Fix | None:
    """The fix that writes a call ``literal.format(…)`` as an f-string; None if there is none that does the same."""
    match call.func:
        case tree.Attribute(value=tree.Strings(pieces=(tree.Text(raw=raw),))) if literal := _LITERAL.fullmatch(raw):
            pass
        case _:
            return None
    if any(isinstance(arg, tree.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return None
    given = {str(i): arg for i, arg in enumerate(call.args)} | {str(k.arg): k.value for k in call.keywords}
    prefix, quote, body = literal.groups()
    text, used, count, numbering = "", list[str](), 0, set[bool]()
    formatted = False
    try:
        for before, name, spec, conversion in Formatter().parse(body):
            text += before.replace("{", "{{").replace("}", "}}")
            if name is None:
                continue
            if not name or name.isdigit():
                numbering.add(not name)
            key = name or str(count)
            count += not name
            value = _written(facts, given.get(key), quote)
            if value is None or not _FIELD.fullmatch(name) or not _SPEC.fullmatch(spec or ""):
                return None
            if formatted and not isinstance(given[key], _SIMPLE):
                return None  # a wrong format would be found earlier than a fault of this value
            formatted = formatted or bool(spec)
            used.append(key)
            text += f"{{{value}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"
    except ValueError:
        return None
    if set(used) != given.keys() or len(numbering) > 1 or (len(used) > 1 and not _is_pure(facts, given.values())):
        return None
    return Fix("write an f-string", (Edit(call.span, f"f{prefix}{quote}{text}{quote}"),))


def _is_pure(facts: Facts, values: Iterable[tree.Expr]) -> bool:
    """Whether evaluating the values changes nothing, so that they can be evaluated later or twice."""
    for node in (n for value in values for n in tree.walk(value)):
        match node:
            case tree.Call(func=tree.Name(id=name)) if name in vocabulary.BUILTINS:
                builtin = vocabulary.BUILTINS[name]
                if not builtin.pure or builtin.lazy:
                    return False
            case tree.Call(func=tree.Attribute(attr=name) as method):
                if (
                    tool_name(method) is not None
                    or name not in vocabulary.METHODS - vocabulary.MUTATORS - vocabulary.LAZY_METHODS
                ):
                    return False
            case tree.Subscript() if facts.makes_defaultdict:
                return False
            case _ if not isinstance(node, _HARMLESS):
                return False
    return True


def _written(facts: Facts, value: tree.Expr | None, quote: str) -> str | None:
    """The source of a value as it can be written between the braces of an f-string with this quote."""
    if value is None or value.span.line != value.span.end_line:
        return None
    text = facts.lines[value.span.line - 1][value.span.column - 1 : value.span.end_column - 1]
    other = "'" if quote == '"' else '"'
    if quote in text and other not in text:
        text = text.replace(quote, other)
    bare = isinstance(value, tree.Name | tree.Constant | tree.Attribute | tree.Subscript | tree.Call)
    if quote in text or "\\" in text or "#" in text or "{" in text:
        return None
    return text if bare else f"({text})"

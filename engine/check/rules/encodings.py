"""Encodings are literals from a list, because the worker has no files from which it could load other encodings."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, called_name
from albert_tools.engine.check.rule import error
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "encoding",
        "An encoding is unknown, or is not written as a literal.",
        "The worker can't load codecs, so the checker must see which encoding is used.",
        example=in_tool('return len(path.encode("cp037"))'),
        rewrite=in_tool('return len(path.encode("utf-8"))'),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each call with an encoding."""
    for node in facts.every(tree.Call):
        encoding: tree.Expr | tree.Keyword | None = None
        if (
            isinstance(node.func, tree.Attribute)
            and node.func.attr in ("encode", "decode")
            and facts.facade(node.func) is None
        ):
            encoding = _argument(node, 0, "encoding") or next((k for k in node.keywords if k.arg is None), None)
        elif called_name(node) in ("str", "bytes"):
            encoding = _argument(node, 1, "encoding")
        elif facts.facade(node.func) is not None:
            encoding = next((k.value for k in node.keywords if k.arg == "encoding"), None)
        if encoding is None:
            continue
        name = encoding.constant if isinstance(encoding, tree.Strings) else None
        if not isinstance(name, str) or name.lower() not in vocabulary.ENCODINGS:
            yield error(
                "encoding",
                encoding,
                "an encoding must be a literal that the language knows",
                hint='one of "utf-8", "ascii", "latin-1", "cp1252", "utf-16", "utf-32", "utf-8-sig"',
            )


def _argument(call: tree.Call, place: int, name: str) -> tree.Expr | None:
    if len(call.args) > place:
        return call.args[place]
    return next((k.value for k in call.keywords if k.arg == name), None)

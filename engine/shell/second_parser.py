"""The second reading: commands must begin where another parser, by another hand, finds them.

tree-sitter's grammar of bash alone isn't enough to judge by: it is made for colouring text, and takes some substitutions for plain
text (backquotes in here-documents) and a broken word for two. But its mistakes are others than our reader's. Where it can make
nothing of a text, or finds a command where our reader finds none, nobody knows for certain what bash would do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from albert_tools.engine.shell.reading_limits import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Nodes whose inside our reader reads as texts of their own, so that places in them can't be compared.
_APART = frozenset(("heredoc_body",))


@lru_cache(maxsize=1)
def _parser() -> Any:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def agree(source: str, begins: Iterable[int]) -> None:
    """Nothing where both readings find commands at the same places.

    Raises:
        Unreadable: they don't.
    """
    data = source.encode()
    root = _parser().parse(data).root_node
    if root.has_error:
        raise Unreadable("two ways of reading it don't agree that it is a command")
    theirs = set(_begins(root))
    ours = set(begins) if len(data) == len(source) else {len(source[:at].encode()) for at in begins}
    if theirs != ours:
        at = min(theirs ^ ours)
        where = data[at : at + 20].decode("utf-8", "replace")
        raise Unreadable(f"two ways of reading it don't agree where its commands begin, at {where!r}")


def _begins(root: Any) -> Iterator[int]:
    """Where simple commands begin, by their first words."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        kind = node.type
        if kind in _APART or (kind == "command_substitution" and node.children and node.children[0].type == "`"):
            continue
        if kind == "command_name":
            yield node.start_byte
        elif kind in ("declaration_command", "unset_command") or (
            kind == "test_command" and node.children[0].type == "["
        ):
            yield node.start_byte
        waiting += node.children

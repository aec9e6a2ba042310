"""CPython's parser and compiler, one thread at a time and without warnings.

Both precautions protect state that threads share. CPython 3.11 counts the depth of a tree in one place for all threads, so
`ast.parse` in two of them at once can raise ``SystemError: AST constructor recursion depth mismatch`` (python/cpython#106905).
And `warnings.catch_warnings` replaces the filters of the whole process.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()


def parse_python(text: str) -> ast.Module:
    """The tree that CPython reads.

    Raises:
        SyntaxError, RecursionError, MemoryError, ValueError, OverflowError: CPython can't read the text.
    """
    with _alone():
        module = ast.parse(text)
    if sys.version_info[:2] == (3, 12):
        # Only this version ends a format spec with an empty text after a nested field.
        for node in ast.walk(module):
            if isinstance(node, ast.JoinedStr):
                node.values = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
    return module


def parse_expression(text: str) -> ast.Expression:
    """The tree of one expression; raises as `parse_python`."""
    with _alone():
        return ast.parse(text, mode="eval")


def compile_python(text: str) -> None:
    """Compile a text to find out whether CPython can.

    Raises:
        SyntaxError, RecursionError, MemoryError, ValueError, OverflowError: CPython can't compile the text.
    """
    with _alone():
        compile(text, "<tool>", "exec", dont_inherit=True, optimize=0)


@contextmanager
def _alone() -> Iterator[None]:
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

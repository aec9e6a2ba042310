"""CPython's parser and compiler. Only one thread at a time can use them, and warnings are suppressed.

Both precautions protect state that threads share. CPython 3.11 counts the depth of a tree in one variable for all threads. If two
threads use `ast.parse` at the same time, it can raise ``SystemError: AST constructor recursion depth mismatch``
(python/cpython#106905). And `warnings.catch_warnings` replaces the filters of the whole process.
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
    """CPython's tree of a text.

    Raises:
        SyntaxError, RecursionError, MemoryError, ValueError, OverflowError: CPython can't parse the text.
    """
    with _alone():
        module = ast.parse(text)
    if sys.version_info[:2] == (3, 12):
        # Only Python 3.12 adds an empty text after a nested field at the end of a format spec.
        for node in ast.walk(module):
            if isinstance(node, ast.JoinedStr):
                node.values = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
    return module


def parse_expression(text: str) -> ast.Expression:
    """The tree of one expression. Raises as `parse_python`."""
    with _alone():
        return ast.parse(text, mode="eval")


def compile_python(text: str) -> None:
    """Compile a text to check whether CPython accepts it.

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

"""Primitives that run confined."""

from __future__ import annotations

import os
from typing import Any

from albert_tools import primitive
from albert_tools.engine.model.parameter_types import FileContent


@primitive(sandbox=True)
def word_lengths(text: str) -> dict[str, int]:
    """Return the lengths of words."""
    if text == "fork":
        os.fork()
    while text == "endless":
        pass
    return {word: len(word) for word in text.split()}


def size(page: FileContent) -> dict[str, Any]:
    """Return the size of a file, and what happens if the function opens a file itself."""
    try:
        with open("/etc/passwd", "rb"):
            opened = "opened"
    except OSError:
        opened = "OSError"
    return {"size": len(page), "opened": opened, "is_bytes": isinstance(page, bytes)}


size_of = primitive(name="size_of", effects=["read"], paths={"page": "read"}, source="file", sandbox=True)(size)

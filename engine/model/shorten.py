"""A text at a length that can be read."""

from __future__ import annotations


def brief(text: str, most: int) -> str:
    """`text`, cut to `most` characters, the last of which then says that there is more."""
    return text if len(text) <= most else text[: most - 1] + "…"

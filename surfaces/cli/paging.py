"""Pages of a long list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.usage_error import Usage

T = TypeVar("T")


def page_of(items: Sequence[T], page: int) -> tuple[Sequence[T], int]:
    """The items on a page, and the number of pages. Raises Usage if there is no such page."""
    from albert_tools.engine.authority.approvals import PAGE

    pages = max(1, -(-len(items) // PAGE))
    if page > pages:
        raise Usage(f"there is no page {page}", f"the last page is {pages}")
    return items[(page - 1) * PAGE :][:PAGE], pages


def note_page(console: Console, page: int, pages: int, total: int, command: str) -> None:
    """Name the page, if there are several. `command` is the one that lists them."""
    if pages > 1:
        other = page + 1 if page < pages else 1
        console.note(f"page {page} of {pages}, {total:,} in all; `{command} --page {other}` shows another")

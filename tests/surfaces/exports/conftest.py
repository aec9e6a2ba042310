"""A service with a session, for the agents of the frameworks. Their models are scripts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import pytest

from albert_tools import Failure, SyncToolService, primitive

COUNT = '''def count_letters(text: str, config: str = "all") -> dict[str, int]:
    """Count the letters of a text.

    Args:
        text: The text.
        config: Which letters to count.
    """
    print("counting")
    return {letter: text.count(letter) for letter in sorted(set(text)) if config in ("all", letter)}
'''


class Size(TypedDict):
    """A width and a height."""

    width: int
    height: int


class Park:
    """What a call that waits has reached."""

    def __init__(self) -> None:
        self.entered, self.cancelled = threading.Event(), threading.Event()


PARK = Park()


@primitive(effects=["read"], family="test")
def area(size: Size, unit: str | None = None, scale: int = 1) -> str:
    """Compute an area.

    Args:
        size: The size.
        unit: Its unit.
        scale: A factor.
    """
    return f"{size['width'] * size['height'] * scale} {unit}"


@primitive(effects=["read"], family="test", name="crm.find")
def find_customer(name: str) -> str:
    """Find a customer.

    Args:
        name: The customer.
    """
    return f"{name} of the CRM"


@primitive(effects=["write"], family="test")
def break_down() -> None:
    """Fail."""
    raise Failure("not_found", "there is nothing to break down", hint="look elsewhere")


@primitive(effects=["read"], family="test")
async def wait_long() -> None:
    """Wait until the call is cancelled."""
    PARK.cancelled.clear()
    PARK.entered.set()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        PARK.cancelled.set()
        raise


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The workspace."""
    (tmp_path / "project" / ".albert").mkdir(parents=True)
    (tmp_path / "project" / "notes.txt").write_text("a cat")
    return tmp_path / "project"


@pytest.fixture
def service(tmp_path: Path, folder: Path) -> Iterator[SyncToolService]:
    """A service whose rules ask before a file is written. `count_letters` is saved and active."""
    rules = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}}
    more = [area, break_down, find_customer, wait_long]
    with SyncToolService.open(home=tmp_path / "home", workspace=folder, governance=rules, primitives=more) as opened:
        opened.define(COUNT)
        opened.approve("count_letters", by="a test")
        yield opened


@pytest.fixture
def token(service: SyncToolService) -> str:
    """The token of the agent's session."""
    return service.open_session("a test")[1]

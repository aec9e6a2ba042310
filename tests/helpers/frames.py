"""What the product's functions still have in their variables."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import albert_tools


def has_a_frame_with(wanted: Callable[[Any], bool], room: str = "") -> bool:
    """Whether a function of the product, in a room such as ``surfaces/wire``, has such a value in a variable. It can have ended: an
    error can keep it."""
    top = f"{albert_tools.__path__[0]}/{room}"
    frames = [
        each for each in gc.get_objects() if isinstance(each, FrameType) and each.f_code.co_filename.startswith(top)
    ]
    return any(wanted(value) for frame in frames for value in [*frame.f_locals.values()])


@contextmanager
def no_collection() -> Iterator[None]:
    """Python looks for no cycles."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

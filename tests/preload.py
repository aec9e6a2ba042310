"""What the children of tests have imported when they are born; see `tests.children`."""

from __future__ import annotations

import hypothesis  # noqa: F401
import pytest  # noqa: F401
import tinydb  # noqa: F401

import tests.children  # noqa: F401

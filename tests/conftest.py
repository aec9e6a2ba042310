"""Flags of the whole test suite."""

from __future__ import annotations

import os
import signal

import pytest

from tests.helpers import effort  # noqa: F401 (the profile must be known before it is asked for)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden-update", action="store_true", help="rewrite tests/golden; refused where CI is set")


def pytest_configure(config: pytest.Config) -> None:
    # Whoever starts this in the background may have interrupts ignored, and every process that a test starts would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--golden-update") and os.environ.get("CI"):
        raise pytest.UsageError("--golden-update rewrites what the tests expect; it is not for CI")


@pytest.fixture
def golden_update(request: pytest.FixtureRequest) -> bool:
    """Whether the expected listings are to be rewritten."""
    return bool(request.config.getoption("--golden-update"))

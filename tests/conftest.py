"""Options of the whole test suite."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from albert_tools.engine.pipeline import reviewed
from tests.helpers import (
    children,
    effort,  # noqa: F401 (registers the profile before the option is read)
    forked_zygotes,
)

# Every call that a composite makes in these tests lies inside its manifest, approved or not.
reviewed.HELD = frozenset({"active", "pending", "deprecated"})

_THRESHOLDS = gc.get_threshold()
#: The folders of tests that are about the start of zygotes.
_OWN_ZYGOTES = {"sandbox", "judging"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden-update", action="store_true", help="rewrite tests/golden; refused where CI is set")


def pytest_configure(config: pytest.Config) -> None:
    # The tests are many objects that live until the end. Searching them for cycles is wasted time.
    gc.set_threshold(50_000, 10, 100)
    # A shell starts background jobs with interrupts ignored. Every process that a test starts would inherit this setting.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    forked_zygotes.use(forked_zygotes.share())
    children.share()
    if config.getoption("--golden-update") and os.environ.get("CI"):
        raise pytest.UsageError("--golden-update rewrites what the tests expect; it is not for CI")


def pytest_collection_finish() -> None:
    gc.set_threshold(*_THRESHOLDS)
    gc.freeze()


@pytest.fixture
def golden_update(request: pytest.FixtureRequest) -> bool:
    """Whether to rewrite the expected texts."""
    return bool(request.config.getoption("--golden-update"))


@pytest.fixture(autouse=True, scope="module")
def _zygotes(request: pytest.FixtureRequest) -> Iterator[None]:
    """The tests of the sandbox and of the judging processes start zygotes as users do."""
    with forked_zygotes.not_used() if _OWN_ZYGOTES & {*request.path.parts} else nullcontext():
        yield

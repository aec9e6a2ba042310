"""The review page as a person meets it: the real command, and real Chromium without a window.

One server serves the tests of a module. Each test gets a browser of its own: cookies, size, colours.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from tests.surfaces.conftest import Albert, Server

IMAGES = Path(__file__).parents[3] / "docs" / "images"
#: Set this to write the screenshots of the documentation.
SCREENSHOTS = "ALBERT_SCREENSHOTS"
#: Milliseconds that a test waits for something that takes far less.
PATIENCE_MS = 30_000
#: A person is asked about each new text file.
RULES = """
allow: [read_file, find_files, write_file, list_directory]
tools:
  write_file: {requires_approval_in_modes: [NORMAL]}
"""


class Review:
    """A home, a workspace and the server of its review."""

    def __init__(self, folder: Path) -> None:
        self.albert = Albert(folder)
        # The name of the person, for the record.
        self.albert.environ["LOGNAME"] = "ada"
        (self.albert.home / "config").mkdir(parents=True)
        (self.albert.home / "config" / "governance.yaml").write_text(RULES)
        self.link = ""
        self._cookie = ""
        self.process: Server | None = None

    def start(self) -> None:
        """Start the server."""
        self.process = self.albert.serve("review", "--web", "--port", "0", pipes="stdout")
        self.link = self.process.stdout.readline().decode().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{16}/open\?token=[\w-]{43}", self.link), self.link

    def stop(self) -> None:
        """Stop the server."""
        if self.process is not None:
            self.process.terminate()
            assert self.process.wait() == 0

    @property
    def cookie(self) -> str:
        """The value of the cookie. This uses up the link."""
        if not self._cookie:
            self._cookie = httpx.get(self.link, timeout=30, verify=False).cookies["albert_review"]
        return self._cookie

    @property
    def root(self) -> str:
        """The URL of the queue."""
        return self.link.partition("open?")[0]

    @property
    def origin(self) -> str:
        return self.link[: self.link.index("/", len("http://"))]

    def define(self, source: str, *, session: str | None = None) -> str:
        """Define a tool. Returns its version."""
        name = self.albert.write("new.tool", source)
        done = self.albert("define", name, "--json", env={"ALBERT_SESSION": session})
        assert done.code == 0, done.out + done.err
        return str(done.document()["version"])

    def state(self, tool: str, version: str) -> str:
        """The state of a version, by the record."""
        from albert_tools import SyncToolService

        with SyncToolService.open(home=self.albert.home, workspace=self.albert.project) as service:
            return str(service.within(lambda s: s.reviews.state(tool, version).state))


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Review]:
    review = Review(tmp_path_factory.mktemp("review").resolve())
    review.start()
    yield review
    review.stop()


@pytest.fixture
def client(review: Review) -> Iterator[httpx.Client]:
    """A client that behaves like a page of the review."""
    headers = {"origin": review.origin, "cookie": f"albert_review={review.cookie}"}
    with httpx.Client(timeout=30, headers=headers, base_url=review.root, verify=False) as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program, "`python -m tests.helpers.system` installs chromium"
    # While it runs, the thread has an event loop, and other modules' tests could start none.
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work for root. The pages under test are our own.
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(review: Review, browser: Browser) -> Iterator[Callable[..., Page]]:
    """A function that opens the queue in a new browser: ``open_page(width=360, java_script_enabled=False)``.

    After the test, no page has broken its own policy, failed in a script, or run a script that opens a dialog.
    """
    complaints: list[str] = []
    contexts = []

    def open_page(width: int = 1280, height: int = 900, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE_MS)
        folder = review.root.removeprefix(review.origin).rstrip("/")
        cookie = {"name": "albert_review", "value": review.cookie, "domain": "127.0.0.1", "path": folder}
        context.add_cookies([{**cookie, "sameSite": "Strict", "httpOnly": True}])  # type: ignore[typeddict-item]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(review.root)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def screenshot(page: Page | Locator, name: str, height: int = 0) -> None:
    """Write an image for the documentation, if asked to: of the page's beginning, or without a `height` of what is in view."""
    if not os.environ.get(SCREENSHOTS):
        return
    path = IMAGES / f"review-{name}.png"
    if isinstance(page, Locator) or not height:
        page.screenshot(path=path)
        return
    size = page.evaluate("({width: document.body.scrollWidth, height: document.body.offsetHeight})")
    clip: Any = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height)}
    page.screenshot(path=path, full_page=True, clip=clip)

"""The page of the fleet in real Chromium: queues, workers, schedules, what no worker can go on with, and failures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.surfaces.web.conftest import Review, screenshot
from tests.surfaces.web.test_review_pages import AUDIT

REFUSE = '''def refuse(text: str) -> str:
    """Refuse a text.

    Args:
        text: The text.
    """
    raise ToolError(text)
'''
NOTE = '''def note(path: str) -> str:
    """Write a note.

    Args:
        path: The file.
    """
    tools.write_file(path=path, content="x")
    return path
'''


def queued(review: Review, *words: str) -> str:
    done = review.albert("run", "--queue", "default", *words)
    assert done.code == 0, done.err
    return done.out.strip()


def fill(review: Review, schedules: int, worker: str = "") -> None:
    """Add schedules that begin nothing soon, and a worker that dies."""
    from albert_tools import SyncToolService
    from albert_tools.service import ToolService

    facts = {"cron": "0 3 1 1 *", "zone": "Europe/Berlin", "queue": "default", "priority": 100, "tool": "note"}
    more = {"workspace": str(review.albert.project), "version": "", "arguments": {"path": "<i>.txt"}, "by": "ada"}

    def put(service: ToolService) -> None:
        for n in range(schedules):
            service.schedules.add(f"yearly-{n:02}", **facts, **more)
        if worker:
            found = {"queues": ["default"], "workspaces": ["/<i>"], "at_once": 1, "host": worker, "pid": 1}
            service.queue.join(worker, found)

    with SyncToolService.open(home=review.albert.home, workspace=review.albert.project) as opened:
        opened.within(put)


@pytest.mark.slow
def test_the_fleet_is_seen(review: Review, open_page: Callable[..., Page]) -> None:
    page = open_page()
    menu = page.get_by_role("link", name="Fleet")
    expect(menu).to_have_count(0)
    review.define(REFUSE)
    review.define(NOTE)
    run = queued(review, "refuse", "text=no such server")
    page.reload()
    menu.click()
    heading = page.get_by_role("heading", level=1)
    queues, workers, schedules, failures, stuck = (
        page.get_by_role("region", name=name)
        for name in ("Queues", "Workers", "Schedules", "Newest failures", "No worker can go on with 1")
    )
    expect(heading).to_have_text("1 run in queues, 0 workers")
    expect(stuck).to_contain_text("no worker of the queue default runs")
    assert review.albert("mode", "ALERT").code == 0
    expect(page.get_by_text("The mode is ALERT.")).to_be_visible()
    assert review.albert("mode", "NORMAL").code == 0
    worker = review.albert.serve("worker", "--name", "ada", pipes="")
    try:
        # The page renews itself.
        expect(heading).to_have_text("0 runs in queues, 1 worker")
        expect(stuck).to_have_count(0)
        expect(workers).to_contain_text("ada runs")
        expect(failures).to_contain_text("refuse tool_error: no such server")
        queued(review, "note", "path=a.txt")
        expect(page.get_by_role("link", name="1 question waits for you")).to_be_visible()
        expect(queues).to_contain_text("default 1 suspended")
        fill(review, 1)
        expect(schedules).to_contain_text('01-01 03:00 CET: note(path="<i>.txt")')
        screenshot(page, "fleet", 900)
        queued(review, "refuse", "text=<script>alert('failure')</script>\u202e")
        expect(failures).to_contain_text("tool_error: <script>alert('failure')</script>U+202E")
        fill(review, 22, "<i>ben</i>\u202e")
        expect(schedules).to_contain_text("and 2 more")
        expect(workers.get_by_role("listitem").first).to_contain_text("<i>ben</i>U+202E dead")
        worker.kill()
        worker.wait()
        expect(heading).to_have_text("1 run in queues, 0 workers")
    finally:
        worker.kill()
        worker.wait()
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate(AUDIT) == [], scheme
    failures.get_by_role("link").last.click()
    expect(heading).to_have_text(f"Run {run} failed")

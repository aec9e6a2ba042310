"""An orchestrator: an application that lets an agent's tools work on real files, and accounts for what they did.

It publishes a small site from notes, in steps that go wrong in every way there is: one is denied, one takes too long, one fails and
is tried again, one fails and can be done without, one waits for a person, one is a repeat; and a last one must not go on at all.
At the end it holds the counters and the ledger against what it has seen.

Run it with ``python examples/orchestrator.py``. It keeps everything in a temporary folder.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from albert_tools import Budget, CallContext, Failure, ToolResult, ToolService, primitive
from albert_tools.telemetry import Counters

#: What the owner says: a person is asked before anything is published, and nobody reads what is private.
RULES = {
    "tools": {"publish": {"requires_approval_in_modes": ["NORMAL"]}, "read_file": {"forbidden_paths": ["private"]}}
}

LEASE = ["build_site", "read_file", "write_file", "list_directory", "fetch_title", "render_footer", "publish"]

NOTES = {"index.md": "# Hello\n", "about.md": "# About\n", "private/diary.md": "Dear diary\n"}

#: A saved tool, as an agent would write it. What can be done without is caught where it is called; the rest ends the run.
SOURCE = '''
def build_site(pages: list[str]) -> dict[str, Any]:
    """Build pages of a site from notes, and publish them.

    Args:
        pages: Names of notes, without their ending.
    """
    title = tools.fetch_title()
    footer = ""
    try:
        footer = tools.render_footer(seconds=30)
    except ToolError as error:
        print(f"no footer: {error.code}")
    for page in pages:
        text = tools.read_file(path=f"{page}.md")
        tools.write_file(path=f"site/{page}.html", content=f"<title>{title}</title>{text}{footer}")
    return {"pages": len(pages), "released": tools.publish(folder="site")}
'''


class Press:
    """The application's own primitives, and what they have really done."""

    def __init__(self) -> None:
        self.fetched = 0
        self.released: list[str] = []

    def primitives(self) -> list[Any]:
        @primitive(effects=["network"], idempotent=True)
        def fetch_title() -> str:
            """Fetch the site's title; the line is bad, and the first attempt fails."""
            self.fetched += 1
            if self.fetched == 1:
                raise Failure("network_error", "the line is dead", retryable=True)
            return "Notes"

        @primitive(effects=["read"], timeout=0.2)
        async def render_footer(seconds: float) -> str:
            """Render a footer, which takes `seconds`; it is ended after a fifth of one."""
            await asyncio.sleep(seconds)
            return "<footer></footer>"

        @primitive(effects=["network"])
        def publish(folder: str, context: CallContext) -> str:
            """Publish a folder. The key of the call is the same however often a run is gone on with."""
            self.released.append(context.key)
            context.effect("network", folder=folder)
            return f"release {len(self.released)}"

        return [fetch_title, render_footer, publish]


class Abort(Exception):
    """Why the work can't go on."""


class Orchestrator:
    """Makes the calls, remembers how each came out, and decides what a failure means for the work."""

    def __init__(self, service: ToolService, token: str) -> None:
        self.service, self.token = service, token
        self.report: list[str] = []

    async def call(self, tool: str, arguments: dict[str, Any], *, needed: bool = True, **options: Any) -> ToolResult:
        """One call in the session; what a failure means is for whoever calls, but for one kind.

        Raises:
            Abort: it was denied in a way that no other call would escape: by the mode, or since nothing can be judged.
        """
        result = await self.service.invoke(tool, arguments, session=self.token, **options)
        self.tell(tool, result, "" if result.ok or needed else "; done without")
        if result.error is not None and result.error.rationale in ("mode", "unavailable"):
            raise Abort(f"{result.error.message} ({result.error.rule})")
        return result

    def tell(self, tool: str, result: ToolResult, more: str = "") -> None:
        error = result.error
        said = "ok" if error is None else f"{error.code} [{error.rule or error.category}] {error.message}"
        self.report.append(f"{tool:12} {'again: ' if result.repeated else ''}{said}{more}")

    async def answered(self, tool: str, result: ToolResult, choice: Any) -> ToolResult:
        """The run waits for a person: show the question, answer it, and go on with the run where it stood."""
        question = self.service.approvals.get(result.error.details["approval"])
        self.report.append(f"{'a person':12} is asked: {question.message}; says {choice}")
        self.service.approvals.answer(question.id, choice, "the editor")
        result = await self.service.resume(result.run_id)
        self.tell(tool, result, " (resumed)")
        return result


async def work(orchestrator: Orchestrator, press: Press, site: Path) -> None:
    """The whole day."""
    # A denial is an answer: it names its rule, and the work goes on with what is allowed.
    denied = await orchestrator.call("read_file", {"path": "private/diary.md"})
    assert denied.error.denied
    await orchestrator.call("bash", {"command": "id"})  # not within the lease

    # A failure that can be done without.
    await orchestrator.call("list_directory", {"path": "drafts"}, needed=False)

    # The build: a retry and a timeout within it, and then it waits for a person. Nothing is published before the answer,
    # and nothing that was done before is done again after it.
    pages = {"pages": ["index", "about"]}
    built = await orchestrator.call("build_site", pages, dedupe_key="monday", reason="the weekly release")
    assert not press.released
    before = (site / "index.html").stat().st_mtime_ns
    built = await orchestrator.answered("build_site", built, "once")
    assert built.value() == {"pages": 2, "released": "release 1"}
    assert (site / "index.html").stat().st_mtime_ns == before

    # An agent that lost the answer asks again, under the same key, and nothing is published twice.
    again = await orchestrator.call("build_site", pages, dedupe_key="monday")
    assert (again.repeated, again.output, len(press.released)) == (True, built.output, 1)

    # A failure to abort on: somebody has locked everything down. Whatever else is asked for would be denied as well.
    orchestrator.service.context.modes.switch("LOCKDOWN", by="the editor", cause="enough for today")
    await orchestrator.call("write_file", {"path": "site/late.html", "content": ""})
    raise AssertionError("nothing is done after that")


def account(service: ToolService, counters: Counters, press: Press) -> list[str]:
    """Hold what was counted and what was recorded against one another."""
    counted, ledger = counters.snapshot(), service.context.ledger
    entries = list(ledger.entries())
    calls = {e.data["call"]: e for e in entries if e.kind == "call"}
    ends = {e.data["call"]: e for e in entries if e.kind == "result"}
    denied = [e for e in entries if e.kind == "denied"]
    proof = ledger.verify()
    assert proof.ok, proof.problems
    # Every call that was made was decided first, and has ended; what was published was answered for by a person.
    assert all(calls[call].n < end.n for call, end in ends.items())
    published = [e for e in calls.values() if e.data["tool"] == "publish"]
    assert [e.data["verdict"] for e in published] == ["ask"] * len(press.released)
    assert counted["retried"] == press.fetched - 1
    assert counted["open"] == 0
    rules = ", ".join(sorted(str(e.data["rule_id"]) for e in denied))
    return [
        f"counted: {counted['completed']} completed, {counted['failed']} failed, {counted['blocked']} blocked, "
        f"{counted['retried']} retried; by category {dict(sorted(counted['failures_by_category'].items()))}",
        f"recorded: {proof.entries} entries, proved; {len(calls)} decisions, {len(denied)} denials ({rules})",
    ]


async def main() -> None:
    """Set the scene, work, account for it."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder).resolve() / "notes"
        (workspace / "site").mkdir(parents=True)
        for name, text in NOTES.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(text)
        counters, press = Counters(), Press()
        own, home = press.primitives(), Path(folder) / "albert"
        async with ToolService.open(
            home=home, workspace=workspace, governance=RULES, primitives=own, telemetry=counters
        ) as service:
            await service.define(SOURCE)
            # The agent gets a session of its own: these tools and no others, for an hour, and not more than a hundred calls.
            session, token = service.open_session("agent", tools=LEASE, seconds=3600, budget=Budget(calls=100))
            orchestrator = Orchestrator(service, token)
            try:
                await work(orchestrator, press, workspace / "site")
            except Abort as abort:
                orchestrator.report.append(f"aborted: {abort}")
            service.sessions.end(session.id)
            print("\n".join([*orchestrator.report, *account(service, counters, press)]))
        print("on disk:", ", ".join(sorted(path.name for path in (workspace / "site").iterdir())))


if __name__ == "__main__":
    asyncio.run(main())

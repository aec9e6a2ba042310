"""An orchestrator: an application that runs an agent's tools on real files, and handles every kind of failure.

It makes a small website from notes. Its calls show a denial, a timeout, a retry, the failure of an optional step, a question to a
person, a repeated call, and finally a denial after which the work must end. At the end it compares the counters and the ledger
with the results that it received.

Run it with ``python examples/orchestrator.py``. All its files are in a temporary folder.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from albert_tools import Budget, CallContext, Failure, ToolResult, ToolService, primitive
from albert_tools.store.record.verify import verify
from albert_tools.telemetry import Counters

#: The owner's rules: publishing needs a person's approval, and private notes can't be read.
RULES = {
    "tools": {"publish": {"requires_approval_in_modes": ["NORMAL"]}, "read_file": {"forbidden_paths": ["private"]}}
}

LEASE = ["build_site", "read_file", "write_file", "list_directory", "fetch_title", "render_footer", "publish"]

NOTES = {"index.md": "# Hello\n", "about.md": "# About\n", "private/diary.md": "Dear diary\n"}

#: A saved tool, as an agent would write it. It catches the failure of the optional step. Any other failure ends the run.
SOURCE = '''
def build_site(pages: list[str]) -> dict[str, Any]:
    """Build pages of a site from notes and publish them.

    Args:
        pages: Names of notes, without .md.
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
    """The application's own primitives, and a record of what they did."""

    def __init__(self) -> None:
        self.fetched = 0
        self.released: list[str] = []

    def primitives(self) -> list[Any]:
        @primitive(effects=["network"], idempotent=True)
        def fetch_title() -> str:
            """Fetch the site's title. The first attempt fails."""
            self.fetched += 1
            if self.fetched == 1:
                raise Failure("network_error", "the connection broke", retryable=True)
            return "Notes"

        @primitive(effects=["read"], timeout=0.2)
        async def render_footer(seconds: float) -> str:
            """Render a footer, which takes `seconds`; the timeout is 0.2 s."""
            await asyncio.sleep(seconds)
            return "<footer></footer>"

        @primitive(effects=["network"])
        def publish(folder: str, context: CallContext) -> str:
            """Publish a folder. `context.key` is the same whenever the run is resumed."""
            self.released.append(context.key)
            context.effect("network", folder=folder)
            return f"release {len(self.released)}"

        return [fetch_title, render_footer, publish]


class Abort(Exception):
    """The work cannot continue."""


class Orchestrator:
    """Makes calls, reports each result, and decides whether the work continues."""

    def __init__(self, service: ToolService, token: str) -> None:
        self.service, self.token = service, token
        self.report: list[str] = []

    async def call(self, tool: str, arguments: dict[str, Any], *, needed: bool = True, **options: Any) -> ToolResult:
        """Make one call in the session. The caller handles its failure.

        Raises:
            Abort: the mode denied the call, or the rules are unusable, so every other call would be denied too.
        """
        result = await self.service.invoke(tool, arguments, session=self.token, **options)
        self.tell(tool, result, "" if result.ok or needed else "; optional")
        if result.error is not None and result.error.rationale in ("mode", "unavailable"):
            raise Abort(f"{result.error.message} ({result.error.rule})")
        return result

    def tell(self, tool: str, result: ToolResult, more: str = "") -> None:
        error = result.error
        text = "ok" if error is None else f"{error.code} [{error.rule or error.category}] {error.message}"
        self.report.append(f"{tool:12} {'again: ' if result.repeated else ''}{text}{more}")

    async def answered(self, tool: str, result: ToolResult, choice: Any) -> ToolResult:
        """Show the question that a run waits for, answer it, and resume the run."""
        question = self.service.approvals.get(result.error.details["approval"])
        self.report.append(f"{'a person':12} is asked: {question.message}; says {choice}")
        self.service.approvals.answer(question.id, choice, "the editor")
        result = await self.service.resume(result.run_id)
        self.tell(tool, result, " (resumed)")
        return result


async def work(orchestrator: Orchestrator, press: Press, site: Path) -> None:
    """Do all steps."""
    # Denials name their rule. The work continues with the calls that are allowed.
    denied = await orchestrator.call("read_file", {"path": "private/diary.md"})
    assert denied.error.denied
    await orchestrator.call("bash", {"command": "id"})  # not in the lease

    # The failure of an optional step.
    await orchestrator.call("list_directory", {"path": "drafts"}, needed=False)

    # The build has a retry and a timeout, and then waits for a person. Nothing is published before the answer, and no
    # earlier step runs again after the answer.
    pages = {"pages": ["index", "about"]}
    built = await orchestrator.call("build_site", pages, dedupe_key="monday", reason="the weekly release")
    assert not press.released
    before = (site / "index.html").stat().st_mtime_ns
    built = await orchestrator.answered("build_site", built, "once")
    assert built.value() == {"pages": 2, "released": "release 1"}
    assert (site / "index.html").stat().st_mtime_ns == before

    # If an agent did not receive the result, it repeats the call with the same dedupe key. Nothing is published twice.
    again = await orchestrator.call("build_site", pages, dedupe_key="monday")
    assert (again.repeated, again.output, len(press.released)) == (True, built.output, 1)

    # The mode LOCKDOWN denies every call, so the work must end.
    orchestrator.service.modes.switch("LOCKDOWN", by="the editor", cause="enough for today")
    await orchestrator.call("write_file", {"path": "site/late.html", "content": ""})
    raise AssertionError("LOCKDOWN must stop the work")


def account(service: ToolService, counters: Counters, press: Press) -> list[str]:
    """Compare the counters with the ledger. Returns a summary of both."""
    counted, ledger = counters.snapshot(), service.ledger
    entries = list(ledger.entries())
    calls = {e.data["call"]: e for e in entries if e.kind == "call"}
    results = {e.data["call"]: e for e in entries if e.kind == "result"}
    denied = [e for e in entries if e.kind == "denied"]
    proof = verify(ledger.place)
    assert proof.ok, proof.problems
    # Every change was decided before it was made, and a person approved every publication.
    assert all(calls[call].n < result.n for call, result in results.items())
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
    """Prepare the notes, do the work, and check the records."""
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
            # The agent gets a session: only these tools, for an hour, at most a hundred calls.
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

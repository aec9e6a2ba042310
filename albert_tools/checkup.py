"""A check of the installation: where its files are, and whether the limits and the sandbox work on this machine.

Findings are yielded one by one, because testing the sandbox takes a second. `albert doctor` prints them; the tool `self_check`
returns them.
"""

from __future__ import annotations

import asyncio
import os
import platform
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from albert_tools.builtins.catalog import PLACES
from albert_tools.engine.agent.agent_tools import judged_actions
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.threads import running_on
from albert_tools.engine.pipeline.notify import problem_of
from albert_tools.engine.policy.lint import lint, lint_settings
from albert_tools.engine.policy.partly_forbidden import partly_forbidden
from albert_tools.engine.policy.settings import Governance
from albert_tools.engine.sandbox.command.view import imported_from
from albert_tools.store.contents.stored_contents import ref_of
from albert_tools.store.private_folder import check_private

if TYPE_CHECKING:
    from albert_tools.engine.model.home_file import HomeFile
    from albert_tools.engine.service import ToolService
    from albert_tools.store.home import Home

#: Runs that are counted.
MAX_RUNS = 1000
#: Folders of the state that other users must not be able to read.
_PRIVATE = (
    ("the state", ""),
    ("the record", "record"),
    ("the contents", "contents"),
    ("the artifacts", "artifacts"),
    ("the turns", "turns"),
)

#: Folders of the record of earlier versions.
_OLD_RECORD = ("log", "runs")
#: Damaged files that are listed.
MAX_DAMAGED = 20

_REPAIR = "define the tool again, or move the file away"


class Finding(NamedTuple):
    """A fact or, with `seconds`, a test with a hostile program. A `note` reports no problem, but a possible improvement."""

    name: str
    value: str
    fine: bool = True
    seconds: float | None = None
    note: bool = False


def document(findings: list[Finding]) -> dict[str, Any]:
    """The findings as JSON: ``{ok, facts, problems, trials}``. `facts` has the first finding of each name."""
    facts: dict[str, str] = {}
    for finding in findings:
        if finding.seconds is None:
            facts.setdefault(finding.name, finding.value)
    problems = [f"{f.name}: {f.value}" for f in findings if not f.fine]
    trials = [
        {"name": f.name, "ok": f.fine, "message": f.value, "seconds": round(f.seconds, 3)}
        for f in findings
        if f.seconds is not None
    ]
    return {"ok": not problems, "facts": facts, "problems": problems, "trials": trials}


async def checkup(service: ToolService, home: Home, trials: bool = True) -> AsyncGenerator[Finding, None]:
    """Yields the findings in order. If `trials` is false, no program is run."""
    for finding in _about(service, home):
        yield finding
    governance = service.governance
    if isinstance(governance, Failure):
        yield Finding("allowed", "nothing, until the rules are valid", False)
    else:
        for finding in await asyncio.to_thread(_rules, service, governance):
            yield finding
    for finding in await asyncio.to_thread(_waiting, service, home):
        yield finding
    for finding in await _saved(service, home):
        yield finding
    async for finding in _sandbox(trials):
        yield finding


def _about(service: ToolService, home: Home) -> Iterator[Finding]:
    from albert_tools import __version__

    yield Finding("version", f"albert-tools {__version__}, Python {platform.python_version()}, {platform.system()}")
    local = home.local
    places = [("cache", local.cache), ("state", local.state)]
    if local.url:
        yield Finding("database", f"{home.record.database.name}: the folders have only what is local to this machine")
    else:
        places.insert(0, ("tools", local.tools))
    for name, folder in places:
        why = unwritable(folder)
        yield Finding(name, str(folder) if why is None else f"{folder} can't be written: {why}", why is None)
    yield _file_of_rules(service, home)
    workspace = service.workspace_or_failure
    if isinstance(workspace, Failure):
        yield Finding("workspace", f"none, so every run is denied: {workspace.message} ({workspace.hint})", False)
    else:
        yield Finding("workspace", str(workspace.root))
        for place in imported_from(str(workspace.root)):
            where = f"this Python imports from {place or '.'}, in the workspace, where tools can write"
            yield Finding("imports", f"{where}: install Albert Tools in a Python of its own", False)


def _file_of_rules(service: ToolService, home: Home) -> Finding:
    """The location of the owner's rules, and whether they are valid."""
    file, governance = home.rules, service.governance
    if isinstance(governance, Failure):
        return Finding("rules", f"{file}: {governance.message} ({governance.hint})", False)
    exists = os.path.lexists(file) if isinstance(file, Path) else file.stamp() is not None
    if not isinstance(file, Path) and (problem := _changed_rules(home, file)) is not None:
        return Finding("rules", f"{file}: {problem}", False)
    return Finding("rules", str(file) if exists else f"{file}: no such file yet, so the shipped rules apply")


def _changed_rules(home: Home, file: HomeFile) -> str | None:
    """What is wrong with the rules in a database: others than those that were last imported, as far as the ledger goes back."""
    content = file.read()
    imported = [entry.data for entry in home.record.entries(["rules_imported"])]
    if content is None or not imported or imported[-1].get("content") == ref_of(content):
        return None
    return "they were not written by `albert policy`; look at them with `albert policy show`, and import the right ones"


def _rules(service: ToolService, governance: Governance) -> list[Finding]:
    allowed = [p.name for p in service.registry.primitives() if p.name in governance.allowed]
    none = "no gated primitive (read_system_logs, and those of an application, are off until they are named)"
    findings = [Finding("allowed", ", ".join(allowed) or none)]
    if service.registry.imported:
        findings.append(Finding("application", f"{', '.join(service.registry.imported)}, as primitives_from says"))
    findings += [*_notify(service, governance), *_threads(service)]
    if service.problem_of_rules:
        findings.append(Finding("edited rules", f"{service.problem_of_rules}; the previous rules stay in force", False))
    return findings + [Finding("rule", f"{f['rule']}: {f['message']}", False) for f in mistakes(service, governance)]


def _notify(service: ToolService, governance: Governance) -> list[Finding]:
    """Whether the last run of the command of `notify` succeeded."""
    if not governance.notify:
        return []
    try:
        last = deque(service.ledger.entries(["notified"]), 1)
    except Failure as failure:
        return [Finding("notify", failure.message, False)]
    if not last:
        return [Finding("notify", f"{governance.notify[0]} has not been run yet")]
    [entry] = last
    when, problem = f"{entry.at[:16].replace('T', ' ')} UTC", entry.data["problem"]
    program = entry.data["program"]
    ended = f"failed: {problem}; you may have missed a question or a version" if problem else "succeeded"
    return [Finding("notify", f"the last run of {program}, {when}, {ended}", not problem)]


def _threads(service: ToolService) -> list[Finding]:
    """Tools of an application whose threads can't be stopped, and the threads of this process that run on."""
    own = [p for p in service.registry.primitives() if p.name not in PLACES]
    names = ", ".join(p.name for p in own if not p.is_async and not p.definition.sandbox)
    why = "a call that exceeds its time ends, and its thread runs on; an async or confined function (`sandbox=True`) is stopped"
    findings = [Finding("threads", f"{names}: {why}", note=True)] if names else []
    still = ", ".join(f"{name} ({count:,})" for name, count in running_on().items())
    return findings + (
        [Finding("threads", f"still running after the end of their calls: {still}", False)] if still else []
    )


def _waiting(service: ToolService, home: Home) -> list[Finding]:
    """Whether other users can read or change the state, and which approvals and runs wait for a person."""
    for what, name in _PRIVATE:
        folder = home.local.state / name
        try:
            check_private(folder, what)
        except Failure as failure:
            return [Finding("private", f"{failure.message} ({failure.hint})", False)]
    findings = [Finding("private", "only the owner can read the state"), _record(home)]
    old = [str(path) for name in _OLD_RECORD if os.path.lexists(path := home.local.state / name)]
    if old:
        message = f"{' and '.join(old)}: an earlier version wrote this, and nothing reads it; delete it or keep it"
        findings.append(Finding("old record", message, note=True))
    try:
        count = len(service.approvals.all(("open",)))
        findings.append(
            Finding(
                "approvals",
                f"{count:,} wait{'s' if count == 1 else ''} for an answer: `albert approvals`"
                if count
                else "none wait for an answer",
            )
        )
        runs = service.runs.list(MAX_RUNS)
    except Failure as failure:
        return [*findings, Finding("approvals", failure.message, False)]
    suspended, cut_short = (sum(run.state == state for run in runs) for state in ("suspended", "interrupted"))
    more = f", of the last {MAX_RUNS:,}" if len(runs) == MAX_RUNS else ""
    hint = ": `albert runs`" if suspended + cut_short else ""
    findings.append(Finding("runs", f"{suspended:,} suspended, {cut_short:,} interrupted{more}{hint}"))
    return findings + [Finding("damaged", f"run {run.id}: {run.problem}", False) for run in runs if run.problem]


def _record(home: Home) -> Finding:
    """The place of the record, and whether it can be written."""
    database = home.record.database
    try:
        if not database.exists:
            return Finding("record", f"{database.name}: no entry yet")
        with database.transaction():
            entries = database.tail.n
        size = database.size()
    except Failure as failure:
        return Finding("record", f"{failure.message} ({failure.hint})", False)
    return Finding("record", f"{database.name}: {entries:,} entries, {size:,} bytes; `albert ledger verify` checks it")


async def _saved(service: ToolService, home: Home) -> list[Finding]:
    findings: list[Finding] = []
    try:
        listed = [t for t in await service.list() if t.kind == "composite"]
        outdated = [t.name for t in listed if t.outdated]
        findings.append(Finding("saved", f"{len(listed):,} tool{'' if len(listed) == 1 else 's'}"))
        waiting = len(await asyncio.to_thread(service.reviews.queue))
        offered = "; until you approve them, agents are not offered them by their names"
        findings.append(Finding("reviews", f"{waiting:,} wait: `albert review`{offered}" if waiting else "none wait"))
        if outdated:
            again = f"{', '.join(outdated)}: `albert upgrade` checks {'it' if len(outdated) == 1 else 'them'} again"
            findings.append(Finding("outdated", again, note=True))
        hidden = [f"{t.name}: {t.problem}" for t in listed if t.problem and t.version]
        damaged = await asyncio.to_thread(home.tools.verify)
        for why in [*hidden, *(f"{path}: {reason}; {_REPAIR}" for path, reason in damaged[:MAX_DAMAGED])]:
            findings.append(Finding("damaged", why, False))
        if len(damaged) > MAX_DAMAGED:
            findings.append(Finding("damaged", f"… and {len(damaged) - MAX_DAMAGED:,} more", False))
    except Failure as failure:
        findings.append(Finding("saved", failure.message, False))
    return findings


async def _sandbox(tried: bool) -> AsyncGenerator[Finding, None]:
    from albert_tools.engine.sandbox.command import confinement
    from albert_tools.engine.sandbox.worker.confined_fence import DESCRIPTIONS as CONFINED
    from albert_tools.engine.sandbox.worker.confined_function import confinement as function_confinement
    from albert_tools.engine.sandbox.worker.fence import DESCRIPTIONS as FENCES
    from albert_tools.engine.sandbox.worker.pool import Sandbox
    from albert_tools.engine.sandbox.worker.self_test import trials

    sandbox = Sandbox()
    try:
        await sandbox.start()
        yield Finding("confinement", FENCES[sandbox.confinement], sandbox.confinement == "seccomp")
        within = await asyncio.to_thread(function_confinement)
        weak = "neither seccomp nor Landlock, so primitives that run confined are refused"
        yield Finding("confined", CONFINED.get(within, weak), within.startswith("seccomp"))
        commands = await asyncio.to_thread(confinement.found)
        if commands.kinds:
            best = commands.kinds[0]
            better = "; `apt-get install bubblewrap` gives the stronger one" if best == "landlock" else ""
            yield Finding("commands", f"{confinement.DESCRIPTIONS[best]}{better}", note=best != "bwrap")
        else:
            why = "; ".join(f"{kind}: {reason}" for kind, reason in commands.missing.items())
            mend = " (`apt-get install bubblewrap`)" if "bwrap" in commands.missing else ""
            yield Finding("commands", f"no command runs: {why}{mend}", False)
        if tried:
            async for trial in trials(sandbox):
                yield Finding(trial.name, trial.message, trial.ok, trial.seconds)
    except Failure as failure:
        yield Finding("confinement", failure.message, False)
    finally:
        await sandbox.close()


def unwritable(folder: Path) -> str | None:
    """Why nothing can be written in a folder or in the place where it would be made; None if it can. Leaves no trace."""
    there = next(p for p in (folder, *folder.parents) if os.path.lexists(p))
    if not there.is_dir():
        return f"{there} is not a folder; move it away, or set ALBERT_HOME to another place"
    try:
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as error:
        where = "" if there == folder else f" in {there}"
        return f"{error.strerror or error}{where}; check its permissions, or set ALBERT_HOME to another place"


def mistakes(service: ToolService, rules: Governance) -> list[dict[str, str]]:
    """Mistakes in rules that are readable but have no effect, such as a rule with a misspelled name."""
    primitives, home = service.registry.primitives(), os.path.expanduser("~")
    found_workspace = service.workspace_or_failure
    workspace = "" if isinstance(found_workspace, Failure) else str(found_workspace.root)
    judged = [p.definition for p in (*primitives, *judged_actions().values())]
    mistakes = lint(rules, judged, [s.name for s in service.store.list()], workspace, home)
    missing = (problem.partition(": ") for problem in service.registry.problems)
    mistakes += lint_settings(rules, primitives, PLACES)
    mistakes += [
        {"rule": rule, "message": message}
        for rule, message in partly_forbidden(rules.layers(), primitives, workspace or "/workspace", home)
    ]
    if rules.notify and (problem := problem_of(rules.notify[0], workspace)) is not None:
        mistakes.append({"rule": "notify", "message": problem})
    return [*({"rule": rule, "message": message} for rule, _, message in missing), *mistakes]

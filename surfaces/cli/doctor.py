"""``albert doctor``: where everything is, and proof that the limits and the fence hold on this machine."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tools.engine.govern.policy.lint import lint
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.failure import Failure
from albert_tools.store.private import check_private
from albert_tools.surfaces.cli.console import Console, safe

if TYPE_CHECKING:
    from albert_tools.service import ToolService

#: Runs that are looked at.
MAX_RUNS = 1000
#: Folders of the state that are the owner's alone.
_PRIVATE = (
    ("the state", ""),
    ("the log", "log"),
    ("the runs", "runs"),
    ("the contents", "contents"),
    ("the turns", "turns"),
)

#: Damaged files that are named.
MAX_DAMAGED = 20

_MEND = "define the tool again, or move the file away"


def doctor(options: argparse.Namespace, console: Console) -> int:
    """0 when everything holds."""
    return asyncio.run(_doctor(options, console))


async def _doctor(options: argparse.Namespace, console: Console) -> int:
    from albert_tools import __version__
    from albert_tools.engine.sandbox.fence import SENTENCES
    from albert_tools.engine.sandbox.pool import Sandbox
    from albert_tools.engine.sandbox.trials import trials
    from albert_tools.service import ToolService
    from albert_tools.store.tools import TinyToolStore

    facts: dict[str, Any] = {}
    problems: list[str] = []
    # On a narrow terminal what goes on stands on the left, where there is room for it.
    roomy = (console.out_width or 80) >= 60

    def fact(name: str, value: str, fine: bool = True) -> None:
        if name not in facts:
            facts[name] = value
        if not fine:
            problems.append(f"{name}: {value}")
        mark = console.paint("✓", "green") if fine else console.paint("✗", "red")
        console.say(f"{mark} {name.ljust(14)} {safe(value)}", 17 if roomy else 4)

    async with ToolService.open(home=options.home, workspace=options.workspace) as service:
        fact("version", f"albert-tools {__version__}, Python {platform.python_version()}, {platform.system()}")
        homes = service.homes
        for name, folder in (("tools", homes.tools), ("cache", homes.cache), ("state", homes.state)):
            why = unwritable(folder)
            fact(name, str(folder) if why is None else f"{folder} can't be written: {why}", why is None)
        fact("rules", str(homes.config / "governance.yaml"))
        workspace = service.surroundings.workspace
        if isinstance(workspace, Failure):
            fact("workspace", f"none, so every run is denied: {workspace.message} ({workspace.hint})", False)
        else:
            fact("workspace", str(workspace.root))
        governance = service.surroundings.governance
        if isinstance(governance, Failure):
            fact("allowed", f"nothing: {governance.message}", False)
        else:
            allowed = [p.name for p in service.registry.primitives() if p.name in governance.allowed]
            fact(
                "allowed",
                ", ".join(allowed) or "no gated primitive (those of an application are off until they are named)",
            )
            problem = getattr(service.surroundings.rules, "problem", None)
            if problem:
                fact("edited rules", f"{problem}; the rules of before stay in force", False)
            for finding in await asyncio.to_thread(findings, service, governance):
                fact("rule", f"{finding['rule']}: {finding['message']}", False)
        await asyncio.to_thread(_waiting, service, fact)
        try:
            listed = [t for t in await service.list() if t.kind == "composite"]
            outdated = [t.name for t in listed if t.outdated]
            fact("saved", f"{len(listed):,} tool{'' if len(listed) == 1 else 's'}")
            if outdated:
                fact("outdated", f"{', '.join(outdated)}: define {'it' if len(outdated) == 1 else 'them'} again", False)
            hidden = [f"{t.name}: {t.problem}" for t in listed if t.problem and t.version]
            damaged = await asyncio.to_thread(TinyToolStore(homes.tools).verify)
            for why in [*hidden, *(f"{path}: {reason}; {_MEND}" for path, reason in damaged[:MAX_DAMAGED])]:
                fact("damaged", why, False)
            if len(damaged) > MAX_DAMAGED:
                fact("damaged", f"… and {len(damaged) - MAX_DAMAGED:,} more", False)
        except Failure as failure:
            fact("saved", failure.message, False)

    sandbox = Sandbox()
    tried = []
    try:
        await sandbox.start()
        fact("confinement", SENTENCES[sandbox.confinement], sandbox.confinement == "seccomp")
        console.say()
        console.say(console.paint("hostile programs, each of which must be stopped:", "bold"))
        async for trial in trials(sandbox):
            if not trial.ok:
                problems.append(f"{trial.name}: {trial.message}")
            tried.append(
                {"name": trial.name, "ok": trial.ok, "message": trial.message, "seconds": round(trial.seconds, 3)}
            )
            mark = console.paint("✓", "green") if trial.ok else console.paint("✗", "red")
            seconds = console.paint(f"{trial.seconds:5.2f} s", "dim")
            console.say(f"{mark} {trial.name.ljust(26)} {seconds}  {safe(trial.message)}", 38 if roomy else 4)
    except Failure as failure:
        fact("confinement", failure.message, False)
    finally:
        await sandbox.close()
    if console.json:
        console.document({"ok": not problems, "facts": facts, "problems": problems, "trials": tried})
    else:
        console.say()
        console.say(
            console.paint("something is wrong, see ✗", "red") if problems else console.paint("all is well", "green")
        )
    return 1 if problems else 0


def _waiting(service: ToolService, fact: Callable[..., None]) -> None:
    """What waits for a person, and whether others could look into what is kept, or make it up."""
    for what, name in _PRIVATE:
        folder = service.homes.state / name
        try:
            check_private(folder, what)
        except Failure as failure:
            fact("private", f"{failure.message} ({failure.hint})", False)
            return
    fact("private", "what is kept is for nobody else's eyes")
    try:
        count = len(service.approvals.all(("open",)))
        fact(
            "approvals",
            f"{count:,} wait{'s' if count == 1 else ''} for an answer: `albert approvals`"
            if count
            else "none wait for an answer",
        )
        runs = service.runs.list(MAX_RUNS)
    except Failure as failure:
        fact("approvals", failure.message, False)
        return
    suspended, cut_short = (sum(run.state == state for run in runs) for state in ("suspended", "interrupted"))
    more = f", of the last {MAX_RUNS:,}" if len(runs) == MAX_RUNS else ""
    fact(
        "runs",
        f"{suspended:,} suspended, {cut_short:,} interrupted{more}"
        + (": `albert runs`" if suspended + cut_short else ""),
    )
    for run in runs:
        if run.problem:
            fact("damaged", f"run {run.id}: {run.problem}", False)


def unwritable(folder: Path) -> str | None:
    """Why nothing can be written in a folder, or where it would be made; None when something can. Leaves no trace."""
    there = next(p for p in (folder, *folder.parents) if os.path.lexists(p))
    if not there.is_dir():
        return f"{there} is not a folder; move it away, or set ALBERT_HOME to another place"
    try:
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as error:
        where = "" if there == folder else f" in {there}"
        return f"{error.strerror or error}{where}; check its permissions, or set ALBERT_HOME to another place"


def findings(service: ToolService, rules: Governance) -> list[dict[str, str]]:
    """What is wrong with rules that can be read: who misspells what is to be denied has denied nothing."""
    primitives = [p.definition for p in service.registry.primitives()]
    held = service.surroundings.workspace
    workspace = "" if isinstance(held, Failure) else str(held.root)
    return lint(rules, primitives, [s.name for s in service.store.list()], workspace, os.path.expanduser("~"))

"""``albert doctor``: where everything is, and proof that the limits and the fence hold on this machine."""

from __future__ import annotations

import argparse
import asyncio
import platform
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.cli.console import Console, safe


def doctor(options: argparse.Namespace, console: Console) -> int:
    """0 when everything holds."""
    return asyncio.run(_doctor(options, console))


async def _doctor(options: argparse.Namespace, console: Console) -> int:
    from albert_tools import __version__
    from albert_tools.engine.sandbox.fence import SENTENCES
    from albert_tools.engine.sandbox.pool import Sandbox
    from albert_tools.engine.sandbox.trials import trials
    from albert_tools.service import ToolService

    facts: dict[str, Any] = {}
    good = True

    def fact(name: str, value: str, fine: bool = True) -> None:
        nonlocal good
        good = good and fine
        facts[name] = value
        mark = console.paint("✓", "green") if fine else console.paint("✗", "red")
        console.say(f"{mark} {name.ljust(14)} {safe(value)}")

    async with ToolService.open(home=options.home, workspace=options.workspace) as service:
        fact("version", f"albert-tools {__version__}, Python {platform.python_version()}, {platform.system()}")
        fact("tools", str(service.homes.tools))
        fact("rules", str(service.homes.config / "governance.yaml"))
        fact("cache", str(service.homes.cache))
        fact("state", str(service.homes.state))
        workspace = service.surroundings.workspace
        if isinstance(workspace, Failure):
            fact("workspace", f"none, so every run is denied: {workspace.message} ({workspace.hint})", False)
        else:
            fact("workspace", str(workspace.root))
        governance = service.surroundings.governance
        if isinstance(governance, Failure):
            fact("allowed", f"nothing: {governance.message}", False)
        else:
            fact("allowed", ", ".join(sorted(governance.allow)) or "no gated primitive (bash and http_request are off)")
        try:
            listed = [t for t in await service.list() if t.kind == "composite"]
            damaged = [t.name for t in listed if t.problem]
            outdated = [t.name for t in listed if t.outdated]
            fact("saved", f"{len(listed)} tools" + (f", outdated: {', '.join(outdated)}" if outdated else ""))
            if damaged:
                fact("damaged", ", ".join(damaged), False)
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
            good = good and trial.ok
            tried.append(
                {"name": trial.name, "ok": trial.ok, "message": trial.message, "seconds": round(trial.seconds, 3)}
            )
            mark = console.paint("✓", "green") if trial.ok else console.paint("✗", "red")
            seconds = console.paint(f"{trial.seconds:5.2f} s", "dim")
            console.say(f"{mark} {trial.name.ljust(26)} {seconds}  {safe(trial.message)}")
    except Failure as failure:
        fact("confinement", failure.message, False)
    finally:
        await sandbox.close()
    if console.json:
        console.document({"ok": good, "facts": facts, "trials": tried})
    else:
        console.say()
        console.say(
            console.paint("all is well", "green") if good else console.paint("something is wrong, see ✗", "red")
        )
    return 0 if good else 1

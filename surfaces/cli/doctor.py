"""``albert doctor``: checks the installation, and tests the limits and the sandbox on this machine."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import aclosing

from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.person import demand_person


def doctor(options: argparse.Namespace, console: Console) -> int:
    """Print each finding as soon as it is known. Returns 0 if nothing is wrong."""
    demand_person("the installation is checked")
    return asyncio.run(_doctor(options, console))


async def _doctor(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.checkup import Finding, checkup, document

    findings: list[Finding] = []
    # On a narrow terminal, continuation lines start near the left edge.
    roomy = (console.out_width or 80) >= 60
    tried = False
    async with (
        open_service(options) as service,
        aclosing(checkup(service, service.home, trials=not options.quick)) as checks,
    ):
        async for finding in checks:
            findings.append(finding)
            mark = console.paint("✓", "green") if finding.fine else console.paint("✗", "red")
            mark = console.paint("!", "yellow") if finding.note else mark
            if finding.seconds is None:
                console.say(f"{mark} {finding.name.ljust(14)} {safe(finding.value)}", 17 if roomy else 4)
                continue
            if not tried:
                tried = True
                console.say()
                console.say(console.paint("hostile programs, all of which must be stopped:", "bold"))
            seconds = console.paint(f"{finding.seconds:5.2f} s", "dim")
            console.say(f"{mark} {finding.name.ljust(26)} {seconds}  {safe(finding.value)}", 38 if roomy else 4)
    report = document(findings)
    if console.json:
        console.document(report)
    else:
        console.say()
        console.say(
            console.paint("all is well", "green") if report["ok"] else console.paint("something is wrong, see ✗", "red")
        )
    return 0 if report["ok"] else 1

"""``albert upgrade``: propose new versions of the tools whose callees have changed."""

from __future__ import annotations

import argparse

from albert_tools.surfaces.cli.service_options import in_service
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.hints import DIGITS, command_line
from albert_tools.surfaces.text.person import demand_person


def upgrade(options: argparse.Namespace, console: Console) -> int:
    """Check stored sources again, against the newest callees. Each new version waits for a review."""
    demand_person("tools are upgraded")
    outcomes = in_service(options, lambda service: service.upgrade(options.name, dry_run=options.dry_run))
    failed = [each for each in outcomes if each.problem]
    if console.json:
        upgrades = [each.as_dict() for each in outcomes]
        console.document({"ok": not failed, "dry_run": options.dry_run, "upgrades": upgrades})
        return 1 if failed else 0
    for each in outcomes:
        if each.problem:
            console.say(f"{console.paint('error', 'red')} {safe(each.name)}: {safe(each.problem)}", 2)
            continue
        word = "would be pending" if options.dry_run else "pending"
        what = f"{each.before[:DIGITS]} → {each.after[:DIGITS]}"
        console.say(f"{word} {console.paint(safe(each.name), 'cyan')}  {what}")
        for name, before, after in each.pins:
            console.say(f"  calls {safe(name)}  {before[:DIGITS]} → {after[:DIGITS]}", 4)
    if not outcomes:
        console.note("all saved tools call the newest versions")
    elif options.dry_run:
        console.note("nothing was saved, and no examples were run")
    elif len(failed) < len(outcomes):
        console.note(f"`{command_line(options.home, 'review')}` shows what waits for your review")
    return 1 if failed else 0

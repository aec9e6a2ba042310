"""``albert policy test FILE``: whether the rules decide as a file expects (see `engine.policy.expectations`).

It makes no call and writes nothing, so a program that checks changes of the rules can run it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.engine.policy.decision import strictest
from albert_tools.surfaces.cli.decisions import authority_of, decisions_on, describe
from albert_tools.surfaces.text.console import Console, one_line

if TYPE_CHECKING:
    from albert_tools.engine.authority.authorization import Authority
    from albert_tools.engine.policy.expectations import Expected
    from albert_tools.service import ToolService


async def test(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    """Print the calls about which the rules decide otherwise. Returns 1 if there are any."""
    from albert_tools.engine.policy.expectations import read_expectations

    if options.rules is not None:
        authority = authority_of(service, Path(options.rules))
    else:
        # Without rules every call is denied, also those that a file expects to be denied.
        authority = service.ruling().authority
    tested = [(file, each) for file in options.files for each in read_expectations(Path(file))]
    results = [{"file": file, **await _decided(service, authority, each)} for file, each in tested]
    failed = [result for result in results if not result["ok"]]
    if console.json:
        console.document({"ok": not failed, "failed": len(failed), "results": results})
        return 1 if failed else 0
    for result in failed:
        console.say(one_line(_text(result)), 4)
    count = len(results)
    if failed:
        console.say(f"{len(failed):,} of {count:,} decisions are not as expected")
    else:
        console.say(f"{'the decision is' if count == 1 else f'all {count:,} decisions are'} as expected")
    return 1 if failed else 0


def _text(failed: dict[str, Any]) -> str:
    arguments = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in failed["arguments"].items())
    call = f"{failed['file']}:{failed['line']}: {failed['tool']}({arguments})"
    if failed["verdict"] is None:
        return f"{call} can't be judged: {failed['message']}"
    mismatch = f"{call} in {failed['mode']} is {failed['verdict']}, expected {failed['expected']}:"
    return f"{mismatch} {failed['rule_id']}  {failed['message']}".rstrip()


async def _decided(service: ToolService, authority: Authority, expected: Expected) -> dict[str, Any]:
    """An expected decision, and the decision of the rules. The verdict is None for a call that can't be made."""
    facts = {
        "line": expected.line,
        "tool": expected.tool,
        "arguments": expected.arguments,
        "mode": expected.mode,
        "expected": expected.verdict,
    }
    try:
        for name in (expected.session.tools if expected.session is not None else None) or ():
            if name not in RESERVED:
                await service.describe(name)  # A misspelt name in a lease would deny the call.
        definition = (await describe(service, expected.tool)).definition
        decision = strictest(
            await decisions_on(service, authority, definition, expected.arguments, expected.mode, expected.session)
        )
    except Failure as failure:
        return {**facts, "ok": False, "verdict": None, "rule_id": "", "message": failure.message}
    said = {"verdict": decision.verdict, "rule_id": decision.rule, "message": decision.message}
    return {**facts, "ok": decision.verdict == expected.verdict, **said}

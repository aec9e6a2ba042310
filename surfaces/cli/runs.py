"""``albert runs``: lists the runs of saved tools, and shows, resumes, cancels, replays or deletes them."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import time
from typing import TYPE_CHECKING, Any

from albert_tools.engine.call.journal_reader import OVER
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief, counted
from albert_tools.engine.model.result import may_change
from albert_tools.store.places import without_password
from albert_tools.surfaces.cli.resume import resume, run_of, workspace_of
from albert_tools.surfaces.cli.service_options import home_of, open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.cli.timeline import STATE_COLOURS, Timeline
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.hints import answer_and_resume, command_line, goes_on
from albert_tools.surfaces.text.person import demand_person
from albert_tools.surfaces.text.times import about, lasting, since_1970

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval
    from albert_tools.engine.model.record_types import Swept
    from albert_tools.engine.runs.runs import RunView
    from albert_tools.service import ToolService


def runs(options: argparse.Namespace, console: Console) -> int:
    """List, show, resume, cancel, replay or sweep."""
    work = {
        "list": _list,
        "show": _show,
        "resume": _resume,
        "cancel": _cancel,
        "patch": _patch,
        "replay": _replay,
        "sweep": _sweep,
    }
    return asyncio.run(work[options.action](options, console))


#: Characters of each argument in the list.
MAX_GIVEN = 30


async def _list(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.model.recorded_call import arguments_line
    from albert_tools.engine.model.redaction import redacted

    async with open_service(options) as service:
        runs = await service.list_runs(options.limit, session=token())
        waits = {run.id: _next(service, run, options) for run in runs if run.approval}
    if console.json:
        console.document({"ok": True, "runs": [run.as_dict() for run in runs]})
        return 0
    now = time.time()
    width = max((len(run.tool) for run in runs), default=0)
    for run in runs:
        began = since_1970(run.created)
        ago = f"{about(now - began)} ago" if began is not None else ""
        state = console.paint(run.state.ljust(11), STATE_COLOURS.get(run.state, "dim"))
        name = one_line(run.tool).ljust(min(width, 30))
        given = arguments_line(run.tool, redacted(run.header.get("arguments")), MAX_GIVEN)
        text = f"{console.paint(run.id, 'cyan')}  {state}  {name}  {console.paint(ago.ljust(10), 'dim')}  {given}"
        console.say(text.rstrip(), 4)
        if run.approval:
            console.say(f"    {waits[run.id]}", 4)
        if run.problem:
            console.say(f"    {console.paint(one_line(run.problem), 'red')}", 4)
    if not runs:
        console.note("there are no runs yet; `albert run` of a saved tool makes one")
    return 0


def _question(service: ToolService, run: RunView) -> Approval | None:
    """The question for which a run waits. None if the question is no longer recorded while the run still waits."""
    try:
        return service.approvals.get(str(run.approval))
    except Failure:
        return None


def _then(service: ToolService, run: RunView, options: argparse.Namespace) -> str:
    """What continues a run that has stopped, as a phrase; or that its session was revoked."""
    if run.session and any(session.ended for session in service.sessions.line(run.session)):
        return "its session has been revoked, so nothing continues it"
    return goes_on(run.id, options.home, run.header.get("queue"))


def _next(service: ToolService, run: RunView, options: argparse.Namespace) -> str:
    """What a suspended run waits for, or what continues it."""
    question = _question(service, run)
    if question is not None and question.state == "open":
        return f"waits for the answer to {run.approval}: `{command_line(options.home, 'approvals', 'show', str(run.approval))}`"
    return f"{_answered(question)}: {_then(service, run, options)}"


def _answered(question: Approval | None) -> str:
    """The outcome of a question that is not open."""
    if question is None:
        return "the question is no longer recorded"
    if question.state in ("yes", "no", "standing"):
        return f"{one_line(question.by)} answered {question.choice}"
    return f"the question is {question.state}"


async def _show(options: argparse.Namespace, console: Console) -> int:
    async with open_service(options) as service:
        run = await service.show_run(options.id, session=token())
        waiting = _question(service, run) if run.approval else None
        may_answer, then = service.approvals.may_answer, _then(service, run, options)
    if console.json:
        console.document({"ok": True, **run.as_dict()})
        return 0
    Timeline(run, console, time.time()).draw()
    if run.repository is not None and run.state in OVER:
        console.say(_changes(run, options.home), 2)
    _next_command(run, waiting, may_answer, then, options, console)
    return 0


def _changes(run: RunView, home: str | None) -> str:
    """What has become of the changes of a run in its checkout, which has ended."""
    changes = run.result.get("changes")
    if changes is None:
        return "no changes: there are none, or no worker has kept them yet"
    if "branch" in changes:
        return f"changes: the branch {one_line(changes['branch'])}; {_fetches(run)}"
    return f"changes: `{command_line(home, 'runs', 'patch', run.id)}` prints them"


def _fetches(run: RunView) -> str:
    words = ["git", "fetch", without_password(str(run.repository)), run.result["changes"]["branch"]]
    return f"`{shlex.join(words)}` fetches it"


def _next_command(
    run: RunView, waiting: Approval | None, may_answer: bool, then: str, options: argparse.Namespace, console: Console
) -> None:
    queue = run.header.get("queue")
    if run.state == "interrupted":
        text = f"its process ended before it did: {then}"
    elif run.state == "queued":
        start = command_line(options.home, "worker", "--queues", str(queue))
        text = f"it waits in the queue {queue}, for its turn or for a worker; `{start}` starts one"
    elif run.state != "suspended":
        return
    elif waiting is not None and waiting.state == "open":
        text = answer_and_resume(waiting.id, run.id, options.home, queue, may_answer)
    elif not run.approval and run.error is not None:
        text = f"{one_line(str(run.error.get('message')))}: {then}"
    else:
        text = f"{_answered(waiting)}: {then}"
    console.say()
    console.say(text, 2)


async def _resume(options: argparse.Namespace, console: Console) -> int:
    return await resume(options.id, options, console)


async def _cancel(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.surfaces.text.person import person

    async with open_service(options) as service:
        before = run_of(service, options.id)
        after = await service.cancel_run(options.id, person(), session=token())
    if console.json:
        console.document({"ok": True, **after.as_dict()})
        return 0
    how = (
        "; it stops within its present call, or before the next one"
        if before is not None and before.state == "running"
        else ""
    )
    console.say(f"cancelled {after.id} ({one_line(after.tool)}){how}")
    console.say(f"  {done_so_far(after)}", 2)
    return 0


def done_so_far(run: RunView) -> str:
    """Counts the calls of a run that changed something, and those that may have changed something."""
    applied = sum(any(may_change(str(e.get("kind")), e) for e in step.get("effects") or ()) for step in run.steps)
    unknown = [step for step in run.steps if step["state"] == "unknown"]
    changed = f"{applied:,} of its calls had changed something" if applied else "nothing had been changed"
    for step in unknown:
        name, place = one_line(str(step.get("tool"))), one_line(str(step["step"]))
        changed += f"; whether {name} (step {place}) was done is not known"
    return changed


async def _patch(options: argparse.Namespace, console: Console) -> int:
    demand_person("the changes of a run are printed")
    async with open_service(options) as service:
        run = service.runs.show(options.id, with_result=True)
        changes = run.result.get("changes", {})
        contents, ref = service.contents(None), changes.get("patch")
        patch = contents.get(ref) if ref and contents is not None else b""
    if "branch" in changes:
        problem = f"the changes of the run {run.id} are the branch {changes['branch']}"
        raise Failure("not_found", problem, hint=_fetches(run))
    if not changes:
        why = "has changed nothing" if run.state in OVER else f"is {run.state}"
        raise Failure("not_found", f"the run {run.id} {why}", hint="only a run with --repository has a patch")
    if console.json:
        console.document({"ok": True, "run": run.id, "patch": patch.decode("utf-8", "replace")})
    elif sys.stdout.isatty():
        console.untrusted(patch.decode("utf-8", "replace"), sys.stdout)
    else:
        console.flush()
        sys.stdout.buffer.write(patch)
    return 0


async def _replay(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.model.recorded_call import call_text

    demand_person("a run is replayed")
    async with open_service(options) as service:
        began_in = workspace_of(run_of(service, options.id))
    version = options.version
    async with open_service(options, began_in) as service:
        before = service.runs.show(options.id)
        run = before.id
        if version is not None:
            version = (await service.describe(before.tool, version)).definition.version
        result = await service.runs.replay(run, version)
    error = result.error
    diverged = error is not None and error.code == "diverged"
    if diverged and error is not None and "journal" not in error.details and before.state not in ("done", "failed"):
        # The recorded run ended here.
        diverged = False
    if console.json:
        console.document({**result.as_dict(), "run": run, "diverged": diverged})
        return 1 if diverged else 0
    steps = counted(len(before.steps), "step")
    if diverged and error is not None:
        _both(error, console)
        return 1
    if error is not None and error.code == "diverged":
        asked = error.details.get("program") or {}
        end = f"it ends there, before {call_text(str(asked.get('tool')), asked.get('arguments'))}"
    elif error is None:
        end = "it ends as it did" if before.state == "done" and options.version is None else "it runs to its end"
    else:
        as_before = before.error is not None and before.error.get("message") == error.message
        end = f"it fails{' as it did' if as_before else ''}: {one_line(error.message)}"
    text = f"every call is the one in the journal ({steps}); {end}. Nothing was done."
    if error is None:
        # Only the output goes to stdout, where programs read it.
        console.note(f"{console.paint('=', 'green', err=True)} {text}")
        console.value(result.output)
    else:
        console.say(f"{console.paint('=', 'green')} {text}", 2)
    return 0


def _both(error: Failure, console: Console) -> None:
    """Print where program and journal differ, with both calls. Arguments that are equal are shortened."""
    journal, program = error.details.get("journal"), error.details.get("program")
    calls = [c for c in (journal, program) if isinstance(c, dict) and "tool" in c]
    if not calls:
        # They differ before the first step: either the program or the interpreter differs.
        console.say(f"{console.paint('≠', 'red')} {one_line(error.message)}", 2)
        return
    console.say(f"{console.paint('≠', 'red')} they differ at step {one_line(str(error.details.get('step')))}:", 2)
    both: list[dict[str, Any]] = [c["arguments"] if isinstance(c.get("arguments"), dict) else {} for c in calls]
    same = {k for k in both[0] if all(k in other and other[k] == both[0][k] for other in both)}
    for name, side in (("the journal has", journal), ("the program asks for", program)):
        if isinstance(side, dict) and "tool" in side:
            arguments = side.get("arguments")
            texts = [
                f"{one_line(str(k))}={one_line(brief(json.dumps(v, ensure_ascii=False), 40 if k in same else 2000))}"
                for k, v in (arguments.items() if isinstance(arguments, dict) else ())
            ]
            version = f"  {str(side['version'])[:12]}" if len({c.get("version") for c in calls}) > 1 else ""
            text = f"{one_line(str(side['tool']))}({', '.join(texts)}){console.paint(version, 'dim')}"
        else:
            text = "nothing more"
        console.say(f"  {name.ljust(20)} {text}", 23)


async def _sweep(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.authority.idempotency import KEPT_SECONDS
    from albert_tools.store.contents.references import named
    from albert_tools.store.record.runs import Runs
    from albert_tools.surfaces.text.person import demand_person
    from albert_tools.surfaces.text.usage_error import Usage

    demand_person("runs are deleted")
    if options.older_than < KEPT_SECONDS:
        raise Usage(
            f"--older-than {lasting(options.older_than)} is less than a day",
            f"a call with a dedupe key gets the result of its run for {lasting(KEPT_SECONDS)}; give 1d or more",
        )
    home = home_of(options)

    def work() -> tuple[Swept, Any]:
        with home.record as record:
            swept = Runs(record).sweep(options.older_than)
            # References are read after the runs are deleted. Therefore values to which only these runs referred are deleted too.
            return swept, home.contents.collect(named(record.texts(), home.artifacts.texts()))

    swept, collected = await asyncio.to_thread(work)
    if console.json:
        document = {
            "ok": True,
            "runs": swept.deleted,
            "kept": swept.unfinished,
            "contents": collected.taken,
            "bytes": collected.taken_bytes,
        }
        console.document(document)
        return 0
    console.say(
        f"deleted the journals of {counted(swept.deleted, 'run')}, and {counted(collected.taken, 'value')} "
        f"({counted(collected.taken_bytes, 'byte')}) that no record refers to",
        2,
    )
    if swept.unfinished:
        console.note(f"kept {len(swept.unfinished):,} old but unfinished: {', '.join(swept.unfinished[:5])}")
    return 0

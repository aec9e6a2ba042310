"""``albert run``: calls one saved tool or primitive.

This command must be fast. Therefore the zygote is started first and gets ready during the imports. The parser and large libraries
such as pydantic are not loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.cli.service_options import homes_of, open_service
from albert_tools.surfaces.cli.session_tools import session_given
from albert_tools.surfaces.text.console import Console, one_line, safe
from albert_tools.surfaces.text.effect_line import effect_line
from albert_tools.surfaces.text.exit_codes import INTERRUPTED, exit_of
from albert_tools.surfaces.text.hints import path_note, with_hint

if TYPE_CHECKING:
    from albert_tools.engine.call.context import Log
    from albert_tools.engine.model.result import ToolResult
    from albert_tools.engine.model.telemetry import Observer
    from albert_tools.service import ToolService

#: Seconds after which a terminal shows that the tool is still running.
PATIENCE = 1.0
#: Seconds between checks for new questions, with ``--wait``.
_POLL = 0.2


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the tool. Returns 0, or the exit code of its failure."""
    from albert_tools.store.tools.names import Place

    if options.show_help:
        from albert_tools.surfaces.cli.tools import help_of

        return help_of(options, console)
    if options.queue is not None:
        if options.wait:
            from albert_tools.surfaces.text.usage_error import Usage

            raise Usage("--wait is for a run that is executed here", "a queued run waits for its answers without it")
        from albert_tools.surfaces.cli.enqueue import enqueue

        return enqueue(options, console)
    if options.repository is not None:
        from albert_tools.surfaces.text.usage_error import Usage

        raise Usage("--repository is for a queued run, which a worker executes", "add --queue default")
    spawned = None
    homes = homes_of(options)
    if options.name.isidentifier() and Place.of(homes.tools, options.name).entry.is_file():
        from albert_tools.engine.sandbox.worker.spawn import spawn_zygote

        spawned = spawn_zygote()
    # The remaining imports take most of the time of a short run. They happen while the zygote starts.
    import asyncio

    return asyncio.run(_run(options, console, spawned))


async def _run(options: argparse.Namespace, console: Console, spawned: Any) -> int:
    token, given_by = session_given(options)
    async with attended_service(options, console, wait=options.wait, session=token is not None) as service:
        if spawned is not None:
            # The call itself reports what is wrong with the tool, and only to a session that may know of it.
            with suppress(Failure):
                await service.prepare(options.name, spawned, options.version)
        from albert_tools.surfaces.cli.arguments import arguments_of

        arguments = await arguments_of(service, options, token)
        _note_paths(service, options.name, arguments, console)

        def invoke(log: Log | None, watch: Callable[[str], None] | None) -> Awaitable[ToolResult]:
            return service.invoke(
                options.name,
                arguments,
                version=options.version,
                session=token,
                reason=options.reason,
                log=log,
                watch=watch,
            )

        result, interrupted = await run_attended(service, invoke, options.name, console, options.wait)
    if result.error is not None and (result.error.rule or "").startswith(("session.", "lease.")):
        result = _naming_origin(result, given_by)
    code = print_result(result, options, console)
    if result.error is not None and result.error.code == "invalid_arguments" and result.error.tool == options.name:
        # The mistake is in the command line, not in the tool.
        code = 2
    return INTERRUPTED if interrupted else code


def _note_paths(service: ToolService, name: str, arguments: dict[str, Any], console: Console) -> None:
    root = getattr(service.workspace_or_failure, "root", None)
    if root is None:
        return
    primitive = service.registry.primitive(name)
    written = {path for path, use in primitive.paths_in(arguments) if use != "read"} if primitive is not None else set()
    note = path_note(arguments, written, str(root))
    if note is not None:
        console.note(f"note: {one_line(note)}")


def _naming_origin(result: ToolResult, given_by: str) -> ToolResult:
    """The result. If it is an error, the error says where the session's token came from."""
    from msgspec.structs import replace

    error = result.error
    assert error is not None
    return replace(result, error=error.copy(message=f"{error.message} (the session is given by {given_by})"))


def attended_service(
    options: argparse.Namespace,
    console: Console,
    *,
    wait: float = 0.0,
    session: bool = False,
    workspace: str | None = None,
) -> ToolService:
    """The service for a run. It asks at the terminal, if there is one, and reports events as ALBERT_TELEMETRY says.

    Raises:
        Failure: `invalid_arguments`, `io_error`: ALBERT_TELEMETRY is invalid.
    """
    ask = None
    # With --wait, the answer comes from another process.
    if console.interactive and not wait and sys.stdin is not None and sys.stdin.isatty():
        from albert_tools.surfaces.text.approval_prompt import asker

        ask = asker(console, session)
    return open_service(options, workspace, ask=ask, patience=wait, telemetry=telemetry_of())


def telemetry_of() -> Observer | None:
    """The observer that ALBERT_TELEMETRY names.

    Raises:
        Failure: `invalid_arguments`, `io_error`: its value is invalid.
    """
    if not os.environ.get("ALBERT_TELEMETRY"):
        return None
    from albert_tools.telemetry.environment import from_environment

    return from_environment(os.environ)


async def run_attended(
    service: ToolService,
    begin: Callable[[Log | None, Callable[[str], None] | None], Awaitable[ToolResult]],
    name: str,
    console: Console,
    wait: float = 0.0,
) -> tuple[ToolResult, bool]:
    """Run `begin` with progress on the terminal. Returns the result, and whether an interrupt has cancelled the run.

    Raises:
        CancelledError: the interrupt came before the run began.
    """
    import asyncio

    called: list[str] = []
    helpers = []
    if console.interactive:
        helpers.append(asyncio.create_task(_show_progress(name, called, console)))
    if wait:
        helpers.append(asyncio.create_task(_show_questions(service, wait, console)))

    def say(tool: str, text: str) -> None:
        # What commands print while they run is for a person who waits; the result has it, too.
        if console.interactive or service.registry.primitive(tool) is None:
            _print(text, console)

    log = None if console.json or console.quiet else say
    task = asyncio.ensure_future(begin(log, called.append if console.interactive else None))
    interrupted = False
    try:
        # The first interrupt asks the run to stop, and the run then reports its effects. The second interrupt ends this wait.
        result = await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.done():
            raise
        interrupted = True
        under_way = service.runs.under_way()
        for run in under_way:
            service.runs.stop(run, "an interrupt")
        if not under_way:
            task.cancel()
        result = await task
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
    return result, interrupted


def print_result(result: ToolResult, options: argparse.Namespace, console: Console, before: int = 0) -> int:
    """Print effects, and the result or the error. Returns the exit code. The first effects, `before` of them, happened earlier."""
    error = result.error
    if console.json:
        console.document(result.strict() if console.strict else result.as_dict())
    else:
        for effect in result.effects[before:]:
            line = effect_line(effect.kind, effect.facts)
            if line:
                console.note(console.paint(line, "dim", err=True))
        if error is None:
            _value(result.output, console)
        if "changed" in result.metadata:
            console.note(
                f"{one_line(result.metadata['changed']['message'])}; `albert show {one_line(result.tool)}` shows it"
            )
    if error is None:
        return 0
    if not console.json:
        console.failure(with_hint(error.as_dict(), options.home, result.run_id))
        _details(error, console)
    return exit_of(error)


def _value(output: Any, console: Console) -> None:
    """Print the result. On a terminal, a result that is mostly text is shown as text."""
    if sys.stdout.isatty():
        from albert_tools.surfaces.cli.text_output import show, texts_of

        if texts := texts_of(output):
            show(output, texts, console)
            return
    console.value(output)


def _print(text: str, console: Console) -> None:
    console.progress("")
    console.untrusted(text, sys.stderr)


def _details(error: Failure, console: Console) -> None:
    partial = error.details.get("output")
    if isinstance(partial, str) and partial:
        console.note("output until then:")
        console.untrusted(partial if partial.endswith("\n") else partial + "\n", sys.stderr)


async def _show_progress(name: str, called: list[str], console: Console) -> None:
    """Show which tools are running, and for how long."""
    import asyncio

    started = time.monotonic()
    try:
        await asyncio.sleep(PATIENCE)
        while True:
            passed = time.monotonic() - started
            last = f" · {safe(called[-1])}" if called else ""
            del called[:-1]
            console.progress(f"running {safe(name)} · {passed:.0f} s{last}")
            await asyncio.sleep(0.5)
    finally:
        if time.monotonic() - started > PATIENCE:
            console.progress("")


async def _show_questions(service: ToolService, wait: float, console: Console) -> None:
    """Print each question for which the run waits, as long as it can be answered."""
    import asyncio

    shown: set[str] = set()
    while True:
        for run in service.runs.under_way():
            for question in service.approvals.all(("open",)):
                if question.run == run and question.id not in shown:
                    shown.add(question.id)
                    console.progress("")
                    console.note(f"{one_line(question.message)}; waiting up to {wait:g} s for an answer:")
                    console.note(f"  albert approvals answer {question.id} once")
        await asyncio.sleep(_POLL)

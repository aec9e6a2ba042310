"""Runs the owner's command when a question or a version waits: ``notify: [/usr/bin/notify-send, "{title}", "{text}"]``.

The words of the command are fixed by the owner's file, but for ``{title}`` and ``{text}``, each a word of its own. No shell reads
them. The command gets the ids in its environment, and the text on stdin, too.

The command runs beside the calls, one run at a time, with a pause after each. What begins to wait meanwhile is one notice of the
next run. Each run has an entry ``notified`` in the ledger, so that the owner learns that it fails. The calls go on in any case.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from albert_tools.engine.authority.waiting import in_turn
from albert_tools.engine.model.environment import outside
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief, counted
from albert_tools.engine.model.recorded_call import call_text
from albert_tools.engine.model.redaction import redacted_text
from albert_tools.engine.model.visible_text import visible

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval
    from albert_tools.engine.authority.sessions import Line
    from albert_tools.engine.model.definition import Json
    from albert_tools.engine.model.protocols import Ledger

#: Seconds after which the command and the processes that it started are killed.
SECONDS = 10.0
#: Seconds between two runs, and seconds that a run has left when the service ends.
PAUSE_SECONDS = 2.0
CLOSING_SECONDS = 2.0
#: The most characters of a line, of a name in it, and of an argument; and the most calls that a notice lists.
_MAX_LINE, _MAX_NAME, _MAX_ARGUMENT, _MAX_LISTED = 300, 60, 120, 3
#: The most ids in a variable.
_MAX_IDS = 100
#: Names of variables that the command doesn't get: they give the rights of a session, or are secrets.
_WITHHELD = ("ALBERT_SESSION", "ALBERT_SECRET_")


def problem_of(program: str, workspace: str) -> str | None:
    """Why a program can't be run; None if it can. `workspace` is the absolute path of a folder that tools can write to."""
    real = os.path.realpath(os.path.expanduser(program))
    if workspace and real.startswith(f"{workspace.rstrip('/')}/"):
        return f"{program} is in the workspace, where tools could change it, so it is not run"
    return None if os.access(real, os.X_OK) and os.path.isfile(real) else f"there is no program {program}"


class Notice(Struct, frozen=True):
    """What begins to wait: title, the lines of the text, the command that shows it, the variables that name it.

    An agent may have influenced the lines. The title begins with "Albert".
    """

    title: str
    lines: tuple[str, ...]
    shown_by: str
    variables: Mapping[str, str]
    #: The id of the outermost session around the one that asks, or empty.
    session: str


def about_question(question: Approval, line: Line, defaults: Mapping[str, Json]) -> Notice:
    """The notice about a new question: who asks in which project to call what, and why a person is asked. `line` has its session
    and the parents, if it has any. `defaults` are the arguments that are not shown."""
    client = line[0].client if line else ""
    who = json.dumps(brief(client, _MAX_NAME), ensure_ascii=False) if client else "a call without a session"
    where = brief(os.path.basename(question.workspace), _MAX_NAME)
    arguments = question.arguments
    if isinstance(arguments, Mapping):
        arguments = {
            name: value for name, value in arguments.items() if name not in defaults or value != defaults[name]
        }
    what = f"{who} in {where}: {call_text(question.tool, arguments, _MAX_ARGUMENT)}"
    variables = {"ALBERT_APPROVAL": question.id, "ALBERT_TOOL": question.tool}
    title = f"Albert asks about {question.tool}"
    shown_by = f"albert approvals show {question.id}"
    return Notice(title, (what, question.message), shown_by, variables, line[-1].id if line else "")


def about_version(tool: str, version: str, session: str) -> Notice:
    """The notice about a version that waits for a review. `session` as in `Notice`."""
    variables = {"ALBERT_TOOL": tool, "ALBERT_VERSION": version}
    lines = (f"a version of {tool} waits for your review",)
    return Notice(f"Albert has a version of {tool}", lines, f"albert review {tool}", variables, session)


def _joined(notices: Sequence[Notice]) -> Notice:
    """One notice about all. Its variables have at most `_MAX_IDS` ids, separated by spaces."""
    if len(notices) == 1:
        return notices[0]
    # Questions come first, and each client has a turn, so that none hides the questions of others.
    in_order = in_turn(notices, lambda notice: notice.session)
    notices = sorted(in_order, key=lambda notice: "ALBERT_APPROVAL" not in notice.variables)
    questions = sum("ALBERT_APPROVAL" in notice.variables for notice in notices)
    counts = ((questions, "question"), (len(notices) - questions, "version"))
    title = f"Albert: {' and '.join(counted(n, noun) for n, noun in counts if n)} wait"
    lines = [notice.lines[0] for notice in notices[:_MAX_LISTED]]
    lines += [f"and {len(notices) - _MAX_LISTED:,} more"] if len(notices) > _MAX_LISTED else []
    variables: dict[str, str] = {}
    for notice in notices[:_MAX_IDS]:
        for name, value in notice.variables.items():
            variables[name] = f"{variables[name]} {value}" if name in variables else value
    return Notice(title, tuple(lines), "albert approvals" if questions else "albert review", variables, "")


class Notifier:
    """Runs the command for one service. Use it in the thread of the service's event loop."""

    def __init__(self) -> None:
        self._waiting: list[Notice] = []
        self._command: Sequence[str] = ()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def add(self, notice: Notice, command: Sequence[str], workspace: str, ledger: Ledger) -> None:
        """Run the command soon. `workspace` is the folder that tools can write to."""
        self._waiting.append(notice)
        # The rules can change while something waits.
        self._command = command
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(workspace, ledger))

    async def aclose(self) -> None:
        """End the command, after a moment."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=CLOSING_SECONDS)
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self, workspace: str, ledger: Ledger) -> None:
        while self._waiting:
            command, notices, self._waiting = self._command, self._waiting, []
            problem: str | None = "it was killed when the service ended"
            try:
                problem = problem_of(command[0], workspace) or await notify(command, _joined(notices), workspace)
            except OSError as error:
                problem = f"it can't be started: {error}"
            finally:
                with suppress(Failure):
                    ledger.append("notified", {"program": command[0], "count": len(notices), "problem": problem or ""})
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), PAUSE_SECONDS)


async def notify(command: Sequence[str], notice: Notice, workspace: str) -> str | None:
    """Run the owner's command, and wait for its end, at most `SECONDS`. Returns how it failed; None if it succeeded. Raises
    OSError if it can't be started."""
    text = "\n".join((*map(_one_line, notice.lines), notice.shown_by))
    # A program must not take the text for an option.
    words = {"{title}": notice.title, "{text}": (" " if text.startswith("-") else "") + text}
    process = await asyncio.create_subprocess_exec(
        os.path.expanduser(command[0]),
        *(words.get(word, word) for word in command[1:]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env=_environment(os.environ, notice, workspace),
        start_new_session=True,
    )
    try:
        await asyncio.wait_for(process.communicate(f"{text}\n".encode("utf-8", "replace")), SECONDS)
    except TimeoutError:
        return f"it was killed after {SECONDS:g} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = await process.wait()
    return f"exit code {code}" if code else None


def _one_line(text: str) -> str:
    """A text that an agent may have influenced, for a terminal or a desktop."""
    return brief(visible(" ".join(redacted_text(text).split())), _MAX_LINE)


def _environment(environ: Mapping[str, str], notice: Notice, workspace: str) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if not name.startswith(_WITHHELD)}
    return {**outside(kept, workspace), **notice.variables}

"""Runs the owner's command when a question or a version waits: ``notify: [/usr/bin/notify-send, "{title}", "{text}"]``.

The words of the command are fixed by the owner's file, but for ``{title}`` and ``{text}``, each a word of its own. No shell reads
them. The command gets the ids in its environment, and the text on stdin, too. Whatever happens to the command, the call goes on.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from albert_tools.engine.model.redaction import redacted_text

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approval

#: Seconds after which the command and the processes that it started are killed.
SECONDS = 10.0
#: Names of variables that the command doesn't get: they give the rights of a session, or are secrets.
_WITHHELD = ("ALBERT_SESSION", "ALBERT_SECRET_")


def problem_of(program: str, workspace: str) -> str | None:
    """Why a program can't be run; None if it can. `workspace` is the absolute path of a folder that tools can write to."""
    real = os.path.realpath(os.path.expanduser(program))
    if workspace and real.startswith(f"{workspace.rstrip('/')}/"):
        return f"{program} is in the workspace, where tools could change it, so it is not run"
    return None if os.access(real, os.X_OK) and os.path.isfile(real) else f"there is no program {program}"


class Notice(Struct, frozen=True):
    """What begins to wait: title, message, the command that shows it, the variables that name it, and the workspace of the call.

    An agent may have influenced the message. The title begins with "Albert".
    """

    title: str
    message: str
    shown_by: str
    variables: Mapping[str, str]
    workspace: str


def about_question(question: Approval) -> Notice:
    """The notice about a new question."""
    variables = {"ALBERT_APPROVAL": question.id, "ALBERT_TOOL": question.tool}
    title = f"Albert asks about {question.tool}"
    return Notice(title, question.message, f"albert approvals show {question.id}", variables, question.workspace)


def about_version(tool: str, version: str, workspace: str) -> Notice:
    """The notice about a version that waits for a review."""
    variables = {"ALBERT_TOOL": tool, "ALBERT_VERSION": version}
    message = f"a version of {tool} waits for your review"
    return Notice(f"Albert has a version of {tool}", message, f"albert review {tool}", variables, workspace)


async def notify(command: Sequence[str], notice: Notice) -> None:
    """Run the owner's command, and wait for its end, at most `SECONDS`. Never fails."""
    if problem_of(command[0], notice.workspace) is not None:
        return
    message = " ".join(redacted_text(notice.message).split())
    text = f"{message}\n{notice.shown_by}\n"
    # An agent chooses a part of the message. It must not contain what a terminal interprets.
    text = "".join(c for c in text if c.isprintable() or c == "\n")
    # A program must not take the text for an option.
    words = {"{title}": notice.title, "{text}": (" " if text.startswith("-") else "") + text.rstrip()}
    with suppress(Exception):
        process = await asyncio.create_subprocess_exec(
            os.path.expanduser(command[0]),
            *(words.get(word, word) for word in command[1:]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env=_environment(os.environ, notice),
            start_new_session=True,
        )
        try:
            with suppress(TimeoutError, OSError):
                await asyncio.wait_for(process.communicate(text.encode("utf-8", "replace")), SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _environment(environ: Mapping[str, str], notice: Notice) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if not name.startswith(_WITHHELD)}
    return {**kept, **notice.variables}

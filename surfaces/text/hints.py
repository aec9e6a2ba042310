"""Hints of the command line: after a failure, a command that solves the problem.

The engine's own hints have no commands, because other programs show them too.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from albert_tools.store.places import LIBRARY, without_password

#: Digits of a version that are shown. Six digits are enough to identify a version on the command line.
DIGITS = 12


def with_hint(error: dict[str, Any], home: str | None = None, run: str | None = None) -> dict[str, Any]:
    """The failure (as JSON) with the hint for the command line.

    `home` is the value of ``--home``, which commands in a hint repeat. `run` is the run that failed.
    """
    code = error.get("code")
    if code == "suspended":
        hint = _waiting(error, home)
    elif code in ("cancelled", "unknown_outcome") and run is not None:
        hint = f"`{command_line(home, 'runs', 'show', run)}` shows what each step did"
        if code == "unknown_outcome":
            hint += f"; when the cause is corrected, `{command_line(home, 'runs', 'resume', run)}` continues"
    else:
        hint = _hint(error)
    return error if hint is None else {**error, "hint": hint}


def _waiting(error: dict[str, Any], home: str | None) -> str | None:
    """The commands that answer the question and continue a suspended run."""
    details = error.get("details") or {}
    if not details.get("approval") or not details.get("run"):
        return None
    if os.environ.get("ALBERT_SESSION"):
        # A session can't answer, but it can continue its own run.
        answer = command_line(home, "approvals", "answer", details["approval"], "once")
        resume = command_line(home, "runs", "resume", details["run"])
        return f"a person answers with `{answer}`, outside the session; then `{resume}` continues"
    may_answer = details.get("needs_role") is None
    return answer_and_resume(details["approval"], details["run"], home, details.get("queue"), may_answer)


def answer_and_resume(approval: str, run: str, home: str | None, queue: str | None, may_answer: bool) -> str:
    """How an open question is answered and its run continues, as a phrase. `may_answer`: whether the reader may answer it."""
    resumes = queue is None and may_answer
    answer = f"`{command_line(home, 'approvals', 'answer', approval, 'once', *['--resume'] * resumes)}`"
    if not may_answer:
        return f"a reviewer answers with {answer}; then {goes_on(run, home, queue)}"
    if not resumes:
        return f"{answer} shows the question and allows the call (or say no); then {goes_on(run, home, queue)}"
    resume = command_line(home, "runs", "resume", run)
    return f"{answer} shows the question, allows the call (or say no) and continues; `{resume}` continues after another answer"


def goes_on(run: str, home: str | None, queue: str | None) -> str:
    """What continues a run, as a phrase: a worker, if it is in a queue."""
    if queue is not None:
        return f"a worker of the queue {queue} goes on with it"
    return f"`{command_line(home, 'runs', 'resume', run)}` continues it"


def command_line(home: str | None, *words: str) -> str:
    """A command line, quoted for a shell. It has no password."""
    import shlex

    return shlex.join(["albert", *words, *(["--home", without_password(home)] if home is not None else [])])


def path_note(arguments: Mapping[str, Any], written: Collection[str], root: str) -> str | None:
    """A remark for a person in a folder below the workspace: paths start at the workspace. None if nothing depends on it.

    `written` are the paths that the call writes. Another argument is a path if this folder has such a file and `root` has not.
    """
    here = os.getcwd()
    if not here.startswith(root + os.sep):
        return None
    for value in arguments.values():
        if not isinstance(value, str) or not value or "\0" in value or os.path.isabs(value):
            continue
        inside, outside = os.path.join(here, value), os.path.join(root, value)
        if value in written or (os.path.lexists(inside) and not os.path.lexists(outside)):
            meant = os.path.relpath(inside, root)
            return f"paths start at the workspace {root}: the file {value!r} in this folder is {meant!r}"
    return None


def _hint(error: dict[str, Any]) -> str | None:
    code, hint = error.get("code"), error.get("hint")
    details = error.get("details") or {}
    name, last = error.get("tool"), str(details.get("last") or "")[:DIGITS]
    if code == "unknown_tool" and last:
        if details.get("removed"):
            return f"its versions are kept: `albert show {name} --version {last}` shows the last one and lists all"
        return f"`albert show {name} --version {last}` lists its versions; six digits are enough"
    if code == "unknown_tool" and (hint or "").startswith("`search_tools`"):
        library = f"; if the library has it, `albert pull {name}` copies it" if os.environ.get(LIBRARY) else ""
        return f"`albert tools` lists the tools, `albert search TEXT` searches them{library}"
    if code == "not_found" and not hint and "there is nothing at " in str(error.get("message")):
        return "paths are relative to the workspace: `albert run list_directory path=.` lists it"
    return None

"""What a session sees by a call: private data, and content from outside. The record remembers it for the rules about flows.

A call by a program counts like one by hand, also if a person has approved the program, and if it returns nothing of what it has
read: that can be in its errors, effects and questions, and decide how long it takes. What the owner sees is not remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Manifest
from albert_tools.engine.model.redaction import redacted_text
from albert_tools.engine.policy.command_rules import words_of
from albert_tools.engine.policy.flow_rules import READS, TELLS, seen_in
from albert_tools.engine.policy.host_rules import host_of

if TYPE_CHECKING:
    from albert_tools.engine.authority.rules_source import RulesInForce
    from albert_tools.engine.call.context import Call, Run
    from albert_tools.engine.model.primitive import Primitive

#: The most characters of an example.
_MAX_EXAMPLE = 200
#: What separates the words of a command, any of which can be a path.
_BETWEEN = re.compile(r"[\s'\"`=:;|&<>(){}$,]+")


def seen_by_session(call: Call, run: Run, outcome: Failure | Json) -> dict[str, Json]:
    """What the session of a call sees by its outcome, by kind, each with an example; empty if it has no session."""
    primitive, is_failure = call.target.primitive, isinstance(outcome, Failure)
    if run.session.id is None or run.options.action is not None or primitive is None:
        return {}
    # If a call is denied after it has begun, the message can repeat what a server or a file says.
    if is_failure and outcome.denied and not call.report.began:
        return {}
    source = primitive.definition.declared.source
    kinds = seen_in(primitive.definition.effects, source)
    # A command that has asked for anything over the network can print it, or have put it into a file.
    asked = call.report.asked if source == "command" else None
    examples: dict[str, str] = {}
    if "outside" in kinds or asked:
        # An error can have the words of a server, too.
        hosts = (host_of(str(url)) for url in (*map(call.arguments.get, primitive.urls), asked))
        examples["outside"] = next((f"content of {host}" for host in hosts if host), f"the output of {call.name}")
    # An error can have the words of a file, unless there is no file.
    is_read = not is_failure or outcome.code != "not_found"
    private = next(_private_paths(call, run, is_read), None)
    if private is None and is_read and "batch" in primitive.definition.declared.uses.values():
        # The session knows what the runs of its batches have read.
        private = run.session.seen().get("private")
    if private is not None and call.depth:
        run.journal.note_read("private", redacted_text(private, _MAX_EXAMPLE))
    if private is not None or ("private" in kinds and not is_failure):
        examples["private"] = private or f"the output of {call.name}"
    return {kind: redacted_text(example, _MAX_EXAMPLE) for kind, example in examples.items()}


def note_shown(call: Call, run: Run) -> None:
    """Push ``shown`` before a line of a call is shown while it runs, if its session sees anything new by it."""
    saw = seen_by_session(call, run, None)
    if saw.keys() > call.report.shown.keys():
        call.report.shown = saw
        run.entries.push("shown", {"call": call.id, "session": run.session.id, "saw": saw})


def is_approved(run: Run) -> bool:
    """Whether a person has approved the program of the request, in this version."""
    reviews, version = run.service.record.reviews, run.target.version
    return run.options.unsaved is None and version is not None and reviews.of(version).approved


def planned(call: Call, manifest: Manifest) -> list[int]:
    """The planned calls in the manifest of the request's program that a call of it can be."""
    of_tool = [i for i, c in enumerate(manifest.calls) if c.tool == call.name]
    # In the manifest of a large program, all calls of a tool are one.
    return [i for i in of_tool if manifest.calls[i].via == call.callers[1:]] or of_tool


def files_read(primitive: Primitive, arguments: Mapping[str, Any], rules: RulesInForce, run: Run) -> list[str]:
    """The absolute paths of the files about whose content a call of a program tells something: as it names them, and those to which
    links lead.

    Whether there are links is noted, because a file then has two names.
    """
    workspace, files = rules.authority.reaching(run.workspace), list[str]()
    for path, use in primitive.paths_in(arguments):
        if use in TELLS:
            names = {workspace.absolute(path)}
            # A file that can't be found can't be read either.
            with suppress(Failure):
                names.add(workspace.absolute(workspace.locate(path)))
            if len(names) > 1:
                run.journal.note_read("link", path)
            files += names
    return files


def _private_paths(call: Call, run: Run, is_read: bool) -> Iterator[str]:
    """Examples of private files that a call has read: the one that it opened and, if `is_read`, those that its arguments name and
    one that it could see."""
    primitive, is_private = call.target.primitive, call.rules.authority.policy.flows.is_private
    assert primitive is not None
    path = call.report.private_path
    shown = path.removeprefix(f"{run.service.root}/") if path is not None else ""
    if shown and primitive.definition.declared.source not in ("command", "server"):
        # It has opened the file. What a command can see, it need not have read.
        yield shown
    if not is_read:
        return
    named = [path for path, use in primitive.paths_in(call.arguments) if use in READS]
    for name, kind in primitive.judged.items():
        if kind in ("shell", "program"):
            # A command reads files without the workspace. A primitive that runs it confined knows more: `CallJudge.note_visible`.
            value = call.arguments.get(name)
            texts = [str(text) for text in (value if isinstance(value, list) else [value])]
            named += [word for text in texts for word in _BETWEEN.split(text)]
            named += [word for text in texts if kind == "shell" for word in words_of(text)]
    yield from (path for path in named if path and is_private(_absolute(run, path)))
    if shown:
        yield f"the output of {call.name} (which can read {shown})"


def _absolute(run: Run, path: str) -> str:
    """The absolute path. A word of a command need not be a path of the workspace."""
    try:
        return str(run.workspace.absolute(path))
    except Failure:
        return path

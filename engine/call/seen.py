"""What a session sees by a call: private data, and content from outside. The record remembers it for the rules about flows.

A call by hand shows its output to the session. So does a call of a program that nobody has approved: the agent has written it, and
it can pass its data on by a file, or bit by bit. A call of an approved program does so if the program's manifest says that the
output can reach the program's caller. What the owner sees is not remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.error_codes import ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.redaction import redacted_text
from albert_tools.engine.model.result import Effect
from albert_tools.engine.policy.flow_rules import READS, SEEN, seen_in
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
    if run.session.id is None or run.action is not None:
        return {}
    if primitive is None:
        # The error of a program can have words of all that it has read.
        has_words = isinstance(outcome, Failure) and not call.depth and outcome.code not in ENDING
        return {kind: path for kind, path in run.journal.read.items() if has_words and kind in SEEN}
    if is_failure and outcome.denied:
        return {}
    # An error can have the words of a file, unless there is no file.
    is_read = not is_failure or outcome.code != "not_found"
    private = next(_private_paths(call, run), None) if is_read else None
    if private is None and is_read and "batch" in primitive.definition.declared.uses.values():
        # The session knows what the runs of its batches have read.
        private = run.session.seen().get("private")
    if private is not None and call.depth:
        run.journal.note_read("private", redacted_text(private, _MAX_EXAMPLE))
    source = primitive.definition.declared.source
    kinds = seen_in(primitive.definition.effects, source)
    # A command that has asked for anything over the network can print it, or have put it into a file.
    asked = [each.facts.get("url") for each in call.report.effects if each.kind == "network" and source == "command"]
    if asked:
        kinds.add("outside")
    examples: dict[str, Json] = {}
    if "outside" in kinds:
        # An error can have the words of a server, too.
        hosts = (host_of(str(url)) for url in (*map(call.arguments.get, primitive.urls), *asked))
        example = next((f"content of {host}" for host in hosts if host), f"the output of {call.name}")
        if call.depth:
            run.journal.note_read("outside", redacted_text(example, _MAX_EXAMPLE))
        if _is_returned(call, run):
            examples["outside"] = example
    is_private = private is not None or ("private" in kinds and not is_failure)
    # Yes or no can be a secret, too.
    if is_private and _is_returned(call, run, by_control=True):
        examples["private"] = private or f"the output of {call.name}"
    return {kind: redacted_text(example, _MAX_EXAMPLE) for kind, example in examples.items()}


def told(effect: Effect, call: Call, run: Run) -> Effect:
    """An effect of a call as its session sees it. If the output need not reach the session, see `of_arguments`."""
    if run.session.id is None or _is_returned(call, run):
        return effect
    return of_arguments(effect, call.arguments)


def of_arguments(effect: Effect, arguments: Json) -> Effect:
    """An effect without the facts that its call has found out, such as the hash of a file, or the URL to which a server has
    redirected. Amounts remain, because they are charged."""
    given = [*arguments.values()] if isinstance(arguments, Mapping) else []
    has_amounts = effect.kind != "read"
    facts = {
        name: fact
        for name, fact in effect.facts.items()
        if fact in given or (has_amounts and isinstance(fact, int | float))
    }
    return Effect(effect.kind, effect.tool, facts)


def _is_returned(call: Call, run: Run, by_control: bool = False) -> bool:
    """Whether the output of a call can reach the caller of its program, or (`by_control`) decide about what reaches it."""
    manifest = run.target.definition.manifest
    if not call.depth or manifest is None or not is_approved(run):
        return True
    returned = call.rules.authority.policy.flows.returned(manifest, run.target.definition.version, by_control)
    return any(i in returned for i in planned(call, run))


def is_approved(run: Run) -> bool:
    """Whether a person has approved the program of the request, in this version."""
    reviews, version = run.service.reviews, run.target.version
    return run.unsaved is None and reviews is not None and version is not None and reviews.of(version).approved


def planned(call: Call, run: Run) -> list[int]:
    """The planned calls in the manifest of the request's program that a call of it can be."""
    manifest = run.target.definition.manifest
    calls = manifest.calls if manifest is not None else ()
    of_tool = [i for i, c in enumerate(calls) if c.tool == call.name]
    # In the manifest of a large program, all calls of a tool are one.
    return [i for i in of_tool if calls[i].via == call.callers[1:]] or of_tool


def files_read(primitive: Primitive, arguments: Mapping[str, Any], rules: RulesInForce, run: Run) -> list[str]:
    """The absolute paths of the files whose content a call of a program gets: as it names them, and those to which links lead.

    Whether there are links is noted, because a file then has two names.
    """
    workspace, files = rules.authority.reaching(run.workspace), list[str]()
    for path, use in primitive.paths_in(arguments):
        if use in READS:
            names = {workspace.absolute(path)}
            # A file that can't be found can't be read either.
            with suppress(Failure):
                names.add(workspace.absolute(workspace.locate(path)))
            if len(names) > 1:
                run.journal.note_read("link", path)
            files += names
    return files


def _private_paths(call: Call, run: Run) -> Iterator[str]:
    """The private files that a call has read: those that it opened, and those that its arguments name."""
    primitive, is_private = call.target.primitive, call.rules.authority.policy.flows.is_private
    assert primitive is not None
    root = str(run.service.root)
    if call.report.private_path is not None:
        yield call.report.private_path.removeprefix(f"{root}/")
    named = [path for path, use in primitive.paths_in(call.arguments) if use in READS]
    for name, kind in primitive.judged.items():
        if kind in ("shell", "program"):
            # A command reads files without the workspace. A primitive that runs it confined knows more: `Judge.note_read`.
            value = call.arguments.get(name)
            named += [
                word for text in (value if isinstance(value, list) else [value]) for word in _BETWEEN.split(str(text))
            ]
    yield from (path for path in named if path and is_private(_absolute(run, path)))


def _absolute(run: Run, path: str) -> str:
    """The absolute path. A word of a command need not be a path of the workspace."""
    try:
        return str(run.workspace.absolute(path))
    except Failure:
        return path

"""The stage of the rules about flows. It judges manifests, and what the session has seen.

Of a run, only this is noted: whether its program has read a private file, a file by a link, or a file that a rule names, and what
its session had seen before.

It comes after the rules on tools and their objects, and after approvals of versions, so its questions are asked in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.call.seen import files_read, is_approved, planned
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Manifest
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.policy.decision import Decision, strictest


async def flow(call: Call, run: Run) -> Call:
    """Add the questions that the rules about flows ask.

    Raises:
        Failure: `permission_denied`.
    """
    flow_decisions = _decisions(call, run)
    if not flow_decisions:
        return call
    decision = strictest(flow_decisions)
    if decision.verdict == "deny":
        raise decision.failure(call.name)
    # A person sees all reasons.
    asking = [*([call.decision] if call.decision.verdict == "ask" else []), *flow_decisions]
    decision = asking[0]._replace(message="; ".join(dict.fromkeys(d.message for d in asking)))
    asks = {*call.asks, *((d.rule, d.subject) for d in flow_decisions)}
    return replace(call, decision=decision, asks=tuple(sorted(asks)))


def _decisions(call: Call, run: Run) -> list[Decision]:
    flows, program = call.rules.authority.policy.flows, run.target.definition
    definition, manifest = call.target.definition, program.manifest
    decisions = []
    if manifest is None:
        # A primitive that is called by hand. The owner has no session.
        if run.session.id is not None:
            see: Callable[[], Mapping[str, str]] = run.session.seen
            if flows.of_sessions and "network" in definition.effects:
                seen = see()
                # What it sends while it runs is compared with this (`guard_requests`).
                run.seen_before, see = frozenset(seen), lambda: seen
            decisions += flows.judge_session(definition, call.arguments, see)
    elif not call.depth:
        decisions += [d for d in flows.judge_version(program.name, manifest, program.version) if d.verdict == "deny"]
        if flows.of_sessions:
            seen, before = run.session.seen(), run.journal.entered(call.step, definition, call.arguments)
            # What the run itself has shown to the session concerns its later calls, and not its request.
            run.seen_before = before.seen if before is not None else frozenset(seen)
            seen = {kind: example for kind, example in seen.items() if kind in run.seen_before}
            decisions += flows.judge_request(program.name, manifest, is_approved(run), seen)
    elif call.target.primitive is not None:
        if flows.flows(manifest, program.version):
            version, calls = program.version, planned(call, manifest)
            paths = _files_read(call.target.primitive, call, run)
            for rule, path in flows.begun_by_link(manifest, version, calls, paths).items():
                run.journal.note_read(rule, path)
            decisions += flows.judge_call(
                manifest,
                version,
                calls,
                call.arguments,
                run.arguments,
                paths,
                run.journal.has_read,
                definition,
                lambda: _sources(call, run),
            )
        decisions += flows.judge_session(
            definition, call.arguments, lambda: _seen_since(call, run, manifest), call.callers
        )
    return decisions


def _sources(call: Call, run: Run) -> Iterator[str]:
    """The texts of the program, and of the saved tools between it and the call."""
    inner = zip(call.callers[1:], call.trail[1:], strict=True)
    for version in (run.target.version, *(run.lookup.look_up(*each).version for each in inner)):
        if version is not None:
            yield version.source


def _seen_since(call: Call, run: Run, manifest: Manifest) -> Mapping[str, str]:
    """What the session has seen, if a call of a program must be judged by it; otherwise empty.

    The request was judged by what the session had seen before, and by the manifest. The manifest doesn't know the private files
    that the program reads. Nor does it know what other requests and batches of the session see meanwhile, which the program may
    find in a file. Of an approved program only these and the arguments count, because everything else was reviewed.
    """
    by_others = run.session.seen(excluding=run.id).keys() - run.seen_before
    is_open = run.journal.has_read("private") or bool(by_others)
    if is_approved(run):
        flows = call.rules.authority.policy.flows
        is_open = is_open and flows.is_given(manifest, planned(call, manifest))
    else:
        is_open = is_open or bool(run.seen_before)
    seen = run.session.seen() if is_open else {}
    return seen if seen.keys() > run.seen_before else {}


def _files_read(primitive: Primitive, call: Call, run: Run) -> list[str] | None:
    """The files that a call of a program reads, or those that its batch reads; None if they are not known."""
    names = {use: name for name, use in primitive.definition.declared.uses.items()}
    if "items" not in names:
        return files_read(primitive, call.arguments, call.rules, run)
    # What is a link when the batch reads it, nobody knows yet.
    run.journal.note_read("link", call.name)
    with suppress(Failure):
        tool = run.lookup.look_up(call.arguments[names["tool"]], None).primitive
        if tool is not None:
            items = call.arguments[names["items"]]
            return [path for item in items for path in files_read(tool, item, call.rules, run)]
    return None

"""``albert review``: the saved versions that wait for the owner's decision, and one of them in full.

At a terminal it asks for a decision about each of them in turn. Elsewhere it prints the list, or the version.

All that is printed about a version comes from its manifest, the record and the checker. The author's own words are marked as such,
and come last. An approval binds to the manifest that was printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

from albert_tools.engine.authority.reviews import DECISIONS, REASONED
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.call_graph import rows
from albert_tools.engine.review.sentences import sentence
from albert_tools.surfaces.cli.manifest_text import STYLES, effects_text, print_lines, print_source
from albert_tools.surfaces.cli.paging import note_page, page_of
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.hints import DIGITS, command_line
from albert_tools.surfaces.text.person import demand_person, person
from albert_tools.surfaces.text.times import about, since_1970
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.authority.reviews import VersionState
    from albert_tools.engine.review.version_review import VersionReview
    from albert_tools.service import ToolService

#: The most replayed runs that are printed.
MAX_REPLAYS = 10
#: The most lines of the call graph that are printed.
MAX_ROWS = 40
#: The most lines of a source that is printed. A longer one would push the manifest off the screen.
MAX_SOURCE = 40
_MAX_WORDS = 300
#: The decisions that are offered at the terminal.
_DECIDING = ("approve", "reject", "send back")


def review(options: argparse.Namespace, console: Console) -> int:
    """List the queue, or show one version and decide about it; or serve pages for that."""
    demand_person("versions are reviewed")
    if options.page != 1 and (options.web or options.name is not None):
        raise Usage("review: --page shows a page of the queue", "leave NAME and --web out")
    if options.web:
        if console.json or options.name is not None or _decision(options) is not None:
            raise Usage("review: --web takes no NAME, decision or --json", "the pages show all versions")
        from albert_tools.surfaces.cli.review_web import review_web

        return review_web(options, console)
    return asyncio.run(_review(options, console))


async def _review(options: argparse.Namespace, console: Console) -> int:
    decision = _decision(options)
    if options.name is None:
        if decision is not None:
            raise Usage("review: missing NAME", "name the tool to decide about: albert review NAME --approve")
        async with open_service(options) as service:
            if console.json or not _asks(console):
                return await asyncio.to_thread(_queue, service, options, console)
            return await _walk(service, None, console)
    name, _, version = options.name.partition("@")
    async with open_service(options) as service:
        if not version and decision is not None and decision[0] == "deprecate":
            version = service.reviews.active().get(name, "")
        # The examples and the recorded runs are for a reader.
        review = await service.review(name, version or None, rerun=decision is None)
        if decision is not None:
            state = await _decide(service, review, *decision)
            _decided(review, state, console)
            return 0
        if console.json:
            console.document({"ok": True, **review.as_dict()})
            return 0
        show(review, console, time.time())
        if _asks(console):
            return await _walk(service, review, console)
        if review.state.state == "pending":
            console.note(_next_command(review, options))
    return 0


def _asks(console: Console) -> bool:
    """Whether a person at a terminal can be asked."""
    is_terminal = console.interactive and console.out_width is not None
    return is_terminal and sys.stdin is not None and sys.stdin.isatty()


def _next_command(review: VersionReview, options: argparse.Namespace) -> str:
    """The command that a person gives next about a pending version, as a phrase."""
    name, _, _ = options.name.partition("@")
    # Without the version, a newer one that nobody has read would be approved.
    shown = f"{name}@{review.version.version[:DIGITS]}"
    return f"decide with `{command_line(options.home, 'review', shown, '--approve')}`, --send-back or --reject"


def _decision(options: argparse.Namespace) -> tuple[str, str] | None:
    """The decision that the options state, and its reason."""
    given = [(name, getattr(options, name)) for name in DECISIONS if getattr(options, name) not in (None, False)]
    if len(given) > 1:
        raise Usage("review: give one decision", "albert review --help")
    if not given:
        return None
    name, why = given[0]
    if name in REASONED and not why.strip():
        option = f"--{name.replace('_', '-')}"
        raise Usage(
            f"review: {option} needs a reason, which the author reads", f"{option} 'write only below the folder'"
        )
    return name, "" if why is True else why


async def _decide(service: ToolService, review: VersionReview, decision: str, why: str) -> VersionState:
    """Make a decision about the version that was shown."""
    d = review.version.definition
    return await service.decide(d.name, decision, person(), d.version, why, d.manifest_digest, review.state.state)


def _decided(review: VersionReview, state: VersionState, console: Console) -> None:
    if console.json:
        d = review.version.definition
        console.document({"ok": True, "name": d.name, "version": d.version, "state": state.state, "why": state.why})
        return
    why = f": {visible(state.why)}" if state.why else ""
    console.say(f"{state.state} {visible(state.tool)}  {state.version[:DIGITS]}{why}", 2)


# The queue


def _queue(service: ToolService, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.engine.authority.reviews import VersionState
    from albert_tools.engine.authority.waiting import waiting

    versions = [w.item for w in waiting(service.approvals, service.reviews) if isinstance(w.item, VersionState)]
    on_page, pages = page_of(versions, options.page)
    # The store's list does not have the author and the manifest.
    listed = [(service.reviews.of(v), v) for v in (service.store.load(w.tool, w.version) for w in on_page)]
    if console.json:
        queue = [
            {"name": s.tool, "version": s.version, "by": s.by, "since": s.time, "sentence": sentence(v.manifest)}
            for s, v in listed
        ]
        console.document({"ok": True, "queue": queue, "page": options.page, "pages": pages, "waiting": len(versions)})
        return 0
    now = time.time()
    for state, version in listed:
        head = f"{console.paint(visible(state.tool), 'cyan', 'bold')}  {state.version[:DIGITS]}"
        author = service.reviews.author(state.tool, state.version, version.author)
        console.say(f"{head}  {console.paint(_age(state, author, now), 'dim')}", 4)
        effects = version.definition.effects
        console.say(f"    {sentence(version.manifest)}  [{effects_text(effects, console) or 'no effects'}]", 4)
    note_page(console, options.page, pages, len(versions), command_line(options.home, "review"))
    if versions:
        console.note(f"`{command_line(options.home, 'review')} NAME` shows one in full")
    else:
        console.note("no version waits for a review")
    return 0


def _age(state: VersionState, author: str, now: float) -> str:
    began = since_1970(state.time)
    by = f"by {visible(author if state.state == 'pending' else state.by)}"
    return f"{by}, {about(now - began)} ago" if began is not None else by


# One version


def show(review: VersionReview, console: Console, now: float) -> None:
    """Print a review in the order in which a person decides: what it does, what is new, what it calls, what was tried."""
    d, state = review.version.definition, review.state
    colour = {"active": "green", "revoked": "red", "draft": "red"}.get(state.state, "yellow")
    head = (
        f"{console.paint(visible(d.name), 'cyan', 'bold')}  {d.version[:DIGITS]}  {console.paint(state.state, colour)}"
    )
    console.say(f"{head} {console.paint(_age(state, review.author, now), 'dim')}", 2)
    if state.why:
        console.say(f"  {visible(state.why)}", 2)
    for problem in filter(None, [review.outdated and f"outdated: {visible(review.outdated)}", review.look_alikes]):
        console.say(console.paint(f"  ! {problem}", *STYLES["danger"]), 4)
    console.say()
    console.say(console.paint(review.sentence, "bold"))
    for text in review.unusual:
        console.say(console.paint(f"  ! {text}", *STYLES["warning"]), 4)
    if review.undescribed:
        text = f"  ! not in its description: {'; '.join(review.undescribed)}"
        console.say(console.paint(text, *STYLES["warning"]), 4)
    console.say(f"  {visible(d.signature())}", 4)
    print_lines(review.lines, console)
    _flows(review, console)
    # What a run would have done otherwise is worth more than a difference of texts.
    replays_first = review.replays is not None and review.replays.count("differs")
    if replays_first:
        _replays(review, console)
    _changes(review, console)
    _graph(review, console)
    _examples(review, console)
    if not replays_first:
        _replays(review, console)
    _source(review, console)
    words = visible(json.dumps(brief(d.description, _MAX_WORDS), ensure_ascii=False))
    console.say()
    console.say(console.paint(f"the author's words: {words}", "dim"), 4)


def _source(review: VersionReview, console: Console) -> None:
    """Print the source of a first version, unless it is long. A later version shows the difference."""
    source = review.version.source.rstrip("\n")
    number = source.count("\n") + 1
    if review.changes is not None or number > MAX_SOURCE:
        version = review.version
        where = f"`albert show {visible(version.name)} --version {version.version[:DIGITS]}` prints it"
        _heading("source", console, f"{number:,} lines; {where}")
        return
    _heading("source", console)
    print_source(visible_lines(source), console, review.effects_of_lines)


def visible_lines(source: str) -> str:
    """A source in which every character is what it looks like."""
    return "\n".join(map(visible, source.split("\n")))


def _heading(text: str, console: Console, note: str = "") -> None:
    console.say()
    console.say(f"{console.paint(text, 'bold')}{f'  {note}' if note else ''}", 2)


def _changes(review: VersionReview, console: Console) -> None:
    changed = review.changes
    if changed is None:
        return
    _heading("new since the last approved version", console, console.paint(changed.since[:DIGITS], "dim"))
    if same := changed.same():
        console.say(f"  {same}", 2)
    for change in changed.manifest:
        sign = {"more": "+", "less": "-"}.get(change.direction, "~")
        style = STYLES["danger" if change.risk >= 3 else "warning"] if change.direction != "less" else STYLES["quiet"]
        console.say(console.paint(f"  {sign} {change.text}", *style), 4)
    if changed.source:
        console.say()
    for line in changed.source:
        style = {"+": ("green",), "-": ("red",), "@": ("dim",)}.get(line[:1], ())
        console.say(f"  {console.paint(visible(line), *style) if style else visible(line)}", 4)


def _flows(review: VersionReview, console: Console) -> None:
    if not review.flows:
        return
    _heading("your rules about flows, also after an approval", console)
    for verdict, message in review.flows:
        style = STYLES["danger" if verdict == "deny" else "warning"]
        console.say(console.paint(f"  {verdict}  {visible(message)}", *style), 4)


def _graph(review: VersionReview, console: Console) -> None:
    # The lines of the manifest name the primitives, with what they do.
    shown = [row for row in rows(review.graph)[1:] if row.node.kind == "composite" or row.node.problem]
    if not shown:
        return
    _heading("saved tools that it calls", console)
    for row in shown[:MAX_ROWS]:
        node = row.node
        version = console.paint(f" {node.version[:DIGITS]} {node.state}", "dim") if node.kind == "composite" else ""
        problem = console.paint(f"  {visible(node.problem)}", "red") if node.problem else ""
        effects = f"  [{effects_text(node.effects, console)}]" if node.effects else ""
        again = "  (above)" if row.again else ""
        console.say(f"{'  ' * row.depth}{visible(node.name)}{version}{effects}{again}{problem}", 2 * row.depth + 2)
    if len(shown) > MAX_ROWS:
        console.say(f"  … and {len(shown) - MAX_ROWS:,} more")


def _examples(review: VersionReview, console: Console) -> None:
    if review.examples_problem:
        _heading("examples", console)
        console.say(console.paint(f"  can't be run now: {visible(review.examples_problem)}", "yellow"), 4)
        return
    failed = [e for e in review.examples if e.problem]
    passed = len(review.examples) - len(failed)
    _heading("examples", console, f"{passed} pass, {len(failed)} fail" if review.examples else "none")
    for example in review.examples:
        sign = console.paint("≠", "red") if example.problem else console.paint("=", "green")
        console.say(f"  {sign} {example.words()}", 6)
        if example.problem:
            console.say(f"    {visible(example.problem)}", 6)
        if example.files:
            console.say(f"    {example.files}", 6)
    for text in review.untried:
        console.say(console.paint(f"  ! no example makes the call {text}", *STYLES["warning"]), 4)


def _replays(review: VersionReview, console: Console) -> None:
    repeated = review.replays
    if repeated is None:
        return
    _heading("replay of recorded runs, without effects", console, repeated.summary())
    shown = repeated.shown()
    signs = {"differs": console.paint("≠", "red"), "unknown": console.paint("?", "yellow")}
    for run in shown[:MAX_REPLAYS]:
        sign = signs.get(run.outcome, console.paint("=", "green"))
        console.say(f"  {sign} {console.paint(run.run, 'cyan')}  {run.difference or run.files}", 6)
        if run.difference and run.files:
            console.say(f"    the recorded run {run.files}", 6)
    if len(shown) > MAX_REPLAYS:
        console.say(f"  … and {len(shown) - MAX_REPLAYS:,} more")


# Questions


async def _walk(service: ToolService, review: VersionReview | None, console: Console) -> int:
    """Ask for a decision about a version that was shown. After one, and for "next", show the next version of the queue."""
    seen: set[tuple[str, str]] = set()
    while True:
        if review is not None:
            seen.add((review.version.name, review.version.version))
            if not await _ask(service, review, console):
                return 0
        waiting = [s for s in await asyncio.to_thread(service.reviews.queue) if (s.tool, s.version) not in seen]
        if not waiting:
            console.note(f"no {'further ' if seen else ''}version waits for a review")
            return 0
        console.say()
        console.say(console.paint(f"{len(waiting):,} to review", "dim"))
        try:
            review = await service.review(waiting[0].tool, waiting[0].version)
        except Failure as failure:
            # One that can't be shown does not hide those behind it.
            seen.add((waiting[0].tool, waiting[0].version))
            review = None
            console.failure(failure.as_dict())
            continue
        show(review, console, time.time())


async def _ask(service: ToolService, review: VersionReview, console: Console) -> bool:
    """Ask what to do about a version until it is decided, or left. Returns whether to go on to the next one."""
    from albert_tools.surfaces.text.approval_prompt import answered

    pending = review.state.state in ("pending", "draft")
    choices = [*(_DECIDING if pending else ()), "next", "open source"]
    choices += ["whole texts"] if any(line.whole for line in review.lines) else []
    keys = {choice[0]: choice for choice in choices}
    while True:
        console.say()
        # The source may have pushed this off the screen. It must not be the author's words that stand above the question.
        console.say(f"{console.paint(visible(review.version.name), 'cyan', 'bold')}: {review.sentence}", 2)
        typed: str = answered(f"  {', '.join(choices)} or quit? [quit]").casefold()
        choice: str = keys.get(typed, typed)
        if choice in _DECIDING and choice in choices:
            decision = choice.replace(" ", "_")
            why = "" if decision not in REASONED else answered("  the reason, which the author will read? [none]")
            if decision in REASONED and not why:
                console.note("nothing was decided: a reason is needed")
                continue
            try:
                _decided(review, await _decide(service, review, decision, why), console)
            except Failure as failure:
                # Somebody else has decided, for example.
                console.failure(failure.as_dict())
            return True
        if choice in ("o", "open source", "open", "source"):
            console.say()
            print_source(visible_lines(review.version.source.rstrip("\n")), console, review.effects_of_lines)
        elif choice in ("w", "whole texts", "whole"):
            console.say()
            print_lines(review.lines, console, whole=True)
        else:
            return choice == "next"

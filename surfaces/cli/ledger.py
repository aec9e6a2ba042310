"""``albert ledger``: prints calls, decisions and results, and verifies that nobody changed the ledger. Exports and trims it."""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief, counted
from albert_tools.surfaces.cli.service_options import home_of, in_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.person import demand_person
from albert_tools.surfaces.text.times import seconds
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.model.record_types import Entry
    from albert_tools.store.record.record import Record

#: Kinds of entries that are shown. The other kinds serve the tables of the record.
KINDS = tuple(
    "checkpoint call result denied malformed repeated settled mode definition removal copied review policy rules_imported run "
    "asked waits answered approval_revoked session session_ended session_times queued taken run_changes batch schedule "
    "schedule_removed notified".split()
)

#: Options that apply to some actions only → their spelling and these actions.
_OPTIONS = {
    "count": ("-n", ("tail", "query")),
    "tool": ("--tool", ("tail", "query")),
    "denied": ("--denied", ("tail", "query")),
    "trace": ("--trace", ("tail", "query")),
    "since": ("--since", ("tail", "query", "export")),
    "anchor": ("--anchor", ("verify",)),
    "file": ("--file", ("verify",)),
    "older_than": ("--older-than", ("trim",)),
}
#: Entries that `tail` shows by default.
_TAIL = 20


def ledger(options: argparse.Namespace, console: Console) -> int:
    """Show, verify, export or trim the ledger. Returns 1 if `verify` finds a change."""
    for name, (written, actions) in _OPTIONS.items():
        if getattr(options, name) not in (None, False) and options.action not in actions:
            raise Usage(f"ledger {options.action} takes no {written}", f"{written} is for {' and '.join(actions)}")
    if options.action == "trim":
        demand_person("the ledger is trimmed")
    elif token() is not None:
        _demand_reading(options)
    with home_of(options).record as record:
        action = _ACTIONS.get(options.action, _show)
        return action(record, options, console)


def _demand_reading(options: argparse.Namespace) -> None:
    """Require that the session of ALBERT_SESSION may read the ledger."""
    in_service(options, lambda service: service.records((), session=token()))


def _show(record: Record, options: argparse.Namespace, console: Console) -> int:
    entries: Iterable[Entry] = _chosen(record, options)
    if options.action == "tail" or options.count is not None:
        entries = deque(entries, maxlen=options.count or _TAIL)
    if console.json:
        console.document({"ok": True, "entries": [_document(e) for e in entries]})
        return 0
    answers: dict[str, Entry] = {}
    for entry in entries:
        if entry.kind == "call" and entry.data.get("approval") and not answers:
            # The answers may be older than the entries that are shown.
            answers = {str(e.data.get("approval")): e for e in record.entries(("answered",))}
        console.say(_line(entry, console, answers))
    return 0


def _chosen(record: Record, options: argparse.Namespace) -> Iterator[Entry]:
    """The selected entries, oldest first. The result of a selected call is selected too."""
    wanted: set[str] = set()
    requests = None if options.trace is None else _requests(record, options)
    for entry in record.entries(KINDS, _time(options.since)):
        data = entry.data
        if requests is not None and _request_of(entry) not in requests:
            continue
        if options.tool is not None:
            if entry.kind == "result":
                if data.get("call") not in wanted:
                    continue
            elif data.get("tool") != options.tool:
                continue
            else:
                wanted.add(str(data.get("call")))
        if options.denied and entry.kind not in ("denied", "malformed"):
            continue
        yield entry


def _requests(record: Record, options: argparse.Namespace) -> set[str]:
    """The requests of a trace. Not all of their entries have it."""
    given = str(options.trace).lower()
    trace = given.split("-")[1] if given.count("-") == 3 else given
    if not re.fullmatch("[0-9a-f]{32}", trace):
        raise Usage(f"--trace {options.trace!r} is not a trace", "give its 32 hex digits, or a traceparent")
    entries = record.entries(KINDS, _time(options.since))
    return {_request_of(entry) for entry in entries if trace in str(entry.data.get("trace")).split("-")}


def _request_of(entry: Entry) -> str:
    """The id of the request that an entry is about: of its call, or of the run that the request began; or an id of the entry alone,
    if it is about no request."""
    return str(entry.data.get("call") or entry.data.get("run") or f"#{entry.n}").partition(":")[0]


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    with suppress(argparse.ArgumentTypeError):
        return datetime.now(UTC) - timedelta(seconds=seconds(text))
    try:
        since = datetime.fromisoformat(text)
    except ValueError:
        raise Usage(
            f"--since {text!r} is not a time", "write it like 30m, 2h, 2026-01-31 or 2026-01-31T12:00"
        ) from None
    return since if since.tzinfo is not None else since.replace(tzinfo=UTC)


def _document(entry: Entry) -> dict[str, Any]:
    # Do not even show the hash of a session's token.
    hidden = {"session": "hash", "checkpoint": "rows"}.get(entry.kind)
    data = {k: v for k, v in entry.data.items() if k != hidden}
    return {"at": entry.at, "n": entry.n, "kind": entry.kind, **data}


class _Form(NamedTuple):
    """How an entry is shown: mark, colour, text, and the field with the id that it is about.

    `more` is appended if the entry has the field `optional`.
    """

    mark: str
    colour: str
    text: str
    about: str = "call"
    optional: str = ""
    more: str = ""


#: The kinds of entries whose fields are shown as they are.
_FORMS = {
    "settled": _Form("!", "yellow", "{tool} was interrupted: {outcome}", optional="problem", more=": {problem}"),
    "asked": _Form("?", "yellow", "a person is asked: {message} ({rule_id})", "approval"),
    "waits": _Form("·", "dim", "{tool} waits for an answer or a worker"),
    "answered": _Form("!", "yellow", "{by} answered {choice}", "approval"),
    "approval_revoked": _Form("!", "yellow", "the approval was revoked", "approval"),
    "notified": _Form(
        "·", "dim", "the command of `notify` was run, notices: {count}", "", "problem", "; failed: {problem}"
    ),
    "run": _Form("·", "dim", "run of {tool} {state}{by_user}", "run", "approval", ", waits for {approval}"),
    "queued": _Form("·", "dim", "run of {tool} waits in the queue {queue}{by_user}", "run"),
    "taken": _Form("·", "dim", "the worker {worker} executes the run", "run"),
    "batch": _Form("+", "dim", "batch of {items} calls of {tool} in the queue {queue}", "batch"),
    "run_changes": _Form("·", "dim", "changes are kept", "run", "branch", " in the branch {branch}"),
    "schedule": _Form("+", "dim", "schedule {name} of {tool} made by {by}: {cron} {zone}", ""),
    "schedule_removed": _Form("+", "dim", "schedule {name} removed by {by}", ""),
    "session": _Form("·", "dim", "session for {client}", "session"),
    "session_ended": _Form("·", "dim", "session revoked", "session"),
    "session_times": _Form("·", "dim", "the session has other times", "session"),
    "checkpoint": _Form(
        "·", "dim", "the entries up to {last} were deleted; this is their result, part {part} of {parts}"
    ),
    "review": _Form("+", "dim", "{tool} is {state}, by {by}", "version", "why", ": {why}"),
    "copied": _Form("·", "dim", "{tool} was copied to {to} by {by}", "version"),
    "rules_imported": _Form("!", "yellow", "rules imported by {by}"),
    "mode": _Form("!", "yellow", "mode {from} → {to} by {by}", optional="cause", more=": {cause}"),
}


def _line(entry: Entry, console: Console, answers: Mapping[str, Entry]) -> str:
    """An entry as one line. `answers` maps approvals to the answers to their questions."""
    d, fields = entry.data, defaultdict(lambda: "None", {k: safe(str(v)) for k, v in entry.data.items()})
    fields["by_user"] = f", by {fields['user']}" if d.get("user") else ""
    ended, about = "green" if d.get("ok") else "red", "call"
    match entry.kind:
        case "call":
            # When a call is recorded, all its questions have been answered.
            mark, colour = "✓", "green"
            arguments = ", ".join(f"{k}={_short(v)}" for k, v in (d.get("arguments") or {}).items())
            rest = f"{fields['tool']}({safe(arguments)})  {console.paint(safe(_by(d, answers)), 'dim')}"
            if "ok" in d:
                # The call has only read, so this entry also has its outcome.
                rest += f"  {console.paint('→', ended)} {_outcome(d)}"
        case "denied":
            mark, colour = "✗", "red"
            message = str(d.get("message")).removeprefix(f"{d.get('tool')}: ")
            rest = f"{fields['tool']}: {safe(message)} ({safe(str(d.get('rule_id') or d.get('code')))})"
        case "malformed":
            mark, colour = "✗", "red"
            rest = f"malformed request, {fields['size_bytes']} bytes, {fields['hash'][:15]}"
            rest += f": {safe(', '.join(d.get('violations', ['it can not be parsed'])))}"
            rest += f"; {fields['skipped']} more have no entry" if d.get("skipped") else ""
        case "result":
            mark, colour, rest = "→", ended, _outcome(d)
        case "repeated":
            mark, colour = "=", ended
            what = "" if d.get("ok") else f", {fields['code']}"
            rest = f"{fields['tool']}: repeated request, got the result of {fields['of']}{what}"
        case "policy":
            mark, colour = ("·", "dim") if d.get("event") != "refused" else ("!", "red")
            rest = f"rules {safe(str(d.get('revision', ''))[:15])} {fields['event']}"
            rest += f": {fields['message']}" if d.get("message") else ""
        case "definition" | "removal":
            mark, colour = "+" if entry.kind == "definition" else "-", "dim"
            rest = f"{entry.kind} of {fields['tool']} {safe(str(d.get('version', ''))[:12])}".rstrip()
            rest += f" by the session {fields['by']}" if d.get("by") else ""
            rest += f" by {fields['user']}" if d.get("user") else ""
            rest += f" from {fields['from']}" if d.get("from") else ""
        case kind:
            mark, colour, text, about, optional, more = _FORMS[kind]
            rest = (text + (more if d.get(optional) else "")).format_map(fields)
            # The rules have activated a version that this user has defined.
            rest += f" (user {fields['user']})" if kind == "review" and d.get("user") else ""
    when, about = console.paint(entry.at[:19].replace("T", " "), "dim"), safe(str(d.get(about, "")))
    # Escape line breaks: a text from an agent must not look like another entry.
    return f"{when}  {about:<20}  {console.paint(mark, colour)} {rest}".replace("\n", "\\n").replace("\t", "\\t")


def _outcome(result: Mapping[str, Any]) -> str:
    what = "done" if result.get("ok") else f"{safe(str(result.get('code')))}: {safe(str(result.get('message')))}"
    effects = "".join(f", {_effect(e)}" for e in result.get("effects", ()) if e.get("kind") != "read")
    return f"{what} in {result.get('ms')} ms{effects}"


def _by(call: Mapping[str, Any], answers: Mapping[str, Entry]) -> str:
    """Who or what allowed a call: a rule, or a person's answer."""
    rule = str(call.get("rule_id"))
    if not call.get("approval"):
        return f"{rule}, a person said yes" if call.get("verdict") == "ask" else rule
    approval = str(call["approval"])
    answer = answers[approval].data if approval in answers else {}
    details = "".join(f", {answer[name]}" for name in ("choice", "by") if answer.get(name))
    return f"{rule}, by approval {approval}{details}"


def _effect(effect: dict[str, Any]) -> str:
    refused = f", refused ({effect['refused']})" if effect.get("refused") else ""
    about = effect.get("path") or effect.get("command") or effect.get("url") or ""
    return safe(f"{effect.get('kind')} {about}{refused}".strip())


def _short(value: Any) -> str:
    return brief(json.dumps(value, ensure_ascii=False), 40)


def _export(record: Record, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.store.record.export import exported

    for line in exported(record, _time(options.since)):
        console.value(line)
    return 0


def _anchor(record: Record, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.store.record.verify import make_anchor

    console.document(make_anchor(record))
    return 0


def _trim(record: Record, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.store.record.retention import MIN_DAYS, trim

    days = _days(options)
    if days < MIN_DAYS:
        raise Usage("that is less than a day", "rate limits and dedupe keys look back a day; give 1d or more")
    trimmed = trim(record, datetime.now(UTC) - timedelta(days=days))
    if console.json:
        console.document({"ok": True, **trimmed._asdict()})
        return 0
    if not trimmed.entries:
        console.say(f"nothing to delete: no entry is older than {days:g} days")
        return 0
    console.say(
        f"deleted {counted(trimmed.entries, 'entry', 'entries')}; the record has {trimmed.after:,} bytes, "
        f"before it had {trimmed.before:,}"
    )
    console.note("keep a new anchor elsewhere: `albert ledger anchor`")
    return 0


def _days(options: argparse.Namespace) -> float:
    if options.older_than is not None:
        try:
            return seconds(options.older_than) / 86400
        except argparse.ArgumentTypeError as error:
            raise Usage(f"--older-than: {error}", "write it like 90d") from None
    from albert_tools.engine.policy.settings import Governance, load_governance

    rules = load_governance(home_of(options).rules, None)
    assert isinstance(rules, Governance)
    if rules.keep_days is None:
        raise Usage(
            "no age is given",
            "give --older-than 90d, or put `records: {keep_days: 90}` into governance.yaml",
        )
    return rules.keep_days


def _verify(record: Record, options: argparse.Namespace, console: Console) -> int:
    from albert_tools.store.record.verify import verify

    if options.file is not None:
        return _verify_file(options, console)
    against = None
    if options.anchor is not None:
        try:
            against = json.loads(Path(options.anchor).read_bytes())
        except (OSError, ValueError) as error:
            raise Usage(
                f"the anchor {options.anchor!r} can't be read: {error}",
                "give a file with the output of `albert ledger anchor`",
            ) from None
    verification = verify(record.place, against)
    locked, refusal = False, None
    if verification.problems:
        # An attacker who can change the ledger can do more, so no call is allowed until a person has examined the problem.
        modes = home_of(options).modes()
        if modes.mode not in ("LOCKDOWN", "RECOVERY"):
            try:
                modes.switch("LOCKDOWN", "albert", f"the ledger was changed: {verification.problems[0]}")
                locked = True
            except Failure as failure:
                refusal = failure
    if console.json:
        document = {
            "ok": verification.ok,
            "entries": verification.entries,
            "trimmed": verification.trimmed,
            "problems": [*verification.problems],
        }
        not_locked = None if refusal is None else refusal.as_dict()
        console.document({**document, "unseen": verification.unseen, "locked": locked, "not_locked": not_locked})
        return 0 if verification.ok else 1
    for text in verification.problems:
        console.say(f"{console.paint('✗', 'red')} {safe(text)}")
    if verification.ok:
        console.say(f"the ledger is intact: {counted(verification.entries, 'entry', 'entries')}")
    else:
        console.say(f"the ledger was changed; intact entries before the first problem: {verification.entries:,}")
    if locked:
        console.say("the mode is LOCKDOWN now; when you have looked into it: albert mode RECOVERY")
    if refusal is not None:
        console.say(f"the mode could not be switched: {safe(refusal.message)}")
        console.say(f"  `albert mode LOCKDOWN` denies all calls; {safe(refusal.hint or 'try again')}", 2)
    console.say(console.paint(safe(verification.unseen), "dim"))
    return 0 if verification.ok else 1


def _verify_file(options: argparse.Namespace, console: Console) -> int:
    """Check an exported file. It says nothing about the record, so the mode stays."""
    from albert_tools.store.record.export import checked_lines

    try:
        with open(options.file, encoding="utf-8", newline="\n") as file:
            count, wrong, first = checked_lines(file)
    except (OSError, UnicodeError) as error:
        raise Usage(
            f"{options.file!r} can't be read: {error}", "give a file with the output of `albert ledger export`"
        ) from None
    if console.json:
        console.document({"ok": wrong is None, "entries": count, "line": wrong, "first": first})
    elif wrong is None:
        console.say(f"the file is intact: {counted(count, 'entry', 'entries')}")
        unseen = "entries that were cut off at its end can't be seen"
        if first not in (1, None):
            unseen = f"entry {first:,}, the first one, can't be checked; {unseen}"
        console.say(console.paint(unseen, "dim"))
    else:
        console.say(f"{console.paint('✗', 'red')} line {wrong} was changed, or lines before it are missing")
    return 0 if wrong is None else 1


_ACTIONS: Mapping[str, Callable[[Record, argparse.Namespace, Console], int]] = {
    "verify": _verify,
    "anchor": _anchor,
    "export": _export,
    "trim": _trim,
}

"""``tools``, ``search``, ``show`` and ``remove``: list, describe and remove tools."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from albert_tools.engine.authority.sessions import Session
from albert_tools.engine.describing import Description
from albert_tools.engine.listing import LIBRARY, Listed, first_line
from albert_tools.engine.model.definition import MODES, ToolDefinition, spell
from albert_tools.engine.model.describe import bounds_of, data_of, example_of, shape_of, timeout_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Manifest
from albert_tools.engine.model.messages import counted
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.reserved_names import NO_TOOL
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.policy.number_rules import ALL
from albert_tools.engine.review.manifest_view import effects_of_lines, lines
from albert_tools.engine.review.sentences import sentence
from albert_tools.grammar.wrap import flowing, unstyled
from albert_tools.surfaces.cli.manifest_text import effects_text, print_lines, print_source
from albert_tools.surfaces.cli.service_options import in_service
from albert_tools.surfaces.cli.session_tools import only_these, session_of_environment, token
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.hints import DIGITS, command_line
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.authority.reviews import VersionState
    from albert_tools.engine.model.protocols import Saved
    from albert_tools.service import ToolService

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}
_CONFINED = {
    "function": "runs in a process that can only compute",
    "command": "the commands that it starts run in a sandbox",
    "": "none",
}
#: Cells of the longest verdict.
_VERDICT = 5


def list_tools(options: argparse.Namespace, console: Console) -> int:
    """List primitives by family, then saved tools. Tools that the mode denies are listed only with ``--all``."""

    async def collect(
        service: ToolService,
    ) -> tuple[list[Listed], list[Primitive], tuple[str, ...], Session | None, int]:
        from albert_tools.checkup import mistakes
        from albert_tools.engine.policy.modes import mode_named

        session = session_of_environment(service)
        mode = mode_named(options.mode) if options.mode else None
        covers = service.coverage(token())
        listed = [t for t in await service.list(hidden=True, mode=mode) if covers(t.name)]
        primitives = [p for p in service.registry.primitives() if covers(p.name)]
        rules = service.governance
        wrong = 0 if isinstance(rules, Failure) or session is not None else len(mistakes(service, rules))
        problems = service.registry.problems if covers(NO_TOOL) else ()
        return listed, primitives, problems, session, wrong

    all_tools, primitives, problems, session, wrong = in_service(options, collect)
    if options.markdown:
        from albert_tools.surfaces.cli.primitives_page import primitives_page

        if console.json:
            raise Usage("give either --markdown or --json")
        console.write(primitives_page(primitives, "# Tools\n"))
        _problems(problems, console)
        return 0
    shown = [t for t in all_tools if options.all or not t.hidden]
    hidden = len(all_tools) - len(shown)
    mode = next((t.policy.get("mode") for t in all_tools if t.policy), None)
    if console.json:
        tools = [asdict(t) for t in shown]
        document = {"ok": True, "mode": mode, "tools": tools, "hidden": hidden, "problems": list(problems)}
        console.document({**document, **({"session": session.id} if session is not None else {})})
        return 0
    _table(shown, console)
    if session is not None:
        console.note(only_these(session))
    elif not any(t.kind == "composite" for t in all_tools):
        console.note("there are no saved tools yet; `albert define FILE` saves one")
    if wrong > len(problems):
        warning = console.paint("warning", "yellow", err=True)
        console.note(f"{warning}: `albert policy check` has findings about the rules")
    if hidden:
        console.note(f"not listed: {hidden:,} denied in {mode}; --all lists them")
    without = next((t.policy for t in all_tools if t.policy.get("rationale_code") == "unavailable"), None)
    if without is not None:
        console.note(console.paint(f"everything is denied: {safe(without['message'])}", "red", err=True))
    _problems(problems, console)
    return 0


def _problems(problems: tuple[str, ...], console: Console) -> None:
    for problem in problems:
        console.note(f"{console.paint('missing', 'red', err=True)}: {safe(problem)}")


def search(options: argparse.Namespace, console: Console) -> int:
    """List the tools whose name or description matches a text."""

    async def find(service: ToolService) -> tuple[list[Listed], str | None]:
        matches = await service.search(" ".join(options.text), session=token())
        return matches, service.library.problem if service.library is not None else None

    matches, problem = in_service(options, find)
    problems = (f"the tools of the library: {problem}",) if problem is not None else ()
    if console.json:
        console.document({"ok": True, "tools": [asdict(t) for t in matches], "problems": [*problems]})
        return 0
    _table(matches, console)
    if not matches:
        console.note("nothing found")
    if shared := next((t.name for t in matches if t.kind == LIBRARY), None):
        console.note(f"a tool of the library can be called here after `{command_line(options.home, 'pull', shared)}`")
    _problems(problems, console)
    return 0


def _table(listed: list[Listed], console: Console) -> None:
    """Print each tool with its decision, description and effects."""
    groups: dict[str, list[Listed]] = {}
    for tool in listed:
        groups.setdefault("saved tools" if tool.kind == "composite" else tool.family, []).append(tool)
    width = max((len(t.name) for t in listed), default=0)
    # On a narrow terminal the description is printed below the name.
    below = console.out_width is not None and width + _VERDICT + 6 >= console.out_width // 2
    for i, (heading, tools) in enumerate(groups.items()):
        if i:
            console.say()
        console.say(console.paint(safe(heading), "bold"))
        for t in tools:
            name, verdict = console.paint(safe(t.name), "cyan"), _verdict(t.policy, console)
            gap = " " * (width - len(t.name))
            text = f"{safe(t.description)}{_state(t, console)}{_effects(t, console)}".strip()
            if below:
                console.say(f"  {name}  {verdict}".rstrip())
                console.say(f"    {text}", 4)
            else:
                console.say(f"  {name}{gap}  {_padded(verdict)}  {text}", width + _VERDICT + 6)


def _state(tool: Listed, console: Console) -> str:
    """Describes what is wrong with a saved tool."""
    if tool.problem:
        return "  " + console.paint(f"damaged: {safe(tool.problem)}", "red")
    if tool.outdated:
        return "  " + console.paint(f"outdated: {safe(tool.outdated)}", "yellow")
    if tool.changed:
        return "  " + console.paint(f"calls an older {', '.join(map(safe, tool.changed))}", "yellow")
    if tool.active and tool.active != tool.version:
        return "  " + console.paint("active in an older version", "green")
    if tool.state == "active":
        return "  " + console.paint(f"active, approved by {visible(tool.decided_by)}", "green")
    words = {"pending": "not reviewed", "draft": "sent back", "deprecated": "approval ended", "revoked": "revoked"}
    return "  " + console.paint(words[tool.state], "yellow") if tool.state in words else ""


def _effects(tool: Listed, console: Console) -> str:
    return f"  [{effects_text(tool.effects, console)}]" if tool.effects else ""


def _verdict(policy: Mapping[str, Any], console: Console) -> str:
    """allow, ask or deny, in colour; ``off`` for a primitive that the owner must allow first; empty if there is no decision.

    A decision to allow is followed by what a person is asked about nevertheless.
    """
    verdict = policy.get("verdict", "")
    word = "off" if policy.get("rationale_code") == "off_by_default" else verdict
    asks = f"; {console.paint(', '.join(policy['asks']) + ' ask', 'yellow')}" if policy.get("asks") else ""
    return f"{console.paint(word, _COLOURS[verdict])}{asks}" if verdict else ""


def _padded(verdict: str) -> str:
    return verdict + " " * (_VERDICT - len(unstyled(verdict)))


def show(options: argparse.Namespace, console: Console) -> int:
    """Describe a tool: purpose, parameters, rules, and the source of a saved tool."""

    description = in_service(options, lambda service: service.describe(options.name, options.version, session=token()))
    newest = next((v.version for v in description.versions if v.current), None)
    example = call_of(description.definition, newest)
    if console.json:
        console.document({"ok": True, **description.as_dict(), "example": example})
        return 0
    d = description.definition
    kind = d.kind if d.kind == "composite" else f"{d.kind} of the family {safe(d.family)}"
    console.say(console.paint(safe(d.name), "cyan", "bold") + f"  {kind}")
    console.say()
    console.say(safe(flowing(d.description) if console.out_width is not None else d.description))
    console.say()
    _parameters(d, console)
    console.say()
    if d.manifest is not None:
        _what_it_can_do(d.manifest, console)
    for name, text in _facts(description, console):
        console.say(f"{name.ljust(8)} {text}", 9)
    for callee in description.calls:
        state = ""
        if callee in description.changed:
            now = description.newest[callee.name]
            state = console.paint(f"  an older version; {f'now {now[:DIGITS]}' if now else 'since removed'}", "yellow")
        kind = console.paint(f"{callee.kind} {callee.version[:DIGITS]}", "dim")
        console.say(f"calls    {safe(callee.name)}  {kind}{state}", 9)
    if d.kind == "composite":
        fits = console.out_width is None or console.out_width >= len(d.version) + 9
        older = "" if newest == d.version else "  removed" if newest is None else "  not the newest"
        console.say(f"depth    {d.depth}")
        console.say(f"version  {d.version if fits else d.version[:DIGITS]}{console.paint(older, 'yellow')}", 9)
        by = next((_by(description, v) for v in description.versions if v.version == d.version), "")
        console.say(f"saved    {_when(description.created)}{by}")
        if description.total > 1 or newest is None:
            _history(description, console)
    console.say(f"call it  {console.paint(safe(example), 'green')}", 11)
    if description.outdated:
        console.say(console.paint(f"outdated: {safe(description.outdated)}", "yellow"), 2)
    replaced = [safe(c.name) for c in description.changed if description.newest[c.name]]
    if replaced:
        console.say()
        older = (
            f"it calls an older {', '.join(replaced)}: define {safe(d.name)} again from its source to call the newest"
        )
        console.say(console.paint(older, "yellow"), 2)
    if d.manifest is not None:
        console.say()
        print_source(description.source, console, effects_of_lines(d.manifest))
    return 0


def help_of(options: argparse.Namespace, console: Console) -> int:
    """``run NAME --help``: what the tool does, its parameters, a command line that calls it, and the options of ``run``."""

    described = in_service(options, lambda service: service.describe(options.name, options.version, session=token()))
    d = described.definition
    console.say(f"{console.paint(safe(d.name), 'cyan', 'bold')}  {safe(first_line(d.description))}", 4)
    console.say()
    _parameters(d, console)
    console.say(f"  {console.paint(safe(call_of(d, None if options.version else d.version)), 'green')}", 4)
    console.say()
    usage = options.parser.format_help()
    if console.json:
        console.document({"ok": True, "signature": d.signature(), "parameters": d.parameters_schema(), "help": usage})
    console.say(usage.rstrip())
    return 0


def _parameters(d: ToolDefinition, console: Console) -> None:
    for p in d.parameters:
        name, shape = safe(p.name), safe(shape_of(p))
        bounds = bounds_of(p.schema)
        limits = console.paint(f"  ({safe(bounds)})", "dim") if bounds else ""
        console.say(f"  {console.paint(name, 'bold')}{shape.removeprefix(name)}{limits}", 6)
        if p.description:
            console.say(f"      {safe(p.description)}", 6)
    console.say(f"  {console.paint('returns', 'bold')} {safe(spell(d.result))}", 6)


def _facts(description: Description, console: Console) -> Iterator[tuple[str, str]]:
    """The effects of the tool and the rules about it. Each name has at most eight letters."""
    d, policy = description.definition, description.policy
    yield "effects", effects_text(d.effects, console) or "none"
    if description.review is not None:
        yield "review", _reviewed(description.review)
    if policy:
        mode = f" in {policy['mode']}" if policy.get("mode") else ""
        why = f": {safe(policy['message'])}" if policy["message"] else ""
        yield "now", f"{_verdict(policy, console)}{mode}{why}  {console.paint(safe(policy['rule_id']), 'dim')}"
        if policy.get("hint"):
            yield "", safe(policy["hint"])
    if d.kind == "composite":
        yield "", "each of its calls is judged separately"
    if d.kind == "primitive":
        yield "category", f"{d.category}, risk {d.risk}"
        yield "modes", "all" if set(d.allowed_modes) == set(MODES) else ", ".join(d.allowed_modes)
        yield "approval", "asks a person each time" if d.approval else "only if the rules demand it"
        yield "sandbox", _CONFINED[description.confined]
    allowed = description.bounds.get("timeout_seconds", d.timeout)
    less = f"; {timeout_of(allowed)} by the rules" if allowed < d.timeout else ""
    yield "timeout", f"{timeout_of(d.timeout)}{less}"
    yield "rate", _rate(d, description.bounds.get("calls_per_hour", {}))
    if d.idempotent:
        yield "repeat", "harmless: a passing failure is retried once"
    for invariant in d.invariants:
        yield "one of", f"{', '.join(invariant.names)}, {'exactly' if invariant.needed else 'at most'}"
    judged = [f"{safe(name)} ({what})" for name, what in description.resources.items()]
    if judged:
        yield "judged", ", ".join(judged)
    data = data_of(d)
    if data:
        yield "data", safe(data.replace("`", ""))


def _what_it_can_do(manifest: Manifest, console: Console) -> None:
    """Print the manifest of a saved tool."""
    console.say(console.paint(sentence(manifest), "bold"))
    print_lines(lines(manifest), console)
    console.say()


def _reviewed(state: VersionState) -> str:
    """The state of a version, and who decided it: ``active: approved by ada, 2026-01-31 12:00:00 UTC``."""
    if state.state == "pending":
        return f"pending: {visible(state.why) or 'nobody has approved this version'}"
    return f"{state.state}: {state.decided} by {visible(state.by)}, {_when(state.time)}{visible(state.reason)}"


def _rate(definition: ToolDefinition, windows: Mapping[str, int]) -> str:
    own = definition.rate_limit
    limits = [f"{counted(own, 'call')} an hour"] if own is not None else []
    for window, calls in windows.items():
        kind, _, name = window.partition(":")
        if (kind, calls) != ("tool", own):
            of = {"tool": "", ALL: " of all tools together"}.get(kind, f" of all of {safe(name)} together")
            limits.append(f"{counted(calls, 'call')} an hour{of} by the rules")
    return "; ".join(limits) or "no limit"


def call_of(definition: ToolDefinition, newest: str | None = None) -> str:
    """A command line that calls the tool, quoted for a shell. It names the version, unless that is the `newest`."""
    words = ["albert", "run", definition.name]
    if definition.kind == "composite" and definition.version != newest:
        words += ["--version", definition.version[:DIGITS]]
    for name, value in example_of(definition).items():
        parameter = definition.parameter(name)
        of_text = isinstance(value, str) and parameter is not None and _takes_text(parameter.schema)
        # A text that begins with @ would be read as the name of a file.
        plain = f"{name}={'@' if of_text and value.startswith('@') else ''}{value}"
        of_number = parameter is not None and parameter.schema.get("type") in ("integer", "number", "boolean")
        words.append(plain if of_text else f"{name}{'=' if of_number else ':='}{json.dumps(value, ensure_ascii=False)}")
    return shlex.join(words)


def _takes_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" or all(isinstance(v, str) for v in schema.get("enum", [0]))


def _history(description: Description, console: Console) -> None:
    """Print the versions, newest first."""
    console.say()
    console.say(console.paint("versions, newest first", "bold"))
    for v in description.versions:
        now = "  " + console.paint("current", "green") if v.current else ""
        console.say(f"  {v.version[:DIGITS]}  {_when(v.created)}{now}{_by(description, v)}", DIGITS + 4)
    if description.total > len(description.versions):
        console.say(f"  … and {description.total - len(description.versions):,} more")


def _by(description: Description, version: Saved) -> str:
    """The session and the user of the database who have defined a version, as far as they are known."""
    session, user = version.author, description.users.get(version.version, "")
    who = [name for name in (session and f"the session {session}", user) if name]
    return f"  by {safe(' of '.join(who))}" if who else ""


def _when(created: str) -> str:
    """An ISO 8601 time in a readable form. Any other text is made safe."""
    try:
        return datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError):
        return safe(created)


def remove(options: argparse.Namespace, console: Console) -> int:
    """Remove a saved tool."""

    async def remove_it(service: ToolService) -> tuple[str, tuple[str, ...]]:
        await service.remove(options.name, session=token())
        versions, _ = service.store.history(options.name, 1)
        return versions[0].version if versions else "", await service.callers(options.name, session=token())

    version, callers = in_service(options, remove_it)
    if console.json:
        console.document({"ok": True, "removed": options.name, "version": version, "callers": list(callers)})
    else:
        still = f"; {safe(', '.join(callers))} still call{'s' if len(callers) == 1 else ''} it" if callers else ""
        console.say(f"removed {safe(options.name)}; its versions are kept{still}")
        console.say(f"  `albert show {safe(options.name)} --version {version[:DIGITS]}` shows the last one", 2)
    return 0

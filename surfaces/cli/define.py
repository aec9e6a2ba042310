"""``define``, ``check`` and ``fmt``: the commands for source files."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief, listed
from albert_tools.engine.model.replace_file import replace_file
from albert_tools.engine.model.visible_text import visible
from albert_tools.surfaces.cli.input_text import read_text
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.exit_codes import DONE, FAILED, exit_of
from albert_tools.surfaces.text.hints import DIGITS, with_hint
from albert_tools.surfaces.text.usage_error import Usage

if TYPE_CHECKING:
    from albert_tools.engine.authoring import Defined
    from albert_tools.grammar.diagnostic import Diagnostic
    from albert_tools.grammar.source_error import SourceError
    from albert_tools.service import ToolService

#: Bytes that are read of a file. The limit is far above that of a source, so the checker itself reports most oversized files.
MAX_FILE = 16 * 1024 * 1024

#: Diagnostics that are shown for one file. A file that is not a source has thousands.
MAX_SHOWN = 20
#: Callers that a warning names.
MAX_CALLERS = 10
#: Cells of a line of diagnostics if stdout is a pipe.
PIPE_WIDTH = 100

_FORM = 'a structured definition is {"name": …, "description": …, "parameters": […], "implementation": "return …"}'


def define(options: argparse.Namespace, console: Console) -> int:
    """Check each file, run its examples and save it, callees first."""
    # Read the files before asyncio runs. Under asyncio, Ctrl-C has no effect while the user types.
    sources, unread = _read_all(options.files, console, lambda name: options.form or name.endswith(".json"))
    return asyncio.run(_define(options, console, sources, unread))


@asynccontextmanager
async def _service(options: argparse.Namespace) -> AsyncIterator[ToolService]:
    """A service whose judging process loads during the imports of the service."""
    from albert_tools.engine.judging.judging_limits import JUDGING
    from albert_tools.engine.sandbox.worker.spawn import discard, spawn_zygote

    spawned = spawn_zygote(JUDGING)
    try:
        service = open_service(options)
    except BaseException:
        discard(spawned)
        raise
    async with service:
        await service.prepare_judge(spawned)
        yield service


async def _define(
    options: argparse.Namespace, console: Console, sources: list[tuple[str, str]], unread: list[dict[str, Any]]
) -> int:
    from albert_tools.grammar.source_error import SourceError

    documents = list(unread)
    # The exit codes of the files that were not saved.
    exits = {FAILED} if unread else set()
    saved: list[Defined] = []
    async with _service(options) as service:
        for name, source in await _in_order(sources, service):
            try:
                defined = await service.define_version(
                    source,
                    lambda doing, name=name: console.progress(f"{safe(name)}: {doing} …"),  # type: ignore[misc]
                    session=token(),
                )
            except SourceError as error:
                exits.add(FAILED)
                console.progress("")
                documents.append(_refused(name, error.diagnostics))
                _show(error.diagnostics, source, name, console)
                continue
            except Failure as failure:
                exits.add(exit_of(failure))
                console.progress("")
                documents.append({"ok": False, "file": name, "error": failure.as_dict()})
                if not console.json:
                    console.failure(with_hint(failure.as_dict()), f"{name}: ")
                    _show_examples(failure, console)
                continue
            console.progress("")
            _show(defined.warnings, source, name, console)
            saved.append(defined)
            d = defined.version.definition
            documents.append(
                {
                    "ok": True,
                    "file": name,
                    "name": d.name,
                    "version": defined.version.version,
                    "signature": d.signature(),
                    "outcome": defined.outcome,
                    "replaced": defined.replaced,
                    "callers": [],
                    "warnings": [w.as_dict() for w in defined.warnings],
                }
            )
            digits = defined.version.version[:DIGITS]
            if defined.replaced:
                digits += f" in place of {defined.replaced[:DIGITS]}"
            console.say(
                f"{console.paint(defined.outcome, 'green')} {safe(d.signature())}  {console.paint(digits, 'dim')}", 4
            )
            state = service.reviews.of(defined.version)
            if state.state in ("draft", "revoked") and not console.json:
                console.note(f"  {state.decided} by {visible(state.by + state.reason)}")
    _warn_callers(saved, documents, console)
    _finish(console, documents, len(options.files))
    return DONE if not exits else exits.pop() if len(exits) == 1 else FAILED


def _warn_callers(saved: list[Defined], documents: list[dict[str, Any]], console: Console) -> None:
    """Warn about tools that still call an older version, except tools that this command saves again later."""
    order = [d.version.name for d in saved]
    for i, defined in enumerate(saved):
        callers = [c for c in defined.callers if c not in order[i + 1 :]]
        if not callers:
            continue
        name = defined.version.name
        next(d for d in documents if d.get("version") == defined.version.version)["callers"] = callers
        if not console.json:
            several = len(callers) > 1
            shown = listed(callers, MAX_CALLERS)
            console.note(
                f"{console.paint('warning', 'yellow', err=True)}: {shown} still call{'' if several else 's'} an older"
                f" {name}; define {'them' if several else 'it'} again, or use `albert upgrade`, to call this one"
            )


def check(options: argparse.Namespace, console: Console) -> int:
    """Check each file as if the other files were saved. Saves and runs nothing."""
    sources, unread = _read_all(options.files, console, lambda name: name.endswith(".json"))
    return asyncio.run(_check(options, console, sources, unread))


async def _check(
    options: argparse.Namespace, console: Console, sources: list[tuple[str, str]], documents: list[dict[str, Any]]
) -> int:
    from albert_tools.grammar.diagnostic import Severity

    async with _service(options) as service:
        ordered = await _in_order(sources, service)
        checkups = await service.check_together([source for _, source in ordered], session=token())
        for (name, source), checkup in zip(ordered, checkups, strict=True):
            diagnostics = checkup.diagnostics
            wrong = any(d.severity == Severity.ERROR for d in diagnostics)
            _show(diagnostics, source, name, console)
            if wrong:
                documents.append(_refused(name, diagnostics))
            else:
                n = checkup.examples
                documents.append(
                    {"ok": True, "file": name, "diagnostics": [d.as_dict() for d in diagnostics], "examples": n}
                )
                later = f"; define runs its {n:,} examples" if n > 1 else "; define runs its example" if n else ""
                console.say(f"{console.paint('good', 'green')} {safe(name)}{later}", 2)
    return _finish(console, documents, len(options.files))


def fmt(options: argparse.Namespace, console: Console) -> int:
    """Write each file in canonical form. With ``--check``, report files that are not canonical."""
    from albert_tools.grammar.source_error import SourceError

    sources, documents = _read_all(options.files, console)
    for (name, source), text in zip(sources, asyncio.run(_formatted([source for _, source in sources])), strict=True):
        if isinstance(text, SourceError):
            documents.append(_refused(name, text.diagnostics))
            _show(text.diagnostics, source, name, console)
            continue
        changed = text != source
        documents.append({"ok": not (changed and options.check), "file": name, "changed": changed})
        if name == "-" and not options.check and not options.diff:
            if not console.json:
                console.value(text)
            continue
        if options.diff and changed:
            diff = difflib.unified_diff(source.splitlines(True), text.splitlines(True), name, name)
            if console.json:
                documents[-1]["diff"] = "".join(diff)
            else:
                console.value("".join(diff))
        if changed and options.check:
            console.note(f"{safe(name)} would be changed")
        elif changed and not options.diff:
            try:
                _replace(Path(name), text)
            except Failure as failure:
                documents[-1] = {"ok": False, "file": name, "error": failure.as_dict()}
                if not console.json:
                    console.failure(failure.as_dict())
                continue
            console.note(f"changed {safe(name)}")
    return _finish(console, documents, len(options.files))


async def _formatted(sources: list[str]) -> list[str | SourceError]:
    """Each source in canonical form, or the reason why it has none."""
    from albert_tools.engine.judging.judging_limits import FORMATTING, JUDGING
    from albert_tools.engine.sandbox.worker.spawn import spawn_zygote

    spawned = spawn_zygote(JUDGING)
    from albert_tools.engine.judging.source_judge import SourceJudge
    from albert_tools.grammar.source_error import SourceError

    formatted: list[str | SourceError] = []
    judge = SourceJudge(FORMATTING)
    try:
        await judge.start(spawned)
        for source in sources:
            try:
                formatted.append(await judge.format(source))
            except SourceError as error:
                formatted.append(error)
    finally:
        await judge.close()
    return formatted


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically and preserve its mode.

    Raises:
        Failure: `io_error`.
    """
    try:
        target = path.resolve()
        temporary = target.with_name(f".albert-fmt-{os.urandom(8).hex()}")
        replace_file(target, text.encode(), temporary, target.stat().st_mode & 0o777)
    except OSError as error:
        raise Failure("io_error", f"{str(path)!r} can't be written: {error.strerror}") from error


def _read_all(
    names: list[str], console: Console, is_form: Callable[[str], bool] = lambda _: False
) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
    """Returns name and source of each readable file, and a JSON document for each of the other files.

    A structured definition, as `is_form` says of a name, is turned into a source.
    """
    sources, unread = [], []
    for name in names:
        try:
            where = ""
            text = read_text(name, MAX_FILE)
            # The messages about a file that can't be read name it.
            where = f"{name}: "
            sources.append((name, _form(text) if is_form(name) else text))
        except Failure as failure:
            unread.append({"ok": False, "file": name, "error": failure.as_dict()})
            if not console.json:
                console.failure(with_hint(failure.as_dict()), where)
    return sources, unread


def _form(text: str) -> str:
    """Returns the source that a structured definition describes.

    Raises:
        Failure: `invalid_source`: the text is not a JSON object; `invalid_arguments`: the fields are wrong.
    """
    from albert_tools.engine.structured import render_source

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure("invalid_source", f"it is not JSON: {error}", hint=_FORM) from error
    if not isinstance(value, dict):
        raise Failure("invalid_source", "it is not a JSON object", hint=_FORM)
    return render_source(value)


async def _in_order(sources: list[tuple[str, str]], service: ToolService) -> list[tuple[str, str]]:
    """Sorts files so that callees come before their callers. A file with syntax errors is reported later, when it is checked.

    Raises:
        Usage: the files call each other in a circle.
    """
    if len(sources) < 2:
        return sources
    defined_in: dict[str, int] = {}
    calls: list[set[str]] = []
    for i, (_, source) in enumerate(sources):
        outline = await service.outline(source)
        for tool in outline.tools:
            defined_in.setdefault(tool, i)
        calls.append(set(outline.calls))
    ordered: list[int] = []
    visited: set[int] = set()

    def visit(i: int, above: tuple[int, ...]) -> None:
        if i in visited:
            return
        if i in above:
            circle = " → ".join(sources[j][0] for j in (*above[above.index(i) :], i))
            raise Usage(f"these files call each other in a circle: {circle}; saved tools can't be recursive")
        for name in sorted(calls[i]):
            if name in defined_in and defined_in[name] != i:
                visit(defined_in[name], (*above, i))
        visited.add(i)
        ordered.append(i)

    for i in range(len(sources)):
        visit(i, ())
    return [sources[i] for i in ordered]


def _refused(name: str, diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    return {"ok": False, "file": name, "diagnostics": [d.as_dict() for d in diagnostics]}


def _show(diagnostics: tuple[Diagnostic, ...], source: str, name: str, console: Console) -> None:
    if console.json or not diagnostics:
        return
    from albert_tools.grammar.listing import render
    from albert_tools.grammar.source_text import MAX_SOURCE_BYTES

    # An oversized source has only one diagnostic, at its start.
    text = render(
        diagnostics,
        source[: MAX_SOURCE_BYTES + 1],
        "stdin" if name == "-" else name,
        console.err_colour,
        console.err_width or PIPE_WIDTH,
        fold=console.err_width is not None,
        limit=MAX_SHOWN,
    )
    print(text, file=sys.stderr)


def _show_examples(failure: Failure, console: Console) -> None:
    for problem in failure.details.get("examples", ()):
        for part in ("expected", "got"):
            if part in problem:
                shown = json.dumps(problem[part], ensure_ascii=False)
                console.note(f"  line {problem['line']:,} {part}: {safe(brief(shown, 400))}", 4)


def _finish(console: Console, documents: list[dict[str, Any]], files: int) -> int:
    """Print the JSON document, or a hint. Returns the exit code."""
    good = all(d["ok"] for d in documents)
    if console.json:
        console.document(documents[0] if files == len(documents) == 1 else {"ok": good, "files": documents})
    else:
        refused = [d for document in documents for d in document.get("diagnostics", ()) if not document["ok"]]
        code = next((d["code"] for d in refused if d["severity"] == "error"), None)
        if code is not None:
            console.note(f"`albert help {code}` says more")
    return 0 if good else 1

"""``define``, ``check`` and ``fmt``: what works on source files."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.cli.console import Console, safe
from albert_tools.surfaces.cli.usage import Usage

if TYPE_CHECKING:
    from albert_tools.grammar.diagnostic import Diagnostic

#: Far above the language's own cap, which then says the rest; what is larger isn't read to its end.
MAX_FILE = 16 * 1024 * 1024

_FORM = 'a structured definition is {"name": …, "description": …, "parameters": […], "implementation": "return …"}'


def define(options: argparse.Namespace, console: Console) -> int:
    """Check, try and save each file, callees first."""
    return asyncio.run(_define(options, console))


async def _define(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.grammar.diagnostic import SourceError
    from albert_tools.service import ToolService

    documents: list[dict[str, Any]] = []
    good = True
    sources, unread = _read_all(options.files, console)
    documents += unread
    good = not unread
    async with ToolService.open(home=options.home, workspace=options.workspace) as service:
        for name, source in _in_order(sources):
            try:
                if options.form:
                    source = _form(name, source)
                version, warnings = await service.define_version(
                    source,
                    lambda doing, name=name: _progress(console, name, doing),  # type: ignore[misc]
                )
            except SourceError as error:
                good = False
                _progress(console, "", "")
                documents.append(_refused(name, error.diagnostics))
                _show(error.diagnostics, source, name, console)
                continue
            except Failure as failure:
                good = False
                _progress(console, "", "")
                documents.append({"ok": False, "file": name, "error": failure.as_dict()})
                if not console.json:
                    console.failure(failure.as_dict(), f"{name}: ")
                    _show_examples(failure, console)
                continue
            _progress(console, "", "")
            _show(warnings, source, name, console)
            d = version.definition
            documents.append(
                {
                    "ok": True,
                    "file": name,
                    "name": d.name,
                    "version": version.version,
                    "signature": d.signature(),
                    "warnings": [w.as_dict() for w in warnings],
                }
            )
            console.say(
                f"{console.paint('saved', 'green')} {d.signature()}  {console.paint(version.version[:12], 'dim')}"
            )
    _finish(console, documents, len(options.files))
    return 0 if good else 1


def check(options: argparse.Namespace, console: Console) -> int:
    """Check each file; nothing is saved or run."""
    return asyncio.run(_check(options, console))


async def _check(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.grammar.diagnostic import Severity
    from albert_tools.service import ToolService

    sources, documents = _read_all(options.files, console)
    good = not documents
    async with ToolService.open(home=options.home, workspace=options.workspace) as service:
        for name, source in sources:
            found = await service.check(source)
            wrong = any(d.severity == Severity.ERROR for d in found)
            good = good and not wrong
            _show(found, source, name, console)
            if wrong:
                documents.append(_refused(name, found))
            else:
                documents.append({"ok": True, "file": name, "diagnostics": [d.as_dict() for d in found]})
                console.say(f"{console.paint('good', 'green')} {safe(name)}")
    _finish(console, documents, len(options.files))
    return 0 if good else 1


def fmt(options: argparse.Namespace, console: Console) -> int:
    """Write each file in canonical form; with ``--check`` only say which aren't."""
    from albert_tools.grammar.diagnostic import SourceError
    from albert_tools.grammar.unparse import format_source

    sources, documents = _read_all(options.files, console)
    good = not documents
    for name, source in sources:
        try:
            text = format_source(source)
        except SourceError as error:
            good = False
            documents.append(_refused(name, error.diagnostics))
            _show(error.diagnostics, source, name, console)
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
            good = False
            console.note(f"{safe(name)} would be changed")
        elif changed and not options.diff:
            try:
                _replace(Path(name), text)
            except Failure as failure:
                good = False
                documents[-1] = {"ok": False, "file": name, "error": failure.as_dict()}
                if not console.json:
                    console.failure(failure.as_dict())
                continue
            console.note(f"changed {safe(name)}")
    _finish(console, documents, len(options.files))
    return 0 if good else 1


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all, with the mode it had.

    Raises:
        Failure: `io_error`.
    """
    try:
        target = path.resolve()
        mode = target.stat().st_mode & 0o777
        with tempfile.NamedTemporaryFile(
            "w", dir=target.parent, prefix=".albert-fmt-", delete=False, encoding="utf-8"
        ) as file:
            temporary = Path(file.name)
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                temporary.chmod(mode)
                temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise Failure("io_error", f"{str(path)!r} can't be written: {error.strerror}") from error


def _read_all(names: list[str], console: Console) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
    """The files that can be read, and a document for each that can't."""
    found, unread = [], []
    for name in names:
        try:
            found.append((name, _read(name)))
        except Failure as failure:
            unread.append({"ok": False, "file": name, "error": failure.as_dict()})
            if not console.json:
                console.failure(failure.as_dict())
    return found, unread


def _read(name: str) -> str:
    try:
        if name == "-":
            if sys.stdin is None:
                raise Failure("io_error", "there is no stdin")
            data = sys.stdin.buffer.read(MAX_FILE + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise Failure("io_error", f"{name!r} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise Failure("io_error", f"{name!r} is not a path: {error}") from error
    if len(data) > MAX_FILE:
        raise Failure("too_large", f"{name!r} is larger than {MAX_FILE:,} bytes, which no source is")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Failure("encoding_error", f"{name!r} is not UTF-8 text: byte {error.start} can't be read") from error


def _form(name: str, text: str) -> str:
    """The source that a structured definition stands for; from there on it is a source like any other.

    Raises:
        Failure: `invalid_source`, or `invalid_arguments` with what is wrong in the form.
    """
    from albert_tools.engine.execute.structured import render_source

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure("invalid_source", f"it is not JSON: {error}", hint=_FORM) from error
    if not isinstance(value, dict):
        raise Failure("invalid_source", "it is not a JSON object", hint=_FORM)
    return render_source(value)


def _in_order(sources: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Files that others call come first; what can't be parsed keeps its place and says why when its turn comes.

    Raises:
        Usage: they call each other in a circle.
    """
    if len(sources) < 2:
        return sources
    from albert_tools.engine.check.facts import tool_name
    from albert_tools.grammar import tree
    from albert_tools.grammar.parse import parse

    makes: dict[str, int] = {}
    calls: list[set[str]] = []
    for i, (_, source) in enumerate(sources):
        module = parse(source).module
        found: set[str] = set()
        if module is not None:
            for node in tree.walk(module):
                if isinstance(node, tree.Call) and (name := tool_name(node.func)):
                    found.add(name)
            for stmt in module.body:
                if isinstance(stmt, tree.FunctionDef) and not stmt.name.startswith("_"):
                    makes.setdefault(stmt.name, i)
        calls.append(found)
    ordered: list[int] = []
    state: dict[int, str] = {}

    def visit(i: int, above: tuple[int, ...]) -> None:
        if state.get(i) == "done":
            return
        if i in above:
            circle = " → ".join(sources[j][0] for j in (*above[above.index(i) :], i))
            raise Usage(f"these call each other in a circle: {circle}; saved tools never recurse")
        for name in sorted(calls[i]):
            if name in makes and makes[name] != i:
                visit(makes[name], (*above, i))
        state[i] = "done"
        ordered.append(i)

    for i in range(len(sources)):
        visit(i, ())
    return [sources[i] for i in ordered]


def _progress(console: Console, name: str, doing: str) -> None:
    """One line that is overwritten, on a terminal only."""
    if console.interactive:
        text = console.paint(f"{safe(name)}: {doing} …", "dim", err=True) if doing else ""
        sys.stderr.write("\r\x1b[K" + text)
        sys.stderr.flush()


def _refused(name: str, diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    return {"ok": False, "file": name, "diagnostics": [d.as_dict() for d in diagnostics]}


def _show(diagnostics: tuple[Diagnostic, ...], source: str, name: str, console: Console) -> None:
    if console.json or not diagnostics:
        return
    from albert_tools.grammar.layout import MAX_SOURCE_BYTES
    from albert_tools.surfaces.cli.carets import render

    width = shutil.get_terminal_size((100, 24)).columns
    # A source over the cap is refused as a whole, at its start; the rest of it isn't looked at.
    text = render(
        diagnostics, source[: MAX_SOURCE_BYTES + 1], "stdin" if name == "-" else name, console.err_colour, width
    )
    print(text, file=sys.stderr)


def _show_examples(failure: Failure, console: Console) -> None:
    for problem in failure.details.get("examples", ()):
        for part in ("expected", "got"):
            if part in problem:
                shown = json.dumps(problem[part], ensure_ascii=False)
                console.note(
                    f"  line {problem['line']} {part}: {safe(shown if len(shown) <= 400 else shown[:399] + '…')}"
                )


def _finish(console: Console, documents: list[dict[str, Any]], files: int) -> None:
    if not console.json:
        return
    if files == 1 and len(documents) == 1:
        console.document(documents[0])
    else:
        console.document({"ok": all(d["ok"] for d in documents), "files": documents})

"""Every name that programs may use works in a confined worker and has the same result as in CPython.

A worker can't open files or import modules. Therefore modules that are loaded at the first use of a name must be loaded
before. The expressions of `entries` run in one worker per module and in plain CPython. The representations of their results
must be equal.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from typing import Any

import pytest

from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.definition import Program
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.sandbox.worker.spawn import ENVIRONMENT
from tests.helpers.vocabulary_calls import ENTRIES, PLAIN


def program(module: str, expression: str) -> str:
    """Put the expression in a function. Modules that the expression names in addition are imported as in a program."""
    names = {module, *re.findall(r"__import__\('(\w+)'\)", expression)} - {""}
    imports = "".join(f"import {name}\n" for name in sorted(names))
    plain = re.sub(r"__import__..(\w+)..", r"\1", expression)
    return f"{imports}def t():\n    try:\n        return repr({plain})\n    except ValueError as e:\n        return str(e)\n"


def without_addresses(value: object) -> str:
    return re.sub(r" (at|@) 0x[0-9a-f]{6,}", "", str(value))


CASES = [(module, e) for module, expressions in ENTRIES.items() for e in expressions] + [("", e) for e in PLAIN]


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
        raise AssertionError

    async def one(sandbox: Sandbox, text: str) -> Any:
        try:
            return await sandbox.run(Program("t", "t", text), {}, call=call)
        except Failure as failure:
            return f"{failure.code}: {failure.message}"

    async def all_() -> dict[str, Any]:
        sandbox = Sandbox()
        await sandbox.start()
        try:
            return {program(m, e): await one(sandbox, program(m, e)) for m, e in CASES}
        finally:
            await sandbox.close()

    return asyncio.run(all_())


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    script = (
        "import json, sys\nfound = {}\nreal = sys.stdout\nsys.stdout = sys.stderr\n"
        "for text in json.load(sys.stdin):\n    names = {}\n    exec(text, names)\n    found[text] = names['t']()\n"
        "json.dump(found, real)\n"
    )
    texts = json.dumps([program(m, e) for m, e in CASES])
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=texts,
        env=ENVIRONMENT,
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("module", "expression"), CASES, ids=[f"{m}: {e[:60]}" for m, e in CASES])
def test_entry(module: str, expression: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    text = program(module, expression)
    # An address would differ in each run.
    assert ours[text] == without_addresses(theirs[text])


@pytest.mark.slow
def test_no_module_is_loaded_at_first_use(ours: dict[str, Any]) -> None:
    """A run loads only what its program imports."""

    async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
        raise AssertionError

    async def alone(module: str) -> dict[str, Any]:
        sandbox = Sandbox(idle=1)
        sandbox.expect([module])
        await sandbox.start()
        try:
            own = [program(module, e) for e in ENTRIES[module] if "__import__" not in e]
            return {text: await sandbox.run(Program("t", "t", text), {}, call=call) for text in own}
        finally:
            await sandbox.close()

    async def each() -> dict[str, Any]:
        found = await asyncio.gather(*map(alone, ENTRIES))
        return {text: value for part in found for text, value in part.items()}

    found = asyncio.run(each())
    assert found == {text: ours[text] for text in found}


def test_every_entry_has_an_expression() -> None:
    missing = [
        f"{module}.{entry}"
        for module, table in vocabulary.facades().items()
        for entry in table
        if not any(re.search(rf"\b{re.escape(module)}\.{re.escape(entry)}\b", e) for e in ENTRIES.get(module, []))
    ]
    assert missing == []


def test_every_keyword_is_used_in_an_expression() -> None:
    """Not one test for each keyword: the tables permit keywords by Python's own names."""
    import importlib
    import inspect

    wrong = []
    for module, table in vocabulary.facades().items():
        real = importlib.import_module(module)
        for name, entry in table.items():
            target = real
            for part in name.split("."):
                target = getattr(target, part)
            try:
                parameters = inspect.signature(target).parameters  # type: ignore[arg-type]
            except (ValueError, TypeError):
                continue
            open_ended = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
            wrong += [f"{module}.{name}({k}=)" for k in entry.keywords if k not in parameters and not open_ended]
    assert wrong == []


def test_every_builtin_has_an_expression() -> None:
    assert [n for n in vocabulary.BUILTINS if not any(re.search(rf"\b{n}\(", e) for e in PLAIN)] == []

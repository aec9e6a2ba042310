"""Runs programs in the real sandbox, and compares them with the runs of `recorded_run`."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from albert_tools.engine.check.checker import Checked
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.model.definition import Program as Compiled
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.worker.pool import Sandbox
from tests.helpers.answers import Answers
from tests.helpers.generated_tools import GeneratedTools
from tests.helpers.recorded_run import Recorded

_MANY = RunLimits(calls=100_000)


class SandboxRuns:
    """A sandbox in a thread of its own. A saved tool that a program calls runs in the sandbox, too."""

    def __init__(self, limits: RunLimits = _MANY) -> None:
        self._limits = limits
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._sandbox = Sandbox(limits)
        self._compiled: dict[int, Compiled] = {}
        self._wait(self._sandbox.start())

    def close(self) -> None:
        """End all processes."""
        self._wait(self._sandbox.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, checked: Checked, arguments: dict[str, Any], catalog: GeneratedTools, answers: Answers) -> Recorded:
        """Run a checked program."""
        return self._wait(self._run(compile_program(checked), arguments, catalog, answers))

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(120)

    async def _run(
        self, program: Compiled, arguments: dict[str, Any], catalog: GeneratedTools, answers: Answers
    ) -> Recorded:
        found = Recorded()
        log: list[str] = []

        async def call(name: str, given: dict[str, Any], key: str) -> Any:
            found.asked.append((name, given))
            # Answers arrive in any order.
            await asyncio.sleep(len(key) % 3 / 2000)
            if name not in catalog.saved:
                return answers.answer(catalog.definitions[name], given)
            inner = await self._run(self._saved(name, catalog), given, catalog, answers)
            if inner.failed:
                raise Failure(inner.outcome[0], inner.outcome[1], tool=name)
            return inner.outcome

        try:
            found.outcome = await self._sandbox.run(program, arguments, call=call, log=log.append, limits=self._limits)
        except Failure as failure:
            found.outcome, found.failed = [failure.code, failure.message], True
        found.log = "".join(log)
        return found

    def _saved(self, name: str, catalog: GeneratedTools) -> Compiled:
        checked = catalog.saved[name]
        if id(checked) not in self._compiled:
            self._compiled[id(checked)] = compile_program(checked)
        return self._compiled[id(checked)]


def difference(ours: Recorded, theirs: Recorded, source: str) -> str | None:
    """How a run in the sandbox differs from the one in CPython; None if it doesn't."""
    expected = [_sent(text) for text in theirs.outcome] if theirs.failed else theirs.outcome
    if repr(ours.outcome) != repr(expected):
        return f"outcome: {ours.outcome!r}, in CPython {expected!r}"
    if ours.log != _sent(theirs.log):
        return f"log: {ours.log!r}, in CPython {theirs.log!r}"
    asked, wanted = (sorted(map(repr, run.asked)) for run in (ours, theirs))
    # Overlapping reads may start before the first error, so the sandbox may make more calls, but no fewer.
    if not set(wanted) <= set(asked) or ("parallel" not in source and asked != wanted):
        return f"calls: {asked}, in CPython {wanted}"
    return None


def _sent(text: str) -> str:
    """`text` as it leaves the sandbox: half a surrogate pair is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()

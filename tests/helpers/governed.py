"""A new home and workspace with a service. Tests call primitives through this service, as users do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from albert_tools import Failure, SyncToolService, ToolResult
from albert_tools.engine.model.validation import violations
from albert_tools.store.record.record import Record


class Governed:
    """A service on a new home. Calls are made with the token `session`, or as the owner if there is no token."""

    def __init__(self, base: Path, **options: Any) -> None:
        self.home, self.work = base / "home", base / "work"
        (self.work / ".albert").mkdir(parents=True, exist_ok=True)
        self.options = options
        self.service = SyncToolService.open(home=self.home, workspace=self.work, **options)
        self.session: str | None = None

    def call(self, name: str, arguments: dict[str, Any] | None = None, /, **more: Any) -> ToolResult:
        """Call a tool and return its output. The output must match the tool's schema."""
        result = self.service.invoke(name, {**(arguments or {}), **more}, session=self.session)
        if result.ok:
            schema = self.service.describe(name).definition.result
            assert violations(result.output, schema) == []
        return result

    def value(self, name: str, arguments: dict[str, Any] | None = None, /, **more: Any) -> Any:
        return self.call(name, arguments, **more).value()

    def error(self, name: str, arguments: dict[str, Any] | None = None, /, **more: Any) -> Failure:
        error = self.call(name, arguments, **more).error
        assert error is not None
        return error

    def broken(self, name: str, arguments: dict[str, Any] | None = None, /, **more: Any) -> list[tuple[str, str]]:
        """Make a call with invalid arguments. Returns the violations as pairs of field and rule."""
        error = self.error(name, arguments, **more)
        assert error.code == "invalid_arguments", error
        return [(v["field"], v["rule"]) for v in error.details["violations"]]

    def composite(self, body: str, parameters: str = "", **arguments: Any) -> Any:
        """Save a tool with this body, call it, and return its output."""
        self.service.define(f'def t({parameters}) -> Any:\n    """Do it."""\n    {body}\n')
        return self.service.invoke("t", arguments, session=self.session).value()

    def entries(self, kind: str) -> list[Any]:
        """Return the ledger's entries of one kind, in order."""
        with Record(self.home / "state" / "record") as log:
            return [entry.data for entry in log.entries({kind})]

    def effects(self, tool: str) -> list[dict[str, Any]]:
        """Return the recorded effects of a tool's calls, in order."""
        with Record(self.home / "state" / "record") as log:
            # A call that only reads has its effects in the entry of the call.
            found = [effect for e in log.entries({"call", "result"}) for effect in e.data.get("effects", ())]
        return [effect for effect in found if effect["tool"] == tool]

    def recorded(self) -> str:
        """Return the data of all entries as text."""
        with Record(self.home / "state" / "record") as log:
            return "\n".join(json.dumps(entry.data, ensure_ascii=False) for entry in log.entries())


@contextmanager
def governing(tmp_path: Path) -> Iterator[Callable[..., Governed]]:
    """Return a function that makes homes, for example ``make(governance={…})``."""
    made: list[Governed] = []

    def make(**options: Any) -> Governed:
        made.append(Governed(tmp_path.resolve() / f"g{len(made)}", **options))
        return made[-1]

    try:
        yield make
    finally:
        for each in made:
            each.service.close()

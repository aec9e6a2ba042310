"""Numbered points in a call. There is a point before and after every append, sync, look-up, question, notice and effect.

The service uses its real parts. Each part is in a wrapper that reports when an action begins and when it is done. The test
decides what happens at a point: nothing, a wait, a failure, or the end of the process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from albert_tools import CallContext, InterruptedCall, Settled, ToolService, primitive
from albert_tools.engine import service as engine
from albert_tools.engine.authority.projections import Projections
from albert_tools.engine.authority.rules_source import RulesInForce, RulesSource
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import LoadedRun
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.settings import Governance, read_governance


class Points:
    """Counts the points. At each point it calls `at(number, name, before)`; `before` tells whether the action begins or is
    done.

    `pause` is awaited at actions that may take time. `effect` is called just before each effect, with the call's key and the
    text that the effect adds.
    """

    def __init__(
        self,
        at: Callable[[int, str, bool], None] = lambda number, name, before: None,
        pause: Callable[[], Awaitable[None]] | None = None,
        effect: Callable[[str, str], None] = lambda key, name: None,
    ) -> None:
        self._at = at
        self._pause = pause
        self.effect = effect
        self.names: list[str] = []

    def before(self, name: str) -> None:
        """Report that an action begins."""
        self._reach(name, True)

    def after(self, name: str) -> None:
        """Report that an action is done."""
        self._reach(name, False)

    async def pause(self) -> None:
        """Let time pass at an action that may take time."""
        if self._pause is not None:
            await self._pause()

    def _reach(self, name: str, before: bool) -> None:
        self.names.append(f"{'before' if before else 'after'} {name}")
        self._at(len(self.names), name, before)


#: The points that the primitives below report to. They belong to the newest service.
HERE = [Points()]


@primitive(effects=["write"])
async def put(name: str, context: CallContext) -> str:
    """Add a line to a file; a second call adds a second line."""
    return await _put("put", name, context)


@primitive(effects=["write"], idempotent=True)
async def put_again(name: str, context: CallContext) -> str:
    """Add a line to a file. The primitive claims to be idempotent."""
    return await _put("put_again", name, context)


def _is_it_there(call: InterruptedCall) -> Settled:
    name = call.arguments["name"]
    if name in Path(call.settings["into"]).read_text().split():
        call.effect("write", path=name)
        return Settled("applied", name)
    return Settled("not applied")


@primitive(effects=["write"], settle=_is_it_there)
async def put_known(name: str, context: CallContext) -> str:
    """Add a line to a file. After a crash the primitive can find out whether the line was added."""
    return await _put("put_known", name, context)


async def _put(tool: str, name: str, context: CallContext) -> str:
    points = HERE[0]
    points.before(f"the effect of {tool}")
    points.effect(context.key, name)
    with open(context.settings["into"], "a") as file:
        file.write(f"{name}\n")
    points.after(f"the effect of {tool}")
    await points.pause()
    context.effect("write", path=name)
    return name


@primitive(effects=["read"])
async def count(context: CallContext) -> int:
    """Return the number of lines."""
    HERE[0].before("the effect of count")
    return len(Path(context.settings["into"]).read_text().splitlines())


PRIMITIVES = [put, put_again, put_known, count]


class Place:
    """A home, a workspace, and the file that `put` adds lines to."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self.home, self.work, self.into = self.base / "home", self.base / "work", self.base / "done"
        (self.work / ".albert").mkdir(parents=True, exist_ok=True)
        self.into.touch()

    @property
    def done(self) -> list[str]:
        """The lines of the file, in order."""
        return self.into.read_text().split()

    def rules(self, **more: Any) -> dict[str, Any]:
        """Rules that contain the file of `put` as a setting."""
        return {"primitives": {p.name: {"into": str(self.into)} for p in PRIMITIVES}, **more}

    def options(self, governance: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Arguments for opening a service on this home."""
        rules = self.rules(**(governance or {}))
        return {"home": self.home, "workspace": self.work, "governance": rules, "primitives": PRIMITIVES, **more}


def pointed(
    place: Place, points: Points, sandbox: Any = None, *, observed: bool = True, **options: Any
) -> engine.ToolService:
    """A service whose parts report to `points`: also its observer, if it is `observed`."""
    HERE[0] = points
    plain = ToolService.open(**place.options(**options))
    s = plain._context
    ledger = PointedLedger(s.ledger, points)
    store = PointedStore(plain.store, points)
    rules = PointedRules(read_governance(place.rules(**(options.get("governance") or {})), "the application"), points)
    context = replace(
        s,
        rules=rules,
        ledger=ledger,
        projections=Projections(ledger, store),
        runs=PointedRuns(s.runs, points),
        contents=PointedContents(s.contents, points),
        observer=s.observer or (PointedObserver(points) if observed else None),
    )
    registry = ToolRegistry(plain.registry.primitives(), store)
    return entered(engine.ToolService(registry, store, context, sandbox or plain._sandbox))


def entered(service: engine.ToolService) -> engine.ToolService:
    """The service, as `async with` gives it. The test closes it, or its process is killed."""
    with suppress(StopIteration):
        service.__aenter__().send(None)
    return service


class PointedLedger:
    """Wraps a `Ledger`."""

    def __init__(self, ledger: Any, points: Points) -> None:
        self.real, self._points = ledger, points
        #: The number of the last entry that is on the disk, and the decisions by call, with their entries' numbers.
        self.durable_to = 0
        self.decisions: dict[str, tuple[int, Mapping[str, Any]]] = {}

    def append(self, kind: str, data: Mapping[str, Any]) -> int:
        self._points.before(f"the entry {kind}")
        n: int = self.real.append(kind, data)
        if kind == "call":
            self.decisions[data["call"]] = n, data
        self._points.after(f"the entry {kind}")
        return n

    def durable(self, n: int | None = None) -> None:
        self._points.before("the log's sync")
        self.real.durable(n)
        self.durable_to = max(self.durable_to, n or 0)
        self._points.after("the log's sync")

    async def adurable(self, n: int) -> None:
        self._points.before("the log's sync")
        await self._points.pause()
        await self.real.adurable(n)
        self.durable_to = max(self.durable_to, n)
        self._points.after("the log's sync")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class PointedJournal:
    """Wraps a `Journal`."""

    def __init__(self, journal: Any, points: Points) -> None:
        self.real, self._points = journal, points
        self.id, self.header = journal.id, journal.header

    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.real.entries()
        return found

    def append(self, entry: Mapping[str, Any], most: int | None = None) -> None:
        self._points.before(f"the journal's {entry['t']}")
        self.real.append(entry, most)
        self._points.after(f"the journal's {entry['t']}")

    def flush(self) -> None:
        self._points.before("the journal's flush")
        self.real.flush()
        self._points.after("the journal's flush")

    async def sync(self) -> None:
        self._points.before("the journal's sync")
        await self._points.pause()
        await self.real.sync()
        self._points.after("the journal's sync")

    def close(self) -> None:
        try:
            self._points.before("the journal's close")
        except Failure:
            # A failed close loses the buffered entries. The run is free for this process, and for others when it ends.
            del self.real._record.journals[self.id]
            raise
        self.real.close()
        self._points.after("the journal's close")


class PointedRuns:
    """Wraps a `RunStore`."""

    def __init__(self, runs: Any, points: Points) -> None:
        self.real, self._points = runs, points
        self.journals: list[Any] = []

    def create(self, run_id: str, header: Mapping[str, Any]) -> PointedJournal:
        self._points.before("a run's beginning")
        self.journals.append(self.real.create(run_id, header))
        self._points.after("a run's beginning")
        return PointedJournal(self.journals[-1], self._points)

    def open(self, run_id: str, needs: str = "") -> PointedJournal:
        self.journals.append(self.real.open(run_id, needs))
        return PointedJournal(self.journals[-1], self._points)

    def load(self, run_id: str) -> LoadedRun:
        found: LoadedRun = self.real.load(run_id)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class PointedRules(RulesSource):
    """The rules, with a point before each authorization."""

    def __init__(self, rules: Governance, points: Points) -> None:
        super().__init__(rules, None)
        self._points = points

    def in_force(self, workspace: str, modes: Modes, *, audit: bool = True) -> RulesInForce | Failure:
        self._points.before("the judging")
        return super().in_force(workspace, modes, audit=audit)


class PointedObserver:
    """Reports the points of an `Observer`."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def started(self, span: Any, call: Any) -> None:
        self._points.before("the telling of a beginning")

    def ended(self, span: Any, call: Any) -> None:
        self._points.before("the telling of an end")


class PointedContents:
    """Wraps a `ContentStore`."""

    def __init__(self, contents: Any, points: Points) -> None:
        self.real, self._points = contents, points

    def put(self, content: bytes) -> str:
        self._points.before("a value's keeping")
        ref: str = self.real.put(content)
        self._points.after("a value's keeping")
        return ref

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class PointedStore:
    """Wraps a `ToolStore`."""

    def __init__(self, store: Any, points: Points) -> None:
        self.real, self._points = store, points

    def load(self, name: str, version: str | None = None) -> ToolVersion:
        self._points.before("a tool's loading")
        found: ToolVersion = self.real.load(name, version)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

"""One service for all tests of a module. Its primitives cover every way in which a primitive can behave."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from albert_tools import CallContext, Failure, Primitive, SyncToolService, ToolResult, primitive
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.workspace import openat
from tests.helpers.gate import GATE, hold

#: The real effects of primitives, in order.
DONE: list[Any] = []


class Unspeakable(Exception):
    """An exception that raises another exception when it is printed."""

    def __str__(self) -> str:
        raise ValueError

    __repr__ = __str__


@primitive(effects=["write"])
def launch(name: str) -> str:
    """Launch something; it is remembered."""
    DONE.append(name)
    return name


@primitive(effects=["read"])
def look(at: str = "door") -> str:
    """Look at something outside the workspace."""
    DONE.append(f"look {at}")
    return at


@primitive(effects=["read"], gated=True)
def secret() -> str:
    """Tell the secret."""
    DONE.append("secret")
    return "xyzzy"


@primitive(effects=["write"])
def note(text: str, context: CallContext) -> str:
    """Write a note into the workspace."""
    context.workspace.replace("note.txt", text.encode())
    context.effect("write", path="note.txt")
    return text


@primitive(effects=["read"])
def budget(context: CallContext) -> dict[str, Any]:
    """Tell what there is left, and how it is set."""
    return {"left": context.remaining, "settings": dict(context.settings)}


@primitive
def grow(items: list[int] | None = None, more: list[int] = []) -> Any:  # noqa: B006
    """Change what it was given."""
    (items or []).append(0)
    more.append(len(more))
    return [items, more]


@primitive(effects=["read"], timeout=0.3)
async def slow(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "done"


@primitive(effects=["read"], timeout=0.2)
def stuck(seconds: float) -> str:
    """Take a while in a thread."""
    time.sleep(seconds)
    return "done"


@primitive(effects=["network"])
def weigh() -> dict[str, Any]:
    """Weigh something elsewhere."""
    DONE.append("weigh")
    return {"a": 1}


@primitive
def untrue() -> int:
    """Promise a number."""
    return "no"  # type: ignore[return-value]


@primitive(effects=["read"])
def odd(kind: str) -> Any:
    """Give what can't cross, or fail in a way that nobody thought of."""
    values: dict[str, Any] = {"set": {1, 2}, "nan": float("nan"), "bytes": b"x", "big": 2**70, "keys": {1: 2}}
    values |= {"huge": "x" * (105 * 1024 * 1024), "surrogate": "\ud800"} if kind in ("huge", "surrogate") else {}
    faults: dict[str, Callable[[], BaseException]] = {
        "key": lambda: KeyError("a"),
        "long": lambda: ValueError("x" * 5000),
        "bare": lambda: OSError(),
        "timeout": lambda: TimeoutError("connect"),
        "stop": lambda: StopIteration(),
        "exit": lambda: SystemExit(3),
        "key pressed": lambda: KeyboardInterrupt(),
        "end": lambda: GeneratorExit(),
        "base group": lambda: BaseExceptionGroup("many", [SystemExit(3), KeyboardInterrupt()]),
        "half a pair": lambda: ValueError("\ud800"),
        "group": lambda: ExceptionGroup("many", [ValueError("a")]),
        "unspeakable": lambda: Unspeakable(),
        "failure": lambda: Failure("network_error", "nobody answers", retryable=True, retry_after_ms=50),
    }
    if kind == "deep":
        deep: Any = []
        for _ in range(300):
            deep = [deep]
        return deep
    if kind in faults:
        raise faults[kind]()
    return values.get(kind, kind)


@primitive(effects=["read"])
async def odd_too(kind: str) -> Any:
    """As `odd`, in the service's own thread."""
    match kind:
        case "exit":
            sys.exit("bye")
        case "cancelled":
            raise asyncio.CancelledError
        case "key pressed":
            raise KeyboardInterrupt
        case "end":
            raise GeneratorExit
        case "timeout":
            raise TimeoutError
    raise KeyError(kind)


PRIMITIVES: list[Primitive] = [launch, look, secret, note, budget, grow, slow, stuck, weigh, untrue, odd, odd_too, hold]


def one(body: str, name: str = "t", parameters: str = "", above: str = "") -> str:
    """The source of a small tool."""
    return f'{above}def {name}({parameters}) -> Any:\n    """Do it."""\n    {body}\n'


class Bench:
    """A service and its folders, with helpers for checks that many tests make."""

    def __init__(self, base: Path, **options: Any) -> None:
        self.home = base / "home"
        self.work = base / "work"
        self.done = DONE
        (self.work / ".albert").mkdir(parents=True, exist_ok=True)
        self.options = {"primitives": PRIMITIVES, **options}
        self.service = SyncToolService.open(home=self.home, workspace=self.work, **self.options)

    def again(self, **options: Any) -> SyncToolService:
        """Another service with the same tools."""
        return SyncToolService.open(home=self.home, workspace=self.work, **{**self.options, **options})

    def define(self, body: str, name: str = "t", parameters: str = "", above: str = "") -> None:
        self.service.define(one(body, name, parameters, above))

    def value(self, name: str, **arguments: Any) -> Any:
        return self.service.invoke(name, arguments).value()

    def error(self, name: str, **arguments: Any) -> Failure:
        return failed(self.service.invoke(name, arguments))

    def refused(self, body: str, above: str, parameters: str = "") -> Failure:
        """The failure of a definition. A failed definition must save nothing."""
        with pytest.raises(Failure) as caught:
            self.define(body, "never_saved", parameters, above)
        assert caught.value.code == "example_failed"
        assert "never_saved" not in [t.name for t in self.service.list()]
        return caught.value


class Deeper:
    """A catalogue that understates the depth of tools, as another program's store might."""

    def __init__(self, service: Any) -> None:
        self.registry = service.registry

    def get(self, name: str) -> ToolDefinition | None:
        found = self.registry.get(name)
        return found and replace(found, depth=0)

    def names(self) -> Any:
        return self.registry.names()


def failed(result: ToolResult) -> Failure:
    """Return the error of a result, and its message. The result must have an error."""
    assert result.error is not None, result.output
    assert result.output is None
    assert result.error.message
    assert "Traceback" not in str(result.as_dict())
    return result.error


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("bench").resolve())
    yield made
    made.service.close()


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Return a function that makes benches: `make_bench(governance=…)`."""
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(tmp_path.resolve() / str(len(made)), **options))
        return made[-1]

    yield make
    for each in made:
        each.service.close()


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()
    GATE.reset()


@pytest.fixture(name="one")
def _one() -> Callable[..., str]:
    return one


@pytest.fixture(name="failed")
def _failed() -> Callable[[ToolResult], Failure]:
    return failed


@pytest.fixture(params=["openat2", "step by step"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of opening a folder. A test that uses this fixture runs with each of them."""
    if request.param != "openat2":
        monkeypatch.setattr(openat, "kernel_open", lambda: None)
    elif openat.kernel_open() is None:
        pytest.skip("this system has no openat2")
    return str(request.param)

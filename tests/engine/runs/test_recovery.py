"""Recovery: interrupted calls of a primitive that can find out what happened."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert_tools import CallContext, Failure, InterruptedCall, Settled, SyncToolService, ToolResult, primitive
from albert_tools.engine.service import ToolService
from tests.helpers.children import Child, Report
from tests.helpers.kill_points import PRIMITIVES, Place, Points, pointed

ONE = '''
def one(name: str) -> str:
    """Put one, then another."""
    first = tools.NAME(name=name)
    return first + tools.NAME(name="then")
'''

#: The answer of the primitives below about an interrupted call.
ANSWERS: list[Callable[[InterruptedCall], Any]] = [lambda call: Settled("unknown")]
#: The interrupted calls that the primitives were asked about.
SEEN: list[InterruptedCall] = []


def _settle(call: InterruptedCall) -> Any:
    SEEN.append(call)
    return ANSWERS[0](call)


async def _settle_too(call: InterruptedCall) -> Any:
    return _settle(call)


@primitive(effects=["write"], settle=_settle)
async def lay(name: str, context: CallContext) -> str:
    """Add a line."""
    return await _lay(name, context)


@primitive(effects=["write"], settle=_settle_too, idempotent=True)
async def lay_again(name: str, context: CallContext) -> str:
    """Add a line, idempotently."""
    return await _lay(name, context)


@primitive(effects=["write"], paths={"name": "write"}, outputs={"": "same as name"}, settle=_settle, timeout=30)
def carve(name: str, context: CallContext) -> str:
    """Write a file, or die before or after it."""
    if context.workspace.root.joinpath("die before").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    context.workspace.replace(name, name.encode())
    if context.workspace.root.joinpath("die after").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return name


async def _lay(name: str, context: CallContext) -> str:
    file = context.workspace.root / "laid"
    if (context.workspace.root / "die before").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    with file.open("a") as opened:
        opened.write(f"{name}\n")
    if (context.workspace.root / "die after").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return name


MINE = [*PRIMITIVES, lay, lay_again, carve]


def cut_short(report: Report, base: Path, tool: str, arguments: Any) -> None:
    async def main() -> None:
        async with pointed(Place(base), Points(), primitives=MINE) as service:
            await service.invoke(tool, arguments)

    asyncio.run(main())


class Cut:
    """A home where a program was killed in its first call, before or after the effect."""

    def __init__(self, place: Place, tool: str, when: str, name: str = "a") -> None:
        self.place = place
        ANSWERS[0], SEEN[:] = (lambda call: Settled("unknown")), []
        with self.opened() as service:
            service.define(ONE.replace("NAME", tool))
        marker = place.work / f"die {when}"
        marker.touch()
        assert Child(cut_short, place.base, "one", {"name": name}).wait() == -signal.SIGKILL
        marker.unlink()

    def opened(self, **options: Any) -> SyncToolService:
        return SyncToolService.open(**{**self.place.options(), "primitives": MINE, **options})

    @property
    def laid(self) -> list[str]:
        file = self.place.work / "laid"
        return file.read_text().split() if file.exists() else []

    def resumed(self, answer: Callable[[InterruptedCall], Any], **options: Any) -> ToolResult:
        ANSWERS[0] = answer
        with self.opened(**options) as service:
            (run,) = (r.id for r in service.within(lambda s: s.runs.list()) if r.state in ("interrupted", "suspended"))
            return service.resume(run)

    def entries(self, kind: str) -> list[dict[str, Any]]:
        def look(service: ToolService) -> list[dict[str, Any]]:
            ledger: Any = service.ledger
            return [e.data for e in ledger.entries({kind})]

        with self.opened() as service:
            return service.within(look)


@pytest.fixture(params=["lay", "lay_again"])
def tool(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_applied_call_gets_its_value_and_is_not_made_again(place: Place, tool: str) -> None:
    cut = Cut(place, tool, "after")

    def answer(call: InterruptedCall) -> Settled:
        call.effect("write", path="laid", size_bytes=2)
        return Settled("applied", "from elsewhere ")

    result = cut.resumed(answer)
    assert (result.value(), cut.laid) == ("from elsewhere then", ["a", "then"])
    assert {"kind": "write", "tool": tool, "path": "laid", "size_bytes": 2} in [e.as_dict() for e in result.effects]
    (asked,) = SEEN
    assert asked.key.endswith(":0")
    assert dict(asked.arguments) == {"name": "a"}
    (entry,) = cut.entries("settled")
    assert (entry["tool"], entry["outcome"]) == (tool, "applied")
    with cut.opened() as service:
        run = service.within(lambda s: s.runs.list()[0])
        assert [(s["state"], s["value"]) for s in service.within(lambda s: s.runs.show(run.id)).steps] == [
            ("ended", "from elsewhere "),
            ("ended", "then"),
        ]


def test_a_call_that_was_not_applied_is_made_without_a_question(place: Place, tool: str) -> None:
    cut = Cut(place, tool, "before")
    assert cut.resumed(lambda call: Settled("not applied")).value() == "athen"
    assert cut.laid == ["a", "then"]


def _of_another_kind(call: InterruptedCall) -> Any:
    return True


def _wrong(call: InterruptedCall) -> Settled:
    return Settled("applied", 7)


def _failing(call: InterruptedCall) -> Settled:
    raise Failure("network_error", "nobody answers")


def _raising(call: InterruptedCall) -> Settled:
    raise KeyError("x")


def _writing(call: InterruptedCall) -> Settled:
    call.workspace.replace("b", b"")
    return Settled("applied", "a")


@pytest.mark.parametrize(
    "answer", [lambda call: Settled("unknown"), _of_another_kind, _wrong, _failing, _raising, _writing]
)
def test_an_unknown_outcome_asks(place: Place, tool: str, answer: Any) -> None:
    cut = Cut(place, tool, "after")
    result = cut.resumed(answer)
    assert result.error is not None
    assert (result.error.code, result.error.rule, cut.laid) == ("suspended", "interrupted", ["a"])
    assert not (place.work / "b").exists()
    (entry,) = cut.entries("settled")
    assert entry["outcome"] == "unknown"


def test_a_value_that_contradicts_the_declaration_is_not_used(place: Place) -> None:
    cut = Cut(place, "carve", "after")
    result = cut.resumed(lambda call: Settled("applied", "elsewhere"))
    assert result.error is not None
    assert result.error.rule == "interrupted"
    assert "is declared as `same as name`" in cut.entries("settled")[0]["problem"]


def test_an_applied_call_without_a_value_asks(place: Place) -> None:
    cut = Cut(place, "lay", "after")
    result = cut.resumed(lambda call: Settled("applied"))
    assert result.error is not None
    assert (result.error.code, result.error.rule) == ("suspended", "interrupted")
    assert "after it was done" in result.error.message


def test_settle_is_not_called_if_the_rules_deny(place: Place) -> None:
    cut = Cut(place, "lay", "after")
    result = cut.resumed(lambda call: Settled("applied", "a"), governance=place.rules(deny=["lay"]))
    assert result.error is not None
    assert (result.error.code, SEEN, cut.laid) == ("permission_denied", [], ["a"])


@pytest.mark.parametrize(("when", "unchanged"), [("before", True), ("after", False)])
@pytest.mark.parametrize("there", [False, True])
def test_unchanged_tells_whether_the_paths_have_changed(place: Place, when: str, unchanged: bool, there: bool) -> None:
    if there:
        (place.work / "a").write_text("a")
    cut = Cut(place, "carve", when)
    cut.resumed(lambda call: Settled("unknown"))
    assert [call.unchanged for call in SEEN] == [unchanged]


def test_unchanged_is_none_without_paths(place: Place) -> None:
    cut = Cut(place, "lay", "before")
    cut.resumed(lambda call: Settled("unknown"))
    assert [call.unchanged for call in SEEN] == [None]


WRITES = '''
def writes(text: str) -> str:
    """Write a file."""
    return tools.write_file(path="a.txt", content=text)["sha256"]
'''


def _die_at(when: str, times: int) -> Callable[[int, str, bool], None]:
    seen = 0

    def at(number: int, name: str, before: bool) -> None:
        nonlocal seen
        seen += name == when and before
        if seen == times:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def written_and_killed(report: Report, base: Path, when: str, times: int, text: str = "new") -> None:
    async def main() -> None:
        async with pointed(Place(base), Points(_die_at(when, times))) as service:
            await service.invoke("writes", {"text": text})

    asyncio.run(main())


#: An observer gets the beginning of a call when the call is in the journal, just before its effect. The program comes
#: first.
BEFORE, AFTER = ("the telling of a beginning", 2), ("the entry result", 1)


@pytest.mark.parametrize("old", [None, "old", "new"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("since", [None, "else"])
def test_a_killed_write_file(place: Place, old: str | None, when: str, since: str | None) -> None:
    file = place.work / "a.txt"
    with SyncToolService.open(**place.options()) as service:
        service.define(WRITES)
    if old is not None:
        file.write_text(old)
    assert Child(written_and_killed, place.base, *(AFTER if when == "after" else BEFORE)).wait() == -signal.SIGKILL
    assert (file.read_text() if file.exists() else None) == ("new" if when == "after" else old)
    if since is not None:
        # A later change of the file is not undone.
        file.write_text(since)
    before = file.stat() if file.exists() else None
    with SyncToolService.open(**place.options()) as service:
        (run,) = service.within(lambda s: s.runs.list())
        result = service.resume(run.id)
    if since is not None:
        assert result.error is not None
        assert (result.error.code, result.error.rule, file.read_text()) == ("suspended", "interrupted", since)
        return
    assert result.value() == hashlib.sha256(b"new").hexdigest()
    assert file.read_text() == "new"
    assert [e.as_dict()["sha256"] for e in result.effects] == [result.value()]
    if when == "after":
        assert before is not None
        assert file.stat().st_ino == before.st_ino


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_write_bytes(place: Place, when: str) -> None:
    with SyncToolService.open(**place.options()) as service:
        service.define(WRITES.replace("write_file", "write_bytes").replace("content=", "handle="))
        contents = service.service.contents(None)
        assert contents is not None
        handle = contents.put(b"new")
        before_or_after = AFTER if when == "after" else BEFORE
        assert Child(written_and_killed, place.base, *before_or_after, handle).wait() == -signal.SIGKILL
        if when == "after":
            # Whether the file was written shows without the value.
            contents._path(handle).unlink()
        (run,) = service.within(lambda s: s.runs.list())
        assert service.resume(run.id).value() == hashlib.sha256(b"new").hexdigest()
    assert (place.work / "a.txt").read_bytes() == b"new"

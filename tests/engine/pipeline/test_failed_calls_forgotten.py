"""What failed calls leave in memory. Python would look for cycles only after many of them, whatever their size."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

from albert_tools import CallContext, ToolService, primitive
from tests.helpers.children import PATIENCE
from tests.helpers.frames import has_a_frame_with, no_collection
from tests.helpers.gate import until
from tests.helpers.governed import Governed, governing

MARK = "an argument of a call that fails"
PROGRAM = f"""
    for path in ["one", "two"]:
        try:
            tools.write_file(path=path, content={MARK!r})
        except ToolError:
            pass
        try:
            tools.read_file(path={MARK!r})
        except ToolError:
            pass
    return 1
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Governed]:
    with governing(tmp_path) as make:
        yield make()


@pytest.mark.parametrize(
    "call",
    [
        lambda here: here.error("read_file", path=MARK),
        lambda here: here.error("read_file", path="a", other=MARK),
        lambda here: here.error("no_such_tool", path=MARK),
        lambda here: here.composite(PROGRAM.strip()),
        lambda here: here.service.invoke("run_source", {"source": MARK}).error,
        lambda here: here.service.invoke("define_tool", {"source": MARK}, session="no such token").error,
    ],
    ids=["not found", "wrong argument", "unknown tool", "within a program", "source", "session"],
)
def test_a_failed_call_leaves_no_arguments(here: Governed, call: Callable[[Governed], object]) -> None:
    assert here.value("list_directory", path=".") is not None
    with no_collection():
        result = call(here)
        until(lambda: not has_a_frame_with(lambda value: MARK in repr(value)))
        assert result


class Client:
    """A client that all calls share: a task that answers their requests."""

    def __init__(self) -> None:
        self._requests: asyncio.Queue[tuple[str, asyncio.Future[str]]] = asyncio.Queue()
        self._task = asyncio.create_task(self._work())

    async def ask(self, name: str) -> str:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await self._requests.put((name, answer))
        return await answer

    async def _work(self) -> None:
        while True:
            name, answer = await self._requests.get()
            try:
                answer.set_result({"ada": "ADA"}[name])
            except KeyError as error:
                answer.set_exception(error)

    async def aclose(self) -> None:
        self._task.cancel()


@primitive(timeout=PATIENCE)
async def find(context: CallContext, name: str) -> str:
    """Find a customer."""
    return await context.keep(Client).ask(name)


@primitive
async def gather(text: str) -> None:
    """Fail within a group of tasks, which has a variable for its error."""

    async def fail_one(argument: str) -> None:
        problem = ValueError(len(argument))
        raise problem

    async with asyncio.TaskGroup() as group:
        group.create_task(fail_one(text))


@dataclass(frozen=True)
class Fixed(Exception):
    """An error that forbids to set attributes."""

    number: int


@primitive
async def fail_fixed(number: int) -> None:
    """Fail."""
    raise Fixed(number)


async def test_an_error_that_forbids_to_set_attributes_is_one_of_the_call(tmp_path: Path) -> None:
    rules = {"allow": ["fail_fixed"]}
    async with ToolService.open(
        home=tmp_path / "home", workspace=tmp_path, primitives=[fail_fixed], governance=rules
    ) as service:
        error = (await service.invoke("fail_fixed", {"number": 3})).error
        assert error is not None
        assert "Fixed: 3" in error.message


async def test_errors_before_the_last_one_keep_no_arguments(tmp_path: Path) -> None:
    rules = {"allow": ["gather"]}
    async with ToolService.open(
        home=tmp_path / "home", workspace=tmp_path, primitives=[gather], governance=rules
    ) as service:
        with no_collection():
            error = (await service.invoke("gather", {"text": MARK})).error
            assert error is not None
            assert "ExceptionGroup" in error.message
            await asyncio.sleep(0)
            frames = [each for each in gc.get_objects() if isinstance(each, FrameType)]
            assert not [f for f in frames if f.f_code.co_name in ("gather", "fail_one")]


async def test_a_coroutine_that_has_caught_the_error_goes_on(tmp_path: Path) -> None:
    async with ToolService.open(
        home=tmp_path / "home", workspace=tmp_path, primitives=[find], governance={"allow": ["find"]}
    ) as service:
        for name, ok in [("ada", True), ("eve", False), ("ada", True)]:
            assert (await service.invoke("find", {"name": name})).ok == ok
        # An error of the application itself, around a call that is refused.
        client = Client()
        caught: KeyError | None = None
        try:
            await client.ask("eve")
        except KeyError as error:
            caught = error
            refused = await service.invoke("find", {})
        assert not refused.ok
        assert caught is not None
        assert caught.__traceback__ is not None
        assert await client.ask("ada") == "ADA"
        await client.aclose()

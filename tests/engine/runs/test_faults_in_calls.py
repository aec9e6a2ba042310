"""A fault of the service at any point of a program's calls: no program waits for ever, and the request has a result."""

from __future__ import annotations

import asyncio

import pytest

from albert_tools.engine.service import ToolService
from tests.helpers.kill_points import Place, Points, pointed

PROGRAMS = [
    '''
def at_once(number: int) -> str:
    """Read twice at once, then once more, then change something."""
    parallel(tools.count(), tools.count())
    tools.count()
    tools.put(name=f"n{number}")
    return "done"
''',
    '''
def outer(number: int) -> str:
    """Catch what a tool fails with."""
    try:
        return tools.at_once(number=number)
    except ToolError as e:
        return e.code
''',
]


class Fault:
    """Raises an exception at one point, counted from `arm`."""

    def __init__(self) -> None:
        self._left, self._error, self.name = 0, BaseException(), ""

    def arm(self, point: int, error: BaseException) -> None:
        self._left, self._error, self.name = point, error, ""

    def __call__(self, number: int, name: str, before: bool) -> None:
        self._left -= 1
        if self._left == 0:
            self.name = name
            raise self._error


@pytest.mark.slow
async def test_a_program_ends_after_a_fault_at_any_point(place: Place) -> None:
    fault = Fault()
    async with pointed(place, Points(fault)) as service:
        for program in PROGRAMS:
            await service.define(program)
        for error, refused in (
            (RuntimeError("odd"), {"governance_unavailable"}),
            (asyncio.CancelledError(), set()),
        ):
            answers = await _answers(service, fault, error)
            assert set(answers.values()) == {"done", "internal_error", *refused}
            assert list(answers.values()).count("internal_error") > 20
            # Nothing is left of the faults.
            assert list(answers.values())[-1] == "done"


async def _answers(service: ToolService, fault: Fault, error: BaseException) -> dict[int, str]:
    """Call `outer` with a fault at each of its points, one after the other. Returns what the caller gets for each."""
    found: dict[int, str] = {}
    number = 0
    while fault.name or not number:
        number += 1
        fault.arm(number, error)
        # A program that waits for an answer would wait until the limit of its run, 300 s.
        async with asyncio.timeout(60):
            try:
                result = await service.invoke("outer", {"number": number})
            except type(error):
                # The fault was one of the request itself, before its program began or after it ended.
                continue
        found[number] = result.output if result.error is None else result.error.code
        if result.error is not None and "fault of the service" in result.error.message:
            assert service.runs.show(str(result.run_id)).state == "failed"
            ends = [entry.data for entry in service.ledger.entries({"result"})]
            assert [end["code"] for end in ends if end["call"] == result.run_id] == ["internal_error"]
    return found

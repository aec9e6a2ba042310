"""Batches: what was queued is queued once, and a batch is queued whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Failure, ToolService
from albert_tools.engine.call.context import Queued

RULES: dict[str, Any] = {"loops": {"requests_per_hour": 3}, "limits": {"calls": 5}}


class Killed(BaseException):
    """Nobody handles it, as nobody handles the end of a process."""


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[ToolService]:
    work = tmp_path / "work"
    (work / ".albert").mkdir(parents=True)
    async with ToolService.open(home=tmp_path / "home", workspace=work, governance=RULES) as made:
        yield made


async def test_the_call_of_a_resumed_run_queues_what_is_missing(service: ToolService) -> None:
    definition = (await service.describe("read_file")).definition
    items: list[dict[str, Any]] = [{"path": name} for name in "abcde"]
    queued = Queued("default", 100, batch="0123456789abcdef")

    def killed() -> Iterator[dict[str, Any]]:
        yield from items[:4]
        raise Killed

    with pytest.raises(Killed):
        await service.batches.add(definition, killed(), len(items), queued, 2)
    (batch,) = service.batches.all()
    assert service.batches.states(batch) == Counter(queued=2, missing=1)
    again = await service.batches.add(definition, items, len(items), queued, 2)
    assert (again, service.batches.all()) == (batch, [batch])
    assert service.batches.states(batch) == Counter(queued=3)


async def test_a_batch_that_a_session_can_not_queue_whole_is_cancelled(service: ToolService) -> None:
    _, token = service.open_session("agent")
    items = [{"path": name} for name in "abcde"]
    arguments = {"tool": "read_file", "items": items, "per_run": 1}
    refused = await service.invoke("start_batch", arguments, session=token)
    assert isinstance(refused.error, Failure)
    assert refused.error.code == "rate_limited"
    (batch,) = service.batches.all()
    assert set(service.batches.states(batch)) == {"cancelled", "missing"}


async def test_a_lasting_answer_holds_for_its_batch_alone(service: ToolService) -> None:
    async def first_error(path: str) -> Failure | None:
        arguments = {"tool": "delete_file", "items": [{"path": path}]}
        started = (await service.invoke("start_batch", arguments)).value()["batch"]
        return (await service.resume(service.batches.get(started).runs[0])).error

    asked = await first_error("a")
    assert asked is not None
    service.approvals.answer(asked.details["approval"], "always", "ann")
    again = await first_error("b")
    assert again is not None
    assert again.code == "suspended"


async def test_ended_calls_keep_their_results_if_their_run_fails(service: ToolService) -> None:
    items = [{"path": name, "content": name} for name in ("missing/a", *"bcdefghi")]
    arguments = {"tool": "write_file", "items": items, "per_run": 7}
    batch = service.batches.get((await service.invoke("start_batch", arguments)).value()["batch"])
    errors = [(await service.resume(run)).error for run in batch.runs]
    assert [error and error.code for error in errors] == ["call_limit", None]
    results = service.batches.part(batch, 0, 100)
    shown = [str(r["value"]["path"] if "value" in r else r["error"]) for r in results]
    assert shown == ["there is nothing at 'missing/a'", *"bcde", *["stopped at 5 tool calls"] * 2, *"hi"]
    assert service.batches.part(batch, 4, 2) == results[4:6]
    read = []
    with pytest.raises(Failure, match="stopped at 5 tool calls"):
        read.extend(service.batches.results(batch))
    assert read == results


async def test_a_batch_of_batches_is_refused(service: ToolService) -> None:
    item = {"tool": "read_file", "items": [{"path": "a"}]}
    refused = await service.invoke("start_batch", {"tool": "start_batch", "items": [item]})
    assert refused.error is not None
    assert (refused.error.code, refused.error.rule) == ("permission_denied", "batch")
    refused = await service.invoke("start_batch", {"tool": "search_tools", "items": [{"query": "a"}]})
    assert refused.error is not None
    assert refused.error.message == "search_tools is for the agent; a batch can't call it"

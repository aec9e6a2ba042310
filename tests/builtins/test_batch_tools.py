"""start_batch and read_batch. `tests/surfaces/test_worker_command.py` shows them in a session, with a worker."""

from __future__ import annotations

from collections.abc import Callable

from tests.helpers.catalogue_rows import STARTED, Row, reading
from tests.helpers.governed import Governed

CATALOGUE = {
    "start_batch": Row({"tool": "read_file", "items": [{"path": "a.txt"}]}, [{"kind": "write", "items": 1, "runs": 1}]),
    "read_batch": reading({"batch": STARTED}, batch=STARTED),
}


def test_results_are_read_in_parts_in_the_order_of_the_items(govern: Callable[..., Governed]) -> None:
    home = govern()
    for name in "abde":
        (home.work / name).write_text(name)
    started = home.value("start_batch", tool="read_file", items=[{"path": name} for name in "abcde"], per_run=2)
    assert started["runs"] == 3
    first, second, third = home.service.service.batches.get(started["batch"]).runs
    home.service.resume(second)
    # The second run has ended, and the first has not.
    waiting = home.value("read_batch", batch=started["batch"])
    assert (waiting["runs"], waiting["results"], waiting["next_item"]) == ({"queued": 2, "done": 1}, [], 0)
    home.service.resume(first)
    found = home.value("read_batch", batch=started["batch"], first=1)
    assert found["results"] == [{"value": "b"}, {"error": "there is nothing at 'c'"}, {"value": "d"}]
    assert (found["items"], found["next_item"]) == (5, 4)
    home.service.service.runs.cancel(third, "test")
    found = home.value("read_batch", batch=started["batch"], first=3, count=2)
    assert [*found["results"][0], *found["results"][1]] == ["value", "error"]
    assert (found["next_item"], "cancelled" in found["results"][1]["error"]) == (None, True)
    assert home.error("read_batch", batch="0123").code == "not_found"

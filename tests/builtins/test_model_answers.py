"""The events of a stream do not depend on how the stream is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from albert_tools.builtins.models.answers import Events
from tests.helpers.effort import examples

STREAM = (
    b": hi\n\ndata: one\n\ndata:two\r\ndata: \xc3\xa4\r\n\r\n"
    b"event: x\rdata: a\rdata\rdata: b\r\rid: 1\n\n\n\ndata: end\n\ndata: half"
)


@examples(100)
@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_events_do_not_depend_on_the_pieces(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    events, found = Events(), []
    for start, end in pairwise(places):
        found += events.of(STREAM[start:end])
    assert found == [b"one", "two\nä".encode(), b"a\n\nb", b"end"]

"""Programs can nest calls as deep as in CPython. At the limit the run ends, and no handler of the program runs."""

from __future__ import annotations

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.testing import FakeExecutor

DOWN = """
def _down(n: int) -> int:
    return 0 if n == 0 else 1 + {call}


def t(n: int) -> Any:
    \"\"\"Go down.\"\"\"
    return {body}
"""

HOSTILE = '''
def _down(n: int) -> int:
    try:
        try:
            return _down(n + 1)
        except Exception:
            print("an exception")
            return 0
        finally:
            # Another error would take the limit's place.
            nothing = [][n]
            tools.write_file(path="a", content=str(nothing))
    except IndexError:
        return 0


def t() -> Any:
    """Try to see the limit."""
    try:
        return _down(0)
    except Exception:
        return "seen"
    finally:
        print("t")
'''


@pytest.mark.parametrize(
    "call",
    [
        "_down(n - 1)",
        "sum(map(_down, [n - 1]))",
        "sum(_down(m) for m in [n - 1])",
        "max([n - 1], key=_down) * 0 + n - 1",
    ],
)
@pytest.mark.parametrize("body", ["_down(n)", "parallel(_down(m) for m in [n, n])[1]"])
def test_calls_nest_as_deep_as_nested_data(call: str, body: str) -> None:
    source = DOWN.format(call=call, body=body)
    assert FakeExecutor().run(source, {"n": 200}).value() == 200
    with pytest.raises(Failure) as caught:
        FakeExecutor().run(source, {"n": 5_000}).value()
    assert caught.value.code == "recursion_limit"


def test_no_handler_and_no_finally_runs_at_the_limit() -> None:
    executor = FakeExecutor({"write_file": {"path": "a", "size_bytes": 1, "sha256": ""}})
    result = executor.run(HOSTILE, {})
    assert result.error is not None
    assert result.error.code == "recursion_limit"
    assert executor.calls == []
    assert not result.log

"""The list of primitives, and what their definitions promise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from albert_tools.builtins.catalog import builtin_primitives
from albert_tools.builtins.system.system import current_time, sleep
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.schema import violations


def test_names_and_gates() -> None:
    names = [p.name for p in builtin_primitives()]
    assert len(set(names)) == len(names)
    # What comes with Albert has fences that stand; but what a log holds, nobody can know beforehand.
    assert [p.name for p in builtin_primitives() if p.gated] == ["read_system_logs"]


@pytest.mark.parametrize("primitive", builtin_primitives(), ids=lambda p: p.name)
def test_everything_is_described(primitive: Primitive) -> None:
    d = primitive.definition
    assert d.description
    assert "Args:" not in d.description
    assert [p.name for p in d.parameters if not p.description] == []
    assert primitive.context is None or primitive.context not in [p.name for p in d.parameters]


@pytest.mark.parametrize("primitive", builtin_primitives(), ids=lambda p: p.name)
def test_defaults_fit_their_schemas(primitive: Primitive) -> None:
    for p in primitive.definition.parameters:
        assert p.required or violations(p.default, p.schema) == []


async def test_current_time(context: Any) -> None:
    now = await call_primitive(current_time, {}, context)
    told = datetime.fromisoformat(now["iso"])
    assert told.utcoffset() == timedelta(0)
    assert abs(told.timestamp() - now["unix"]) < 0.001
    assert abs(datetime.now(UTC) - told) < timedelta(seconds=10)


async def test_sleep(context: Any) -> None:
    assert await call_primitive(sleep, {"seconds": 0.01}, context) is None
    schema = sleep.definition.parameters_schema()
    assert violations({"seconds": 60}, schema) == []
    assert violations({"seconds": 60.1}, schema)
    assert violations({"seconds": -1}, schema)

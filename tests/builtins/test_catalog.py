"""The catalogue of primitives, and the properties of every declaration."""

from __future__ import annotations

import pytest

from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.validation import violations
from albert_tools.testing import registry


def test_names_and_gates() -> None:
    names = [p.name for p in registry().primitives()]
    assert len(set(names)) == len(names)
    # A log may contain secrets that no redaction finds.
    assert [p.name for p in registry().primitives() if p.gated] == ["read_system_logs"]


@pytest.mark.parametrize("primitive", registry().primitives(), ids=lambda p: p.name)
def test_every_primitive_is_described(primitive: Primitive) -> None:
    d = primitive.definition
    assert d.description
    assert "Args:" not in d.description
    assert [p.name for p in d.parameters if not p.description] == []
    assert primitive.context is None or primitive.context not in [p.name for p in d.parameters]


@pytest.mark.parametrize("primitive", registry().primitives(), ids=lambda p: p.name)
def test_defaults_fit_their_schemas(primitive: Primitive) -> None:
    for p in primitive.definition.parameters:
        assert p.required or violations(p.default, p.schema) == []

"""A network namespace that can't be entered is reported at once."""

from __future__ import annotations

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command.network_namespace import listen


def test_a_process_that_does_not_exist_is_reported() -> None:
    with pytest.raises(Failure, match="No such file or directory") as caught:
        listen(99_999_999, 3128)
    assert caught.value.code == "sandbox_unavailable"

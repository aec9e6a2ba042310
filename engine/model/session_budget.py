"""The most that a session may use in total."""

from __future__ import annotations

from msgspec import Struct

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure


class Budget(Struct, frozen=True):
    """The most that a session may use in total; None means unlimited. The names contain the units. `model_cost` is in the
    configured currency."""

    calls: float | None = None
    wall_seconds: float | None = None
    bytes_written: float | None = None
    network_bytes: float | None = None
    model_tokens: float | None = None
    model_cost: float | None = None

    def __post_init__(self) -> None:
        for name in UNITS:
            value = getattr(self, name)
            if value is not None and not (type(value) in (int, float) and 0 <= value < 2**53):
                raise Failure(
                    "invalid_arguments", f"the budget of {name} can't be {value!r}", hint="give a number, 0 or more"
                )

    def as_dict(self) -> dict[str, Json]:
        """The limited units with their limits."""
        return {name: value for name in UNITS if (value := getattr(self, name)) is not None}


#: The units that a budget can limit.
UNITS: tuple[str, ...] = Budget.__struct_fields__

"""The stage of examples: a call has no effect outside the temporary workspace. Stubs replace other tools."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.authority.authorization import ExampleAuthority
from albert_tools.engine.authority.rules_source import RulesInForce
from albert_tools.engine.call.absent import NoSession
from albert_tools.engine.call.context import Call, Known, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.flow_rules import OUTSIDE
from albert_tools.engine.policy.settings import Governance


class ScratchSpace(NoSession):
    """What the examples of one source may write together, in place of a session's budget. `size` is in bytes."""

    def __init__(self, size: int) -> None:
        self._left = size

    def left(self, unit: str) -> float:
        """The bytes that are left; infinity for every other unit."""
        return self._left if unit == "bytes_written" else super().left(unit)

    def bounded(self, unit: str) -> list[str]:
        """Only the bytes are limited. The id is that of this object, because calls lock their budgets."""
        return [f"examples {id(self)}"] if unit == "bytes_written" else []

    def spend(self, **used: float) -> None:
        """Take off what a call has written."""
        self._left -= int(used.get("bytes_written", 0))

    async def charged(self, call: Call, run: Run) -> Call:
        """The stage that charges this space for the call."""
        run.session = self
        return call


async def scratch(call: Call, run: Run) -> Call:
    """Add the rules of the example, which have its limits.

    Raises:
        Known: A stub has answered.
        Failure: `permission_denied`; the failure of a stub.
    """
    name = call.name
    stubs = run.options.stubs or {}
    if call.depth and name in stubs:
        # A stub's output is not validated, because an example only contains the parts of an answer that it needs.
        raise Known(stubs[name](call.arguments))
    rules = run.service.governance
    assert isinstance(rules, Governance)
    if call.target.primitive is not None and not _stays_inside(call.target.primitive):
        raise Failure(
            "permission_denied",
            f"an example can't call {name} for real",
            hint=f'give its answer in the example: stubs={{"{name}": …}}',
            rule="scratch",
            tool=name,
        )
    deadline = min(call.deadline, run.began + rules.limits.run_seconds)
    return replace(
        call,
        deadline=deadline,
        rules=RulesInForce(rules, ExampleAuthority()),
        decision=Decision("allow", "scratch", "allowed"),
    )


def _stays_inside(primitive: Primitive) -> bool:
    """Whether a call can only use files of its workspace, needs no permission, and reads nothing that somebody else has written."""
    if primitive.gated or primitive.definition.declared.source in OUTSIDE:
        return False
    effects = set(primitive.definition.effects)
    # An application's tool can act on anything, whatever paths it names.
    return not effects or (primitive.is_shipped and bool(primitive.paths) and effects <= {"read", "write", "delete"})

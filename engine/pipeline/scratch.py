"""The stage of examples: a call has no effect outside the temporary workspace. Stubs replace other tools."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.authority.authorization import ExampleAuthority
from albert_tools.engine.authority.rules_source import RulesInForce
from albert_tools.engine.call.context import Call, Known, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.settings import Governance


async def scratch(call: Call, run: Run) -> Call:
    """Add the rules of the example, which have its limits.

    Raises:
        Known: A stub has answered.
        Failure: `permission_denied`; the failure of a stub.
    """
    name = call.name
    if call.depth and name in run.stubs:
        # A stub's output is not validated, because an example only contains the parts of an answer that it needs.
        raise Known(run.stubs[name](call.arguments))
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
    """Whether a call can only change its workspace and needs no permission."""
    if primitive.gated:
        return False
    effects = set(primitive.definition.effects)
    return effects <= {"read"} or (primitive.context is not None and effects <= {"read", "write", "delete"})

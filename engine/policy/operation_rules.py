"""Rules on the operations of a tool that has several operations: `git` may use DIFF, but not PUSH; `run_linter` RUFF, but not
MYPY."""

from __future__ import annotations

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.layers import Layer, Resource
from albert_tools.engine.policy.rule_kind import ListKey, NameRule, RuleKind, same, word

_OPERATION = word("an operation", "PUSH", "_-")

ALLOWED = ListKey(
    "allowed_operations",
    _OPERATION,
    32,
    "[DIFF, LOG, COMMIT]",
    "the only operations that may be used; they need no approval of their own",
)
ASKING = ListKey("asking_operations", _OPERATION, 32, "[COMMIT]", "operations that need approval")
FORBIDDEN = ListKey("forbidden_operations", _OPERATION, 32, "[PUSH]", "operations that are denied")

_OPERATIONS = NameRule("operation", same, ALLOWED, ASKING, FORBIDDEN)

#: Operations of each tool that need approval if the owner's rules have no `allowed_operations`. The listed operations of git
#: change its history, the working tree or a remote.
SHIPPED_ASKING: dict[str, frozenset[str]] = {
    "git": frozenset(
        "CLONE FETCH PULL COMMIT PUSH BRANCH CHECKOUT MERGE REBASE RESET STASH TAG REMOTE".split(),
    ),
}


def judge_operation(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """The decision on an operation; None if no rule objects."""
    operation = resource.name.upper()
    decision = _OPERATIONS.judge(layers, definition, operation)
    if decision is not None or _OPERATIONS.owner_lists(layers, definition):
        return decision
    if operation not in SHIPPED_ASKING.get(definition.name, ()):
        return None
    hint = f"the owner can list it under `tools.{definition.name}.allowed_operations`"
    return _OPERATIONS.question(definition, operation, "shipped.asking_operations")._replace(hint=hint)


OPERATIONS = RuleKind(
    (ALLOWED, ASKING, FORBIDDEN), {"operation": judge_operation}, use="operation", not_for="has no operations"
)

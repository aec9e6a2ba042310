"""Rules on the operations of a tool that has several operations: `git` may use DIFF, but not PUSH; `run_linter` RUFF, but not
MYPY."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from albert_tools.engine.model.definition import Json, Schema, ToolDefinition
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.layers import Layer, Resource, Section
from albert_tools.engine.policy.rule_kind import Examined, Finding, ListKey, NameRule, RuleKind, same_word, word

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

_OPERATIONS = NameRule("operation", same_word, ALLOWED, ASKING, FORBIDDEN)

#: The most operations that a message lists.
_MAX_SHOWN = 20

#: Operations of each tool that need approval if the owner's rules have no `allowed_operations`. The listed operations of git
#: change its history, the working tree or a remote.
SHIPPED_ASKING: dict[str, frozenset[str]] = {
    "git": frozenset(
        "CLONE FETCH PULL COMMIT PUSH BRANCH CHECKOUT MERGE REBASE RESET STASH TAG REMOTE".split(),
    ),
}
#: The arguments with which an operation of git only lists. Nobody is asked about it then.
_LISTING = {
    "BRANCH": ("", "--list", "-l", "--show-current", "--all", "-a", "-r", "-v", "-vv"),
    "TAG": ("", "--list", "-l"),
    "REMOTE": ("", "--verbose", "-v"),
    "STASH": ("list",),
}


def judge_operation(layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource) -> Decision | None:
    """The decision on an operation; None if no rule objects."""
    operation = resource.name
    decision = _OPERATIONS.judge(layers, definition, operation)
    if decision is not None or _OPERATIONS.owner_lists(layers, definition):
        return decision
    if operation.upper() not in SHIPPED_ASKING.get(definition.name, ()) or resource.use in _LISTING.get(operation, ()):
        return None
    hint = f"the owner can list it under `tools.{definition.name}.allowed_operations`"
    return _OPERATIONS.question(definition, operation, "shipped.asking_operations")._replace(hint=hint)


def _operations(tools: Sequence[ToolDefinition]) -> set[str] | None:
    """The operations of tools, in upper case; None if a tool doesn't list its operations."""
    operations: set[str] = set()
    for tool in tools:
        for name in (name for name, use in tool.declared.uses.items() if use == "operation"):
            parameter = tool.parameter(name)
            constants = _constants(parameter.schema) if parameter is not None else None
            if constants is None:
                return None
            operations.update(str(constant).upper() for constant in constants)
    return operations


def _constants(schema: Schema) -> list[Json] | None:
    """The values of a schema, without null; None if it doesn't list them."""
    if "enum" in schema or "const" in schema:
        return [value for value in schema.get("enum", [schema.get("const")]) if value is not None]
    if schema.get("type") == "null":
        return []
    parts = schema.get("anyOf") or ([schema["items"]] if "items" in schema else [])
    lists = [_constants(part) for part in parts] or [None]
    return None if None in lists else [value for values in lists for value in values or ()]


def unknown_operations(whose: str, tools: Sequence[ToolDefinition], section: Section) -> Iterator[tuple[str, str]]:
    """The operations in a section that no tool has, each with its key and a message. Nothing is found if there are no operations,
    or if a tool doesn't list its own. `whose` names the tools."""
    known = sorted(_operations(tools) or ())
    for key in (ALLOWED, ASKING, FORBIDDEN) if known else ():
        for name in (name for name in key.of(section) or () if name not in known):
            near = did_you_mean(name, known) or f"; it has {listed(known, _MAX_SHOWN)}"
            yield key.name, f"{whose} has no operation {name!r}{near}"


def _lint(examined: Examined) -> Iterator[Finding]:
    if examined.group == "categories":
        for key, message in unknown_operations("this category", examined.tools, examined.section):
            yield f"{examined.place}.{key}", message


OPERATIONS = RuleKind(
    (ALLOWED, ASKING, FORBIDDEN),
    {"operation": judge_operation},
    uses=frozenset({"operation"}),
    not_for="has no operations",
    lint=_lint,
)

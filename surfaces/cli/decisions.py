"""What the rules decide about a call that is not made, for ``albert policy explain``, ``try`` and ``test``.

Rate limits and budgets are not part of it, and neither are the addresses of hosts, the sizes of files and the files to which links
lead: they are judged when the call is made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from albert_tools.engine.agent.agent_tools import judged_actions
from albert_tools.engine.call.arguments import argument_violations
from albert_tools.engine.describing import Description
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.engine.policy.decision import Decision, SessionFacts
from albert_tools.surfaces.cli.session_tools import token

if TYPE_CHECKING:
    from albert_tools.engine.authority.authorization import Authority
    from albert_tools.engine.authority.rules_source import RulesInForce
    from albert_tools.engine.model.definition import Mode, ToolDefinition
    from albert_tools.engine.policy.settings import Governance
    from albert_tools.service import ToolService


def authority_of(service: ToolService, file: Path) -> Authority:
    """The authority of the owner's rules in another file, together with the project's rules.

    Raises:
        Failure: `not_found`, `governance_unavailable`.
    """
    root = str(service.workspace.root)
    return _in_force(service, file, root, Path(root) / ".albert" / "governance.yaml").authority


def demand_rules(service: ToolService, file: Path) -> Governance:
    """The owner's rules in another file. Raises as `authority_of`."""
    return _in_force(service, file, "/", None).governance


def _in_force(service: ToolService, file: Path, root: str, project: Path | None) -> RulesInForce:
    from albert_tools.engine.authority.rules_source import RulesSource

    if not os.path.lexists(file):
        raise Failure("not_found", f"there is no file {str(file)!r}", hint="give the path of a file of rules")
    primitives = {*service.registry.primitive_names, *RESERVED}
    rules = RulesSource(file, project, primitives=primitives).in_force(root, service.modes, audit=False)
    if isinstance(rules, Failure):
        raise rules.copy(hint="correct it and try again; the rules in force stay as they are")
    return rules


async def describe(service: ToolService, name: str, *, session: str | None = None) -> Description:
    """A tool, see `ToolService.describe`, or an action: the rules can name both."""
    action = judged_actions().get(name)
    if action is None:
        return await service.describe(name, session=session)
    return Description(action.definition, gated=action.gated)


async def decisions_on(
    service: ToolService,
    authority: Authority,
    definition: ToolDefinition,
    arguments: Mapping[str, Any],
    mode: Mode,
    session: SessionFacts | None = None,
) -> list[Decision]:
    """The decisions on a call in a mode, one for each rule that applies.

    Raises:
        Failure: the workspace can't be used; `invalid_arguments`, or the failure of arguments that can never work.
    """
    await asyncio.to_thread(_demand_valid, definition, arguments)
    primitive = service.registry.primitive(definition.name)
    # The check of an application's primitive can itself fail. The call reports that.
    if primitive is not None and primitive.is_shipped:
        await asyncio.to_thread(primitive.demand, arguments)
    for name in _used(definition, arguments, "tool"):
        called = (await service.describe(name, session=token())).definition
        for items in _used(definition, arguments, "items"):
            for item in items:
                await asyncio.to_thread(_demand_valid, called, item)
    return await asyncio.to_thread(judged, service, authority, definition, arguments, mode, session)


def _demand_valid(definition: ToolDefinition, arguments: Any) -> None:
    wrong = argument_violations(definition, arguments)
    if wrong:
        raise Failure(
            "invalid_arguments",
            f"{definition.name}: " + "; ".join(v["message"] for v in wrong),
            hint=f"call the tool as {definition.signature()}",
            details={"violations": wrong},
        )


def _used(definition: ToolDefinition, arguments: Mapping[str, Any], use: str) -> list[Any]:
    """The arguments with a use: the ``tool`` of a batch that a call starts, and its ``items``."""
    return [arguments[name] for name, of in definition.declared.uses.items() if of == use and name in arguments]


def judged(
    service: ToolService,
    authority: Authority,
    definition: ToolDefinition,
    arguments: Mapping[str, Any],
    mode: Mode,
    session: SessionFacts | None = None,
    is_recorded: bool = False,
) -> list[Decision]:
    """The decisions on a call with valid arguments, or on a recorded call. There is at least one.

    Raises:
        Failure: the workspace can't be used.
    """
    action = judged_actions().get(definition.name)
    primitive = action or service.registry.primitive(definition.name)
    given = definition.with_defaults(arguments)
    if primitive is not None and is_recorded:
        # Of the recorded arguments, only those are given that the other rules look at.
        primitive = replace(primitive, deny=None)
    try:
        workspace = service.workspace.at(session.folder) if session and session.folder else service.workspace
        decisions = authority.judge(definition, primitive, given, workspace, mode)
    except Failure as failure:
        return [Decision("deny", failure.rule or failure.code, "path", failure.message, failure.hint)]
    flows = authority.policy.flows
    if definition.manifest is not None:
        of_version = flows.judge_version(definition.name, definition.manifest, definition.version)
        decisions += [flow for flow in of_version if flow.verdict == "deny"]
    if session is None:
        return decisions
    is_approved = definition.kind != "primitive" and service.reviews.state(definition.name, definition.version).approved
    return [*decisions, *_of_session(authority, definition, given, session, is_approved)]


def _of_session(
    authority: Authority,
    definition: ToolDefinition,
    arguments: Mapping[str, Any],
    session: SessionFacts,
    is_approved: bool,
) -> list[Decision]:
    """What the lease of a session, and what it has seen, decide about a call."""
    from albert_tools.engine.authority.sessions import Lease

    decisions, flows = [], authority.policy.flows
    for name in (definition.name, *_used(definition, arguments, "tool")):
        if not Lease(session.tools).covers(name, ()):
            message = f"{name} is not among the tools of the session's lease"
            decisions.append(Decision("deny", "lease.tools", "denied", message))
    seen = {kind: f"{kind} data" for kind in session.seen}
    if definition.name in RESERVED:
        return decisions  # An action passes no stage of flows.
    if definition.manifest is None:
        return decisions + flows.judge_session(definition, arguments, lambda: seen)
    return decisions + flows.judge_request(definition.name, definition.manifest, is_approved, seen)

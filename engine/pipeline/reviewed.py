"""The stage of reviews: a revoked version does not run, and the calls of an approved version are held to its manifest.

A call outside of the manifest is denied. The manifest is computed before the tool runs and contains all that the tool can do. So
such a call is a fault of the analysis or of the sandbox, and the record says so. Inside of the manifest the rules still deny, but
a person who has approved the manifest is not asked again, except about files that others execute, and about commands that the
manifest doesn't fix.
"""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.authority.authorization import start_of_command
from albert_tools.engine.authority.reviews import Reviews
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.call.manifest_fence import Fence
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest_match import normal
from albert_tools.engine.model.marked_paths import is_executed
from albert_tools.engine.policy.decision import Decision

#: The rule of a call that is outside of the manifest, and of one that a person has approved with the manifest.
RULE = "manifest"
#: The states in which the calls of a version are held to its manifest. The tests hold all versions to theirs.
HELD = frozenset({"active"})


def counted(call: Call) -> Call:
    """Compare a call of a primitive with the manifests of the approved versions around it, and count it.

    This happens once for each call, also for those that are answered from the journal of the run. `reviewed` denies the call.
    """
    if not call.fences or call.target.primitive is None:
        return call
    beyond, planned = None, []
    for each in call.fences:
        why, allowing = each.admit(call.target.definition, call.given, call.callers[each.depth + 1 :])
        if why is not None and beyond is None:
            beyond = (each.version.name, why)
        planned.append(allowing)
    return replace(call, beyond=beyond, planned=tuple(planned))


async def reviewed(call: Call, run: Run) -> Call:
    """Add the fence of an approved version to its call.

    Raises:
        Failure: `permission_denied` if the version is revoked, or if the call is outside of a manifest.
    """
    if call.beyond is not None:
        tool, why = call.beyond
        raise Failure(
            "permission_denied",
            f"{call.name} is outside of the approved manifest of {tool}: {why}",
            hint=f"this is a fault of Albert Tools, not of the call: report it, with the source of {tool}",
            rule=RULE,
            tool=call.name,
            details={"rationale_code": "outside_manifest"},
        )
    version, reviews = call.target.version, run.service.record.reviews
    if version is None or (run.options.unsaved is not None and not call.depth):
        return call
    state = reviews.of(version)
    if state.state == "revoked":
        raise Failure(
            "permission_denied",
            f"version {version.version[:12]} of {version.name} was {state.decided} by {state.by}{state.reason}",
            hint="call another version or another tool, or define one that the owner can approve",
            rule="revoked",
            tool=version.name,
            details={"rationale_code": "revoked"},
        )
    if state.state in HELD:
        # Without a workspace, every call inside is denied.
        spell = normal if isinstance(run.workspace_or_failure, Failure) else run.workspace.spell
        around = Fence(version, call.arguments, call.depth, spell)
        return replace(call, fences=(*call.fences, around))
    return call


def without_questions(decisions: list[Decision], call: Call, run: Run) -> list[Decision]:
    """The decisions on a call, without the questions that the approval of a manifest has answered. Denials remain."""
    if not call.planned or not all(call.planned) or call.mode != "NORMAL":
        return decisions
    if not any(d.verdict == "ask" for d in decisions):
        return decisions
    # What the person saw are paths in the workspace, not in the folder in which the session works.
    primitive = call.target.primitive
    if primitive is not None and primitive.paths and run.workspace.recorded(".") != ".":
        return decisions
    reviews = run.service.record.reviews
    # The approval may have ended since the run began.
    if not reviews.of(call.fences[-1].version).approved or _writes_executed(call, run) or not _is_fixed(call, reviews):
        return decisions
    return [Decision("allow", RULE, "allowed") if d.verdict == "ask" else d for d in decisions]


def _writes_executed(call: Call, run: Run) -> bool:
    primitive = call.target.primitive
    if primitive is None:
        return False
    # A session can work in `.github`, and its paths begin there.
    paths = [run.workspace.recorded(path) for path, use in primitive.paths_in(call.arguments) if use != "read"]
    # A command can change any file of the folder that it starts in.
    folder = start_of_command(primitive, call.arguments, run.workspace)
    return any(map(is_executed, [*paths, *([f"{folder}/x"] if folder else [])]))


def _is_fixed(call: Call, reviews: Reviews) -> bool:
    """Whether an approved manifest says which command the call runs, whatever fills its holes. Other calls are no commands."""
    if call.target.primitive is None:
        return True
    from albert_tools.engine.shell.command_holes import is_loose

    return any(
        reviews.of(fence.version).approved and not any(map(is_loose, calls))
        for fence, calls in zip(call.fences, call.planned, strict=True)
    )

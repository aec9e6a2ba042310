"""Authorizes a call: combines the decisions on the tool, its category, the mode, and the resources that the call uses.

The strictest decision applies. If nobody can be asked, *ask* means deny.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from albert_tools.engine.authority.approval_digest import Fingerprint, demand_unchanged
from albert_tools.engine.model.definition import Mode, ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import describe_fault
from albert_tools.engine.model.primitive import Primitive, demand_none
from albert_tools.engine.policy.command_rules import COMMANDS, PARSED
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.workspace.call_judge import NO_RULES, CallJudge
from albert_tools.engine.workspace.workspace import Workspace

if TYPE_CHECKING:
    from albert_tools.engine.policy.outgoing import Outgoing

#: A person's possible answers: yes once, yes for the session, yes always for a version of a composite, or no.
Choice = Literal["once", "session", "always", "no"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


class Question(NamedTuple):
    """A question to a person: may `tool` be called with `arguments`?

    `decision` contains the rule that asks. `callers` are the composites that make the call. `reason` is the agent's own
    explanation. `id` is the id of the approval. `choices` are the possible answers.
    """

    tool: ToolDefinition
    arguments: Mapping[str, Any]
    decision: Decision
    callers: tuple[str, ...] = ()
    reason: str = ""
    id: str = ""
    choices: tuple[Choice, ...] = ("once", "no")


class Answer(NamedTuple):
    """A person's answer. `choice` is one of the question's choices, or True (once), or False. `by` is the person, for the
    record."""

    choice: bool | Choice
    by: str


#: Answers a question: with one of its choices, with True (once) or False, or with an `Answer`, which also names the person.
Asker = Callable[[Question], Awaitable[bool | Choice | Answer]]


class Authority:
    """Authorizes calls by the rules and the mode. It has no side effects."""

    def __init__(self, policy: Policy, modes: Modes) -> None:
        self.policy = policy
        self.modes = modes

    def judge(
        self,
        definition: ToolDefinition,
        primitive: Primitive | None,
        arguments: Mapping[str, Any],
        workspace: Workspace,
        mode: Mode,
    ) -> list[Decision]:
        """All decisions on a call with valid arguments. There is at least one.

        Raises:
            Failure: `permission_denied` or `invalid_arguments` for a path that can't be in the workspace.
        """
        gated = primitive is not None and primitive.gated
        decisions = [self.policy.permits(definition, gated, mode)]
        if primitive is not None and (primitive.paths or primitive.urls or primitive.judged):
            decisions += self.policy.touches(definition, _resources(primitive, arguments, self.reaching(workspace)))
        if primitive is not None and primitive.deny is not None:
            settings = self.policy.settings.get(primitive.name, {})
            try:
                denied = primitive.deny(arguments, settings, self.outgoing(definition, primitive, arguments))
                demand_none(f"`deny` of {primitive.name}", denied)
            except Failure as failure:
                if failure.code == "permission_denied":
                    decisions.append(Decision.of(failure))
            except Exception as fault:
                problem = f"{primitive.name} can't be judged, so it is denied: {describe_fault(fault)}"
                decisions.append(Decision("deny", "fault", "denied", problem))
        return decisions

    def guarded(
        self,
        definition: ToolDefinition,
        workspace: Workspace,
        most: int | None = None,
        approved: Mapping[str, Fingerprint] | None = None,
        marks_private: Callable[[], bool] | None = None,
    ) -> Workspace:
        """The workspace for one call of a tool. It includes the extra roots, and it checks every file by the rules.

        `most` limits the bytes that the call writes in total. `approved` are the fingerprints of the files that a person has
        approved for a change. `marks_private` says whether it matters that the call sees private files; None: it doesn't.
        """
        flows, paths = self.policy.flows, self.policy.paths.of(definition)
        judge = CallJudge(
            paths,
            definition.name,
            self.policy.numbers(definition).max_file_bytes,
            bytes_left=most,
            demand_approved=partial(demand_unchanged, approved or {}, definition.name),
            private=flows.private,
            marks_private=None if paths.forbids(flows.private_patterns) else marks_private,
        )
        return self.reaching(workspace).judged_by(judge)

    def outgoing(self, definition: ToolDefinition, primitive: Primitive, arguments: Mapping[str, Any]) -> Outgoing:
        """The network rules for one call of a tool."""
        from albert_tools.engine.policy.outgoing import Outgoing

        return Outgoing(self.policy, definition, _urls(primitive, arguments))

    def reaching(self, workspace: Workspace) -> Workspace:
        """The workspace together with the extra roots of the owner's rules."""
        return workspace.reaching(self.policy.paths.roots) if self.policy.paths.roots else workspace


class ExampleAuthority(Authority):
    """The authority in the temporary workspace of an example, where no rules apply. The stage `scratch` decides there."""

    def __init__(self) -> None:
        super().__init__(Policy((), "/", "/"), Modes(None))

    def guarded(
        self,
        definition: ToolDefinition,
        workspace: Workspace,
        most: int | None = None,
        approved: Mapping[str, Fingerprint] | None = None,
        marks_private: Callable[[], bool] | None = None,
    ) -> Workspace:
        """The workspace without rules, because all of it belongs to the example."""
        return workspace.judged_by(CallJudge(NO_RULES, definition.name, bytes_left=most))

    def outgoing(self, definition: ToolDefinition, primitive: Primitive, arguments: Mapping[str, Any]) -> Outgoing:
        """An example may not use the network. The stage `scratch` denies calls of such tools."""
        raise RuntimeError("an example may not use the network")


def parses_commands(primitive: Primitive) -> bool:
    """Whether judging a call requires parsing a command. A hostile command can take a third of a second."""
    return not PARSED.isdisjoint(primitive.judged.values())


def nobody_to_ask(decision: Decision, tool: str) -> Failure:
    """The denial of an *ask* when nobody can be asked."""
    return Failure(
        "permission_denied",
        f"{decision.message}, and there is nobody to ask",
        hint="call it where a person can answer, such as `albert run` on a terminal, or ask the owner for a rule that allows it",
        rule=decision.rule,
        tool=tool,
        details={"rationale_code": decision.rationale, "asked": "nobody"},
    )


def refused_by_person(decision: Decision, tool: str) -> Failure:
    """The denial of an *ask* when the person says no."""
    return Failure(
        "permission_denied",
        f"{decision.message}, and a person said no",
        hint="do without it, or ask the person for an alternative",
        rule=decision.rule,
        tool=tool,
        details={"rationale_code": "refused"},
    )


def _resources(primitive: Primitive, arguments: Mapping[str, Any], workspace: Workspace) -> list[Resource]:
    resources = []
    for name, use in primitive.paths.items():
        for path in _texts(primitive, name, arguments):
            # An empty path means that an optional folder wasn't given.
            if path:
                # No shipped primitive can change git's own files. One of an application may do it itself, so a person is asked.
                changing = use != "read" and primitive.is_shipped
                resources.append(Resource("path", workspace.absolute(path, changing), use))
    if primitive.urls:
        resources += _urls(primitive, arguments)
    if primitive.judged:
        resources += _others(primitive, arguments, workspace)
    return resources


def _others(primitive: Primitive, arguments: Mapping[str, Any], workspace: Workspace) -> list[Resource]:
    resources = []
    folder, root = start_of_command(primitive, arguments, workspace), str(workspace.root)
    uses = primitive.definition.declared.uses.items()
    words = [word for name, use in uses if use == "arguments" for word in _texts(primitive, name, arguments)]
    for name, kind in primitive.judged.items():
        texts = _texts(primitive, name, arguments) if kind != "operation" else _names(arguments.get(name))
        if kind == "program":
            # A program and its arguments are checked as one command. Splitting a long text into words takes seconds.
            resources.append(Resource(kind, shlex.join(texts), folder, root, tuple(texts)))
        else:
            use = shlex.join(words) if kind == "operation" else folder
            resources += [Resource(kind, text, use, root) for text in texts]
    return resources


def _names(value: Any) -> list[str]:
    """The names of operations, also of those that are numbers or booleans."""
    return [str(v) for v in (value if isinstance(value, list) else [value]) if v is not None]


def start_of_command(primitive: Primitive, arguments: Mapping[str, Any], workspace: Workspace) -> str:
    """The folder in which the command of a call starts, with links resolved, as records name it; empty without a command."""
    if COMMANDS.judges.keys().isdisjoint(primitive.judged.values()):
        return ""
    named = arguments.get("cwd") or "."
    # The command can't start in a folder that isn't there.
    with suppress(Failure):
        named = workspace.locate(named)
    return workspace.recorded(named)


def _urls(primitive: Primitive, arguments: Mapping[str, Any]) -> list[Resource]:
    return [
        Resource("url", url, str(arguments.get(method) or "GET"))
        for name, method in primitive.urls.items()
        for url in _texts(primitive, name, arguments)
    ]


def _texts(primitive: Primitive, name: str, arguments: Mapping[str, Any]) -> list[str]:
    """The texts of one argument, as a list.

    Raises:
        Failure: `permission_denied` for a value that is neither a text nor a list of texts.
    """
    value = arguments.get(name)
    if isinstance(value, str):
        return [value]
    texts = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(text, str) for text in texts):
        raise Failure(
            "permission_denied",
            f"{name} of {primitive.name} is neither a text nor a list of texts, so the rules can't judge it",
            rule="unjudged",
            tool=primitive.name,
        )
    return texts

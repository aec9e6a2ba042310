"""The actions: what a session does with tools, runs, sessions and records, besides calling tools.

An action is declared like a primitive and passes the pipeline like a call. So the lease, the mode, the rules and approvals judge
it, the budget is charged, and the ledger records it. The registry does not contain it, so no program can call it.

What belongs to the session itself, such as its runs and the sessions within it, needs no permission. The owner, who acts without a
session, passes no pipeline.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from albert_tools.engine.authority.approval_digest import arguments_digest
from albert_tools.engine.call.context import Call, RequestOptions, Run, ServiceContext
from albert_tools.engine.model.definition import Effect, ToolDefinition, ToolParameter
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.parameter_types import Hash
from albert_tools.engine.model.primitive import Primitive, primitive
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.engine.model.schema import Bound
from albert_tools.engine.pipeline.allowance import demand_allowance
from albert_tools.engine.pipeline.pipeline import Pipeline, action_stages
from albert_tools.engine.pipeline.session import RUN_SOURCE
from albert_tools.engine.pipeline.validate import validate
from albert_tools.engine.policy.decision import Decision, strictest
from albert_tools.engine.session_access import SessionAccess

T = TypeVar("T")
F = TypeVar("F")
_TEXT = {"type": "string"}
#: Seconds that an action may take, after it was judged.
TIMEOUT = 60.0


def _action(name: str, description: str, effect: Effect, *parameters: str, gated: bool = False) -> Primitive:
    declared = tuple(ToolParameter(p.rstrip("?"), _TEXT, "", not p.endswith("?"), "") for p in parameters)
    definition = ToolDefinition(
        name, description, declared, {}, (effect,), timeout=TIMEOUT, family="actions", version="1"
    )
    return Primitive(definition, _nothing, is_async=True, gated=gated)


async def _nothing(**arguments: Any) -> None:
    """The function of an action that nobody has requested."""


DEFINE = _action(
    "define_tool", "Save a source as a tool.", "write", "source", "name?", "version?", "replaces?", "stored_source?"
)
REMOVE = _action("remove_tool", "Remove a saved tool.", "write", "name", "removes?")
RUN = _action(RUN_SOURCE, "Check a source, to run it without saving it.", "read", "source")
REVOKE = _action("revoke_session", "End another session.", "write", "session", gated=True)
CANCEL = _action("cancel_run", "Cancel a run of another session or of the owner.", "write", "run", gated=True)
RESUME = _action("resume_run", "Resume a run of another session or of the owner.", "write", "run", gated=True)
READ = _action("read_records", "Read the ledger, or the runs of others.", "read", "of", gated=True)


@primitive(effects=["write"], category="artifact", family="actions")
async def put_content(context: CallContext, content_hash: Hash, size_bytes: Annotated[int, Bound(minimum=0)]) -> str:
    """Store a content, so that requests of the wire protocol can name it by its hash."""
    raise NotImplementedError


#: All actions that are judged. A gated action is denied until the owner's rules allow it by name.
ACTIONS = (DEFINE, REMOVE, RUN, REVOKE, CANCEL, RESUME, READ, put_content)


async def permitted() -> None:
    """The effect of an action that only permits what follows it: a run begins after its action, because it may take longer."""


class ActionRequest(Struct):
    """What a session has asked for: its request, with the trace and the reason that belong to the action too, and the result of the
    action in the pipeline."""

    invocation: ToolInvocation
    result: ToolResult | None = None


class Review(NamedTuple, Generic[F]):
    """What is found out about an action before it is approved: what its effect needs, why a person must be asked ("" if nobody
    is), and further arguments, for the question and the record."""

    found: F
    why: str = ""
    arguments: Mapping[str, str] = MappingProxyType({})


class Actions(Struct, eq=False):
    """Performs the actions of sessions."""

    pipeline: Pipeline
    context: ServiceContext
    access: SessionAccess

    async def invoke(self, tool: Primitive, invocation: ToolInvocation) -> ToolResult:
        """Call a tool that no program can call, such as the agent's own ones that only read. It is judged and recorded like an
        action."""
        return await self.pipeline.invoke(
            invocation, self.context, RequestOptions(action=tool), stages=action_stages(None)
        )

    async def refuse(self, tool: Primitive, invocation: ToolInvocation, why: Failure | None = None) -> ToolResult:
        """Refuse a call of such a tool, whose arguments or marks are wrong, or with the reason `why`, and record the refusal."""

        async def refusal(call: Call, run: Run) -> Call:
            if why is not None:
                raise why
            return await validate(call, run)

        refused = Primitive(tool.definition, _nothing, is_async=True)
        return await self.pipeline.invoke(invocation, self.context, RequestOptions(action=refused), stages=(refusal,))

    async def perform(
        self,
        action: Primitive,
        arguments: dict[str, str],
        token: str | None,
        effect: Callable[[], Awaitable[T]],
        belongs_to: Callable[[], str | None] | None = None,
        request: ActionRequest | None = None,
    ) -> T:
        """Perform an action of the owner or of a session.

        Args:
            action: One of `ACTIONS`.
            arguments: Its arguments.
            token: The session's token; None for the owner.
            effect: Called if the action is allowed. Its result is returned.
            belongs_to: Returns the session to which the object of the action belongs, see `SessionAccess.is_own`.
            request: The request that needs the action, if it is known.

        Raises:
            Failure: The action is denied or waits for an answer, or `effect` failed.
        """
        if token is None or (belongs_to is not None and self.access.is_own(token, belongs_to)):
            return await effect()
        return await self._request(action, arguments, token, _Attempt(lambda _: effect()), request)

    async def perform_reviewed(
        self,
        action: Primitive,
        arguments: dict[str, str],
        token: str,
        review: Callable[[F | None], Awaitable[Review[F]]],
        effect: Callable[[F], Awaitable[T]],
        request: ActionRequest | None = None,
    ) -> T:
        """Perform an action of a session about which something is found out first. As `perform`.

        Args:
            review: Called after rules, rate limits and budget have allowed the action, and again after a person has answered. It
                gets what it has found before.
            effect: Called with what was found.

        Raises:
            Exception: Another exception of `review` than a Failure.
        """
        return await self._request(action, arguments, token, _Attempt(effect, review), request)

    async def _request(
        self,
        action: Primitive,
        arguments: dict[str, str],
        token: str,
        attempt: _Attempt[T],
        request: ActionRequest | None,
    ) -> T:
        request = request or ActionRequest(ToolInvocation(action.name, arguments, session=token))
        invocation = replace(request.invocation, tool=action.name, arguments=arguments, session=token)
        requested = Primitive(action.definition, attempt.execute, is_async=True, gated=action.gated)
        stages = action_stages(attempt.stage if attempt.review is not None else None)
        request.result = await self.pipeline.invoke(
            invocation, self.context, RequestOptions(action=requested), stages=stages
        )
        error = request.result.error
        if error is None:
            return attempt.result
        if attempt.problem is not None and error.code == "invalid_source":
            raise attempt.problem
        if error.code == "suspended":
            approval = self.context.record.approvals.get(error.details["approval"])
            message = f"{approval.message}; it waits for the answer"
            hint = (
                f"a person answers with `albert approvals answer {approval.id} once`; then make the same request again"
            )
            details = {"approval": approval.id, "expires": approval.expires}
            raise Failure("suspended", message, hint=hint, rule=error.rule, tool=error.tool, details=details)
        raise error


class _Attempt(Generic[T]):
    """The effect of an action as the function of a primitive, and its review as a stage. The pipeline passes on only JSON, so what
    they find stays here."""

    found: Any = None
    result: T
    problem: Exception | None = None

    def __init__(
        self, effect: Callable[[Any], Awaitable[T]], review: Callable[[Any], Awaitable[Review[Any]]] | None = None
    ) -> None:
        self.effect = effect
        self.review = review

    async def execute(self, **_: Any) -> None:
        self.result = await self.effect(self.found)

    async def stage(self, call: Call, run: Run) -> Call:
        assert self.review is not None
        # A source is not checked for a session that can't define it anyway.
        demand_allowance(call, run)
        try:
            self.found, why, arguments = await self.review(self.found)
        except Failure:
            raise
        except Exception as error:
            # The source has errors. The caller gets them as data, and the record their text.
            self.problem = error
            raise Failure("invalid_source", str(error)) from error
        call = replace(call, arguments={**call.arguments, **arguments})
        if not why:
            return call
        asking = Decision("ask", "another_author", "approval_required", why)
        asks = (*call.asks, (asking.rule, arguments_digest(call.arguments)))
        return replace(call, decision=strictest([asking, call.decision]), asks=asks)

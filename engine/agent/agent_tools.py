"""The agent's own tools: find, describe, check, define, remove, run and suggest tools, list runs, and read about the language.

Every surface offers the same ones. A program can't call them. Those that only read pass the pipeline as actions. The others call
the service, whose methods pass it. `run_tool` is judged as the tool that it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from time import monotonic
from typing import Any, Literal, TypedDict

from msgspec.structs import replace

from albert_tools.engine.actions import ACTIONS, ActionRequest
from albert_tools.engine.agent.language_help import Help, language_help
from albert_tools.engine.agent.similar import similar
from albert_tools.engine.call.arguments import validated_arguments
from albert_tools.engine.call.context import Log
from albert_tools.engine.listing import Listed
from albert_tools.engine.model.definition import Json, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, primitive
from albert_tools.engine.model.reserved_names import AGENT_TOOLS, READING_TOOLS
from albert_tools.engine.model.result import ToolInvocation, ToolResult
from albert_tools.engine.service import ToolService

#: The most characters of a source in an argument. The checker refuses shorter texts, too, and then says why.
MAX_SOURCE = 1024 * 1024
#: The effects of those that do more than read. A program that they run may have any effect.
_ANY = ("read", "write", "delete", "execute", "network")
_EFFECTS: Mapping[str, tuple[Any, ...]] = {
    "define_tool": ("write",),
    "remove_tool": ("delete",),
    "run_tool": _ANY,
    "run_source": _ANY,
}


class Found(TypedDict):
    """A tool in the results of a search. One of the kind `library` is a team's: it can be called after a person has pulled it."""

    name: str
    signature: str
    description: str
    kind: Literal["primitive", "composite", "library"]
    verdict: str


class Search(TypedDict):
    """The results of a search, the best match first."""

    tools: list[Found]


class Check(TypedDict):
    """What the checker found in a source. `text` shows each finding with its line and its hint."""

    ok: bool
    text: str
    diagnostics: list[dict[str, Any]]


class Defined(TypedDict):
    """A saved tool. `outcome` is saved, unchanged or replaced; `similar` names other saved tools that do nearly the same.

    `review` is what the owner has decided about this version: pending, active; draft (sent back) or revoked (rejected), with
    the reason.
    """

    name: str
    version: str
    signature: str
    outcome: str
    review: str
    warnings: str
    callers: list[str]
    similar: list[str]


class Removed(TypedDict):
    """The name of a removed tool."""

    removed: str


class Ran(TypedDict):
    """A run. `approval` is the question that it waits for."""

    run: str
    tool: str
    state: str
    created: str
    approval: str | None
    error: dict[str, Any] | None


class Runs(TypedDict):
    """Runs, the newest first."""

    runs: list[Ran]


class Suggested(TypedDict):
    """A draft of a tool. It would have spared `calls` calls.

    `replays` says in how many of the recorded sequences with the same tools it makes the same calls.
    """

    title: str
    source: str
    effects: list[str]
    calls: int
    replays: str
    notes: list[str]


class Suggestions(TypedDict):
    """Drafts of tools, those that only read first."""

    suggestions: list[Suggested]


class Request:
    """One call of one of the tools. Each method is a tool: its docstring and its annotations are what the agent reads."""

    def __init__(
        self,
        service: ToolService,
        invocation: ToolInvocation,
        log: Log | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> None:
        self._service = service
        self._invocation = invocation
        self.request = ActionRequest(invocation)
        self._log = log
        self._watch = watch

    async def search_tools(self, query: str = "", limit: int = 10) -> Search:
        """Find tools by words of their name, description or source. Search before you write a new tool.

        Args:
            query: Words to look for, for example "rename files". Empty: the first tools by name.
            limit: The most tools to return.
        """
        tools = await self._service.search(query, max(0, limit), session=self._invocation.session)
        return {"tools": [_found(tool) for tool in tools]}

    async def describe_tool(self, name: str, version: str | None = None) -> dict[str, Any]:
        """Describe a tool: its parameters and result as schemas, its calls, source and versions, and what the rules say.

        Args:
            name: The tool, for example "read_file".
            version: A version of a saved tool, by the beginning of its hash; the newest if it is left out.
        """
        return (await self._service.describe(name, version, session=self._invocation.session)).as_dict()

    async def check_tool(self, source: str) -> Check:
        """Check the source of a tool without running or saving it. All problems are reported at once.

        Args:
            source: The whole program.
        """
        from albert_tools.grammar.source_error import SourceError

        diagnostics = await self._service.check(source, session=self._invocation.session)
        text = SourceError(diagnostics, source).render() if diagnostics else ""
        refused = any(d.severity == "error" for d in diagnostics)
        return {"ok": not refused, "text": text, "diagnostics": [d.as_dict() for d in diagnostics]}

    async def define_tool(self, source: str) -> Defined:
        """Check a source, run its examples, and save it as a tool. It can be called by its name at once, also in later sessions.

        Args:
            source: The whole program: one public function with a docstring, helpers, constants and imports.
        """
        from albert_tools.grammar.source_error import SourceError

        session, service = self._invocation.session, self._service
        defined = await service.define_version(source, session=session, request=self.request)
        definition = defined.version.definition
        covers, alike = partial(service.covers, session), list[str]()
        if defined.outcome == "saved":
            alike = await asyncio.to_thread(similar, service.store, definition, covers)
        return {
            "name": definition.name,
            "version": definition.version,
            "signature": definition.signature(),
            "outcome": defined.outcome,
            "review": await asyncio.to_thread(_review_of, service, defined.version),
            "warnings": SourceError(defined.warnings, source).render() if defined.warnings else "",
            "callers": [*defined.callers],
            "similar": alike,
        }

    async def remove_tool(self, name: str) -> Removed:
        """Remove a saved tool. Its versions are kept, so tools that call it still run.

        Args:
            name: The saved tool.
        """
        await self._service.remove(name, session=self._invocation.session, request=self.request)
        return {"removed": name}

    async def run_tool(self, name: str, arguments: dict[str, Any] = {}, version: str | None = None) -> Any:  # noqa: B006
        """Run any tool by its name: a saved tool that is not in your list, or another version. It returns the tool's result.

        Args:
            name: The tool, for example "read_file".
            arguments: Its arguments by name, for example {"path": "notes.md"}.
            version: A version of a saved tool, by the beginning of its hash; the newest if it is left out.
        """
        asked = self._invocation
        if name in AGENT_TOOLS:
            why = Failure("invalid_arguments", f"{name} is one of your own tools; call it itself", tool="run_tool")
            return await self._service.actions.refuse(agent_tools()["run_tool"], asked, why)
        return await self._service.invoke(
            name,
            arguments,
            version=version,
            session=asked.session,
            request_id=asked.request_id,
            dedupe_key=asked.dedupe_key,
            trace=asked.trace,
            reason=asked.reason,
            turn=asked.turn,
            log=self._log,
            watch=self._watch,
        )

    async def run_source(self, source: str, arguments: dict[str, Any] = {}) -> Any:  # noqa: B006
        """Check a source and run it once, without saving it. It returns the program's result.

        Args:
            source: The whole program.
            arguments: The arguments of its public function by name.
        """
        return await self._service.run_source(source, arguments, log=self._log, request=self.request)

    async def list_runs(self, limit: int = 20) -> Runs:
        """List your newest runs, with their state: done, failed, suspended (it waits for a person), interrupted or cancelled.

        Args:
            limit: The most runs to return.
        """
        runs = await self._service.list_runs(limit, session=self._invocation.session)
        return {
            "runs": [
                {
                    "run": r.id,
                    "tool": r.tool,
                    "state": r.state,
                    "created": r.created,
                    "approval": r.approval,
                    "error": None if r.error is None else dict(r.error),
                }
                for r in runs
            ]
        }

    async def language_help(self, topic: str = "") -> Help:
        """Read about the language of tools: a section of its page, a module, or the code of an error.

        Args:
            topic: For example "unknown-tool", "not_found" or "re". Empty: the list of topics.
        """
        return language_help(topic)

    async def suggest_tools(self, limit: int = 5, everyone: bool = False) -> Suggestions:
        """Suggest tools that make the calls which your sessions repeat. Give one a better name, then pass it to `define_tool`.

        A sequence needs three sessions: yours, and those that you have opened.

        Args:
            limit: The most drafts to return.
            everyone: Whether to look at the calls of all sessions. This needs the permission `read_records`.
        """
        session, request = self._invocation.session, self.request
        suggestions = await self._service.suggest(limit, session=session, everyone=everyone, request=request)
        return {
            "suggestions": [
                {
                    "title": each.title,
                    "source": each.source,
                    "effects": [*each.effects],
                    "calls": each.calls,
                    "replays": f"{each.replays} of {each.tried}",
                    "notes": [*each.notes],
                }
                for each in suggestions
            ]
        }


@cache
def agent_tools() -> Mapping[str, Primitive]:
    """The declarations of the agent's own tools, by name and in their order. A declaration's function is not for calling."""
    bare = object.__new__(Request)
    limits = {"limit": {"minimum": 1, "maximum": 100}}
    source = {"source": {"maxLength": MAX_SOURCE}}
    declarations = {}
    for name in AGENT_TOOLS:
        method = getattr(bare, name)
        declared = {k: v for k, v in (limits | source).items() if k in method.__annotations__}
        effects = _EFFECTS.get(name, ("read",))
        declarations[name] = primitive(effects=effects, family="agent", schemas=declared, timeout=60.0)(method)
    return declarations


@cache
def judged_actions() -> Mapping[str, Primitive]:
    """What the rules judge besides calls of tools: the actions, and the agent's own tools that only read. By name."""
    return {**{action.name: action for action in ACTIONS}, **{name: agent_tools()[name] for name in READING_TOOLS}}


class AgentTools:
    """Runs the agent's own tools of a service."""

    def __init__(self, service: ToolService) -> None:
        self._service = service

    async def invoke(
        self, invocation: ToolInvocation, log: Log | None = None, watch: Callable[[str], None] | None = None
    ) -> ToolResult:
        """See `ToolService.invoke`."""
        name = invocation.tool
        declared = agent_tools()[name]
        call = Request(self._service, invocation, log, watch)
        method = getattr(call, name)
        if name in READING_TOOLS:
            tool = Primitive(declared.definition, method, is_async=True)
            return await self._service.actions.invoke(tool, invocation)
        began = monotonic()
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            arguments = validated_arguments(declared.definition, invocation.arguments)
        except Failure:
            arguments = None
        if arguments is None or invocation.violations():
            return await self._service.actions.refuse(declared, invocation)
        output, error = None, None
        try:
            output = await self._performed(method, arguments, name)
        except Failure as failure:
            error = failure
        if isinstance(output, ToolResult):
            return output
        # The owner's request has not passed the pipeline.
        judged = call.request.result or ToolResult(name, request_id=invocation.request_id, timestamp_utc=at)
        return replace(
            judged,
            output=output,
            error=error,
            version=declared.definition.version,
            seconds=monotonic() - began,
            family=declared.definition.family,
        )

    async def _performed(
        self, method: Callable[..., Awaitable[Json]], arguments: Mapping[str, Json], name: str
    ) -> Json | ToolResult:
        from albert_tools.grammar.source_error import SourceError

        try:
            return await method(**arguments)
        except SourceError as error:
            raise Failure(
                "invalid_source",
                error.render(),
                hint="correct all of them, then send the whole source again; `language_help` explains the code in brackets",
                tool=name,
                details={"diagnostics": [d.as_dict() for d in error.diagnostics]},
            ) from None


def _review_of(service: ToolService, version: ToolVersion) -> str:
    version_state = service.reviews.of(version)
    return f"{version_state.state}: {version_state.why}" if version_state.why else version_state.state


def _found(tool: Listed) -> Found:
    kind: Any = tool.kind
    return {
        "name": tool.name,
        "signature": tool.signature,
        "description": tool.problem or tool.description,
        "kind": kind,
        "verdict": str(tool.policy.get("verdict", "deny")),
    }

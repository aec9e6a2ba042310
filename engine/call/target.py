"""Looks up a tool by name, and finds out whether its callees have changed since it was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from albert_tools.engine.call.errors import shown
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.model.definition import Callee, ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.model.reserved_names import NO_TOOL


class Target(Struct, frozen=True):
    """The tool that is called: a primitive, or a saved version."""

    definition: ToolDefinition
    primitive: Primitive | None = None
    version: ToolVersion | None = None
    #: Whether a call may itself change something. A composite only calls other tools.
    changes: bool = False

    @property
    def author(self) -> str:
        """The session that has defined the composite; empty for the owner's composites and for primitives."""
        return self.version.author if self.version is not None else ""


def target_of(primitive: Primitive) -> Target:
    """The target of a call of a primitive."""
    return Target(primitive.definition, primitive, changes=not primitive.definition.only_reads)


#: The fewest digits by which a session names a version outside of its lease. By fewer, which can be those of two versions, it would
#: find out whether a version of others begins so too.
_DIGITS = 12
#: The target of a call whose tool has not been looked up, or is unknown.
UNKNOWN = Target(ToolDefinition("", "", (), {}, (), version=""))


class Lookup:
    """Looks up the application's primitives and the store's tools."""

    def __init__(self, registry: ToolRegistry, store: ToolStore) -> None:
        self.registry = registry
        self.store = store

    def look_up(
        self,
        name: str,
        version: str | None,
        unsaved: ToolVersion | None = None,
        covers: Callable[[str], bool] = lambda name: True,
    ) -> Target:
        """The primitive or the saved version that a call executes; `unsaved` if it is given.

        A failure names only tools that the caller's lease `covers`.

        Raises:
            Failure: `unknown_tool` with the nearest name, `damaged`, `io_error`, `invalid_arguments` if a name is not a string.
        """
        if unsaved is not None:
            return Target(unsaved.definition, version=unsaved)
        if not isinstance(name, str) or not isinstance(version, str | None):
            what, value = ("version", version) if isinstance(name, str) else ("name", name)
            raise Failure(
                "invalid_arguments",
                f"the {what} of a tool must be a string, not {type(value).__name__}",
                hint="`search_tools` shows names, `describe_tool` versions",
            )
        primitive = self.registry.primitive(name)
        if primitive is not None and version in (None, primitive.definition.version):
            return target_of(primitive)
        try:
            tool_version = self.by_name(name) if version is None else self.store.load(name, version)
        except Failure as failure:
            if failure.code != "unknown_tool":
                raise
            if primitive is not None:
                raise Failure(
                    "unknown_tool",
                    f"{name} is a primitive and has no version {shown(str(version))}",
                    hint="leave the version out: only the installed version of a primitive can be called",
                    tool=name,
                ) from None
            if version is None and not failure.details.get("removed"):
                near = did_you_mean(name, filter(covers, self.registry.names()))
                raise Failure(
                    "unknown_tool",
                    f"no tool named {shown(name)}{near}{self._problems(name, covers)}",
                    hint="`search_tools` finds tools",
                    tool=name,
                ) from None
            raise
        return Target(tool_version.definition, version=tool_version)

    def _problems(self, name: str, covers: Callable[[str], bool]) -> str:
        """Why a primitive may be missing. For a lease of some tools, only the problems that begin with its name."""
        about = "" if covers(NO_TOOL) else f"{name} "
        return "".join(f"; {problem}" for problem in self.registry.problems if problem.startswith(about))

    def author(self, name: str, version: str | None = None) -> str:
        """The session that has defined the version that `look_up` finds, or the last one of a removed tool; empty for others."""
        if not isinstance(name, str) or not self.store.has(name) or (version is not None and len(version) < _DIGITS):
            return ""
        try:
            return self.look_up(name, version).author
        except Failure as failure:
            return self.author(name, failure.details["last"]) if failure.details.get("removed") else ""

    def before(self, name: str) -> str:
        """The saved version before the newest one; empty if there is none."""
        versions, _ = self.store.history(name, 2)
        return versions[1].version if len(versions) > 1 else ""

    def outdated(self, version: ToolVersion, covers: Callable[[str], bool] = lambda name: False) -> str | None:
        """Why a version must be checked again before it runs (a changed or missing callee); None if it can run.

        It names only tools that the version calls, or that the caller's lease `covers`.
        """
        seen: set[str] = set()
        pending = [version]
        while pending:
            current = pending.pop()
            for callee in current.calls:
                if callee.kind == "primitive":
                    primitive = self.registry.primitive(callee.name)
                    if primitive is None:
                        return f"this application has no {callee.name}{self._problems(callee.name, covers)}"
                    if primitive.definition.version != callee.version:
                        return f"{callee.name} has changed since {current.name} was checked"
                elif callee.version not in seen:
                    seen.add(callee.version)
                    try:
                        pending.append(self.store.load(callee.name, callee.version))
                    except Failure as failure:
                        return f"{callee.name} can't be loaded: {failure.message}"
        return None

    def by_name(self, name: str) -> ToolVersion:
        """The saved version that a name means. Raises as the store's `load`."""
        return (self.registry.load or self.store.load)(name)

    def problem_of(self, name: str) -> str | None:
        """Why a tool can't run; None if it can. A primitive always can. It names the same tools as `outdated`."""
        if self.registry.primitive(name) is not None:
            return None
        try:
            return self.outdated(self.by_name(name))
        except Failure as failure:
            return failure.message

    def newest(self, calls: Iterable[Callee]) -> dict[str, str | None]:
        """The newest version of each composite among the callees; None if the composite was removed."""
        versions: dict[str, str | None] = {}
        for callee in calls:
            if callee.kind == "composite":
                try:
                    versions[callee.name] = self.by_name(callee.name).version
                except Failure as failure:
                    # `outdated` reports a callee that can't be read.
                    versions[callee.name] = None if failure.code == "unknown_tool" else callee.version
        return versions

"""`@primitive` turns a typed Python function, sync or async, into a tool that programs may call.

Everything a caller sees is read off the function: parameters and result from its annotations, descriptions from
its docstring (Google style). What can't be read off is stated: the effects, and limits that differ from the
defaults. A parameter annotated `CallContext` is not part of the schema; it is filled in by the pipeline.
"""

from __future__ import annotations

import inspect
import json
import keyword
import re
import threading
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

from albert_tools.engine.model.definition import (
    CATEGORIES,
    DEFAULT_TIMEOUT,
    EFFECTS,
    MODES,
    Category,
    Effect,
    Invariant,
    Mode,
    Risk,
    Schema,
    ToolDefinition,
    ToolParameter,
)
from albert_tools.engine.model.interrupted import OUTCOMES, InterruptedCall, Settled, Settling
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.schema import schema_of, violations
from albert_tools.engine.model.schema_validity import fault_in

#: Names of tools and of their parameters: ASCII identifiers, as the language writes them.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}\Z")


#: What a parameter can hold that rules judge, but for paths and URLs: a command for a shell, a program with its arguments, the
#: environment variables of either, one of a tool's operations, who runs a model, and which.
JUDGED = ("shell", "program", "environment", "operation", "provider", "model")

#: What refuses arguments that fit their schemas.
Refuse = Callable[[Mapping[str, Any]], object]

#: What the owner can set under ``primitives: {NAME: …}``: a schema for each setting; or a function that is given all of them and
#: tells what is wrong, as pairs of a place (``providers.local``) and a message, for what a schema can't say. What is so declared
#: reads its settings by the same function when it is called.
Settings = Mapping[str, Schema] | Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Primitive:
    """A tool that is a Python function of the application.

    `gated` means that it is denied unless the configuration allows it by name. `paths` and `urls` name the parameters that say
    what a call touches, for rules to judge: a path with its use (``read``, ``write``, ``delete``), a URL with the parameter that
    gives the method. `judged` names further ones by the kind of what they hold (`JUDGED`). `settle` finds out what became of a
    call that was cut short. `settings` say what the owner can set, where it is declared.
    """

    definition: ToolDefinition
    function: Callable[..., Any]
    context: str | None = None
    is_async: bool = False
    gated: bool = False
    paths: Mapping[str, str] = field(default_factory=dict)
    urls: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, str] = field(default_factory=dict)
    settle: Settling | None = None
    refuse: Refuse | None = None
    once: tuple[str, ...] = ()
    settings: Settings | None = None

    @property
    def name(self) -> str:
        """The name that programs call it by."""
        return self.definition.name

    def demand(self, arguments: Mapping[str, Any]) -> None:
        """Raise the `Failure` for arguments that fit their schemas and could never be done all the same."""
        if self.refuse is not None:
            self.refuse({**{p.name: p.default for p in self.definition.parameters if not p.required}, **arguments})

    def wrong_settings(self, given: Mapping[str, Any]) -> list[tuple[str, str]]:
        """What is wrong with the owner's settings, each as its place in them and a message; where none are declared, nothing."""
        if self.settings is None:
            return []
        if callable(self.settings):
            return list(self.settings(given))
        of = {"type": "object", "properties": dict(self.settings), "additionalProperties": False}
        return [
            (v["field"], f"there is no such setting{did_you_mean(v['field'], self.settings)}")
            if v["rule"] == "unknown" and v["field"] in given
            else (v["field"], v["message"].removeprefix(f"{v['field']}: "))
            for v in violations(dict(given), of)
        ]

    async def settled(self, call: InterruptedCall) -> Settled:
        """What `settle`, which must be declared, says about a call that was cut short; a sync function runs in a thread.

        Raises:
            TypeError: the answer is not a `Settled`.
        """
        import asyncio

        assert self.settle is not None
        if inspect.iscoroutinefunction(self.settle):
            found = await self.settle(call)
        else:
            found = await asyncio.to_thread(self.settle, call)
        if not isinstance(found, Settled) or found.outcome not in OUTCOMES:
            raise TypeError(f"{found!r} is not a `Settled`")
        return found

    def repeatable(self, arguments: Mapping[str, Any]) -> bool:
        """Whether making a call twice is the same as making it once."""
        if set(self.definition.effects) <= {"read"}:
            return True
        return self.definition.idempotent and not any(arguments.get(name) for name in self.once)

    def paths_in(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Each path that a call names, with its use. What is empty or no text names none."""
        for name, use in self.paths.items():
            value = arguments.get(name)
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, str) and path:
                    yield path, use


@overload
def primitive(function: Callable[..., Any], /) -> Primitive: ...


@overload
def primitive(
    *,
    effects: Sequence[Effect] = (),
    name: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    family: str = "",
    idempotent: bool = False,
    once: Sequence[str] = (),
    gated: bool = False,
    schemas: dict[str, dict[str, Any]] | None = None,
    paths: Mapping[str, Literal["read", "write", "delete"]] | None = None,
    urls: Mapping[str, str] | None = None,
    judged: Mapping[str, str] | None = None,
    category: Category | Literal[""] = "",
    risk: Risk | Literal[""] = "",
    allowed_modes: Sequence[Mode] = MODES,
    approval: bool = False,
    rate_limit: int | None = None,
    sandbox: bool = False,
    invariants: Sequence[Invariant] = (),
    refuse: Refuse | None = None,
    settle: Settling | None = None,
    settings: Settings | None = None,
) -> Callable[[Callable[..., Any]], Primitive]: ...


def primitive(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effects: Sequence[Effect] = (),
    name: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    family: str = "",
    idempotent: bool = False,
    once: Sequence[str] = (),
    gated: bool = False,
    schemas: dict[str, dict[str, Any]] | None = None,
    paths: Mapping[str, Literal["read", "write", "delete"]] | None = None,
    urls: Mapping[str, str] | None = None,
    judged: Mapping[str, str] | None = None,
    category: Category | Literal[""] = "",
    risk: Risk | Literal[""] = "",
    allowed_modes: Sequence[Mode] = MODES,
    approval: bool = False,
    rate_limit: int | None = None,
    sandbox: bool = False,
    invariants: Sequence[Invariant] = (),
    refuse: Refuse | None = None,
    settle: Settling | None = None,
    settings: Settings | None = None,
) -> Primitive | Callable[[Callable[..., Any]], Primitive]:
    """Declare a primitive.

    The function is given plain JSON values, whatever richer type its annotations name; what it returns must be JSON, too.

    Args:
        function: The function, when used as a bare ``@primitive``.
        effects: What a call can do: any of ``read write delete execute network secret``; none for a pure function.
        name: The tool's name; the function's when not given.
        timeout: Seconds a call may take.
        family: The group that it is listed under.
        idempotent: Whether doing it twice is the same as doing it once.
        once: Parameters with which it isn't, when they are given: ``["append"]``.
        gated: Denied unless the configuration allows it by name.
        schemas: More precise schema parts per parameter, merged over what the annotation gives:
            ``{"path": {"minLength": 1}}``.
        paths: Which parameters are paths in the workspace, and what is done there; rules about paths judge them.
        urls: Which parameters are URLs, each with the parameter that says the method (or "" for GET).
        judged: Which parameters hold something else that rules judge, each with its kind, one of `JUDGED`.
        category: What it is to policy, where that doesn't follow from the effects.
        risk: How much a person should think before saying yes; follows from the category when not given.
        allowed_modes: The modes that it can be used in at all; policy can't allow it in others.
        approval: Whether a person is asked each time, whatever policy says.
        rate_limit: Calls per hour, where that is bounded whatever policy says.
        sandbox: Whether it runs confined: in a process of its own that can do nothing but compute, with 256 MiB of memory. The
            function is an ordinary one of a module, by its name, takes no `CallContext` and has no effects.
        invariants: What holds between parameters: ``[excludes("create_only", "append")]``.
        refuse: Raises the `Failure` for arguments that fit their schemas and could never be done all the same, so that nobody is
            asked about them; given all arguments, defaults included, which it leaves as they are. It looks at nothing else.
        settle: Asked, when a run goes on after a call was cut short, what became of it: a function of an `InterruptedCall` that
            gives a `Settled`.
        settings: What the owner can set under ``primitives: {NAME: …}`` (see `Settings`); nothing is known of it when not given.

    Raises:
        TypeError: a parameter without annotation or of a type that has no schema, a default that breaks the schema,
            ``*args``, an unknown effect, category or mode, a name that isn't an identifier, a timeout that isn't positive,
            `paths`, `urls`, `judged`, `once` or `invariants` of a parameter that there isn't, a rate limit that isn't positive,
            `sandbox` over what can't run confined.
    """

    def declare(target: Callable[..., Any]) -> Primitive:
        made = _declare(target, tuple(effects), name, timeout, family, idempotent, gated, schemas or {})
        made = _governed(made, paths or {}, urls or {}, judged or {}, category, risk, tuple(allowed_modes), approval)
        made = _bounded(made, rate_limit, sandbox, tuple(invariants), tuple(once))
        return replace(made, settle=settle, refuse=refuse, settings=settings)

    return declare if function is None else declare(function)


def _declare(
    function: Callable[..., Any],
    effects: tuple[str, ...],
    name: str | None,
    timeout: float,
    family: str,
    idempotent: bool,
    gated: bool,
    schemas: dict[str, dict[str, Any]],
) -> Primitive:
    if not callable(function):
        raise TypeError(f"@primitive stands over a function, not over {function!r}")
    tool = name or str(getattr(function, "__name__", ""))
    if not NAME.match(tool) or keyword.iskeyword(tool):
        raise TypeError(f"{tool!r} can't be a tool's name: use letters, digits and _, at most 128, and no keyword")
    if not timeout > 0:
        raise TypeError(f"{tool}: the timeout must be more than 0 seconds, is {timeout!r}")
    for effect in effects:
        if effect not in EFFECTS:
            raise TypeError(f"{tool}: unknown effect {effect!r}; the effects are {', '.join(EFFECTS)}")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{tool}: its annotations can't be read: {error}") from error
    description, argument_texts = read_docstring(inspect.getdoc(function) or "")
    context = None
    parameters = []
    for p in inspect.signature(function).parameters.values():
        if p.name not in hints:
            raise TypeError(f"{tool}: parameter {p.name!r} needs an annotation; it becomes the schema")
        if hints[p.name] is CallContext:
            context = p.name
            continue
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            raise TypeError(f"{tool}: parameter {p.name!r} must be an ordinary named parameter")
        required = p.default is p.empty
        schema = {**_schema(tool, f"parameter {p.name!r}", hints[p.name]), **schemas.get(p.name, {})}
        if p.name in schemas and (fault := fault_in(schema)) is not None:
            raise TypeError(f"{tool}: `schemas` of {p.name!r} is no schema: {fault}")
        if not required:
            _default(tool, p.name, p.default, schema)
        parameters.append(
            ToolParameter(
                name=p.name,
                schema=schema,
                description=argument_texts.get(p.name, ""),
                required=required,
                default=None if required else p.default,
            )
        )
    for stray in schemas.keys() - {p.name for p in parameters}:
        raise TypeError(f"{tool}: `schemas` speaks of {stray!r}, which is no parameter")
    definition = ToolDefinition(
        name=tool,
        description=description,
        parameters=tuple(parameters),
        result=_schema(tool, "the result", hints.get("return", Any)),
        effects=effects,
        timeout=timeout,
        family=family or function.__module__.rpartition(".")[2],
        idempotent=idempotent,
    )
    definition = replace(definition, version=definition.schema_hash())
    return Primitive(definition, function, context, inspect.iscoroutinefunction(function), gated)


def _governed(
    made: Primitive,
    paths: Mapping[str, str],
    urls: Mapping[str, str],
    judged: Mapping[str, str],
    category: Category | Literal[""],
    risk: Risk | Literal[""],
    modes: tuple[Mode, ...],
    approval: bool,
) -> Primitive:
    tool = made.name
    known = {p.name for p in made.definition.parameters}
    for stray in {*paths, *urls, *(m for m in urls.values() if m), *judged} - known:
        raise TypeError(f"{tool}: `paths`, `urls` or `judged` speak of {stray!r}, which is no parameter")
    for what, value, values in (
        ("use", paths.values(), ("read", "write", "delete")),
        ("kind", judged.values(), JUDGED),
        ("category", [category] if category else [], CATEGORIES),
        ("risk", [risk] if risk else [], ("low", "medium", "high")),
        ("mode", modes, MODES),
    ):
        for one in value:
            if one not in values:
                raise TypeError(f"{tool}: unknown {what} {one!r}; there are {', '.join(values)}")
    definition = replace(
        made.definition,
        category=category or made.definition.category,
        risk=risk or ("" if category else made.definition.risk),
        allowed_modes=modes,
        approval=approval,
    )
    return replace(made, definition=definition, paths=dict(paths), urls=dict(urls), judged=dict(judged))


def _bounded(
    made: Primitive,
    rate_limit: int | None,
    sandbox: bool,
    invariants: tuple[Invariant, ...],
    once: tuple[str, ...],
) -> Primitive:
    for stray in set(once) - {p.name for p in made.definition.parameters}:
        raise TypeError(f"{made.name}: `once` speaks of {stray!r}, which is no parameter")
    if rate_limit is not None and (type(rate_limit) is not int or rate_limit < 1):
        raise TypeError(f"{made.name}: the rate limit is a number of calls per hour, 1 or more, not {rate_limit!r}")
    if sandbox and (made.context is not None or made.is_async):
        what = "takes a CallContext" if made.context is not None else "is async"
        raise TypeError(
            f"{made.name}: it {what}, and there is none where it runs confined; have an ordinary function do the "
            "dangerous part, and call that by `run_confined`"
        )
    if sandbox and made.definition.effects:
        raise TypeError(f"{made.name}: what runs confined can only compute, so it has no effects")
    if sandbox and "<" in made.function.__qualname__:
        raise TypeError(
            f"{made.name}: what runs confined is found by its name in its module, so it can't be defined in another"
        )
    for invariant in invariants:
        if len(set(invariant.names)) < 2 or len(set(invariant.names)) < len(invariant.names):
            raise TypeError(f"{made.name}: an invariant holds between two parameters or more, not {invariant.names!r}")
        for name in invariant.names:
            parameter = made.definition.parameter(name)
            if parameter is None:
                raise TypeError(f"{made.name}: `invariants` speak of {name!r}, which is no parameter")
            if parameter.required or (parameter.default is not None and parameter.default is not False):
                raise TypeError(f"{made.name}: {name!r} is excluded by another, so its default must be False or None")
    definition = replace(made.definition, rate_limit=rate_limit, sandbox=sandbox, invariants=invariants)
    # Callers depend on what calls are accepted.
    return replace(made, definition=replace(definition, version=definition.schema_hash()), once=once)


def _schema(tool: str, what: str, annotation: Any) -> Schema:
    try:
        return schema_of(annotation)
    except Exception as error:
        # Pydantic has many ways to say it.
        raise TypeError(f"{tool}: there is no JSON Schema for the type of {what}, {annotation!r}") from error


def _default(tool: str, name: str, value: Any, schema: Schema) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{tool}: the default of {name!r} is not JSON, {value!r}") from error
    # None where the annotation doesn't say so is a habit: "not given". A caller can't pass it.
    wrong = violations(value, schema, name) if value is not None else []
    if wrong:
        raise TypeError(f"{tool}: the default of {name!r} breaks its own schema: {wrong[0]['message']}")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """A Google-style docstring as (description without its sections, text per argument)."""
    description: list[str] = []
    arguments: dict[str, str] = {}
    section = ""
    current = ""
    for line in text.split("\n"):
        heading = re.fullmatch(r"(Args|Arguments|Returns|Raises|Yields|Examples?|Notes?):", line.strip())
        if heading and not line.startswith(" "):
            section = heading[1]
            continue
        if not section:
            description.append(line)
        elif section in ("Args", "Arguments"):
            entry = re.match(r"(?: {2,4}|\t)(\w+)\s*(?:\([^)]*\))?:\s*(.*)", line)
            if entry:
                current = entry[1]
                arguments[current] = entry[2]
            elif line.strip() and current:
                arguments[current] += " " + line.strip()
    return "\n".join(description).strip(), arguments


async def call_primitive(target: Primitive, arguments: dict[str, Any], context: CallContext | None) -> Any:
    """Call the function, with `context` where it wants one; a sync one runs in a thread, so that it can't hold up the service.

    A thread can't be stopped: a sync function whose time is up goes on, and only its answer is dropped.
    """
    # What a function relies on holds whoever calls it.
    target.demand(arguments)
    if target.context is not None:
        arguments = {**arguments, target.context: context}
    import asyncio

    if target.is_async:
        try:
            result = target.function(**arguments)
            assert isinstance(result, Awaitable)
            return await result
        except (Exception, SystemExit, asyncio.CancelledError):
            raise
        except BaseException as odd:
            if _from_outside(odd):
                raise
            raise RuntimeError(f"it raised {type(odd).__name__}") from odd

    def in_thread() -> Any:
        try:
            return target.function(**arguments)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if not isinstance(error, StopIteration):
                raise
            # A future can't carry it, so nobody would ever hear of it.
            raise RuntimeError("it raised StopIteration") from error
        except BaseException as odd:
            # No key that is pressed comes to a thread; and what it raises would end the loop, and with it the service.
            raise RuntimeError(f"it raised {type(odd).__name__}") from odd

    return await asyncio.to_thread(in_thread)


def _from_outside(odd: BaseException) -> bool:
    """Whether what came out of an async function may have come into it: a key that was pressed, or the end of everything."""
    if isinstance(odd, GeneratorExit):
        # A coroutine that is thrown away is so by nobody's running loop.
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return True
        return False
    return isinstance(odd, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()

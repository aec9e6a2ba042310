"""`@primitive` turns a typed Python function, sync or async, into a tool that programs may call.

The function's annotations define the parameters and the result. Its docstring (Google style) contains the descriptions. The
arguments of the decorator state the remaining facts: the effects, and limits that differ from the defaults. A parameter with the
annotation `CallContext` is not part of the schema; the pipeline passes its value.
"""

from __future__ import annotations

import inspect
import json
import keyword
import re
import threading
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypedDict, Unpack, overload

from msgspec import Struct, field
from msgspec.structs import replace

from albert_tools.engine.model.bounds import MAX_TIMEOUT_SECONDS
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
from albert_tools.engine.model.output_facts import DATA_USES, declared_data, wrong_declarations
from albert_tools.engine.model.protocols import CallContext, NetworkRules
from albert_tools.engine.model.schema import schema_of
from albert_tools.engine.model.schema_validity import fault_in, parameters_of, unchecked
from albert_tools.engine.model.validation import violations

#: Names of tools and of their parameters. They are ASCII identifiers, as in the language.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}\Z")
#: The most characters of a name. The name of a primitive may have parts, each a `NAME`: ``crm.find``.
MAX_NAME = 128

PathUse = Literal["read", "write", "delete"]
DataUse = Literal["destination", "payload", "operation", "arguments", "folder", "tool", "items", "batch"]
SourceKind = Literal["", "file", "web", "mail", "clock", "command", "model", "server", "random"]

#: The kinds of parameters, besides paths and URLs, that rules can refer to: a shell command, a program with its arguments, the
#: environment variables of a command or program, the name of an operation, the provider of a model, the model. A command starts in
#: the folder that the parameter ``cwd`` names, or in the workspace if there is no such parameter.
JUDGED = ("shell", "program", "environment", "operation", "provider", "model")

#: Raises the `Failure` for arguments that match their schemas but can never work.
Refuse = Callable[[Mapping[str, Any]], object]

#: Gets the arguments of a call, the owner's settings of the primitive, and the network rules. Raises the `Failure`
#: `permission_denied` for a call that they don't permit.
Deny = Callable[[Mapping[str, Any], Mapping[str, Any], NetworkRules], object]

#: Gets the context of a call and its arguments, and returns what the call will change, as a clause for the question to a person.
#: It must not change anything.
Preview = Callable[[CallContext, Mapping[str, Any]], Awaitable[str]]

#: The owner's settings of a primitive, written as ``primitives: {NAME: …}``. Either a schema for each setting, or a function that
#: gets all settings. The function returns the problems as pairs of a place (``providers.local``) and a message. When such a
#: primitive is called, it uses the same function to read its settings.
Settings = Mapping[str, Schema] | Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]


class Primitive(Struct, frozen=True):
    """A tool that is a Python function of the application. The decorator `primitive` documents the fields.

    `context` is the name of the parameter that gets the `CallContext`, if the function has such a parameter. `sees_workspace` says
    whether its calls are made by a process that sees the workspace as far as the rules allow, whatever the declared effects are.
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
    deny: Deny | None = None
    once: tuple[str, ...] = ()
    settings: Settings | None = None
    preview: Preview | None = None
    sees_workspace: bool = False

    @property
    def name(self) -> str:
        """The name that programs use to call it."""
        return self.definition.name

    @property
    def is_shipped(self) -> bool:
        """Whether it is one of Albert's own, and not an application's."""
        return self.function.__module__.startswith("albert_tools.builtins.")

    def demand(self, arguments: Mapping[str, Any]) -> None:
        """Raise the `Failure` for arguments that match their schemas but can never work."""
        if self.refuse is not None:
            demand_none(f"`refuse` of {self.name}", self.refuse(self.definition.with_defaults(arguments)))

    def given(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for the function. Its own defaults apply to those that are None by default."""
        absent = self.definition.none_by_default
        return {name: value for name, value in arguments.items() if value is not None or name not in absent}

    def wrong_settings(self, given: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The problems of the owner's settings, as pairs of place and message. Empty if the primitive declares no settings."""
        if self.settings is None:
            return []
        if callable(self.settings):
            return list(self.settings(given))
        schema = {"type": "object", "properties": dict(self.settings), "additionalProperties": False}
        return [
            (v["field"], f"there is no such setting{did_you_mean(v['field'], self.settings)}")
            if v["rule"] == "unknown" and v["field"] in given
            else (v["field"], v["message"].removeprefix(f"{v['field']}: "))
            for v in violations(dict(given), schema)
        ]

    async def settled(self, call: InterruptedCall) -> Settled:
        """Call `settle`, which must be declared, for an interrupted call. A sync function runs in a thread.

        Raises:
            TypeError: The function did not return a `Settled`.
        """
        import asyncio

        assert self.settle is not None
        if inspect.iscoroutinefunction(self.settle):
            settled = await self.settle(call)
        else:
            settled = await asyncio.to_thread(self.settle, call)
        if not isinstance(settled, Settled) or settled.outcome not in OUTCOMES:
            raise TypeError(f"{settled!r} is not a `Settled`")
        return settled

    def repeatable(self, arguments: Mapping[str, Any]) -> bool:
        """Whether making a call twice has the same effect as making it once."""
        if self.definition.only_reads:
            return True
        return self.definition.idempotent and not any(arguments.get(name) for name in self.once)

    def paths_in(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Each path among the arguments, with its use. Empty values and values that are not text are skipped."""
        for name, use in self.paths.items():
            value = arguments.get(name)
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, str) and path:
                    yield path, use


class PrimitiveOptions(TypedDict, total=False):
    """What the declaration of a primitive can say besides its name and its schemas. See `primitive`."""

    effects: Sequence[Effect]
    timeout: float
    family: str
    idempotent: bool
    once: Sequence[str]
    gated: bool
    paths: Mapping[str, PathUse] | None
    urls: Mapping[str, str] | None
    judged: Mapping[str, str] | None
    uses: Mapping[str, DataUse] | None
    outputs: Mapping[str, str] | None
    source: SourceKind
    category: Category | Literal[""]
    risk: Risk | Literal[""]
    allowed_modes: Sequence[Mode]
    approval: bool
    rate_limit: int | None
    sandbox: bool
    invariants: Sequence[Invariant]
    refuse: Refuse | None
    deny: Deny | None
    settle: Settling | None
    settings: Settings | None
    preview: Preview | None


@overload
def primitive(function: Callable[..., Any], /) -> Primitive: ...


@overload
def primitive(
    *, name: str | None = None, schemas: Mapping[str, Schema] | None = None, **options: Unpack[PrimitiveOptions]
) -> Callable[[Callable[..., Any]], Primitive]: ...


def primitive(
    function: Callable[..., Any] | None = None, /, **options: Any
) -> Primitive | Callable[[Callable[..., Any]], Primitive]:
    """Declare a primitive.

    The function gets plain JSON values, even if its annotations contain richer types. It returns JSON.

    Args:
        function: The function, when used as a bare ``@primitive``.
        effects: The possible effects of a call: any of ``read write delete execute network secret``. A pure function has no
            effects.
        name: The tool's name; default: the function's name. It may have parts: ``crm.find`` is called as ``tools.crm.find(…)``.
        timeout: The timeout of a call, in seconds.
        family: The group in which lists show the tool; default: the name's first parts (``crm``), or the name of its module.
        idempotent: Whether making a call twice has the same effect as making it once.
        once: Parameters that make a call not idempotent when they are given: ``["append"]``.
        gated: Whether the tool is denied unless the configuration allows it by name.
        schemas: Schema parts per parameter, merged over the schema of the annotation: ``{"path": {"minLength": 1}}``.
        paths: The parameters that are paths in the workspace, each with its use. The rules about paths apply to them.
        urls: The parameters that are URLs, each with the parameter that contains the method ("" for GET).
        judged: Other parameters that rules can refer to, each with its kind, one of `JUDGED`.
        uses: What happens to other arguments: a ``destination`` decides where an effect happens (a recipient, an amount), a
            ``payload`` is passed on (a content, a message), an ``operation`` says what the call does, and rules judge it,
            and ``arguments`` are those of a fixed program. By default an argument has no use. Of `paths`, a ``folder`` is where a
            command starts. A ``tool`` is the name of a tool that is called later for each of the ``items``, and the output has the
            results of a ``batch`` of such calls.
        outputs: What is true of places of the output, for example ``{".paths[*]": "below folder"}``; see `output_facts`. An output
            that contradicts it fails the call.
        source: What the output comes from: ``file web mail clock command model server random``; by default, from nothing outside.
        category: The category for policy; default: the category of the strongest effect.
        risk: How carefully a person should check a call before approving it; default: the risk of the category.
        allowed_modes: The modes in which policy may allow the tool.
        approval: Whether a person is always asked, even if policy allows the call.
        rate_limit: The most calls per hour, even if policy allows more; default: no limit.
        sandbox: Whether the function runs confined: in its own process, which can only compute, with 256 MiB of memory. The
            function must be at the top level of a module and take no `CallContext`. Its only effect can be ``read``: the service
            opens the files that `paths` names, by the rules, and the function gets their bytes (`FileContent`).
        invariants: Conditions between parameters: ``[excludes("create_only", "append")]``.
        refuse: Gets all arguments, including defaults. Raises the `Failure` for arguments that match their schemas but can never
            work. It runs before a person is asked. It must not change anything or read anything else.
        deny: Gets all arguments, the owner's settings of the primitive, and the network rules. Raises `permission_denied` for a
            call that they don't permit; other failures are left to the call. It runs with the rules, so before a person is asked,
            and in ``albert policy test``. It must not change anything or read anything else.
        settle: Called when a run continues after a crash. Gets an `InterruptedCall` and returns the outcome as a `Settled`.
        settings: The settings that the owner can write under ``primitives: {NAME: …}``; see `Settings`. Default: any setting.
        preview: An async function, called before a person is asked. Returns what the call will change, for the question; "" if
            there is nothing to say. If it raises `permission_denied`, the call is refused, and nobody is asked.

    Raises:
        TypeError: The declaration is wrong. Examples: a parameter without an annotation, a type without a schema, a default that
            breaks the schema, ``*args``, an unknown effect, category, mode or parameter name, a name that is not an identifier, a
            timeout or rate limit that is out of bounds, `sandbox` for a function that cannot run confined, a sync `preview`, an
            async `refuse`.
    """
    if function is not None:
        return _declare(function, **options)
    return lambda target: _declare(target, **options)


def primitive_from_schema(
    name: str,
    schema: Schema,
    function: Callable[..., Any],
    *,
    description: str = "",
    result: Schema | None = None,
    **options: Unpack[PrimitiveOptions],
) -> Primitive:
    """Declare a primitive whose parameters are a JSON Schema, for example that of another protocol's tool.

    Args:
        name: The tool's name. It may have parts: ``crm.find`` is called as ``tools.crm.find(…)``.
        schema: A schema of type ``object``: `properties`, `required`, and optionally `$defs`.
        function: Called with the arguments by name. An optional argument that has no default in the schema is left out if
            it is null or not given. A parameter with the annotation `CallContext` gets the context.
        description: What the tool returns, and how it can fail; default: the schema's description, then the docstring.
        result: The schema of the result; default: any value.
        options: As for `primitive`, without `name` and `schemas`.

    Raises:
        TypeError: As for `primitive`. Also: the schema is not of an object, it has a keyword that is not checked, a property's
            name is no identifier, or the function does not take the arguments.
    """
    context = next((n for n, hint in _hints(name, function).items() if hint is CallContext), None)
    parameters = parameters_of(name, schema)
    text = description or schema.get("description", "") or read_docstring(inspect.getdoc(function) or "")[0]
    for p in parameters:
        if p.default is not None:
            _check_default(name, p.name, p.default, {**p.schema, "$defs": schema.get("$defs", {})})
    for given in (parameters, [p for p in parameters if p.required or p.default is not None]):
        try:
            inspect.signature(function).bind(**{p.name: None for p in given}, **({context: None} if context else {}))
        except TypeError as error:
            raise TypeError(f"{name}: the function does not take the arguments of the schema: {error}") from None
    fault = fault_in(result or {})
    if fault is not None:
        raise TypeError(f"{name}: the schema of its result is not valid: {fault}")
    return _made(name, function, context, parameters, result or {}, text, **options)


def _declare(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    schemas: Mapping[str, Schema] | None = None,
    **options: Unpack[PrimitiveOptions],
) -> Primitive:
    if not callable(function):
        raise TypeError(f"@primitive decorates a function, not {function!r}")
    tool = name or str(getattr(function, "__name__", ""))
    hints = _hints(tool, function)
    description, texts = read_docstring(inspect.getdoc(function) or "")
    context, parameters = _parameters(tool, function, hints, schemas or {}, texts)
    result = _schema(tool, "the result", hints.get("return", Any))
    made = _made(tool, function, context, parameters, result, description, schemas or {}, **options)
    if not made.definition.sandbox and any(_has_bytes(hints[name]) for name in made.paths):
        raise TypeError(
            f"{tool}: only a function that runs confined gets the content of a file; write `sandbox=True`, or annotate "
            "the parameter with `FilePath`"
        )
    return made


def _has_bytes(hint: Any) -> bool:
    """Whether a type is `bytes`, or is made of it."""
    named = getattr(hint, "__supertype__", None)
    return hint is bytes or (named is not None and _has_bytes(named)) or any(map(_has_bytes, typing.get_args(hint)))


def _hints(tool: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{tool}: its annotations can't be read: {error}") from error


def _made(
    tool: str,
    function: Callable[..., Any],
    context: str | None,
    parameters: Sequence[ToolParameter],
    result: Schema,
    description: str,
    schemas: Mapping[str, Schema] = MappingProxyType({}),
    **options: Unpack[PrimitiveOptions],
) -> Primitive:
    if len(tool) > MAX_NAME or any(not NAME.match(part) or keyword.iskeyword(part) for part in tool.split(".")):
        raise TypeError(
            f"{tool!r} can't be a tool's name: use letters, digits and _, at most 128 characters, and no keyword"
        )
    unknown = options.keys() - PrimitiveOptions.__optional_keys__
    if unknown:
        raise TypeError(f"{tool}: there is no option {min(unknown)!r}")
    for option in ("paths", "urls", "judged", "uses", "outputs"):
        if not isinstance(options.get(option, {}), Mapping | None):
            raise TypeError(f"{tool}: `{option}` must be a dict whose keys are names of parameters or fields")
    family = options.get("family") or tool.rpartition(".")[0]
    definition = ToolDefinition(
        name=tool,
        description=description,
        parameters=tuple(parameters),
        result=result,
        effects=tuple(options.get("effects", ())),
        timeout=options.get("timeout", DEFAULT_TIMEOUT),
        family=family or str(getattr(function, "__module__", "")).rpartition(".")[2],
        idempotent=options.get("idempotent", False),
        category=options.get("category", ""),
        risk=options.get("risk", ""),
        allowed_modes=tuple(options.get("allowed_modes", MODES)),
        approval=options.get("approval", False),
        rate_limit=options.get("rate_limit"),
        sandbox=options.get("sandbox", False),
        invariants=tuple(options.get("invariants", ())),
        declared=declared_data(_uses(options), options.get("outputs") or {}, options.get("source", "")),
    )
    operations = {name: use for name, use in definition.declared.uses.items() if use == "operation"}
    made = Primitive(
        replace(definition, version=definition.schema_hash()),
        function,
        context,
        is_async=inspect.iscoroutinefunction(function),
        gated=options.get("gated", False),
        paths=dict(options.get("paths") or {}),
        urls=dict(options.get("urls") or {}),
        judged=operations | dict(options.get("judged") or {}),
        settle=options.get("settle"),
        refuse=options.get("refuse"),
        deny=options.get("deny"),
        once=tuple(options.get("once", ())),
        settings=options.get("settings"),
        preview=options.get("preview"),
    )
    problem = next(_problems(made, schemas, options.get("uses") or {}), None)
    if problem is not None:
        raise TypeError(f"{tool}: {problem}")
    return made


def _uses(options: PrimitiveOptions) -> dict[str, str]:
    urls = options.get("urls") or {}
    return {
        **(options.get("paths") or {}),
        **dict.fromkeys((method for method in urls.values() if method), "operation"),
        **(options.get("uses") or {}),
        **dict.fromkeys(urls, "url"),
        **(options.get("judged") or {}),
    }


def _parameters(
    tool: str,
    function: Callable[..., Any],
    hints: Mapping[str, Any],
    schemas: Mapping[str, Schema],
    texts: Mapping[str, str],
) -> tuple[str | None, list[ToolParameter]]:
    """The name of the parameter for the context (if there is one), and the other parameters."""
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
        schema = {**_schema(tool, f"parameter {p.name!r}", hints[p.name]), **schemas.get(p.name, {})}
        if p.name in schemas and (fault := fault_in(schema)) is not None:
            raise TypeError(f"{tool}: `schemas` of {p.name!r} is not a valid schema: {fault}")
        required = p.default is p.empty
        if not required:
            _check_default(tool, p.name, p.default, schema)
        parameters.append(
            ToolParameter(p.name, schema, texts.get(p.name, ""), required, None if required else p.default)
        )
    return context, parameters


def _problems(made: Primitive, schemas: Mapping[str, Schema], uses: Mapping[str, str]) -> Iterator[str]:
    """The errors in the arguments of the decorator."""
    d = made.definition
    known = {p.name for p in d.parameters}
    for option, names in (
        ("schemas", schemas),
        ("paths", made.paths),
        ("urls", [*made.urls, *filter(None, made.urls.values())]),
        ("judged", made.judged),
        ("uses", uses),
        ("once", made.once),
        ("invariants", [name for invariant in d.invariants for name in invariant.names]),
    ):
        for name in names:
            if name not in known:
                yield f"`{option}` names {name!r}, which is no parameter"
    for p in d.parameters:
        # Rules about paths judge only the parameters that `paths` names.
        if p.schema.get("format") == "albert-path" and p.name not in made.paths:
            yield f"{p.name!r} is a path of the workspace, so `paths` must say what the tool does there"
    for name in uses.keys() & {*made.paths, *made.urls, *made.judged}:
        if made.judged.get(name) != uses[name] and (uses[name] != "folder" or name not in made.paths):
            yield f"`uses` names {name!r}, which is a path, a URL or judged, so its use is known"
    for name in (name for name, use in uses.items() if use == "folder" and made.paths.get(name) != "read"):
        yield f"{name!r} is a folder in which a command starts, so `paths` must say that it is read"
    for what, given, values in (
        ("effect", d.effects, EFFECTS),
        ("use", made.paths.values(), typing.get_args(PathUse)),
        ("use", uses.values(), DATA_USES),
        ("kind", made.judged.values(), JUDGED),
        ("category", [d.category], CATEGORIES),
        ("risk", [d.risk], typing.get_args(Risk)),
        ("mode", d.allowed_modes, MODES),
    ):
        for value in given:
            if value not in values:
                yield f"unknown {what} {value!r}; use one of {', '.join(values)}"
    if not 0 < d.timeout <= MAX_TIMEOUT_SECONDS:
        yield f"the timeout is a number of seconds, above 0 and at most {MAX_TIMEOUT_SECONDS}, not {d.timeout!r}"
    if d.rate_limit is not None and (type(d.rate_limit) is not int or d.rate_limit < 1):
        yield f"the rate limit is a number of calls per hour, 1 or more, not {d.rate_limit!r}"
    if d.sandbox:
        yield from _sandbox_problems(made)
    yield from _callback_problems(made)
    for invariant in d.invariants:
        yield from _invariant_problems(d, invariant)
    yield from wrong_declarations(d)


def _sandbox_problems(made: Primitive) -> Iterator[str]:
    if made.context is not None or made.is_async:
        what = "takes a CallContext" if made.context is not None else "is async"
        yield (
            f"it {what}, so it cannot run confined; move the dangerous part to an ordinary function and call that "
            "with `run_confined`"
        )
    files = [made.definition.parameter(name) for name in made.paths]
    if made.definition.effects not in ((), ("read",)) or made.urls or {*made.judged.values()} - {"operation"}:
        yield (
            "a function that runs confined can only compute and read files, so it can't have the effects "
            f"{', '.join(made.definition.effects)}; cause them in another function, and call the dangerous part with `run_confined`"
        )
    elif made.definition.effects and not made.paths:
        yield "a function that runs confined reads only the files that `paths` names"
    elif any(use != "read" for use in made.paths.values()):
        yield "a function that runs confined can't change a file"
    elif any(p is None or p.schema.get("format") != "albert-path" for p in files):
        yield "a file for a function that runs confined is one path; annotate the parameter with `FileContent`"
    function = made.function
    if not inspect.isfunction(function) or "<" in function.__qualname__ or function.__module__ == "__main__":
        yield (
            "another process finds a function that runs confined by its name, so it must be an ordinary function of a module, "
            "not in another function, no method, and not in the script that is started"
        )


def _callback_problems(made: Primitive) -> Iterator[str]:
    """A callback of the wrong kind would fail, or do nothing, when it is called."""
    if _yields(made.function):
        yield "it yields values; return all of them, for example as a list"
    checks = made.settings if callable(made.settings) else None
    if checks is None and made.settings is not None:
        if not isinstance(made.settings, Mapping):
            yield f"`settings` must be a function, or a dict with the schema of each setting, not {made.settings!r}"
        else:
            for name, schema in made.settings.items():
                if (fault := fault_in(schema) or next(unchecked(schema, {}), None)) is not None:
                    yield f"the setting {name!r}: {fault}"
    for option, callback, wanted, arguments in (
        ("preview", made.preview, "async", ("the context", "the arguments")),
        ("refuse", made.refuse, "sync", ("the arguments",)),
        ("deny", made.deny, "sync", ("the arguments", "the settings", "the network rules")),
        ("settle", made.settle, "", ("the call",)),
        ("settings", checks, "sync", ("the settings",)),
    ):
        if callback is None:
            continue
        if not callable(callback):
            yield f"`{option}` must be a function, not {callback!r}"
            continue
        is_async = inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__)
        if wanted and is_async != (wanted == "async"):
            kind = "an `async def`" if wanted == "async" else "an ordinary `def`"
            yield f"`{option}` must be {kind}"
        elif option != "settings" and _yields(callback):
            yield f"`{option}` must not yield values: nothing in it would be executed"
        try:
            inspect.signature(callback).bind(*arguments)
        except TypeError:
            yield f"`{option}` must take {' and '.join(arguments)}"
        except ValueError:
            continue  # A builtin without a signature.


def demand_none(what: str, result: object) -> None:
    """Require that a check has returned nothing. If it returns a generator or a coroutine, its body has not been executed."""
    if result is not None:
        raise TypeError(f"{what} must return None, not {type(result).__name__}, so it may not have been executed")


def _yields(function: object) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _invariant_problems(definition: ToolDefinition, invariant: Invariant) -> Iterator[str]:
    if len(set(invariant.names)) < 2 or len(set(invariant.names)) < len(invariant.names):
        yield f"an invariant needs two different parameters or more, not {invariant.names!r}"
    for name in invariant.names:
        parameter = definition.parameter(name)
        if (
            parameter is None
            or parameter.required
            or (parameter.default is not None and parameter.default is not False)
        ):
            yield f"{name!r} is excluded by another parameter, so its default must be False or None"


def _schema(tool: str, what: str, annotation: Any) -> Schema:
    try:
        return schema_of(annotation)
    except Exception as error:  # pydantic raises many kinds
        raise TypeError(f"{tool}: there is no JSON Schema for the type of {what}, {annotation!r}") from error


def _check_default(tool: str, name: str, value: Any, schema: Schema) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{tool}: the default of {name!r} is not JSON, {value!r}") from error
    # ``x: int = None`` is a common way to write an optional parameter. A caller can't pass None.
    schema_violations = violations(value, schema, name) if value is not None else []
    if schema_violations:
        raise TypeError(f"{tool}: the default of {name!r} breaks its own schema: {schema_violations[0]['message']}")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a Google-style docstring into the description without its sections and the text of each argument."""
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
    """Call the function, with `context` if it takes one. A sync function runs in a thread, so it can't block the service.

    A thread can't be stopped. After a timeout, a sync function continues, its result is dropped, and `running_on` counts it.
    """
    # The function relies on this check for every caller.
    target.demand(arguments)
    if target.context is not None:
        arguments = {**arguments, target.context: context}
    import asyncio

    from albert_tools.engine.model.threads import in_thread

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

    def called() -> Any:
        try:
            return target.function(**arguments)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if not isinstance(error, StopIteration):
                raise
            # A future can't transport StopIteration.
            raise RuntimeError("it raised StopIteration") from error
        except BaseException as odd:
            # A real KeyboardInterrupt never occurs in a thread. If the function raises it, it would end the event loop and the
            # service.
            raise RuntimeError(f"it raised {type(odd).__name__}") from odd

    return await in_thread(called, target.name)


def _from_outside(odd: BaseException) -> bool:
    """Whether the exception may come from outside the async function: from Ctrl-C, or from the end of the process."""
    if isinstance(odd, GeneratorExit):
        # If no event loop is running, the coroutine was discarded and is being closed.
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return True
        return False
    return isinstance(odd, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()

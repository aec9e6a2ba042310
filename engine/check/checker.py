"""From a text to a checked program.

A rule proposes a fix by looking at one place; whether the text is better for it is tried out here, by reading the changed
text. So every fix that is handed on is an edit after which its finding is gone and no error is new.

All rules run over one set of facts, all findings come back at once, in the order of the text. What a checked program
carries (`Checked`) is derived from the text and the catalogue, never declared: its parameters, its callees pinned to
what they were checked against, its effects joined over them, its depth.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from albert_tools.engine.check import annotation_schemas
from albert_tools.engine.check.facts import CheckLimits, Facts, docstring
from albert_tools.engine.check.partial_check import findings_beside
from albert_tools.engine.check.registry import RULES
from albert_tools.engine.model.definition import (
    EFFECTS,
    Callee,
    ToolDefinition,
    ToolParameter,
)
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.primitive import read_docstring
from albert_tools.engine.model.protocols import Catalog
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Severity, SourceError, in_order
from albert_tools.grammar.parse import parse
from albert_tools.grammar.recursion import with_room
from albert_tools.grammar.second_reading import uncompilable


@dataclass(frozen=True, slots=True)
class Example:
    """An ``@example(...)`` of the source: what to call it with, what is there, what is expected."""

    arguments: dict[str, object]
    files: dict[str, str]
    expect_files: dict[str, str]
    stubs: dict[str, object]
    line: int
    has_result: bool = False
    result: object = None
    raises: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A program that may run. `facts` are the tables that the compiler reads on."""

    source: str
    module: tree.Module
    definition: ToolDefinition
    calls: tuple[Callee, ...]
    imports: tuple[str, ...]
    examples: tuple[Example, ...]
    facts: Facts


@dataclass(frozen=True, slots=True)
class Report:
    """What checking found; `checked` is None exactly when an error is among the `diagnostics`."""

    diagnostics: tuple[Diagnostic, ...]
    checked: Checked | None


@with_room
def check(source: str | bytes, catalog: Catalog, limits: CheckLimits | None = None) -> Report:
    """Read and check a source against the tools in `catalog`. Never raises for any source."""
    limits = limits or CheckLimits()
    parsed = parse(source, max_bytes=limits.source_bytes)
    if parsed.module is None:
        beside = findings_beside(source, lambda module: _findings(Facts(module, catalog, limits)))
        return Report(in_order([*parsed.diagnostics, *beside]) if beside else parsed.diagnostics, None)
    facts = Facts(parsed.module, catalog, limits)
    found = in_order(_findings(facts))
    if any(d.severity == Severity.ERROR for d in found):
        return Report(_proven(found, facts), None)
    refused = uncompilable(facts.module.source)
    if refused is not None:
        return Report(in_order([*found, refused]), None)
    return Report(found, _checked(facts))


def _findings(facts: Facts) -> Iterator[Diagnostic]:
    return (d for rule in RULES for d in rule(facts))


#: Bytes that may be read again to try fixes out, so that a large source with many findings is answered in time.
MAX_TRIED_BYTES = 64 * 1024


def _proven(found: tuple[Diagnostic, ...], facts: Facts) -> tuple[Diagnostic, ...]:
    """The findings, each with its fix only where the fix holds."""
    before = _errors(found)
    left = MAX_TRIED_BYTES
    proven: list[Diagnostic] = []
    for d in found:
        if d.fix is not None:
            left -= len(facts.module.source)
            if left < 0 or not _holds(d, before, facts):
                d = replace(d, fix=None)
        proven.append(d)
    return tuple(proven)


def _holds(d: Diagnostic, before: Counter[tuple[str, str]], facts: Facts) -> bool:
    assert d.fix is not None
    parsed = parse(d.fix.apply(facts.module.source), max_bytes=facts.limits.source_bytes)
    if parsed.module is None:
        return False
    changed = Facts(parsed.module, facts.catalog, facts.limits)
    after = _errors(d for rule in RULES for d in rule(changed))
    return after[d.code, d.message] < before[d.code, d.message] and not after - before


def _errors(found: Iterable[Diagnostic]) -> Counter[tuple[str, str]]:
    return Counter((d.code, d.message) for d in dict.fromkeys(found) if d.severity == Severity.ERROR)


def check_or_raise(source: str | bytes, catalog: Catalog, limits: CheckLimits | None = None) -> Checked:
    """The checked program of a source that must be good.

    Raises:
        SourceError: it isn't; carries all findings.
    """
    report = check(source, catalog, limits)
    if report.checked is None:
        raise SourceError(report.diagnostics)
    return report.checked


def _checked(facts: Facts) -> Checked:
    function = facts.tool
    assert function is not None
    description, texts = read_docstring(inspect.cleandoc(docstring(function) or ""))
    parameters = tuple(
        ToolParameter(
            name=p.name,
            schema=annotation_schemas.schema_of(p.annotation, facts.typed_dicts),
            description=texts.get(p.name, ""),
            required=p.default is None,
            default=None if p.default is None else annotation_schemas.value_of(p.default),
        )
        for p in function.params
    )
    callees: dict[str, ToolDefinition] = {}
    for _, name in facts.tool_calls:
        callee = facts.catalog.get(name)
        assert callee is not None
        callees[name] = callee
    joined = {effect for c in callees.values() for effect in c.effects}
    definition = ToolDefinition(
        name=function.name,
        description=description,
        parameters=parameters,
        result=annotation_schemas.schema_of(function.returns, facts.typed_dicts),
        effects=tuple(e for e in EFFECTS if e in joined),
        kind="composite",
        depth=1 + max((c.depth for c in callees.values()), default=0),
        timeout=_timeout(function),
    )
    return Checked(
        source=facts.module.source,
        module=facts.module,
        definition=definition,
        calls=tuple(Callee(n, c.kind, c.version) for n, c in sorted(callees.items())),
        imports=tuple(sorted({*facts.modules.values(), *(m for m, _ in facts.imported.values())})),
        examples=tuple(_examples(function)),
        facts=facts,
    )


def _timeout(function: tree.FunctionDef) -> float:
    for d in function.decorators:
        if isinstance(d, tree.Call) and isinstance(d.func, tree.Name) and d.func.id == "tool":
            for k in d.keywords:
                if k.arg == "timeout":
                    return float(annotation_schemas.value_of(k.value))
    return RunLimits().run_seconds


def _examples(function: tree.FunctionDef) -> list[Example]:
    found = []
    for d in function.decorators:
        if isinstance(d, tree.Call) and isinstance(d.func, tree.Name) and d.func.id == "example":
            given = {str(k.arg): annotation_schemas.value_of(k.value) for k in d.keywords}
            found.append(
                Example(
                    arguments=given.get("arguments", {}),
                    files=given.get("files", {}),
                    expect_files=given.get("expect_files", {}),
                    stubs=given.get("stubs", {}),
                    line=d.span.line,
                    has_result="result" in given,
                    result=given.get("result"),
                    raises=given.get("raises"),
                )
            )
    return found

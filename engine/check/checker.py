"""Check a source text and return a checked program.

All rules use the same set of facts. All findings are reported at once, in the order of the text. Types are only checked if there is
no error, because the rules are what makes them certain.

A rule proposes a fix after looking at one place only. So the checker applies each fix to the text and checks the changed text. A
fix is only reported if it removes the finding and causes no new error.

Everything in a checked program (`Checked`) is derived from the text and the catalogue: the parameters, the callees with the
versions that they were checked against, the combined effects of all callees, and the depth.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from albert_tools.engine.check import annotation_schemas
from albert_tools.engine.check.discovery import RULES
from albert_tools.engine.check.facts import Facts, called_name, docstring
from albert_tools.engine.check.finding_limits import capped, problem_of, too_many_types, until_too_many
from albert_tools.engine.check.partial_check import partial_findings
from albert_tools.engine.check.scopes import spelled
from albert_tools.engine.check.spelled_findings import with_spelled_names
from albert_tools.engine.check.types import failing_types
from albert_tools.engine.check.types.infer import infer
from albert_tools.engine.check.types.schema_fit import schema_for
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.definition import Callee, ToolDefinition, ToolParameter, composite, pins_of
from albert_tools.engine.model.example import Example
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.primitive import read_docstring
from albert_tools.engine.model.protocols import Catalog
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Severity, in_order
from albert_tools.grammar.parse import parse
from albert_tools.grammar.second_reading import python_tree, uncompilable
from albert_tools.grammar.source_error import SourceError
from albert_tools.grammar.source_text import source_text


class Checked(Struct, frozen=True):
    """A program that may run. The compiler also reads `facts`."""

    source: str
    module: tree.Module
    definition: ToolDefinition
    calls: tuple[Callee, ...]
    imports: tuple[str, ...]
    examples: tuple[Example, ...]
    facts: Facts


class Report(Struct, frozen=True):
    """The result of a check. `checked` is None if and only if `diagnostics` contains an error."""

    diagnostics: tuple[Diagnostic, ...]
    checked: Checked | None


def check(source: str | bytes, catalog: Catalog) -> Report:
    """Check a source against the tools in `catalog`. Never raises for any source."""
    text = source_text(source)
    if isinstance(text, Diagnostic):
        return Report((text,), None)
    parsed = parse(text)
    if parsed.module is None:
        others = partial_findings(parsed.python or python_tree(text), lambda module: _findings(Facts(module, catalog)))
        return Report(capped(in_order([*parsed.diagnostics, *others])), None)
    facts = Facts(parsed.module, catalog, parsed.python)
    findings = in_order(_findings(facts))
    if any(d.severity == Severity.ERROR for d in findings):
        return Report(_with_working_fixes(capped(findings), _errors(findings), facts, _findings), None)
    failing = tuple(map(with_spelled_names, until_too_many(failing_types.check(facts))))
    findings = in_order([*findings, *failing])
    if any(d.severity == Severity.ERROR for d in failing):
        return Report(_with_working_fixes(capped(findings), _errors(findings), facts, _all_findings), None)
    outcome = uncompilable(facts.module.source) or _checked(facts)
    if isinstance(outcome, Diagnostic):
        return Report(capped(in_order([*findings, outcome])), None)
    return Report(capped(findings), outcome)


#: Findings that are also reported inside a refused class. They concern the code that its author moves to helpers.
_IN_CLASSES = frozenset({"outside-name", "unknown-tool", "tool-arguments", "meta-tool"})


def _findings(facts: Facts) -> Iterator[Diagnostic]:
    """The findings of all rules. The consequences of a refused class are left out, so it has only one finding."""
    bodies = [(c.name_span.line, c.span.end_line) for c in facts.refused_classes]
    own = frozenset().union(*(_attributes_of(facts, c) for c in facts.refused_classes))
    for rule in RULES:
        for d in until_too_many(rule(facts)):
            inside = any(first < d.span.line <= last for first, last in bodies)
            follows = d.code in ("unknown-attribute", "method-value") and any(f"{name!r}" in d.message for name in own)
            if not follows and (not inside or (d.code in _IN_CLASSES and "'super'" not in d.message)):
                yield with_spelled_names(d)


def _attributes_of(facts: Facts, cls: tree.ClassDef) -> frozenset[str]:
    """The names of a class's methods and fields."""
    nodes = list(tree.walk(cls))
    fields = {n.attr for n in nodes if isinstance(n, tree.Attribute) and id(n) in facts.assigned_attributes}
    fields |= {s.target.id for s in cls.body if isinstance(s, tree.AnnAssign)}
    return frozenset(fields | {n.name for n in nodes if isinstance(n, tree.FunctionDef)})


#: The most bytes that are checked again to try out fixes, which takes 0.2 s. Later fixes are left out.
MAX_TRIAL_BYTES = 32 * 1024


def _all_findings(facts: Facts) -> Iterator[Diagnostic]:
    """The findings of all rules, and those about types."""
    yield from _findings(facts)
    yield from map(with_spelled_names, until_too_many(failing_types.check(facts)))


def _with_working_fixes(
    diagnostics: tuple[Diagnostic, ...],
    before: Counter[tuple[str, str]],
    facts: Facts,
    findings: Callable[[Facts], Iterable[Diagnostic]],
) -> tuple[Diagnostic, ...]:
    """The findings. A fix that does not work is removed from its finding.

    `before` are the errors of the source, and `findings` checks a changed source.
    """
    budget = MAX_TRIAL_BYTES
    verified: list[Diagnostic] = []
    for d in diagnostics:
        if d.fix is not None:
            budget -= len(facts.module.source)
            if budget < 0 or not _fix_works(d, before, facts, findings):
                d = replace(d, fix=None)
        verified.append(d)
    return tuple(verified)


def _fix_works(
    d: Diagnostic,
    before: Counter[tuple[str, str]],
    facts: Facts,
    findings: Callable[[Facts], Iterable[Diagnostic]],
) -> bool:
    assert d.fix is not None
    parsed = parse(d.fix.apply(facts.module.source))
    if parsed.module is None:
        return False
    changed = Facts(parsed.module, facts.catalog)
    after = _errors(findings(changed))
    return after[d.code, d.message] < before[d.code, d.message] and not after - before


def _errors(diagnostics: Iterable[Diagnostic]) -> Counter[tuple[str, str]]:
    return Counter((d.code, d.message) for d in dict.fromkeys(diagnostics) if d.severity == Severity.ERROR)


def check_or_raise(source: str | bytes, catalog: Catalog) -> Checked:
    """The checked program of a source.

    Raises:
        SourceError: The source is refused. The exception contains all findings.
    """
    report = check(source, catalog)
    if report.checked is None:
        raise SourceError(report.diagnostics, source)
    return report.checked


def _checked(facts: Facts) -> Checked | Diagnostic:
    """The checked program of a source without errors. If its definition is refused, the finding."""
    function = facts.tool
    assert function is not None
    description, texts = read_docstring(inspect.cleandoc(docstring(function) or ""))
    try:
        schemas, result = annotation_schemas.signature_schemas(function, facts)
    except annotation_schemas.TooManyNodes as error:
        return too_many_types(error.node)
    if function.returns is None:
        # The stubs of an example need not fit the schemas of the tools.
        result = schema_for(infer(facts, trusts_tools=False).result)
    parameters = tuple(
        ToolParameter(
            name=spelled(p.name),
            schema=schema,
            description=texts.get(spelled(p.name), ""),
            required=p.default is None,
            default=None if p.default is None else annotation_schemas.value_of(p.default),
        )
        for p, schema in zip(function.params, schemas, strict=True)
    )
    callees: dict[str, ToolDefinition] = {}
    for _, name in facts.callees:
        callee = facts.catalog.get(name)
        assert callee is not None
        callees[name] = callee
    definition = composite(
        callees.values(),
        name=spelled(function.name),
        description=description,
        parameters=parameters,
        result=result,
        timeout=_timeout(function),
    )
    problem = problem_of(definition, function)
    if problem is not None:
        return problem
    return Checked(
        source=facts.module.source,
        module=facts.module,
        definition=definition,
        calls=pins_of(callees),
        imports=tuple(sorted(_imports(facts))),
        examples=tuple(_examples(function)),
        facts=facts,
    )


def _imports(facts: Facts) -> set[str]:
    """The modules that the program has at run time."""
    return {*facts.modules.values(), *(m for m, _ in facts.imported.values())} & vocabulary.MODULES


def _timeout(function: tree.FunctionDef) -> float:
    for _, arguments in _decorators(function, "tool"):
        if "timeout" in arguments:
            return float(arguments["timeout"])
    return RunLimits().run_seconds


def _examples(function: tree.FunctionDef) -> Iterator[Example]:
    for line, arguments in _decorators(function, "example"):
        yield Example(
            arguments=arguments.get("arguments", {}),
            files=arguments.get("files", {}),
            expect_files=arguments.get("expect_files", {}),
            stubs=arguments.get("stubs", {}),
            line=line,
            has_result="result" in arguments,
            result=arguments.get("result"),
            raises=arguments.get("raises"),
        )


def _decorators(function: tree.FunctionDef, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and arguments of each decorator with that name."""
    for d in function.decorators:
        if isinstance(d, tree.Call) and called_name(d) == name:
            yield d.span.line, {str(k.arg): annotation_schemas.value_of(k.value) for k in d.keywords}

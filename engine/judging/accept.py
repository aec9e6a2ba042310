"""What the service accepts of an answer of the judging process.

The process has read hostile text, so the service believes none of its answers. From its own catalogue, it computes what gives a
tool its authority: the pins, the effects, the category, the risk and the depth. It checks the form of everything else: names,
schemas (with the few keywords that annotations can produce), imports, examples and findings. The lowered program is not checked
again. It only runs in a worker, which has no authority, and only the pinned tools answer its calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from albert_tools.engine.judging.answers import Answer, Unbelievable
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.bounds import MAX_EXAMPLES
from albert_tools.engine.model.definition import Callee, Program, ToolDefinition, composite, pins_of
from albert_tools.engine.model.example import Example
from albert_tools.engine.model.json_values import problem_in
from albert_tools.engine.model.limits import MAX_TOOL_DEPTH
from albert_tools.engine.model.manifest import ANALYSIS, ANY_NAME, Manifest
from albert_tools.engine.model.primitive import NAME
from albert_tools.engine.model.reserved_names import RESERVED
from albert_tools.engine.model.schema_validity import fault_in

#: The keywords of schemas that are made from annotations.
_KEYWORDS = frozenset(
    "type items prefixItems minItems maxItems properties required additionalProperties anyOf enum $ref $defs".split()
)
_REFERENCE = "#/$defs/"
#: The deepest nesting of a schema. Expressions nest 40 deep, and TypedDicts in place add as many again.
_MAX_SCHEMA_DEPTH = 120


class CheckedSource(Struct, frozen=True):
    """A source that was accepted. `program` is None if it was not compiled."""

    source: str
    definition: ToolDefinition
    calls: tuple[Callee, ...]
    examples: tuple[Example, ...]
    program: Program | None


def checked_source(answer: Answer, source: str, known: Mapping[str, ToolDefinition | None]) -> CheckedSource | None:
    """The accepted source of an answer; None if the source has errors. `known` are the tools
    that the service has described to the process.

    Raises:
        Unbelievable: The answer contradicts the source or the catalogue.
    """
    tool = answer.tool
    if (tool is None) != any(f.severity == "error" for f in answer.findings):
        raise Unbelievable("either a tool and errors, or no tool and no error")
    if tool is None:
        return None
    # A person reviews the source. So the source must contain the names of the tool and of its callees.
    words = set(re.findall(r"\w+", source))
    callees: dict[str, ToolDefinition] = {}
    for name in tool.calls:
        callee = known.get(name)
        if callee is None or not words.issuperset(name.split(".")):
            raise Unbelievable("a call of a tool that the source does not name")
        callees[name] = callee
    taken = known.get(tool.name)
    is_free = tool.name not in RESERVED and (taken is None or taken.kind != "primitive")
    if not NAME.match(tool.name) or tool.name not in words or not is_free:
        raise Unbelievable("a name that the source does not have")
    if not set(tool.imports) <= vocabulary.MODULES:
        raise Unbelievable("an import that the language does not have")
    if len(tool.examples) > MAX_EXAMPLES:
        raise Unbelievable("more examples than a source may have")
    names = {p.name for p in tool.parameters}
    if len(names) < len(tool.parameters) or not all(name.isidentifier() for name in names):
        raise Unbelievable("parameters that no function has")
    for schema in (*(p.schema for p in tool.parameters), tool.result):
        if not _from_annotation(schema, schema.get("$defs", {}), 0) or fault_in(schema) is not None:
            raise Unbelievable("a schema that no annotation has")
    definition = composite(
        callees.values(),
        name=tool.name,
        description=tool.description,
        parameters=tuple(tool.parameters),
        result=tool.result,
        timeout=tool.timeout,
        manifest=replace(tool.manifest, analysis=ANALYSIS),
    )
    if problem_in([definition.description, definition.parameters_schema(), tool.manifest.as_dict()]) is not None:
        raise Unbelievable("a value that can't leave a program")
    if not _covers(definition, tool.manifest, callees):
        raise Unbelievable("a manifest that contradicts the calls")
    if definition.depth > MAX_TOOL_DEPTH:
        raise Unbelievable("a tool that is nested too deep")
    program = answer.program
    return CheckedSource(
        source,
        definition,
        pins_of(callees),
        tuple(tool.examples),
        None
        if program is None
        else Program(tool.name, tool.name, program.lowered, tuple(tool.imports), tuple(program.lines)),
    )


def _covers(definition: ToolDefinition, manifest: Manifest, callees: Mapping[str, ToolDefinition]) -> bool:
    """Whether a manifest names only calls that the callees can make, each with its own effects and uses.

    The rest of a manifest can't be checked without reading the source. At run time the calls of an approved tool are held to it.
    """
    possible: list[tuple[str, tuple[str, ...], dict[str, str], str]] = []
    for name, callee in callees.items():
        if callee.manifest is None:
            possible.append((name, callee.effects, callee.declared.uses, callee.declared.source))
        else:
            possible += [(c.tool, c.effects, c.uses, c.source) for c in callee.manifest.calls]
    for call in manifest.calls:
        if (call.tool, call.effects, call.uses, call.source) not in possible:
            return False
        # A reader finds each use under the name of its argument.
        if ANY_NAME in call.arguments and not call.uses.keys() <= call.arguments.keys():
            return False
    return manifest.effects == definition.effects


def _from_annotation(schema: Any, definitions: Any, depth: int) -> bool:
    """Whether an annotation can have this schema. Each reference then leads to an object, so checks of values end."""
    if not isinstance(schema, dict) or not schema.keys() <= _KEYWORDS or depth > _MAX_SCHEMA_DEPTH:
        return False
    if "$ref" in schema:
        name = str(schema["$ref"])
        target = definitions.get(name.removeprefix(_REFERENCE)) if isinstance(definitions, dict) else None
        return (
            len(schema) == 1
            and name.startswith(_REFERENCE)
            and isinstance(target, dict)
            and target.get("type") == "object"
        )
    inner = [schema[key] for key in ("items", "additionalProperties") if not isinstance(schema.get(key, True), bool)]
    for key, kind in (("anyOf", list), ("prefixItems", list), ("properties", dict), ("$defs", dict)):
        part = schema.get(key, kind())
        if not isinstance(part, kind) or (key == "$defs" and key in schema and depth):
            return False
        inner += part.values() if isinstance(part, dict) else part
    return all(_from_annotation(part, definitions, depth + 1) for part in inner)

"""Every code of a diagnostic about a source, with its meaning, an example and an accepted rewrite."""

from __future__ import annotations

from albert_tools.engine.check import finding_limits
from albert_tools.engine.check.discovery import RULE_MODULES
from albert_tools.engine.check.types import failing_types
from albert_tools.grammar import codes as grammar_codes
from albert_tools.grammar.finding_code import FindingCode, in_tool

#: Findings that the service reports when it defines a tool. They depend on the existing tools, or on what the tool can do.
WHEN_DEFINED = (
    FindingCode(
        "name-taken",
        "The tool has the name of a primitive or of an action, or a name that looks like that of another tool: `Read_file`, "
        "`read_fi1e`.",
        "A saved tool must not replace what other tools rely on, and a reviewer must not mistake it for another.",
        example=in_tool("return path").replace("work", "read_file"),
        rewrite=in_tool("return path").replace("work", "read_my_file"),
    ),
    FindingCode(
        "outdated-callee",
        "The tool calls a saved tool whose own callees have changed since it was saved.",
        "The new tool could not run either; the callee must be defined again first.",
    ),
    FindingCode(
        "too-difficult",
        "The analysis of what the tool can do takes too long.",
        "The tool can be saved, but its review says that everything is possible, and most reviewers refuse that.",
    ),
    FindingCode(
        "unknown-path",
        "The tool writes or deletes at a path of which nothing is known.",
        "The tool can be saved, but its review says ANYTHING, and most reviewers refuse that.",
        example=in_tool('tools.write_file(path=tools.read_file(path=path).replace("a", "b"), content="")'),
        rewrite=in_tool('tools.write_file(path=path, content="")'),
    ),
)

#: Findings about the size of a check's answer.
LIMITS = finding_limits.CODES

#: Findings about types.
TYPES = failing_types.CODES

_ALL = (
    *grammar_codes.CODES,
    *(code for module in RULE_MODULES for code in module.CODES),
    *TYPES,
    *LIMITS,
    *WHEN_DEFINED,
)

CODES: dict[str, FindingCode] = {code.code: code for code in sorted(_ALL)}

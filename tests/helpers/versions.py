"""Makes versions of tools to save."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import Checked
from albert_tools.engine.compile.program import compile_version
from albert_tools.engine.model.definition import Callee, Program, ToolDefinition, ToolParameter, ToolVersion
from albert_tools.engine.model.manifest import ANALYSIS, Manifest


def make(name: str = "shout", text: str = "a.upper()", description: str = "Shout it.") -> ToolVersion:
    """Make a version with a name. A different text makes a different version."""
    source = f'def {name}(a: str) -> str:\n    """{description}"""\n    return {text}\n'
    return ToolVersion(
        definition=ToolDefinition(
            name=name,
            description=description,
            parameters=(ToolParameter("a", {"type": "string"}, "What to shout — ä, 字."),),
            result={"type": "string"},
            effects=("read",),
            kind="composite",
            depth=1,
            manifest=Manifest(("read",)),
        ),
        source=source,
        program=Program(name, name, source, ("tools",), (1, 2, 3)),
        calls=(Callee("read_file", "primitive", "0" * 64),),
        created="2025-01-01T00:00:00Z",
    ).named()


def version_of(checked: Checked) -> ToolVersion:
    """The version of a checked source, with its manifest."""
    version = compile_version(checked, "2025-01-01T00:00:00+00:00")
    return version.with_manifest(replace(analyse(checked), analysis=ANALYSIS))

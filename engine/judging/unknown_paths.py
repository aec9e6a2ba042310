"""The warnings about paths of which the manifest knows nothing, so that a review has to say that they can lead anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.checker import Checked
from albert_tools.engine.check.rule import warning
from albert_tools.engine.model.manifest import Hole, Manifest, Value, values_in
from albert_tools.grammar.diagnostic import Diagnostic

_HINT = "below a folder write posixpath.join(target, posixpath.relpath(path, folder)); another path is best a parameter"


def unknown_paths(checked: Checked, manifest: Manifest) -> Iterator[Diagnostic]:
    """A warning for each direct call that writes or deletes at a path which is not known."""
    unknown = {
        (call.line, call.tool): name
        for call in manifest.calls
        if not call.via
        for name, use in call.uses.items()
        if use in ("write", "delete") and name in call.arguments and _is_unknown(call.arguments[name])
    }
    for node, tool in checked.facts.tool_calls:
        name = unknown.pop((node.span.line, tool), None)
        if name is not None:
            yield warning("unknown-path", node.func, f"the {name} of {tool} can be any path", _HINT)


def _is_unknown(path: Value) -> bool:
    values = [*values_in(path)]
    parts = [part for v in values for one in v.alternatives if isinstance(one, tuple) for part in one]
    return any(v.open for v in values) or any(isinstance(part, Hole) and part.kind == "any" for part in parts)

"""The warnings about what a manifest does not know, so that a review has to say that it can be anything."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.checker import Checked
from albert_tools.engine.check.rule import warning
from albert_tools.engine.model.manifest import Hole, Manifest, Value, values_in
from albert_tools.grammar.diagnostic import Diagnostic, Span

_SIMPLER = "use fewer names in one loop, and let functions call others in fewer places"
_HINT = "below a folder write posixpath.join(target, posixpath.relpath(path, folder)); another path is best a parameter"


def unknown_parts(checked: Checked, manifest: Manifest) -> Iterator[Diagnostic]:
    """A warning if the analysis was given up, and for each direct call that writes or deletes at a path which is not known."""
    if manifest.given_up:
        at = Span(manifest.given_up, 1, manifest.given_up, 2)
        yield warning(
            "too-difficult", at, "the analysis takes too long here; a review says that everything is possible", _SIMPLER
        )
        return
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

"""Whether a manifest is harmless: all that the tool does is to read files in the workspace.

The owner's rules can let such versions become active without a review (`activate` in governance.yaml). Everything else needs a
person, also what is not known.
"""

from __future__ import annotations

from albert_tools.engine.model.manifest import Hole, Manifest, PlannedCall, Value

#: The value of `activate` in the rules.
READ_ONLY = "read-only inside the workspace"
#: The holes that can't lead out of a folder. A parameter is the caller's own path: it is judged when the tool is called.
_INSIDE = frozenset({"parameter", "number", "word", "below", "inside"})


def is_harmless(manifest: Manifest) -> bool:
    """Whether each call only reads files, and each path is relative, leads nowhere up and has no unknown part."""
    return set(manifest.effects) <= {"read"} and all(map(_reads_inside, manifest.calls))


def _reads_inside(call: PlannedCall) -> bool:
    if not call.effects:
        return not call.uses and not call.source
    # A call that names no file reads something else: the processes of this machine, its logs, a stored value.
    reads_files = set(call.effects) == {"read"} and set(call.uses.values()) == {"read"} and call.source in ("", "file")
    return reads_files and all(_is_inside(call.arguments[name]) for name in call.uses if name in call.arguments)


def _is_inside(path: Value) -> bool:
    if path.open or path.fields is not None or path.rest is not None:
        return False
    texts = [one for one in path.alternatives if isinstance(one, tuple)]
    others = [one for one in path.alternatives if not isinstance(one, tuple) and one is not None]
    if others or not all(map(_leads_inside, texts)):
        return False
    return path.items is None or _is_inside(path.items)


def _leads_inside(template: tuple[str | Hole, ...]) -> bool:
    if template and isinstance(template[0], str) and template[0].startswith(("/", "~", "$")):
        return False
    return all(".." not in part if isinstance(part, str) else part.kind in _INSIDE for part in template)

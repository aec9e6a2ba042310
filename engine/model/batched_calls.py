"""The calls of a manifest that are made later: a batch calls its tool for each of its items, in runs of their own."""

from __future__ import annotations

from albert_tools.engine.model.manifest import Manifest, PlannedCall


def batched_calls(manifest: Manifest) -> dict[int, frozenset[int]]:
    """For each planned call that makes a batch, the planned calls of the batch's tool, by their indexes."""
    batches = {}
    for i, call in enumerate(manifest.calls):
        named = call.used("tool")
        if named:
            texts = {"".join(map(str, a)) for value in named for a in value.alternatives if isinstance(a, tuple)}
            # In a program that can't be analysed, it can be any tool.
            tools = None if any(value.open for value in named) else texts
            batches[i] = frozenset(j for j, each in enumerate(manifest.calls) if _is_made_by(each, call, tools))
    return batches


def _is_made_by(each: PlannedCall, call: PlannedCall, tools: set[str] | None) -> bool:
    """Whether `each` is a call of one of `tools` in the same place as `call`. None: any other call can be."""
    if tools is None:
        return each is not call
    if (each.line, each.step) != (call.line, call.step) or each is call:
        return False
    depth = len(call.via)
    below = (*each.via, each.tool)
    return each.via[:depth] == call.via and below[depth] in tools

"""Read a run's journal as untrusted input.

The entries form a hash chain, so a changed entry is detected. But the chain has no key: a process that can write the record can
also write a new chain. So every entry is checked against the schema of valid entries. The requests in the journal are authorized
like any other request. The session must be active, a grant must belong to this run, and arguments must be valid. The rules apply to
each step that is not in the journal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from albert_tools.engine.model.definition import Json, Schema, ToolDefinition
from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import ContentStore
from albert_tools.engine.model.result import UNJUDGED_POLICY, Effect, ToolResult, is_incomplete
from albert_tools.engine.model.validation import violations

#: The final states of a run.
OVER = frozenset({"done", "failed", "cancelled"})
#: All states in a journal.
STATES = (*sorted(OVER), "queued", "suspended", "interrupted", "resumed")

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NONE: Schema = {"type": ["string", "null"]}
_NUMBER_OR_NONE: Schema = {"type": ["integer", "null"]}


def _object(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


_HEADER = _object(
    {
        "tool": _TEXT,
        "version": _TEXT,
        "kind": {"enum": ["primitive", "composite"]},
        "workspace": _TEXT,
        "session": _TEXT_OR_NONE,
        "principal": _TEXT,
        "request_id": _TEXT_OR_NONE,
        "trace": _TEXT_OR_NONE,
        "repeat": _TEXT_OR_NONE,
        "reason": _TEXT_OR_NONE,
    },
    {"arguments": {"type": "object"}, "arguments_ref": _TEXT, "source": _TEXT},
)
_ERROR = _object(
    {"code": _TEXT, "message": _TEXT},
    {
        "hint": _TEXT_OR_NONE,
        "retry_after_ms": _NUMBER_OR_NONE,
        "rule": _TEXT_OR_NONE,
        "tool": _TEXT_OR_NONE,
        "source": {"type": ["object", "null"], "properties": {"line": _NUMBER_OR_NONE}},
        "details": {"type": ["object", "null"]},
    },
)
_EFFECTS: Schema = {"type": "array", "items": _object({"kind": _TEXT, "tool": _TEXT})}
_CALL: Mapping[str, Schema] = {
    "tool": _TEXT,
    "version": _TEXT,
    "arguments_ref": _TEXT,
    "ref": _TEXT,
    "text_ref": _TEXT,
    "error": _ERROR,
    "log": _TEXT,
    "at": {"type": "number"},
}
_ENTRIES: Mapping[str, Schema] = {
    "enter": _object(
        {"step": _TEXT, "tool": _TEXT, "version": _TEXT, "mode": _TEXT, "approval": _TEXT_OR_NONE},
        {
            "asks": {"type": "array", "items": {"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 2}},
            "seen": {"type": "array", "items": _TEXT},
            "arguments_ref": _TEXT,
            "at": {"type": "number"},
        },
    ),
    "read": _object({"what": _TEXT, "path": _TEXT}, {"at": {"type": "number"}}),
    "ask": _object({"step": _TEXT, "approval": _TEXT}, {"arguments": {"type": "object"}, "at": {"type": "number"}}),
    "begin": _object(
        {"step": _TEXT, "tool": _TEXT, "version": _TEXT},
        {"arguments_ref": _TEXT, "before": _TEXT, "at": {"type": "number"}},
    ),
    "end": _object({"step": _TEXT, "effects": _EFFECTS}, _CALL),
    "state": _object(
        {"state": {"enum": list(STATES)}},
        {
            "error": _ERROR,
            "effects": _EFFECTS,
            "ref": _TEXT,
            "text_ref": _TEXT,
            "grant": _TEXT_OR_NONE,
            "log": _TEXT,
            "calls": {"type": "integer"},
            "policy": {"type": ["object", "null"]},
        },
    ),
}


def check_form(run: str, header: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
    """Check that the header and all entries have the form in which they are written.

    Raises:
        Failure: `damaged` with the name of the first entry with an invalid form.
    """
    wrong = violations(dict(header), _HEADER, "header")
    if not wrong and ("arguments" in header) == ("arguments_ref" in header):
        raise _damaged(run, "the header must have either arguments or arguments_ref")
    for number, entry in enumerate(entries, 1):
        if wrong:
            break
        schema = _ENTRIES.get(str(entry.get("t")))
        if schema is None:
            raise _damaged(run, f"entry {number} is of an unknown kind")
        wrong = violations(dict(entry), schema, f"entry {number}")
    if wrong:
        raise _damaged(run, wrong[0]["message"])


def _damaged(run: str, why: str) -> Failure:
    return Failure(
        "damaged",
        f"the journal of run {run} is damaged: {why}",
        hint="the run can't be resumed; run the tool again",
        details={"run": run},
    )


def last_state(entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The last entry about the state of the run, or None."""
    return next((e for e in reversed(entries) if e.get("t") == "state"), None)


def arguments_of(document: Mapping[str, Any], contents: ContentStore | None) -> Json:
    """The arguments of a header or an entry. Large arguments are read from the content store. Raises as `load_value`."""
    return load_value(contents, document["arguments_ref"]) if "arguments_ref" in document else document.get("arguments")


def value_of(entry: Mapping[str, Any], contents: ContentStore | None) -> Json:
    """The value of an entry. A large value is read from the content store. Raises as `load_value`."""
    if "text_ref" in entry:
        return _load(contents, entry["text_ref"]).decode("utf-8", "surrogatepass")
    return load_value(contents, entry["ref"]) if "ref" in entry else entry.get("value")


def stored_form(value: Json) -> bytes:
    """A value as the content store has it: a text itself, anything else as JSON.

    The keys are sorted, so equal values have one form.
    """
    return (
        value.encode("utf-8", "surrogatepass") if isinstance(value, str) else msgspec.json.encode(value, order="sorted")
    )


def ref_name(name: str, value: Json) -> str:
    """The name under which an entry has the reference to its stored value or arguments."""
    return "arguments_ref" if name == "arguments" else "text_ref" if isinstance(value, str) else "ref"


def result_of(
    last: Mapping[str, Any], contents: ContentStore | None, run: str, definition: ToolDefinition
) -> ToolResult:
    """The result of a run, from the entry `last` about its state. Raises as `load_value`."""
    output = value_of(last, contents)
    error = read_failure(last["error"]) if "error" in last else None
    return ToolResult(
        tool=definition.name,
        output=output,
        truncated=is_incomplete(definition, output, error),
        error=error,
        version=definition.version,
        effects=tuple(read_effect(e) for e in last.get("effects", ())),
        log=last.get("log", ""),
        calls=last.get("calls", 0),
        policy=last.get("policy") or UNJUDGED_POLICY.copy(),
        family=definition.family,
        run_id=run,
    )


def load_value(contents: ContentStore | None, ref: str) -> Json:
    """Read a value from the content store that is too large for the journal.

    Raises:
        Failure: `damaged`, `not_found`, `io_error`.
    """
    try:
        return json.loads(_load(contents, ref))
    except (ValueError, RecursionError):
        raise Failure("damaged", f"the content {ref[:100]!r}, which the run's journal names, is not JSON") from None


def _load(contents: ContentStore | None, ref: str) -> bytes:
    if contents is None:
        raise Failure("damaged", "a value of the run's journal is in a content store, and there is none here")
    return contents.get(ref)


def read_failure(document: Mapping[str, Any]) -> Failure:
    """Read a failure from the form that `Failure.as_dict` returns."""
    source, details = document.get("source") or {}, dict(document.get("details") or {})
    trail = details.get("trail")
    if "trail" in details and not (isinstance(trail, list) and all(isinstance(t, dict) and "tool" in t for t in trail)):
        del details["trail"]
    return Failure(
        document["code"] if document["code"] in CODES else "internal_error",
        document["message"],
        hint=document.get("hint"),
        retryable=document.get("retryable") is True,
        retry_after_ms=document.get("retry_after_ms"),
        rule=document.get("rule"),
        tool=document.get("tool"),
        line=source.get("line"),
        details=details,
    )


def read_effect(document: Mapping[str, Any]) -> Effect:
    """Read an effect from the form that `Effect.as_dict` returns."""
    facts = {k: v for k, v in document.items() if k not in ("kind", "tool")}
    return Effect(document["kind"], document["tool"], facts)

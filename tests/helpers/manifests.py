"""Short forms for manifests that tests write by hand."""

from __future__ import annotations

from typing import Any

from albert_tools.engine.model.definition import ToolDefinition, ToolParameter
from albert_tools.engine.model.manifest import Bound, Hole, Manifest, Part, PlannedCall, Symbol, Term, Value

ONCE: Bound = (Term(1),)


def given(name: str, path: str = "") -> Hole:
    """The hole of a parameter."""
    return Hole("parameter", name=name, path=path)


def text(*parts: Part, data: tuple[str, ...] = (), control: tuple[str, ...] = ()) -> Value:
    """A value that is one template. Its data origins are `data` and the parameters in its holes."""
    named = [f"parameter:{p.name}" for p in parts if isinstance(p, Hole) and p.kind == "parameter"]
    return Value(alternatives=(tuple(parts),), data=(*named, *data), control=control)


def times(number: int, *origins: str) -> Bound:
    """A bound: a number times the lengths of these origins."""
    return (Term(number, tuple(Symbol("length", origin) for origin in origins)),)


def reads(path: Value, tool: str = "read_file", **more: Any) -> PlannedCall:
    """A call that reads a path."""
    return PlannedCall(tool, ("read",), arguments={"path": path}, uses={"path": "read"}, **{"bound": ONCE, **more})


def writes(path: Value, content: Value, **more: Any) -> PlannedCall:
    """A call that writes a file."""
    uses = {"path": "write", "content": "payload"}
    arguments = {"path": path, "content": content}
    return PlannedCall("write_file", ("write",), arguments=arguments, uses=uses, **{"bound": ONCE, **more})


def deletes(path: Value) -> PlannedCall:
    """A call that deletes a file."""
    return PlannedCall("delete_file", ("delete",), arguments={"path": path}, uses={"path": "delete"}, bound=ONCE)


def moves(source: Value, target: Value) -> PlannedCall:
    """A call that moves a file."""
    uses = {"source": "delete", "target": "write"}
    return PlannedCall(
        "move_file", ("write", "delete"), arguments={"source": source, "target": target}, uses=uses, bound=ONCE
    )


def requests(url: Value, body: Value | None = None, **more: Any) -> PlannedCall:
    """An HTTP request."""
    arguments = {"url": url} if body is None else {"url": url, "body": body}
    uses = {"url": "url", "body": "payload"}
    return PlannedCall("http_request", ("network",), arguments=arguments, uses=uses, **{"bound": ONCE, **more})


def manifest(*calls: PlannedCall, **more: Any) -> Manifest:
    """A manifest with these calls, and an unknown result that comes from nowhere."""
    effects = tuple(dict.fromkeys(e for call in calls for e in call.effects))
    return Manifest(effects, calls, **more)


def tool(known: Manifest, *parameters: str, name: str = "t") -> ToolDefinition:
    """A saved tool with a manifest, and parameters that are texts."""
    given = tuple(ToolParameter(p, {"type": "string"}) for p in parameters)
    return ToolDefinition(name, "Says anything.", given, {}, known.effects, "composite", manifest=known)

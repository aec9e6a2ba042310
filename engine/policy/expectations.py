"""Reads a file of expected decisions: which calls the rules must allow, ask about and deny.

::

    - allow: [{read_file: {path: src/main.py}}]
      deny: [{read_file: {path: .env}}, web_search]
    - mode: ALERT                                           # default: NORMAL
      session: {tools: [http_request], seen: [private, outside]}
      ask: [{http_request: {url: "https://example.org/"}}]

`session` describes the session that makes the calls: the tools of its lease, and what it has seen. Without it, the owner makes
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, RootModel

from albert_tools.engine.model.definition import Mode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.decision import SessionFacts, Verdict
from albert_tools.engine.policy.document import Mistaken, Strict, Tool, validated
from albert_tools.engine.policy.settings import read_yaml


class Expected(NamedTuple):
    """One expected decision. `line` is where it is written."""

    verdict: Verdict
    tool: str
    arguments: Mapping[str, Any]
    mode: Mode
    session: SessionFacts | None
    line: int


def _named(value: Any) -> Any:
    """A name alone is a call without arguments, and so is a name without a value."""
    if isinstance(value, str):
        return {value: {}}
    return {k: {} if v is None else v for k, v in value.items()} if isinstance(value, dict) else value


def _one(value: dict[str, Any]) -> dict[str, Any]:
    if len(value) != 1:
        raise ValueError("one call is expected, written as `read_file: {path: a.txt}`")
    return value


# YAML has values that no call has, such as dates.
_Call = Annotated[dict[Tool, dict[str, JsonValue]], BeforeValidator(_named), AfterValidator(_one)]


class _Session(Strict):
    tools: list[Tool] | None = None
    seen: list[Literal["private", "outside"]] = Field([])


class _Group(Strict):
    mode: Mode = "NORMAL"
    session: _Session | None = None
    allow: list[_Call] = Field([])
    ask: list[_Call] = Field([])
    deny: list[_Call] = Field([])


class _Document(RootModel[Annotated[list[_Group], Field(strict=True)]]):
    pass


def read_expectations(file: Path) -> list[Expected]:
    """The expected decisions in a file.

    Raises:
        Failure: `invalid_arguments`: there is no such file, it has mistakes, or it expects nothing.
    """
    try:
        document, marks = read_yaml(file)
        groups = validated(_Document, document, marks, [*_Group.model_fields, *_Session.model_fields]).root
    except OSError:
        raise _wrong(file, "there is no such file") from None
    except (ValueError, Mistaken) as why:
        raise _wrong(file, str(why)) from None
    expectations: list[Expected] = []
    for number, group in enumerate(groups):
        session = None
        if group.session is not None:
            tools = group.session.tools
            session = SessionFacts(None if tools is None else frozenset(tools), frozenset(group.session.seen))
        for verdict in get_args(Verdict):
            for i, call in enumerate(getattr(group, verdict)):
                ((tool, arguments),) = call.items()
                line = marks.get((number, verdict, i), (0, 0))[0]
                expectations.append(Expected(verdict, tool, arguments, group.mode, session, line))
    if not expectations:
        raise _wrong(file, "it expects no decision")
    return sorted(expectations, key=lambda e: e.line)


def _wrong(file: Path, why: str) -> Failure:
    hint = "write a list such as `- deny: [{read_file: {path: .env}}]`"
    return Failure("invalid_arguments", f"the expected decisions of {str(file)!r} can't be read: {why}", hint=hint)

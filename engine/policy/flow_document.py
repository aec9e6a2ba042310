"""Validates the rules about flows in a document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from albert_tools.engine.model.definition import EFFECTS
from albert_tools.engine.policy.flow_rules import ARGUMENTS, SEEN, SOURCES, FlowRule, From, To
from albert_tools.engine.policy.path_rules import read_pattern

#: The most rules of a key. Each is compared with each pair of calls of a manifest.
MAX_FLOWS = 100


def _names(*allowed: str) -> Any:
    return Annotated[list[Literal[allowed]], Field(min_length=1)]  # type: ignore[valid-type]


_Tools = Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(min_length=1)]
_Pattern = Annotated[str, Field(max_length=4096), AfterValidator(read_pattern)]
_Patterns = Annotated[list[_Pattern], Field(min_length=1)]


class _Side(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="after")
    def _says_something(self) -> _Side:
        if not self.model_fields_set:
            raise ValueError(f"it names nothing; write one of {', '.join(type(self).model_fields)}")
        return self


class _From(_Side):
    effects: _names(*EFFECTS) = []  # type: ignore[valid-type]
    tools: _Tools = []
    source: _names(*SOURCES) = []  # type: ignore[valid-type]
    paths: _Patterns = []
    session: _names(*SEEN) = []  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _session_alone(self) -> _From:
        if self.session and len(self.model_fields_set) > 1:
            raise ValueError("`session` stands alone: the rule is about what the session has seen, by any tool")
        return self


class _To(_Side):
    effects: _names(*EFFECTS) = []  # type: ignore[valid-type]
    tools: _Tools = []
    arguments: _names(*ARGUMENTS) = []  # type: ignore[valid-type]


def _word(value: Any) -> Any:
    """`to: destination` means the arguments of this kind of any call."""
    return {"arguments": [value]} if isinstance(value, str) else value


class FlowDocument(BaseModel):
    """One rule about a flow."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: _From = Field(alias="from")
    to: Annotated[_To, BeforeValidator(_word)]
    control: bool = False

    @model_validator(mode="after")
    def _control_needs_a_manifest(self) -> FlowDocument:
        if self.control and self.source.session:
            raise ValueError("`control` has no meaning for what a session has seen")
        return self


#: All keys of a rule, for the nearest name of a misspelt one.
FLOW_KEYS = ("from", "to", "control", *_From.model_fields, *_To.model_fields)

Flows = Annotated[list[FlowDocument], Field(max_length=MAX_FLOWS)]


def rules_of(documents: list[FlowDocument], verdict: Literal["ask", "deny"]) -> tuple[FlowRule, ...]:
    """The rules under `deny_flow` or `ask_flow`."""
    return tuple(
        FlowRule(verdict, f"{verdict}_flow.{n}", From(**_tuples(d.source)), To(**_tuples(d.to)), d.control)
        for n, d in enumerate(documents)
    )


def _tuples(side: _Side) -> dict[str, tuple[str, ...]]:
    return {name: tuple(names) for name, names in dict(side).items()}

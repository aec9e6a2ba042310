"""Rules as they are written, in YAML or in Python: read, and every mistake told with its line, its column and the nearest name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv6Address, ip_network
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from albert_tools.engine.model.definition import CATEGORIES, MODES, Category, Mode
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.policy.path_patterns import PathRules
from albert_tools.engine.policy.sections import (
    MAX_RULE_FILE_SIZE_MB,
    MAX_RULE_RATE_PER_HOUR,
    MAX_RULE_TIMEOUT_SECONDS,
    Section,
)

#: Where a part of a document stands: its keys from the top → (line, column), both from 1.
Marks = Mapping[tuple[Any, ...], tuple[int, int]]


def _pattern(text: str) -> str:
    PathRules([(text, "")], "/workspace", "/home/user")
    return text


def _host(text: str) -> str:
    name = text.removeprefix("*.")
    if text == "*":
        return text
    if ":" in text:
        with suppress(ValueError):
            return str(IPv6Address(text.removeprefix("[").removesuffix("]")))
    if not name or any(c in name for c in "/:*@ ?#") or not name.isascii():
        raise ValueError("a host is a name such as example.org, *.example.org for all below it, or * for every host")
    return text.lower()


def _address(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError:
        raise ValueError("an address is one such as 10.0.0.7, or a network such as 10.0.0.0/24 or fd00::/8") from None


def _bound(text: str) -> str:
    if text == "*":
        raise ValueError("a secret is for hosts that are named")
    return _host(text)


def _secret(text: str) -> str:
    if not text.isascii() or not text.isidentifier():
        raise ValueError("a secret's name is letters, digits and _, such as GITHUB_TOKEN")
    return text


def _method(text: str) -> str:
    if not text.isascii() or not text.isalpha():
        raise ValueError("a method is a word such as GET")
    return text.upper()


def _operation(text: str) -> str:
    if not text.isascii() or not text.replace("_", "").isalpha():
        raise ValueError("an operation is a word such as PUSH")
    return text.upper()


def _command(text: str) -> str:
    if not text.strip():
        raise ValueError("a command is words such as `git status`, with * for any others")
    return text


def _module(text: str) -> str:
    module, colon, attribute = text.partition(":")
    if not all(part.isidentifier() for part in module.split(".")) or (colon and not attribute.isidentifier()):
        raise ValueError("it is written package.module:name, or package.module for all primitives of a module")
    return text


Pattern = Annotated[str, Field(max_length=4096), AfterValidator(_pattern)]
Host = Annotated[str, Field(max_length=253), AfterValidator(_host)]
Module = Annotated[str, Field(max_length=1000), AfterValidator(_module)]
Address = Annotated[str, Field(max_length=64), AfterValidator(_address)]
SecretHost = Annotated[str, Field(max_length=253), AfterValidator(_bound)]
SecretName = Annotated[str, Field(max_length=64), AfterValidator(_secret)]
Method = Annotated[str, Field(max_length=32), AfterValidator(_method)]
Operation = Annotated[str, Field(max_length=32), AfterValidator(_operation)]
Command = Annotated[str, Field(max_length=4096), AfterValidator(_command)]
Named = Annotated[str, Field(min_length=1, max_length=256)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class LimitsDocument(_Strict):
    """Limits of every run; each can only be lowered."""

    own_seconds: float | None = Field(None, gt=0)
    run_seconds: float | None = Field(None, gt=0)
    call_seconds: float | None = Field(None, gt=0)
    cpu_seconds: int | None = Field(None, gt=0)
    memory_bytes: int | None = Field(None, ge=16 * 1024 * 1024)
    result_bytes: int | None = Field(None, gt=0)
    log_bytes: int | None = Field(None, gt=0)
    calls: int | None = Field(None, ge=0)
    recursion: int | None = Field(None, ge=1)


class SectionDocument(_Strict):
    """What is said of one tool or one category."""

    allowed_in_modes: list[Mode] | None = None
    requires_approval_in_modes: list[Mode] | None = None
    forbidden_in_modes: list[Mode] | None = None
    allowed_paths: list[Pattern] | None = None
    forbidden_paths: list[Pattern] = []
    max_file_size_mb: float | None = Field(None, ge=0, le=MAX_RULE_FILE_SIZE_MB)
    allowed_hosts: list[Host] | None = None
    forbidden_hosts: list[Host] = []
    allowed_methods: list[Method] | None = None
    allowed_addresses: list[Address] | None = None
    allowed_commands: list[Command] | None = None
    dangerous_commands: list[Command] = []
    forbidden_commands: list[Command] = []
    allowed_operations: list[Operation] | None = None
    asking_operations: list[Operation] = []
    forbidden_operations: list[Operation] = []
    allowed_providers: list[Named] | None = None
    allowed_models: list[Named] | None = None
    timeout_seconds: float | None = Field(None, gt=0, le=MAX_RULE_TIMEOUT_SECONDS)
    rate_limit_per_hour: int | None = Field(None, ge=1, le=MAX_RULE_RATE_PER_HOUR)

    def section(self) -> Section:
        """The frozen form."""
        found = {name: getattr(self, name) for name in Section._fields}
        for name, value in found.items():
            if isinstance(value, list):
                found[name] = frozenset(value) if name.endswith("_in_modes") else tuple(value)
        return Section(**found)


class RecordsDocument(_Strict):
    """How long records are kept; the owner's alone to say."""

    keep_days: float | None = Field(None, ge=1, le=36_525)


class RulesDocument(_Strict):
    """A whole file."""

    allow: list[str] = []
    deny: list[str] = []
    tools: dict[str, SectionDocument] = {}
    categories: dict[Category, SectionDocument] = {}
    limits: LimitsDocument = LimitsDocument()  # type: ignore[call-arg]
    primitives: dict[str, dict[str, Any]] = {}
    primitives_from: list[Module] = Field([], max_length=100)
    secrets: dict[SecretName, list[SecretHost]] = {}
    records: RecordsDocument = RecordsDocument()  # type: ignore[call-arg]


class Mistaken(Exception):
    """A document has mistakes; the text says all of them (the first few)."""


def read_document(document: Mapping[Any, Any], marks: Marks | None = None) -> RulesDocument:
    """The rules that a document spells.

    Raises:
        Mistaken: it has mistakes.
    """
    try:
        return RulesDocument.model_validate(dict(document))
    except ValidationError as error:
        raise Mistaken("; ".join(_said(e, marks or {}) for e in error.errors()[:5])) from None


_PARTS = (RulesDocument, LimitsDocument, SectionDocument, RecordsDocument)
_NAMES = [name for part in _PARTS for name in part.model_fields]


def _said(error: Any, marks: Marks) -> str:
    """One finding of pydantic's, with its place."""
    # Where a key is wrong, pydantic adds a part of its own.
    place = tuple(part for part in error["loc"] if part != "[key]")
    at = next((marks[place[:n]] for n in range(len(place), 0, -1) if place[:n] in marks), None)
    where = f"line {at[0]}, column {at[1]}: " if at else ""
    name = ".".join(str(part) for part in place)
    if error["type"] == "extra_forbidden":
        return f"{where}{name}: there is no such rule{did_you_mean(str(place[-1]), _NAMES)}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "list_type" and isinstance(error["input"], str):
        message = f"expected a list; write `{place[-1]}: [{error['input']}]`"
    if error["type"] == "literal_error":
        message += did_you_mean(str(error["input"]), [*MODES, *CATEGORIES])
    return f"{where}{name}: {message[:1].lower()}{message[1:]}"

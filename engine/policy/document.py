"""Validates rules from YAML or Python. Reports each mistake with its line, its column and the nearest name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from albert_tools.engine.model.definition import Category
from albert_tools.engine.model.limits import MOST_OF_LOOPS, MOST_OF_RUN, MiB
from albert_tools.engine.model.nearest_name import did_you_mean, misspelt
from albert_tools.engine.model.record_types import SHORT_NAME
from albert_tools.engine.policy.flow_document import FLOW_KEYS, Flows
from albert_tools.engine.policy.host_rules import read_host
from albert_tools.engine.policy.layers import Section
from albert_tools.engine.policy.rule_kind import CategoryKey, Key, ListKey
from albert_tools.engine.policy.rule_table import EVERYWHERE, KEYS

if TYPE_CHECKING:
    from albert_tools.engine.policy.sign_in import SignIn

#: The position of each part of a document: keys from the top → (line, column), both counted from 1.
Marks = Mapping[tuple[Any, ...], tuple[int, int]]

_Model = TypeVar("_Model", bound=BaseModel)

#: The most mistakes in one message.
_MAX_MISTAKES = 5


def _secret_host(text: str) -> str:
    if text == "*":
        raise ValueError("a secret is only sent to hosts that are listed by name")
    return read_host(text)


def _secret(text: str) -> str:
    if not text.isascii() or not text.isidentifier():
        raise ValueError("a secret's name is letters, digits and _, such as GITHUB_TOKEN")
    return text


def _module(text: str) -> str:
    module, colon, attribute = text.partition(":")
    if not all(part.isidentifier() for part in module.split(".")) or (colon and not attribute.isidentifier()):
        raise ValueError("write package.module:name, or package.module for all primitives of a module")
    return text


def _tool(text: str) -> str:
    if not text or not text.replace(".", "_").isidentifier():
        raise ValueError("the name of one tool is expected, without wildcards; `categories` has rules on many tools")
    return text


Tool = Annotated[str, Field(max_length=256), AfterValidator(_tool)]


def _words(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


def _program(words: list[str]) -> list[str]:
    if not words or not words[0] or "\0" in "".join(words):
        raise ValueError("a command is a program with its arguments")
    if not words[0].startswith(("/", "~/")):
        # PATH often has folders that tools can write to.
        raise ValueError(f"write the whole path of the program, such as /usr/bin/{words[0].rpartition('/')[2]}")
    for word in words:
        for filled in ("{title}", "{text}"):
            if filled in word and word != filled:
                # In a program's code, the text of an agent could become code.
                raise ValueError(f'write "{filled}" as an argument of its own, not inside of {word!r}')
    return words


def _queue(text: str) -> str:
    if not SHORT_NAME.match(text):
        raise ValueError("a queue's name is up to 40 lower-case letters, digits, - and _, such as nightly")
    return text


def _repository(text: str) -> str:
    if not text.startswith(("https://", "ssh://", "/")) or "*" in text.removesuffix("/*"):
        raise ValueError("write https://…, ssh://… or the path of a folder; only /* at the end stands for all below")
    return text


Notify = Annotated[list[str], Field(max_length=100), BeforeValidator(_words), AfterValidator(_program)]
Module = Annotated[str, Field(max_length=1000), AfterValidator(_module)]
SecretHost = Annotated[str, Field(max_length=253), AfterValidator(_secret_host)]
SecretName = Annotated[str, Field(max_length=64), AfterValidator(_secret)]


class Strict(BaseModel):
    """A part of a document. It has no other keys, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _optional(name: str, annotations: Mapping[str, Any]) -> type[BaseModel]:
    """Create a model whose keys may be missing. A key without a value is a mistake; otherwise, it would count as a missing key."""
    fields: dict[str, Any] = {key: (annotation, None) for key, annotation in annotations.items()}
    return create_model(name, __base__=Strict, **fields)


def _number(kind: type, *, above: float | None = None, least: float | None = None, most: float | None = None) -> Any:
    return Annotated[kind, Field(gt=above, ge=least, le=most)]


#: The smallest value of each limit of a run. The other limits are above 0.
_LEAST_LIMITS = {"memory_bytes": 16 * MiB, "calls": 0}

#: Limits of every run.
LimitsDocument = _optional(
    "LimitsDocument",
    {
        name: _number(type(most), least=_LEAST_LIMITS.get(name), above=None if name in _LEAST_LIMITS else 0, most=most)
        for name, most in MOST_OF_RUN._asdict().items()
    },
)


#: Limits of repeated requests. A very high number switches one off.
LoopsDocument = _optional(
    "LoopsDocument", {name: _number(int, least=1, most=most) for name, most in MOST_OF_LOOPS._asdict().items()}
)


def _annotation(key: Key) -> Any:
    if isinstance(key, CategoryKey):
        return Category
    if isinstance(key, ListKey):
        return list[Annotated[str, Field(max_length=key.max_length), AfterValidator(key.read)]]
    return _number(key.type, above=key.above, least=key.least, most=key.most)


#: The rules on one tool, and on one category.
SectionDocument = _optional("SectionDocument", {key.name: _annotation(key) for key in KEYS})
_OfCategory = _optional(
    "CategoryDocument", {key.name: _annotation(key) for key in KEYS if not isinstance(key, CategoryKey)}
)


class RecordsDocument(Strict):
    """How long records are retained, and how much is stored for one session. Only the owner's file can set it."""

    keep_days: float | None = Field(None, ge=1, le=36_525)
    session_mb: float = Field(256, gt=0, le=1_048_576)


class QueueDocument(Strict):
    """A queue of runs that workers execute. Only the owner's file can have queues."""

    at_once: int | None = Field(None, ge=1, le=100_000)
    per_hour: int | None = Field(None, ge=1, le=1_000_000)
    repositories: list[Annotated[str, Field(max_length=1000), AfterValidator(_repository)]] = Field([], max_length=100)


ForbiddenPaths, WritablePaths, ForbiddenHosts, FreeHosts, RateLimit = (_annotation(key) for key in EVERYWHERE)
#: Patterns, written as under `forbidden_paths`.
PrivatePaths = ForbiddenPaths


class RulesDocument(Strict):
    """A whole rules file."""

    forbidden_paths: ForbiddenPaths = None  # type: ignore[valid-type]
    writable_paths: WritablePaths = None  # type: ignore[valid-type]
    forbidden_hosts: ForbiddenHosts = None  # type: ignore[valid-type]
    free_hosts: FreeHosts = None  # type: ignore[valid-type]
    rate_limit_per_hour: RateLimit = None  # type: ignore[valid-type]
    deny_flow: Flows = []
    ask_flow: Flows = None  # type: ignore[assignment]
    private_paths: PrivatePaths = None  # type: ignore[valid-type]
    allow: list[Tool] = []
    deny: list[Tool] = []
    other_tools: list[Tool] = []
    tools: dict[Tool, SectionDocument] = {}  # type: ignore[valid-type]
    categories: dict[Category, _OfCategory] = {}  # type: ignore[valid-type]
    limits: LimitsDocument = LimitsDocument()  # type: ignore[valid-type]
    loops: LoopsDocument = LoopsDocument()  # type: ignore[valid-type]
    primitives: dict[Tool, dict[str, Any]] = {}
    primitives_from: list[Module] = Field([], max_length=100)
    secrets: dict[SecretName, list[SecretHost]] = {}
    notify: Notify = None  # type: ignore[assignment]
    activate: Literal["read-only inside the workspace"] | None = None
    records: RecordsDocument = RecordsDocument()  # type: ignore[call-arg]
    queues: dict[Annotated[str, AfterValidator(_queue)], QueueDocument] = {}
    #: Validated by `sign_in_of`.
    sign_in: dict[str, Any] = None  # type: ignore[assignment]


class Mistaken(Exception):
    """The document has mistakes. The text lists the first ones."""


def read_document(
    document: Mapping[Any, Any], marks: Marks | None = None, primitives: Collection[str] = ()
) -> RulesDocument:
    """Validate a document and return its rules.

    `primitives` are the names of the primitives. A rule on a name that is similar to one of them is a mistake.

    Raises:
        Mistaken: the document has mistakes.
    """
    read = validated(RulesDocument, dict(document), marks or {})
    if wrong := list(_misspelt(read, marks or {}, primitives)):
        raise Mistaken("; ".join(wrong[:_MAX_MISTAKES]))
    return read


def sign_in_of(read: RulesDocument, marks: Marks | None) -> SignIn | None:
    """The rules about people who sign in; None if there are none. Raises Mistaken."""
    if read.sign_in is None:
        return None
    # Few files have this part, so the others don't pay for its models.
    from albert_tools.engine.policy.sign_in_document import SignInPart

    return validated(SignInPart, {"sign_in": read.sign_in}, marks or {}).rules()


def validated(model: type[_Model], value: Any, marks: Marks, names: Sequence[str] = ()) -> _Model:
    """A value of YAML as a model. `names` are its keys, if they are not those of the rules.

    Raises:
        Mistaken: it has mistakes.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Mistaken("; ".join(_mistake(e, marks, names or _NAMES) for e in error.errors()[:_MAX_MISTAKES])) from None


def numbers_of(document: BaseModel) -> dict[str, Any]:
    """The limits that the document contains."""
    return document.model_dump(exclude_unset=True)


def section_of(document: BaseModel) -> Section:
    """The rules of a section that the document contains. Of a whole file, these are the rules at the top.

    Lists are sorted, because their order has no meaning and must not change the revision.
    """
    rules = document.model_dump(exclude_unset=True, include={key.name for key in KEYS})
    return {name: tuple(sorted(set(value))) if isinstance(value, list) else value for name, value in rules.items()}


_PARTS = (RulesDocument, LimitsDocument, LoopsDocument, SectionDocument, RecordsDocument, QueueDocument)
_NAMES = [*(name for part in _PARTS for name in part.model_fields), *FLOW_KEYS]


def _misspelt(read: RulesDocument, marks: Marks, primitives: Collection[str]) -> Iterator[str]:
    """Find the rules on misspelled primitives. Such a rule would not restrict the primitive that its author meant.

    Other unknown names may belong to saved tools, or to tools that don't exist yet. Which tools are saved must not matter here:
    otherwise an agent could put a misspelled rule in force, or out of force, by saving or removing a tool.
    """
    named: list[tuple[tuple[str, int | str], str]] = [(("deny", i), name) for i, name in enumerate(read.deny)]
    named += [((group, name), name) for group in ("tools", "primitives") for name in getattr(read, group)]
    for place, name in named:
        near = None if name in primitives or name in read.other_tools else misspelt(name, primitives)
        if near is not None:
            hint = f"if the tool {name!r} exists or will exist, write `other_tools: [{name}]` too"
            yield f"{_where(place, marks)}{place[0]}.{name}: did you mean {near!r}? ({hint})"


def _where(place: tuple[Any, ...], marks: Marks) -> str:
    at = next((marks[place[:n]] for n in range(len(place), 0, -1) if place[:n] in marks), None)
    return f"line {at[0]}, column {at[1]}: " if at else ""


def _mistake(error: Any, marks: Marks, names: Sequence[str]) -> str:
    """Convert an error of pydantic to a sentence with its position."""
    # For a wrong key of a mapping, pydantic appends "[key]" to the place.
    place = tuple(part for part in error["loc"] if part != "[key]")
    where = _where(place, marks)
    name = ".".join(str(part) for part in place) or "the document"
    if error["type"] == "extra_forbidden":
        if name in SectionDocument.model_fields:
            return f"{where}{name}: write it in the section of a tool or a category: `tools: {{bash: {{{name}: …}}}}`"
        key = str(place[-1])
        return f"{where}{name}: there is no such key{' here' if key in names else did_you_mean(key, names)}"
    message = error["msg"].removeprefix("Value error, ")
    if error["input"] is None:
        message = "it has no value; write one, or remove the key"
    elif error["type"] == "list_type" and isinstance(error["input"], str):
        message = f"expected a list; write `{place[-1]}: [{error['input']}]`"
    elif error["type"] == "literal_error":
        message += did_you_mean(str(error["input"]), re.findall(r"'(\w+)'", error["ctx"]["expected"]))
    return f"{where}{name}: {message[:1].lower()}{message[1:]}"

"""What the owner allows: `governance.yaml`.

::

    allow: [bash]                  # gated primitives that may be called; none are unless they stand here
    deny: [write_file]             # never, whatever else is said
    limits: {own_seconds: 10}      # any of the run's limits, lower than the built-in ones
    primitives:
      bash: {}                     # settings that a primitive reads

The user's file lies in the configuration folder; a project may carry one too, ``.albert/governance.yaml``, which can only
tighten: what it allows the user must allow as well, and its settings of primitives are not taken. A file that can't be read or
understood means that governance is unavailable, and then everything is denied: a misspelt rule must not silently allow.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.naming import did_you_mean

#: A governance file is a page; a megabyte of it is an attack or a mistake.
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Governance:
    """The rules in force. `allow` names gated primitives, `deny` any tool; `limits` bound every run."""

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    limits: RunLimits = field(default_factory=RunLimits)
    primitives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Whether it speaks of gated primitives at all; one that doesn't leaves them as they are when it tightens another.
    says_allow: bool = True

    def tightened(self, other: Governance) -> Governance:
        """Both together: allowed is what both allow, denied what either denies, limits the lower ones.

        Settings of primitives are this one's.
        """
        lower = {f: min(getattr(self.limits, f), getattr(other.limits, f)) for f in RunLimits._fields}
        return replace(
            self,
            allow=self.allow & other.allow if other.says_allow else self.allow,
            deny=self.deny | other.deny,
            limits=self.limits._replace(**lower),
        )


def load_governance(user: Path | Governance, project: Path | None) -> Governance:
    """The rules of the user (or of an application) and, tightening them, those of the project; a missing file adds nothing.

    Raises:
        Failure: `governance_unavailable`, with the file and what is wrong in it.
    """
    rules = user if isinstance(user, Governance) else _load(user) or Governance()
    own = _load(project) if project is not None else None
    return rules if own is None else rules.tightened(own)


def _load(path: Path) -> Governance | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else f"it can't be opened: {error.strerror}"
        raise _unavailable(path, why) from None
    try:
        # What is in a pipe is gone once it was read, and a second reader would see no rules.
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _unavailable(path, "it is not a file")
        data = b""
        while len(data) <= MAX_BYTES and (more := os.read(handle, MAX_BYTES + 1)):
            data += more
    except OSError as error:
        raise _unavailable(path, f"it can't be read: {error.strerror}") from None
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise _unavailable(path, f"it is larger than {MAX_BYTES:,} bytes")
    document = _parse(data, path)
    return read_governance({} if document is None else document, path)


def _parse(data: bytes, path: Path) -> Any:
    """The document, as YAML has it.

    Raises:
        Failure: `governance_unavailable`.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """As the safe one, but the same rule twice is a mistake: the second must not undo the first."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for i, key in enumerate(keys):
                if key in keys[:i]:
                    mark = node.value[i][0].start_mark
                    raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands there twice", mark)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(data, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}: " if mark is not None else ""
        raise _unavailable(path, f"{place}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        # A date that there isn't is a ValueError; so is what isn't UTF-8.
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise _unavailable(path, f"it is not YAML: {why}") from None


def read_governance(document: Any, path: Path | str = "governance.yaml") -> Governance:
    """The rules that a document, read from YAML or given in Python, spells; every mistake in it is refused.

    Raises:
        Failure: `governance_unavailable`.
    """
    from pydantic import BaseModel, ConfigDict, Field, ValidationError

    class Limits(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        own_seconds: float | None = Field(None, gt=0)
        run_seconds: float | None = Field(None, gt=0)
        call_seconds: float | None = Field(None, gt=0)
        cpu_seconds: int | None = Field(None, gt=0)
        memory_bytes: int | None = Field(None, ge=16 * 1024 * 1024)
        result_bytes: int | None = Field(None, gt=0)
        log_bytes: int | None = Field(None, gt=0)
        calls: int | None = Field(None, ge=0)
        recursion: int | None = Field(None, ge=1)

    class Document(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        allow: list[str] = []
        deny: list[str] = []
        limits: Limits = Limits()  # type: ignore[call-arg]
        primitives: dict[str, dict[str, Any]] = {}

    if not isinstance(document, Mapping):
        raise _unavailable(path, "it is not a mapping; rules are written as `allow: [bash]`")
    try:
        read = Document.model_validate(dict(document))
    except ValidationError as error:
        known = [*Document.model_fields, *Limits.model_fields]
        raise _unavailable(path, "; ".join(_said(e, known) for e in error.errors()[:5])) from None
    base = RunLimits()
    lower = {
        f: min(getattr(base, f), value) for f in RunLimits._fields if (value := getattr(read.limits, f)) is not None
    }
    return Governance(
        allow=frozenset(read.allow),
        deny=frozenset(read.deny),
        limits=base._replace(**lower),
        primitives=read.primitives,
        says_allow="allow" in read.model_fields_set,
    )


def _said(error: Any, known: list[str]) -> str:
    """One finding of pydantic's, with its place."""
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{place}: there is no such rule{did_you_mean(str(error['loc'][-1]), known)}"
    if error["type"] == "list_type" and isinstance(error["input"], str):
        return f"{place}: expected a list; write `{place}: [{error['input']}]`"
    return f"{place}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _unavailable(path: Path | str, why: str) -> Failure:
    return Failure(
        "governance_unavailable",
        f"the rules of {path if isinstance(path, str) else repr(str(path))} can't be used: {why}",
        hint="mend it; until then everything is denied",
    )

"""What the owner allows: `governance.yaml`.

::

    allow: [bash]                  # gated primitives that may be called; none are unless they stand here
    deny: [write_file]             # never, whatever else is said
    limits: {own_seconds: 10}      # any of the run's limits, lower than the built-in ones
    primitives:
      bash: {}                     # settings that a primitive reads

The user's file lies in the configuration folder; a project may carry one too, ``.albert/governance.yaml``, which can only
tighten. A file that can't be read or understood means that governance is unavailable, and then everything is denied: a
misspelt rule must not silently allow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits

#: A governance file is a page; a megabyte of it is an attack or a mistake.
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Governance:
    """The rules in force. `allow` names gated primitives, `deny` any tool; `limits` bound every run."""

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    limits: RunLimits = field(default_factory=RunLimits)
    primitives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def tightened(self, other: Governance) -> Governance:
        """Both together: allowed is what both allow, denied what either denies, limits the lower ones."""
        lower = {f: min(getattr(self.limits, f), getattr(other.limits, f)) for f in RunLimits._fields}
        return replace(
            self,
            allow=self.allow & other.allow,
            deny=self.deny | other.deny,
            limits=self.limits._replace(**lower),
        )


def load_governance(user: Path, project: Path | None) -> Governance:
    """The rules of the user's file and, tightened by, the project's; a file that isn't there adds nothing.

    Raises:
        Failure: `governance_unavailable`, with the file and what is wrong in it.
    """
    rules = _load(user) or Governance()
    if project is not None:
        own = _load(project)
        if own is not None:
            # A project that doesn't speak of gated primitives leaves them as the user has them.
            rules = rules.tightened(own if own.allow else replace(own, allow=rules.allow))
    return rules


def _load(path: Path) -> Governance | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unavailable(path, f"it can't be opened: {error.strerror}") from error
    try:
        with os.fdopen(handle, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unavailable(path, f"it can't be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise _unavailable(path, f"it is larger than {MAX_BYTES:,} bytes")
    import yaml

    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _unavailable(path, f"it is not YAML: {str(error).splitlines()[0]}") from error
    return read_governance(document if document is not None else {}, path)


def read_governance(document: Any, path: Path = Path("governance.yaml")) -> Governance:
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

    try:
        read = Document.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(p) for p in first["loc"])
        raise _unavailable(path, f"{place + ': ' if place else ''}{first['msg']}") from error
    base = RunLimits()
    lower = {
        f: min(getattr(base, f), value) for f in RunLimits._fields if (value := getattr(read.limits, f)) is not None
    }
    return Governance(frozenset(read.allow), frozenset(read.deny), base._replace(**lower), read.primitives)


def _unavailable(path: Path, why: str) -> Failure:
    return Failure(
        "governance_unavailable",
        f"the rules in {str(path)!r} can't be used: {why}",
        hint="mend the file; until then everything is denied",
    )

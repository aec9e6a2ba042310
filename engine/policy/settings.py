"""Reads `governance.yaml`, the owner's rules.

::

    allow: [bash]                  # tools that may be called without a question; gated tools are off unless listed
    deny: [write_file]             # tools that are always denied
    ask_flow: [{from: {source: [web]}, to: destination}]  # flows that need approval; see `flow_rules`
    forbidden_paths: [secrets]     # paths and hosts that no tool may use
    forbidden_hosts: [ads.example.org]
    rate_limit_per_hour: 1000      # calls of all tools together
    limits: {own_seconds: 10}      # limits of every run
    tools:                         # rules by tool, or by category under `categories`
      write_file: {forbidden_paths: [secrets], requires_approval_in_modes: [NORMAL]}
    primitives:
      bash: {memory_mb: 512}       # settings of primitives
    primitives_from: [shop.tools]  # modules whose primitives become tools; or one function, `shop.tools:send_invoice`
    secrets:
      GITHUB_TOKEN: [api.github.com]  # the hosts that a secret may be sent to
    loops: {identical_failures: 5}  # limits of an agent that repeats its requests
    records: {keep_days: 90}       # what `albert ledger trim` keeps; and what is stored for a session
    queues:
      nightly: {at_once: 2}        # queues of runs that workers execute; the queue `default` exists always
    activate: read-only inside the workspace  # versions that need no review
    notify: [/usr/bin/notify-send, "{title}", "{text}"]  # the command that is run when a question or a version waits
    sign_in: {issuer: …, leases: […]}  # who gets a session with an account of the team; see `sign_in`

The owner's file is in the configuration folder. A project may have a file too, ``.albert/governance.yaml``. It can only make the
rules stricter: a tool is allowed only if both files allow it, the project's settings and secrets are ignored, and it can't name
code. If a file can't be read or is invalid, every call is denied, because a misspelt rule must not silently allow a call.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from albert_tools.engine.model.definition import Category
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import HomeFile
from albert_tools.engine.model.limits import MOST_OF_LOOPS, MOST_OF_RUN, LoopLimits, MiB, RunLimits

if TYPE_CHECKING:
    from albert_tools.engine.policy.document import Marks
    from albert_tools.engine.policy.flow_rules import FlowRule
    from albert_tools.engine.policy.layers import Layer, Section
    from albert_tools.engine.policy.sign_in import SignIn

#: The most bytes of a file. Rules usually fit on a page; a larger file is a mistake or an attack.
MAX_BYTES = 256 * 1024

_Limits = tuple[RunLimits, LoopLimits]
#: The limits that a file of rules need not state. What a project's file does not state, it does not lower.
_DEFAULTS: _Limits = (RunLimits(), LoopLimits())
_NO_LIMITS: _Limits = (MOST_OF_RUN, MOST_OF_LOOPS)

_CODE = "it names code to run"

#: The most keys and items of a file whose line and column are stored for messages.
MAX_MARKS = 10_000


#: The queue that needs no rules.
DEFAULT_QUEUE = "default"


class QueueRules(Struct, frozen=True):
    """The limits of a queue, over all workers: the runs at the same time, those that begin within an hour (None: no limit), and the
    git repositories that its runs may work in (patterns of URLs)."""

    at_once: int | None = None
    per_hour: int | None = None
    repositories: tuple[str, ...] = ()


class Governance(Struct, frozen=True, dict=True):
    """The owner's rules, together with a project's rules. `allow` and `deny` list tools. `limits` apply to every run."""

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    limits: RunLimits = field(default_factory=RunLimits)
    loops: LoopLimits = field(default_factory=LoopLimits)
    primitives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Modules of the application with primitives, ``package.module`` or ``package.module:name``. Imported when a service starts.
    primitives_from: tuple[str, ...] = ()
    #: The hosts that each secret may be sent to. Only the owner's file can set them.
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Whether the file has the key `allow`. If a project's file has no such key, the owner decides about gated tools.
    says_allow: bool = True
    tools: Mapping[str, Section] = field(default_factory=dict)
    categories: Mapping[Category, Section] = field(default_factory=dict)
    #: The rules at the top of the file, which apply to every tool.
    everywhere: Section = field(default_factory=dict)
    #: The rules about flows. None: the file has no `ask_flow`, so the shipped rules apply.
    deny_flow: tuple[FlowRule, ...] = ()
    ask_flow: tuple[FlowRule, ...] | None = None
    #: The patterns of files with private data. None: the shipped patterns apply.
    private_paths: tuple[str, ...] | None = None
    #: Names of tools that are not primitives, although they are similar to the names of primitives.
    other_tools: frozenset[str] = frozenset()
    #: The program and its arguments that are run when a question waits for an answer. Only the owner's file can set it.
    notify: tuple[str, ...] = ()
    #: Whether versions that only read files in the workspace become active without a review. Only the owner's file can set it.
    activates_harmless: bool = False
    #: The queues of runs that workers execute. Only the owner's file can set them.
    queues: Mapping[str, QueueRules] = field(default_factory=lambda: {DEFAULT_QUEUE: QueueRules()})
    #: Who may sign in with an account of the team. Only the owner's file can set it.
    sign_in: SignIn | None = None
    #: The project's rules, which can only restrict these rules.
    project: Governance | None = None
    #: Days that `albert ledger trim` retains entries. Not part of the revision, because no decision depends on it.
    keep_days: float | None = None
    #: The most bytes that the service stores for a session and those within it. Not part of the revision, as limits of a lease.
    session_bytes: float = 256 * MiB

    @cached_property
    def revision(self) -> str:
        """A hash of the rules in force, including the shipped rules, in 64 hex digits. It is equal in all processes."""
        from albert_tools.engine.policy.shipped import SHIPPED_RULES

        text = json.dumps([_plain(self), _plain(SHIPPED_RULES)], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def tightened(self, other: Governance) -> Governance:
        """Combine these rules with a project's rules. The stricter decisions and the lower limits apply; its settings and secrets
        don't."""
        return replace(
            self, limits=_lower(self.limits, other.limits), loops=_lower(self.loops, other.loops), project=other
        )

    @property
    def allowed(self) -> frozenset[str]:
        """The tools that both files list under `allow`. If the project's file has no such key, the tools in the owner's file."""
        return self.allow & self.project.allow if self.project is not None and self.project.says_allow else self.allow

    @property
    def denied(self) -> frozenset[str]:
        """The tools that one of the files denies."""
        return self.deny | self.project.deny if self.project is not None else self.deny

    def layers(self) -> tuple[Layer, ...]:
        """The rules of each file, for `Policy`."""
        from albert_tools.engine.policy.flow_rules import SHIPPED_FLOWS, SHIPPED_PRIVATE_PATHS
        from albert_tools.engine.policy.layers import Layer

        def layer(g: Governance, owner: bool, asked: tuple[FlowRule, ...], private: tuple[str, ...]) -> Layer:
            flows = (*g.deny_flow, *(asked if g.ask_flow is None else g.ask_flow))
            if not owner:
                flows = tuple(replace(rule, place=f"project.{rule.place}") for rule in flows)
            private = private if g.private_paths is None else g.private_paths
            return Layer(g.tools, g.categories, g.allow, g.deny, owner, g.says_allow, g.everywhere, flows, private)

        own = layer(self, True, SHIPPED_FLOWS, SHIPPED_PRIVATE_PATHS)
        own = replace(own, secrets=self.secrets, primitives=self.primitives)
        return (own,) if self.project is None else (own, layer(self.project, False, (), ()))


def _lower(own: Any, other: Any) -> Any:
    """The lower limits of two named tuples."""
    return type(own)(*map(min, own, other))


#: The fields on which no decision of the rules depends.
_OF_RECORDS = ("keep_days", "session_bytes", "queues")


def _plain(value: Any) -> Any:
    """Convert a value to JSON that is equal in every process: sets and keys are sorted, other types are shown by `repr`."""
    if isinstance(value, Governance):
        return {name: _plain(getattr(value, name)) for name in Governance.__struct_fields__ if name not in _OF_RECORDS}
    if isinstance(value, Mapping):
        return sorted([repr(key), _plain(item)] for key, item in value.items())
    if isinstance(value, (set, frozenset)):
        return sorted(repr(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (str, bool, int)) else repr(value)


def load_governance(
    user: Path | HomeFile | Governance, project: Path | None, primitives: Collection[str] = ()
) -> Governance:
    """The rules of the owner (or of an application), combined with the project's rules. A missing file contains no rules.

    Rules on names that look like misspelled names of `primitives` are mistakes.

    Raises:
        Failure: `governance_unavailable`, with the file and its mistakes.
    """
    rules = user if isinstance(user, Governance) else _load(user, primitives) or Governance()
    own = _load(project, primitives, _NO_LIMITS) if project is not None else None
    # Otherwise, everybody who can write in a project could run code outside of the sandbox, or let people in.
    for key, why in (("primitives_from", _CODE), ("notify", _CODE), ("sign_in", "it opens sessions")):
        if project is not None and own is not None and getattr(own, key):
            raise _unavailable(project, f"only the owner's file can have {key}, because {why}")
    if project is not None and own is not None and own.activates_harmless:
        raise _unavailable(project, "only the owner's file can have activate, because only the owner approves versions")
    return rules if own is None else rules.tightened(own)


def _load(file: Path | HomeFile, primitives: Collection[str], unstated: _Limits = _DEFAULTS) -> Governance | None:
    path = file if isinstance(file, Path) else str(file)
    try:
        if isinstance(file, Path):
            document, marks = read_yaml(file)
        elif (data := file.read()) is not None:
            document, marks = parse_yaml(data)
        else:
            return None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as why:
        raise _unavailable(path, str(why)) from None
    return read_governance({} if document is None else document, path, marks, primitives, unstated)


def read_yaml(path: Path) -> tuple[Any, Marks]:
    """The YAML document in a file (None if it is empty), and the positions of its parts.

    Raises:
        FileNotFoundError, NotADirectoryError: there is no such file.
        ValueError: the file can't be read or is not YAML, with the reason.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else f"it can't be opened: {error.strerror}"
        raise ValueError(why) from None
    try:
        # A pipe gives its content to one reader only. The next reader would find no rules.
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a file")
        data = b""
        while len(data) <= MAX_BYTES and (more := os.read(handle, MAX_BYTES + 1)):
            data += more
    except OSError as error:
        raise ValueError(f"it can't be read: {error.strerror}") from None
    finally:
        os.close(handle)
    return parse_yaml(data)


def parse_yaml(data: bytes) -> tuple[Any, Marks]:
    """As `read_yaml`, for the content of a file. Raises ValueError."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader of YAML. It refuses a repeated key; otherwise, the second value would replace the first."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for i, key in enumerate(keys):
                if key in keys[:i]:
                    mark = node.value[i][0].start_mark
                    raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is repeated", mark)
            return super().construct_mapping(node, deep)

    try:
        loader = Loader(data)
        try:
            node = loader.get_single_node()
            return (None, {}) if node is None else (loader.construct_document(node), _marks(node))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise ValueError(f"{place}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        # Includes impossible dates and text that isn't UTF-8; both are a ValueError.
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"it is not YAML: {why}") from None


def _marks(root: Any) -> Marks:
    """The position of each key and item, at most `MAX_MARKS`, because an alias can multiply them."""
    marks: dict[tuple[Any, ...], tuple[int, int]] = {}
    pending: list[tuple[tuple[Any, ...], Any]] = [((), root)]
    while pending and len(marks) < MAX_MARKS:
        place, node = pending.pop()
        if node.id == "mapping":
            parts = [(key.value, key, value) for key, value in node.value if key.id == "scalar"]
        else:
            parts = [(i, item, item) for i, item in enumerate(node.value)] if node.id == "sequence" else []
        for name, at, value in parts:
            marks[(*place, name)] = (at.start_mark.line + 1, at.start_mark.column + 1)
            pending.append(((*place, name), value))
    return marks


def read_governance(
    document: Any,
    path: Path | str = "governance.yaml",
    marks: Marks | None = None,
    primitives: Collection[str] = (),
    unstated: _Limits = _DEFAULTS,
) -> Governance:
    """The rules in a document from YAML or Python. `marks` are the positions of its parts in the file, and `unstated` the limits
    that it need not state.

    Rules on names that look like misspelled names of `primitives` are mistakes.

    Raises:
        Failure: `governance_unavailable`: the document has mistakes.
    """
    from albert_tools.engine.policy.document import Mistaken, numbers_of, read_document, section_of, sign_in_of
    from albert_tools.engine.policy.flow_document import rules_of

    if not isinstance(document, Mapping):
        raise _unavailable(path, "it is not a mapping; rules are written as `allow: [bash]`")
    try:
        read = read_document(document, marks, primitives)
        sign_in = sign_in_of(read, marks)
    except Mistaken as mistaken:
        raise _unavailable(path, str(mistaken)) from None
    return Governance(
        allow=frozenset(read.allow),
        deny=frozenset(read.deny),
        limits=unstated[0]._replace(**numbers_of(read.limits)),
        loops=unstated[1]._replace(**numbers_of(read.loops)),
        primitives=read.primitives,
        primitives_from=tuple(read.primitives_from),
        secrets={name: tuple(hosts) for name, hosts in read.secrets.items()},
        keep_days=read.records.keep_days,
        session_bytes=read.records.session_mb * MiB,
        says_allow="allow" in read.model_fields_set,
        tools={name: section_of(section) for name, section in read.tools.items()},
        categories={name: section_of(section) for name, section in read.categories.items()},
        everywhere=section_of(read),
        deny_flow=rules_of(read.deny_flow, "deny"),
        ask_flow=None if read.ask_flow is None else rules_of(read.ask_flow, "ask"),
        private_paths=None if read.private_paths is None else tuple(read.private_paths),
        notify=tuple(read.notify or ()),
        activates_harmless=read.activate is not None,
        other_tools=frozenset(read.other_tools),
        queues={DEFAULT_QUEUE: QueueRules()}
        | {name: QueueRules(q.at_once, q.per_hour, tuple(q.repositories)) for name, q in read.queues.items()},
        sign_in=sign_in,
    )


def _unavailable(path: Path | str, why: str) -> Failure:
    return Failure(
        "governance_unavailable",
        f"the rules of {path if isinstance(path, str) else repr(str(path))} can't be used: {why}",
        hint="correct it; until then every call is denied",
    )

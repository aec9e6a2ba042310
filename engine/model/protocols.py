"""The protocols by which the engine knows its stores and what primitives get: implemented by `store` and the engine itself."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from albert_tools.engine.model.definition import Json, ToolDefinition, ToolVersion
from albert_tools.engine.model.record_types import Cursor, Entry, LoadedRun, Mark, Matches, RunSummary

Kept = TypeVar("Kept")


class Catalog(Protocol):
    """The tools a program may call, as the checker sees them."""

    def get(self, name: str) -> ToolDefinition | None:
        """The definition of the tool that a call of `name` reaches now, or None."""

    def names(self) -> Iterable[str]:
        """Every name that can be called, in order."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A line of a listing. `created` is ISO 8601. `problem` says why an entry is damaged; the rest is empty then."""

    name: str
    version: str = ""
    description: str = ""
    created: str = ""
    versions: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """A line of a tool's history: a version's hash, when it was saved (ISO 8601), whether calls reach it now."""

    version: str
    created: str
    current: bool = False


class ToolStore(Protocol):
    """Saved tools. Any thread and any number of processes may call every method."""

    def save(self, version: ToolVersion) -> bool:
        """Make `version` the newest of its name, durably. False if it already was the newest.

        Raises:
            Failure: `io_error` if it can't be written, `damaged` if the entry on disk can't be extended,
                `invalid_arguments` if it is not a proper version.
        """

    def load(self, name: str, version: str | None = None) -> ToolVersion:
        """The newest version, or the one that a hash or a unique prefix of it names, also of a deleted tool.

        Raises:
            Failure: `unknown_tool`, `damaged`, or `io_error` if the system refuses to read.
        """

    def list(self) -> list[Summary]:
        """The tools that are not deleted, by name; damaged entries have a `problem`."""

    def history(self, name: str, limit: int) -> tuple[builtins.list[Saved], int]:
        """At most `limit` versions of a tool, deleted or not, newest first; and how many there are."""

    def search(self, text: str, limit: int = 20) -> builtins.list[Summary]:
        """Tools whose name, description or source contain the words of `text`, best first."""

    def delete(self, name: str) -> None:
        """Remove the tool from the list; its history stays.

        Raises:
            Failure: `unknown_tool`.
        """


class Fold(Protocol):
    """A state computed from the log's entries. The same entries in the log's order always give the same state.

    `load` replaces the whole state by what `dump` returned earlier; the dump of a new fold resets it.
    """

    name: str
    """Names its snapshot: a-z, 0-9, '-' and '_'."""
    version: int
    """A snapshot of another version is not used."""
    kinds: frozenset[str]
    """The kinds of entries that it gets."""

    def apply(self, entry: Entry) -> None:
        """Apply one entry."""

    def dump(self) -> Json:
        """The state as JSON."""

    def load(self, state: Json) -> None:
        """Replace the state."""


class Following(Protocol):
    """A fold that follows the log. Any thread may look, but no other may read the fold at that time."""

    def look(self) -> None:
        """Bring the fold up to date with everything any process appended before this call.

        Within one look entries come in order of time, segment and number. A later look may bring an entry of another process
        with a slightly earlier time, unless all of them look and append inside `exclusively()`.

        Raises:
            Failure: `damaged`, `io_error`.
        """


class Ledger(Protocol):
    """The append-only log. Any thread may call every method; any number of processes write to it."""

    def append(self, kind: str, data: Mapping[str, Any]) -> Mark:
        """Write an entry. On return it survives this process. The caller redacts secrets.

        Raises:
            Failure: `invalid_arguments`, `not_json`, `too_large`; `io_error`, and then the caller must not act on it.
        """

    def durable(self, mark: Mark) -> None:
        """Wait until everything up to `mark` survives the machine.

        Raises:
            Failure: `io_error`.
        """

    async def adurable(self, mark: Mark) -> None:
        """As `durable`, without blocking the event loop."""

    def exclusively(self) -> AbstractContextManager[None]:
        """A section to read, decide and append as one step: one thread of one process of this home at a time.

        The code inside takes microseconds: it never awaits, makes nothing durable, and does not enter again.

        Raises:
            Failure: on entering, `io_error`; retryable if others stay inside for too long.
            RuntimeError: on entering, if this thread is inside already.
        """

    def follow(self, fold: Fold) -> Following:
        """Let `fold`, which must be new, follow the log. Reads nothing before the first look."""

    def alive(self, segment: str) -> bool:
        """Whether the process that writes `segment` still lives and has not closed its log.

        Raises:
            Failure: `invalid_arguments` if this is no segment's id; `io_error`.
        """

    def entries(self, kinds: Collection[str] | None = None, since: datetime | None = None) -> Iterator[Entry]:
        """All entries of all processes, oldest first; `kinds` and `since` (inclusive) select.

        Raises:
            Failure: `damaged`, `io_error`.
        """

    def changes(self, cursor: Cursor, kinds: Collection[str] | None = None) -> tuple[list[Entry], Cursor]:
        """The entries that any process appended since `cursor`, and the cursor after them.

        Raises:
            Failure: `damaged`, `io_error`.
        """


class Journal(Protocol):
    """The steps of one run. One process holds it at a time."""

    id: str
    header: dict[str, Json]
    torn: bool
    """Whether a crash left an incomplete entry at the end, which was cut off."""

    def entries(self) -> list[dict[str, Json]]:
        """Its entries in order, verified. Raises Failure `damaged`, `io_error`."""

    def append(self, entry: Mapping[str, Json]) -> None:
        """Append to the buffer: a crash may lose it, but never reorders it.

        Raises:
            Failure: `not_json`, `too_large`, and nothing is appended; `io_error`, and no more can be appended.
        """

    def flush(self) -> None:
        """Make everything appended so far survive this process. Raises Failure `io_error`; then no more can be appended."""

    async def sync(self) -> None:
        """Make everything appended so far survive the machine. Raises Failure `io_error`; then no more can be appended."""

    def close(self) -> None:
        """Flush and release it for other processes. Raises Failure `io_error`; it is released even then."""


class RunStore(Protocol):
    """The journals of a home's runs. A run's id is sixteen hex digits. Any thread of any process may call every method."""

    def create(self, run_id: str, header: Mapping[str, Json]) -> Journal:
        """Create a journal. Sync what must survive the machine.

        Raises:
            Failure: `invalid_arguments`, `not_json`, `too_large`, `exists`, `io_error`.
        """

    def open(self, run_id: str) -> Journal:
        """Open a journal to continue it.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`; retryable if another process holds it.
        """

    def load(self, run_id: str) -> LoadedRun:
        """Read a journal by its id or a unique prefix, also while another process holds it. Raises as `open`."""

    def list(self, limit: int) -> builtins.list[RunSummary]:
        """At most `limit` runs, newest first. Raises Failure `io_error`."""

    def cancel(self, run_id: str) -> None:
        """Ask the process that runs it to stop; irrevocable. Raises Failure `not_found`, `io_error`."""

    def cancelled(self, run_id: str) -> bool:
        """Whether a cancel was requested; cheap for a run that this process holds."""

    def sweep(self, older_than_seconds: float, keep: Callable[[str], bool]) -> int:
        """Delete the journals that no process holds, that `keep` does not name and that are older than this; returns how many.

        The age counts from the last entry. `keep` gets each id and must return True for runs that are not finished.

        Raises:
            Failure: `io_error`.
        """


class ContentStore(Protocol):
    """Values stored by the hash of their content. Any thread of any number of processes may call every method."""

    def put(self, content: bytes) -> str:
        """Store `content` durably; returns its reference, ``b3:<64 hex digits>``.

        Raises:
            Failure: `io_error`.
        """

    def get(self, ref: str) -> bytes:
        """The value, verified.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`.
        """

    def slice(self, ref: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on, verified. Raises as `get`."""

    def matching(self, ref: str, pattern: str, offset: int, limit: int) -> Matches:
        """The lines that match `pattern` (RE2's syntax) and begin at or after `offset`.

        Stops when they have `limit` bytes together, after at least one line. Takes linear time. Raises as `get`.
        """

    def size(self, ref: str) -> int:
        """The value's size in bytes. Raises as `get`."""

    def renew(self, ref: str) -> int:
        """Verify a value and reset its age; returns its size in bytes. Raises as `get`."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A value published under an id: `content` is its reference, `created` is ISO 8601, UTC.

    `metadata` are entries ``name=value``.
    """

    id: str
    content: str
    size_bytes: int
    category: str
    metadata: tuple[str, ...]
    created: str


class ArtifactStore(Protocol):
    """Artifacts by workspace and id. They never change. Any thread of any number of processes may call every method."""

    def publish(self, workspace: str, artifact: Artifact) -> tuple[Artifact, bool]:
        """Store an artifact durably. Returns the one stored under its id, and whether it is new; a repeat changes nothing.

        Raises:
            Failure: `exists`: the id has another artifact; `not_found`: its content is not stored; `damaged`, `io_error`.
        """

    def get(self, workspace: str, id: str) -> Artifact:
        """The artifact of an id, verified.

        Raises:
            Failure: `not_found`, `damaged`, `io_error`.
        """


#: Checks the installation, on request also with hostile programs that must be stopped, and returns a report as JSON.
Examine = Callable[[bool], Awaitable[Json]]


class NetworkRules(Protocol):
    """The network rules for one call (`engine.policy.outgoing.Outgoing`)."""

    @property
    def named(self) -> tuple[Any, ...]:
        """The private networks (of `ipaddress`) that may be reached."""

    def named_by(self, url: str) -> tuple[Any, ...]:
        """`named`, and the host that a URL of the owner's configuration names literally."""

    def demand(self, url: str, method: str, *, by_owner: bool = False) -> None:
        """Check a further URL; "ask" counts as a denial. Raises Failure `permission_denied`."""

    def demand_secret(self, name: str, url: str) -> None:
        """Check that a secret may be sent to a URL. Raises Failure `permission_denied`."""


class CallContext(Protocol):
    """What a primitive gets besides its arguments."""

    @property
    def workspace(self) -> Any:
        """The workspace (`engine.workspace.workspace.Workspace`)."""

    @property
    def remaining(self) -> float:
        """Seconds left for this call, within what its caller has left."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The configuration's section for this primitive."""

    @property
    def key(self) -> str:
        """An idempotency key for other services: unique to this call, and the same when a resumed run repeats it."""

    @property
    def contents(self) -> ContentStore | None:
        """The store of values that are too large to return; None without a store."""

    @property
    def artifacts(self) -> ArtifactStore | None:
        """The store of artifacts; None without a store."""

    @property
    def examine(self) -> Examine | None:
        """The check of the installation; None if there is none."""

    def left(self, unit: str) -> float:
        """How much of a unit (``model_tokens``, …) the caller's budget has left; infinity without a bound."""

    @property
    def network(self) -> NetworkRules | None:
        """The network rules; None without rules, and then nothing may be reached."""

    def keep(self, make: Callable[[], Kept]) -> Kept:
        """What `make` returns, made once for the whole service. If it has an `aclose`, the service awaits that when it closes."""

    def effect(self, kind: str, **facts: Any) -> None:
        """Record an effect that has happened: its kind, and facts such as path, size_bytes and sha256."""

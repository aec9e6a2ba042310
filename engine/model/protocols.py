"""What the engine knows of the parts it is given: small contracts, met by `builtins` and `store`."""

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
        """The definition that a call of `name` would reach now, or None."""

    def names(self) -> Iterable[str]:
        """Every name that can be called, in order."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A line of a listing. `created` is ISO 8601; `problem` says why an entry is damaged, then the rest is empty."""

    name: str
    version: str = ""
    description: str = ""
    created: str = ""
    versions: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """A line of a tool's history: a version's hash, when it was saved (ISO 8601), whether it is what a call reaches now."""

    version: str
    created: str
    current: bool = False


class ToolStore(Protocol):
    """Where saved tools live. Every method may be called from any thread and any number of processes."""

    def save(self, version: ToolVersion) -> bool:
        """Make `version` the newest of its name; durable on return. False when it already was the newest.

        Raises:
            Failure: `io_error` when it can't be written, `damaged` when the entry on disk is not ours to extend,
                `invalid_arguments` when it is not a proper version.
        """

    def load(self, name: str, version: str | None = None) -> ToolVersion:
        """The newest version, or the one asked for (deleted tools' versions included, when asked for by hash).

        The beginning of a hash will do where only one begins so.

        Raises:
            Failure: `unknown_tool`, `damaged`, or `io_error` when the system refuses to read.
        """

    def list(self) -> list[Summary]:
        """The tools that are not deleted, by name; damaged entries among them with their `problem`."""

    def history(self, name: str, limit: int) -> tuple[builtins.list[Saved], int]:
        """The versions of a tool, deleted or not, newest first, at most `limit`; and how many there are."""

    def search(self, text: str, limit: int = 20) -> builtins.list[Summary]:
        """Tools whose name, description or source speak of `text`, best first."""

    def delete(self, name: str) -> None:
        """Take the tool off the list; its history stays.

        Raises:
            Failure: `unknown_tool`.
        """


class Fold(Protocol):
    """A state made of the log's entries. Pure: the same entries in the log's order give the same state.

    `load` replaces the whole state by what `dump` gave at some time; a fresh fold's own dump makes it fresh again.
    """

    name: str
    """Of its snapshot: a-z, 0-9, '-' and '_'."""
    version: int
    """A snapshot of another version is not used."""
    kinds: frozenset[str]
    """The kinds of entry it is given."""

    def apply(self, entry: Entry) -> None:
        """Take an entry in."""

    def dump(self) -> Json:
        """The state as JSON."""

    def load(self, state: Json) -> None:
        """Be in this state."""


class Following(Protocol):
    """A fold that follows the log. From any thread; a look changes the fold, so no other may be reading it."""

    def look(self) -> None:
        """Bring the fold up to date with everything any process appended before this call.

        In order of time, segment and number within one look. A later look may bring an entry of another process with a
        slightly earlier time, but for entries that are all appended inside `exclusively()` by those who looked there first.

        Raises:
            Failure: `damaged`, `io_error`.
        """


class Ledger(Protocol):
    """The one append-only log. Every method may be called from any thread; any number of processes write to it."""

    def append(self, kind: str, data: Mapping[str, Any]) -> Mark:
        """Write an entry. On return it survives this process; secrets are the caller's to redact.

        Raises:
            Failure: `invalid_arguments`, `not_json`, `too_large`; `io_error`, and then nothing may be done on the
                strength of it.
        """

    def durable(self, mark: Mark) -> None:
        """Wait until everything up to `mark` survives the machine.

        Raises:
            Failure: `io_error`.
        """

    async def adurable(self, mark: Mark) -> None:
        """As `durable`, without blocking the event loop."""

    def exclusively(self) -> AbstractContextManager[None]:
        """To read, decide and append as one step: nobody else of this home, thread or process, is inside meanwhile.

        What is done inside takes microseconds: it never awaits, makes nothing durable, and enters no second time.

        Raises:
            Failure: on entering, `io_error`; retryable when others are inside for too long.
            RuntimeError: on entering, when this thread is inside already.
        """

    def follow(self, fold: Fold) -> Following:
        """Keep `fold`, which must be fresh, at what stands in the log. Reads nothing before the first look."""

    def alive(self, segment: str) -> bool:
        """Whether the process that appended an entry of `segment` still lives, and has not closed its log.

        Raises:
            Failure: `invalid_arguments` for what is no segment's id; `io_error`.
        """

    def entries(self, kinds: Collection[str] | None = None, since: datetime | None = None) -> Iterator[Entry]:
        """All entries of all processes, oldest first; `kinds` and `since` (inclusive) select.

        Raises:
            Failure: `damaged`, `io_error`.
        """

    def changes(self, cursor: Cursor, kinds: Collection[str] | None = None) -> tuple[list[Entry], Cursor]:
        """What any process has appended since `cursor`, and the cursor behind it.

        Raises:
            Failure: `damaged`, `io_error`.
        """


class Journal(Protocol):
    """The record of one run, held by one process at a time."""

    id: str
    header: dict[str, Json]
    torn: bool
    """Whether a crash had left half an entry at its end, which was cut off."""

    def entries(self) -> list[dict[str, Json]]:
        """What stands in it, in order, proved. Raises Failure `damaged`, `io_error`."""

    def append(self, entry: Mapping[str, Json]) -> None:
        """Buffered: may be lost in a crash, never reordered.

        Raises:
            Failure: `not_json`, `too_large`, and nothing is appended; `io_error`, and it takes no more.
        """

    def flush(self) -> None:
        """Everything appended so far survives this process. Raises Failure `io_error`, and it takes no more."""

    async def sync(self) -> None:
        """Everything appended so far survives the machine. Raises Failure `io_error`, and it takes no more."""

    def close(self) -> None:
        """Flush, and let another process have it. Raises Failure `io_error`; it is let go of all the same."""


class RunStore(Protocol):
    """The journals of a home's runs. A run's id is sixteen hex digits. From any thread and any number of processes."""

    def create(self, run_id: str, header: Mapping[str, Json]) -> Journal:
        """Begin one. What is to survive the machine must be synced.

        Raises:
            Failure: `invalid_arguments`, `not_json`, `too_large`, `exists`, `io_error`.
        """

    def open(self, run_id: str) -> Journal:
        """To go on with it.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`; retryable when another process holds it.
        """

    def load(self, run_id: str) -> LoadedRun:
        """To look at it; a unique beginning of an id will do. Raises as `open`, but for holding."""

    def list(self, limit: int) -> builtins.list[RunSummary]:
        """At most `limit`, newest first. Raises Failure `io_error`."""

    def cancel(self, run_id: str) -> None:
        """Ask whoever runs it to stop; that can't be taken back. Raises Failure `not_found`, `io_error`."""

    def cancelled(self, run_id: str) -> bool:
        """Whether somebody has asked for its end; cheap for a run that this process holds."""

    def sweep(self, older_than_seconds: float, keep: Callable[[str], bool]) -> int:
        """Delete the records of runs that nobody holds, `keep` doesn't name and nothing was added to for so long.

        `keep` is asked with each id and must name the runs that are not finished; returns how many were deleted.

        Raises:
            Failure: `io_error`.
        """


class ContentStore(Protocol):
    """Values under the hash of their content. Every method may be called from any thread and any number of processes."""

    def put(self, content: bytes) -> str:
        """Keep `content`, durably; its reference, ``b3:<64 hex digits>``.

        Raises:
            Failure: `io_error`.
        """

    def get(self, ref: str) -> bytes:
        """The value, proved.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`.
        """

    def slice(self, ref: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on, proved. Raises as `get`."""

    def matching(self, ref: str, pattern: str, offset: int, limit: int) -> Matches:
        """The lines that match `pattern` (RE2's syntax) and begin at or after `offset`.

        Until they have `limit` bytes together, but at least one; in linear time. Raises as `get`.
        """

    def size(self, ref: str) -> int:
        """The value's size in bytes. Raises as `get`."""

    def renew(self, ref: str) -> int:
        """Prove a value and make it as young as if it had just been put; its size in bytes. Raises as `get`."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What was published under an id: `content` is the reference of its content, `created` ISO 8601, UTC.

    `metadata` are entries ``name=value``.
    """

    id: str
    content: str
    size_bytes: int
    category: str
    metadata: tuple[str, ...]
    created: str


class ArtifactStore(Protocol):
    """What was published, by workspace and id; never changed. From any thread and any number of processes."""

    def publish(self, workspace: str, artifact: Artifact) -> tuple[Artifact, bool]:
        """Keep an artifact, durably. What stands under its id then, and whether it is new; the same again changes nothing.

        Raises:
            Failure: `exists`: another artifact stands there; `not_found`: its content isn't kept; `damaged`, `io_error`.
        """

    def get(self, workspace: str, id: str) -> Artifact:
        """The artifact of an id, proved.

        Raises:
            Failure: `not_found`, `damaged`, `io_error`.
        """


#: Looks the installation over (with hostile programs that must be stopped, if told so) and says what it found, as JSON.
Examine = Callable[[bool], Awaitable[Json]]


class NetworkRules(Protocol):
    """What the rules say of the network, to one call (`engine.policy.outgoing.Outgoing`)."""

    @property
    def named(self) -> tuple[Any, ...]:
        """The networks (of `ipaddress`) that may be reached though they aren't public."""

    def named_by(self, url: str) -> tuple[Any, ...]:
        """`named`, with what a URL of the owner's configuration literally names."""

    def demand(self, url: str, method: str, *, by_owner: bool = False) -> None:
        """Let a further URL pass; where the rules would ask, no. Raises Failure `permission_denied`."""

    def demand_secret(self, name: str, url: str) -> None:
        """Let a secret go to a URL. Raises Failure `permission_denied`."""


class CallContext(Protocol):
    """What a primitive is told besides its arguments.

    `remaining` is in seconds and already bounded by what the caller has left; `settings` is the configuration's
    section for this primitive.
    """

    @property
    def workspace(self) -> Any:
        """The contained workspace (`engine.workspace.find_workspace.Workspace`)."""

    @property
    def remaining(self) -> float:
        """Seconds left for this call."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """This primitive's configuration."""

    @property
    def key(self) -> str:
        """Names this call among all: the same when a run that was cut short makes it again, for services that know such keys."""

    @property
    def contents(self) -> ContentStore | None:
        """Where values too large to be handed over are kept; None where nothing is."""

    @property
    def artifacts(self) -> ArtifactStore | None:
        """Where what was published is kept; None where nothing is."""

    @property
    def examine(self) -> Examine | None:
        """What looks the installation over; None where there is none."""

    def left(self, unit: str) -> float:
        """How much of a unit (``model_tokens``, …) the caller's budget has left; infinity where it has no bound."""

    @property
    def network(self) -> NetworkRules | None:
        """What the rules say of the network; None where there are none, and then nothing may be reached."""

    def keep(self, make: Callable[[], Kept]) -> Kept:
        """What `make` makes, once for the whole service; its `aclose`, if it has one, is awaited when the service closes."""

    def effect(self, kind: str, **facts: Any) -> None:
        """Record an effect that has happened: its kind, and path, size_bytes, sha256 or whatever names it."""

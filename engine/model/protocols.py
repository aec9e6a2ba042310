"""The interfaces through which the engine uses its stores, and the context of primitives. `store` and the engine implement them."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from albert_tools.engine.model.definition import Json, ToolDefinition, ToolVersion
from albert_tools.engine.model.record_types import (
    ApprovalRow,
    DedupeKey,
    Entry,
    LoadedRun,
    Matches,
    QueuedRun,
    ReviewRow,
    RunSummary,
    Schedule,
    SessionRow,
    Swept,
    Worker,
)

Kept = TypeVar("Kept")


class Catalog(Protocol):
    """The tools that a program may call, as the checker sees them."""

    def get(self, name: str) -> ToolDefinition | None:
        """The definition of the tool that a call of `name` currently reaches, or None."""

    def names(self) -> Iterable[str]:
        """Every name that can be called, in order."""


class Summary(NamedTuple):
    """An entry of a list of tools. `created` is ISO 8601, and `author` is the id of the session that defined the version, empty for
    the owner. If an entry is damaged, only `name` and `problem` are set."""

    name: str
    version: str = ""
    description: str = ""
    created: str = ""
    versions: int = 0
    problem: str | None = None
    author: str = ""


class Saved(NamedTuple):
    """An entry of a tool's history: a version's hash, when it was saved (ISO 8601), whether calls currently use it, and the id of
    the session that defined it (empty for the owner)."""

    version: str
    created: str
    current: bool = False
    author: str = ""


class ToolStore(Protocol):
    """Saved tools. Every method may be called by any thread and by any number of processes."""

    def save(self, version: ToolVersion, over: str | None = None) -> bool:
        """Make `version` the newest version of its tool, durably. Returns False if it already was the newest version.

        If it was the newest version with another manifest, only its manifest is replaced.

        With `over`, this hash must still be that of the newest version. An empty text means that there must be no version.

        Raises:
            Failure: `io_error` if it can't be written, `damaged` if the stored file can't be extended, `invalid_arguments` if it is
                not a proper version, `exists` if `over` is not the newest version any more.
        """

    def load(self, name: str, version: str | None = None) -> ToolVersion:
        """The newest version; or the version with this hash or unique hash prefix. Versions of deleted tools can be loaded, too.

        Raises:
            Failure: `unknown_tool`, `damaged`, or `io_error` if the operating system refuses to read.
        """

    def has(self, name: str) -> bool:
        """Whether there is an entry of the tool. It may be deleted or damaged."""

    def renew(self, version: ToolVersion) -> None:
        """Replace the manifest of a stored version by that of `version`, durably. Nothing else changes.

        Raises:
            Failure: As `save`; `unknown_tool` if the version is not stored.
        """

    def list(self) -> list[Summary]:
        """The tools that are not deleted, by name. Damaged entries have a `problem`. The saves of all processes are included.

        Raises:
            Failure: `io_error` if they can't be read. `page`, `names`, `alike`, `callers` and `search` raise it, too.
        """

    def page(self, after: str, limit: int) -> builtins.list[Summary]:
        """At most `limit` tools that are not deleted and whose names follow `after`, by name."""

    def names(self) -> builtins.list[str]:
        """The names of the tools that are neither deleted nor damaged, in order."""

    def alike(self, name: str) -> builtins.list[str]:
        """Those of `names` that could look like `name`, see `look_key`. The time does not depend on the number of tools."""

    def callers(self, name: str) -> builtins.list[tuple[str, str]]:
        """The tools that call a saved tool, each with the version of it that it calls. Deleted and damaged tools are left out."""

    def history(self, name: str, limit: int) -> tuple[builtins.list[Saved], int]:
        """At most `limit` versions of a tool, newest first, and the total number of versions. The tool may be deleted."""

    def search(self, text: str, limit: int = 20, any_word: bool = False) -> builtins.list[Summary]:
        """At most `limit` tools whose name, description or source contain the words of `text`, best match first.

        If no tool contains all words, or with `any_word`, a tool needs to contain only one of them.
        A text without letters and digits has no results. For a blank text, the results are the first tools by name.
        """

    def delete(self, name: str, over: str | None = None) -> None:
        """Remove the tool from the list. Its history is retained. `over` is that of `save`.

        Raises:
            Failure: `unknown_tool`, `exists`.
        """


class SessionTable(Protocol):
    """The sessions of a ledger. Every method raises Failure `io_error` or `damaged`, as the other tables do."""

    def line(self, session: str) -> builtins.list[SessionRow]:
        """A session and its parents, beginning with the session itself; an empty list if the id is unknown."""

    def seen(self, sessions: Sequence[str], excluding: str | None = None) -> dict[str, str]:
        """What a session and its parents, given by their ids, have seen: the first example of each kind, by kind. What only the
        request with the id `excluding` has seen is left out."""

    def has_stored(self, session: str, ref: str) -> bool:
        """Whether a session may read a value of the content store: it, or a session within it, has stored or got it."""

    def by_token(self, token_hash: str) -> builtins.list[SessionRow]:
        """`line` of the session whose token has this hash."""

    def newest(self, beginning: str) -> SessionRow | None:
        """The session whose hash begins with this text, the last one in the order of the hashes; None if there is none."""

    def ended(self, beginning: str) -> builtins.list[SessionRow]:
        """The sessions whose hashes begin with this text, and that were ended."""

    def all(self) -> builtins.list[SessionRow]:
        """All sessions."""


class ApprovalTable(Protocol):
    """The questions to a person and the answers. The rows don't say whether a question has expired."""

    def get(self, approval: str) -> ApprovalRow | None:
        """The question with this id, or None."""

    def ids(self, beginning: str) -> builtins.list[str]:
        """The ids that begin with this text."""

    def about(self, action: str) -> ApprovalRow | None:
        """The newest question about an action that is open or has an unused answer, or None."""

    def standing(self, covers: str) -> ApprovalRow | None:
        """The lasting answer with this key, or None."""

    def of_step(self, run: str, step: str) -> builtins.list[str]:
        """The ids of the questions about a step of a run that are open or have an unused yes. An empty `run` has none."""

    def all(self, states: Collection[str]) -> builtins.list[ApprovalRow]:
        """The questions in one of these states, oldest first."""


class UseTable(Protocol):
    """The calls that rate limits count, in buckets."""

    def times(self, session: str, bucket: str, count: int) -> tuple[float, float | None] | None:
        """When a bucket of a session was used for the last time, and for the `count`-th last time (seconds since 1970).

        The second time is None if the bucket has fewer recent uses. The result is None if it has no recent use at all.
        """

    def failing(self, session: str) -> str | None:
        """The digest of the session's last request, if it failed; otherwise None."""


class RepeatTable(Protocol):
    """The dedupe keys of calls."""

    def get(self, key: str) -> DedupeKey | None:
        """The state of a key, or None."""

    def last(self) -> int:
        """The number of the newest key; 0 if there is none."""


class QueueTable(Protocol):
    """The runs of queues, and the workers that execute them."""

    def ready(self, queues: Collection[str], workspaces: Collection[str], needs: Collection[str]) -> str | None:
        """The next run that a worker can go on with, or None: by priority, then by turns of the sessions, then by age.

        Only runs of these queues and workspaces count that have not begun, or need one of `needs`. The workspace ``git+`` stands
        for all checkouts.
        """

    def serve(self, run: str) -> None:
        """Note that this process executes a run: it is the turn of other sessions. Sessions within a session count as one."""

    def running(self, queue: str) -> int:
        """The number of runs of a queue that living processes execute."""

    def queue_of(self, run: str) -> str | None:
        """The queue of a run that has not ended; None if the run is in no queue."""

    def taken_by(self, owner: str) -> list[str]:
        """The ids of the runs that an owner has taken, and not ended or put back."""

    def all(self) -> list[QueuedRun]:
        """All runs of queues that have not ended, by priority and age."""

    def workers(self) -> list[Worker]:
        """The workers, by name. One that has died is listed until another one starts."""

    def failed(self, limit: int, among: int) -> list[str]:
        """The ids of queued runs that have failed, at most `limit` and the last one first, among the newest `among` runs."""


class ScheduleTable(Protocol):
    """The schedules, which begin runs at certain times."""

    def get(self, name: str) -> Schedule | None:
        """A schedule, or None."""

    def all(self) -> list[Schedule]:
        """All schedules, by name."""


class ReviewTable(Protocol):
    """The decisions about saved versions."""

    def get(self, tool: str, version: str) -> ReviewRow | None:
        """The last decision about a version, or None."""

    def all(self) -> list[ReviewRow]:
        """The last decision about each version, by the tool's name, older decisions first."""

    def of_tool(self, tool: str) -> list[ReviewRow]:
        """The last decision about each version of one tool, newer decisions first."""

    def active(self) -> dict[str, str]:
        """The active version of each tool that has one, by the tool's name, in the order of the names."""

    def definers(self, tool: str) -> dict[str, str]:
        """The users of the database who defined the versions of a tool last, by version; empty in a folder."""

    def changed(self) -> int:
        """The number of the newest entry that has changed a state; 0 if there is none."""


class Ledger(Protocol):
    """The append-only ledger. Every method may be called by any thread. Any number of processes write to the ledger."""

    @property
    def owner(self) -> str:
        """The id of this process, for the rows of the runs and dedupe keys that it is executing. It is created at the first use.

        Raises:
            Failure: `io_error`.
        """

    @property
    def gathers(self) -> bool:
        """Whether `together` makes one transaction of what several tasks ask for. Otherwise it is a `transaction`."""

    def append(self, kind: str, data: Mapping[str, Any]) -> int:
        """Append an entry and change the tables that depend on it. Returns the entry's number.

        After the return, or after the end of the surrounding `transaction`, the entry survives the end of this process. The caller
        must redact secrets.

        Raises:
            Failure: `invalid_arguments`, `not_json`, `too_large`; `io_error`, `damaged`. The caller must not continue without the
                entry.
        """

    def durable(self, n: int | None = None) -> None:
        """Wait until all entries up to `n` would survive a crash of the machine; without `n`, all that any process has committed.
        Call it outside of a transaction.

        Raises:
            Failure: `io_error`.
        """

    async def adurable(self, n: int) -> None:
        """`durable`, without blocking the event loop."""

    async def expect(self, about: Hashable) -> None:
        """Say what the calling task will read from the tables: what tasks with an equal `about` have read before.

        A ledger on a server then asks for all of it in one message, together with what other tasks will read.
        """

    def transaction(self) -> AbstractContextManager[None]:
        """A block to read, decide and append as one step. Only one thread of one process of this home can be inside.

        If an exception leaves the block, nothing of it is recorded. The code inside takes microseconds. It never awaits and never
        waits for the disk. A nested block is a part of the outer one.

        Raises:
            Failure: `io_error`, `damaged`. `io_error` is retryable if another process stays inside for too long.
        """

    async def together(self, about: Hashable, block: Callable[[], None], ended: Callable[[bool], None]) -> None:
        """Call `block` in a transaction. A ledger on a server makes one transaction of what several tasks ask for at the same time.

        If `block` raises an exception, nothing of it is recorded, and the others go on.

        Args:
            about: What the block will read, see `expect`.
            block: As the block of `transaction`.
            ended: Called after `block`, before other tasks go on: whether what it has done is recorded. It also comes before the
                exception.

        Raises:
            Failure: As `transaction`, and what `block` raises.
            asyncio.CancelledError: The task was cancelled. `block` was called all the same.
        """

    def alive(self, owner: str) -> bool:
        """Whether the process with this `owner` still runs and has not closed its ledger.

        Raises:
            Failure: `invalid_arguments` if `owner` is not such an id; `io_error`.
        """

    def entries(
        self, kinds: Collection[str] | None = None, since: datetime | None = None, run: str | None = None
    ) -> Iterator[Entry]:
        """The entries, oldest first. `kinds`, `since` (inclusive) and the id of a `run` restrict them.

        Raises:
            Failure: `damaged`, `io_error`.
        """


class Record(Ledger, Protocol):
    """A ledger, and the tables that depend on its entries."""

    def may(self, kind: str) -> bool:
        """Whether this user may append entries of a kind: in a database with roles, not everybody may decide."""

    @property
    def sessions(self) -> SessionTable:
        """The table of sessions."""

    @property
    def approvals(self) -> ApprovalTable:
        """The table of approvals."""

    @property
    def uses(self) -> UseTable:
        """The table of counted calls."""

    @property
    def repeats(self) -> RepeatTable:
        """The table of dedupe keys."""

    @property
    def reviews(self) -> ReviewTable:
        """The table of decisions about saved versions."""

    @property
    def queue(self) -> QueueTable:
        """The table of queued runs and their workers."""

    @property
    def schedules(self) -> ScheduleTable:
        """The table of schedules."""


class Journal(Protocol):
    """The steps of one run. Only one process can have it open."""

    @property
    def id(self) -> str | None:
        """The id of the run; None if the request is not recorded."""

    header: dict[str, Json]

    def entries(self) -> list[dict[str, Json]]:
        """The verified entries in order. Flushes. Raises Failure `damaged`, `io_error`."""

    def append(self, entry: Mapping[str, Json], most: int | None = None) -> None:
        """Append to the buffer. A crash may lose entries, but never changes their order.

        The next ledger entry of the run writes the buffer too. `most` is the most bytes of the entry; None for the most that is
        possible.

        Raises:
            Failure: `not_json`, `too_large`: nothing is appended. `io_error`.
        """

    def flush(self) -> None:
        """Make all entries survive the end of this process. Raises Failure `io_error`; the buffer then remains."""

    async def sync(self) -> None:
        """Make all entries survive a crash of the machine. Raises Failure `io_error`."""

    def close(self) -> None:
        """Flush, and let other processes open the journal. Raises Failure `io_error`; the journal is closed even then."""


class RunStore(Protocol):
    """The runs of a home and their journals. A run's id has sixteen hex digits. Any thread of any process may call every method."""

    def create(self, run_id: str, header: Mapping[str, Json]) -> Journal:
        """Create a journal. The run exists when its first entry is appended, which the entry of its beginning precedes.

        Entries survive a crash of the machine only after `sync`.

        Raises:
            Failure: `invalid_arguments`, `not_json`, `too_large`.
        """

    def open(self, run_id: str, needs: str = "") -> Journal:
        """Open a journal to continue it, after it is compared with the ledger.

        From now on, a queued run needs the interpreter `needs`.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`. It is retryable if another process has the journal
                open.
        """

    def load(self, run_id: str) -> LoadedRun:
        """Read a journal by its id or a unique prefix of the id, even while another process has it open. Raises as `open`."""

    def list(self, limit: int, of: Callable[[str], bool] = ...) -> builtins.list[RunSummary]:
        """At most `limit` runs, newest first, of the sessions whose id `of` accepts; "" is the owner. Raises Failure `io_error`."""

    def cancel(self, run_id: str) -> None:
        """Request that the process that executes the run stops it. This can't be undone. Raises Failure `not_found`, `io_error`."""

    def cancelled(self, run_id: str) -> bool:
        """Whether cancellation was requested. A run that does not exist yet was not cancelled."""

    def sweep(self, older_than_seconds: float) -> Swept:
        """Delete the runs that have ended and to which nothing was added for this many seconds.

        Raises:
            Failure: `io_error`; `invalid_arguments` for a negative age.
        """


class ContentStore(Protocol):
    """Values that are stored under the hash of their content. Any thread of any process may call every method."""

    def put(self, content: bytes) -> str:
        """Store `content` durably. Returns its reference, ``b3:<64 hex digits>``. Storing it again resets its age.

        Raises:
            Failure: `io_error`.
        """

    def get(self, ref: str) -> bytes:
        """The verified value.

        Raises:
            Failure: `not_found`, `damaged`, `invalid_arguments`, `io_error`.
        """

    def slice(self, ref: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes beginning at `offset`, verified. Raises as `get`."""

    def matching(self, ref: str, pattern: str, offset: int, limit: int) -> Matches:
        """The lines that match `pattern` (RE2's syntax) and begin at or after `offset`.

        The search takes linear time. It stops when the matching lines together have `limit` bytes, but returns at least one line.
        Raises as `get`.
        """

    def size(self, ref: str) -> int:
        """The value's size in bytes. The content is not verified. Raises as `get`, except `damaged`."""

    def renew(self, ref: str) -> int:
        """Verify a value and reset its age. Returns its size in bytes. Raises as `get`."""


class Artifact(NamedTuple):
    """A value that was published under an id. `content` is its reference, and `created` is ISO 8601, UTC.

    Each item of `metadata` is ``name=value``.
    """

    id: str
    content: str
    size_bytes: int
    category: str
    metadata: tuple[str, ...]
    created: str


class ArtifactStore(Protocol):
    """Artifacts by workspace and id. Artifacts never change. Any thread of any process may call every method."""

    def publish(self, workspace: str, artifact: Artifact) -> tuple[Artifact, bool]:
        """Store an artifact durably. Returns the artifact that has this id, and whether it is new. A repetition changes nothing.

        Raises:
            Failure: `exists` if the id belongs to another artifact; `not_found` if its content is not stored; `damaged`,
                `io_error`.
        """

    def get(self, workspace: str, id: str) -> Artifact:
        """The verified artifact with this id.

        Raises:
            Failure: `not_found`, `damaged`, `io_error`.
        """


#: Checks the installation and returns a report as JSON. True also runs hostile programs, which the sandbox must stop.
Examine = Callable[[bool], Awaitable[Json]]


class BatchAccess(Protocol):
    """The batches that a call can start and read: in a session those that it, or a session within it, has started."""

    async def start(self, tool: str, items: Sequence[Mapping[str, Json]], queue: str, per_run: int) -> tuple[str, int]:
        """Queue the calls of a tool for each of `items`, in runs of `per_run` items. The same call of a resumed run does it once.

        Returns:
            The batch's id, and the number of its runs.

        Raises:
            Failure: `unknown_tool`, `invalid_arguments`, `permission_denied`, `outdated`, `io_error`; those of a queued run.
        """

    def read(self, batch: str, first: int, count: int) -> Json:
        """The state of a batch and the results from item `first` on, see `read_batch`. Raises Failure `not_found`, `io_error`."""


class NetworkRules(Protocol):
    """The network rules for one call (`engine.policy.outgoing.Outgoing`)."""

    @property
    def address_rules(self) -> Any:
        """The rules on the addresses that the call may reach (`engine.policy.addresses.AddressRules`)."""

    def address_rules_for(self, *urls: str) -> Any:
        """`address_rules`, which also permit the literal addresses in these URLs of the owner's configuration."""

    def demand(self, url: str, method: str, *, by_owner: bool = False) -> None:
        """Check another URL. "ask" counts as a denial. Raises Failure `permission_denied`."""

    def demand_secret(self, name: str, url: str) -> None:
        """Check that a secret may be sent to a URL. Raises Failure `permission_denied`."""


class CallContext(Protocol):
    """The context that a primitive gets in addition to its arguments."""

    @property
    def workspace(self) -> Any:
        """The workspace (`engine.workspace.workspace.Workspace`)."""

    @property
    def remaining(self) -> float:
        """The remaining seconds of this call. They include the limit of its caller."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of this primitive in the configuration."""

    @property
    def key(self) -> str:
        """An idempotency key for other services. It is unique to this call. A resumed run uses the same key for the same call."""

    @property
    def trace(self) -> str:
        """The call's place in its trace, as a W3C traceparent, for other services."""

    @property
    def contents(self) -> ContentStore | None:
        """The store of values that are too large to return; None if there is no store."""

    @property
    def artifacts(self) -> ArtifactStore | None:
        """The store of artifacts; None if there is no store."""

    @property
    def examine(self) -> Examine | None:
        """The check of the installation; None if it is not available."""

    @property
    def batches(self) -> BatchAccess | None:
        """The batches; None if no runs are recorded."""

    @property
    def progress(self) -> Callable[[str], None] | None:
        """Shows a text to the caller while it waits, as the prints of a program are shown; None if the caller shows none."""

    def record_seen(self) -> None:
        """Record what the session can see by the call so far, before anybody can: in a line, or in a file that a command writes. At
        the call's end it is recorded in any case.

        Raises:
            Failure: `io_error`, `damaged`.
        """

    def guard_requests(self) -> Callable[[], None]:
        """A function to call before a command sends anything over the network. It may have begun before another request of its
        session has seen something, so the rules on the session judge it again; then what it gets is recorded as seen.

        The function raises:
            Failure: `permission_denied`; `io_error`, `damaged`.
        """

    def left(self, unit: str) -> float:
        """The remaining amount of a unit (``model_tokens``, …) in the caller's budget; infinity if the unit is not limited."""

    @property
    def network(self) -> NetworkRules | None:
        """The network rules; None if there are no rules. The call then may not use the network."""

    def keep(self, make: Callable[[], Kept]) -> Kept:
        """The object that `make` creates, once for the whole service. If it has an `aclose`, the service calls it at the end."""

    def effect(self, kind: str, **facts: Any) -> None:
        """Record an effect that has happened: its kind, and facts such as path, size_bytes and sha256."""

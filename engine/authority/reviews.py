"""Reviews: the state of each saved version, and who decided it.

A saved version is *pending* until the owner decides: it can be found and run, and each of its calls is judged as if it were made by
hand. An *active* version was approved: agents are offered it by its name, its calls are held to its manifest, and inside the
manifest nobody is asked. An approval is for one version, whose hash covers its source, its schemas and its pins, and for one
manifest. If the stored manifest differs, the version is pending again. Any change is a new version. The version that was approved
before stays active until the new one is approved, and is then *deprecated*. A *draft* was sent back with a reason. A *revoked*
version can't run; a pending one that is rejected is revoked.

No session decides: each method is for the owner.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Record, ToolStore
from albert_tools.engine.model.record_types import ReviewRow

#: ``draft`` and ``checked`` are also the states of a source that is not saved: before and after it is checked.
State = Literal["draft", "checked", "pending", "active", "deprecated", "revoked"]
STATES: tuple[State, ...] = get_args(State)
#: Who has decided, if the owner's rules activate a version. Nobody has read its manifest, so its calls still ask.
BY_RULES = "the rules"
#: The decisions about a version, by the names of the methods, and those that need a reason.
DECISIONS = ("approve", "reject", "send_back", "deprecate", "revoke")
REASONED = ("reject", "send_back", "revoke")
_REFUSED = ("rejected", "sent back")
#: The most versions of a tool that `all` returns.
MAX_VERSIONS = 100


class VersionState(Struct, frozen=True):
    """The state of a version.

    Attributes:
        by: Who decided. For a version about which nobody has decided: the session that has defined it, empty for the owner.
        why: The reason, or an empty text.
        time: When it got this state, in ISO 8601.
        manifest: The digest of its stored manifest; empty if it has none.
    """

    tool: str
    version: str
    state: State
    by: str = ""
    why: str = ""
    time: str = ""
    manifest: str = ""

    @property
    def approved(self) -> bool:
        """Whether a person has approved this version and its manifest."""
        return self.state == "active" and self.by != BY_RULES

    @property
    def decided(self) -> str:
        """What the person did: ``approved``, ``rejected``, ``sent back``; empty if nobody has decided."""
        refused = next((words for words in _REFUSED if self.why.startswith(f"{words}: ")), "")
        return refused or {"active": "approved", "revoked": "revoked", "deprecated": "ended"}.get(self.state, "")

    @property
    def reason(self) -> str:
        """The reason that the person gave, as a clause to append: ``: it reads too much``; empty if there is none."""
        why = self.why.removeprefix(f"{self.decided}: ")
        return f": {why}" if why else ""


class Reviews:
    """The states of the saved versions of a home. Every method may raise Failure `io_error`, `damaged`."""

    def __init__(self, ledger: Record, store: ToolStore) -> None:
        self._ledger = ledger
        self._store = store

    def state(self, tool: str, version: str) -> VersionState:
        """The state of a version, by its hash or the beginning of the hash. Raises Failure `unknown_tool`, too."""
        return self.of(self._store.load(tool, version))

    def of(self, version: ToolVersion) -> VersionState:
        """The state of a version that was loaded."""
        return _state(version, self._ledger.reviews.get(version.name, version.version))

    def by_name(self, tool: str) -> ToolVersion:
        """The version that the name of a tool means: the newest one; if that one is revoked, the active one, if there is one.

        Raises:
            Failure: `unknown_tool`, too.
        """
        newest = self._store.load(tool)
        if self.of(newest).state != "revoked":
            return newest
        active = self.active().get(tool)
        return self._store.load(tool, active) if active is not None else newest

    def all(self, tool: str) -> list[VersionState]:
        """The states of the newest versions of a tool, the newest first. Damaged versions are left out."""
        states = []
        for saved in self._store.history(tool, MAX_VERSIONS)[0]:
            try:
                states.append(self.state(tool, saved.version))
            except Failure as failure:
                if failure.code != "damaged":
                    raise
        return states

    def last_approved(self, tool: str, but: str) -> ToolVersion | None:
        """The version of a tool that a person approved last, other than `but`, however many follow it; None if there is none."""
        rows = [r for r in self._ledger.reviews.of_tool(tool) if r.version != but and r.by != BY_RULES]
        # If one is active, it was approved after those that are deprecated.
        for row in sorted(rows, key=lambda r: r.state != "active"):
            if row.state not in ("active", "deprecated"):
                continue
            try:
                version = self._store.load(tool, row.version)
            except Failure as failure:
                if failure.code not in ("damaged", "unknown_tool"):
                    raise
                continue
            if self.of(version).state == row.state:
                return version
        return None

    def queue(self) -> list[VersionState]:
        """The newest versions that are pending, by the names of their tools. Of most of them only what the store's list says:
        `state` also has the digest of the manifest."""
        decided = {(row.tool, row.version): row for row in self._ledger.reviews.all()}
        pending = []
        for summary in self._store.list():
            row = decided.get((summary.name, summary.version))
            if summary.problem is not None:
                continue
            if row is None:
                pending.append(
                    VersionState(summary.name, summary.version, "pending", summary.author, time=summary.created)
                )
            elif row.state in ("pending", "active"):
                state = self.state(summary.name, summary.version)
                pending += [state] if state.state == "pending" else []
        return pending

    def active(self) -> dict[str, str]:
        """The active version of each tool that has one, by name. Whether its manifest is unchanged is not checked: see `of`."""
        return self._ledger.reviews.active()

    def author(self, tool: str, version: str, session: str) -> str:
        """Who has defined a version, in words. `session` is the session that has; empty for a person."""
        user = self.definers(tool).get(version, "")
        return f"the session {session}{f' of {user}' if user else ''}" if session else user or "the owner"

    def definers(self, tool: str) -> dict[str, str]:
        """The users of the database who defined the versions of a tool last, by version; empty in a folder."""
        return self._ledger.reviews.definers(tool)

    def changed(self) -> int:
        """A number that is greater after each decision, by any process."""
        return self._ledger.reviews.changed()

    # Decisions

    def approve(
        self, version: ToolVersion, by: str, why: str = "", manifest: str | None = None, seen: str | None = None
    ) -> VersionState:
        """Make a version the active one. The version that was active is deprecated.

        Args:
            version: The version, with the manifest that the approval covers.
            by: Who decides, for the record.
            why: The reason.
            manifest: The digest of the manifest that the reviewer has read; None for that of the version.
            seen: The state that the reviewer has seen; None if any other decision may be replaced.

        Raises:
            Failure: `outdated` if the version has another manifest; `invalid_arguments` if somebody else has decided otherwise
                meanwhile.
        """
        tool, digest = version.name, version.definition.manifest_digest
        if manifest not in (None, digest):
            message = f"the manifest of {tool} is not the one that was reviewed"
            raise Failure("outdated", message, hint="review it again", tool=tool)
        # Somebody may have approved it, too.
        return self._decide(version, "active", by, why, STATES if seen is None else (seen, "active"))

    def reject(self, tool: str, version: str, by: str, why: str) -> VersionState:
        """Forbid a pending version. Its author reads the reason. Raises Failure `invalid_arguments` if it is not pending."""
        return self._decide(self._store.load(tool, version), "revoked", by, f"rejected: {why}", ("pending", "draft"))

    def send_back(self, tool: str, version: str, by: str, why: str) -> VersionState:
        """Ask the author of a pending version for changes. Raises Failure `invalid_arguments` if it is not pending."""
        return self._decide(self._store.load(tool, version), "draft", by, f"sent back: {why}", ("pending", "draft"))

    def deprecate(self, tool: str, version: str, by: str, why: str = "") -> VersionState:
        """End the approval of the active version. It can still be found and run, and each of its calls is judged.

        Raises:
            Failure: `invalid_arguments` if it is not active.
        """
        return self._decide(self._store.load(tool, version), "deprecated", by, why, ("active",))

    def revoke(self, tool: str, version: str, by: str, why: str = "") -> VersionState:
        """Forbid a version: no call of it runs any more, also inside of other tools."""
        return self._decide(self._store.load(tool, version), "revoked", by, why)

    def _decide(
        self, version: ToolVersion, state: State, by: str, why: str, only: tuple[str, ...] = STATES
    ) -> VersionState:
        """Record a decision.

        Raises:
            Failure: `invalid_arguments` if the present state is not one of `only`, or if the rules would replace a version that a
                person has approved.
        """
        data = {
            "tool": version.name,
            "version": version.version,
            "state": state,
            "by": by,
            "why": why,
            "manifest": version.definition.manifest_digest,
        }
        with self._ledger.transaction():
            before = self.of(version)
            if before.state not in only:
                message = f"version {version.version[:12]} of {version.name} is {before.state}, not {only[0]}"
                hint = f"`albert show {version.name}` shows the states of its versions"
                raise Failure("invalid_arguments", message, hint=hint, tool=version.name)
            active = self._ledger.reviews.get(version.name, self.active().get(version.name, ""))
            if by == BY_RULES and active is not None and active.by != BY_RULES:
                message = f"a person has approved another version of {version.name}, which the rules don't replace"
                raise Failure("invalid_arguments", message, hint="approve this version yourself", tool=version.name)
            changed = (before.state, before.by, before.why) != (state, by, why)
            n = self._ledger.append("review", data) if changed else None
            after = self.of(version)
        # A revoked version must stay revoked after a crash of the machine, also if another process has just revoked it.
        self._ledger.durable(n)
        return after


def _state(version: ToolVersion, row: ReviewRow | None) -> VersionState:
    manifest = version.definition.manifest_digest
    if row is None:
        return VersionState(version.name, version.version, "pending", version.author, "", version.created, manifest)
    if row.state == "active" and row.manifest != manifest:
        why = f"what it can do was found out anew, and differs from what {row.by} approved"
        return VersionState(version.name, version.version, "pending", row.by, why, row.at, manifest)
    state: State = row.state  # type: ignore[assignment]
    return VersionState(version.name, version.version, state, row.by, row.why, row.at, manifest)

"""Rules about flows: what may get from an output to an argument.

::

    deny_flow:
      - {from: {effects: [secret]}, to: {effects: [network]}}
    ask_flow:
      - {from: {source: [web, mail, server]}, to: destination}
      - {from: {session: [private, outside]}, to: {effects: [network]}}
    private_paths: [.env, "*.pem"]

A rule with ``from: {session: …}`` is about what the session has seen before the call. All other rules are judged on the manifest
of a saved tool (`flows`): nothing is tracked while a program runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from albert_tools.engine.model.definition import digest

#: The kinds of sources that a primitive can declare.
SOURCES = ("file", "web", "mail", "clock", "command", "model", "server", "random")
#: The kinds of sources whose content other people write. It may contain instructions to the agent.
OUTSIDE = ("web", "mail", "server")

#: What a session can have seen: ``private`` data (a private file, or the output of a tool with the effect ``secret``), and content
#: from ``outside``.
SEEN = ("private", "outside")

#: The kinds of arguments that a rule can name, each with the uses that primitives declare (`PlannedCall.uses`).
ARGUMENTS: dict[str, frozenset[str]] = {
    "path": frozenset({"write", "delete"}),
    "url": frozenset({"url", "provider"}),
    "command": frozenset({"shell", "program", "environment", "operation", "arguments", "folder"}),
    "recipient": frozenset({"destination"}),
    "payload": frozenset({"payload"}),
}
#: What a call acts on: a path, a URL, a command, or a recipient, account or amount.
ARGUMENTS["destination"] = ARGUMENTS["path"] | ARGUMENTS["url"] | ARGUMENTS["command"] | ARGUMENTS["recipient"]

#: The uses of paths by which a call gets the content of a file. Who moves a private file, can read it under its new name.
READS = frozenset({"read", "delete", "folder"})
#: Those by which the result of a call, or its error, can tell something about the content: an edit tells whether a text is in the
#: file, and appending returns the hash of the whole file.
TELLS = READS | {"write"}


def _fits(named: tuple[str, ...], present: tuple[str, ...]) -> bool:
    return not named or not set(named).isdisjoint(present)


class From(Struct, frozen=True):
    """The outputs that a rule is about. A call must match every key that is given."""

    effects: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    #: What the session must have seen, all of it.
    session: tuple[str, ...] = ()

    def fits(self, tools: tuple[str, ...], effects: tuple[str, ...], source: str) -> bool:
        """Whether the output of a tool matches, paths aside. `tools` are the tool, and the saved tools around the call."""
        return (
            not self.session
            and _fits(self.tools, tools)
            and _fits(self.effects, effects)
            and _fits(self.source, (source,))
        )


class To(Struct, frozen=True):
    """The calls that a rule is about, and which of their arguments. Without `arguments`, all of them."""

    effects: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    def fits(self, tools: tuple[str, ...], effects: tuple[str, ...]) -> bool:
        """Whether calls of a tool with these effects match. `tools` as for `From.fits`."""
        return _fits(self.tools, tools) and _fits(self.effects, effects)

    def names(self, use: str) -> bool:
        """Whether an argument with this declared use matches."""
        return not self.arguments or any(use in ARGUMENTS[kind] for kind in self.arguments)


def seen_in(effects: Iterable[str], source: str) -> set[str]:
    """What the output of a tool with these effects and this source lets a session see, of `SEEN`."""
    return {kind for kind, is_seen in zip(SEEN, ("secret" in effects, source in OUTSIDE), strict=True) if is_seen}


class FlowRule(Struct, frozen=True):
    """One rule. `place` is its place in the file: ``ask_flow.0``. With `control`, a flow is also what decides which
    value an argument has, or whether the call is made."""

    verdict: Literal["ask", "deny"]
    place: str
    source: From
    to: To
    control: bool = False

    @property
    def digest(self) -> str:
        """The same for the same rule at another place: other rules can be added while a run waits."""
        return digest(to_builtins(replace(self, place="")))


#: The rules of `ask_flow` if the owner's file has no such key.
SHIPPED_FLOWS = (
    FlowRule("ask", "shipped.ask_flow.0", From(source=OUTSIDE), To(arguments=("destination",))),
    FlowRule("ask", "shipped.ask_flow.1", From(session=SEEN), To(effects=("network",))),
    FlowRule("ask", "shipped.ask_flow.2", From(session=("outside",)), To(arguments=("recipient",))),
)

#: The files with private data if the owner's file has no `private_paths`.
SHIPPED_PRIVATE_PATHS = (
    "secrets/",
    ".env",
    ".env.*",
    ".netrc",
    ".pgpass",
    ".ssh/",
    ".aws/",
    ".gnupg/",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
)

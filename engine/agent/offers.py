"""What an agent is offered by name, in a fixed order: its own tools, then the primitives, then the active saved tools.

Every other saved tool is found by `search_tools` and run by `run_tool`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from albert_tools.engine.agent.agent_tools import agent_tools
from albert_tools.engine.model.definition import Json, Schema, ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.service import ToolService


class Offer(Struct, frozen=True):
    """A tool that an agent is offered.

    `version` is the version of a saved tool to call; None for other tools. `author` is the session that has defined it, or empty.
    """

    definition: ToolDefinition
    version: str | None = None
    author: str = ""

    @property
    def name(self) -> str:
        """The name, which may have parts: ``crm.find``."""
        return self.definition.name

    @property
    def description(self) -> str:
        """The description without the paragraph about errors: an error explains itself, and `describe_tool` has the paragraph."""
        paragraphs = self.definition.description.split("\n\n")
        return "\n\n".join(p for p in paragraphs if not p.startswith("Fails with "))

    @property
    def parameters(self) -> Schema:
        """The JSON Schema of the arguments, an object."""
        return self.definition.parameters_schema()

    @property
    def result(self) -> Schema:
        """The JSON Schema of the result; empty for any value."""
        return self.definition.result

    @property
    def reads_only(self) -> bool:
        """Whether a call changes nothing."""
        return self.definition.only_reads

    @property
    def annotations(self) -> dict[str, bool]:
        """The annotations of MCP, computed from the effects: ``readOnlyHint``, ``destructiveHint``, …"""
        effects = set(self.definition.effects)
        return {
            "readOnlyHint": self.reads_only,
            # A request can delete something at the other end.
            "destructiveHint": not self.reads_only,
            "idempotentHint": self.reads_only or self.definition.idempotent,
            "openWorldHint": not effects.isdisjoint({"network", "execute"}),
        }

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "result": self.result,
            "version": self.version,
            "effects": list(self.definition.effects),
            "annotations": dict[str, Any](self.annotations),
        }


def offered(service: ToolService, session: str | None) -> list[Offer]:
    """The tools that the lease of a session covers and that the rules do not deny whatever the arguments are.

    Raises:
        Failure: `permission_denied` if the session does not exist or has ended; `io_error`, `damaged`.
    """
    offers = [Offer(p.definition) for p in agent_tools().values()]
    offers += [
        Offer(p.definition) for p in service.registry.primitives() if not _denied(service, p.definition, p.gated)
    ]
    for name, version in service.reviews.active().items():
        try:
            loaded = service.store.load(name, version)
        except Failure:
            # A damaged tool can't be called. `albert tools` names it.
            continue
        if service.reviews.of(loaded).state == "active" and not _denied(service, loaded.definition):
            offers.append(Offer(loaded.definition, version, loaded.author))
    covers = service.coverage(session)
    return [offer for offer in offers if is_covered(offer, covers)]


def is_covered(offer: Offer, covers: Callable[[str, str], bool]) -> bool:
    """Whether a session is offered what the owner is, by what its lease covers (`ToolService.coverage`)."""
    return offer.name == "run_tool" or covers(offer.name, offer.author)


def _denied(service: ToolService, definition: ToolDefinition, gated: bool = False) -> bool:
    return bool(service.standing(definition, gated)["verdict"] == "deny")

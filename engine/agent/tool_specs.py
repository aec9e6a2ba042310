"""The offered tools in the forms in which providers of models take them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from albert_tools.engine.agent.offers import Offer
from albert_tools.engine.model.definition import Json, Schema
from albert_tools.engine.model.failure import Failure

Provider = Literal["openai", "anthropic", "mcp", "json-schema"]

#: Providers accept letters, digits, ``_`` and ``-`` in a name, and at most this many characters.
MAX_SPEC_NAME = 64


def spec_name(name: str) -> str:
    """The name of a tool for a provider that refuses dots: ``crm.find`` is ``crm-find``. No tool's own name has a ``-``."""
    return name.replace(".", "-")


def tool_name(spec: str) -> str:
    """The tool of a `spec_name`."""
    return spec.replace("-", ".")


def tool_specs(offers: Iterable[Offer], provider: str) -> list[dict[str, Json]]:
    """The offered tools, each as a provider's dict.

    Args:
        offers: The tools.
        provider: ``openai`` (chat completions), ``anthropic``, ``mcp``, or ``json-schema``: a list of ``{name, description,
            parameters, result, …}``. For the first two, names are `spec_name`; a tool whose name is too long for them is left out.

    Raises:
        Failure: `invalid_arguments`: there is no such form.
    """
    match provider:
        case "openai":
            return [
                {
                    "type": "function",
                    "function": {
                        "name": name,
                        "description": o.description,
                        "parameters": o.parameters,
                    },
                }
                for name, o in by_spec_name(offers).items()
            ]
        case "anthropic":
            return [
                {"name": name, "description": o.description, "input_schema": o.parameters}
                for name, o in by_spec_name(offers).items()
            ]
        case "mcp":
            return [_mcp(o) for o in offers]
        case "json-schema":
            return [o.as_dict() for o in offers]
    raise Failure(
        "invalid_arguments",
        f"there is no form {provider!r} of tools",
        hint="the forms are openai, anthropic, mcp and json-schema",
    )


def by_spec_name(offers: Iterable[Offer]) -> dict[str, Offer]:
    """The tools by their `spec_name`, without those whose name is too long for providers. `run_tool` calls these."""
    return {spec_name(offer.name): offer for offer in offers if len(offer.name) <= MAX_SPEC_NAME}


def _mcp(offer: Offer) -> dict[str, Json]:
    spec: dict[str, Json] = {
        "name": offer.name,
        "description": offer.description,
        "inputSchema": offer.parameters,
        "annotations": dict(offer.annotations),
    }
    if offer.result:
        spec["outputSchema"] = output_schema(offer.result)
    return spec


def output_schema(result: Schema) -> Schema:
    """The schema of a result for MCP, where a result is an object. Another value is in the key ``result``."""
    if result.get("type") == "object":
        return result
    definitions = {"$defs": result["$defs"]} if "$defs" in result else {}
    inner = {key: value for key, value in result.items() if key != "$defs"}
    return {"type": "object", "properties": {"result": inner}, "required": ["result"], **definitions}

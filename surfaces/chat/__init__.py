"""A chat with a language model that calls the tools. Names are loaded on first use: the providers' packages are large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tools.surfaces.chat.anthropic_model import AnthropicModel as AnthropicModel
    from albert_tools.surfaces.chat.conversation import Saved as Saved
    from albert_tools.surfaces.chat.openai_model import OpenAIModel as OpenAIModel
    from albert_tools.surfaces.chat.session import ChatSession as ChatSession
    from albert_tools.surfaces.chat.session import Limits as Limits

_MODULES = {
    "AnthropicModel": "anthropic_model",
    "ChatSession": "session",
    "Limits": "session",
    "OpenAIModel": "openai_model",
    "Saved": "conversation",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

"""A service with real rules, and a chat with a scripted model over real HTTP, for each protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from albert_tools import ToolService
from albert_tools.surfaces import chat as models
from albert_tools.surfaces.chat import ChatSession, Saved
from albert_tools.surfaces.chat.session import Event
from tests.helpers.scripted_model import Reply, Script, ScriptedModel, scripted, tool_call

#: Each way of calling tools: the interface, and the protocol of the calls.
WAYS = ["openai native", "anthropic native", "openai text", "anthropic text"]


def model_of(api: str) -> Any:
    """The class of models for this interface. Its library takes a second to import: only processes that use it import it."""
    return models.OpenAIModel if api == "openai" else models.AnthropicModel


class Chats:
    """Opens services on one home, and chats with scripted models."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.home, self.work, self._stack = folder / "home", folder / "work", stack
        (self.work / ".albert").mkdir(parents=True)
        self.events: list[Event] = []
        self.model: ScriptedModel

    async def service(self, **options: Any) -> ToolService:
        options = {"home": self.home, "workspace": self.work, **options}
        return await self._stack.enter_async_context(ToolService.open(**options))

    async def chat(
        self, script: Script, way: str = "openai native", service: ToolService | None = None, **options: Any
    ) -> ChatSession:
        """A chat with a model that follows the script. A saved conversation is closed at the end of the test."""
        self.model = self._stack.enter_context(scripted(script))
        api, protocol = way.split()
        made = model_of(api)
        if options.get("saved") is None:
            options["saved"] = self.saved(protocol)
        price = options.pop("price", None)
        model = made("m", options.pop("base_url", self.model.base_url), "key-of-the-test", price=price)
        service = service or await self.service()
        chat = ChatSession(service, model, listen=self.events.append, **options)
        return await self._stack.enter_async_context(chat)

    def saved(self, protocol: Any = "native", resume: str | None = None) -> Saved:
        folder = self.home / "state" / "chats"
        made = Saved.new(folder, protocol) if resume is None else Saved.resume(folder, resume)
        self._stack.callback(made.close)
        return made


@pytest.fixture
async def chats(tmp_path: Path) -> AsyncIterator[Chats]:
    async with AsyncExitStack() as stack:
        yield Chats(tmp_path.resolve(), stack)


def calls(way: str, *made: tuple[str, dict[str, Any]], text: str = "") -> Reply:
    """A reply with these calls, in this way."""
    if way.endswith("native"):
        return Reply(text, made)
    return Reply(text + "\n".join(tool_call(name, **arguments) for name, arguments in made))

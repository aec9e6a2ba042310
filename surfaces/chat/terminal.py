"""The terminal program: sends messages, shows answers, and stops a call or an answer on Ctrl-C.

Messages that are typed during a turn wait until the model has answered. If it doesn't, they come back into the input line.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from albert_tools.engine.agent.offers import Offer
from albert_tools.engine.authority.authorization import Answer as Approval
from albert_tools.engine.authority.authorization import Asker, Question
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.chat.conversation import recent
from albert_tools.surfaces.chat.input_line import QUIT, InputLine
from albert_tools.surfaces.chat.session import Answer, ChatSession
from albert_tools.surfaces.chat.view import TerminalView
from albert_tools.surfaces.text.approval_prompt import asker
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.exit_codes import DONE, INTERRUPTED

_HELP = """/help     these lines
/tools    the tools that the model is offered
/history  the saved conversations
/quit     leave; so does Ctrl-D
A message that you write during an answer or a call waits for its end.
Ctrl-C stops the answer or the call. Alt-Enter begins a new line."""


class Terminal:
    """The loop of messages and answers."""

    def __init__(self, chat: ChatSession, view: TerminalView, line: InputLine, console: Console, folder: Path) -> None:
        self._chat, self._view, self._line, self._console, self._folder = chat, view, line, console, folder
        #: The turn under way.
        self._asking: asyncio.Future[Answer] | None = None
        #: How often Ctrl-C was typed in a row.
        self._interrupts = 0

    async def run(self) -> int:
        """Talk until the user leaves. Returns the exit code."""
        model, number = self._chat.model.name, len(self._chat.conversation.messages)
        messages = "1 message" if number == 1 else f"{number} messages"
        before = f", continuing a conversation of {messages}: {self._chat.conversation.title}" if number else ""
        self._console.say(self._console.paint(f"{one_line(model)}{one_line(before)}; /help lists the commands", "dim"))
        reading = asyncio.ensure_future(self._line.read(self._interrupt))
        try:
            while (text := await self._line.next()) != QUIT:
                self._interrupts = 0
                self._view.sent(text)
                if text.startswith("/"):
                    await self._command(text)
                elif not await self._turn(text):
                    return INTERRUPTED
            return DONE
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    async def _turn(self, text: str) -> bool:
        """Answer a message. Returns False if the user has interrupted twice."""
        self._asking = asyncio.ensure_future(self._chat.ask(text))
        with self._view.turn():
            await asyncio.wait([self._asking])
        asked, self._asking = self._asking, None
        interrupts, self._interrupts = self._interrupts, 0
        try:
            stopped = asked.result().stopped
        except asyncio.CancelledError:
            self._view.remark("interrupted")
        except Failure as failure:
            self._line.take_back()
            with self._line.above():
                self._console.failure(failure.as_dict())
        else:
            if stopped:
                self._line.take_back()
                self._view.remark(f"{stopped}; write a message to go on")
        return interrupts < 2

    def _interrupt(self) -> None:
        """Stop the turn. Without a turn, the second time in a row leaves."""
        self._interrupts += 1
        if self._asking is not None:
            self._line.take_back()
            self._asking.cancel()
        elif self._interrupts > 1:
            self._line.add(QUIT)
        else:
            self._line.clear()
            with self._line.above():
                self._console.note("Ctrl-C again leaves, and so does Ctrl-D")

    async def _command(self, text: str) -> None:
        offers = await self._chat.offered() if text == "/tools" else []
        with self._line.above():
            self._answer(text, offers)

    def _answer(self, command: str, offers: list[Offer]) -> None:
        say = self._console.say
        match command:
            case "/help":
                self._console.write(_HELP + "\n")
            case "/tools":
                for offer in offers:
                    say(f"  {one_line(offer.name)}  {one_line(offer.description.partition(chr(10))[0])}", 4)
            case "/history":
                conversations = recent(self._folder)
                for each in conversations:
                    say(f"  {each.id}  {one_line(each.title)}", 4)
                say("`albert chat --resume ID` continues one" if conversations else "no conversation is saved yet")
            case _:
                self._console.note(f"there is no command {one_line(command[:40])}; /help lists the commands")


def asking(console: Console, view: TerminalView) -> Asker:
    """Asks at the terminal, as `albert run` does: one question at a time, and nothing else is drawn meanwhile."""
    ask, turn = asker(console, session=True), asyncio.Lock()

    async def asked(question: Question) -> Approval:
        async with turn, view.paused():
            answer = await ask(question)
            assert isinstance(answer, Approval)
            return answer

    return asked

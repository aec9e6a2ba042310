"""The terminal program: reads messages, shows answers, and stops a call or an answer on Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from albert_tools.engine.authority.authorization import Answer as Approval
from albert_tools.engine.authority.authorization import Asker, Question
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.chat.conversation import recent
from albert_tools.surfaces.chat.input_line import InputLine
from albert_tools.surfaces.chat.session import ChatSession
from albert_tools.surfaces.chat.view import TerminalView
from albert_tools.surfaces.text.approval_prompt import asker
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.exit_codes import DONE, INTERRUPTED

_HELP = """/help     these lines
/tools    the tools that the model is offered
/history  the saved conversations
/quit     leave; so does Ctrl-D
Ctrl-C stops the answer or the call. Alt-Enter begins a new line."""


class Terminal:
    """The loop of messages and answers."""

    def __init__(self, chat: ChatSession, view: TerminalView, console: Console, folder: Path) -> None:
        self._chat, self._view, self._console, self._folder = chat, view, console, folder
        self._input = InputLine(folder)

    async def run(self) -> int:
        """Talk until the user leaves. Returns the exit code."""
        model, number = self._chat.model.name, len(self._chat.conversation.messages)
        messages = "1 message" if number == 1 else f"{number} messages"
        before = f", continuing a conversation of {messages}: {self._chat.conversation.title}" if number else ""
        self._console.say(self._console.paint(f"{one_line(model)}{one_line(before)}; /help lists the commands", "dim"))
        interrupted = False
        while True:
            try:
                text = (await self._input.read()).strip()
            except EOFError:
                return DONE
            except KeyboardInterrupt:
                if interrupted:
                    return DONE
                interrupted = True
                self._console.note("Ctrl-C again leaves, and so does Ctrl-D")
                continue
            interrupted = False
            if text.startswith("/"):
                if text == "/quit":
                    return DONE
                await self._command(text)
            elif text and not await self._turn(text):
                return INTERRUPTED

    async def _turn(self, text: str) -> bool:
        """Answer a message. Returns False if the user has interrupted twice."""
        asking = asyncio.ensure_future(self._chat.ask(text))
        loop, interrupts = asyncio.get_running_loop(), 0

        def interrupt() -> None:
            nonlocal interrupts
            interrupts += 1
            asking.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            with self._view.turn():
                await asyncio.wait([asking])
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        try:
            if stopped := asking.result().stopped:
                self._view.remark(f"{stopped}; write a message to go on")
        except asyncio.CancelledError:
            self._view.remark("interrupted")
        except Failure as failure:
            self._console.failure(failure.as_dict())
        return interrupts < 2

    async def _command(self, text: str) -> None:
        say = self._console.say
        match text:
            case "/help":
                self._console.write(_HELP + "\n")
            case "/tools":
                for offer in await self._chat.offered():
                    say(f"  {one_line(offer.name)}  {one_line(offer.description.partition(chr(10))[0])}", 4)
            case "/history":
                found = recent(self._folder)
                for each in found:
                    say(f"  {each.id}  {one_line(each.title)}", 4)
                say("`albert chat --resume ID` continues one" if found else "no conversation is saved yet")
            case _:
                self._console.note(f"there is no command {one_line(text[:40])}; /help lists the commands")


def asking(console: Console, view: TerminalView) -> Asker:
    """Asks at the terminal, as `albert run` does: one question at a time, and nothing else is drawn meanwhile."""
    ask, turn = asker(console, session=True), asyncio.Lock()

    async def asked(question: Question) -> Approval:
        async with turn:
            with view.paused():
                answer = await ask(question)
                assert isinstance(answer, Approval)
                return answer

    return asked

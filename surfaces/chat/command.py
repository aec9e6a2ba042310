"""``albert chat``: opens the service, the model and the conversation. Without a terminal, stdin is one message."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

from albert_tools.engine.authority.authorization import Asker
from albert_tools.engine.session_runs import DAY
from albert_tools.store.places import without_password
from albert_tools.surfaces.chat.conversation import Saved
from albert_tools.surfaces.chat.model_options import model_of
from albert_tools.surfaces.chat.plain_view import PlainView
from albert_tools.surfaces.chat.session import ChatSession, Event, Limits
from albert_tools.surfaces.cli.service_options import homes_of, open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.cli.sessions import check_session_options, open_session
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.exit_codes import DONE, FAILED, SUSPENDED
from albert_tools.surfaces.text.usage_error import Usage

#: Bytes of an output that the model gets whole. Of a larger one it gets a part and a handle.
OUTPUT_BYTES = 24 * 1024


def run_chat(options: argparse.Namespace, console: Console) -> int:
    """Run the chat. Returns the exit code."""
    check_session_options(options)
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    if interactive and console.json:
        raise Usage("--json is for a message on stdin", "echo QUESTION | albert chat --json")
    return asyncio.run(_terminal(options, console) if interactive else _once(options, console))


async def _once(options: argparse.Namespace, console: Console) -> int:
    """Answer the message on stdin."""
    message = sys.stdin.read()
    if not message.strip():
        raise Usage("stdin has no message")
    view = PlainView(console, options.home)
    async with _chat(options, view) as chat:
        with view.turn():
            answer = await chat.ask(message)
        waits = any(chat.service.approvals.get(each).state == "open" for each in view.questions)
    if console.json:
        conversation = chat.conversation
        ending = {
            "stopped": answer.stopped or None,
            "conversation": conversation.id,
            "tokens": conversation.tokens,
            "cost": conversation.cost,
        }
        console.document({"ok": not answer.stopped, "answer": answer.text, **ending})
    elif answer.stopped:
        view.remark(answer.stopped)
    if answer.stopped:
        return FAILED
    return SUSPENDED if waits else DONE


async def _terminal(options: argparse.Namespace, console: Console) -> int:
    from albert_tools.surfaces.chat.input_line import InputLine
    from albert_tools.surfaces.chat.terminal import Terminal, asking
    from albert_tools.surfaces.chat.view import TerminalView

    line = InputLine(_folder(options))
    view = TerminalView(console, line)
    async with _chat(options, view, asking(console, view)) as chat:
        code = await Terminal(chat, view, line, console, _folder(options)).run()
    if chat.conversation.answered and not console.quiet:
        # Unwrapped, because it is to be copied.
        console.write(f"to continue: {_again(options, chat.conversation.id)}\n")
    return code


@asynccontextmanager
async def _chat(
    options: argparse.Namespace, view: Callable[[Event], None], ask: Asker | None = None
) -> AsyncIterator[ChatSession]:
    """The chat that the options describe."""
    async with open_service(options, ask=ask, output_bytes=OUTPUT_BYTES) as service:
        with closing(_saved(options)) as saved:
            model = model_of(options, service)
            # A session within another one ends with that one.
            within = token()
            _, session = open_session(
                service, options, f"chat with {model.name[:200]}", None if within else DAY, within
            )
            limits = Limits(options.rounds, options.max_tokens, options.max_cost)
            async with ChatSession(service, model, session=session, saved=saved, limits=limits, listen=view) as chat:
                yield chat


def _again(options: argparse.Namespace, conversation: str) -> str:
    """The command line that was typed, to continue the conversation with the same model and limits."""
    words = [word for word in sys.argv[1:] if not word.startswith(("--resume=", "--protocol="))]
    # A conversation keeps its protocol.
    for option, value in (("--resume", options.resume), ("--protocol", options.protocol)):
        if option in words:
            at = words.index(option)
            del words[at : at + (2 if value else 1)]
    return shlex.join(["albert", *map(without_password, words), "--resume", conversation])


def _folder(options: argparse.Namespace) -> Path:
    return homes_of(options).state / "chats"


def _saved(options: argparse.Namespace) -> Saved:
    """The conversation that the options name, or a new one."""
    folder = _folder(options)
    if options.resume is None:
        return Saved.new(folder, options.protocol or "native")
    if options.protocol is not None:
        raise Usage("--protocol is for a new conversation", "a conversation keeps its way of calling tools")
    return Saved.resume(folder, options.resume)

"""``albert chat`` as users meet it: on a terminal, in a pipe, and with the owner's configuration of providers."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import select
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pyte
import pytest

from tests.helpers.scripted_model import Reply, Request, Script, ScriptedModel, scripted, tool_call

from ..conftest import PATIENCE, Albert, commands, run_albert_on_a_terminal

#: Lines of the terminal: all that a test shows stays on it.
ROWS = 200


class Screen:
    """The screen of a terminal, as an emulator draws it."""

    def __init__(self, columns: int) -> None:
        self._screen = pyte.Screen(columns, ROWS)
        self._stream = pyte.Stream(self._screen)

    def feed(self, text: str) -> None:
        self._stream.feed(text)
        self.__dict__.pop("lines", None)

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without spaces at their ends."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip("\n").split("\n")


def lines_of(text: str, columns: int = 100) -> list[str]:
    """The lines that a terminal shows after it got this."""
    screen = Screen(columns)
    screen.feed(text)
    return screen.lines


def idle(lines: list[str]) -> bool:
    """Whether the chat waits for a message."""
    return lines[-1].startswith("›") and not any(line.startswith("◌") for line in lines)


class Chat:
    """``albert chat`` with a scripted model."""

    def __init__(self, albert: Albert, model: ScriptedModel) -> None:
        self.albert, self.model = albert, model
        self.words = ["chat", "--base-url", model.base_url, "--model", "m-1"]

    def rules(self, text: str) -> None:
        (self.albert.home / "config").mkdir(parents=True, exist_ok=True)
        (self.albert.home / "config" / "governance.yaml").write_text(text)


@pytest.fixture
def chatting(albert: Albert) -> Iterator[object]:
    opened = []

    def make(script: Script) -> Chat:
        manager = scripted(script)
        opened.append(manager)
        return Chat(albert, manager.__enter__())

    yield make
    for manager in opened:
        manager.__exit__(None, None, None)


#: What a test waits for: a text on the screen, or a condition on its lines. What it does then: it types, or it calls a function.
Seen = str | Callable[[list[str]], bool]
Act = bytes | Callable[[], None]


def terminal(chat: Chat, steps: list[tuple[Seen, Act]], columns: int = 100) -> tuple[int, str]:
    """Do each act when its turn has come and the screen shows what it waits for.

    Returns the exit code and all that the terminal got.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    # No terminal answers when the input line asks where the cursor is.
    env = {**chat.albert.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        env.pop(name, None)
    child = commands(chat.words).fork(
        run_albert_on_a_terminal, chat.words, chat.albert.project, env, Path(os.ttyname(theirs))
    )
    screen, decoder = Screen(columns), codecs.getincrementaldecoder("utf-8")("replace")
    seen, left, deadline = "", list(steps), time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        while left:
            wanted, act = left[0]
            if not (
                wanted(screen.lines) if callable(wanted) else any(wanted.rstrip() in line for line in screen.lines)
            ):
                break
            if callable(act):
                act()
            else:
                os.write(ours, act)
            del left[0]
        over = not child.alive
        if select.select([ours], [], [], 0 if over else 0.02)[0]:
            got = decoder.decode(os.read(ours, 65536))
            seen += got
            screen.feed(got)
        elif over:
            break
    os.close(ours)
    os.close(theirs)
    assert left == [], "\n".join(screen.lines)
    return child.wait(1), seen


# In a pipe


@pytest.mark.parametrize("more", [[], ["--api", "anthropic"], ["--protocol", "text"]], ids=" ".join)
def test_in_a_pipe_stdin_is_one_message_and_stdout_the_answer(chatting, more: list[str]) -> None:
    chat = chatting(["Hello *you*.\nBye."])
    done = chat.albert(*chat.words, *more, stdin=b"Say\nhello")
    assert (done.code, done.out, done.err) == (0, "Hello *you*.\nBye.\n", "")
    (request,) = chat.model.requests
    assert request.said == "Say\nhello"
    assert request.anthropic == ("anthropic" in more)


def test_each_call_is_one_line_on_stderr(chatting) -> None:
    chat = chatting(
        [
            Reply("Look:", [("write_file", {"path": "a\nb", "content": "x" * 100}), ("file_info", {"path": "no"})]),
            "Done.",
        ]
    )
    done = chat.albert(*chat.words, stdin=b"go")
    assert done.out == "Look:\nDone.\n"
    first, second = done.err.splitlines()
    assert first.startswith('✓ write_file path="a\\nb" content="xxx')
    assert first.endswith("xxx… · allowed")
    assert second == "✗ file_info path=\"no\" · not_found: there is nothing at 'no'"


def test_a_call_that_waits_names_the_command_that_answers(chatting) -> None:
    chat = chatting([Reply(calls=[("write_file", {"path": "a.txt", "content": "x"})]), "It waits."])
    chat.rules("tools: {write_file: {requires_approval_in_modes: [NORMAL]}}")
    done = chat.albert(*chat.words, stdin=b"go")
    assert (done.code, done.out) == (4, "It waits.\n")
    call, hint = done.err.splitlines()
    assert call.endswith("needs a person's approval in NORMAL; the run waits for the answer")
    answer = re.fullmatch(r"  `albert (approvals answer \w+ once --resume)` allows the call and makes it", hint)
    assert answer is not None
    assert chat.albert(*answer[1].split()).code == 0
    assert (chat.albert.project / "a.txt").read_text() == "x"


@pytest.mark.parametrize("protocol", ["native", "text"])
def test_a_resumed_chat_hands_the_model_the_result_of_a_call_that_was_allowed_meanwhile(
    chatting, protocol: str
) -> None:
    call = ("file_info", {"path": "."})
    reply = Reply(calls=[call]) if protocol == "native" else tool_call(call[0], **call[1])
    chat = chatting([reply, "It waits.", "Now I know.", "Good."])
    chat.rules("tools: {file_info: {requires_approval_in_modes: [NORMAL]}}")
    asked = chat.albert(*chat.words, "--protocol", protocol, stdin=b"go")
    answer = re.search(r"`albert (approvals answer \w+ once --resume)`", asked.err)
    assert answer is not None
    assert chat.albert(*answer[1].split()).code == 0
    done = chat.albert(*chat.words, "--resume", stdin=b"And?")
    assert (done.code, done.out) == (0, "Now I know.\n")
    last = chat.model.requests[-1]
    assert (
        last.said == "[the chat program] These calls have ended meanwhile; their results are above: file_info.\n\nAnd?"
    )
    assert '"suspended"' not in json.dumps(last.body).replace("\\", "")
    assert '"type": "directory"' in json.dumps(last.body).replace("\\", "")
    chat.albert(*chat.words, "--resume", stdin=b"Thanks.")
    assert chat.model.requests[-1].said == "Thanks."


def test_a_json_document_has_the_answer_and_what_was_used(chatting) -> None:
    chat = chatting(["Hello"])
    done = chat.albert(*chat.words, "--json", stdin=b"Hi")
    document = done.document()
    assert {**document, "conversation": ""} == {
        "ok": True,
        "answer": "Hello",
        "stopped": None,
        "conversation": "",
        "tokens": 10,
        "cost": 0.0,
    }
    again = chatting(["Hello again"])
    done = again.albert(*again.words, "--resume", document["conversation"], stdin=b"Hi again")
    assert done.out == "Hello again\n"
    (request,) = again.model.requests
    assert [m["content"] for m in request.body["messages"][1:]] == ["Hi", "Hello", "Hi again"]


def test_a_limit_ends_the_command_with_exit_code_1(chatting) -> None:
    chat = chatting(lambda _: Reply(calls=[("file_info", {"path": "no"})]))
    done = chat.albert(*chat.words, "--rounds", "2", stdin=b"go")
    assert done.code == 1
    assert done.err.splitlines()[-1] == "! the model has made calls in 2 answers"


def test_the_session_options_limit_what_the_model_may_do(chatting) -> None:
    chat = chatting([Reply(calls=[("write_file", {"path": "a", "content": ""})]), "Denied."])
    done = chat.albert(*chat.words, "--tools", "read_file", stdin=b"go")
    assert "write_file" not in chat.model.requests[0].tools
    assert "read_file" in chat.model.requests[0].tools
    assert "✗ write_file" in done.err
    assert "denied by lease.tools" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no model is given"),
        (["--base-url", "http://127.0.0.1:1"], "no model is given"),
        (["--base-url", "ftp://x", "--model", "m"], "--base-url must begin with http"),
        (["--base-url", "http://x", "--provider", "p", "--model", "m"], "both name the provider"),
        (["--secret", "K", "--model", "m"], "--secret is only for --base-url"),
        (["--resume", "--protocol", "text", "--model", "m", "--api", "openai"], "--protocol is for a new conversation"),
        (["--resume", "2020", "--model", "m", "--api", "openai"], "there is no conversation '2020'"),
        (["--model", "m", "--api", "openai"], "no key for OpenAI is given"),
        (["--model", "m", "--api", "anthropic"], "no key for Anthropic is given"),
        (["--model", "m", "--provider", "other"], "no provider 'other' is configured"),
        (["--model", "m", "--max-cost", "1", "--base-url", "http://127.0.0.1:1"], "has no price"),
        (["--tools", ",", "--model", "m"], "--tools names no tool"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_options_are_reported(albert: Albert, words: list[str], message: str) -> None:
    env = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))
    done = albert("chat", *words, stdin=b"hello", env=env)
    assert done.code in (1, 2, 3)
    assert message in done.err
    assert done.out == ""


# The owner's providers

PROVIDERS = """
primitives:
  inference:
    providers:
      here:
        base_url: {url}
        stream: false
        api_key: {{secret: KEY}}
        models: [small, big-*]
        price: {{prompt: 1000000, completion: 0}}
secrets: {{KEY: [{host}]}}
"""


def test_a_configured_provider_gives_address_key_model_and_price(chatting) -> None:
    chat = chatting(["one", "two"])
    chat.rules(PROVIDERS.format(url=chat.model.base_url, host="127.0.0.1"))
    key = {"ALBERT_SECRET_KEY": "sk-0123456789abcdef"}
    done = chat.albert("chat", "--json", "--max-cost", "100.5", stdin=b"hi", env=key)
    assert done.document()["cost"] == 7
    (request,) = chat.model.requests
    assert request.body["model"] == "small"
    assert request.headers["authorization"] == "Bearer sk-0123456789abcdef"
    done = chat.albert("chat", "--model", "big-1", "--api", "anthropic", "--provider", "here", stdin=b"hi", env=key)
    assert done.out == "two\n"
    assert chat.model.requests[1].headers["authorization"] == "Bearer sk-0123456789abcdef"
    refused = chat.albert("chat", "--model", "other", stdin=b"hi", env=key)
    assert (refused.code, "not among the models" in refused.err) == (3, True)
    assert chat.albert("chat", stdin=b"hi").err.startswith("error[not_found]: the secret KEY has no value")


def test_a_key_is_only_sent_to_the_hosts_of_the_rules(chatting) -> None:
    chat = chatting(["never"])
    chat.rules(PROVIDERS.format(url=chat.model.base_url, host="api.example.org"))
    done = chat.albert("chat", stdin=b"hi", env={"ALBERT_SECRET_KEY": "sk-0123456789abcdef"})
    assert "the secret KEY may be sent to api.example.org, not to '127.0.0.1'" in done.err
    assert chat.model.requests == []


def test_a_key_of_the_environment_is_not_sent_to_another_address(chatting) -> None:
    chat = chatting(["one", "two"])
    env = {"OPENAI_API_KEY": "sk-of-openai", "ANTHROPIC_API_KEY": "sk-of-anthropic"}
    for api in ("openai", "anthropic"):
        assert chat.albert(*chat.words, "--api", api, stdin=b"hi", env=env).code == 0
    assert "sk-of" not in str([request.headers for request in chat.model.requests])
    # Without an address, the provider's own variables are used.
    own = chatting(["three"])
    env["OPENAI_BASE_URL"] = own.model.base_url
    assert own.albert("chat", "--api", "openai", "--model", "m", stdin=b"hi", env=env).out == "three\n"
    assert own.model.requests[0].headers["authorization"] == "Bearer sk-of-openai"


def test_an_error_of_the_provider_does_not_show_the_key(chatting) -> None:
    chat = chatting([Reply("your key sk-0123456789abcdef is wrong", status=401)])
    done = chat.albert(*chat.words, "--secret", "KEY", stdin=b"hi", env={"ALBERT_SECRET_KEY": "sk-0123456789abcdef"})
    assert "the provider rejects the key" in done.err
    assert "0123456789" not in done.err


# On a terminal


def test_on_a_terminal_markdown_is_drawn_and_calls_are_folded(chatting) -> None:
    text = "# Title\n\nSome **bold** text\x1b[31m, a [link](http://evil.example) and List<int>.\n\n✓ bash command=x\n"
    chat = chatting([Reply("I look.", [("file_info", {"path": "."})]), Reply(text, piece=5)])
    code, out = terminal(chat, [(idle, b"Look!\r"), ("bash command=x", b""), (idle, b"/quit\r")])
    shown = lines_of(out)
    assert code == 0
    assert "  I look." in shown
    assert any(re.match(r'✓ file_info path="\." · \d+ ms · allowed', line) for line in shown)
    assert "  Title" in shown
    # The model's text is indented and can't look like a call; escape sequences and addresses are visible.
    assert r"  Some bold text\x1b[31m, a link (http://evil.example) and List<int>." in shown
    assert "  ✓ bash command=x" in shown
    assert "✓ bash command=x" not in shown


@pytest.mark.parametrize("length", [2, 40])
def test_a_source_and_what_it_prints_are_shown_in_some_lines(chatting, length: int) -> None:
    lines = ['"""S."""', *[f'print("\\x1b[31m{n}")' for n in range(length)], "return None"]
    source = "\n    ".join(["def show() -> None:", *lines])
    chat = chatting([Reply(calls=[("run_source", {"source": source})]), "Done."])
    code, seen = terminal(chat, [(idle, b"go\r"), ("Done.", b""), (idle, b"/quit\r")])
    assert code == 0
    shown = [line for line in lines_of(seen) if line.startswith("  │ ")]
    assert "\x1b[31m0" not in seen
    assert shown[:3] == ["  │ def show() -> None:", '  │     """S."""', '  │     print("\\x1b[31m0")']
    at = next(n for n, line in enumerate(shown) if line == "  │ \\x1b[31m0")
    if length == 2:
        assert (at, shown[at + 1 :]) == (5, ["  │ \\x1b[31m1"])
    else:
        assert (shown[at - 1], shown[-1], len(shown)) == ("  │ # … 19 more lines", "  │ … the result has the rest", 50)
    assert any(line.startswith(f"✓ run_source source=({length + 3} lines) · ") for line in lines_of(seen))


def test_the_command_that_continues_has_the_same_options(chatting) -> None:
    chat = chatting(["One.", "Two."])
    chat.words += ["--protocol", "text", "--tools", "read_file"]
    for _ in range(2):
        code, out = terminal(chat, [(idle, b"Hi\r"), (".", b""), (idle, b"/quit\r")], columns=400)
        assert code == 0
        (command,) = re.findall(r"to continue: albert (chat .* --resume \S+)", "\n".join(lines_of(out, 400)))
        assert command.count("--resume") == 1
        assert "--protocol" not in command
        assert "--tools read_file" in command
        chat.words = command.split()
    assert [m["content"] for m in chat.model.requests[-1].body["messages"][1:]] == ["Hi", "One.", "Hi"]


def test_the_four_commands(chatting) -> None:
    chat = chatting(["Hello."])
    steps = [(idle, b"Hi\r"), ("Hello.", b""), (idle, b"/help\r"), ("Alt-Enter", b""), (idle, b"/tools\r")]
    steps += [("  write_file  ", b""), (idle, b"/history\r"), ("continues one", b""), (idle, b"/nothing\r")]
    code, out = terminal(chat, [*steps, ("lists the commands", b""), (idle, b"\x04")])
    shown = lines_of(out)
    assert code == 0
    assert any(line.startswith("/history  the saved") for line in shown)
    assert any(line.startswith("  read_file  Read a text file") for line in shown)
    assert any(re.match(r"  \d{8}-\d{6}-\w{6}  Hi", line) for line in shown)
    assert "there is no command /nothing; /help lists the commands" in shown
    assert len(chat.model.requests) == 1


def test_an_approval_is_asked_at_the_terminal_and_the_call_goes_on(chatting) -> None:
    chat = chatting([Reply(calls=[("write_file", {"path": "a.txt", "content": "x"})]), "Written.", "Bye."])
    chat.rules("tools: {write_file: {requires_approval_in_modes: [NORMAL]}}")
    steps = [(idle, b"Go\r"), ("session or no? [no] ", b"once\n"), ("Written.", b""), (idle, b"/quit\r")]
    code, out = terminal(chat, steps)
    shown = lines_of(out)
    assert code == 0
    assert "May write_file be called?" in shown
    assert any(re.match(r'✓ write_file path="a\.txt" content="x" · .* · approved', line) for line in shown)
    assert (chat.albert.project / "a.txt").read_text() == "x"


def test_enter_alone_at_a_question_is_a_no(chatting) -> None:
    chat = chatting([Reply(calls=[("write_file", {"path": "a.txt", "content": "x"})]), "Not written."])
    chat.rules("tools: {write_file: {requires_approval_in_modes: [NORMAL]}}")
    steps = [(idle, b"Go\r"), ("or no? [no] ", b"\n"), ("Not written.", b""), (idle, b"/quit\r")]
    code, out = terminal(chat, steps)
    assert code == 0
    assert any(re.match(r'✗ write_file path="a\.txt" content="x" · .* · you said no$', line) for line in lines_of(out))


def test_ctrl_c_stops_the_answer_and_the_call_but_not_the_chat(chatting) -> None:
    end = threading.Event()

    def script(request: Request) -> Reply | str:
        if "count" in request.said:
            return Reply("one two three four", wait=end)
        return Reply(calls=[("sleep", {"seconds": 60})]) if "sleep" in request.said else "Still here."

    chat = chatting(script)
    steps = [
        (idle, b"count\r"),
        ("four", b"\x03"),
        (idle, b"sleep\r"),
        ("sleep seconds=60", b"\x03"),
        (idle, b"and now?\r"),
        ("Still here.", b""),
        (idle, b"\x03"),
        ("Ctrl-C again leaves", b""),
        (idle, b"\x03"),
    ]
    code, out = terminal(chat, steps)
    end.set()
    shown = lines_of(out)
    assert code == 0

    assert shown.count("! interrupted") == 2
    assert any(re.match(r"✗ sleep seconds=60 · .* · cancelled: the user has stopped this call", line) for line in shown)
    sent = json.dumps(chat.model.requests[-1].body)
    assert "one two three four\\n\\n[This answer was interrupted.]" in sent
    assert '\\"code\\": \\"cancelled\\"' in sent


def test_ctrl_c_at_a_question_withdraws_it(chatting) -> None:
    chat = chatting([Reply(calls=[("write_file", {"path": "a.txt", "content": "x"})]), "Fine."])
    chat.rules("tools: {write_file: {requires_approval_in_modes: [NORMAL]}}")
    steps = [
        (idle, b"Go\r"),
        ("session or no? [no] ", b"\x03"),
        (idle, b"Why\r"),
        ("Fine.", b""),
        (idle, b"\x04"),
    ]
    code, out = terminal(chat, steps)
    assert code == 0
    assert "! interrupted" in lines_of(out)
    assert not (chat.albert.project / "a.txt").exists()


# During a turn


def thinking(calls: Sequence[tuple[str, dict[str, str]]] = (), **more: bool) -> tuple[Reply, threading.Event]:
    """An answer that goes on until the event is set."""
    end = threading.Event()
    return Reply("Thinking", calls, wait=end, **more), end


def line(text: str) -> Callable[[list[str]], bool]:
    """Whether the last lines of the screen are these: what is half typed."""
    return lambda lines: "\n".join(lines).endswith(f"\n› {text}".rstrip())


def said(chat: Chat) -> list[str]:
    return [request.said for request in chat.model.requests]


def test_messages_typed_during_an_answer_wait_and_are_sent_in_turn(chatting) -> None:
    first, end = thinking()
    chat = chatting([first, "Two.", "Three."])
    steps = [
        (idle, b"one\r"),
        ("Thinking", b"two\rthree\rhalf"),
        (line("half"), b""),
        ("› three · waits", end.set),
        ("Three.", b""),
        (lambda lines: idle(lines) and line("half")(lines), b"\x03"),
        (line(""), b"\x04"),
    ]
    code, out = terminal(chat, steps)
    assert code == 0
    assert said(chat) == ["one", "two", "three"]
    shown = [text for text in lines_of(out) if text]
    assert shown[1:7] == ["› one", "  Thinking", "› two", "  Two.", "› three", "  Three."]


def test_ctrl_c_gives_back_the_messages_that_wait(chatting) -> None:
    first, end = thinking()
    chat = chatting([first, "Fine."])
    steps = [
        (idle, b"one\r"),
        ("Thinking", b"two\rthr"),
        ("› two · waits", b""),
        (line("thr"), b"\x03"),
        ("! interrupted", b""),
        (line("two\nthr"), b"ee\r"),
        ("Fine.", b"/quit\r"),
    ]
    code, _ = terminal(chat, steps)
    end.set()
    assert (code, said(chat)) == (0, ["one", "two\nthree"])


def test_messages_that_wait_come_back_if_the_provider_fails(chatting) -> None:
    first, end = thinking(cut=True)
    chat = chatting([first, "Fine."])
    steps = [(idle, b"one\r"), ("Thinking", b"two\r"), ("› two · waits", end.set), (line("two"), b"\r")]
    code, out = terminal(chat, [*steps, ("Fine.", b"/quit\r")])
    assert (code, said(chat)) == (0, ["one", "two"])
    assert any(text.startswith("error[") for text in lines_of(out))


def test_what_is_half_typed_comes_back_after_a_question(chatting) -> None:
    first, end = thinking([("write_file", {"path": "a.txt", "content": "x"})])
    chat = chatting([first, "Written.", "Bye."])
    chat.rules("tools: {write_file: {requires_approval_in_modes: [NORMAL]}}")
    steps = [
        (idle, b"Go\r"),
        ("Thinking", b"half"),
        (line("half"), end.set),
        ("session or no? [no] ", b"once\n"),
        (line("half"), b" typed\r"),
        ("Bye.", b"/quit\r"),
    ]
    code, out = terminal(chat, steps)
    assert (code, said(chat)[-1]) == (0, "half typed")
    assert (chat.albert.project / "a.txt").read_text() == "x"
    assert "› half typed" in lines_of(out)


def test_ctrl_d_during_an_answer_leaves_at_its_end(chatting) -> None:
    first, end = thinking()
    chat = chatting([first])
    code, out = terminal(chat, [(idle, b"one\r"), ("Thinking", b"\x04"), ("› /quit · waits", end.set)])
    assert code == 0
    assert "to continue: albert chat" in "\n".join(lines_of(out))
    assert "! interrupted" not in lines_of(out)


def test_what_was_typed_is_private_and_lines_fit_a_narrow_terminal(chatting) -> None:
    chat = chatting([Reply("word " * 40, [("file_info", {"path": "a" * 300})]), "Done " * 30])
    code, out = terminal(chat, [(idle, b"Look!\r"), ("Done Done", b""), (idle, b"/quit\r")], columns=40)
    assert code == 0
    assert [line for line in lines_of(out) if len(line) > 40 and "--resume" not in line and "›" not in line] == []
    typed = chat.albert.home / "state" / "chats" / "typed"
    assert typed.stat().st_mode & 0o777 == 0o600
    assert "Look!" in typed.read_text()


def test_a_missing_package_is_named(albert: Albert, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'openai' else find(name, *more)\n"
    )
    done = albert("chat", stdin=b"hi", env={"PYTHONPATH": f"{tmp_path}:{albert.environ['PYTHONPATH']}"})
    assert done.code == 2
    assert "albert chat needs openai" in done.err
    assert 'pip install "albert-tools[chat]"' in done.err

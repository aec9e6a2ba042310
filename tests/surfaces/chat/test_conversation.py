"""Saved conversations: private, atomic, one process at a time, and complete after kill -9."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
from pathlib import Path

import msgspec
import pytest

from albert_tools import Failure, ToolService
from albert_tools.surfaces.chat.conversation import Conversation, Saved, recent
from albert_tools.surfaces.chat.model import Message, Requested
from albert_tools.surfaces.chat.session import ChatSession
from tests.helpers.children import Parent, Report
from tests.helpers.scripted_model import Reply, scripted

from ..conftest import MODULES
from .conftest import Chats, calls, model_of


def test_a_conversation_is_saved_for_its_owner_only_and_resumed_by_its_first_digits(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    first = Saved.new(folder, "text")
    first.conversation.messages.append(Message("user", "Count   the words\nof a.txt"))
    first.save()
    path = folder / f"{first.conversation.id}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(Failure, match="another process has the conversation") as caught:
        Saved.resume(folder)
    assert caught.value.code == "exists"
    first.close()
    again = Saved.resume(folder, first.conversation.id[:8])
    assert again.conversation == first.conversation
    again.close()
    assert [c.title for c in recent(folder)] == ["Count the words of a.txt"]


def test_the_newest_conversation_is_resumed_by_default(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    folder.mkdir(mode=0o700)
    for day, text in (("02", "two"), ("01", "one")):
        saved = Conversation(f"202601{day}-000000-abcdef", messages=[Message("user", text)])
        (folder / f"{saved.id}.json").write_bytes(msgspec.json.encode(saved))
    found = Saved.resume(tmp_path / "chats")
    assert found.conversation.title == "two"
    found.close()
    with pytest.raises(Failure, match="2 conversations begin with '2026'"):
        Saved.resume(tmp_path / "chats", "2026")


def test_a_conversation_without_an_answer_is_not_resumed_by_default(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    folder.mkdir(mode=0o700)
    for day, messages in (
        ("02", [Message("user", "two")]),
        ("01", [Message("user", "one"), Message("assistant", "1")]),
    ):
        saved = Conversation(f"202601{day}-000000-abcdef", messages=messages)
        (folder / f"{saved.id}.json").write_bytes(msgspec.json.encode(saved))
    for name, title in (("", "one"), ("20260102", "two")):
        found = Saved.resume(folder, name)
        assert found.conversation.title == title
        found.close()


def test_a_conversation_without_a_message_leaves_nothing(tmp_path: Path) -> None:
    saved = Saved.new(tmp_path, "native")
    saved.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "none", "../x", "20260101"])
def test_a_conversation_that_does_not_exist_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(Failure, match="there is no conversation"):
        Saved.resume(tmp_path / "chats", name)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"id": 3}', b"\xff", b'{"id": "other"}', b'{"id": "20260101-x", "format": 9}']
)
def test_a_damaged_file_is_reported_and_left_out_of_the_list(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "chats"
    folder.mkdir(mode=0o700)
    (folder / "20260101-x.json").write_bytes(content)
    assert recent(folder) == []
    with pytest.raises(Failure) as caught:
        Saved.resume(folder, "20260101")
    assert caught.value.code == "damaged"


def test_a_folder_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir(mode=0o755)
    with pytest.raises(Failure, match="open to others"):
        Saved.new(tmp_path / "chats", "native")


def test_calls_without_results_get_one(tmp_path: Path) -> None:
    saved = Saved.new(tmp_path, "native")
    found = saved.conversation
    assert not found.unfinished("?")
    found.messages += [
        Message("user", "go"),
        Message("assistant", "", [Requested("a", "t", "{}"), Requested("b", "t", "{}")]),
    ]
    assert found.unfinished('"?"')
    assert [(r.id, r.text, r.ok) for r in found.messages[-1].results] == [("a", '"?"', False), ("b", '"?"', False)]
    del found.messages[-1].results[0]
    assert found.unfinished('"!"')
    assert [r.id for r in found.messages[-1].results] == ["b", "a"]
    assert not found.unfinished("?")
    saved.close()


def work_until_killed(report: Report, home: Path, work: Path, base_url: str, way: str) -> None:
    """Chat, and report each call that has ended and each answer that was received."""

    async def chat() -> None:
        saved = Saved.new(home / "state" / "chats", way.split()[1])  # type: ignore[arg-type]
        model = model_of(way.split()[0])("m", base_url, "key-of-the-test")
        async with (
            ToolService.open(home=home, workspace=work) as service,
            ChatSession(service, model, saved=saved, listen=lambda e: report(type(e).__name__)) as session,
        ):
            await session.ask("begin")

    asyncio.run(chat())


@pytest.mark.parametrize("way", ["openai native", "anthropic text"])
async def test_a_chat_that_was_killed_in_a_call_goes_on(chats: Chats, way: str) -> None:
    write, wait = ("write_file", {"path": "a.txt", "content": "x"}), ("sleep", {"seconds": 60})
    with scripted([calls(way, write, wait, text="Now. ")]) as model:
        child = Parent(work_until_killed, MODULES).fork(chats.home, chats.work, model.base_url, way)
        while child.hear() != "Finished":
            pass
        assert child.hear() == "Began"
        child.kill()
    chat = await chats.chat(["I go on."], way, saved=chats.saved(resume=""))
    assert (await chat.ask("Go on.")).text == "I go on."
    (request,) = chats.model.requests
    assert [r.get("error", {}).get("code") for r in request.results] == [None, "unknown_outcome"]
    assert [m["role"] for m in request.body["messages"] if m["role"] != "system"][:2] == ["user", "assistant"]
    assert "begin" in json.dumps(request.body["messages"])


async def test_an_answer_that_was_not_complete_when_the_process_died_is_asked_for_again(chats: Chats) -> None:
    end = threading.Event()
    with scripted([Reply("half", wait=end)]) as model:
        child = Parent(work_until_killed, MODULES).fork(chats.home, chats.work, model.base_url, "openai native")
        assert child.hear() == "Text"
        child.kill()
        end.set()
    chat = await chats.chat(["Whole."], saved=chats.saved(resume=""))
    await chat.ask("Again?")
    (request,) = chats.model.requests
    assert request.said == "begin\n\nAgain?"

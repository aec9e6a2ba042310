"""A conversation, saved after each message and each result.

Each conversation is one file in the state folder, which only its owner can read. A save replaces the whole file atomically, so
after a crash the conversation is complete up to the last message. While a conversation is open, its process has a lock on it.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.file_lock import open_locked, release
from albert_tools.engine.model.limits import MiB
from albert_tools.store.atomic import write_atomic, writing
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import make_private
from albert_tools.surfaces.chat.model import Message, Returned

Protocol = Literal["native", "text"]

#: Bytes of a saved conversation. No model has a context of this size.
MAX_BYTES = 32 * MiB
#: The most conversations that a list shows, and the most characters of their first message.
MAX_LISTED, MAX_TITLE = 20, 60
_FORMAT = 1


class Conversation(Struct):
    """A conversation.

    `protocol` says how calls are written: by the provider's function calling, or in the text. `tokens` and `cost` are the sums of
    all answers.
    """

    id: str
    protocol: Protocol = "native"
    created: str = ""
    messages: list[Message] = field(default_factory=list)
    tokens: int = 0
    cost: float = 0.0
    format: int = _FORMAT

    @property
    def title(self) -> str:
        """The beginning of the first message."""
        return " ".join(next((m.text for m in self.messages if m.role == "user"), "").split())[:MAX_TITLE]

    @property
    def answered(self) -> bool:
        """Whether the model has written anything."""
        return any(message.role == "assistant" for message in self.messages)

    def unfinished(self, result: str) -> bool:
        """Give each call without a result this one. Returns whether there was such a call."""
        calls = next((m.calls for m in reversed(self.messages) if m.role == "assistant"), [])
        last = self.messages[-1] if self.messages else None
        if last is None or last.role == "user" or not calls:
            return False
        if last.role == "assistant":
            last = Message("tools")
            self.messages.append(last)
        done = {result.id for result in last.results}
        missing = [call for call in calls if call.id not in done]
        last.results += [Returned(call.id, call.name, result, False) for call in missing]
        return bool(missing)


#: Results of calls that have none: the process was killed, or the user has cancelled the call.
UNKNOWN = (
    '{"ok": false, "error": {"code": "unknown_outcome", "message": "the chat ended while this call ran; '
    'it may have had effects", "hint": "check what it changed before you repeat it; list_runs shows the runs"}}'
)
CANCELLED = '{"ok": false, "error": {"code": "cancelled", "message": "the user has stopped this call; it may have had effects"}}'


class Saved:
    """The file of one open conversation. `close` releases its lock."""

    def __init__(self, folder: Path, conversation: Conversation, handle: int) -> None:
        self.conversation = conversation
        self._folder, self._handle = folder, handle
        self._path = folder / f"{conversation.id}.json"

    @classmethod
    def new(cls, folder: Path, protocol: Protocol) -> Saved:
        """A new conversation. Its file is written by the first `save`.

        Raises:
            Failure: `io_error`.
        """
        make_private(folder, "the conversations")
        name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(folder, Conversation(name, protocol, created), _locked(folder, name))

    @classmethod
    def resume(cls, folder: Path, name: str = "") -> Saved:
        """A saved conversation, by its id or the beginning of the id; by default the newest one with an answer.

        Raises:
            Failure: `not_found`, `invalid_arguments` if several ids begin so, `damaged`, `io_error`; `exists` if another process
                has the conversation open.
        """
        make_private(folder, "the conversations")
        ids = [each for each in _ids(folder) if each.startswith(name)]
        if not ids:
            raise Failure("not_found", f"there is no conversation {name!r}" if name else "there is no conversation yet")
        if name and len(ids) > 1 and name not in ids:
            raise Failure("invalid_arguments", f"{len(ids)} conversations begin with {name!r}", hint="give more digits")
        if not name:
            # A conversation may have no answer because the model could not be reached. If none has one, the newest is meant.
            name = next((each for each in ids if _read(folder / f"{each}.json").answered), ids[0])
        elif name not in ids:
            name = ids[0]
        handle = _locked(folder, name)
        try:
            return cls(folder, _read(folder / f"{name}.json"), handle)
        except BaseException:
            release(handle)
            raise

    def save(self) -> None:
        """Write the conversation, durably.

        Raises:
            Failure: `io_error`; `too_large` if the conversation has more than `MAX_BYTES`.
        """
        data = msgspec.json.encode(self.conversation)
        if len(data) > MAX_BYTES:
            raise Failure(
                "too_large", f"the conversation has more than {MAX_BYTES:,} bytes", hint="start a new conversation"
            )
        with writing(self._folder):
            try:
                write_atomic(self._folder, self._path, data)
            except OSError as error:
                raise io_failure("save the conversation", self._path, error) from error

    def close(self) -> None:
        """Release the conversation. The lock file of a conversation that was never saved is removed."""
        with suppress(OSError):
            if not self._path.exists():
                self._path.with_suffix(".lock").unlink()
        release(self._handle)


def recent(folder: Path) -> list[Conversation]:
    """The newest saved conversations, newest first. Damaged ones are left out.

    Raises:
        Failure: `io_error`.
    """
    conversations = []
    for name in _ids(folder)[:MAX_LISTED]:
        with suppress(Failure):
            conversations.append(_read(folder / f"{name}.json"))
    return conversations


def _ids(folder: Path) -> list[str]:
    """The ids of all saved conversations, newest first. An id begins with its time."""
    try:
        return sorted(
            (name.removesuffix(".json") for name in os.listdir(folder) if name.endswith(".json")), reverse=True
        )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise io_failure("list", folder, error) from error


def _read(path: Path) -> Conversation:
    try:
        conversation = msgspec.json.decode(path.read_bytes(), type=Conversation)
    except OSError as error:
        raise io_failure("read the conversation", path, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Failure("damaged", f"the conversation {path} is damaged: {error}", hint="remove the file") from error
    if conversation.format != _FORMAT or conversation.id != path.stem:
        raise Failure("damaged", f"the conversation {path} has another format or id", hint="remove the file")
    return conversation


def _locked(folder: Path, name: str) -> int:
    path = folder / f"{name}.lock"
    try:
        return open_locked(path)
    except BlockingIOError as error:
        raise Failure(
            "exists", f"another process has the conversation {name} open", hint="end that chat, or start another one"
        ) from error
    except OSError as error:
        raise io_failure("lock", path, error) from error

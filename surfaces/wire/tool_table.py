"""The table from the typed tools of the protocol to our tools, each with a function that writes the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from blake3 import blake3

from albert_tools.builtins.git.git_options import OVER_NETWORK
from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.wire import tool_pb2 as pb

#: The largest integer of an argument. No file is so long.
_MAX_INTEGER = 2**63 - 1


class MappedCall(NamedTuple):
    """The call of one of our tools that a message stands for. `content` is the bytes that an argument names by their hash."""

    tool: str
    arguments: Any
    content: bytes | None = None


class Row(NamedTuple):
    """`call` makes our call from a message. `fields` are the parameters that have another name in the message."""

    call: Callable[[Any], MappedCall]
    fields: Mapping[str, str] = {}


def ref_of(digest: bytes) -> str:
    """The reference of the content store for a hash."""
    return f"b3:{digest.hex()}"


def _file_read(message: pb.FileRead) -> MappedCall:
    offset = min(message.offset, _MAX_INTEGER)
    return MappedCall("read_bytes", {"path": message.path, "offset": offset, "limit": message.limit or None})


def _file_write(message: pb.FileWrite) -> MappedCall:
    content = message.content
    handle = ref_of(blake3(content).digest())
    how = {"create_only": message.create_only, "append": message.append}
    return MappedCall("write_bytes", {"path": message.path, "handle": handle, **how}, content)


def _file_edit(message: pb.FileEdit) -> MappedCall:
    texts = {"old_text": message.old_content, "new_text": message.new_content}
    return MappedCall("edit_file", {"path": message.path, **texts})


def _shell_exec(message: pb.ShellExec) -> MappedCall:
    given = {
        "command": message.command,
        "cwd": message.cwd,
        "env": list(message.env),
        "network": message.network_access,
    }
    return MappedCall("bash", given | ({"timeout": message.timeout_ms / 1000} if message.timeout_ms else {}))


def _git_operation(message: pb.GitOperation) -> MappedCall:
    """The address of a remote is a parameter of its own in our tool, because rules apply to it."""
    words, url = list(message.args), None
    if message.operation in OVER_NETWORK:
        url = next((word for word in words if word.startswith(("https://", "http://"))), None)
        if url is not None:
            words.remove(url)
    return MappedCall("git", {"operation": message.operation, "args": words, "url": url, "cwd": message.cwd})


def _inference_call(message: pb.InferenceCall) -> MappedCall:
    given: dict[str, Any] = {
        "provider": message.provider,
        "model": message.model,
        "prompt_hash": ref_of(message.prompt_hash),
        "temperature": message.temperature_scaled / 100,
    }
    if message.system_prompt_hash:
        given["system_hash"] = ref_of(message.system_prompt_hash)
    return MappedCall("inference", given | ({"max_tokens": message.max_tokens} if message.max_tokens else {}))


def _artifact_publish(message: pb.ArtifactPublish) -> MappedCall:
    return MappedCall(
        "publish_artifact",
        {
            "id": message.artifact_id,
            "handle": ref_of(message.content_hash),
            "category": message.category,
            "metadata": list(message.metadata),
        },
    )


def _tool_call(message: pb.ToolCall) -> MappedCall:
    text = message.arguments_json
    try:
        arguments = msgspec.json.decode(text) if text else {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise _not_an_object(f"must be JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise _not_an_object("must be a JSON object of the arguments by name")
    return MappedCall(message.name, arguments)


def _not_an_object(message: str) -> Failure:
    violation = {"field": "", "rule": "json", "message": message}
    return Failure("invalid_arguments", f"the arguments {message}", details={"violations": [violation]})


#: The name of the tool in `ToolRequest` → its row.
TOOLS: Mapping[str, Row] = {
    "file_read": Row(_file_read),
    "file_write": Row(_file_write, {"handle": "content"}),
    "file_edit": Row(_file_edit, {"old_text": "old_content", "new_text": "new_content"}),
    "shell_exec": Row(_shell_exec, {"timeout": "timeout_ms", "network": "network_access"}),
    "git_operation": Row(_git_operation, {"url": "args"}),
    "inference_call": Row(_inference_call, {"temperature": "temperature_scaled", "system_hash": "system_prompt_hash"}),
    "artifact_publish": Row(_artifact_publish, {"id": "artifact_id", "handle": "content_hash"}),
    "tool_call": Row(_tool_call),
}


def field_of(tool: str, parameter: str) -> str:
    """The field of the message from which a parameter comes: ``old_text`` of ``file_edit`` is ``file_edit.old_content``."""
    if tool == "tool_call":
        return f"tool_call.arguments_json.{parameter}".rstrip(".")
    name = parameter.partition("[")[0].partition(".")[0]
    return f"{tool}.{TOOLS[tool].fields.get(name, name)}{parameter[len(name) :]}"

"""Artifacts: values that an agent publishes once under a name, and that never change.

An artifact is a record (id, category, metadata) that names its content by hash. The content is in the content store, like large
results. The caller gives the content as a text, as a file of the workspace, or as the handle of a stored value. `read_result` also
accepts the handle of an artifact. The content of an artifact is never deleted. Each workspace has its own artifacts.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Literal, TypedDict

from albert_tools.builtins.files.results import MAX_SLICE, text_of
from albert_tools.builtins.text_encoding import encode
from albert_tools.engine.model.bounds import MAX_WRITE
from albert_tools.engine.model.definition import one_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.parameter_types import CategoryName, FilePath, Hash, Identifier, Metadata, WriteContent
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.protocols import Artifact, ArtifactStore, CallContext, ContentStore
from albert_tools.engine.model.schema import Bound

#: Bytes of a content that is given as a text or a file. A larger content must be a stored value already.
MAX_CONTENT = MAX_WRITE
#: Bytes of all metadata of one artifact. Metadata describes the content and should not contain it.
MAX_METADATA = 1 * MiB

#: What is true of a described artifact.
_OF_ARTIFACT = {".id": "same as id", ".size_bytes": "little", ".created": "time"}

Offset = Annotated[int, Bound(minimum=0)]
SliceLimit = Annotated[int, Bound(minimum=4, maximum=MAX_SLICE)]


class Described(TypedDict):
    """An artifact without its content."""

    id: str
    content_hash: str
    size_bytes: int
    category: str
    metadata: list[str]
    created: str


class Published(Described):
    """The result of `publish_artifact`."""

    new: bool


class Found(Described):
    """The result of `get_artifact`."""

    content: str
    next_offset: int | None


@primitive(
    effects=["read", "write"],
    category="artifact",
    family="artifacts",
    idempotent=True,
    paths={"path": "read"},
    uses={
        "id": "destination",
        "category": "payload",
        "content": "payload",
        "handle": "payload",
        "metadata": "payload",
    },
    outputs={**_OF_ARTIFACT, ".category": "same as category", ".new": "little"},
    source="file",
    invariants=[one_of("content", "path", "handle")],
)
def publish_artifact(
    context: CallContext,
    id: Identifier,
    category: CategoryName,
    content: WriteContent | None = None,
    path: FilePath | None = None,
    handle: Hash | None = None,
    metadata: Metadata = [],  # noqa: B006  (a default of a schema; nobody changes it)
) -> Published:
    """Publish a content under an id. An artifact never changes, and its content is never deleted.

    Returns {"id", "content_hash", "size_bytes", "category", "metadata", "created", "new"}: "content_hash" is "b3:" and
    64 hex digits, a handle for read_result; "created" is ISO 8601, UTC; "new" is false if the same artifact exists already,
    which is not a failure.

    Give the content in exactly one of three ways: as a text (stored as UTF-8), as a file of the workspace (its present
    bytes), or as the handle of a stored value (a large result or another artifact). Each workspace has its own ids;
    get_artifact finds an artifact in the same workspace.

    Fails with `exists` (another content, category or metadata was published under the id), `not_found` (no such file,
    or no value has this handle), `too_large` (a file that is too large to be read, metadata of more than 1 MiB),
    `damaged` (the stored value has changed), `not_a_file`, `encoding_error`, `invalid_arguments` (also if not exactly
    one of content, path and handle is given), `budget_exceeded`, `io_error`, `permission_denied`.

    Args:
        id: The name of the artifact, for example "report-2025-03-01".
        category: The kind of content, for example "report".
        content: The content as a text.
        path: The file to publish, for example "out/report.md".
        handle: The handle of a stored value, "b3:" and 64 hex digits.
        metadata: Facts about the content, as entries "name=value".
    """
    if content is None and path is None and handle is None:
        message = "give the content to publish: one of content, path and handle"
        violations = [{"field": "content", "rule": "required", "message": f"content: {message}"}]
        raise Failure("invalid_arguments", message, details={"violations": violations})
    artifacts, contents = _stores(context)
    # Refuse a value that can't be stored, before storing anything.
    for text, what in ((id, "the id"), (category, "the category"), *((entry, "the metadata") for entry in metadata)):
        encode(text, what)
    described = sum(len(encode(entry, "the metadata")) for entry in metadata)
    if described > MAX_METADATA:
        raise Failure(
            "too_large",
            f"the metadata have {described:,} bytes, and {MAX_METADATA:,} is the most",
            hint="put details into the content",
        )
    facts: dict[str, object] = {}
    if handle is not None:
        ref = handle if handle.startswith("b3:") else f"b3:{handle}"
        size = contents.renew(ref)
        facts["content_size_bytes"] = size
    else:
        data = encode(content, "the content") if content is not None else _file(context, path or ".")
        size = len(data)
        demand_room(context, size)
        ref = contents.put(data)
        facts |= {"size_bytes": size, "sha256": hashlib.sha256(data).hexdigest()}
    created = datetime.now(UTC).isoformat(timespec="microseconds")
    artifact = Artifact(id, ref, size, category, tuple(metadata), created)
    published, new = artifacts.publish(str(context.workspace.root), artifact)
    context.effect("write" if new else "read", artifact=id, category=category, content_hash=ref, **facts)
    return {**_described(published), "new": new}


@primitive(
    effects=["read"],
    family="artifacts",
    idempotent=True,
    outputs={**_OF_ARTIFACT, ".next_offset": "little"},
    source="file",
)
def get_artifact(
    context: CallContext,
    id: Identifier,
    offset: Offset = 0,
    limit: SliceLimit = 64 * 1024,
    encoding: Literal["utf-8", "base64"] = "utf-8",
) -> Found:
    """Find an artifact by its id, with a part of its content.

    Returns {"id", "content_hash", "size_bytes", "category", "metadata", "created", "content", "next_offset"}:
    "content" is at most `limit` bytes of the content from byte `offset` on. It is text, with U+FFFD for bytes that are not
    UTF-8. With encoding "base64" it is exactly these bytes as base64. "next_offset" is the offset of the next part, null at
    the end. "content_hash" is the handle of the content for read_result, which can find lines by a pattern. "size_bytes" is
    its size, "metadata" has entries "name=value", and "created" is ISO 8601, UTC.

    Fails with `not_found` (nothing was published under this id in this workspace), `damaged`, `invalid_arguments`,
    `io_error`.

    Args:
        id: The id of the artifact.
        offset: The first byte of the content to return.
        limit: The largest number of bytes of content to return.
        encoding: Whether to return text, or any bytes as base64.
    """
    import base64

    artifacts, contents = _stores(context)
    encode(id, "the id")
    artifact = artifacts.get(str(context.workspace.root), id)
    size = artifact.size_bytes
    if encoding == "base64":
        data = contents.slice(artifact.content, offset, limit)
        content = base64.b64encode(data).decode("ascii")
        following = offset + len(data) if offset + len(data) < size else None
    else:
        content, following = text_of(contents, artifact.content, size, offset, limit)
    read = max(0, (following or size) - offset)
    context.effect("read", artifact=id, content_hash=artifact.content, size_bytes=read)
    return {**_described(artifact), "content": content, "next_offset": following}


def _stores(context: CallContext) -> tuple[ArtifactStore, ContentStore]:
    if context.artifacts is None or context.contents is None:
        raise Failure("not_found", "there is no content store, so artifacts can't be published")
    return context.artifacts, context.contents


def _file(context: CallContext, path: str) -> bytes:
    real = context.workspace.locate(path)
    data: bytes = context.workspace.read(real, MAX_CONTENT, follow=False)
    context.effect(
        "read", path=context.workspace.recorded(real), size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest()
    )
    return data


def demand_room(context: CallContext, size: int) -> None:
    """Refuse to store more bytes than the session's budget has left.

    Raises:
        Failure: `budget_exceeded`.
    """
    left = context.left("bytes_written")
    if size > left:
        raise Failure(
            "budget_exceeded",
            f"{size:,} bytes are more than the {int(left):,} that the session's budget has left",
            hint="ask for a session with a larger budget",
            rule="lease.budget.bytes_written",
        )


def _described(artifact: Artifact) -> Described:
    return {
        "id": artifact.id,
        "content_hash": artifact.content,
        "size_bytes": artifact.size_bytes,
        "category": artifact.category,
        "metadata": list(artifact.metadata),
        "created": artifact.created,
    }

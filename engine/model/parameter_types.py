"""Parameter types for primitives. Each is a Python type with bounds.

A signature such as ``def read(path: FilePath, limit: ReadLimit = 65536)`` states which arguments a call accepts. The schema and the
messages are derived from it. `bounds` contains the limits, and `string_formats` the conditions that JSON Schema cannot express.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from albert_tools.engine.model.bounds import (
    HASH_BYTES,
    MAX_COMMAND,
    MAX_DEDUPE_KEY,
    MAX_EDIT,
    MAX_ENTRY,
    MAX_IDENTIFIER,
    MAX_ITEMS,
    MAX_PATH,
    MAX_READ,
    MAX_TIMEOUT_SECONDS,
    MAX_TOKENS,
    MAX_WORKING_DIRECTORY,
    MAX_WRITE,
)
from albert_tools.engine.model.schema import Bound

T = TypeVar("T")

#: A name of any kind: of a tool, a request or a session.
Identifier = Annotated[str, Bound(minLength=1, maxLength=MAX_IDENTIFIER)]
#: The provider of a model.
Provider = Annotated[str, Bound(minLength=1, maxLength=MAX_IDENTIFIER)]
#: The provider's name for a model.
ModelName = Annotated[str, Bound(minLength=1, maxLength=MAX_IDENTIFIER)]
#: A group of tools or of results.
CategoryName = Annotated[str, Bound(minLength=1, maxLength=MAX_IDENTIFIER)]
#: A dedupe key. An empty text means no key.
DedupeKey = Annotated[str, Bound(maxLength=MAX_DEDUPE_KEY)]

#: A path without ``..``. A path with ``..`` is an attempt to leave the workspace, so it is denied.
FilePath = Annotated[str, Bound(minLength=1, maxLength=MAX_PATH, format="albert-path")]
#: For a primitive that runs confined: callers give the path of a file, and the function gets the file's bytes.
FileContent = Annotated[bytes, Bound(type="string", minLength=1, maxLength=MAX_PATH, format="albert-path")]
#: A command's working directory, without ``..``. An empty text means the workspace.
WorkingDirectory = Annotated[str, Bound(maxLength=MAX_WORKING_DIRECTORY, format="albert-folder")]

#: A command for a shell.
CommandText = Annotated[str, Bound(minLength=1, maxLength=MAX_COMMAND, format="albert-command")]
#: One argument of a command.
Argument = Annotated[str, Bound(maxLength=MAX_ENTRY, format="albert-argument")]
#: ``NAME=value``, with one ``=``.
EnvironmentEntry = Annotated[str, Bound(maxLength=MAX_ENTRY, format="albert-entry")]
#: ``name=value``, with one ``=``.
MetadataEntry = Annotated[str, Bound(maxLength=MAX_ENTRY, format="albert-entry")]
#: A timeout in seconds.
TimeoutSeconds = Annotated[float, Bound(exclusiveMinimum=0, maximum=MAX_TIMEOUT_SECONDS)]

#: A list with items of any type: ``ItemList[str]``.
ItemList = Annotated[list[T], Bound(maxItems=MAX_ITEMS)]
#: The arguments of a command.
Arguments = ItemList[Argument]
#: The environment of a command.
Environment = ItemList[EnvironmentEntry]
#: Entries that a caller attaches to an artifact.
Metadata = ItemList[MetadataEntry]

#: The number of bytes to read.
ReadLimit = Annotated[int, Bound(minimum=1, maximum=MAX_READ)]
#: The new content of a file.
WriteContent = Annotated[str, Bound(maxLength=MAX_WRITE, format="albert-content")]
#: The text that an edit replaces.
OldText = Annotated[str, Bound(minLength=1, maxLength=MAX_EDIT, format="albert-edit")]
#: The text that replaces the old text.
NewText = Annotated[str, Bound(maxLength=MAX_EDIT, format="albert-edit")]

#: The most tokens of a model's answer.
MaxTokens = Annotated[int, Bound(minimum=1, maximum=MAX_TOKENS)]
#: A hash: lower-case hex digits, with or without the prefix ``b3:``.
Hash = Annotated[str, Bound(maxLength=2 * HASH_BYTES + 3, format="albert-hash")]
#: The hash of a system prompt. An empty text means no system prompt.
PromptHash = Annotated[str, Bound(maxLength=2 * HASH_BYTES + 3, format="albert-prompt-hash")]

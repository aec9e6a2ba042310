"""Kinds of argument, for the annotations of primitives: a type with its bounds.

``def read(path: WorkspacePath, limit: ReadLimit = 65536)`` says in the signature what a call may hold, and the schema,
the messages and pydantic's models all follow from that one place. The figures are in `bounds`, what JSON Schema can't
say is in `formats`; here is only which kind has which.
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

#: The name of anything: a tool, a request, a session.
Identifier = Annotated[str, Bound(minLength=1, maxLength=MAX_IDENTIFIER)]
#: Who serves a model.
Provider = Annotated[str, Bound(minLength=1, maxLength=MAX_IDENTIFIER)]
#: A model, as its provider calls it.
ModelName = Annotated[str, Bound(minLength=1, maxLength=MAX_IDENTIFIER)]
#: A group of tools or of results.
CategoryName = Annotated[str, Bound(minLength=1, maxLength=MAX_IDENTIFIER)]
#: What makes a repeat a repeat; empty: nothing does.
DedupeKey = Annotated[str, Bound(maxLength=MAX_DEDUPE_KEY)]

#: A path of any kind, without a ``..`` in it: that is not a slip but an attempt to leave, denied and counted as one.
FilePath = Annotated[str, Bound(minLength=1, maxLength=MAX_PATH, format="albert-path")]
#: The folder that a command runs in, without a ``..`` in it; empty for the usual one.
WorkingDirectory = Annotated[str, Bound(maxLength=MAX_WORKING_DIRECTORY, format="albert-folder")]

#: What a shell is to run.
CommandText = Annotated[str, Bound(minLength=1, maxLength=MAX_COMMAND, format="albert-command")]
#: One argument of a command.
Argument = Annotated[str, Bound(maxLength=MAX_ENTRY, format="albert-argument")]
#: ``NAME=value``, with one ``=``.
EnvironmentEntry = Annotated[str, Bound(maxLength=MAX_ENTRY, format="albert-entry")]
#: ``name=value``, with one ``=``.
MetadataEntry = Annotated[str, Bound(maxLength=MAX_ENTRY, format="albert-entry")]
#: Seconds.
TimeoutSeconds = Annotated[float, Bound(exclusiveMinimum=0, maximum=MAX_TIMEOUT_SECONDS)]

#: A list of anything: ``ItemList[str]``.
ItemList = Annotated[list[T], Bound(maxItems=MAX_ITEMS)]
#: The arguments of a command.
Arguments = ItemList[Argument]
#: The environment of a command.
Environment = ItemList[EnvironmentEntry]
#: What a caller wants kept with a result.
Metadata = ItemList[MetadataEntry]

#: How many bytes to read.
ReadLimit = Annotated[int, Bound(minimum=1, maximum=MAX_READ)]
#: What to write to a file.
WriteContent = Annotated[str, Bound(maxLength=MAX_WRITE, format="albert-content")]
#: The text that an edit looks for.
OldText = Annotated[str, Bound(minLength=1, maxLength=MAX_EDIT, format="albert-edit")]
#: The text that an edit puts in its place.
NewText = Annotated[str, Bound(maxLength=MAX_EDIT, format="albert-edit")]

#: How many tokens a model may answer with.
MaxTokens = Annotated[int, Bound(minimum=1, maximum=MAX_TOKENS)]
#: A hash: hex digits in lower case, with or without ``b3:`` before them.
Hash = Annotated[str, Bound(maxLength=2 * HASH_BYTES + 3, format="albert-hash")]
#: The hash of a system prompt, or empty where there is none.
PromptHash = Annotated[str, Bound(maxLength=2 * HASH_BYTES + 3, format="albert-prompt-hash")]

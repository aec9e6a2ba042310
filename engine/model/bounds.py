"""The limits on the arguments of all tools, with their units.

A tool's schema and the policy may set lower limits, never higher ones. The size of a text is measured in characters. It is measured
in bytes of UTF-8 if the comment says bytes.
"""

from __future__ import annotations

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB

#: Characters of an identifier (a tool, a request, a provider, a model, a category). The minimum is one character.
MAX_IDENTIFIER = 256
#: Characters of a dedupe key; an empty key has no effect.
MAX_DEDUPE_KEY = 256
#: Characters of a caller's trace: a W3C traceparent. Later versions of the format may be longer.
MAX_TRACE = 512
#: Characters of the reason that a caller gives for a call.
MAX_REASON_GIVEN = 10_000
#: Bytes of a path. This is Linux's own limit (PATH_MAX).
MAX_PATH = 4096
#: Bytes of the path of a command's working directory. An empty path means the workspace.
MAX_WORKING_DIRECTORY = 4096
#: Bytes of a command. The minimum is one byte.
MAX_COMMAND = 1 * MiB
#: Bytes of one argument of a command, or of one ``NAME=value`` entry.
MAX_ENTRY = 32 * KiB
#: Items of a list of arguments, entries, edits, paths and the like.
MAX_ITEMS = 1000
#: Seconds: the longest timeout that a call may request.
MAX_TIMEOUT_SECONDS = 3600
#: Bytes that one call may read into the content store.
MAX_READ = 1 * GiB
#: Bytes that one call may write to a file, or read as text: the text must fit in an output.
MAX_WRITE = 100 * MiB
#: Bytes of the old text of an edit, and bytes of the new text.
MAX_EDIT = 10 * MiB
#: Tokens of one answer of a model.
MAX_TOKENS = 1_000_000
#: Bytes of a hash. It is written as lower-case hex digits (two for each byte), with or without the prefix ``b3:``.
HASH_BYTES = 32
#: Examples of one source.
MAX_EXAMPLES = 50

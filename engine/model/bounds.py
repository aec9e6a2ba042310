"""The bounds on the arguments of all tools, with their units.

A tool's schema and the policy may set lower bounds, never higher ones. Texts are measured in characters, or in bytes of
UTF-8 where the comment says bytes.
"""

from __future__ import annotations

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB

#: Characters of an identifier (a tool, a request, a provider, a model, a category); at least one.
MAX_IDENTIFIER = 256
#: Characters of a dedupe key; an empty key has no effect.
MAX_DEDUPE_KEY = 256
#: Characters of a caller's trace: a W3C traceparent, with room for later versions.
MAX_TRACE = 512
#: Characters of the reason that a caller gives for a call.
MAX_REASON_GIVEN = 10_000
#: Bytes of a path: Linux's own limit (PATH_MAX).
MAX_PATH = 4096
#: Bytes of the folder that a command runs in; empty means the workspace.
MAX_WORKING_DIRECTORY = 4096
#: Bytes of a command; at least one.
MAX_COMMAND = 1 * MiB
#: Bytes of one argument of a command, or of one ``NAME=value`` entry.
MAX_ENTRY = 32 * KiB
#: Items of a list of arguments, entries, edits, paths and the like.
MAX_ITEMS = 1000
#: Seconds that a call may ask for as its timeout.
MAX_TIMEOUT_SECONDS = 3600
#: Bytes that one call may ask to read.
MAX_READ = 1 * GiB
#: Bytes that one call may write to a file.
MAX_WRITE = 100 * MiB
#: Bytes of the old text of an edit, and of the new one.
MAX_EDIT = 10 * MiB
#: Tokens of one answer of a model.
MAX_TOKENS = 1_000_000
#: Bytes of a hash, written as twice as many lower-case hex digits, with or without the prefix ``b3:``.
HASH_BYTES = 32

"""Every bound on what may be asked of a tool, named, with its unit.

They hold for all tools alike, whatever a tool's own schema adds; policy and a tool may set less, nobody more. A size
is in bytes of UTF-8 where it says bytes, else in characters.
"""

from __future__ import annotations

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB

#: Characters of an identifier (a tool, a request, a provider, a model, a category); there is one at least.
MAX_IDENTIFIER = 256
#: Characters of the key that makes a repeat give the recorded result; it may be empty, and then nothing is a repeat.
MAX_DEDUPE_KEY = 256
#: Characters of a caller's trace: a W3C traceparent, with room for what later versions add.
MAX_TRACE = 512
#: Characters of what a caller says a call is for.
MAX_REASON_GIVEN = 10_000
#: Bytes of a path: Linux takes no more in one go (PATH_MAX).
MAX_PATH = 4096
#: Bytes of the folder that a command runs in; empty is the session's own.
MAX_WORKING_DIRECTORY = 4096
#: Bytes of a command, of which there is one at least.
MAX_COMMAND = 1 * MiB
#: Bytes of one argument of a command, or of one entry of an environment or of metadata.
MAX_ENTRY = 32 * KiB
#: Items of a list of arguments, entries, edits, paths and the like.
MAX_ITEMS = 1000
#: Seconds that a call may ask for.
MAX_TIMEOUT_SECONDS = 3600
#: Bytes that one call may ask to read.
MAX_READ = 1 * GiB
#: Bytes that one call may write to a file.
MAX_WRITE = 100 * MiB
#: Bytes of a text that an edit looks for, and of the one that it puts in its place.
MAX_EDIT = 10 * MiB
#: Tokens that a model may be asked for in one answer.
MAX_TOKENS = 1_000_000
#: Bytes of a hash; spelled as twice as many hex digits in lower case, with or without ``b3:`` before them.
HASH_BYTES = 32

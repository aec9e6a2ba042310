"""The requests to a zygote, one byte each, and its reports: a head of fixed size, and an optional text after it.

This module is separate from the zygote, because the service needs only these.
"""

from __future__ import annotations

import struct

#: A worker that is kept ready rehearses. One that a run already waits for doesn't: it is as fast to run the program itself.
SPARE, AWAITED = b"sa"
#: Kind, process id, a number (the wait status, or the number of descriptors), and the length of the text.
REPORT = struct.Struct("<BiIH")
READY, BORN, ENDED, FAILED = range(4)

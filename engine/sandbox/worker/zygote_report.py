"""The format of the zygote's reports: a head of fixed size, and an optional text after it.

This module is separate from the zygote, because the service needs only the reports.
"""

from __future__ import annotations

import struct

#: Kind, process id, a number (the wait status, or the number of descriptors), and the length of the text.
REPORT = struct.Struct("<BiIH")
READY, BORN, ENDED, FAILED = range(4)

"""The format of the zygote's reports: a fixed head, and a text after it if there is one.

Apart from the zygote, because the service reads reports and needs nothing else of the zygote's.
"""

from __future__ import annotations

import struct

#: Kind, process id, a number (wait status, or how many descriptors come along), length of the text.
REPORT = struct.Struct("<BiIH")
READY, BORN, ENDED, FAILED = range(4)

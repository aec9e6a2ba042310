"""What the zygote tells the service: a fixed head, and a text behind it where there is one.

Apart from the zygote, because the service that reads it needs none of what the zygote is made of.
"""

from __future__ import annotations

import struct

#: What happened, process id, a number (status, or how many handles come along), length of the text.
REPORT = struct.Struct("<BiIH")
READY, BORN, ENDED, FAILED = range(4)

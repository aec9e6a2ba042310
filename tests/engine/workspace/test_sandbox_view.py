"""What a command sees of the workspace, if a part of it can't be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Without the capabilities of root that read every folder.
AS_USER = """
import ctypes, struct, sys
from albert_tools.engine.workspace.path_judge import AllowAll
from albert_tools.engine.workspace.sandbox_view import shown_and_hidden

header, none = struct.pack("II", 0x20080522, 0), struct.pack("IIIIII", 0, 0, 0, 0, 0, 0)
assert sys.platform != "linux" or ctypes.CDLL(None).capset(header, none) == 0
print(shown_and_hidden(AllowAll(), sys.argv[1]))
"""


def test_a_folder_that_can_not_be_read_is_hidden(tmp_path: Path) -> None:
    """A command could make it readable, and then read forbidden files that nobody has found in it."""
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o000)
    try:
        line = [sys.executable, "-c", AS_USER, str(tmp_path)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
    finally:
        keys.chmod(0o700)
    assert done.stdout == f"(None, [{str(keys)!r}])\n"

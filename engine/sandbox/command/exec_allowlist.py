"""Letting a command start certain programs and no others, by a Landlock rule, whatever else confines it.

For git, which knows more ways to be told by a repository what to run than anybody has counted: the settings are switched off one
by one, and what was forgotten fails here. The rule is applied inside the sandbox, by a program of its own (`standalone`) that then
becomes the command; bubblewrap itself couldn't mount anything with it.
"""

from __future__ import annotations

import os
import sys

from albert_tools.engine.sandbox.kernel.landlock import EXECUTE, restrict
from albert_tools.engine.sandbox.kernel.prctl import no_new_privileges

#: The kernel's modules that this one imports, for `standalone`.
KERNEL = ("libc", "prctl", "landlock")


def main() -> None:
    """Become a command; the arguments are the number of allowed paths, these, and the command's words."""
    count = int(sys.argv[1])
    allowed, command = sys.argv[2 : 2 + count], sys.argv[2 + count :]
    try:
        _become(allowed, command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _become(allowed: list[str], command: list[str]) -> None:
    """Be `command`, and start nothing but the files and what is in the folders of `allowed`, as far as they exist."""
    grants = []
    for path in allowed:
        try:
            grants.append((os.open(path, os.O_PATH | os.O_CLOEXEC), EXECUTE))
        except FileNotFoundError:
            continue
    no_new_privileges()
    restrict(grants, handled=EXECUTE)
    os.execvp(command[0], command)

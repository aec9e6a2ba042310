"""Allows a command to start only certain programs, by a Landlock rule. It works in addition to every other confinement.

It is used for git. A repository can name programs that git runs, in so many settings that no list of them is complete. The known
settings are disabled one by one; this rule blocks the rest. The rule is applied inside the sandbox, by a separate program
(`standalone`) that then executes the command. It can't be applied earlier, because bubblewrap couldn't mount anything under it.
"""

from __future__ import annotations

import os
import sys

from albert_tools.engine.sandbox.kernel.landlock import EXECUTE, REFER, restrict
from albert_tools.engine.sandbox.kernel.prctl import no_new_privileges

#: The modules in `kernel` that this module imports, for `standalone`.
KERNEL = ("libc", "prctl", "landlock")


def main() -> None:
    """Execute a command. The arguments are the number of allowed paths, these paths, and the words of the command."""
    count = int(sys.argv[1])
    allowed, command = sys.argv[2 : 2 + count], sys.argv[2 + count :]
    try:
        _become(allowed, command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _become(allowed: list[str], command: list[str]) -> None:
    """Execute `command`. It can start only the existing files in `allowed`, and programs in the existing folders in `allowed`."""
    grants = []
    for path in allowed:
        try:
            grants.append((os.open(path, os.O_PATH | os.O_CLOEXEC), EXECUTE))
        except FileNotFoundError:
            continue
    # Without this right, Landlock refuses every move to another folder; git moves the log of a branch.
    grants.append((os.open("/", os.O_PATH | os.O_CLOEXEC), REFER))
    no_new_privileges()
    restrict(grants, handled=EXECUTE | REFER)
    os.execvp(command[0], command)

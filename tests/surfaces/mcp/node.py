"""Programs from npm, which the tests marked `surfaces` run."""

from __future__ import annotations

import re
import shutil
import subprocess

#: The Node that the conformance suite and the inspector need.
NEEDED = 22


def npx(package: str, program: str, *arguments: str) -> list[str]:
    """The command line that downloads a package and runs its program, with a Node that is new enough."""
    node, found = (shutil.which(name) or "" for name in ("node", "npx"))
    assert "" not in (node, found), "the tests of the surfaces need Node; `make test-surfaces` says how to install it"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    major = re.match(r"v(\d+)", version)
    own = [] if major and int(major.group(1)) >= NEEDED else ["--package", f"node@{NEEDED}"]
    return [found, "--yes", "--package", package, *own, "--", program, *arguments]

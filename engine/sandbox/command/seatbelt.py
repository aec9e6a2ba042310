"""Creates a profile for macOS's own sandbox (`sandbox-exec`).

With it, a command can read the system's programs and the workspace, write the workspace and a private folder, and use no network.
The profile follows Apple's published syntax. Its authors have never tried it on macOS.
"""

from __future__ import annotations

import json

from albert_tools.engine.sandbox.command.view import View, programs

PROGRAM = "/usr/bin/sandbox-exec"

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Frameworks",
    "/Library/Developer",
    "/private/etc/ssl",
    "/opt/homebrew",
)
_FILES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/private/etc/passwd", "/private/etc/localtime")


def profile(view: View, temporary: str) -> str:
    """The profile. If several rules match a request, the last one applies."""
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow process-exec)",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        '(allow file-read-metadata (subpath "/"))',
    ]
    lines += [f"(allow file-read* (subpath {_quoted(path)}))" for path in (*_SYSTEM, *programs(), *view.readable)]
    lines += [f"(allow file-read* (literal {_quoted(path)}))" for path in _FILES]
    lines += ['(allow file-write-data (literal "/dev/null"))']
    lines += [f"(allow file-read* (subpath {_quoted(path)}))" for path in (temporary, *view.tops)]
    lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in (temporary, *view.changeable)]
    lines += [f"(deny file-write* (subpath {_quoted(path)}))" for path in view.sealed]
    # Moving a folder away would also move the protected paths below it.
    lines += [f"(deny file-write-unlink (literal {_quoted(path)}))" for path in view.pinned]
    lines += [f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in view.hidden]
    lines.append("(deny network*)")
    return "\n".join(lines) + "\n"


def _quoted(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)

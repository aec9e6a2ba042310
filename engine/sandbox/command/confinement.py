"""Finds the confinements for commands on this machine by trying them. Without a confinement, no command runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import Literal, NamedTuple, get_args

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command import seatbelt, temporary_folders
from albert_tools.engine.sandbox.command.seccomp_filters import command_filter
from albert_tools.engine.sandbox.kernel import landlock
from albert_tools.engine.sandbox.kernel.cgroups import sweep

Kind = Literal["bwrap", "landlock", "seatbelt"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: A sentence about each confinement, strongest first.
DESCRIPTIONS: dict[str, str] = {
    "bwrap": "namespaces of its own (bubblewrap) and a filter: no other process, no network, and of the files only the workspace",
    "landlock": "Landlock and a strict filter; weaker than bubblewrap: no network at all, and where something in the workspace is "
    "protected, the folders above it take no new files",
    "seatbelt": "macOS's own sandbox, with a profile that its authors have never tried",
}

#: Seconds until a trial times out. It usually takes some hundredths of a second.
_PATIENCE = 20
#: The folders in which programs are searched. The caller's own PATH may contain folders that others can write.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Found(NamedTuple):
    """The confinements, best first; the reasons why others are missing; the path of bubblewrap, and whether it can disable
    namespaces."""

    kinds: tuple[Kind, ...]
    missing: dict[str, str]
    bwrap: str = ""
    nested_off: bool = False

    def best(self, wanted: str | None = None) -> Kind:
        """The best confinement, or the wanted one.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        if wanted is not None and wanted not in self.kinds:
            why = self.missing.get(wanted, f"the kinds are {', '.join(KINDS)}")
            raise Failure("sandbox_unavailable", f"commands can't be confined by {wanted} here: {why}", hint=_hint())
        if not self.kinds:
            why = "; ".join(f"{kind}: {reason}" for kind, reason in self.missing.items())
            raise Failure(
                "sandbox_unavailable", f"commands can't be confined here, so no command runs ({why})", hint=_hint()
            )
        return next(kind for kind in self.kinds if wanted in (None, kind))


def _hint() -> str:
    if sys.platform == "linux":
        return "install bubblewrap (`apt-get install bubblewrap`), or use a kernel with Landlock; see `albert doctor`"
    return "see `albert doctor`"


@cache
def found() -> Found:
    """The confinements of this machine. They are tried once in each process, which takes some hundredths of a second."""
    sweep()
    temporary_folders.sweep()
    missing: dict[str, str] = {}
    kinds: list[Kind] = []
    nested_off = False
    program = shutil.which("bwrap", path=PATH) or ""
    if sys.platform == "linux":
        why, nested_off = _try_bwrap(program)
        for kind, reason in (("bwrap", why), ("landlock", _try_landlock())):
            if reason:
                missing[kind] = reason
            else:
                kinds.append(kind)  # type: ignore[arg-type]
    elif sys.platform == "darwin":
        if os.access(seatbelt.PROGRAM, os.X_OK):
            kinds.append("seatbelt")
        else:
            missing["seatbelt"] = f"there is no {seatbelt.PROGRAM}"
    return Found(tuple(kinds), missing, program, nested_off)


def _try_bwrap(program: str) -> tuple[str, bool]:
    """The reason why bubblewrap can't be used, empty if it can; and whether it can disable namespaces inside."""
    if not program:
        return "bubblewrap is not installed", False
    if command_filter("loose") is None:
        return f"no filter is known for {os.uname().machine}", False
    said = ""
    for nested_off in (True, False):
        command = [program, *_TRIAL, *(["--disable-userns"] if nested_off else []), "--", "/bin/bash", "-c", ":"]
        try:
            done = subprocess.run(
                command, env={}, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error), False
        if done.returncode == 0:
            return "", nested_off
        said = done.stderr.decode("utf-8", "replace").strip()[:300] or f"it ended with {done.returncode}"
    return said, False


_TRIAL = (
    *(
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
        "--new-session",
    ),
    *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--cap-drop", "ALL"),
)


def _try_landlock() -> str:
    if command_filter("strict") is None:
        return f"no filter is known for {os.uname().machine}"
    known = landlock.version()
    if known < 1:
        return "the kernel has no Landlock"
    return "" if known >= 3 else f"the kernel's Landlock has version {known}, and version 3 is needed"

"""What the tests need of the system, beside Python packages: found, installed where that may be done, or named with the way to it.

Nothing is left out of the tests because a program is missing: they would prove less than they seem to. As root with apt-get the
packages are installed; anybody else is told what to type. Where everything is there it takes no time and asks no server.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

#: Where the system's programs are; what somebody has in a home can't be seen by other users, as whom attacks are made.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"


class Program(NamedTuple):
    """A program, the package that has it, and which tests need it."""

    name: str
    package: str
    wanted_for: str


PROGRAMS = [
    Program("git", "git", "git with real repositories"),
    Program("bash", "bash", "commands, and how they are read before they run"),
    *(
        [
            Program("bwrap", "bubblewrap", "commands confined by namespaces, and the attacks on that"),
            Program("python3", "python3-minimal", "attacks made as another user, who can't use a Python of your own"),
        ]
        if sys.platform == "linux"
        else []
    ),
]


def missing(path: str = PATH) -> list[Program]:
    """The programs that aren't in the folders of `path`."""
    return [program for program in PROGRAMS if shutil.which(program.name, path=path) is None]


def advice(lacking: Sequence[Program], path: str = PATH) -> str:
    """What is missing, what for, and how to get it here."""
    packages = " ".join(p.package for p in lacking)
    ways = {
        "apt-get": f"sudo apt-get install {packages}",
        "dnf": f"sudo dnf install {packages.replace('-minimal', '')}",
        "pacman": f"sudo pacman -S {packages.replace('python3-minimal', 'python')}",
        "brew": f"brew install {packages}",
    }
    way = next((ways[name] for name in ways if shutil.which(name, path=path)), f"install {packages}")
    named = "".join(f"\n  {p.name:8} for {p.wanted_for}" for p in lacking)
    return f"The tests need programs that this system doesn't have:{named}\nGet them with: {way}"


def install(lacking: Sequence[Program]) -> bool:
    """Have apt-get install them, after fetching its lists only where it must; whether it could."""
    apt = shutil.which("apt-get", path=PATH)
    if apt is None or os.geteuid() != 0:
        return False
    packages = [p.package for p in lacking]
    print(f"installing {' '.join(packages)} …", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wanted = [apt, "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    for command in (wanted, [apt, "update", "--quiet"], wanted):
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if command is wanted and done.returncode == 0:
            return True
    print(done.stderr.decode(errors="replace")[-1000:], file=sys.stderr)
    return False


def unusable() -> str:
    """Of the confinements that the tests use on Linux, those that are there and don't work, with the reason; else nothing."""
    if sys.platform != "linux":
        return ""
    from albert_tools.engine.sandbox.command.confinement import found

    kinds = {kind: why for kind, why in found().missing.items() if kind in ("bwrap", "landlock")}
    return "".join(f"\n  {kind}: {why}" for kind, why in kinds.items())


def main() -> int:
    """0 when the tests can run as they are meant to; else it is said why not."""
    lacking = missing()
    if lacking and not (install(lacking) and not missing()):
        print(advice(missing()), file=sys.stderr)
        return 1
    if reasons := unusable():
        # In a container it is its makers' to allow; what can be tested without it still is, and the rest fails by name.
        print(
            f"Commands can't be confined here as the tests want it, so some of them will fail:{reasons}",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

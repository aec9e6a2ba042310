"""Checks that this system has the programs that the tests need in addition to Python packages.

A missing program does not skip tests: a passing run would then prove less than it seems to. As root, this script installs
missing packages with apt-get. For any other user, or without apt-get, it prints the command that installs them. If no program
is missing, the script takes no time and contacts no server.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

#: The folders of the system's programs. Some attacks run as another user, who can't use programs in somebody's home
#: folder.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"


class Program(NamedTuple):
    """A program, the package that contains it, and the tests that need it."""

    name: str
    package: str
    wanted_for: str


PROGRAMS = [
    Program("git", "git", "git with real repositories"),
    Program("bash", "bash", "commands, and how they are read before they run"),
    Program("sqlite3", "sqlite3", "agents' tools that use a database by its command"),
    Program("chromium", "chromium", "the pages of the review in a real browser"),
    Program("pg_ctl", "postgresql", "the record on a PostgreSQL server, which the tests start for themselves"),
    *(
        [
            Program("bwrap", "bubblewrap", "commands confined by namespaces, and the attacks on that"),
            Program("ip", "iproute2", "a network that is cut between workers and their server"),
            Program("python3", "python3-minimal", "attacks made as another user, who can't use a Python of your own"),
        ]
        if sys.platform == "linux"
        else []
    ),
]

#: What `make test-surfaces` needs besides. They may also be in the home folder.
FOR_SURFACES = [
    Program("node", "nodejs", "clients of the wire protocol and of MCP in another language"),
    Program("npx", "npm", "the conformance suite and the inspector of MCP"),
    Program("nvim", "neovim", "the language server in an editor"),
]


def located(name: str, path: str = PATH) -> str | None:
    """Return the path of a program, or None. Debian has PostgreSQL's programs in a folder for each version."""
    return shutil.which(name, path=os.pathsep.join([path, *sorted(glob.glob("/usr/lib/postgresql/*/bin"))]))


def missing(path: str = PATH, programs: Sequence[Program] = PROGRAMS) -> list[Program]:
    """Return the programs that are not in the folders of `path`."""
    return [program for program in programs if located(program.name, path) is None]


def advice(lacking: Sequence[Program], path: str = PATH) -> str:
    """Return a text that lists the missing programs, what they are needed for, and the command that installs them."""
    packages = " ".join(p.package for p in lacking)
    ways = {
        "apt-get": f"sudo apt-get install {packages}",
        "dnf": "sudo dnf install "
        + packages.replace("-minimal", "").replace("iproute2", "iproute").replace("postgresql", "postgresql-server"),
        "pacman": f"sudo pacman -S {packages.replace('python3-minimal', 'python')}",
        "brew": f"brew install {packages}",
    }
    way = next((ways[name] for name in ways if shutil.which(name, path=path)), f"install {packages}")
    named = "".join(f"\n  {p.name:8} for {p.wanted_for}" for p in lacking)
    return f"The tests need programs that this system doesn't have:{named}\nGet them with: {way}"


def install(lacking: Sequence[Program]) -> bool:
    """Install the packages with apt-get. The package lists are updated only if the first try fails. Returns whether the
    installation succeeded."""
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
    """Return the Linux confinements that the tests use and that do not work here, with the reasons. Returns "" if all work."""
    if sys.platform != "linux":
        return ""
    from albert_tools.engine.sandbox.command.confinement import found

    kinds = {kind: why for kind, why in found().missing.items() if kind in ("bwrap", "landlock")}
    return "".join(f"\n  {kind}: {why}" for kind, why in kinds.items())


def lacking_now(surfaces: bool) -> list[Program]:
    """Return the programs that are missing; with `surfaces`, also those that `make test-surfaces` needs."""
    own = os.environ.get("PATH", "") + os.pathsep + PATH
    return missing() + (missing(own, FOR_SURFACES) if surfaces else [])


def main(arguments: Sequence[str] = ()) -> int:
    """Install or list what is missing. Returns 0 if the tests can run, and 1 if a program is still missing.

    The argument ``surfaces`` adds what `make test-surfaces` needs.
    """
    surfaces = "surfaces" in arguments
    lacking = lacking_now(surfaces)
    if lacking and not (install(lacking) and not lacking_now(surfaces)):
        print(advice(lacking_now(surfaces)), file=sys.stderr)
        return 1
    if reasons := unusable():
        # Only the operator of a container can allow confinement in it. The other tests still run, and the affected tests fail
        # by name.
        print(
            f"Commands can't be confined here as the tests want it, so some of them will fail:{reasons}",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

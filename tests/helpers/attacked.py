"""Builds a workspace with protected files, runs an attacking command in it, and checks what the command has changed."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from albert_tools.engine.sandbox.command.confinement import PATH, found
from albert_tools.engine.sandbox.command.output import Output
from albert_tools.engine.sandbox.command.run_command import run
from albert_tools.engine.sandbox.command.standalone import python
from albert_tools.engine.sandbox.command.task import Bounds, Command, MiB
from albert_tools.engine.sandbox.command.view import View
from tests.helpers.probes import MARK

#: A secret that no command may read.
SECRET = "the-secret-that-stays"
#: A user id that this machine's user list does not contain.
SOMEBODY = 23456
#: Its processes are all ended by a test, so no other test may use it.
EXPENDABLE = 23457

PROBES = Path(__file__).with_name("probes.py").read_text()
#: The file that a command's BASH_ENV names. Bash runs this file first.
EARLY = """
for n in {3..99}; do
  for way in .. ../.. ../../..; do echo "$(< /proc/self/fd/$n/$way/outside/secret)"; done
done 2> /dev/null
"""
BOUNDS = Bounds(memory=256 * MiB, processes=48, temporary=48 * MiB)
#: The time limit, in seconds, of probes that never end by themselves.
SHORT = {"outlive_the_timeout": 1.0, "fork_without_end": 4.0, "take_memory_across_children": 20.0}


#: Probes that each need a command of their own. Such a probe ends its command, outlives it, or uses up its limits.
ALONE = {
    *SHORT,
    "outlive_the_command",
    "kill_others",
    "kill_what_is_above",
    "take_memory_without_a_name",
    "take_memory_that_is_shared",
    "fill_the_temporary_folder",
    "print_without_end",
}


class World:
    """A workspace with protected parts. Around it are other files, another process, listening sockets and shared memory."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.workspace, self.outside = top / "ws", top / "outside"
        for folder in ("ws/.git/hooks", "ws/sub", "ws/secrets", "outside"):
            (top / folder).mkdir(parents=True)
        for name, content in {
            "outside/secret": SECRET,
            "outside/target": "as it was",
            "ws/secrets/inner": SECRET,
            "ws/.git/hooks/pre-commit": "as it was",
            "ws/.git/config": "as it was",
            "ws/.bashrc": "as it was",
            "ws/sub/here": "mine",
            "ws/sub/early": EARLY,
            "ws/sub/probes.py": PROBES,
        }.items():
            (top / name).write_text(content)
        # Alone in its process group.
        self.victim = subprocess.Popen(["/bin/sleep", "1000"], env={"SECRET": SECRET}, start_new_session=True)
        self._listening = [
            self._listen(socket.AF_INET, ("127.0.0.1", 0)),
            self._listen(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM),
            self._listen(socket.AF_UNIX, f"\0albert-{os.getpid()}"),
            self._listen(socket.AF_UNIX, str(self.outside / "socket")),
            self._listen(socket.AF_UNIX, str(self.outside / "letters"), socket.SOCK_DGRAM),
            self._listen(socket.AF_UNIX, f"\0albert-letters-{os.getpid()}", socket.SOCK_DGRAM),
        ]
        self._six: socket.socket | None = None
        try:
            port = self._listening[0].getsockname()[1]
            self._listening.append(self._listen(socket.AF_INET6, ("::1", port)))
        except OSError:
            pass
        #: The key of shared memory that belongs to another process.
        self._key = 0x0A1B0000 + os.getpid() % 0xFFFF
        self._shared = ctypes.CDLL(None).shmget(self._key, 4096, 0o1600)
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        if self._shared >= 0:
            ctypes.memmove(libc.shmat(self._shared, None, 0), SECRET.encode() + b"\0", len(SECRET) + 1)
        self.before = self.look()

    @staticmethod
    def _listen(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> socket.socket:
        made = socket.socket(family, kind)
        made.bind(address)
        if kind == socket.SOCK_STREAM:
            made.listen()
        made.setblocking(False)
        return made

    def facts(self) -> dict[str, Any]:
        """The facts that the attacker knows."""
        stack = next(
            line for line in Path(f"/proc/{self.victim.pid}/maps").read_text().splitlines() if "[stack]" in line
        )
        return {
            "ws": str(self.workspace),
            "out": str(self.outside),
            "victim": self.victim.pid,
            "service": os.getpid(),
            "address": int(stack.split("-")[1].split()[0], 16) - 16,
            "tcp": self._listening[0].getsockname()[1],
            "udp": self._listening[1].getsockname()[1],
            "abstract": f"\0albert-{os.getpid()}",
            "path": str(self.outside / "socket"),
            "letters": [str(self.outside / "letters"), f"\0albert-letters-{os.getpid()}"],
            "shared": self._key,
        }

    def view(self) -> View:
        """The sandbox view of the command."""
        root = str(self.workspace)
        kept = tuple(f"{root}/{name}" for name in (".git/hooks", ".git/config", ".bashrc"))
        return View(root, root, hidden=(f"{root}/secrets",), sealed=kept)

    def look(self) -> dict[str, Any]:
        """The present state of the files and objects that the command must not change."""
        found: dict[str, Any] = {}
        for name in ("outside", "ws/.git", "ws/secrets", "ws/.bashrc"):
            for path in _below(self.top / name):
                found[str(path.relative_to(self.top))] = _looks(path)
        for system in ("/usr/bin/env", "/usr/bin", "/etc", "/usr"):
            found[system] = os.stat(system).st_mtime_ns
        found["victim"] = (
            self.victim.poll(),
            self.victim.poll() is None
            and (
                os.getpriority(os.PRIO_PROCESS, self.victim.pid),
                sorted(os.sched_getaffinity(self.victim.pid)),
                resource.prlimit(self.victim.pid, resource.RLIMIT_NOFILE),
            ),
        )
        return found

    def wrong(self, output: str) -> list[str]:
        """Return a list of problems that the attack caused. `output` is what the attack printed."""
        now = self.look()
        found = [
            f"{name}: {self.before.get(name)} -> {now.get(name)}"
            for name in {*now, *self.before}
            if now.get(name) != self.before.get(name)
        ]
        if SECRET in output:
            found.append("the secret was printed")
        found += [line for line in output.splitlines() if line.startswith("ESCAPED")]
        for made in self._listening:
            try:
                heard = made.recv(100) if made.type == socket.SOCK_DGRAM else made.accept()
                found.append(f"{made.getsockname()!r} heard {heard!r}")
            except OSError:
                pass
        for path in _below(self.workspace):
            if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID) and not path.is_dir():
                found.append(f"{path} becomes its owner")
        beats = self.workspace / "sub/beats"
        if beats.exists():
            size = beats.stat().st_size
            time.sleep(0.3)
            if beats.stat().st_size != size:
                found.append("it lives on")
        return found

    def close(self) -> None:
        """Remove everything that the constructor created."""
        self.victim.kill()
        self.victim.wait()
        for made in self._listening:
            made.close()
        if self._shared >= 0:
            ctypes.CDLL(None).shmctl(self._shared, 0, None)
        shutil.rmtree(self.top, ignore_errors=True)


def _below(top: Path) -> Iterator[Path]:
    if os.path.lexists(top):
        yield top
    for folder, folders, files in os.walk(top):
        yield from (Path(folder) / name for name in (*folders, *files))


def _looks(path: Path) -> tuple[Any, ...]:
    facts = path.lstat()
    marks = [(name, os.getxattr(path, name)) for name in os.listxattr(path)] if stat.S_ISREG(facts.st_mode) else []
    content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else sorted(os.listdir(path)) if path.is_dir() else None
    return facts.st_mode, facts.st_uid, facts.st_mtime_ns, facts.st_size, facts.st_ino, marks, content


def attack(report: Callable[[Any], None], top: str, kind: str | None, user: int, names: list[str]) -> None:
    """Run the probes and return, for each one, ``(its name, the problems, how it ended, what it printed)``.

    With `kind` None the probes run without confinement. Confined probes share one command, except those that need a command
    of their own. A problem of the shared command can come from any of its probes.
    """
    # Cached before this process changes its user. The other user can't run this process's Python.
    found()
    if user:
        os.chown(top, user, user)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        # After a change of user, the kernel hides this process from other processes of that user, and denies it its own /proc
        # files.
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    # It adopts what escapes, so a process above an attacker is this one at most.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    batch = [name for name in names if kind is not None and name not in ALONE]
    for each in ([batch] if batch else []) + [[name] for name in names if name not in batch]:
        world = World(Path(top) / each[0])
        try:
            words = ["python3", str(world.workspace / "sub/probes.py"), ",".join(each), json.dumps(world.facts())]
            ended, text = _plain(words, world) if kind is None else asyncio.run(_confined(words, world, kind, each[0]))
            wrong = world.wrong(text)
            for name in each:
                report((name, wrong, ended, (text if len(each) == 1 else _section(text, name))[-2000:]))
        finally:
            world.close()


def _section(text: str, name: str) -> str:
    """The part of the output that one of several probes printed."""
    _, found, rest = text.partition(f"{MARK}{name}\n")
    return rest.partition(MARK)[0] if found else f"Traceback: the probe did not run\n{text}"


async def _confined(words: list[str], world: World, kind: str, name: str) -> tuple[Any, str]:
    output = Output(1 << 20)
    opened = os.open(world.workspace, os.O_RDONLY | os.O_DIRECTORY)
    try:
        command = Command(words, world.view(), opened, _environment(world), SHORT.get(name, 60.0), BOUNDS, wanted=kind)
        ended = await run(command, output)
    finally:
        os.close(opened)
    return (ended.code, ended.over), output.shown(1 << 20).text


def _plain(words: list[str], world: World) -> tuple[Any, str]:
    # Not a pipe: a process that outlives the command would keep the pipe open.
    with tempfile.TemporaryFile() as printed:
        done = subprocess.run(
            words,
            cwd=world.workspace,
            env=_environment(world),
            stdout=printed,
            stderr=printed,
            timeout=60,
            start_new_session=True,
        )
        printed.seek(0)
        return (done.returncode, None), printed.read().decode("utf-8", "replace")


def _environment(world: World) -> dict[str, str]:
    return {"PATH": _path(), "BASH_ENV": str(world.workspace / "sub/early")}


def _path() -> str:
    return f"{PATH}:{os.path.dirname(python())}"


def end_all_of(user: int) -> None:
    """Kill all processes of a user. Used after an attack without confinement."""
    for entry in os.scandir("/proc"):
        # A process may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                os.kill(int(entry.name), signal.SIGKILL)

"""Attacks by an attacker who controls a confined function. The sandbox calls each function of this module by its name.

Each call starts a process that imports this module, so it imports little. `confined_primitives` has the primitives.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib
from typing import Any

from albert_tools.engine.model.failure import Failure

LIBC = ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: Any) -> int:
    """Make a system call by its number. Raises `OSError` if the call fails."""
    found = LIBC.syscall(number, *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(found)


# Files.


def open_passwd() -> str:
    return open("/etc/passwd").read()


def open_through_link(path: str) -> str:
    return open(path).read()


def list_root() -> list[str]:
    return os.listdir("/")


def write_file(path: str) -> None:
    with open(path, "w") as file:
        file.write("escaped")


def truncate_library() -> None:
    # This file is empty, so nothing is lost.
    os.open(urllib.__file__, os.O_RDONLY | os.O_TRUNC)


def unlink_file(path: str) -> None:
    os.unlink(path)


def rename_file(path: str) -> None:
    os.rename(path, path + "2")


def chmod_file(path: str) -> None:
    os.chmod(path, 0o777)


def touch_file(path: str) -> None:
    os.utime(path, (0, 0))


def link_file(path: str) -> None:
    os.link(path, path + "2")


def make_folder(path: str) -> None:
    os.mkdir(path + ".d")


def make_device(path: str) -> None:
    os.mknod(path + ".dev", 0o600 | 0o020000, os.makedev(1, 3))


def own_environ() -> str:
    return open("/proc/self/environ").read()


def parents_environ() -> str:
    return open(f"/proc/{os.getppid()}/environ").read()


def parents_memory() -> str:
    return str(open(f"/proc/{os.getppid()}/mem", "rb").read(1))


def parents_descriptor() -> int:
    return os.open(f"/proc/{os.getppid()}/fd/0", os.O_RDONLY)


def memory_file() -> int:
    return os.memfd_create("x")


# The network.


def tcp() -> str:
    return str(socket.create_connection(("127.0.0.1", 9), 1))


def udp() -> int:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))


def unix_socket() -> None:
    socket.socket(socket.AF_UNIX).connect("\0somebody")


def resolve() -> str:
    return socket.gethostbyname("example.org")


# Processes.


def fork() -> int:
    return os.fork()


def fork_bomb() -> None:
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)


def start_program() -> int:
    return subprocess.run(["/bin/true"]).returncode


def replace_program() -> None:
    os.execv("/bin/true", ["true"])


def thread() -> None:
    import threading

    threading.Thread(target=print).start()


def kill_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)


def kill_parents_group() -> None:
    os.killpg(os.getpgid(os.getppid()), signal.SIGKILL)


def signal_by_handle() -> None:
    signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGKILL)


def signal_by_socket() -> None:
    # The kernel sends a signal to the owner of a descriptor when data can be read. The owner can choose the signal.
    fcntl.fcntl(0, 10, signal.SIGKILL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    raise AssertionError("nothing stopped it")


def trace_parent() -> None:
    if LIBC.ptrace(16, os.getppid(), 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


# The process itself.


def more_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def outlive_parent() -> None:
    if LIBC.prctl(1, 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl")


def runnable_memory() -> None:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


def made_runnable() -> None:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    if LIBC.mprotect(ctypes.c_void_p(address), 4096, 5) < 0:
        raise OSError(ctypes.get_errno(), "mprotect")


def new_namespace() -> None:
    _syscall(272 if os.uname().machine == "x86_64" else 97, 0x10000000)


def rings() -> None:
    _syscall(425, 8, ctypes.create_string_buffer(256))


def calls_of_x32() -> None:
    _syscall(0x40000000 + 39)


# Using up resources.


def endless() -> None:
    while True:
        pass


def endless_in_c() -> None:
    sum(range(10**15))


def deaf() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)


def memory_bomb() -> None:
    kept = []
    for _ in range(2000):
        kept.append(bytes(1_000_000))


def one_large_piece() -> None:
    bytes(10**12)


def large_result() -> str:
    return "x" * 17_000_000


def deep_result() -> list[Any]:
    found: list[Any] = []
    for _ in range(500):
        found = [found]
    return found


def printer() -> int:
    while time.monotonic() < time.monotonic() + 1:
        print("x" * 10_000)
    return 1


def a_little_print() -> int:
    print("x" * 1_000_000)
    return 7


# Ending without an answer, and giving a false answer.


def crash() -> None:
    print("about to")
    sys.stdout.flush()
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def leave() -> None:
    os._exit(3)


def exit_politely() -> None:
    sys.exit(3)


def no_json() -> Any:
    return {1, 2}


def no_number() -> float:
    return float("nan")


def half_a_character() -> str:
    return "\ud800"


def raises_half_a_character() -> None:
    raise ValueError("\ud800")


def fails_with_details() -> None:
    raise Failure("too_large", "no", details={"when": object(), "much": 2**70})


def raises() -> None:
    raise ValueError("no such page")


def fails() -> None:
    raise Failure("too_large", "the page is too large", hint="ask for a part", details={"bytes": 7})


def claims(code: str) -> None:
    failure = Failure("exception", "who asked?")
    failure.code = code
    raise failure


def forged(frame: bytes) -> None:
    """Send a forged message."""
    while frame:
        frame = frame[os.write(0, frame) :]
    time.sleep(60)


# What honest functions do.


def add(a: int, b: int = 1) -> int:
    return a + b


def sizes(**given: Any) -> dict[str, Any]:
    return {name: [type(value).__name__, len(value)] for name, value in given.items()}


def parse_late(text: str) -> str | None:
    import xml.etree.ElementTree as ElementTree

    gc.collect()
    return ElementTree.fromstring(text).text


def who() -> dict[str, Any]:
    return {
        "user": os.getuid(),
        "environ": sorted(os.environ),
        "descriptors": [n for n in range(64) if _is_open(n)],
        "no core": resource.getrlimit(resource.RLIMIT_CORE),
        "zone": time.strftime("%Z"),
    }


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


async def waits() -> None:
    """An async function can't run confined."""

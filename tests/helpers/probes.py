"""The attacks of a hostile command.

The sandbox runs ``python3 probes.py NAME,… FACTS``, with the standard library only. Each probe is a function. Its docstring
names, for each confinement, the layer that must stop the probe. A successful probe prints ESCAPED, prints the secret, or
changes something that the test checks afterwards. Several probes run one after the other, each in a separate process.

A probe harms nothing if the sandbox fails, also as root. It changes only what the test has made; it signals only processes that
the test has started; of the system it asks for changes that change nothing, and undoes what it gets. It ends by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

PROBES: dict[str, Callable[[Any], object]] = {}
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
#: Begins the line that comes before the output of a probe, if there are several probes.
MARK = "-- probe "


def probe(function: Callable[[Any], object]) -> Callable[[Any], object]:
    """Add a probe to the list."""
    PROBES[function.__name__] = function
    return function


def escaped(what: object) -> None:
    """Report that a probe succeeded."""
    print("ESCAPED", what, flush=True)


def tell(path: str) -> None:
    """Print the content of a file."""
    with open(path, "rb", buffering=0) as file:
        print(file.read(1 << 20).decode("latin-1"))


def call(number: int, *arguments: Any) -> int:
    """Make a system call. The call is an escape unless it fails."""
    result = LIBC.syscall(number, *arguments)
    if result != -1:
        escaped(f"call {number} gave {result}")
    return int(result)


# Reading forbidden data.


@probe
def read_by_absolute_path(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    tell(f"{f['out']}/secret")


@probe
def read_through_a_link(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    os.symlink(f["out"], "sub/link")
    tell("sub/link/secret")


@probe
def read_through_a_hard_link(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    os.link(f"{f['out']}/secret", "sub/hard")
    tell("sub/hard")


@probe
def read_through_own_root(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    tell(f"/proc/self/root{f['out']}/secret")


@probe
def read_through_any_process(f: Any) -> None:
    """bwrap: pid namespace; landlock: Landlock"""
    for pid in os.listdir("/proc"):
        for way in ("root", "cwd"):
            with contextlib.suppress(OSError):
                tell(f"/proc/{pid}/{way}{f['out']}/secret")
            with contextlib.suppress(OSError):
                tell(f"/proc/{pid}/{way}/../outside/secret")


@probe
def read_through_open_descriptors(f: Any) -> None:
    """bwrap: descriptors closed; landlock: descriptors closed"""
    for handle in range(3, 1024):
        for way in ("..", "../..", "../../.."):
            with contextlib.suppress(OSError):
                inner = os.open(f"{way}/outside/secret", os.O_RDONLY, dir_fd=handle)
                print(os.read(inner, 1000).decode())


@probe
def read_by_what_bash_reads_first(f: Any) -> None:
    """bwrap: descriptors closed; landlock: descriptors closed"""
    # The process that starts the command may already have run the BASH_ENV file, with more descriptors open.
    assert os.environ["BASH_ENV"]
    outside = os.open(f["ws"], os.O_PATH)
    os.set_inheritable(outside, True)
    subprocess.run(["/bin/bash", "-c", ":"], close_fds=False)


@probe
def read_through_others_descriptors(f: Any) -> None:
    """bwrap: pid namespace; landlock: Landlock"""
    for pid in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            for handle in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    tell(f"/proc/{pid}/fd/{handle}/../outside/secret")
                with contextlib.suppress(OSError):
                    tell(f"/proc/{pid}/fd/{handle}/../../outside/secret")


@probe
def read_environments(f: Any) -> None:
    """bwrap: pid namespace; landlock: Landlock"""
    print(dict(os.environ))
    for pid in (1, f["service"], f["victim"], *(n for n in os.listdir("/proc") if n.isdigit())):
        with contextlib.suppress(OSError):
            tell(f"/proc/{pid}/environ")


@probe
def read_memory(f: Any) -> None:
    """bwrap: pid namespace; landlock: Landlock"""
    for pid in (f["service"], f["victim"]):
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/maps") as maps,
            open(f"/proc/{pid}/mem", "rb", buffering=0) as memory,
        ):
            for line in maps:
                if "[heap]" in line or "[stack]" in line:
                    start, end = (int(part, 16) for part in line.split()[0].split("-"))
                    memory.seek(start)
                    print(memory.read(end - start).decode("latin-1"))
                    escaped("memory")


@probe
def read_memory_by_call(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    buffer = ctypes.create_string_buffer(8)
    local = struct.pack("@PN", ctypes.addressof(buffer), 8)
    remote = struct.pack("@PN", f["address"], 8)
    call(310 if X86 else 270, f["victim"], ctypes.c_char_p(local), 1, ctypes.c_char_p(remote), 1, 0)


@probe
def trace_another(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    call(101 if X86 else 117, 16, f["victim"], 0, 0)


@probe
def take_anothers_descriptor(f: Any) -> None:
    """bwrap: pid namespace, filter; landlock: filter"""
    handle = LIBC.syscall(434, f["victim"], 0)
    call(438, handle, 0, 0)


@probe
def read_what_rules_hide(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    for path in ("secrets/inner", "./secrets/../secrets/inner", "/proc/self/cwd/secrets/inner"):
        with contextlib.suppress(OSError):
            tell(path)
    with contextlib.suppress(OSError):
        os.link("secrets/inner", "sub/inner")
        tell("sub/inner")
    with contextlib.suppress(OSError):
        os.rename("secrets", "sub/moved")
        tell("sub/moved/inner")


@probe
def attach_shared_memory(f: Any) -> None:
    """bwrap: IPC namespace; landlock: filter"""
    shmget = LIBC.shmget(f["shared"], 0, 0)
    if shmget >= 0:
        LIBC.shmat.restype = ctypes.c_void_p
        escaped(ctypes.string_at(LIBC.shmat(shmget, None, 0o10000)))


# Changing protected data.


@probe
def write_outside(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    for path in (
        f"{f['out']}/new",
        f"/proc/self/root{f['out']}/new",
        f"{f['ws']}/../outside/new",
        f"{f['out']}/target",
    ):
        with contextlib.suppress(OSError), open(path, "w") as file:
            file.write("x")


@probe
def move_outside(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    with open("sub/mine", "w") as file:
        file.write("x")
    for target in ("new", "target"):
        with contextlib.suppress(OSError):
            os.rename("sub/mine", f"{f['out']}/{target}")


@probe
def delete_outside(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    for name in ("target", "secret"):
        with contextlib.suppress(OSError):
            os.unlink(f"{f['out']}/{name}")
    with contextlib.suppress(OSError):
        os.rename(f["out"], f"{f['out']}-moved")


@probe
def make_things_outside(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    out = f["out"]
    tries = (
        lambda: os.symlink("/etc", f"{out}/link"),
        lambda: os.mkdir(f"{out}/folder"),
        lambda: os.mkfifo(f"{out}/fifo"),
        lambda: os.link("sub/here", f"{out}/hard"),
        lambda: os.truncate(f"{out}/target", 0),
    )
    for each in tries:
        with contextlib.suppress(OSError):
            each()


@probe
def change_mode_outside(f: Any) -> None:
    """bwrap: mount namespace; landlock: filter"""
    with contextlib.suppress(OSError):
        os.chmod(f"{f['out']}/target", 0o777)
    with contextlib.suppress(OSError):
        os.chmod(f["out"], 0o777)
    with contextlib.suppress(OSError):
        os.fchmod(os.open(".bashrc", os.O_RDONLY), 0o777)


@probe
def change_times_outside(f: Any) -> None:
    """bwrap: mount namespace; landlock: filter"""
    with contextlib.suppress(OSError):
        os.utime(f"{f['out']}/target", (1, 1))
    with contextlib.suppress(OSError):
        os.utime(os.open(".bashrc", os.O_RDONLY), (1, 1))
    # Its present times.
    program = "/usr/bin/env"
    times = os.stat(program).st_atime_ns, os.stat(program).st_mtime_ns
    for file in (program, os.open(program, os.O_RDONLY)):
        with contextlib.suppress(OSError):
            os.utime(file, ns=times)
            escaped(file)


@probe
def change_attributes_outside(f: Any) -> None:
    """bwrap: mount namespace; landlock: filter"""
    with contextlib.suppress(OSError):
        os.setxattr(f"{f['out']}/target", "user.x", b"y")
    with contextlib.suppress(OSError):
        os.chown(f"{f['out']}/target", 1, 1)
    with contextlib.suppress(OSError):
        os.setxattr(os.open(".bashrc", os.O_RDONLY), "user.x", b"y")
    # Its present flags: FS_IOC_GETFLAGS, FS_IOC_SETFLAGS.
    for path in (".bashrc", "/usr/bin/env"):
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDONLY)
            fcntl.ioctl(file, 0x40086602, fcntl.ioctl(file, 0x80086601, bytes(8)))
            escaped(path)


@probe
def change_the_system(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    for path in (
        "/usr/bin/albert-probe",
        "/etc/albert-probe",
        "/usr/albert-probe",
        "/opt/albert-probe",
        "/root/albert-probe",
    ):
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(path)
            escaped(path)


@probe
def change_the_kernel(f: Any) -> None:
    """bwrap: mount namespace, capabilities; landlock: Landlock"""
    tops = (
        [f"/proc/{name}" for name in os.listdir("/proc") if not name.isdigit()]
        if os.path.exists("/proc/sys")
        else ["/proc/sys"]
    )
    for top in (*tops, "/sys"):
        for path in (top, *(f"{folder}/{name}" for folder, _, names in os.walk(top) for name in names)):
            if "self" not in path:
                with contextlib.suppress(OSError):
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                    escaped(path)


@probe
def write_hooks(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    for path in (".git/hooks/pre-commit", ".git/hooks/new", ".git/config", ".bashrc"):
        with contextlib.suppress(OSError), open(path, "a") as file:
            file.write("evil")


@probe
def replace_hooks(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    with open("sub/evil", "w") as file:
        file.write("evil")
    tries = (
        lambda: os.rename("sub/evil", ".git/hooks/pre-commit"),
        lambda: os.rename(".git/hooks", "sub/hooks"),
        lambda: os.rename(".git", "sub/git"),
        lambda: os.rename("sub/evil", ".bashrc"),
        lambda: os.rename(".bashrc", "sub/bashrc"),
        lambda: os.unlink(".git/config"),
        lambda: os.symlink("sub/evil", ".git/hooks/evil"),
        lambda: os.link("sub/evil", ".git/hooks/hard"),
        lambda: os.rmdir(".git/hooks"),
        lambda: os.chmod(".git/hooks/pre-commit", 0o777),
    )
    for each in tries:
        with contextlib.suppress(OSError):
            each()


@probe
def swap_what_is_hidden_or_kept(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    # If any user can put another file in the place of a hidden name, the mount that hides the name disappears with it.
    with contextlib.suppress(OSError):
        os.mkdir("sub/folder")
    for name in ("file", "folder/inner"):
        with open(f"sub/{name}", "w") as file:
            file.write("evil")
    number = 316 if X86 else 276
    exchange, whiteout, no_replace = 2, 4, 1
    own = f"/proc/self/root{f['ws']}"
    for target in ("secrets", ".bashrc", ".git/config", ".git/hooks", ".git", "secrets/inner", ".git/hooks/pre-commit"):
        for source in ("sub/file", "sub/folder"):
            for where in (target, f"{own}/{target}", f"/proc/self/cwd/{target}", f"sub/../{target}"):
                for flags in (0, exchange, whiteout, exchange | whiteout):
                    LIBC.syscall(number, -100, source.encode(), -100, where.encode(), flags)
                LIBC.syscall(number, -100, where.encode(), -100, b"sub/away", no_replace)
    for path in ("secrets/inner", "sub/folder/inner", "sub/away/inner", "sub/file/inner"):
        with contextlib.suppress(OSError):
            tell(path)


@probe
def leave_a_program_that_becomes_its_owner(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    with contextlib.suppress(OSError):
        os.close(os.open("sub/suid", os.O_CREAT | os.O_WRONLY, 0o4755))
    with contextlib.suppress(OSError):
        os.close(os.open("sub/suid2", os.O_CREAT | os.O_WRONLY, 0o755))
        os.chmod("sub/suid2", 0o6755)
    with contextlib.suppress(OSError):
        os.fchmod(os.open("sub/suid2", os.O_WRONLY), 0o4755)


# Gaining privileges.


@probe
def become_root(f: Any) -> None:
    """bwrap: no new privileges; landlock: no new privileges"""
    for program in ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/newgrp", "/usr/bin/passwd"):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([program, "--help"], capture_output=True, timeout=5)
    with contextlib.suppress(OSError):
        os.setuid(0 if os.getuid() else 1)
        escaped("setuid")
    with open("/proc/self/status") if os.path.exists("/proc/self/status") else contextlib.nullcontext([]) as status:
        for line in status:
            if line.startswith("CapEff") and int(line.split()[1], 16):
                escaped(line)


@probe
def make_a_user_namespace(f: Any) -> None:
    """bwrap: filter, no further namespaces; landlock: filter"""
    call(272 if X86 else 97, 0x10000000)


@probe
def clone_into_a_namespace(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    pid = LIBC.syscall(56 if X86 else 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        escaped("clone")


@probe
def clone3_into_a_namespace(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    arguments = struct.pack("<QQQQQQQQ", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    pid = LIBC.syscall(435, ctypes.c_char_p(arguments), len(arguments))
    if pid == 0:
        os._exit(0)
    if pid > 0:
        escaped("clone3")


@probe
def enter_a_namespace(f: Any) -> None:
    """bwrap: pid namespace, filter; landlock: filter"""
    for pid in (1, f["service"], f["victim"]):
        for kind in ("user", "mnt", "net", "pid"):
            with contextlib.suppress(OSError):
                handle = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
                call(308 if X86 else 268, handle, 0)


@probe
def mount_something(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    unmount, detach = 166 if X86 else 39, 2
    # What is mounted below the test's folder would be deleted with it.
    for arguments in ((b"none", b"sub", b"tmpfs", 0, None), (b"secrets", b"sub", None, 4096, None)):
        if call(165 if X86 else 40, *arguments) == 0:
            LIBC.syscall(unmount, b"sub", detach)
    call(unmount, f"{f['ws']}/secrets".encode(), detach)
    call(428, -100, b"/", 1)
    call(430, b"tmpfs", 0)


@probe
def change_root(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    call(161 if X86 else 51, b"sub")
    call(155 if X86 else 41, b".", b"sub")


@probe
def open_by_handle(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    call(304 if X86 else 265, -100, ctypes.create_string_buffer(256), 0)


@probe
def use_io_uring(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    call(425, 8, ctypes.create_string_buffer(256))


@probe
def load_a_bpf_program(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    call(321 if X86 else 280, 0, ctypes.create_string_buffer(128), 128)


@probe
def use_kernel_keys(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    call(250 if X86 else 219, 0, -3, 0)
    call(248 if X86 else 217, b"user", b"albert", b"x", 1, -3)


@probe
def use_userfaultfd(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    call(323 if X86 else 282, 1)


@probe
def watch_performance(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    call(298 if X86 else 241, ctypes.create_string_buffer(128), 0, -1, -1, 0)


@probe
def use_what_is_newer(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    for number in range(470, 520):
        call(number, 0, 0, 0, 0, 0, 0)


@probe
def use_another_architectures_calls(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    if X86:
        call(0x40000000 + 39)


@probe
def set_the_clock(f: Any) -> None:
    """bwrap: filter, capabilities; landlock: filter, capabilities"""
    # Without a time, the kernel only says whether it could be set. The name is the present one.
    call(164 if X86 else 170, None, None)
    name = os.uname().nodename.encode()
    call(170 if X86 else 161, name, len(name))


@probe
def make_device_nodes(f: Any) -> None:
    """bwrap: filter, capabilities; landlock: Landlock, filter"""
    for place in ("sub/null", "/tmp/albert-probe"):
        with contextlib.suppress(OSError):
            os.mknod(place, 0o20600, os.makedev(1, 3))
            os.unlink(place)
            escaped(place)


@probe
def open_devices(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    for path in (
        "/dev/mem",
        "/dev/kmsg",
        "/dev/sda",
        "/dev/vda",
        "/dev/nvme0n1",
        "/dev/fuse",
        "/dev/kvm",
        "/dev/net/tun",
        "/dev/loop0",
    ):
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY))
            escaped(path)


@probe
def load_a_module(f: Any) -> None:
    """bwrap: filter, capabilities; landlock: filter, capabilities"""
    # An empty module, and a kernel of too many parts. Only who could load them is told so.
    for number, arguments in ((175 if X86 else 105, (b"", 0, b"")), (246 if X86 else 104, (0, 99, None, 0))):
        call(number, *arguments)
        if ctypes.get_errno() in (errno.EINVAL, errno.ENOEXEC):
            escaped(number)


@probe
def use_control_groups(f: Any) -> None:
    """bwrap: mount namespace; landlock: Landlock"""
    for top, _, _ in os.walk("/sys/fs/cgroup"):
        with contextlib.suppress(OSError):
            os.mkdir(f"{top}/albert-probe")
            os.rmdir(f"{top}/albert-probe")
            escaped(top)


# Reaching other processes.


@probe
def kill_others(f: Any) -> None:
    """bwrap: pid namespace; landlock: Landlock"""
    # The victim is the only process of its group.
    for pid in (f["victim"], -f["victim"], f["service"]):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(os.pidfd_open(abs(pid)), signal.SIGKILL)


@probe
def kill_what_is_above(f: Any) -> None:
    """bwrap: pid namespace; landlock: Landlock"""
    if os.fork() == 0:
        time.sleep(0.05)
        os.setsid()
        # What adopts this process is above it: the sandbox, or else the process that makes the attacks.
        for pid in {1, os.getppid()}:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        beat()


@probe
def signal_others_by_a_file(f: Any) -> None:
    """bwrap: pid namespace; landlock: filter, Landlock"""

    reading, writing = os.pipe()
    for owning in (
        lambda: fcntl.fcntl(reading, 8, f["victim"]),
        lambda: fcntl.fcntl(reading, 15, struct.pack("<ii", 1, f["victim"])),
    ):
        with contextlib.suppress(OSError):
            owning()
            fcntl.fcntl(reading, 10, signal.SIGKILL)
            fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
            os.write(writing, b"x")


@probe
def slow_others(f: Any) -> None:
    """bwrap: pid namespace; landlock: filter"""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, f["victim"], 19)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(f["victim"], {0})


@probe
def limit_others(f: Any) -> None:
    """bwrap: pid namespace; landlock: filter"""
    import resource

    with contextlib.suppress(OSError):
        resource.prlimit(f["victim"], resource.RLIMIT_NOFILE, (7, 7))


@probe
def connect_by_tcp(f: Any) -> None:
    """bwrap: network namespace; landlock: filter, Landlock"""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with contextlib.suppress(OSError), socket.socket(family) as made:
            made.settimeout(3)
            made.connect((host, f["tcp"]))
            escaped(host)


@probe
def send_by_udp(f: Any) -> None:
    """bwrap: network namespace; landlock: filter"""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(b"secret", ("127.0.0.1", f["udp"]))


@probe
def look_up_names(f: Any) -> None:
    """bwrap: network namespace; landlock: filter"""
    with contextlib.suppress(OSError):
        escaped(socket.getaddrinfo("example.org", 80))


@probe
def connect_to_an_abstract_socket(f: Any) -> None:
    """bwrap: network namespace; landlock: filter, Landlock"""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as made:
        made.connect(f["abstract"])
        escaped("abstract")


@probe
def connect_to_a_socket_at_a_path(f: Any) -> None:
    """bwrap: mount namespace; landlock: filter"""
    for path in (
        f["path"],
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
    ):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as made:
            made.connect(path)
            escaped(path)


@probe
def send_from_a_pair_of_sockets(f: Any) -> None:
    """bwrap: mount namespace, network namespace; landlock: filter"""
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        for place in f["letters"]:
            with contextlib.suppress(OSError):
                one, _ = socket.socketpair(socket.AF_UNIX, kind)
                one.sendto(b"secret", place)


@probe
def use_other_families(f: Any) -> None:
    """bwrap: filter; landlock: filter"""
    with contextlib.suppress(OSError):
        socket.socketpair(30, socket.SOCK_STREAM)
        escaped("a pair")
    for family in (17, 29, 31, 38, 40, 44, 45):
        with contextlib.suppress(OSError):
            socket.socket(family, socket.SOCK_RAW if family == 17 else socket.SOCK_STREAM).close()
            escaped(family)
    with contextlib.suppress(OSError):
        socket.socket(40, socket.SOCK_DGRAM).close()
        escaped("vsock")


@probe
def type_into_the_terminal(f: Any) -> None:
    """bwrap: a session of its own, filter; landlock: a session of its own, filter"""

    for handle in (0, 1, 2):
        with contextlib.suppress(OSError):
            fcntl.ioctl(handle, 0x5412, b"x")
            escaped(handle)
    with contextlib.suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR))
        escaped("a terminal")


# Outliving the command, and using too many resources.


def beat() -> None:
    """Append to a file for a minute, or until this process is ended."""
    for _ in range(3000):
        with open("sub/beats", "a") as file:
            file.write("x")
        time.sleep(0.02)


@probe
def outlive_the_command(f: Any) -> None:
    """bwrap: pid namespace; landlock: launcher"""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.environ.clear()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            beat()
        os._exit(0)
    time.sleep(0.1)


@probe
def outlive_the_timeout(f: Any) -> None:
    """bwrap: pid namespace; landlock: launcher"""
    outlive_the_command(f)
    time.sleep(60)


@probe
def fork_without_end(f: Any) -> None:
    """bwrap: bounds, pid namespace; landlock: bounds, launcher"""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Each process needs a permit, so that they are few if nothing bounds them, and ends soon.
    permits, returned = os.pipe()
    os.set_blocking(permits, False)
    os.write(returned, bytes(500))
    signal.alarm(20)
    first = os.getpid()
    while True:
        try:
            os.read(permits, 1)
        except BlockingIOError:
            if os.getpid() == first:
                escaped("500 processes")
            signal.pause()
        try:
            if os.fork() == 0:
                signal.alarm(20)
        except OSError:
            os.write(returned, b"x")


@probe
def take_memory_across_children(f: Any) -> None:
    """bwrap: bounds; landlock: bounds"""
    for _ in range(40):
        if os.fork() == 0:
            taken = bytearray(os.urandom(1 << 20)) * 20
            time.sleep(60)
            print(len(taken))
    time.sleep(60)


@probe
def take_memory_without_a_name(f: Any) -> None:
    """bwrap: bounds; landlock: bounds"""
    held = []
    for n in range(50):
        held.append(os.memfd_create(str(n)))
        os.write(held[-1], bytes(10 << 20))
    time.sleep(5)
    escaped("500 MiB")


@probe
def take_memory_that_is_shared(f: Any) -> None:
    """bwrap: bounds; landlock: bounds"""
    import mmap

    # The code that counts memory also reads this file.
    LIBC.prctl(15, b"\xff\xfe", 0, 0, 0)
    shared = mmap.mmap(-1, 500 << 20)
    for n in range(500):
        shared[n << 20 : (n + 1) << 20] = bytes(1 << 20)
    time.sleep(5)
    escaped("500 MiB")


@probe
def fill_the_temporary_folder(f: Any) -> None:
    """bwrap: bounds; landlock: nothing"""
    block, written, paths = bytes(1 << 20), 0, [f"{os.environ['TMPDIR']}/fill{n}" for n in range(8)]
    for path in paths:
        with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
            for _ in range(16):
                written += file.write(block)
    for path in paths:
        os.unlink(path)
    if written > 100 << 20:
        escaped(f"{written} bytes")


@probe
def print_without_end(f: Any) -> None:
    """bwrap: bounds; landlock: bounds"""
    line = b"x" * 65536
    for _ in range(3000):
        os.write(1, line)


def run(name: str, facts: Any) -> None:
    """Run one probe."""
    try:
        PROBES[name](facts)
    except OSError as error:
        print("refused:", error)


def run_forked(name: str, facts: Any) -> None:
    """Print a line with the name of a probe, then run the probe in a separate process."""
    print(f"{MARK}{name}", flush=True)
    pid = os.fork()
    if pid == 0:
        try:
            run(name, facts)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    names, facts = sys.argv[1].split(","), json.loads(sys.argv[2])
    if len(names) == 1:
        run(names[0], facts)
    else:
        for name in names:
            run_forked(name, facts)

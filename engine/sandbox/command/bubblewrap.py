"""A command in namespaces of its own, made by bubblewrap.

It sees a file system built for it (`View`), no process but its own, no network interface but an empty loopback, and only the
environment that it is given. It has no privileges, can't gain any, and can't make further namespaces. When its first
process is killed, the kernel ends all others of its process namespace.

Mounts into the workspace are named by descriptors that were opened without following a link: between the check and the mount, a
command that already runs there may change what a path leads to.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache

from albert_tools.engine.sandbox.command.view import CERTIFICATES, COPIED, LOOKED_UP, SYSTEM, View, programs

_OPEN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0

#: The home folder inside: private, empty, gone afterwards.
HOME = "/tmp/home"

_PASSWD = "root:x:0:0:root:/root:/bin/sh\nuser:x:{uid}:{gid}::/tmp/home:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
_GROUP = "root:x:0:\nuser:x:{gid}:\nnogroup:x:65534:\n"
#: Settings of the whole machine.
_KERNEL_SETTINGS = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/pressure",
)
#: Bytes of a copied file; all of them are far smaller.
_MAX_COPIED = 4 * 1024 * 1024
_HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
_NSSWITCH = "passwd: files\ngroup: files\nhosts: files\n"


class Plan:
    """The command line of bubblewrap, and the descriptors that it refers to. Close it once the process is started."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._options: list[str] = []
        #: The whole command line, once the command is known.
        self.arguments: list[str] = []
        self.descriptors: list[int] = []
        #: Those of the descriptors that bubblewrap leaves open.
        self.bound: list[int] = []
        self._held = ExitStack()

    def add(self, *arguments: str) -> None:
        """Add options."""
        self._options += arguments

    def command(self, *words: str) -> None:
        """Set what is started. The options go into a file without a name, because everybody can read a command line."""
        options = self.data("".join(f"{option}\0" for option in self._options).encode("utf-8", "surrogateescape"))
        self.arguments = [self._program, "--args", options, "--", *words]

    def hold(self, descriptor: int) -> str:
        """Pass a descriptor to the process, and close it here with the plan; gives its number as text."""
        self._held.callback(_close, descriptor)
        self.descriptors.append(descriptor)
        return str(descriptor)

    def data(self, content: bytes) -> str:
        """A descriptor to read `content` from."""
        handle = os.memfd_create("albert", os.MFD_CLOEXEC)
        number = self.hold(handle)
        os.write(handle, content)
        os.lseek(handle, 0, os.SEEK_SET)
        return number

    def close(self) -> None:
        """Close the descriptors that were only for the process."""
        self._held.close()


def plan(
    program: str,
    view: View,
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    filter_program: bytes | None,
    workspace: int,
    temporary_bytes: int,
    certificates: bool,
    nested_off: bool,
    info: int,
    gate: int,
) -> Plan:
    """How to call bubblewrap.

    Args:
        program: Where it is.
        view: What the command sees.
        command: The command and its arguments.
        environment: All of its environment.
        filter_program: The seccomp filter.
        workspace: The workspace's open folder.
        temporary_bytes: The size of each of its private folders (``/tmp``, ``/dev/shm``).
        certificates: Whether it sees the certificates that the system trusts.
        nested_off: Whether to switch off user namespaces inside; the filter refuses them, too.
        info: The descriptor to which it writes the number of the first process inside.
        gate: The descriptor on which it waits for `GO` before it starts the command.

    Raises:
        OSError: a file that the view names can't be opened.
    """
    made = Plan(program)
    try:
        made.add(
            "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"
        )
        made.add("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", "--hostname", "sandbox")
        made.add("--info-fd", str(info), "--block-fd", str(gate))
        if nested_off:
            made.add("--disable-userns")
        _system(made, temporary_bytes, certificates)
        for path in view.readable:
            made.add("--ro-bind", path, path)
        _workspace(made, view, workspace)
        made.add("--chdir", view.cwd)
        if filter_program is not None:
            made.add("--seccomp", made.data(filter_program))
        # The root is read only: memory for files in it would count as nobody's.
        made.add("--remount-ro", "/")
        made.command(*_behind_gate(made, gate), *_with_environment(environment, command))
    except BaseException:
        made.close()
        raise
    return made


def _system(made: Plan, temporary_bytes: int, certificates: bool) -> None:
    for path in SYSTEM:
        if os.path.islink(path):
            made.add("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            made.add("--ro-bind", path, path)
    # A mount takes a third of a millisecond; so small files are copied instead.
    for path in (*LOOKED_UP, *(CERTIFICATES if certificates else ())):
        if os.path.isdir(path):
            made.add("--ro-bind", path, path)
    for path, content in _copied():
        made.add("--file", made.data(content), path)
    ids = {"uid": os.getuid(), "gid": os.getgid()}
    for path, text in (
        ("/etc/passwd", _PASSWD.format(**ids)),
        ("/etc/group", _GROUP.format(**ids)),
        ("/etc/hosts", _HOSTS),
        ("/etc/nsswitch.conf", _NSSWITCH),
    ):
        made.add("--file", made.data(text.encode()), path)
    made.add("--proc", "/proc")
    for path in _KERNEL_SETTINGS:
        if os.path.exists(path):
            # Root may write there, even without capabilities.
            made.add("--ro-bind", path, path)
    made.add("--dev", "/dev", "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp")
    for path in ("/tmp", "/dev/shm"):
        made.add("--perms", "1777", "--size", str(temporary_bytes), "--tmpfs", path)
    made.add("--perms", "0700", "--dir", HOME)
    for path in programs():
        made.add("--ro-bind", path, path)


@cache
def _copied() -> list[tuple[str, bytes]]:
    """The content of the copied files, as it was at the first command."""
    found = []
    for path in COPIED:
        with suppress(OSError), open(path, "rb") as file:
            found.append((path, file.read(_MAX_COPIED)))
    return found


def _workspace(made: Plan, view: View, workspace: int) -> None:
    if view.shown is None:
        made.add("--bind", _held(made, os.dup(workspace)), view.root)
    else:
        # Only what is named is visible; what the command puts beside it is gone afterwards.
        made.add("--tmpfs", view.root)
    shown = [(path, "--bind") for path in view.shown or ()]
    pins = [(path, "--bind") for path in view.pinned]
    sealed = [(path, "--ro-bind") for path in view.sealed]
    hidden = [(path, "") for path in view.hidden]
    # Outer folders first, so that none covers another.
    for path, how in sorted([*shown, *pins, *sealed, *hidden]):
        try:
            handle = open_beneath(workspace, path[len(view.root) + 1 :])
        except FileNotFoundError:
            continue
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        if how:
            made.add(how, _held(made, handle), path)
        elif folder:
            os.close(handle)
            made.add("--perms", "0555", "--tmpfs", path, "--remount-ro", path)
        else:
            os.close(handle)
            made.add("--ro-bind", "/dev/null", path)


def _behind_gate(made: Plan, gate: int) -> list[str]:
    """The words that start a command without the descriptors that bubblewrap leaves open, each of which would be a way out.

    They run before the command's environment applies (BASH_ENV, LD_PRELOAD). They wait for a second byte: a pipe whose writers
    have been killed starts nothing.
    """
    inner = made.hold(os.dup(gate))
    closing = "".join(f" {number}<&-" for number in (inner, *made.bound))
    text = f'read -rN1 -u {inner} go; exec{closing}; [[ $go == ! ]] || exit 125; exec "$@"'
    return ["/bin/bash", "--noprofile", "--norc", "-c", text, "sandbox"]


#: Written to `gate` to start the command.
GO = b"!!"


def _with_environment(environment: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """The words that start a command in an environment."""
    words = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    if "=" in command[0]:
        # `env` would take it for one more variable.
        words += ["/bin/bash", "--noprofile", "--norc", "-c", 'exec "$@"', "sandbox"]
    return [*words, *command]


def _held(made: Plan, handle: int) -> str:
    made.bound.append(handle)
    return f"/proc/self/fd/{made.hold(handle)}"


def open_beneath(folder: int, path: str) -> int:
    """A descriptor that only names `path`, which is relative to an open folder; no link on the way is followed.

    Raises:
        OSError: there is no such file, or a link on the way.
    """
    here = os.dup(folder)
    try:
        for part in path.split("/"):
            inner = os.open(part, _OPEN, dir_fd=here)
            os.close(here)
            here = inner
        if stat.S_ISLNK(os.fstat(here).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    except BaseException:
        os.close(here)
        raise
    return here


def _close(descriptor: int) -> None:
    with suppress(OSError):
        os.close(descriptor)

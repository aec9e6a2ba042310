"""Runs a command in its own namespaces, created by bubblewrap.

The command sees a file system that is built for it (`View`), only its own processes, an empty loopback interface as its only
network, and only the given environment. It has no privileges, can't gain privileges, and can't create namespaces. When the first
process of its process namespace is killed, the kernel kills all others in this namespace.

The sources of mounts in the workspace are descriptors, which were opened without following a link. A path would be unsafe:
between the check and the mount, another running command could change its target.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command.view import CERTIFICATES, COPIED, HOME_NAME, LOOKED_UP, SYSTEM, View, programs

_OPEN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0

#: The home folder inside the sandbox. It is private, starts empty and is deleted afterwards.
HOME = f"/tmp/{HOME_NAME}"

_PASSWD = f"root:x:0:0:root:/root:/bin/sh\nuser:x:{{uid}}:{{gid}}::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
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
#: Bubblewrap takes 9,000 words of options. A few follow those of the workspace.
_MAX_WORDS = 8_900
#: The most bytes of a copied file. The usual files are much smaller.
_MAX_COPIED = 4 * 1024 * 1024
_HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
_NSSWITCH = "passwd: files\ngroup: files\nhosts: files\n"


class Plan:
    """The command line of bubblewrap, and the descriptors that it refers to. Close the plan after the process has started."""

    def __init__(self, program: str) -> None:
        self._program = program
        self.options: list[str] = []
        #: The whole command line. It is set by `command`.
        self.arguments: list[str] = []
        self.descriptors: list[int] = []
        #: The descriptors that bubblewrap doesn't close.
        self.bound: list[int] = []
        self._held = ExitStack()

    def add(self, *arguments: str) -> None:
        """Add options."""
        self.options += arguments

    def command(self, *words: str) -> None:
        """Set the command. The options are passed in an unnamed file, because every user can read a command line."""
        options = self.data("".join(f"{option}\0" for option in self.options).encode("utf-8", "surrogateescape"))
        self.arguments = [self._program, "--args", options, "--", *words]

    def hold(self, descriptor: int) -> str:
        """Pass a descriptor to the process. `close` closes it in this process. Returns its number as text."""
        self._held.callback(_close, descriptor)
        self.descriptors.append(descriptor)
        return str(descriptor)

    def data(self, content: bytes) -> str:
        """A descriptor from which the process can read `content`."""
        handle = os.memfd_create("albert", os.MFD_CLOEXEC)
        number = self.hold(handle)
        os.write(handle, content)
        os.lseek(handle, 0, os.SEEK_SET)
        return number

    def close(self) -> None:
        """Close the descriptors that only the process needs."""
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
    """The command line for bubblewrap.

    Args:
        program: The path of bubblewrap.
        view: The files that the command sees.
        command: The command and its arguments.
        environment: The whole environment of the command.
        filter_program: The seccomp filter.
        workspace: The descriptor of the workspace's folder.
        temporary_bytes: The size of each private folder (``/tmp``, ``/dev/shm``).
        certificates: Whether the command sees the certificates that the system trusts.
        nested_off: Whether to disable user namespaces inside. The filter refuses them too.
        info: The descriptor to which bubblewrap writes the id of the first process inside.
        gate: The descriptor from which bubblewrap reads `GO` before it starts the command.

    Raises:
        Failure: `too_large`.
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
        # The root is read-only, because the memory for files in it would not be limited.
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
    # A mount takes a third of a millisecond. So small files are copied instead.
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
            # Make them read-only, because root could write there even without capabilities.
            made.add("--ro-bind", path, path)
    made.add("--dev", "/dev", "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp")
    for path in ("/tmp", "/dev/shm"):
        made.add("--perms", "1777", "--size", str(temporary_bytes), "--tmpfs", path)
    made.add("--perms", "0700", "--dir", HOME)
    for path in programs():
        made.add("--ro-bind", path, path)


@cache
def _copied() -> list[tuple[str, bytes]]:
    """The content of the copied files. They are read once, at the first command."""
    contents = []
    for path in COPIED:
        with suppress(OSError), open(path, "rb") as file:
            contents.append((path, file.read(_MAX_COPIED)))
    return contents


def workspace_mounts(view: View) -> dict[str, str]:
    """How each path in the workspace is mounted; "" for a hidden one."""
    mounts = dict.fromkeys(view.tops, "--ro-bind")
    mounts |= dict.fromkeys((*view.changeable, *view.pinned), "--bind")
    mounts |= dict.fromkeys(view.sealed, "--ro-bind")
    return mounts | dict.fromkeys(view.hidden, "")


def _workspace(made: Plan, view: View, workspace: int) -> None:
    mounts = workspace_mounts(view)
    if view.shown is None:
        made.add(mounts.pop(view.root), _held(made, os.dup(workspace)), view.root)
    else:
        # Only the shown paths are visible. Other files that the command creates here are in memory, and are lost afterwards.
        made.add("--tmpfs", view.root)
    # Mount outer folders first, because a later mount on an outer folder would cover the inner ones.
    for path, how in sorted(mounts.items()):
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
    if len(made.options) > _MAX_WORDS:
        raise Failure(
            "too_large",
            "the rules hide or protect more files and folders than bubblewrap can take",
            hint="the owner can forbid the folders around them instead",
            rule="exposed",
        )


def _behind_gate(made: Plan, gate: int) -> list[str]:
    """The words that start a command after closing the descriptors that bubblewrap leaves open. The command could escape through
    them.

    These words run before the command's environment applies (BASH_ENV, LD_PRELOAD). They wait for a second byte. So if the
    process that writes to the pipe is killed, the command doesn't start.
    """
    inner = made.hold(os.dup(gate))
    closing = "".join(f" {number}<&-" for number in (inner, *made.bound))
    text = f'read -rN1 -u {inner} go; exec{closing}; [[ $go == ! ]] || exit 125; exec "$@"'
    return ["/bin/bash", "--noprofile", "--norc", "-c", text, "sandbox"]


#: Is written to `gate` to start the command.
GO = b"!!"


def _with_environment(environment: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """The words that start a command with a given environment."""
    words = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    if "=" in command[0]:
        # `env` would treat this word as another variable.
        words += ["/bin/bash", "--noprofile", "--norc", "-c", 'exec "$@"', "sandbox"]
    return [*words, *command]


def _held(made: Plan, handle: int) -> str:
    made.bound.append(handle)
    return f"/proc/self/fd/{made.hold(handle)}"


def open_beneath(folder: int, path: str) -> int:
    """A descriptor (`O_PATH`) of `path`, which is relative to an open folder. No link in the path is followed.

    Raises:
        OSError: the file doesn't exist, or the path contains a link.
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

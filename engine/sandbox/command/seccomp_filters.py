"""The seccomp filters of commands. They refuse system calls that namespaces and Landlock don't control.

A filter lists the refused calls, not the allowed ones, because a command can be any program. A refused call returns an error
code, which programs can handle. Calls unknown to this table are refused too: newer calls, and calls of other architectures. The
``loose`` filter is for use with namespaces, which already separate the command from other processes and from the network. The
``strict`` filter is for use with Landlock, which doesn't, so this filter must.
"""

from __future__ import annotations

import errno
from functools import cache
from typing import Literal

from albert_tools.engine.sandbox.kernel.bpf import (
    ALLOW,
    Op,
    assemble,
    if_equal,
    load,
    not_with,
    only_with,
    refuse,
    without_bits,
)

Strength = Literal["loose", "strict"]

#: Calls that a command doesn't need: other processes' memory, kernel tables and modules, mounts and namespaces, keys, the clock.
#: Also io_uring, because it makes calls that no filter sees.
_DANGEROUS = frozenset(
    (
        "io_uring_setup io_uring_enter io_uring_register bpf add_key request_key keyctl ptrace process_vm_readv "
        "process_vm_writev process_madvise userfaultfd perf_event_open kexec_load kexec_file_load init_module "
        "finit_module delete_module create_module swapon swapoff reboot mount umount2 pivot_root chroot move_mount "
        "open_tree open_tree_attr fsopen fsconfig fsmount fspick mount_setattr setns unshare syslog acct quotactl "
        "quotactl_fd settimeofday clock_settime clock_adjtime adjtimex iopl ioperm modify_ldt name_to_handle_at "
        "open_by_handle_at fanotify_init fanotify_mark kcmp pidfd_getfd lookup_dcookie nfsservctl vhangup move_pages "
        "migrate_pages uselib sysfs _sysctl ustat memfd_secret sethostname setdomainname lsm_set_self_attr"
    ).split()
)

#: Calls for shared memory, semaphores and queues with a common number or name. Refused if no namespace separates them.
_SHARED = frozenset(
    (
        "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink "
        "mq_timedsend mq_timedreceive mq_notify mq_getsetattr"
    ).split()
)

#: Calls that signal other processes. Refused if neither a namespace nor Landlock prevents this.
_SIGNALS = frozenset(("kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal process_mrelease").split())

#: Calls that change a file's mode, owner, times or attributes. Landlock doesn't control them. The owner of a file can use them also
#: on a file that is open for reading only.
_ATTRIBUTES = frozenset(
    (
        "chmod fchmodat fchmodat2 chown lchown fchownat utime utimes futimesat setxattr lsetxattr setxattrat "
        "removexattr lremovexattr removexattrat file_setattr fchmod fchown fsetxattr fremovexattr"
    ).split()
)

#: Calls that slow down or stop processes of the same user.
_PRIORITIES = frozenset(
    ("sched_setscheduler sched_setparam sched_setattr sched_setaffinity setpriority ioprio_set").split()
)

#: Flags that create a namespace, except a time namespace, which `clone` can't create.
_NEW_NAMESPACES = 0x7E020000
#: ioctls that insert characters into a terminal's input, or change its line discipline.
_TERMINAL_IOCTLS = (0x5412, 0x541C, 0x5423)
#: The ioctls that programs need. Others change attributes of files and file systems, also of a file that is open for reading only.
#: About a terminal: its settings (TCGETS, TCGETS2), its size, its process group. About any descriptor: the bytes that can be read,
#: whether to block, whether to close at `exec`. About a file: its block size, where it is on the disk (FIEMAP), its attributes
#: (FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR), and cloning into a file that is open for writing (FICLONE, FICLONERANGE).
_IOCTLS = (
    *(0x5401, 0x802C542A, 0x5413, 0x540F),
    *(0x541B, 0x5421, 0x5450, 0x5451),
    *(0x2, 0xC020660B, 0x80086601, 0x801C581F, 0x40049409, 0x4020940D),
)
#: Local sockets, internet sockets, and netlink. A network namespace separates only these families. Other families (virtual
#: machines, cryptography, Bluetooth and so on) reach the host.
_FAMILIES = (1, 2, 10, 16)
#: Permanently connected pairs of local sockets: streams and packet streams. A pair of datagram sockets could also send to other
#: sockets.
_LOCAL, _PAIR_KINDS, _KIND = 1, (1, 5), 0xF
#: Requests that set which process the kernel signals about a descriptor: F_SETOWN, F_SETOWN_EX.
_SET_OWNER = (8, 15)
#: The bits of a file's mode with its type; character and block devices.
_FILE_KIND, _DEVICES = 0xF000, (0x2000, 0x6000)
#: The setuid and setgid bits. A user who executes such a file gets the rights of its owner or group. The file remains after the
#: command.
_SET_ID = 0o6000
#: Query the personality, and set the ordinary Linux personality.
_PERSONALITIES = (0xFFFFFFFF, 0)

_EPERM, _ENOSYS, _NO_FAMILY = refuse(errno.EPERM), refuse(errno.ENOSYS), refuse(errno.EAFNOSUPPORT)


#: Calls whose arguments decide, in both filters.
_BY_ARGUMENTS: dict[str, list[Op]] = {
    "clone": without_bits(0, _NEW_NAMESPACES, _EPERM),
    # The arguments of these calls are in memory, which a filter can't read. On ENOSYS, programs use the older calls.
    "clone3": [_ENOSYS],
    "openat2": [_ENOSYS],
    "personality": only_with(0, _PERSONALITIES, _EPERM),
    "mknod": not_with(1, _DEVICES, _EPERM, _FILE_KIND, _SET_ID),
    "mknodat": not_with(2, _DEVICES, _EPERM, _FILE_KIND, _SET_ID),
    "chmod": without_bits(1, _SET_ID, _EPERM),
    "fchmod": without_bits(1, _SET_ID, _EPERM),
    "fchmodat": without_bits(2, _SET_ID, _EPERM),
    "fchmodat2": without_bits(2, _SET_ID, _EPERM),
    "open": without_bits(2, _SET_ID, _EPERM),
    "openat": without_bits(3, _SET_ID, _EPERM),
    "creat": without_bits(1, _SET_ID, _EPERM),
    "mkdir": without_bits(1, _SET_ID, _EPERM),
    "mkdirat": without_bits(2, _SET_ID, _EPERM),
}
_LOOSE: dict[str, list[Op]] = {
    "ioctl": not_with(1, _TERMINAL_IOCTLS, _EPERM),
    "socket": only_with(0, _FAMILIES, _NO_FAMILY),
    "socketpair": only_with(0, (_LOCAL,), _NO_FAMILY),
}
_STRICT: dict[str, list[Op]] = {
    # The answer of the kernel about a request that a file doesn't have. Programs expect it.
    "ioctl": only_with(1, _IOCTLS, refuse(errno.ENOTTY)),
    "fcntl": not_with(1, _SET_OWNER, _EPERM),
    "socket": [_NO_FAMILY],
    "socketpair": [load(0), if_equal(_LOCAL, 1, 0), _NO_FAMILY, *only_with(1, _PAIR_KINDS, _EPERM, _KIND)],
    # The limits of the process itself, not of another process.
    "prlimit64": only_with(0, (0,), _EPERM),
    # Only the present time (the times are null), as `touch` sets it, for an open file (the path is null).
    "utimensat": [
        *(
            op
            for argument in (1, 2)
            for high in (False, True)
            for op in (load(argument, high=high), if_equal(0, 1, 0), _EPERM)
        ),
        ALLOW,
    ],
}


def _refused(strength: Strength, root: bool, scoped: bool) -> frozenset[str]:
    """The calls that are refused with any arguments."""
    if strength == "loose":
        return _DANGEROUS
    calls = _DANGEROUS | _SHARED | _ATTRIBUTES | _PRIORITIES
    if root:
        # Root could set the times of the system's files.
        calls |= {"utimensat"}
    return calls if scoped else calls | _SIGNALS


@cache
def command_filter(strength: Strength, *, root: bool = False, scoped: bool = True) -> bytes | None:
    """The filter in the kernel's format; None on a machine with unknown system calls.

    Args:
        strength: ``loose`` or ``strict``.
        root: Whether the command runs as root; for ``strict``.
        scoped: Whether Landlock prevents signals to other processes; for ``strict``.
    """
    table = {name: [_EPERM] for name in sorted(_refused(strength, root, scoped))}
    by_arguments = _BY_ARGUMENTS | (_STRICT if strength == "strict" else _LOOSE)
    table = {**by_arguments, **table}
    return assemble(table, otherwise=ALLOW, unknown=_ENOSYS)

"""What a command may ask of the kernel: a seccomp filter that refuses what namespaces and Landlock leave open.

It lists what is refused, not what is allowed, because a command is any program there is; a refusal is an error code, which
programs can live with. Calls that nobody has judged (newer ones, other architectures' ones) are refused too. The ``loose`` filter
goes with namespaces, which keep the command from other processes and from the network. The ``strict`` one goes with Landlock,
which doesn't, so the filter has to.
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

#: What a command has no honest use for: other processes' memory, the kernel's own tables and modules, mounts and namespaces,
#: keys, the clock; and io_uring, which makes calls that no filter sees.
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

#: Memory, semaphores and queues that processes share by number or name, where no namespace separates them.
_SHARED = frozenset(
    (
        "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink "
        "mq_timedsend mq_timedreceive mq_notify mq_getsetattr"
    ).split()
)

#: What signals other processes, where neither a namespace nor Landlock prevents it.
_SIGNALS = frozenset(("kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal process_mrelease").split())

#: What changes a file's mode, owner, times or attributes by its path; Landlock doesn't judge that.
_ATTRIBUTES = frozenset(
    (
        "chmod fchmodat fchmodat2 chown lchown fchownat utime utimes futimesat setxattr lsetxattr setxattrat "
        "removexattr lremovexattr removexattrat file_setattr"
    ).split()
)

#: The same through an open file, which Landlock has judged; but root can open a file that it may only read.
_OPEN_ATTRIBUTES = frozenset(("fchmod fchown fsetxattr fremovexattr").split())

#: What slows or stops processes of the same user.
_PRIORITIES = frozenset(
    ("sched_setscheduler sched_setparam sched_setattr sched_setaffinity setpriority ioprio_set").split()
)

#: Every flag that makes a namespace, but for the time's, which `clone` can't be asked for.
_NEW_NAMESPACES = 0x7E020000
#: Putting characters into a terminal's input, and changing its line discipline.
_IOCTLS = (0x5412, 0x541C, 0x5423)
#: Local, internet, and asking the kernel about interfaces: the only families that a network namespace separates. Those of virtual
#: machines, cryptography, Bluetooth and the like reach the host.
_FAMILIES = (1, 2, 10, 16)
#: Two local sockets, connected for good: streams, and streams of packets. A pair for single packets can send to other sockets, too.
_LOCAL, _PAIR_KINDS, _KIND = 1, (1, 5), 0xF
#: Naming whom the kernel signals when something can be read: F_SETOWN, F_SETOWN_EX; and as an ioctl of sockets.
_SET_OWNER, _SET_OWNER_IOCTLS = (8, 15), (0x8901, 0x8902)
#: The kind of a file in its mode; character and block devices.
_FILE_KIND, _DEVICES = 0xF000, (0x2000, 0x6000)
#: Whoever runs a file with these bits becomes its owner or a member of its group. Files outlive the command.
_SET_ID = 0o6000
#: To ask, and to be an ordinary Linux program.
_PERSONALITIES = (0xFFFFFFFF, 0)

_EPERM, _ENOSYS, _NO_FAMILY = refuse(errno.EPERM), refuse(errno.ENOSYS), refuse(errno.EAFNOSUPPORT)


#: Calls that are judged by their arguments under either filter.
_BY_ARGUMENTS: dict[str, list[Op]] = {
    "clone": without_bits(0, _NEW_NAMESPACES, _EPERM),
    # Their arguments lie in memory, where a filter can't look; programs then use the older calls.
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
    "ioctl": not_with(1, _IOCTLS, _EPERM),
    "socket": only_with(0, _FAMILIES, _NO_FAMILY),
    "socketpair": only_with(0, (_LOCAL,), _NO_FAMILY),
}
_STRICT: dict[str, list[Op]] = {
    "ioctl": not_with(1, (*_IOCTLS, *_SET_OWNER_IOCTLS), _EPERM),
    "fcntl": not_with(1, _SET_OWNER, _EPERM),
    "socket": [_NO_FAMILY],
    "socketpair": [load(0), if_equal(_LOCAL, 1, 0), _NO_FAMILY, *only_with(1, _PAIR_KINDS, _EPERM, _KIND)],
    # Its own limits, not another process's.
    "prlimit64": only_with(0, (0,), _EPERM),
    # Of an open file (the path is null), not by a path.
    "utimensat": [load(1), if_equal(0, 0, 2), load(1, high=True), if_equal(0, 1, 0), _EPERM, ALLOW],
}


def _refused(strength: Strength, root: bool, scoped: bool) -> frozenset[str]:
    """The calls that are refused with any arguments."""
    if strength == "loose":
        return _DANGEROUS
    found = _DANGEROUS | _SHARED | _ATTRIBUTES | _PRIORITIES
    if root:
        found |= _OPEN_ATTRIBUTES | {"utimensat"}
    return found if scoped else found | _SIGNALS


@cache
def command_filter(
    strength: Strength, *, root: bool = False, scoped: bool = True, machine: str | None = None
) -> bytes | None:
    """The filter as the kernel takes it; None on a machine whose calls aren't known.

    Args:
        strength: ``loose`` or ``strict``.
        root: Whether the command runs as root; for ``strict``.
        scoped: Whether Landlock keeps signals within the command; for ``strict``.
        machine: As `os.uname` calls it; this one, when not given.
    """
    table = {name: [_EPERM] for name in sorted(_refused(strength, root, scoped))}
    by_arguments = _BY_ARGUMENTS | (_STRICT if strength == "strict" else _LOOSE)
    table = {**by_arguments, **table}
    return assemble(table, otherwise=ALLOW, unknown=_ENOSYS, machine=machine)

"""System calls by what can be done with them, and their numbers per machine.

The numbers are the kernel's (include/uapi/asm/unistd_64.h, include/uapi/asm-generic/unistd.h, and for calls that are
newer than most headers the tables of Linux 6.18). A call that a machine doesn't have has no number there.
"""

from __future__ import annotations

#: What a command has no honest use for: other processes' memory, the kernel's own tables and modules, mounts and namespaces,
#: keys, the clock; and ways to do several calls unseen (io_uring).
TROUBLE = frozenset(
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

#: Memory, semaphores and queues that processes share by number or name, where no namespace keeps them apart.
SHARED = frozenset(
    (
        "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink "
        "mq_timedsend mq_timedreceive mq_notify mq_getsetattr"
    ).split()
)

#: What reaches other processes, where neither a namespace nor Landlock keeps them apart.
SIGNALS = frozenset(("kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal process_mrelease").split())

#: What changes a file's mode, owner, times or attributes by its path: Landlock has no say in that.
MARKS = frozenset(
    (
        "chmod fchmodat fchmodat2 chown lchown fchownat utime utimes futimesat setxattr lsetxattr setxattrat "
        "removexattr lremovexattr removexattrat file_setattr"
    ).split()
)

#: The same through an open file, which Landlock has judged; root could open what it may only read.
OPEN_MARKS = frozenset(("fchmod fchown fsetxattr fremovexattr").split())

#: What slows or stops processes of the same user.
OTHERS = frozenset(("sched_setscheduler sched_setparam sched_setattr sched_setaffinity setpriority ioprio_set").split())

#: What depends on its arguments.
JUDGED = frozenset(
    (
        "clone clone3 ioctl fcntl socket socketpair personality prlimit64 mknod mknodat utimensat "
        "chmod fchmod fchmodat fchmodat2 open openat "
        "openat2 creat mkdir mkdirat"
    ).split()
)

#: Calls with a higher number are newer than these tables, so nobody has thought about them.
NEWEST = 469

#: Per machine (as `os.uname` calls it): the number of each call above.
NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "fcntl": 72,
        "socketpair": 53,
        "open": 2,
        "openat": 257,
        "openat2": 437,
        "creat": 85,
        "mkdir": 83,
        "mkdirat": 258,
        "_sysctl": 156,
        "acct": 163,
        "add_key": 248,
        "adjtimex": 159,
        "bpf": 321,
        "chmod": 90,
        "chown": 92,
        "chroot": 161,
        "clock_adjtime": 305,
        "clock_settime": 227,
        "clone": 56,
        "clone3": 435,
        "create_module": 174,
        "delete_module": 176,
        "fanotify_init": 300,
        "fanotify_mark": 301,
        "fchmod": 91,
        "fchmodat": 268,
        "fchmodat2": 452,
        "fchown": 93,
        "fchownat": 260,
        "file_setattr": 469,
        "finit_module": 313,
        "fremovexattr": 199,
        "fsconfig": 431,
        "fsetxattr": 190,
        "fsmount": 432,
        "fsopen": 430,
        "fspick": 433,
        "futimesat": 261,
        "init_module": 175,
        "io_uring_enter": 426,
        "io_uring_register": 427,
        "io_uring_setup": 425,
        "ioctl": 16,
        "ioperm": 173,
        "iopl": 172,
        "ioprio_set": 251,
        "kcmp": 312,
        "kexec_file_load": 320,
        "kexec_load": 246,
        "keyctl": 250,
        "kill": 62,
        "lchown": 94,
        "lookup_dcookie": 212,
        "lremovexattr": 198,
        "lsetxattr": 189,
        "lsm_set_self_attr": 460,
        "memfd_secret": 447,
        "migrate_pages": 256,
        "mknod": 133,
        "mknodat": 259,
        "modify_ldt": 154,
        "mount": 165,
        "mount_setattr": 442,
        "move_mount": 429,
        "move_pages": 279,
        "mq_getsetattr": 245,
        "mq_notify": 244,
        "mq_open": 240,
        "mq_timedreceive": 243,
        "mq_timedsend": 242,
        "mq_unlink": 241,
        "msgctl": 71,
        "msgget": 68,
        "msgrcv": 70,
        "msgsnd": 69,
        "name_to_handle_at": 303,
        "nfsservctl": 180,
        "open_by_handle_at": 304,
        "open_tree": 428,
        "open_tree_attr": 467,
        "perf_event_open": 298,
        "personality": 135,
        "pidfd_getfd": 438,
        "pidfd_send_signal": 424,
        "pivot_root": 155,
        "prlimit64": 302,
        "process_madvise": 440,
        "process_mrelease": 448,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "ptrace": 101,
        "quotactl": 179,
        "quotactl_fd": 443,
        "reboot": 169,
        "removexattr": 197,
        "removexattrat": 466,
        "request_key": 249,
        "rt_sigqueueinfo": 129,
        "rt_tgsigqueueinfo": 297,
        "sched_setaffinity": 203,
        "sched_setattr": 314,
        "sched_setparam": 142,
        "sched_setscheduler": 144,
        "semctl": 66,
        "semget": 64,
        "semop": 65,
        "semtimedop": 220,
        "setdomainname": 171,
        "sethostname": 170,
        "setns": 308,
        "setpriority": 141,
        "settimeofday": 164,
        "setxattr": 188,
        "setxattrat": 463,
        "shmat": 30,
        "shmctl": 31,
        "shmdt": 67,
        "shmget": 29,
        "socket": 41,
        "swapoff": 168,
        "swapon": 167,
        "sysfs": 139,
        "syslog": 103,
        "tgkill": 234,
        "tkill": 200,
        "umount2": 166,
        "unshare": 272,
        "uselib": 134,
        "userfaultfd": 323,
        "ustat": 136,
        "utime": 132,
        "utimensat": 280,
        "utimes": 235,
        "vhangup": 153,
    },
    "aarch64": {
        "fcntl": 25,
        "socketpair": 199,
        "openat": 56,
        "openat2": 437,
        "mkdirat": 34,
        "acct": 89,
        "add_key": 217,
        "adjtimex": 171,
        "bpf": 280,
        "chroot": 51,
        "clock_adjtime": 266,
        "clock_settime": 112,
        "clone": 220,
        "clone3": 435,
        "delete_module": 106,
        "fanotify_init": 262,
        "fanotify_mark": 263,
        "fchmod": 52,
        "fchmodat": 53,
        "fchmodat2": 452,
        "fchown": 55,
        "fchownat": 54,
        "file_setattr": 469,
        "finit_module": 273,
        "fremovexattr": 16,
        "fsconfig": 431,
        "fsetxattr": 7,
        "fsmount": 432,
        "fsopen": 430,
        "fspick": 433,
        "init_module": 105,
        "io_uring_enter": 426,
        "io_uring_register": 427,
        "io_uring_setup": 425,
        "ioctl": 29,
        "ioprio_set": 30,
        "kcmp": 272,
        "kexec_file_load": 294,
        "kexec_load": 104,
        "keyctl": 219,
        "kill": 129,
        "lookup_dcookie": 18,
        "lremovexattr": 15,
        "lsetxattr": 6,
        "lsm_set_self_attr": 460,
        "memfd_secret": 447,
        "migrate_pages": 238,
        "mknodat": 33,
        "mount": 40,
        "mount_setattr": 442,
        "move_mount": 429,
        "move_pages": 239,
        "mq_getsetattr": 185,
        "mq_notify": 184,
        "mq_open": 180,
        "mq_timedreceive": 183,
        "mq_timedsend": 182,
        "mq_unlink": 181,
        "msgctl": 187,
        "msgget": 186,
        "msgrcv": 188,
        "msgsnd": 189,
        "name_to_handle_at": 264,
        "nfsservctl": 42,
        "open_by_handle_at": 265,
        "open_tree": 428,
        "open_tree_attr": 467,
        "perf_event_open": 241,
        "personality": 92,
        "pidfd_getfd": 438,
        "pidfd_send_signal": 424,
        "pivot_root": 41,
        "prlimit64": 261,
        "process_madvise": 440,
        "process_mrelease": 448,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "ptrace": 117,
        "quotactl": 60,
        "quotactl_fd": 443,
        "reboot": 142,
        "removexattr": 14,
        "removexattrat": 466,
        "request_key": 218,
        "rt_sigqueueinfo": 138,
        "rt_tgsigqueueinfo": 240,
        "sched_setaffinity": 122,
        "sched_setattr": 274,
        "sched_setparam": 118,
        "sched_setscheduler": 119,
        "semctl": 191,
        "semget": 190,
        "semop": 193,
        "semtimedop": 192,
        "setdomainname": 162,
        "sethostname": 161,
        "setns": 268,
        "setpriority": 140,
        "settimeofday": 170,
        "setxattr": 5,
        "setxattrat": 463,
        "shmat": 196,
        "shmctl": 195,
        "shmdt": 197,
        "shmget": 194,
        "socket": 198,
        "swapoff": 225,
        "swapon": 224,
        "syslog": 116,
        "tgkill": 131,
        "tkill": 130,
        "umount2": 39,
        "unshare": 97,
        "userfaultfd": 282,
        "utimensat": 88,
        "vhangup": 58,
    },
}

"""The numbers of system calls, for each machine.

They are from the kernel (include/uapi/asm/unistd_64.h, include/uapi/asm-generic/unistd.h). For calls that are newer than most
headers, they are from the tables of Linux 6.18.
"""

from __future__ import annotations

from functools import cache

#: Calls with a higher number are newer than this table.
NEWEST = 469

_MACHINES = ("x86_64", "aarch64")
#: Name, number on x86-64, number on AArch64; "-" if the machine has no such call.
_TABLE = """
_sysctl 156 -
acct 163 89
add_key 248 217
adjtimex 159 171
bind 49 200
bpf 321 280
brk 12 214
chmod 90 -
chown 92 -
chroot 161 51
clock_adjtime 305 266
clock_getres 229 114
clock_gettime 228 113
clock_nanosleep 230 115
clock_settime 227 112
clone 56 220
clone3 435 435
close 3 57
connect 42 203
creat 85 -
create_module 174 -
delete_module 176 106
dup 32 23
execve 59 221
execveat 322 281
exit 60 93
exit_group 231 94
faccessat2 439 439
fanotify_init 300 262
fanotify_mark 301 263
fchmod 91 52
fchmodat 268 53
fchmodat2 452 452
fchown 93 55
fchownat 260 54
fcntl 72 25
file_setattr 469 469
finit_module 313 273
fork 57 -
fremovexattr 199 16
fsconfig 431 431
fsetxattr 190 7
fsmount 432 432
fsopen 430 430
fspick 433 433
fstat 5 80
futex 202 98
futimesat 261 -
getcpu 309 168
getcwd 79 17
getdents64 217 61
getegid 108 177
geteuid 107 175
getgid 104 176
getpid 39 172
getppid 110 173
getrandom 318 278
getrlimit 97 163
getrusage 98 165
gettid 186 178
gettimeofday 96 169
getuid 102 174
init_module 175 105
io_uring_enter 426 426
io_uring_register 427 427
io_uring_setup 425 425
ioctl 16 29
ioperm 173 -
iopl 172 -
ioprio_set 251 30
kcmp 312 272
kexec_file_load 320 294
kexec_load 246 104
keyctl 250 219
kill 62 129
lchown 94 -
listen 50 201
lookup_dcookie 212 18
lremovexattr 198 15
lseek 8 62
lsetxattr 189 6
lsm_set_self_attr 460 460
lstat 6 -
madvise 28 233
membarrier 324 283
memfd_secret 447 447
migrate_pages 256 238
mkdir 83 -
mkdirat 258 34
mknod 133 -
mknodat 259 33
mmap 9 222
modify_ldt 154 -
mount 165 40
mount_setattr 442 442
move_mount 429 429
move_pages 279 239
mprotect 10 226
mq_getsetattr 245 185
mq_notify 244 184
mq_open 240 180
mq_timedreceive 243 183
mq_timedsend 242 182
mq_unlink 241 181
mremap 25 216
msgctl 71 187
msgget 68 186
msgrcv 70 188
msgsnd 69 189
munmap 11 215
name_to_handle_at 303 264
nanosleep 35 101
newfstatat 262 79
nfsservctl 180 42
open 2 -
open_by_handle_at 304 265
open_tree 428 428
open_tree_attr 467 467
openat 257 56
openat2 437 437
perf_event_open 298 241
personality 135 92
pidfd_getfd 438 438
pidfd_send_signal 424 424
pivot_root 155 41
poll 7 -
ppoll 271 73
pread64 17 67
prlimit64 302 261
process_madvise 440 440
process_mrelease 448 448
process_vm_readv 310 270
process_vm_writev 311 271
pselect6 270 72
ptrace 101 117
quotactl 179 60
quotactl_fd 443 443
read 0 63
readv 19 65
reboot 169 142
recvfrom 45 207
removexattr 197 14
removexattrat 466 466
request_key 249 218
restart_syscall 219 128
rseq 334 293
rt_sigaction 13 134
rt_sigprocmask 14 135
rt_sigqueueinfo 129 138
rt_sigreturn 15 139
rt_tgsigqueueinfo 297 240
sched_getaffinity 204 123
sched_setaffinity 203 122
sched_setattr 314 274
sched_setparam 142 118
sched_setscheduler 144 119
sched_yield 24 124
select 23 -
semctl 66 191
semget 64 190
semop 65 193
semtimedop 220 192
sendto 44 206
setdomainname 171 162
sethostname 170 161
setns 308 268
setpriority 141 140
settimeofday 164 170
setxattr 188 5
setxattrat 463 463
shmat 30 196
shmctl 31 195
shmdt 67 197
shmget 29 194
sigaltstack 131 132
socket 41 198
socketpair 53 199
stat 4 -
statx 332 291
swapoff 168 225
swapon 167 224
sysfs 139 -
sysinfo 99 179
syslog 103 116
tgkill 234 131
time 201 -
times 100 153
tkill 200 130
umount2 166 39
uname 63 160
unshare 272 97
uselib 134 -
userfaultfd 323 282
ustat 136 -
utime 132 -
utimensat 280 88
utimes 235 -
vfork 58 -
vhangup 153 58
write 1 64
writev 20 66
"""


@cache
def numbers(machine: str) -> dict[str, int | None]:
    """The number of each call by its name, for a machine name of `os.uname`. None for a call that the machine doesn't have.

    Empty for an unknown machine.
    """
    if machine not in _MACHINES:
        return {}
    column = 1 + _MACHINES.index(machine)
    rows = (line.split() for line in _TABLE.split("\n") if line)
    return {row[0]: None if row[column] == "-" else int(row[column]) for row in rows}

"""What a command may ask of the kernel: a seccomp filter that says no to what namespaces and Landlock leave open.

A list of what is refused, not of what is allowed, because commands are any program there is; a refusal is an error code that
programs can live with. What isn't known (newer calls, other architectures' calls) is refused too. The ``loose`` one goes with
namespaces, which keep the command from other processes and from the network; the ``strict`` one with Landlock, which doesn't, so
that the filter has to.
"""

from __future__ import annotations

import os
import struct
from functools import cache
from typing import Literal, NamedTuple

from albert_tools.engine.sandbox.kernel.syscalls import (
    JUDGED,
    MARKS,
    NEWEST,
    NUMBERS,
    OPEN_MARKS,
    OTHERS,
    SHARED,
    SIGNALS,
    TROUBLE,
)

Strength = Literal["loose", "strict"]

_KILL_PROCESS, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_LOAD, _AND, _IF_EQUAL, _IF_ABOVE, _IF_AT_LEAST, _IF_SET, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT = 0, 4
#: The audit constant of each architecture (include/uapi/linux/audit.h).
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: Numbers from here up are the x32 calls of an x86-64 kernel.
_X32 = 0x40000000

#: Every flag that makes a namespace, but for the time's, which `clone` can't be asked for.
_NEW_NAMESPACES = 0x7E020000
#: Putting characters into a terminal's input, and changing its line discipline.
_IOCTLS = (0x5412, 0x541C, 0x5423)
#: Local, internet, and asking the kernel about interfaces: the only ones that a network namespace keeps to itself. Those of virtual
#: machines, cryptography, Bluetooth and the like reach the host.
_FAMILIES = (1, 2, 10, 16)
#: Two local sockets, connected for good: streams, and streams of packets. A pair for single packets can send to other sockets, too.
_PAIRED, _KINDS, _KIND = 1, (1, 5), 0xF
#: Naming whom the kernel signals when something can be read: F_SETOWN, F_SETOWN_EX; and as an ioctl of sockets.
_OWNING, _OWNING_IOCTLS = (8, 15), (0x8901, 0x8902)
#: The kind of a file in its mode; character and block devices.
_FILE_KIND, _DEVICES = 0xF000, (0x2000, 0x6000)
#: Whoever runs a file with these bits becomes its owner or of its group.
_SET_ID = 0o6000
#: To ask, and to be an ordinary Linux program.
_PERSONALITIES = (0xFFFFFFFF, 0)


class Op(NamedTuple):
    """One instruction of a BPF program."""

    code: int
    value: int
    yes: int = 0
    no: int = 0


def _word(argument: int) -> int:
    """Where the low half of a call's argument stands; both architectures are little-endian."""
    return 16 + 8 * argument


def _refuse(error: int) -> Op:
    return Op(_RETURN, _ERRNO | error)


def _only(argument: int, values: tuple[int, ...], error: int, mask: int = 0xFFFFFFFF) -> list[Op]:
    """Allowed with these values only, of the bits of `mask`."""
    tests = [Op(_IF_EQUAL, value, len(values) - i, 0) for i, value in enumerate(values)]
    return [Op(_LOAD, _word(argument)), Op(_AND, mask), *tests, _refuse(error), Op(_RETURN, _ALLOW)]


def _never(argument: int, values: tuple[int, ...], mask: int = 0xFFFFFFFF, bits: int = 0) -> list[Op]:
    """Refused with any of `bits`, and with these values, of the bits of `mask`."""
    tests = [Op(_IF_EQUAL, value, len(values) - i, 0) for i, value in enumerate(values)]
    first = [Op(_IF_SET, bits, len(values) + 2, 0)] if bits else []
    return [Op(_LOAD, _word(argument)), *first, Op(_AND, mask), *tests, Op(_RETURN, _ALLOW), _refuse(_EPERM)]


def _bits(argument: int) -> list[Op]:
    """Refused with a mode that has a set-id bit."""
    return [Op(_LOAD, _word(argument)), Op(_IF_SET, _SET_ID, 0, 1), _refuse(_EPERM), Op(_RETURN, _ALLOW)]


def _judged(strength: Strength, root: bool) -> dict[str, list[Op]]:
    """What each call of `JUDGED` comes to."""
    strict = strength == "strict"
    in_place = [Op(_LOAD, _word(1)), Op(_IF_EQUAL, 0, 0, 2), Op(_LOAD, _word(1) + 4), Op(_IF_EQUAL, 0, 1, 0)]
    found = {
        "clone": [Op(_LOAD, _word(0)), Op(_IF_SET, _NEW_NAMESPACES, 0, 1), _refuse(_EPERM), Op(_RETURN, _ALLOW)],
        # Its flags lie in memory, where a filter can't look; without it, libraries take `clone`.
        "clone3": [_refuse(_ENOSYS)],
        "ioctl": _never(1, (*_IOCTLS, *_OWNING_IOCTLS) if strict else _IOCTLS),
        "fcntl": _never(1, _OWNING) if strict else [Op(_RETURN, _ALLOW)],
        "socket": [_refuse(_EAFNOSUPPORT)] if strict else _only(0, _FAMILIES, _EAFNOSUPPORT),
        "socketpair": [
            *(Op(_LOAD, _word(0)), Op(_IF_EQUAL, _PAIRED, 1, 0), _refuse(_EAFNOSUPPORT)),
            *(_only(1, _KINDS, _EPERM, _KIND) if strict else [Op(_RETURN, _ALLOW)]),
        ],
        "personality": _only(0, _PERSONALITIES, _EPERM),
        "mknod": _never(1, _DEVICES, _FILE_KIND, _SET_ID),
        "mknodat": _never(2, _DEVICES, _FILE_KIND, _SET_ID),
        # Its own limits, not another process's.
        # Nothing that is made here becomes anybody else by being run: a file's bits outlive the command.
        "chmod": _bits(1),
        "fchmod": _bits(1),
        "fchmodat": _bits(2),
        "fchmodat2": _bits(2),
        "open": _bits(2),
        "openat": _bits(3),
        # Its arguments lie in memory, too; programs know the older one.
        "openat2": [_refuse(_ENOSYS)],
        "creat": _bits(1),
        "mkdir": _bits(1),
        "mkdirat": _bits(2),
        "prlimit64": _only(0, (0,), _EPERM) if strict else [Op(_RETURN, _ALLOW)],
        # Of the open file, or by a path.
        "utimensat": [*in_place, _refuse(_EPERM), Op(_RETURN, _ALLOW)] if strict else [Op(_RETURN, _ALLOW)],
    }
    if strict and root:
        found["utimensat"] = [_refuse(_EPERM)]
    assert found.keys() == JUDGED
    return {name: ops for name, ops in found.items() if name not in refused(strength, root=root, scoped=True)}


def refused(strength: Strength, *, root: bool, scoped: bool) -> frozenset[str]:
    """The calls that are refused whatever their arguments. `scoped`: Landlock keeps signals within the command."""
    if strength == "loose":
        return TROUBLE
    return (
        TROUBLE | SHARED | MARKS | OTHERS | (OPEN_MARKS if root else frozenset()) | (frozenset() if scoped else SIGNALS)
    )


@cache
def program(strength: Strength, *, root: bool, scoped: bool = True, machine: str | None = None) -> bytes | None:
    """The filter as the kernel takes it; None on a machine whose calls aren't known."""
    machine = machine or os.uname().machine
    numbers, audit = NUMBERS.get(machine), _AUDIT.get(machine)
    if numbers is None or audit is None:
        return None
    ops = [
        Op(_LOAD, _ARCH_AT),
        Op(_IF_EQUAL, audit, 1, 0),
        Op(_RETURN, _KILL_PROCESS),
        Op(_LOAD, _NUMBER_AT),
        Op(_IF_AT_LEAST, _X32, 0, 1),
        _refuse(_ENOSYS),
        Op(_IF_ABOVE, NEWEST, 0, 1),
        _refuse(_ENOSYS),
    ]
    for name in sorted(refused(strength, root=root, scoped=scoped)):
        if name in numbers:
            ops += [Op(_IF_EQUAL, numbers[name], 0, 1), _refuse(_EPERM)]
    for name, judgement in sorted(_judged(strength, root).items()):
        if name in numbers:
            ops += [Op(_IF_EQUAL, numbers[name], 0, len(judgement)), *judgement]
    ops.append(Op(_RETURN, _ALLOW))
    return b"".join(struct.pack("<HBBI", op.code, op.yes, op.no, op.value) for op in ops)

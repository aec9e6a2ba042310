"""An assembler for seccomp filters.

A filter is a BPF program that decides about each system call. `assemble` creates it from a table. Each row contains the name of a
call and a block of instructions that decides about the call. Blocks are tried in the order of the table, and every path through a
block ends with a return. A call with the convention of another architecture kills the process.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from albert_tools.engine.sandbox.kernel.syscalls import NEWEST, numbers

_LOAD, _AND, _IF_EQUAL, _IF_ABOVE, _IF_AT_LEAST, _IF_ANY, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
#: The audit constant of each architecture (include/uapi/linux/audit.h).
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: Numbers from here on are x32 calls of an x86-64 kernel.
_X32 = 0x40000000


class Op(NamedTuple):
    """One instruction. `yes` and `no` are the numbers of instructions that a test skips."""

    code: int
    yes: int
    no: int
    value: int


KILL = Op(_RETURN, 0, 0, 0x80000000)
ALLOW = Op(_RETURN, 0, 0, 0x7FFF0000)


def refuse(error: int = errno.EPERM) -> Op:
    """Let the call fail with an error number."""
    return Op(_RETURN, 0, 0, 0x00050000 | error)


def load(argument: int, *, high: bool = False) -> Op:
    """Load the low or the high half of an argument of the call. Both architectures are little-endian."""
    return Op(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument + 4 * high)


def if_equal(value: int, yes: int, no: int) -> Op:
    """Test whether the loaded value equals `value`."""
    return Op(_IF_EQUAL, yes, no, value)


def if_any(bits: int, yes: int, no: int) -> Op:
    """Test whether the loaded value has any of `bits`."""
    return Op(_IF_ANY, yes, no, bits)


def only_with(argument: int, values: Sequence[int], otherwise: Op, mask: int = 0xFFFFFFFF) -> list[Op]:
    """Allow the call only if the argument, masked with `mask`, is one of `values`."""
    tests = [if_equal(value, len(values) - i, 0) for i, value in enumerate(values)]
    return [load(argument), Op(_AND, 0, 0, mask), *tests, otherwise, ALLOW]


def not_with(argument: int, values: Sequence[int], otherwise: Op, mask: int = 0xFFFFFFFF, bits: int = 0) -> list[Op]:
    """Refuse the call if the argument, masked with `mask`, is one of `values`, or if the argument has any of `bits`."""
    tests = [if_equal(value, len(values) - i, 0) for i, value in enumerate(values)]
    return [load(argument), if_any(bits, len(values) + 2, 0), Op(_AND, 0, 0, mask), *tests, ALLOW, otherwise]


def without_bits(argument: int, bits: int, otherwise: Op) -> list[Op]:
    """Allow the call unless an argument has any of `bits`."""
    return [load(argument), if_any(bits, 0, 1), otherwise, ALLOW]


def assemble(
    table: Mapping[str, Sequence[Op]], *, otherwise: Op, unknown: Op | None = None, machine: str | None = None
) -> bytes | None:
    """The filter in the kernel's format; None on a machine with unknown system calls.

    Args:
        table: The block for each call, by name. A call that the machine doesn't have is skipped.
        otherwise: The decision about all other calls.
        unknown: The decision about calls newer than `NEWEST`, and about x32 calls. If it is None, `otherwise` applies to newer
        calls,
            and x32 calls kill the process.
        machine: The name in `os.uname`; None for this machine.
    """
    machine = machine or os.uname().machine
    known, audit = numbers(machine), _AUDIT.get(machine)
    if not known or audit is None:
        return None
    ops = [Op(_LOAD, 0, 0, _ARCHITECTURE_AT), if_equal(audit, 1, 0), KILL, Op(_LOAD, 0, 0, _NUMBER_AT)]
    ops += [Op(_IF_AT_LEAST, 0, 1, _X32), unknown or KILL]
    if unknown is not None:
        ops += [Op(_IF_ABOVE, 0, 1, NEWEST), unknown]
    for name, block in table.items():
        number = known[name]
        if number is not None:
            ops += [if_equal(number, 0, len(block)), *block]
    ops.append(otherwise)
    return b"".join(struct.pack("<HBBI", *op) for op in ops)

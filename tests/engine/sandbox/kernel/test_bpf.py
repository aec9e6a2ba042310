"""The assembler of seccomp filters."""

from __future__ import annotations

import pytest

from albert_tools.engine.sandbox.kernel.bpf import ALLOW, KILL, assemble


def test_a_misspelled_call_is_an_error() -> None:
    with pytest.raises(KeyError, match="raed"):
        assemble({"raed": [ALLOW]}, otherwise=KILL, machine="x86_64")


def test_a_call_that_the_machine_does_not_have_is_omitted() -> None:
    table = {"read": [ALLOW], "open": [KILL]}
    lengths = [len(assemble(table, otherwise=KILL, machine=m) or b"") // 8 for m in ("x86_64", "aarch64")]
    assert lengths[0] == lengths[1] + 2


def test_an_unknown_machine_has_no_filter() -> None:
    assert assemble({"read": [ALLOW]}, otherwise=KILL, machine="pdp11") is None

"""The outcome of every attack on the command sandbox, under each confinement and as each user that this machine allows."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.sandbox.command.confinement import found
from tests.engine.sandbox.command.test_command_escapes import NOT_STOPPED
from tests.helpers.attacked import SOMEBODY, attack
from tests.helpers.children import Child
from tests.helpers.probes import PROBES

#: The number of processes that make the attacks of one column.
PARTS = 2


class Column(NamedTuple):
    """A confinement, and the user of the attacker."""

    kind: str
    user: int

    @property
    def title(self) -> str:
        """The heading of the column."""
        who = "an ordinary user" if self.user or os.getuid() else "root"
        return f"`{self.kind}`, {who}"


def columns() -> list[Column]:
    """Return every column that this machine allows. Only root can change the user."""
    users = [0, SOMEBODY] if os.getuid() == 0 else [0]
    return [Column(kind, user) for kind in found().kinds for user in users]


def made(column: Column, names: list[str]) -> Iterator[tuple[str, str]]:
    """Make each attack of `names`. The outcome is ``held``, or what the attacker got."""
    top = Path(tempfile.mkdtemp(prefix="albert-attack-", dir="/tmp"))
    try:
        top.chmod(0o755)
        child = Child(attack, str(top.resolve()), column.kind, column.user, names)
        for name, wrong, _, text in child.rest():
            if "Traceback" in text or "not found" in text:
                # An attack that could not begin proves nothing.
                wrong = [*wrong, f"it could not begin: {text[-200:]}"]
            yield name, "; ".join(map(str, wrong)) or "held"
    finally:
        shutil.rmtree(top, ignore_errors=True)


def outcomes() -> dict[str, dict[Column, str]]:
    """Return, for each attack and column, the outcome: ``held``, ``open, as documented``, or a text about the problem."""
    wanted = sorted(PROBES)
    found_out: dict[str, dict[Column, str]] = {name: {} for name in wanted}
    for column in columns():
        stopped = [name for name in wanted if (column.kind, name) not in NOT_STOPPED]
        for name in set(wanted) - set(stopped):
            found_out[name][column] = "open, as documented"
        with ThreadPoolExecutor(PARTS) as pool:
            parts = [stopped[n::PARTS] for n in range(PARTS)]
            for told in pool.map(lambda names, column=column: list(made(column, names)), parts):
                for name, outcome in told:
                    found_out[name][column] = outcome
        for name in stopped:
            found_out[name].setdefault(column, "no outcome was reported")
    return found_out

"""A missing program is reported with its purpose and with the command that installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.system import PROGRAMS, advice, missing


def put(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).touch(mode=0o755)
    return str(folder)


def test_if_all_programs_are_found_none_is_missing(tmp_path: Path) -> None:
    assert missing(put(tmp_path, *(p.name for p in PROGRAMS))) == []


@pytest.mark.parametrize(
    ("manager", "said"),
    [("apt-get", "sudo apt-get install git"), ("brew", "brew install git"), (None, "install git")],
)
def test_a_missing_program_is_named(tmp_path: Path, manager: str | None, said: str) -> None:
    path = put(tmp_path, *(p.name for p in PROGRAMS if p.name != "git"), *([manager] if manager else []))
    (lacking,) = missing(path)
    assert advice([lacking], path).endswith(f"\n  git      for {lacking.wanted_for}\nGet them with: {said}")

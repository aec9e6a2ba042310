"""Variables without what tools could write."""

from __future__ import annotations

from pathlib import Path

import pytest

from albert_tools.engine.model.environment import outside


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("{top}/.venv/bin:/usr/bin", "/usr/bin"),
        ("{top}/lib", None),
        ("--require {top}/.pnp.cjs", None),
        ("--max-old-space-size=4096 --import=file://{top}/x.mjs", None),
        ("{link}/bin:/usr/bin", "/usr/bin"),
        ("--require {link}/.pnp.cjs", None),
        ("~/pro j/bin:/usr/bin", "/usr/bin"),
        ("--require /opt/a.js --require {link} x/b.js", None),
        ("/home{top}/bin:https://example.org{top}/x:{top}s", "/home{top}/bin:https://example.org{top}/x:{top}s"),
        ("unix:path=/run/user/1000/bus", "unix:path=/run/user/1000/bus"),
        ("", ""),
    ],
)
def test_the_parts_that_name_a_path_in_a_folder_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, left: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    top, link = tmp_path / "pro j", tmp_path / "link"
    top.mkdir()
    link.symlink_to(top)
    (tmp_path / "link x").symlink_to(top)
    names = {"top": str(top), "link": str(link)}
    found = outside({"X": value.format(**names)}, str(top))
    assert found == ({} if left is None else {"X": left.format(**names)})


def test_a_list_keeps_its_relative_folders() -> None:
    given = {"PATH": "./bin:/work/.venv/bin:/usr/bin", "PYTHONPATH": "src:/work/lib", "XDG_DATA_DIRS": "/work/x"}
    assert outside(given, "/work") == {"PATH": "./bin:/usr/bin", "PYTHONPATH": "src"}
    # A part of a list can begin with two slashes.
    assert outside({"PATH": "/work/.venv/bin://bin:/usr/bin"}, "/work") == {"PATH": "//bin:/usr/bin"}


def test_other_variables_in_a_value_are_expanded() -> None:
    given = {"DIR": "/work", "BASH_ENV": "${DIR}/x", "ENV": "$DIR/x", "SITE_PATH": "https://h:/work/a", "X": "$OTHER/x"}
    assert outside(given, "/work") == {"X": "$OTHER/x"}

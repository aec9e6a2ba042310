"""Where files are stored, and the message if a folder can't be used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.places import Homes, checkouts, make_folder, without_password
from albert_tools.store.tools.tool_store import TinyToolStore


def test_tools_are_in_the_home_folder_and_other_files_where_the_system_has_them() -> None:
    import platformdirs

    homes = Homes.resolve({"HOME": "/home/ada"})
    assert homes.tools == Path("/home/ada/.albert/tools")
    assert homes.config == platformdirs.user_config_path("albert")
    assert homes.cache == platformdirs.user_cache_path("albert")
    assert homes.state == platformdirs.user_state_path("albert")


@pytest.mark.parametrize("named", ["", "/data", "data", "~/data", " /data"])
def test_checkouts_are_where_the_system_has_the_data_of_the_user(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    monkeypatch.setenv("XDG_DATA_HOME", named)
    assert checkouts() == platformdirs.user_data_path("albert-checkouts")


def test_albert_home_moves_all_folders() -> None:
    homes = Homes.resolve({"HOME": "/home/ada", "ALBERT_HOME": "/srv/albert"})
    assert [homes.tools, homes.config, homes.cache, homes.state] == [
        Path("/srv/albert") / part for part in ("tools", "config", "cache", "state")
    ]


@pytest.mark.parametrize(("value", "expected"), [("", "/home/ada/.albert"), ("~/x", "/home/ada/x"), ("~", "/home/ada")])
def test_albert_home_can_begin_with_a_tilde(value: str, expected: str) -> None:
    assert Homes.resolve({"HOME": "/home/ada", "ALBERT_HOME": value}).albert == Path(expected)


@pytest.mark.parametrize(
    ("home", "shown"),
    [
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql://u:p@ss@h/d", "postgresql://u@h/d"),
        ("postgresql://u:secret@h1,h2:5/d?a=b", "postgresql://u@h1,h2:5/d?a=b"),
        ("postgresql://:secret@h/d", "postgresql://@h/d"),
        ("postgres:///d?password=secret&user=u&sslpassword=secret", "postgres:///d?user=u&"),
        ("/home/u:secret@h", "/home/u:secret@h"),
    ],
)
def test_a_home_is_shown_without_its_password(home: str, shown: str) -> None:
    assert without_password(home) == shown


def test_a_database_has_one_folder_on_each_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    urls = ["postgresql://u@h/d", "postgres://u:secret@h/d", "postgresql://u:other@h/d", "postgresql://u@h/e"]
    found = [Homes.resolve({"ALBERT_HOME": url}) for url in urls]
    assert len({homes.state for homes in found}) == 2
    assert {homes.albert.parent for homes in found} == {tmp_path / "albert" / "databases"}
    assert [homes.url for homes in found] == urls
    assert not any(tmp_path.iterdir())


def test_a_relative_albert_home_is_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Homes.resolve({"ALBERT_HOME": "here"}).tools == tmp_path / "here" / "tools"


def test_without_a_home_folder_there_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    with pytest.raises(Failure, match="the home folder is unknown") as caught:
        Homes.resolve({})
    assert caught.value.code == "io_error"
    assert Homes.resolve({"ALBERT_HOME": "/srv/albert"}).albert == Path("/srv/albert")


def test_folders_are_private(tmp_path: Path) -> None:
    made = make_folder(tmp_path / "a" / "b" / "c")
    assert [p.stat().st_mode & 0o777 for p in (made, made.parent, made.parent.parent)] == [0o700] * 3


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere/tools", "/dev/null"])
def test_an_impossible_home_is_reported(tmp_path: Path, place: str, make) -> None:
    (tmp_path / "file").write_text("in the way")
    store = TinyToolStore(tmp_path / place, tmp_path / "cache")
    with pytest.raises(Failure) as caught:
        store.save(make())
    assert caught.value.code == "io_error"
    assert caught.value.hint
    assert "\n" not in caught.value.message
    with pytest.raises(Failure) as caught:
        store.load("shout")
    assert caught.value.code == "unknown_tool"


def test_a_file_as_home_can_not_be_listed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = TinyToolStore(tmp_path / "file", tmp_path / "cache")
    for ask in (store.list, lambda: store.search("x")):
        with pytest.raises(Failure, match="can't read the folder") as caught:
            ask()
        assert caught.value.code == "io_error"


def test_a_missing_home_is_an_empty_one(tmp_path: Path) -> None:
    store = TinyToolStore(tmp_path / "none", tmp_path / "cache")
    assert store.list() == []
    assert store.search("x") == []
    assert not (tmp_path / "none").exists()


def test_loading_imports_nothing_heavy(tmp_path: Path, make) -> None:
    TinyToolStore(tmp_path).save(make())
    code = f"""
import sys
from pathlib import Path
from albert_tools.store.places import Homes
from albert_tools.store.tools.tool_store import TinyToolStore
Homes.resolve().tools
TinyToolStore(Path({str(tmp_path)!r}), lambda: 1 / 0).load("shout")
print(sorted({{"tinydb", "pydantic", "platformdirs", "sqlite3", "lark"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""The wheel: it has every module and every data file, and an environment outside the clone runs it, by pip and by pipx.

The quick tests borrow the libraries of the present environment. The slow ones install everything from the package index.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.surfaces

ROOT = Path(__file__).parents[2]
FOLDERS = ("grammar", "engine", "builtins", "store", "telemetry", "surfaces")

#: Each extra, and a module that needs it.
EXTRAS = {
    "chat": "albert_tools.surfaces.chat.command",
    "langchain": "albert_tools.surfaces.exports.langchain",
    "lsp": "albert_tools.surfaces.lsp.server",
    "mcp": "albert_tools.surfaces.mcp.server",
    "openai-agents": "albert_tools.surfaces.exports.openai_agents",
    "pydantic-ai": "albert_tools.surfaces.exports.pydantic_ai",
    "smolagents": "albert_tools.surfaces.exports.smolagents",
    "web": "albert_tools.surfaces.web.app",
    "wire": "albert_tools.surfaces.wire.server",
}
#: The commands that need an extra.
COMMANDS = {"chat": ["chat"], "lsp": ["lsp"], "mcp": ["mcp"], "web": ["review", "--web"], "wire": ["serve"]}
SHOUT = '''def shout(text: str) -> str:
    """Write a text in capitals.

    Args:
        text: The text.
    """
    return text.upper()
'''


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """The output of a command, which must succeed, without the environment's paths to this clone."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ALBERT", "PIP", "VIRTUAL_ENV"))}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=900,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the files, so that the clone gets no folder `build`."""
    top = tmp_path_factory.mktemp("wheel")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in filter(None, listed):
        target = top / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to(os.readlink(ROOT / name))
        elif (ROOT / name).is_file():
            target.write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", top, top / "clone", cwd=top)
    (built,) = top.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """The interpreter of an environment with the wheel and the libraries of this one."""
    folder = wheel.parent / "borrowed"
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")))
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=wheel.parent,
    )
    return folder / "bin" / "python"


def define_and_run(albert: Path, folder: Path) -> None:
    """Define a tool with the installed command, and run it."""
    (folder / "project" / ".albert").mkdir(parents=True)
    (folder / "project" / "shout.tool").write_text(SHOUT)
    at = {"cwd": folder / "project", "ALBERT_HOME": str(folder / "home")}
    run(albert, "define", "shout.tool", **at)
    assert json.loads(run(albert, "run", "shout", "text=hello", "--json", **at))["output"] == "HELLO"


def test_it_has_every_module_and_every_data_file(wheel: Path) -> None:
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS, "albert_tools", cwd=ROOT)
    files = {n for n in listed.split() if (ROOT / n).is_file()}
    wanted = {n if n.startswith("albert_tools/") else f"albert_tools/{n}" for n in files}
    packed = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert packed == wanted


def test_it_runs_outside_the_clone(python: Path, tmp_path: Path) -> None:
    where = run(python, "-c", "import albert_tools; print(albert_tools.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(python.parents[1])
    define_and_run(python.with_name("albert"), tmp_path)


def test_every_module_of_every_surface_can_be_imported(python: Path, tmp_path: Path) -> None:
    walk = (
        "import pkgutil, importlib, albert_tools.surfaces as top\n"
        "for found in pkgutil.walk_packages(top.__path__, top.__name__ + '.'):\n"
        "    found.name.endswith('__main__') or (importlib.import_module(found.name), print(found.name))\n"
    )
    imported = run(python, "-c", walk, cwd=tmp_path).split()
    assert set(EXTRAS.values()) < set(imported)


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_pip_installs_it_with_each_extra(extra: str, wheel: Path, tmp_path: Path) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extra in declared
    venv.create(tmp_path / "fresh", with_pip=True, symlinks=True)
    python = tmp_path / "fresh" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", f"{wheel}[{extra}]", cwd=tmp_path)
    run(python, "-c", f"import {EXTRAS[extra]}", cwd=tmp_path)
    define_and_run(python.with_name("albert"), tmp_path)


@pytest.mark.slow
def test_without_extras_the_commands_name_them(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=True, symlinks=True)
    python = tmp_path / "fresh" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    define_and_run(python.with_name("albert"), tmp_path)
    for extra, words in COMMANDS.items():
        command = [python.with_name("albert"), "--workspace", tmp_path / "project", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=60
        )
        assert (done.returncode, f'pip install "albert-tools[{extra}]"' in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_pipx_installs_it_with_all_extras(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "tools", with_pip=True, symlinks=True)
    run(tmp_path / "tools/bin/python", "-m", "pip", "install", "-q", "pipx", cwd=tmp_path)
    places = {
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_MAN_DIR": str(tmp_path / "man"),
    }
    run(tmp_path / "tools/bin/pipx", "install", f"{wheel}[{','.join(EXTRAS)}]", cwd=tmp_path, **places)
    define_and_run(tmp_path / "bin" / "albert", tmp_path)

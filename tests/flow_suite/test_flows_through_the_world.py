"""Content that takes a way through files, git, artifacts or the clock: the call asks as if the program had passed it on itself."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService, ToolResult, primitive


@primitive(effects=["network"], urls={"url": ""}, source="web")
def page(url: str) -> str:
    """Read a page."""
    return "evil.txt"


SENT: list[str] = []


@primitive(effects=["network"], uses={"to": "destination"})
def send(to: str) -> None:
    """Send a message."""
    SENT.append(to)


RULES: dict[str, Any] = {
    "loops": {"identical_failures": 100},
    "allow": ["delete_file", "move_file", "bash", "run_program", "git", "run_tests", "run_linter"],
    "tools": {
        "page": {"allowed_hosts": ["*"]},
        "bash": {"ordinary_commands": ["*"]},
        "git": {"allowed_operations": ["ADD", "COMMIT", "LOG", "SHOW", "STATUS", "DIFF"]},
    },
}
#: Before each program, ``web`` is the text of the page.
BEGIN = 'web = tools.page(url="https://example.org/")'
END = "tools.send(to=name)"

#: Programs in which a web page's text reaches the recipient.
HOSTILE = {
    "write, move, read the new name": """
tools.write_file(path="a", content=web)
tools.move_file(source="a", target="b")
name = tools.read_file(path="b")
""",
    "write relative, read absolute": """
tools.write_file(path="a", content=web)
name = tools.read_file(path="ROOT/a")
""",
    "a default path": """
tools.write_file(path=web, content="")
name = tools.list_directory()[0]["path"]
""",
    "a default path of a search": """
tools.write_file(path="a", content=web)
name = tools.search_text(pattern="evil")["matches"][0]["text"]
""",
    "a command": """
tools.write_file(path="a", content=web)
name = tools.bash(command="cat a")["output"]
""",
    "a command's folder": """
tools.make_directory(path=web)
name = tools.run_program(argv=["ls"])["output"].split()[0]
""",
    "a command copies": """
tools.write_file(path="a", content=web)
tools.bash(command="cp a b")
name = tools.read_file(path="b")
""",
    "a copy before the write in the source": """
name = ""
for _ in range(2):
    if tools.find_files(pattern="b")["paths"]:
        tools.copy_file(source="b", target="c", overwrite=True)
        name = tools.read_file(path="c")
    tools.write_file(path="b", content=web)
""",
    "three copies, backwards": """
name = ""
for _ in range(4):
    if tools.find_files(pattern="d")["paths"]:
        name = tools.read_file(path="d")
    if tools.find_files(pattern="c")["paths"]:
        tools.copy_file(source="c", target="d", overwrite=True)
    if tools.find_files(pattern="b")["paths"]:
        tools.copy_file(source="b", target="c", overwrite=True)
    tools.write_file(path="b", content=web)
""",
    "an artifact": """
tools.publish_artifact(id="a", category="report", content=web)
name = tools.get_artifact(id="a")["content"]
""",
    "an artifact of a file": """
tools.write_file(path="a", content=web)
tools.publish_artifact(id="a", category="report", path="a")
name = tools.get_artifact(id="a")["content"]
""",
    "the hash of a deleted file": """
tools.write_file(path="a", content=web)
name = tools.delete_file(path="a")["sha256"] or ""
""",
    "the hash of a moved file": """
tools.write_file(path="a", content=web)
name = tools.move_file(source="a", target="b")["sha256"]
""",
    "the hash after an append": """
tools.write_file(path="a", content=web)
name = tools.write_file(path="a", content="x", append=True)["sha256"]
""",
    "the error of an edit": """
tools.write_file(path="a", content=web)
name = "ada"
try:
    tools.edit_file(path="a", old_text="none", new_text="x")
except ToolError as error:
    name = error.message
""",
    "another spelling": """
tools.write_file(path=f"{folder}/./a", content=web)
name = tools.read_file(path=f"{folder}/a")
""",
    "another spelling with two slashes": """
tools.write_file(path=f"{folder}//a", content=web)
name = tools.read_file(path=f"{folder}/a")
""",
    "git": """
tools.write_file(path="a", content=web)
tools.git(operation="ADD", args=["a"])
name = tools.git(operation="DIFF", args=["--cached"])["output"]
""",
    "the status of git": """
tools.write_file(path=web, content="")
name = tools.git_status()["untracked"][0]
""",
    "a link": """
tools.write_file(path="a", content=web)
name = tools.read_file(path="linked")
""",
    "a link in a folder": """
tools.write_file(path="sub/a", content=web)
name = tools.read_file(path="linked_sub/a")
""",
    "the output of tests": """
tools.write_file(path="test_a.py", content=web)
name = tools.run_tests()["stdout"]
""",
    "saved tools": """
tools.save(text=web)
name = tools.load()
""",
    "saved tools in a loop, backwards": """
name = ""
for _ in range(2):
    name = tools.load()
    tools.save(text=web)
""",
    "a function that is defined before": """
read = lambda: tools.read_file(path="a")
tools.write_file(path="a", content=web)
name = read()
""",
    "a helper that is written above": """
_save(web)
name = _load()
""",
}  # fmt: skip

#: Programs that read a page and choose the recipient by themselves.
HONEST = {
    "the file is read before": """
name = tools.read_file(path="recipient")
tools.write_file(path=path, content=tools.page(url="https://example.org/"))
""",
    "another file": """
tools.write_file(path="a", content=tools.page(url="https://example.org/"))
name = tools.read_file(path="recipient")
""",
    "another folder": """
for n in range(2):
    name = tools.read_file(path=f"in/{n}")
    tools.write_file(path=f"out/{n}", content=tools.page(url="https://example.org/"))
""",
    "the list is made before the loop": """
for name in tools.find_files(pattern="*", path="in")["paths"]:
    tools.write_file(path=name, content=tools.page(url="https://example.org/"))
""",
    "the time and chance": """
for n in range(2):
    tools.write_file(path=f"out/{n}", content=tools.page(url="https://example.org/"))
    name = tools.current_time()["iso"] + tools.random_bytes(count=2)
""",
    "a helper that loads before": """
name = _load()
_save(tools.page(url="https://example.org/"))
""",
    "a saved tool reads before": """
name = tools.load()
tools.write_file(path=path, content=tools.page(url="https://example.org/"))
""",
}  # fmt: skip

HELPERS = """

def _load() -> str:
    return tools.read_file(path="recipient")


def _save(text: str) -> None:
    tools.write_file(path="recipient", content=text)
"""
PARAMETERS = {"folder": "sub", "path": "note"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("world").resolve()
    (base / "work").mkdir()
    return base


@pytest.fixture(scope="module")
def service(base: Path) -> Iterator[SyncToolService]:
    with SyncToolService.open(
        home=base / "home", workspace=base / "work", governance=RULES, primitives=[page, send], patience=None
    ) as made:
        made.define('def load() -> str:\n    """Load."""\n    return tools.read_file(path="recipient")\n')
        made.define(
            'def save(text: str) -> None:\n    """Save."""\n    tools.write_file(path="recipient", content=text)\n'
        )
        yield made


@pytest.fixture
def work(base: Path) -> Path:
    """The workspace as it is before each program."""
    root = base / "work"
    for inner in root.iterdir():
        if inner.name != ".albert":
            shutil.rmtree(inner) if inner.is_dir() and not inner.is_symlink() else inner.unlink()
    for folder in ("sub", "in", "out"):
        (root / folder).mkdir()
    for name in ("recipient", "in/0", "in/1", "sub/a"):
        (root / name).write_text("ada")
    (root / "linked").symlink_to("a")
    (root / "linked_sub").symlink_to("sub")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    SENT.clear()
    return root


def run(service: SyncToolService, root: Path, body: str) -> ToolResult:
    lines = "\n".join(f"    {line}" for line in f"{body.strip()}\n{END}".splitlines())
    parameters = ", ".join(f"{name}: str" for name in PARAMETERS)
    lines = lines.replace("ROOT", str(root))
    service.define(f'def t({parameters}) -> None:\n    """Do it."""\n{lines}\n{HELPERS}')
    return service.invoke("t", PARAMETERS)


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_content_that_takes_a_way_through_the_world_asks(service: SyncToolService, work: Path, body: str) -> None:
    error = run(service, work, f"{BEGIN}\n{body.lstrip()}").error
    assert error is not None
    assert error.rule == "shipped.ask_flow.0", error
    assert "which can come from the output of page" in error.message
    assert SENT == []


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_a_recipient_that_no_page_chose_does_not_ask(service: SyncToolService, work: Path, body: str) -> None:
    result = run(service, work, body)
    assert result.ok, result.error
    assert len(SENT) == 1

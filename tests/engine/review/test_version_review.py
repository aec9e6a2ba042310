"""The review of a saved version: state, changes, call graph, examples and replays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from albert_tools import Failure
from albert_tools.engine.review.call_graph import rows
from albert_tools.engine.review.touched_files import paths_in, touched_files
from albert_tools.engine.review.version_review import VersionReview
from tests.helpers.governed import Governed

LINES = '''
@example(arguments={"path": "a.txt"}, files={"a.txt": "x\\n"}, result=1)
@example(arguments={"path": "b.txt"}, raises="not_found")
def lines(path: str) -> int:
    """Count the lines of a file."""
    return len(tools.read_file(path=path).splitlines())
'''
STRICT = LINES.replace("splitlines()", 'split("\\n")').replace("result=1", "result=2")
TWICE = LINES.replace("    return", "    tools.read_file(path=path)\n    return")
TOTAL = '''
def total(paths: list[str]) -> int:
    """Count the lines of files."""
    tools.current_time()
    return sum([tools.lines(path=p) for p in paths])
'''


@pytest.fixture
def governed(tmp_path: Path) -> Iterator[Governed]:
    made = Governed(tmp_path.resolve())
    yield made
    made.service.close()


def approve(governed: Governed, source: str) -> str:
    """Define and approve a version, and return its hash."""
    version = governed.service.define(source).version
    governed.service.approve("lines", "Ada", version)
    return version


def review(governed: Governed, name: str = "lines", version: str | None = None) -> VersionReview:
    found: VersionReview = governed.service.review(name, version)
    document = found.as_dict()
    assert msgspec.json.decode(msgspec.json.encode(document)) == document
    return found


def test_a_first_version_has_nothing_to_be_compared_with(governed: Governed) -> None:
    version = governed.service.define(LINES).version
    found = review(governed)
    assert (found.version.version, found.state.state, found.outdated) == (version, "pending", None)
    assert (found.changes, found.replays) == (None, None)
    assert found.sentence.startswith("Reads ")
    assert [(e.problem, e.words()) for e in found.examples] == [
        ("", 'path="a.txt" → 1'),
        ("", 'path="b.txt" → fails with not_found'),
    ]
    assert found.effects_of_lines == {6: ("read",)}


def test_a_new_version_is_compared_with_the_approved_one(governed: Governed) -> None:
    old = approve(governed, LINES)
    governed.service.define(STRICT)
    found = review(governed)
    assert found.state.state == "pending"
    assert found.changes is not None
    assert found.changes.since == old
    assert [line for line in found.changes.source if line[0] in "+-"][-1].endswith('.split("\\n"))')
    # A version that was not approved in between is no basis of a comparison.
    governed.service.define(TWICE)
    again = review(governed).changes
    assert again is not None
    assert again.since == old
    # The approved version itself has nothing to be compared with.
    assert review(governed, version=old).changes is None


def test_recorded_runs_are_repeated_with_the_new_version(governed: Governed) -> None:
    approve(governed, LINES)
    for name, content in (("a.txt", "1\n2"), ("b.txt", "1\n"), ("c.txt", "1\n2\n")):
        (governed.work / name).write_text(content)
        assert governed.service.invoke("lines", {"path": name}).ok
    assert not governed.service.invoke("lines", {"path": "none.txt"}).ok
    for file in governed.work.glob("*.txt"):
        file.unlink()
    governed.service.define(STRICT)
    found = review(governed).replays
    assert found is not None
    assert found.summary() == "4 runs: 2 the same, 2 differ"
    assert [r.difference for r in found.runs] == [
        "",
        "the result is 3; before: 2",
        "the result is 2; before: 1",
        "",
    ]


def test_a_replay_runs_the_new_versions_of_saved_tools_too(governed: Governed) -> None:
    approve(governed, LINES)
    total = governed.service.define(TOTAL).version
    governed.service.approve("total", "Ada", total)
    (governed.work / "a.txt").write_text("1\n2")
    (governed.work / "b.txt").write_text("1\n2\n")
    for names in (["a.txt"], ["a.txt", "b.txt"]):
        assert governed.service.invoke("total", {"paths": names}).ok
    governed.service.define(STRICT)
    governed.service.define(TOTAL)
    found = review(governed, "total").replays
    assert found is not None
    assert [r.difference for r in found.runs] == ["the result is 5; before: 4", ""]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (TWICE, 'it makes a further call: read_file(path="a.txt"'),
        (LINES.replace("path=path)", 'path="b.txt")'), 'it calls read_file(path="b.txt"'),
        (LINES.replace("len(tools.read_file(path=path).splitlines())", "2"), "it makes 0 calls; before: 1"),
        (LINES.replace("len(", 'int("x") + len('), "it fails with exception: "),
    ],
)
def test_each_difference_is_shown(governed: Governed, source: str, said: str) -> None:
    approve(governed, LINES)
    (governed.work / "a.txt").write_text("1\n2")
    assert governed.service.invoke("lines", {"path": "a.txt"}).value() == 2
    governed.service.define("\n".join(line for line in source.split("\n") if not line.startswith("@example")))
    found = review(governed).replays
    assert found is not None
    assert found.summary() == "1 run: 0 the same, 1 differ"
    assert found.runs[0].difference.startswith(said), found.runs[0].difference


def test_a_replay_changes_nothing(governed: Governed) -> None:
    source = '''
def lines(text: str) -> str:
    """Write."""
    return tools.write_file(path="out.txt", content=text)["path"]
'''
    approve(governed, source)
    assert governed.service.invoke("lines", {"text": "a"}).ok
    (governed.work / "out.txt").unlink()
    before = len(governed.recorded())
    governed.service.define(source.replace("content=text", 'content=text + "!"'))
    recorded = len(governed.recorded())
    found = review(governed).replays
    assert found is not None
    assert found.summary() == "1 run: 0 the same, 1 differ"
    assert not (governed.work / "out.txt").exists()
    assert len(governed.recorded()) == recorded > before


def test_the_call_graph_has_each_version_once(governed: Governed) -> None:
    governed.service.define(LINES)
    governed.service.define(TOTAL)
    graph = review(governed, "total").graph
    assert [(row.depth, row.node.name, row.node.kind, row.node.effects) for row in rows(graph)] == [
        (0, "total", "composite", ("read",)),
        (1, "current_time", "primitive", ("read",)),
        (1, "lines", "composite", ("read",)),
        (2, "read_file", "primitive", ("read",)),
    ]
    # A new version of a callee is another node; the graph keeps the pinned one.
    pinned = graph[[n.name for n in graph].index("lines")].version
    governed.service.define(STRICT)
    assert [n.version for n in review(governed, "total").graph if n.name == "lines"] == [pinned]


def test_examples_that_fail_now_are_reported(governed: Governed) -> None:
    governed.service.define(LINES)
    home: Any = governed.home / "config" / "governance.yaml"
    home.parent.mkdir(parents=True, exist_ok=True)
    home.write_text("deny: [read_file]")
    found = review(governed)
    assert [bool(e.problem) for e in found.examples] == [True, True]


def test_a_primitive_has_no_review(governed: Governed) -> None:
    with pytest.raises(Failure, match="read_file is a primitive"):
        governed.service.review("read_file")


TIDY = '''
@example(arguments={"folder": "d"}, files={"d/a.bak": "", "d/b.md": "", "e/c.md": ""}, result=1)
@example(arguments={"folder": "empty"}, files={"empty/x.md": ""}, result=0)
def tidy(folder: str) -> int:
    """Delete the backups in a folder."""
    paths = tools.find_files(pattern="*.bak", path=folder)["paths"]
    for path in paths:
        tools.delete_file(path=path)
    if len(paths) > 5:
        tools.write_file(path="many.txt", content="many")
        tools.http_request(url="https://api.example.org/")
    return len(paths)
'''


def test_a_review_names_the_calls_that_no_example_makes(governed: Governed) -> None:
    governed.service.define(TIDY)
    found = review(governed, "tidy")
    assert [example.problem for example in found.examples] == ["", ""]
    assert [*found.untried] == [
        'http_request connects to "https://api.example.org/" (line 11)',
        'write_file writes "many.txt" (line 10)',
    ]
    assert governed.service.review("tidy", rerun=False).untried == ()
    # A stub makes the call, too.
    stubs = 'stubs={"http_request": {"status": 1}, "find_files": {"paths": ["a", "b", "c", "d", "e", "f"]}}'
    files = "{" + ", ".join(f'"{name}": ""' for name in "abcdef") + "}"
    tried = f'@example(arguments={{"folder": "d"}}, files={files}, {stubs}, result=6)\n'
    governed.service.define(tried + TIDY.removeprefix("\n"))
    assert review(governed, "tidy").untried == ()


def test_a_call_of_another_line_is_not_taken_for_the_one_that_no_example_makes(governed: Governed) -> None:
    governed.service.define(
        '@example(arguments={"a": "x"}, result=1)\n'
        'def two(a: str, b: str = "y") -> int:\n    """Write."""\n    tools.write_file(path=b, content="1")\n'
        '    if a != "x":\n        tools.write_file(path="z", content="1")\n    return 1\n'
    )
    assert review(governed, "two").untried == ('write_file writes "z" (line 6)',)


def test_a_call_inside_a_saved_tool_is_tried_through_it(governed: Governed) -> None:
    keep = 'def keep(a: str) -> int:\n    """Write."""\n    tools.write_file(path=a, content="1")\n    return 1\n'
    governed.service.define(keep)
    outer = 'def outer(a: str) -> int:\n    """Write."""\n    return tools.keep(a=a)\n'
    governed.service.define('@example(arguments={"a": "x"}, result=1)\n' + outer)
    assert review(governed, "outer").untried == ()
    governed.service.define('@example(arguments={"a": "x"}, stubs={"keep": 1}, result=1)\n' + outer)
    assert review(governed, "outer").untried == ("write_file writes {a} (line 4)",)


def test_examples_and_replays_name_the_files_that_stay(governed: Governed) -> None:
    version = governed.service.define(TIDY).version
    found = review(governed, "tidy")
    assert [example.files for example in found.examples] == ["deletes d/a.bak; leaves d/b.md", ""]
    governed.service.approve("tidy", "Ada", version)
    folder = governed.work / "old"
    folder.mkdir()
    for file in ("x.bak", *(f"{n}.md" for n in range(7))):
        (folder / file).write_text("")
    assert governed.service.invoke("tidy", {"folder": "old"}).error is None
    governed.service.define(TIDY.replace("return len(paths)", "return len(paths) + 0"))
    repeated = review(governed, "tidy").replays
    assert repeated is not None
    kept = "leaves old/0.md, old/1.md, old/2.md, old/3.md, old/4.md and 2 more"
    assert [(run.outcome, run.files) for run in repeated.shown()] == [("same", f"deletes old/x.bak; {kept}")]


def test_an_output_of_any_form_names_files_or_none() -> None:
    odd = [None, 3, "a.txt", {"paths": 3}, {"paths": {"a": 1}}, {"paths": ["a", 1]}, {"path": 1}, [[{"path": "b"}]]]
    assert [path for output in odd for path in paths_in(output)] == ["a", "b"]
    assert touched_files([("delete", {"path": "x/\u202e"}), ("write", {})], ["x/y", "./x//z", "w"]) == (
        "deletes x/\\u202e; leaves x/y, x/z"
    )


@pytest.mark.parametrize(
    ("body", "chosen"),
    [
        ("picked = sorted(names, reverse=len(names) < 10)[keep:]", "sorted(names, reverse=len(names) < 10)[keep:]"),
        ("names.sort(key=lambda n: n[::-1])  # by date\n    picked = names", "names.sort(key=lambda n: n[::-1])"),
        ("names.reverse()\n    picked = names[:keep]", "names.reverse(), names[:keep]"),
        ("names.pop(0)\n    picked = names", "names.pop(0)"),
        ("picked = [max(names), names[-1]]", "max(names), names[-1]"),
        ("picked = list(\n        reversed(names)  # new\n    )", "reversed(names)"),
        ("picked = _newest(names, keep)", "sorted(all_of_them, key=str.lower)[-n:]"),
        ("picked = names", None),
    ],
)
def test_a_review_shows_the_order_in_which_files_are_taken(governed: Governed, body: str, chosen: str | None) -> None:
    helper = "def _newest(all_of_them: list[str], n: int) -> list[str]:\n"
    helper += "    return sorted(all_of_them, key=str.lower)[-n:]\n\n\n"
    governed.service.define(
        f'{helper}def prune(folder: str, keep: int = 3) -> int:\n    """Delete old files."""\n'
        f'    names = tools.find_files(pattern="*.sql", path=folder)["paths"]\n    {body}\n'
        "    _newest([], 1)\n"
        "    for path in picked:\n        tools.delete_file(path=path)\n    return len(picked)\n"
    )
    shown = {line.name: line.text for line in review(governed, "prune").lines}
    assert shown.get("chosen by") == chosen
    # A tool that calls it shows it, too.
    governed.service.define('def clean() -> int:\n    """Delete."""\n    return tools.prune(folder="d")\n')
    assert {line.name: line.text for line in review(governed, "clean").lines}.get("chosen by") == chosen


def test_each_unknown_part_of_a_text_has_its_own_origins(governed: Governed) -> None:
    governed.service.define(
        'def send(a: str, b: str, c: str) -> None:\n    """Send."""\n'
        "    one, two = tools.read_file(path=a).lower(), tools.read_file(path=b).upper()\n"
        '    rest = "{}&d={}".format(c.title(), c.title())\n'
        '    tools.http_request(url=f"https://api.example.org/{one}?b={two}" + "&c=" + rest)\n'
    )
    parts = [f"‹any text from {origin}›" for origin in ("read_file({a})", "read_file({b})", "{c}", "{c}")]
    url = "https://api.example.org/{}?b={}&c={}&d={}".format(*parts)
    assert url in next(line.text for line in review(governed, "send").lines if line.name == "http_request")
    governed.service.define('def all_of() -> None:\n    """Send."""\n    tools.send(a="x", b="y", c="z")\n')
    text = next(line.text for line in review(governed, "all_of").lines if line.name == "http_request")
    assert '‹any text from read_file("x")›?b=‹any text from read_file("y")›' in text

"""What is new in a version: the manifests' differences in words, and the sources' differences as lines."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given as sampled
from hypothesis import strategies as st
from msgspec.structs import replace

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.model.definition import Program, ToolVersion
from albert_tools.engine.model.manifest import Hole, Manifest, PlannedCall, Value
from albert_tools.engine.review.version_changes import MAX_COMPARED, changes, manifest_changes, source_diff
from tests.helpers.generated_tools import generated_tools
from tests.helpers.manifests import given, manifest, reads, requests, text, times, tool, writes

FOLDER = text(given("folder"))
READ = reads(FOLDER)
FROM_READ = Value(open=True, data=("call:0",))


def with_method(method: str) -> PlannedCall:
    call = requests(text("https://api.example.org/"))
    return replace(call, arguments={**call.arguments, "method": text(method)})


def json_of(**fields: Hole | str) -> Hole:
    return Hole("json", value=Value(fields={name: text(part) for name, part in fields.items()}))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (manifest(READ), manifest(READ), []),
        (
            manifest(READ),
            manifest(READ, requests(text("https://api.example.org/in"), FROM_READ)),
            [
                "has a new effect: network",
                "now also sends to api.example.org",
                'now also connects to "https://api.example.org/in"',
                "the body of http_request now also comes from read_file({folder})",
                "now also calls http_request: at most once",
            ],
        ),
        (
            manifest(requests(text("https://api.example.org/"))),
            manifest(requests(text("https://api.example.0rg/"))),
            [
                "host: api.example.org → api.example.0rg",
                "now also asks api.example.0rg",
                'now also connects to "https://api.example.0rg/"',
                "no longer asks api.example.org",
                'no longer connects to "https://api.example.org/"',
            ],
        ),
        (
            manifest(writes(text(given("output")), text("x"))),
            manifest(writes(text(given("output")), text("x"), bound=times(2))),
            ["calls write_file at most 2 × (before: at most once)"],
        ),
        (
            manifest(READ, reads(text(".env"))),
            manifest(READ),
            ["calls read_file at most once (before: at most 2 ×)", 'no longer reads ".env"'],
        ),
        (
            manifest(READ, writes(text("o"), FROM_READ)),
            manifest(READ, writes(text("o"), FROM_READ, control=("parameter:p",))),
            ["when and how often write_file is called now also depends on {p}"],
        ),
        (manifest(READ), manifest(READ, raised=("call:0",)), ["the message of an error now also comes from read_file"]),
        (
            manifest(writes(text("a"), text("x"))),
            manifest(writes(Value(open=True), text("x"))),
            ["now also writes ANYTHING", 'no longer writes "a"'],
        ),
        (
            manifest(writes(text("a" * 60 + "b" + "a" * 60), text("x"))),
            manifest(writes(text("a" * 60 + "c" + "a" * 60), text("x"))),
            [f'now also writes "{"a" * 60}c', f'no longer writes "{"a" * 60}b'],
        ),
        (
            manifest(writes(text("a"), text("good ", given("folder")))),
            manifest(writes(text("a"), text("evil ", given("folder")))),
            ['the content of write_file can now be "evil "{folder}'],
        ),
        (
            manifest(writes(text("a"), text(json_of(item=given("p")), data=("parameter:p",)))),
            manifest(writes(text("a"), text(json_of(item=given("p"), to="house"), data=("parameter:p",)))),
            ['the content of write_file can now be ‹JSON item={p}, to="house"›'],
        ),
        (
            manifest(with_method("GET")),
            manifest(with_method("DELETE")),
            ['the method of http_request can now be "DELETE"', 'the method of http_request is no longer "GET"'],
        ),
    ],
)
def test_differences_of_manifests(old: Manifest, new: Manifest, said: list[str]) -> None:
    found = [change.text for change in manifest_changes(old, new)]
    assert len(found) == len(said)
    assert [text[: len(start)] for text, start in zip(found, said, strict=True)] == said


def test_what_is_more_comes_first_and_the_riskiest_of_it() -> None:
    old = manifest(READ, reads(text("old")))
    new = manifest(READ, writes(text("new"), text("")), requests(text("https://a.example/", Hole("any"))))
    found = manifest_changes(old, new)
    keys = [({"more": 0, "other": 1, "less": 2}[c.direction], -c.risk) for c in found]
    assert keys == sorted(keys)
    assert found[-1].direction == "less"


@sampled(st.lists(st.sampled_from("abc\n"), max_size=60), st.lists(st.sampled_from("abc\n"), max_size=60))
def test_a_diff_is_that_of_the_library(old: list[str], new: list[str]) -> None:
    one, other = "".join(old), "".join(new)
    whole = difflib.unified_diff(one.split("\n"), other.split("\n"), lineterm="", n=3)
    assert added(source_diff(one, other), "+") == added([*whole][2:], "+")
    assert (source_diff(one, other) == ()) is (one == other)


def added(diff: list[str] | tuple[str, ...], sign: str) -> int:
    """How many more lines have this sign than the other: it does not depend on how the lines are matched."""
    return sum(1 if line[0] == sign else -1 if line[0] in "+-" else 0 for line in diff if not line.startswith("@@"))


def test_line_numbers_of_a_diff_are_those_of_the_sources() -> None:
    old = "\n".join(map(str, range(1, 101)))
    assert source_diff(old, old.replace("\n50\n", "\nfifty\n")) == (
        "@@ -47,7 +47,7 @@", " 47", " 48", " 49", "-50", "+fifty", " 51", " 52", " 53",
    )  # fmt: skip


def test_a_large_difference_is_one_block() -> None:
    # Each line occurs often, which is the worst case of comparing line by line.
    old = [str(i % 90) for i in range(MAX_COMPARED + 2)]
    new = [str((i * 7 + 1) % 90) for i in range(MAX_COMPARED + 2)]
    assert source_diff("\n".join(old), "\n".join(new)) == (
        f"@@ -1,{len(old)} +1,{len(new)} @@", *(f"-{line}" for line in old), *(f"+{line}" for line in new),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x = 1", "x = 1", "The manifest and the source are the same; the tools that it calls have changed."),
        (
            "x = 1",
            "x = 2",
            "The manifest is the same: the calls, their known values, bounds and flows. The source differs in the lines below."
            " Not known, so not compared: content of write_file.",
        ),
    ],
)
def test_equal_manifests_do_not_mean_that_nothing_has_changed(old: str, new: str, said: str) -> None:
    known = manifest(READ, writes(text("a"), FROM_READ), writes(text("b"), text("fixed", given("p"))))
    versions = [
        ToolVersion(replace(tool(known, "p"), version=str(i)), source, Program("t", "t", ""))
        for i, source in enumerate((old, new))
    ]
    assert changes(*versions).same() == said


CHOICES = {
    "another function": ("text.upper()", "text.lower()"),
    "another piece": ("text[:3]", "text[3:]"),
    "another item": ("names[0]", "names[1]"),
    "the other of two texts": ('"a" if n else "b"', '"b" if n else "a"'),
    "a file that is chosen": ('tools.read_file(path="a" if n else "b")', 'tools.read_file(path="b" if n else "a")'),
    "the order of lines": ('"\\n".join(names)', '"\\n".join(names[::-1])'),
    "an entry that is left out": ('json.dumps({"a": text} if n else {})', 'json.dumps({} if n else {"a": text})'),
    "a number": ("str(n + 1)", "str(n + 2)"),
    "a text in base64": (
        "base64.b64encode(text[1:].encode()).decode()",
        "base64.b64encode(text[2:].encode()).decode()",
    ),
}


@pytest.mark.parametrize(("old", "new"), CHOICES.values(), ids=CHOICES)
def test_equal_manifests_name_what_can_still_differ(old: str, new: str) -> None:
    head = 'def t(n: int, names: list[str]) -> None:\n    """Write."""\n    text = tools.read_file(path="t")\n'
    versions = []
    for i, value in enumerate((old, new)):
        source = f'import base64\nimport json\n\n\n{head}    tools.write_file(path="out", content={value})\n'
        known = analyse(check_or_raise(source, generated_tools(0)))
        versions.append(ToolVersion(replace(tool(known), version=str(i)), source, Program("t", "t", "")))
    found = changes(*versions)
    assert found.manifest or "content of write_file" in found.unknown
    assert found.manifest or "Not known, so not compared: content of write_file" in found.same()

"""``albert lsp``: what an editor gets for its sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.conftest import Albert
from tests.surfaces.lsp.conftest import URI, Editor

GOOD = 'def t(path: str) -> str:\n    """Read."""\n    return tools.read_file(path=path)\n'
WRONG = 'def t(path: str) -> str:\n    """Read."""\n    return "\U0001f600é" + tools.read_flie(path=path)\n'
SLOW = GOOD.replace("path=path", f"path={'+'.join(['(path)'] * 15_000)}")
SHOUT = 'def shout(text: str) -> str:\n    """Shout.\n\n    Args:\n        text: The words.\n    """\n    return text.upper()\n'
CALLER = 'def caller(text: str) -> str:\n    """Call."""\n    return tools.shout(text=text)\n'

#: Contents of messages.
MALFORMED = [
    b"{",
    b"[]",
    b"5",
    b"\xff",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "1.0", "method": "exit"}',
    b'{"jsonrpc": "2.0", "method": 5}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": 5}}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///b.tool", "version": 1},'
    b' "contentChanges": [{"text": ""}]}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didSave", "params": {"textDocument": {"uri": "file:///b.tool"}}}',
    b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 77}}',
    b'{"jsonrpc": "2.0", "id": 77, "result": 5}',
    b'{"jsonrpc": "2.0", "id": 77, "method": "textDocument/hover", "params": {}}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "textDocument/hover", "params": null}',
    b'{"jsonrpc": "2.0", "id": 77, "method": "textDocument/completion", "params": {"textDocument": {"uri": "file:///a.tool"},'
    b' "position": {"line": -1, "character": 99999999999999}}}',
]
#: What stands before a message.
NO_HEADERS = [
    b"\r\n\r\n",
    b"hello\r\n\r\n",
    b"x" * 1_000_000 + b"\n",
    b"Content-Length: x\r\n\r\n",
    b"Content-Length: 999999999999999\r\n\r\n",
]

Start = Callable[..., Editor]


@pytest.fixture
def start(albert: Albert) -> Iterator[Start]:
    """Starts servers, which end with the test."""
    started: list[Editor] = []

    def start(*encodings: str, env: dict[str, str] | None = None) -> Editor:
        started.append(Editor(albert, *encodings, env=env))
        return started[-1]

    yield start
    for editor in started:
        editor.server.kill()
        editor.server.wait()


def place(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def test_findings_follow_each_change(start: Start) -> None:
    editor = start()
    editor.open(WRONG)
    assert editor.published() == {
        "uri": URI,
        "version": 1,
        "diagnostics": [
            {
                "range": place(2, 19, 34),
                "severity": 1,
                "code": "unknown-tool",
                "source": "albert",
                "message": "no tool named 'read_flie'; did you mean 'read_file'?\nhelp: write tools.read_file",
            }
        ],
    }
    editor.change(GOOD, 2)
    assert editor.published() == {"uri": URI, "version": 2, "diagnostics": []}
    editor.change(GOOD.replace("    return", "    path.strip()\n    return"), 3)
    (warning,) = editor.findings()
    assert (warning["severity"], warning["code"]) == (2, "unused-result")
    editor.tell("textDocument/didClose", textDocument={"uri": URI})
    assert editor.findings() == []


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 22), ("utf-16", 19), ("utf-32", 18)])
def test_columns_are_counted_as_the_editor_wishes(start: Start, encoding: str, column: int) -> None:
    editor = start("unknown", encoding)
    assert editor.abilities["positionEncoding"] == encoding
    editor.open(WRONG)
    assert editor.findings()[0]["range"] == place(2, column, column + 15)
    editor.change(WRONG.replace("flie", "file"), 2)
    assert editor.at("hover", 2, column)["range"] == place(2, column, column + 15)
    assert editor.at("hover", 2, column - 1) is None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (WRONG.replace("\n", "\r\n"), place(2, 19, 34)),
        (WRONG.replace("\n", "\r"), place(2, 19, 34)),
        ("\ufeffx = len(y)\n" + GOOD, place(0, 9, 10)),
        # These end lines for Python's `splitlines` only.
        (GOOD.replace("Read.", "\x0c Read.\x85\u2028"), place(1, 7, 8)),
    ],
    ids=["crlf", "cr", "mark", "others"],
)
def test_lines_are_those_of_the_editor(start: Start, text: str, where: dict[str, Any]) -> None:
    editor = start()
    editor.open(text)
    assert editor.findings()[0]["range"] == where


def test_a_fix_is_an_edit_of_the_text_that_was_checked(start: Start) -> None:
    editor = start()
    editor.open(WRONG.replace("    return", "    x = json.dumps(path)\n    return x +"))
    assert len(editor.findings()) == 2
    (fix,) = editor.fixes(3, 30)
    (edited,) = fix["edit"]["documentChanges"]
    assert (fix["title"], fix["kind"], fix["isPreferred"]) == ("write tools.read_file", "quickfix", True)
    assert edited["textDocument"] == {"uri": URI, "version": 1}
    assert edited["edits"] == [{"range": place(3, 23, 38), "newText": "tools.read_file"}]
    assert editor.fixes(3, 0) == []
    assert editor.fixes(2, 8)[0]["edit"]["documentChanges"][0]["edits"] == [
        {"range": place(0, 0, 0), "newText": "import json\n"}
    ]
    editor.change(WRONG, 2)
    assert editor.fixes(2, 30) == []


def test_a_finding_without_an_exact_edit_has_no_fix(start: Start) -> None:
    editor = start()
    editor.open(GOOD.replace("path=path", "path=paht_of_it"))
    assert [finding["code"] for finding in editor.findings()] == ["unknown-name"]
    assert editor.fixes(2, 35) == []


def test_descriptions(albert: Albert, start: Start) -> None:
    albert.write("shout.tool", SHOUT)
    assert albert("define", "shout.tool").code == 0
    editor = start()
    editor.open(f"import json\n{CALLER}    tools.read_file  tools.nothing\n    json.dumps(json, parallel)\n")
    assert editor.at("hover", 3, 13) == {
        "contents": {
            "kind": "plaintext",
            "value": "shout(text: str) -> str\n\nShout.\n\n  text: The words.\n\n"
            "Computes its result and calls no tools.\neffects: none\nnow: allow in NORMAL",
        },
        "range": place(3, 11, 22),
    }
    read_file = editor.described(4, 10) or ""
    assert read_file.startswith("read_file(path: str, offset: int = 1, ")
    assert read_file.endswith("effects: read\nnow: allow in NORMAL")
    assert editor.described(4, 30) is None
    for line, column in ((0, 8), (5, 5)):
        assert (editor.described(line, column) or "").startswith("Programs may use these names of the module json:\n")
    assert (editor.described(5, 25) or "").startswith("Calls side by side\n")
    assert editor.described(5, 17) is None
    assert editor.described(99, 99) is None


def test_completion_of_names(albert: Albert, start: Start) -> None:
    albert.write("shout.tool", SHOUT)
    assert albert("define", "shout.tool").code == 0
    editor = start()
    editor.open("")
    listed = [tool["name"] for tool in albert("tools", "--all", "--json").document()["tools"]]
    assert [item["label"] for item in editor.proposed("x = tools.")] == listed
    (found,) = editor.proposed('y = "\U0001f600" + tools.sho')
    assert found["detail"] == "shout(text: str) -> str"
    assert found["documentation"] == "Shout."
    assert found["textEdit"] == {"range": place(0, 17, 20), "newText": "shout"}
    assert editor.proposed("x = other.") == []


def test_completion_of_arguments(start: Start) -> None:
    expected = {
        "tools.write_file(": ["path=", "content=", "create_only=", "append="],
        "tools.write_file(\n    path=f(a, content=1), app": ["content=", "create_only=", "append="],
        "tools.write_file(content=x == y, path=": [],
        "tools.write_file(path=x, [": [],
        "tools.write_file(path=x)\nlen(": [],
        "tools.nothing(": [],
    }
    editor = start()
    editor.open("")
    assert {text: [item["label"] for item in editor.proposed(text)] for text in expected} == expected


def test_a_session_has_the_tools_of_its_lease(albert: Albert, start: Start) -> None:
    token = albert("session", "new", "--tools", "read_file").out.strip()
    editor = start(env={"ALBERT_SESSION": token})
    editor.open('def t() -> Any:\n    """Write."""\n    return tools.write_file(path=\'a\', content=\'b\')\n')
    assert [finding["code"] for finding in editor.findings()] == ["unknown-tool"]
    assert editor.described(2, 20) is None
    assert [item["label"] for item in editor.proposed("tools.")] == ["read_file"]
    assert editor.proposed("tools.write_file(") == []
    assert albert("session", "revoke", albert("session", "--json").document()["sessions"][0]["session"]).code == 0
    editor.change(GOOD, 3)
    while (published := editor.published())["version"] != 3:
        pass
    (ended,) = published["diagnostics"]
    assert (ended["code"], ended["range"]) == ("permission_denied", place(0, 0, 0))
    assert ended["message"].startswith("the source can't be checked: ")
    assert editor.proposed("tools.") == []


def test_a_saved_source_is_checked_against_the_tools_of_now(albert: Albert, start: Start) -> None:
    editor = start()
    editor.open(CALLER)
    assert [finding["code"] for finding in editor.findings()] == ["unknown-tool"]
    albert.write("shout.tool", SHOUT)
    assert albert("define", "shout.tool").code == 0
    editor.tell("textDocument/didSave", textDocument={"uri": URI})
    assert editor.findings() == []


def test_other_files_are_left_alone(start: Start) -> None:
    editor = start()
    editor.open("not a source", uri="file:///sources/a.py")
    editor.open(GOOD)
    assert editor.published()["uri"] == URI
    assert editor.at("completion", 0, 0, uri="file:///sources/a.py") is None


def test_nothing_is_saved_or_recorded(albert: Albert, start: Start) -> None:
    albert.write("shout.tool", SHOUT)
    assert albert("define", "shout.tool").code == 0

    def stored() -> dict[Path, bytes]:
        """All files of the home and the workspace, except caches."""
        files = [p for folder in (albert.home, albert.project) for p in folder.rglob("*") if p.is_file()]
        return {p: p.read_bytes() for p in files if "cache" not in p.relative_to(albert.project.parent).parts}

    before, entries = stored(), albert("ledger", "export").out
    editor = start()
    editor.open(CALLER)
    assert editor.findings() == []
    assert editor.described(2, 13)
    assert editor.proposed("tools.")
    assert editor.leave() == 0
    assert stored() == before
    assert albert("ledger", "export").out == entries


def test_findings_of_an_older_text_are_not_shown(start: Start) -> None:
    editor = start()
    editor.open(SLOW)
    editor.change(SLOW + SLOW, 2)
    editor.change(GOOD, 3)
    assert editor.published() == {"uri": URI, "version": 3, "diagnostics": []}


def test_an_oversized_text_has_one_finding(start: Start) -> None:
    editor = start()
    editor.open("tools." * 3_000_000)
    (finding,) = editor.findings()
    assert (finding["code"], finding["range"]) == ("source-too-large", place(0, 0, 0))
    assert editor.described(0, 18_000_000) is None
    assert editor.at("completion", 0, 18_000_000)["items"] == []


def test_malformed_messages_do_not_end_it(start: Start) -> None:
    editor = start()
    editor.open(GOOD)
    assert editor.findings() == []
    sent: list[tuple[Callable[[bytes], None], bytes]] = [(editor.send_body, body) for body in MALFORMED]
    for send, data in [*sent, *((editor.send, lines) for lines in NO_HEADERS)]:
        send(data)
        assert editor.described(2, 20), data
    editor.ask("shutdown")
    editor.tell("exit")
    log = editor.log.read().decode().splitlines()
    assert log
    assert all(line.startswith("albert lsp: a message can't be handled: ") for line in log), log


def test_it_ends_with_the_editor(start: Start) -> None:
    assert start().leave() == 0
    editor = start()
    editor.open(SLOW)
    editor.to.close()
    assert editor.log.read() == b""
    assert editor.server.wait() == 0
    editor = start()
    editor.tell("exit")
    assert editor.server.wait() == 1


def test_a_person_is_told_who_starts_it(albert: Albert) -> None:
    code, seen = albert.terminal("lsp")
    assert code == 2
    assert "an editor starts this command and writes to its stdin" in seen

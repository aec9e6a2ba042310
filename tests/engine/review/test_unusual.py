"""What is unusual about a tool: what a reviewer reads below the sentence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from albert_tools import SyncToolService

RULES = {"tools": {"http_request": {"allowed_hosts": ["api.example.org"]}}}
SEND = 'tools.http_request(url="https://{}/in", method="POST", body={})'
CASES = [
    ('tools.write_file(path="a.txt", content=a)', []),
    ('tools.write_file(path="Makefile", content=a)', ['writes "Makefile" (OTHERS EXECUTE IT)']),
    ('tools.read_file(path=".netrc")', ['reads ".netrc" (CREDENTIALS)']),
    (SEND.format("api.example.org", "a"), []),
    (SEND.format("api.example.org:443", "a"), []),
    (SEND.format("api.example.com", "a"), ["no rule of yours names the host api.example.com"]),
    (SEND.format("api.example.org", "tools.read_file(path=a)"), ["sends all of read_file({a})"]),
    (SEND.format("api.example.org", "json.dumps([tools.read_file(path=a)])"), ["sends all of read_file({a})"]),
    (SEND.format("api.example.org", "str(len(tools.read_file(path=a)))"), []),
    (SEND.format("api.example.org", SEND.format("api.example.org", "a") + '["body"]'), []),
    ("tools.fetch_url(url=a)", ["THE HOST IS NOT FIXED"]),
    ('tools.bash(command=f"ls {a}")', ["NOT QUOTED: {a} can contain any command"]),
    ("tools.delete_file(path=a[::-1])", ["deletes ANYTHING from {a}"]),
    ("while a:\n        tools.delete_file(path=a)", ["delete_file up to 1,000 ×, the limit of a run"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncToolService]:
    folder = tmp_path_factory.mktemp("unusual").resolve()
    (folder / "work").mkdir()
    with SyncToolService.open(home=folder / "home", workspace=folder / "work", governance=RULES) as made:
        yield made


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_what_is_unusual(service: SyncToolService, body: str, expected: list[str]) -> None:
    service.define(f'import json\n\n\ndef try_it(a: str) -> int:\n    """Try it."""\n    {body}\n    return 1\n')
    assert [*service.review("try_it", rerun=False).unusual] == expected


def test_a_host_that_the_rules_name_needs_no_mention(service: SyncToolService) -> None:
    for host, said in (("api.example.org", 0), ("api.example.com", 1)):
        service.define(
            f'def ask(a: str) -> int:\n    """Ask."""\n    tools.http_request(url="https://{host}/")\n    return 1\n'
        )
        assert len(service.review("ask", rerun=False).undescribed) == said

"""The helpers of `albert_tools.testing`."""

from __future__ import annotations

import pytest

from albert_tools import Failure, SourceError, primitive
from albert_tools.testing import FakeExecutor, registry, scratch_workspace

SOURCE = '''
def fetch(url: str, tries: int = 2) -> str:
    """Fetch."""
    for attempt in range(tries):
        print("try", attempt)
        try:
            return tools.http_request(url=url)["body"]
        except ToolError as error:
            if error.code != "timeout":
                raise
    raise ToolError("gave up")
'''


def test_the_executor_answers_and_records_calls() -> None:
    answers = iter([Failure("timeout", "slow"), {"status": 200, "body": "hello"}])
    executor = FakeExecutor({"http_request": lambda arguments: next(answers)})
    result = executor.run(SOURCE, {"url": "u"})
    assert (result.value(), result.log, result.calls) == ("hello", "try 0\ntry 1\n", 2)
    assert executor.calls == [("http_request", {"url": "u"})] * 2


def test_a_call_without_an_answer_is_denied() -> None:
    error = FakeExecutor().run(SOURCE, {"url": "u"}).error
    assert error is not None
    assert (error.code, error.message) == ("permission_denied", "the test has no answer for http_request")
    with pytest.raises(SourceError):
        FakeExecutor().run("def t() -> int:\n    return 1\n")


def test_registry_with_own_primitives() -> None:
    @primitive
    def mine() -> int:
        """Mine."""
        return 1

    assert {"mine", "read_file"} <= set(registry(mine).names())
    assert registry(mine, standard=False).names() == ["mine"]
    assert registry(mine).names()[:3] == ["read_file", "write_file", "edit_file"]
    assert list(dict.fromkeys(p.definition.family for p in registry().primitives())) == [
        "files",
        "shell",
        "git",
        "code",
        "web",
        "system",
        "artifacts",
        "batches",
        "models",
    ]


def test_the_scratch_workspace_is_removed() -> None:
    with scratch_workspace({"docs/a.txt": "a"}) as scratch:
        assert scratch.text("docs/a.txt") == "a"
        scratch.workspace.replace("b.txt", b"b")
        assert scratch.files() == {"b.txt": "b", "docs/a.txt": "a"}
        folder = scratch.folder
    assert not folder.exists()


def test_the_executor_validates_arguments() -> None:
    error = FakeExecutor().run(SOURCE, {"url": 3, "x": 1}).error
    assert error is not None
    assert error.message == "fetch: url: expected str, got int 3; x: unknown name"


def test_an_exception_in_an_answer_is_raised() -> None:
    together = """
def both(urls: list[str]) -> list:
    \"\"\"Look twice.\"\"\"
    return parallel(tools.read_file(path=u) for u in urls)
"""
    for source, arguments in ((SOURCE, {"url": "u"}), (together, {"urls": ["a", "b"]})):
        executor = FakeExecutor({"http_request": lambda a: 1 / 0, "read_file": lambda a: 1 / 0})
        with pytest.raises(ZeroDivisionError):
            executor.run(source, arguments)
        assert executor.calls

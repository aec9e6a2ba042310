"""The helpers of `albert_tools.testing`."""

from __future__ import annotations

import inspect
import sys

import pytest

from albert_tools import Failure, SourceError, ToolResult, primitive
from albert_tools.grammar.parse import MAX_PARSE_DEPTH
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


#: Expressions, some of which are too deep, and what is said about them.
SHAPES = {
    "1 if x else " * (MAX_PARSE_DEPTH - 1) + "2": "expression-depth",
    "[" * 50 + "]" * 50: "expression-depth",
    "str(" * 39 + "1" + ")" * 39: None,
    "-" * (MAX_PARSE_DEPTH - 2) + "1": "expression-depth",
    "x" + " + x" * 2000: "nesting-too-deep",
}


@pytest.mark.parametrize(("expression", "code"), SHAPES.items(), ids=range(len(SHAPES)))
def test_a_source_of_any_depth_is_read_far_down_the_stack(expression: str, code: str | None) -> None:
    source = f'def t(x: int) -> Any:\n    """Show."""\n    return {expression}\n'

    def down(n: int) -> ToolResult:
        return down(n - 1) if n > 0 else FakeExecutor().run(source, {"x": 1})

    frames = sys.getrecursionlimit() - len(inspect.stack(0)) - 300
    if code is None:
        assert down(frames).ok
    else:
        with pytest.raises(SourceError, match=code):
            down(frames)


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

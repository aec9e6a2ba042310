"""The analysis follows each constant that changes the result of an expression in `vocabulary_calls`."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from typing import Any

import pytest

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check
from tests.helpers.generated_tools import generated_tools
from tests.helpers.vocabulary_calls import ENTRIES, PLAIN

CATALOG = generated_tools(0)
CASES = [(module, e) for module, expressions in ENTRIES.items() for e in expressions] + [("", e) for e in PLAIN]
#: It only changes the number of items (flows.md, "Limits").
NOT_FOLLOWED = ("sorted(collections.Counter(a=v).elements())", 2)


@pytest.mark.filterwarnings("ignore")  # about odd arguments
def test_a_result_has_the_origin_of_each_argument_that_changes_it() -> None:
    followed = 0
    for module, expression in CASES:
        modules = {module, *re.findall(r"__import__..(\w+)..", expression)}
        imports = "".join(f"import {name}\n" for name in sorted(modules) if name)
        for changed, value in changes(re.sub(r"__import__..(\w+)..", r"\1", expression)):
            same = (None, result(imports, changed, value))
            another = next((v for v in others(value) if result(imports, changed, v) not in same), None)
            if another is None:
                continue
            # As it comes, and as one of a few known values.
            for given in (f"{type(value).__name__}(page)", f"{(value, another)}[int(page)]"):
                is_followed = follows(imports, changed, given)
                if is_followed is not None:
                    assert is_followed == ((changed, value) != NOT_FOLLOWED), (changed, given)
                    followed += is_followed
    assert followed > 850


def follows(imports: str, expression: str, given: str) -> bool | None:
    """Whether the path that an expression makes has the origin of its variable; None if this must be a literal."""
    source = f'{imports}\ndef t() -> None:\n    """T."""\n    page = tools.read_file(path="a")\n    v = {given}\n'
    checked = check(f'{source}    tools.write_file(path=str({expression}), content="")\n', CATALOG).checked
    if checked is None:
        return None
    read, write = sorted(analyse(checked).calls, key=lambda call: call.tool)
    assert (read.tool, write.tool) == ("read_file", "write_file")
    return "call:0" in write.arguments["path"].data


def changes(expression: str) -> Iterator[tuple[str, Any]]:
    """The expression with the variable `v` in place of one constant, and that constant."""
    at = 0
    while True:
        replacing = Replacing(at)
        changed = replacing.visit(ast.parse(expression, mode="eval"))
        if replacing.left >= 0:
            return
        if type(replacing.value) in (str, int):
            yield ast.unparse(ast.fix_missing_locations(changed)), replacing.value
        at += 1


class Replacing(ast.NodeTransformer):
    """Puts `v` in the place of one of the constants, and keeps that as `value`."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.value: Any = None

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        self.left -= 1
        if self.left != -1:
            return node
        self.value = node.value
        return ast.Name("v", ast.Load())

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node


def others(value: Any) -> tuple[Any, ...]:
    return (value + 1, value + 2) if isinstance(value, int) else (f"{value}x", value[::-1], "b")


def result(imports: str, expression: str, v: Any) -> str | None:
    """What CPython says; None for an error."""
    names: dict[str, Any] = {"v": v}
    exec(imports, names)  # noqa: S102
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
        return repr(eval(expression, names))  # noqa: S307
    return None

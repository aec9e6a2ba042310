"""Sources are judged in a process of their own: its answers are those of the checker, and nobody else notices a hostile source."""

from __future__ import annotations

# ruff: noqa: E501
import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from albert_tools import Failure, ToolService
from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.judging import source_judge
from albert_tools.engine.judging.check_task import MANY_UNKNOWN
from albert_tools.engine.judging.judging_limits import JUDGING
from albert_tools.engine.judging.source_judge import SourceJudge
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.model.manifest import ANALYSIS
from albert_tools.engine.model.nearest_name import look_alike
from albert_tools.engine.sandbox.worker import spawn
from albert_tools.grammar.source_error import SourceError
from albert_tools.grammar.source_text import MAX_SOURCE_BYTES
from tests.helpers.children import PATIENCE
from tests.helpers.gate import until
from tests.helpers.harness import catalog, chunks

GOOD = 'def t(x: str) -> str:\n    """Return."""\n    return x\n'
HEAD = 'def t(x: str) -> str:\n    """Return."""\n'
FULL = MAX_SOURCE_BYTES - 2_000


class Known:
    """The catalogue of the language cases, which counts its questions."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, name: str) -> ToolDefinition | None:
        self.asked.append(name)
        return catalog().get(name)

    def names(self) -> list[str]:
        self.asked.append("*")
        return list(catalog().names())

    def outdated(self, name: str) -> str | None:
        return "it is old" if name == "count_words" else None

    def look_alike(self, name: str) -> str | None:
        return look_alike(name, catalog().names())


@pytest.fixture
async def judge() -> AsyncIterator[SourceJudge]:
    found = SourceJudge()
    yield found
    await found.close()


def codes(judgement: source_judge.Judgement) -> set[str]:
    return {d.code for d in judgement.diagnostics}


async def test_the_answers_are_those_of_the_checker_and_the_compiler(judge: SourceJudge) -> None:
    for chunk in [*chunks("check"), *chunks("run")][::12]:
        found = await judge.check(chunk.source, Known(), compiled=True)
        expected = check(chunk.source, catalog())
        if found.checked is None and codes(found) & {"name-taken", "outdated-callee"}:
            continue
        assert found.diagnostics == expected.diagnostics, chunk.id
        if expected.checked is None:
            assert found.checked is None
        else:
            assert found.checked is not None
            manifest = replace(analyse(expected.checked), analysis=ANALYSIS)
            assert found.checked.definition == replace(expected.checked.definition, manifest=manifest), chunk.id
            assert (found.checked.calls, found.checked.source) == (expected.checked.calls, expected.checked.source)
            assert found.checked.program == compile_program(expected.checked)
            assert len(found.checked.examples) == len(expected.checked.examples)


@pytest.mark.parametrize("kind", ["landlock", "rlimits"])
async def test_a_weaker_fence_gives_the_same_answers(kind: str) -> None:
    judge = SourceJudge()
    judge._pool.kind = kind
    try:
        assert (await judge.check(GOOD, Known(), compiled=True)).checked is not None
        assert codes(await judge.check(GOOD.replace("x\n", "y\n"), Known())) == {"unknown-name"}
    finally:
        await judge.close()


async def test_values_that_are_loaded_late_or_exceed_64_bits(judge: SourceJudge) -> None:
    source = (
        f'@example(arguments={{"x": 1}}, result=[1.5, {{"a": (1, None)}}, {10**30}])\n'
        'def t(x: int, z: Literal["\\N{BULLET}", -1] = -1) -> Any:\n    """Return \\u00e9."""\n'
        '    return f"{x!r}\\u2022" + "\\N{BULLET}"\n'
    )
    checked = (await judge.check(source.encode(), Known(), compiled=True)).checked
    assert checked is not None
    assert [p.default for p in checked.definition.parameters] == [None, -1]
    assert checked.definition.parameters[1].schema == {"enum": ["\N{BULLET}", -1]}
    assert checked.examples[0].result == [1.5, {"a": [1, None]}, 10**30]
    assert codes(await judge.check(HEAD + '    return "\\N{NO SUCH NAME}"\n', Known())) == {"syntax"}


async def test_each_tool_is_asked_for_once_and_the_names_only_if_one_is_unknown(judge: SourceJudge) -> None:
    known = Known()
    source = HEAD + "    y = tools.read_file(path=x)\n" * 5 + "    return tools.read_file(path=y)\n"
    checked = (await judge.check(source, known)).checked
    assert sorted(known.asked) == ["read_file", "t"]
    assert checked is not None
    assert [(c.name, c.version) for c in checked.calls] == [("read_file", known.get("read_file").version)]  # type: ignore[union-attr]
    known = Known()
    await judge.check(
        HEAD + "".join(f"    print(tools.reed_file{n}(x))\n" for n in range(50)) + "    return x\n", known
    )
    # A fix is tried out, so the suggested tool is asked for.
    assert sorted(known.asked) == ["*", "read_file", *(f"reed_file{n}" for n in range(MANY_UNKNOWN))]


async def test_findings_about_existing_tools(judge: SourceJudge) -> None:
    assert codes(await judge.check(GOOD.replace("t(x", "read_file(x"), Known())) == {"name-taken"}
    source = HEAD + "    return str(tools.count_words(path=x))\n"
    [found] = (await judge.check(source, Known())).diagnostics
    assert (found.code, found.message) == ("outdated-callee", "'count_words' is outdated: it is old")


async def test_what_a_manifest_does_not_know_is_a_warning(judge: SourceJudge) -> None:
    join = 'import posixpath\n\n\ndef t(x: str) -> None:\n    """Write."""\n    for p in tools.find_files(pattern=\'*\', path=x)[\'paths\']:\n'
    unknown = f"{join}        tools.write_file(path=posixpath.relpath(p, 'a'), content='')\n"
    known = f"{join}        tools.write_file(path=posixpath.join('b', posixpath.relpath(p, x)), content='')\n"
    helpers = "".join(
        f'def _h{i}(x: str) -> str:\n    """H."""\n    return _h{i - 1}(x) + _h{i - 1}(x + "1") + _h{i - 1}(x + "2")\n\n\n'
        for i in range(1, 24)
    )
    first = 'def _h0(x: str) -> str:\n    """H."""\n    return tools.read_file(path=x)\n\n\n'
    difficult = f"{first}{helpers}{HEAD.removesuffix('return x')}    return _h23(x)\n"
    for source, expected in ((unknown, [("unknown-path", 7)]), (known, []), (difficult, [("too-difficult", 18)])):
        found = await judge.check(source, Known())
        assert [(d.code, d.span.line) for d in found.diagnostics] == expected
        assert found.checked is not None


async def test_formats_and_outlines(judge: SourceJudge) -> None:
    assert await judge.format(GOOD.replace(" -> ", "->").replace("\n", "\r\n")) == GOOD
    with pytest.raises(SourceError, match="syntax"):
        await judge.format("def t(")
    with pytest.raises(SourceError, match="not-text"):
        await judge.format("\ud800")
    outline = await judge.outline(HEAD + "    return tools.a(x=tools.b.c())\n\n\ndef _h() -> None:\n    pass\n")
    assert (outline.tools, outline.calls) == (["t"], ["a", "b.c"])
    assert not (await judge.outline("(")).tools
    assert not (await judge.outline("#" * (MAX_SOURCE_BYTES + 1))).tools


def repeated(line: Callable[[int], str], size: int = FULL) -> str:
    lines, length = [], 0
    while length < size:
        lines.append(line(len(lines)))
        length += len(lines[-1])
    return "".join(lines)


#: A title, a source, and one of its codes. The first three once took 7 GB, 280 s, and ended with `internal_error`.
HOSTILE = [
    ("itself", "class T(TypedDict):\n" + "".join(f" {c}: T\n" for c in "abcdefgh") + GOOD.replace("x: str", "x: T").replace("-> str", "-> T"), None),
    ("quotes", HEAD + "    return x " + 'f" ' * 1_000 + "\n", ""),
    ("elif", HEAD + "    if x:\n        pass\n" + "".join(f"    elif x == '{n}':\n        pass\n" for n in range(300)), ""),
    ("doubling", "".join(f"class C{n}(TypedDict):\n a: C{n + 1}\n b: C{n + 1}\n" for n in range(60))
     + "class C60(TypedDict):\n a: int\n" + GOOD.replace("x: str", "x: C0").replace("-> str", "-> C0"), None),
    ("brackets", HEAD + "    return " + "(" * FULL, "nesting-too-deep"),
    ("f-strings", HEAD + "    return " + 'f"{' * 4_000 + "x" + '}"' * 4_000 + "\n", "nesting-too-deep"),
    ("minus", HEAD + "    return " + "-" * 2_000 + "1\n", "nesting-too-deep"),
    ("sum", HEAD + "    return " + "+".join(["x"] * 1_000) + "\n", "nesting-too-deep"),
    ("union", 'def t(x: str' + " | int" * 1_000 + ') -> str:\n    """Return."""\n    return "x"\n', "nesting-too-deep"),
    ("choices", "def t(x: Literal[" + ",".join(map(str, range(4_000))) + ']) -> str:\n    """R."""\n    return "x"\n', "definition-size"),
    ("parameters", "def t(" + repeated(lambda n: f"p{n}: str, ", 40_000) + ') -> str:\n    """R."""\n    return p0\n', "definition-size"),
    ("docstring", f'def t(x: str) -> str:\n    """{"word " * 12_500}"""\n    return x\n', None),
    ("long docstring", f'def t(x: str) -> str:\n    """{"word " * 25_000}"""\n    return x\n', "literal-too-long"),
    ("defaults", f'def t(x: str = "{"d" * 60_000}", y: str = "{"e" * 60_000}") -> str:\n    """R."""\n    return x\n', "definition-size"),
    ("name", HEAD + "    return " + "n" * FULL + "\n", "unknown-name"),
    ("unknown names", HEAD + repeated(lambda n: f"    print(n{n})\n", 20_000) + "    return x\n", "more-findings"),
    ("long tool name", HEAD + f"    return tools.{'n' * 100_000}(x)\n", "unknown-tool"),
    ("unknown tools", HEAD + repeated(lambda n: f"    print(tools.t{n}(x))\n", 20_000) + "    return x\n", "more-findings"),
    ("examples", '@example(arguments={"x": "a"}, result=[' + "[]," * 10_000 + "])\n" + GOOD, None),
    ("decorators", "@a\n" * 2_000 + GOOD, "more-findings"),
    ("control characters", HEAD + "\x01" * FULL, "more-findings"),
    ("newlines", GOOD + "\n" * FULL, None),
    ("backslashes", HEAD + "    return '" + "\\" * FULL + "'\n", ""),
    ("numbers", HEAD + "    return " + "9" * FULL + "\n", "literal-too-long"),
    ("too large", "#" * (MAX_SOURCE_BYTES + 1), "source-too-large"),
]  # fmt: skip


@pytest.mark.slow
async def test_a_hostile_source_has_findings_and_nobody_else_notices(judge: SourceJudge) -> None:
    """`""` stands for any finding, None for no error."""
    await judge.check(GOOD, Known())
    before = psutil.Process().memory_info().rss

    async def other() -> None:
        assert (await judge.check(GOOD, Known())).checked is not None

    for title, source, code in HOSTILE:
        found, _ = await asyncio.gather(judge.check(source, Known()), other())
        if code is None:
            assert found.checked is not None, (title, found.diagnostics)
        elif code:
            assert code in codes(found), title
        assert len(found.diagnostics) <= 101
    # The sources and their findings, of which Python keeps some memory.
    assert psutil.Process().memory_info().rss - before < 30 * MiB


HEAVY = HEAD + "".join(f"    print({'[' * 20 + ']' * 20})\n" for _ in range(2_500)) + "    return x\n"


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({"MAX_SECONDS": 0.1}, "checking this source needs more than 30 s"),
        ({"cpu_seconds": 1}, "checking this source needs more than 10 s of processor time"),
        (
            {"memory_bytes": 4 * MiB},
            "checking this source needs more than 512 MiB of memory, or deeper nesting than Python allows",
        ),
    ],
    ids=["time", "processor", "memory"],
)
async def test_a_bound_is_a_finding(monkeypatch: pytest.MonkeyPatch, bound: dict[str, Any], message: str) -> None:
    monkeypatch.setattr(source_judge, "MAX_SECONDS", bound.pop("MAX_SECONDS", PATIENCE))
    monkeypatch.setattr(source_judge, "BOUNDS", source_judge.BOUNDS._replace(**bound))
    judge = SourceJudge()
    try:
        await judge.start()
        [found] = (await judge.check(HEAVY, Known())).diagnostics
        assert (found.code, found.severity, found.message) == ("check_limit", "error", f"{message}, so it was stopped")
        assert found.hint
        if "30 s" not in message:
            return
        with pytest.raises(SourceError, match="check_limit"):
            await judge.format(HEAVY)
        assert not (await judge.outline(HEAVY)).tools
    finally:
        await judge.close()


async def test_a_cancelled_check_and_a_closed_judge_leave_no_process(judge: SourceJudge) -> None:
    others = set(psutil.Process().children())
    await judge.check(GOOD, Known())
    [zygote] = set(psutil.Process().children()) - others
    running = [asyncio.create_task(judge.check(HEAVY, Known())) for _ in range(6)]
    await asyncio.sleep(0.05)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    async with asyncio.timeout(PATIENCE):
        while len(zygote.children()) > 2:
            await asyncio.sleep(0.005)
    # The first check after its death starts another zygote.
    zygote.kill()
    async with asyncio.timeout(PATIENCE):
        while zygote.is_running() and judge._pool._zygote is not None and not judge._pool._zygote.dead:
            await asyncio.sleep(0.005)
    assert (await judge.check(GOOD, Known())).checked is not None
    await judge.close()
    assert set(psutil.Process().children()) <= others


async def test_without_a_process_nothing_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn.sys, "executable", "/bin/true")
    async with ToolService.open(home=tmp_path / "home", workspace=tmp_path) as service:
        for work in (service.check, service.define, service.format, service.outline):
            with pytest.raises(Failure) as caught:
                await work(GOOD)
            assert caught.value.code == "sandbox_unavailable"
        assert service.store.list() == []


FINDING = {"code": "a-b", "severity": "error", "message": "", "hint": None, "span": [1, 1, 1, 1], "fix": None}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"findings": []},
        {"findings": [], "tool": {"name": "t"}},
        {"findings": [{**FINDING, "code": "Not a code"}]},
        {"findings": [{**FINDING, "severity": "fatal"}]},
        {"findings": [{**FINDING, "span": {}}]},
        {"findings": [{**FINDING, "span": [1, 1, 1, -1]}]},
        {"findings": [{**FINDING, "fix": {"title": "", "edits": [[[1, 1, 1, 10**30], ""]]}}]},
    ],
)
async def test_an_answer_of_another_form_is_a_violation(
    judge: SourceJudge, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    async def lie(*_: object) -> object:
        return answer

    monkeypatch.setattr(judge._pool, "call", lie)
    with pytest.raises(Failure) as caught:
        await judge.check(GOOD, Known())
    assert caught.value.code == "sandbox_violation"


async def test_a_finding_of_another_form_is_a_violation_for_format_too(
    judge: SourceJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lie(*_: object) -> object:
        return {"findings": [{**FINDING, "code": "Not a code"}]}

    monkeypatch.setattr(judge._pool, "call", lie)
    with pytest.raises(Failure) as caught:
        await judge.format(GOOD)
    assert caught.value.code == "sandbox_violation"


@pytest.mark.parametrize("name", ["read_file", "Read_file", "read_fiIe"])
async def test_a_process_that_does_not_ask_about_its_name_is_not_believed(
    judge: SourceJudge, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tool = {
        "description": "",
        "parameters": [],
        "result": {},
        "timeout": 1.0,
        "calls": [],
        "imports": [],
        "examples": [],
        "manifest": {},
    }

    async def lie(*_: object) -> object:
        return {"findings": [], "tool": {"name": name, **tool}}

    monkeypatch.setattr(judge._pool, "call", lie)
    with pytest.raises(Failure) as caught:
        await judge.check(GOOD.replace("t(", f"{name}("), Known())
    assert caught.value.code == "sandbox_violation"


async def test_a_question_that_does_not_exist_is_a_violation(judge: SourceJudge) -> None:
    answers = source_judge._Answers(Known())
    assert await answers.answer({"tool": "read_file"})
    assert await answers.answer({"names": True})
    assert await answers.answer({"like": "Read_file"}) == "read_file"
    for question in (
        {"tool": "read_file"},
        {"like": "Bash"},
        {"names": True},
        {"tool": "n" * 1_000},
        {"tool": 1},
        {"names": 1},
        {"files": "/"},
        "names",
        None,
    ):
        with pytest.raises(Failure) as caught:
            await answers.answer(question)
        assert caught.value.code == "sandbox_violation"


def test_the_service_imports_neither_lark_nor_restrictedpython(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
from albert_tools import ToolService
source = {GOOD!r}
async def main():
    async with ToolService.open(home={str(tmp_path / "home")!r}, workspace={str(tmp_path)!r}) as service:
        assert not await service.check(source)
        assert await service.check("def t(")
        assert (await service.check_together([source]))[0].diagnostics == ()
        await service.define('@example(arguments={{"x": "a"}}, result="a")' + chr(10) + source)
        assert (await service.invoke("t", {{"x": "b"}})).value() == "b"
        assert await service.format(source) == source
        assert (await service.outline(source)).tools == ["t"]
asyncio.run(main())
print(sorted({{"lark", "RestrictedPython", "albert_tools.grammar.parse", "albert_tools.engine.check.checker"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_judging_process_gets_no_url_of_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALBERT_HOME", "postgresql://albert:secret@host/x")
    spawned = spawn.spawn_zygote(JUDGING)
    try:
        process = psutil.Process(spawned[0].pid)
        # A process that has just been forked has no environment of its own yet.
        until(lambda: process.environ() == spawn.ENVIRONMENT)
    finally:
        spawn.discard(spawned)
        spawned[0].wait()

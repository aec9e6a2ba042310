"""The holes of planned commands: which of them can change what a command does, wherever they stand."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from albert_tools.engine.model.manifest import Hole, PlannedCall, Value
from albert_tools.engine.shell.command_holes import is_loose, loose_holes
from albert_tools.engine.shell.judge import TO_THE_NETWORK, judge_command
from tests.helpers.effort import examples

GIVEN = Hole("parameter", "q")
QUOTED = Hole("quoted", of=(GIVEN,))
WORD, NUMBER = Hole("word"), Hole("number")


def of_text(text: str, hole: Hole = QUOTED) -> list[tuple[Any, str | None]]:
    """The loose holes of a text for a shell, in which each ``@`` is a hole."""
    first, *others = text.split("@")
    template: list[str | Hole] = [first]
    for part in others:
        template += [hole, part]
    return [(found.template, found.command) for found in loose_holes("shell", Value((tuple(template),)))]


HARMLESS = [
    "grep @ a.txt",
    "grep -n -- @ @",
    "cat src/@.py | wc -l",
    "grep --include=@ -r x .",
    'echo "$(grep @ a.txt)"',
    "ls | xargs grep @",
    "timeout 5 grep @ a.txt",
    "for f in *.txt; do grep @ $f; done",
    "if grep -q @ a.txt; then ls; fi",
    "git add -- @",
    "cat <(grep @ a.txt)",
]
#: An option takes the next word as its value, so the word must be there.
VALUES = ["find . -name @", "git commit -m @"]

MISPLACED = [
    "grep '@' a.txt",
    'grep "@" a.txt',
    "grep \"'@'\" a.txt",
    "grep $@ a.txt",
    "grep \\@ a.txt",
    "cat <<EOF\n@\nEOF\n",
    "cat <<'EOF'\n@\nEOF\n",
    "cat <<@\nx\n@\n",
    "ls # @",
    "echo `grep @ a.txt`",
    'echo "${x:-@}"',
    "echo ${x:-@}",
    "x=@; $x",
    "x=@ ls",
    "export x=@",
    "export @",
    "for x in @; do $x; done",
    "case @ in a) ls;; esac",
    "[[ @ == a ]]",
    "[ @ -eq 1 ]",
    "echo $((@))",
    "wc -l < @",
    "ls > @",
    "cat <<< @",
    "cat @>x",
    "f() { grep @ a.txt; }; f",
    "arr=(@)",
    "{ @",
]

OTHER_COMMANDS = [
    "@",
    "@ -c 'rm -rf x'",
    "ls; @ x",
    "ls | @",
    "sh -c @",
    "sh -c 'ls \"$1\"' sh @",
    "bash -c @ x",
    "eval @",
    "awk @ a.txt",
    "sed @ a.txt",
    "python3 @",
    "python3 -c @",
    "env @ ls",
    "env A=1 @ ls",
    "nohup @",
    "xargs @",
    "xargs -I{} sh -c @",
    "find . -exec @ {} +",
    "find @ -name x",
    "find . @",
    "timeout @ ls",
    "rm -f @",
    "cp @ x",
    "tee @",
    "sort @",
    "sort -o @ a.txt",
    "make @",
    "pytest tests -k @",
    "git @",
    "git log @",
    "git -C @ status",
    "frob @",
    "cd @",
    "source @",
    "trap @ EXIT",
    "curl @",
    "printf @ x",
    "printf '%s' @",
    # `shlex.quote` leaves a comma as it is.
    "find . -name {@}",
    "find . -name {a@}{}",
    "git grep -e {@,b} -- a.txt",
    "uniq ./{@}",
]
#: What an ordinary command prints, writes or sets, another one runs.
PASSED_ON = {
    "echo @ | sh": "sh",
    "echo @ > x; sh x": "sh x",
    "echo @ | xargs rm": "rm …",
    "x=$(echo @); $x": "…",
    "echo @ | while read -r x; do $x; done": "…",
    "echo @ > a.py; python a.py": "python a.py",
    "grep @ a.txt; rm -rf build": "rm -rf build",
}


@pytest.mark.parametrize("text", HARMLESS + VALUES)
def test_an_operand_of_an_ordinary_command_is_harmless(text: str) -> None:
    assert of_text(text) == []
    # Letters and digits can be none.
    assert (of_text(text, WORD) == of_text(text, NUMBER) == []) is (text in HARMLESS)


@pytest.mark.parametrize("text", MISPLACED)
def test_a_quoted_text_is_no_word_of_its_own_everywhere(text: str) -> None:
    assert of_text(text)[0] == ((GIVEN,), None)


@pytest.mark.parametrize("text", OTHER_COMMANDS)
def test_an_operand_of_another_command_is_named_with_the_command(text: str) -> None:
    ((template, command),) = of_text(text)
    assert template == (GIVEN,)
    assert command is not None
    assert "…" in command


@pytest.mark.parametrize(
    "text", ["rm -f @", "@ x", "sh -c @", "cat <<EOF\n@\nEOF\n", "ls @#'\nrm -rf x\n'", "ls \\@\n", "x=@; $x"]
)
def test_letters_and_digits_are_harmless_only_as_operands_too(text: str) -> None:
    assert of_text(text, WORD) != []


@pytest.mark.parametrize("text", PASSED_ON)
def test_what_another_command_could_get_is_named_with_that_command(text: str) -> None:
    assert of_text(text) == [((GIVEN,), PASSED_ON[text])]


def test_a_quoted_constant_is_no_hole() -> None:
    assert of_text("rm -f @", Hole("quoted", of=("a b",))) == []
    assert of_text("rm -f @", Hole("quoted", of=("a b", GIVEN))) != []


def test_letters_and_digits_are_words_within_quotes() -> None:
    assert of_text("grep '@ x' \"a @\"", WORD) == []


@pytest.mark.parametrize("kind", ["parameter", "output", "part", "path", "below", "any"])
def test_a_text_that_is_not_quoted_can_be_any_command(kind: Any) -> None:
    hole = Hole(kind)
    assert of_text("grep @ a.txt", hole) == [((hole,), None)]


def test_marks_in_the_text_are_not_taken_for_holes() -> None:
    assert of_text("grep \ua200 @ a.txt") == [((GIVEN,), None)]
    assert of_text("grep \ua200 a.txt") == []


def of_list(*places: Any) -> list[str | None]:
    values = tuple(place if isinstance(place, Value) else Value(((place,),)) for place in places)
    return [found.command for found in loose_holes("program", Value(places=values))]


@pytest.mark.parametrize(
    ("argv", "commands"),
    [
        (["grep", GIVEN, "a.txt"], []),
        (["ls", "x"], []),
        (["git", "commit", "-m", GIVEN], []),
        ([GIVEN, "x"], ["… x"]),
        (["sh", "-c", GIVEN], ["sh -c …"]),
        (["sh", "-c", 'ls "$1"', "sh", GIVEN], ["sh -c 'ls \"$1\"' sh …"]),
        (["python3", GIVEN], ["python3 …"]),
        (["env", GIVEN, "ls"], ["… ls"]),
        (["env", "A=1", GIVEN], ["…"]),
        (["rm", "-f", GIVEN], ["rm -f …"]),
        (["xargs", "-a", "names", GIVEN], ["xargs -a names …"]),
        (["find", ".", "-exec", GIVEN, ";"], ["…"]),
        (["find", ".", "-exec", "grep", GIVEN, "-delete", ";"], ["find . -exec grep … -delete ';'"]),
        (["frob", NUMBER], ["frob …"]),
        ([Value((("wc",), ("cat",))), GIVEN], []),
        ([Value((("wc",), ("frob",))), GIVEN], ["frob …"]),
        (["wc", *[Value((("-l",), ("-c",))) for _ in range(9)], GIVEN], []),
        ([Value((("wc",), ("rm",))), *[Value((("-l",), ("-c",))) for _ in range(9)], GIVEN], ["…" + " …" * 10] * 11),
    ],
)  # fmt: skip
def test_an_argument_of_a_program(argv: list[Any], commands: list[str]) -> None:
    assert of_list(*argv) == commands


def test_a_list_of_unknown_length_can_begin_with_any_item() -> None:
    assert [one.command for one in loose_holes("program", Value(items=Value((("wc",), (GIVEN,)))))] == [""]
    assert [one.command for one in loose_holes("program", Value(((GIVEN,),)))] == [""]
    assert [*loose_holes("program", Value(items=Value((("wc",), ("-l",)))))] == []


@pytest.mark.parametrize(
    ("entry", "is_free"),
    [
        (("LANG=C",), False),
        (("LANG=", GIVEN), True),
        (("PATH=.",), False),
        (("PATH=", GIVEN), True),
        ((GIVEN,), True),
        (("LAN", GIVEN), True),
    ],
)
def test_a_variable_that_is_not_fixed(entry: Any, is_free: bool) -> None:
    call = PlannedCall("bash", arguments={"env": Value(places=(Value((entry,)),))}, uses={"env": "environment"})
    assert is_loose(call) is is_free


@pytest.mark.parametrize(
    ("uses", "command", "is_free"),
    [
        ({"command": "shell"}, "./deploy.sh", True),
        ({"command": "shell"}, "sh deploy.sh", True),
        ({"command": "shell"}, "make test && frob", True),
        ({"command": "shell"}, "make test", True),
        ({"command": "shell"}, "timeout 5 python3 run.py", True),
        ({"command": "shell"}, "uv run ruff check .", True),
        ({"command": "shell"}, "uv  run ls", True),
        ({"command": "shell"}, "git commit -a -m x", True),
        ({"command": "shell"}, "git log -n 3 | head", False),
        ({"command": "shell"}, "pip list", False),
        ({"command": "shell"}, "PYTHONPATH=. pip list", True),
        ({"command": "shell"}, "PYTHONPATH+=. pip list", True),
        ({"command": "shell"}, "env 'PYTHON''PATH'+=. pip list", True),
        ({"command": "shell"}, 'env "PYTHON\\\nPATH=." pip list', True),
        ({"command": "shell", "env": "environment"}, "pip list", True),
        ({"argv": "program"}, "pytest", True),
        ({"command": "shell"}, "grep -n a b.txt", False),
        ({"argv": "program"}, "./deploy.sh", True),
        ({"argv": "program"}, "wc", False),
        ({}, "", True),
    ],
)
def test_a_folder_that_is_not_fixed_chooses_the_program(uses: dict[str, str], command: str, is_free: bool) -> None:
    given = {"command": Value(((command,),)), "argv": Value(places=(Value(((command,),)),))}
    given["env"] = Value(places=(Value((("PYTHONPATH=.",),)),))
    for folder, is_hole in (((GIVEN,), True), (("sub/", GIVEN), True), (("sub",), False)):
        arguments = {**{name: given[name] for name in uses}, "cwd": Value((folder,))}
        call = PlannedCall("bash", arguments=arguments, uses={**uses, "cwd": "folder"})
        assert is_loose(call) is (is_free and is_hole)


@pytest.mark.parametrize(
    ("words", "is_free"),
    [
        ([(GIVEN,)], True),
        ([("origin",), (GIVEN,)], True),
        ([("-m",), (GIVEN,)], False),
        ([("-m",), ("x",), (GIVEN,)], True),
        ([("--",), (GIVEN,), (GIVEN,)], False),
        ([("-q",), (GIVEN,)], True),
        ([("-", GIVEN)], True),
        ([("--", GIVEN)], True),
        ([("--author=", GIVEN)], False),
        ([("--auth", GIVEN)], True),
        ([("", GIVEN)], True),
        ([("tests/", GIVEN)], False),
        ([(Hole("number"),)], False),
    ],
)
def test_an_argument_of_a_program_that_could_be_an_option(words: list[Any], is_free: bool) -> None:
    args = Value(places=tuple(Value((word,)) for word in words))
    commit = {"operation": Value((("COMMIT",),)), "args": args}
    call = PlannedCall("git", arguments=commit, uses={"args": "arguments"})
    assert is_loose(call) is is_free
    assert is_loose(replace(call, arguments={"args": Value(items=Value(((GIVEN,),)))}))
    if words[0] == ("-m",):
        # There, -m takes no text.
        assert is_loose(replace(call, arguments=commit | {"operation": Value((("BRANCH",),))}))


@pytest.mark.parametrize(
    ("word", "is_free"),
    [
        (("--python-executable=", GIVEN), True),
        (("--override-ini=addopts=", Hole("word")), True),
        (("--maxfail=", NUMBER), False),
        (("-n", NUMBER), True),
        (("--x=", NUMBER, GIVEN), True),
        (("tests/a=", GIVEN), False),
    ],
)
def test_the_value_of_an_option_that_no_list_names(word: Any, is_free: bool) -> None:
    args = Value(places=(Value((word,)),))
    assert is_loose(PlannedCall("run_tests", arguments={"args": args}, uses={"args": "arguments"})) is is_free


AROUND = st.sampled_from(["", "{", "}", "}{", "{a,", "{a..", "{}", "a=", "a:", "~", "["])


@examples(100)
@given(
    st.sampled_from(HARMLESS) | st.builds("find . -name {}@{}".format, AROUND, AROUND),
    st.text(st.sampled_from("ab \n'\"\\$`;|&<>(){}#!*?~=-/:,") | st.characters(codec="utf-8"), max_size=20)
    | st.sampled_from(["a,-delete", "..b", "-delete"]),
)
@example("grep @ a.txt", "; touch PWN; rm -rf sub; ")
@example("grep @ a.txt", "'; touch PWN; rm -rf sub; '")
def test_what_fills_a_harmless_hole_changes_no_command(text: str, filling: str) -> None:
    # A place in the network asks in any word, because some programs open it.
    assume("\0" not in filling and not any(place in filling for place in TO_THE_NETWORK))
    assume(of_text(text) == [])
    fixed = judge_command(text.replace("@", "x")).parts
    filled = judge_command(text.replace("@", shlex.quote(filling))).parts
    if not any(part.unreadable for part in filled):
        assert [(p.verdict, p.argv[:1]) for p in filled] == [(p.verdict, p.argv[:1]) for p in fixed]

"""``albert help`` explains every code of an error and of a diagnostic, and parts of the language. Messages point to it."""

from __future__ import annotations

import pytest

from albert_tools.engine.check.codes import CODES as DIAGNOSTIC_CODES
from albert_tools.engine.model.error_codes import CODES as ERROR_CODES
from albert_tools.engine.model.vocabulary import INSTEAD
from albert_tools.engine.policy import presets
from albert_tools.surfaces.cli.commands import PRESETS
from albert_tools.surfaces.cli.main import make_parser

from .conftest import Albert


def test_no_code_means_two_things() -> None:
    assert not ERROR_CODES.keys() & DIAGNOSTIC_CODES.keys()


def test_an_error_code(ready: Albert) -> None:
    entry = ERROR_CODES["not_found"]
    text = ready("help", "not_found").out
    assert text.startswith("not_found  error, exception\n\n")
    for part in (entry.meaning, f"For example: {entry.example}", f"What to do: {entry.remedy}"):
        assert part in text
    document = ready("help", "not_found", "--json").document()
    assert (document["kind"], document["type"], document["remedy"]) == ("error", "NotFound", entry.remedy)


def test_a_diagnostic_code(ready: Albert) -> None:
    entry = DIAGNOSTIC_CODES["unknown-tool"]
    text = ready("help", "unknown-tool").out
    assert text.startswith(f"unknown-tool  diagnostic\n\n{entry.summary}\nWhy: {entry.why}\n")
    assert "\nRefused:\n    def work(" in text
    assert "\nAccepted:\n    def work(" in text
    document = ready("help", "unknown-tool", "--json").document()
    assert document == {"ok": True, "kind": "diagnostic", **entry._asdict()}


@pytest.mark.parametrize(("code", "near"), [("not_fund", "'not_found'"), ("unknwon-tool", "'unknown-tool'")])
def test_an_unknown_code_names_the_nearest(ready: Albert, code: str, near: str) -> None:
    done = ready("help", code)
    assert (done.code, done.out) == (2, "")
    assert f"there is no topic '{code}'; did you mean {near}" in done.err


def test_a_part_of_the_language(ready: Albert) -> None:
    text = ready("help", "lazy", "values").out
    assert text.startswith("Lazy values\n")
    assert ready("help", "lazy values", "--json").document() == {
        "ok": True,
        "kind": "language",
        "topic": "lazy values",
        "text": text,
    }
    assert "quantiles(method=, n=)" in ready("help", "statistics").out
    assert ready("help", "os").out == f"Programs can't import os: {INSTEAD['os']}.\n"


def test_without_a_code_the_commands_are_listed(ready: Albert) -> None:
    text = ready("help").out
    assert text == ready("--help").out
    assert "`albert help TOPIC` explains" in text
    assert ready("help", "run").out == ready("run", "--help").out
    assert ready("help", "--json").document()["help"] == text


def test_diagnostics_point_to_it_once(ready: Albert) -> None:
    ready.write("wrong.tool", 'def wrong() -> int:\n    """Fail."""\n    return nothing + tools.read_flie(path="a")\n')
    for command in ("define", "check"):
        text = ready(command, "wrong.tool", "wrong.tool").err
        assert text.endswith("\n`albert help unknown-name` says more\n")
        assert text.count("albert help") == 1


def test_an_error_without_a_hint_points_to_it(ready: Albert) -> None:
    assert "help: `albert help" not in ready("run", "no_such").err
    ready.write("wide.tool", "a" * 17_000_000)
    done = ready("check", "wide.tool")
    assert "error[too_large]" in done.err
    assert "\n  help: `albert help too_large` says more\n" in done.err


def test_the_presets_that_the_options_name_are_all() -> None:
    assert tuple(presets.PRESETS) == PRESETS


@pytest.mark.parametrize(
    ("words", "made"),
    [(["run", "tools"], ["run"]), (["--json", "run"], None), (["nowhere"], None), (["help", "run"], None)],
)
def test_if_the_first_word_is_a_command_only_its_parser_is_made(words: list[str], made: list[str] | None) -> None:
    every = list(make_parser().get_default("commands"))
    assert list(make_parser(words).get_default("commands")) == (made or every)

"""`language_help` has a page for each part of the language, module and code."""

from __future__ import annotations

import pytest

from albert_tools import Failure
from albert_tools.engine.agent.language_help import MAX_TEXT, language_help, topics
from albert_tools.engine.check.codes import CODES as DIAGNOSTIC_CODES
from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.vocabulary import BUILTINS, MODULES, facades


def test_the_index_lists_every_topic() -> None:
    index = language_help(" ")
    assert index["topic"] == ""
    assert {*CODES, *DIAGNOSTIC_CODES, *MODULES, "language", "built-ins", "methods", "lazy values"} <= topics().keys()
    for topic in topics():
        assert topic in index["text"]


@pytest.mark.parametrize("topic", ["", *topics()])
def test_every_page_is_whole_and_bounded(topic: str) -> None:
    page = language_help(topic)
    assert page["topic"] == topic
    # A page that was cut has exactly the most characters.
    assert 40 < len(page["text"]) < MAX_TEXT
    assert page["text"].endswith("\n")


def test_a_module_lists_what_it_offers() -> None:
    text = language_help("re")["text"]
    assert "function: compile(flags=), search(flags=)" in text
    assert "finditer(flags=) [lazy]" in text
    assert "exception: error\n" in text
    for name in facades()["datetime"]:
        assert name in language_help("datetime")["text"]


def test_the_built_ins_have_their_arguments() -> None:
    text = language_help("Built-ins")["text"]
    for line in (
        "sorted: 1, key, reverse",
        "range: 1 to 3",
        "zip: 0 or more, strict; lazy",
        "dict: 0 to 1, any keyword",
    ):
        assert f"\n{line}\n" in text
    assert all(f"\n{name}: " in text for name in BUILTINS)


def test_a_code_has_its_example_and_its_rewrite() -> None:
    text = language_help("unknown-tool")["text"]
    assert text.startswith(f"unknown-tool: diagnostic\n\n{DIAGNOSTIC_CODES['unknown-tool'].summary}\nWhy: ")
    assert "\nRefused:\n    def work(" in text
    assert f"\nWhat to do: {CODES['not_found'].remedy}\n" in language_help("not_found")["text"]


def test_a_module_that_programs_can_not_import_has_its_replacement() -> None:
    assert "use posixpath" in language_help("pathlib")["text"]


@pytest.mark.parametrize(
    ("topic", "near"),
    [
        ("unknwon_tool", "'unknown_tool' or 'unknown-tool'"),
        ("lazy", "'lazy values' or 'lazy-value'"),
        ("x" * 100_000, ""),
    ],
)
def test_an_unknown_topic_names_similar_ones(topic: str, near: str) -> None:
    with pytest.raises(Failure) as caught:
        language_help(topic)
    assert caught.value.code == "not_found"
    assert near in caught.value.message
    assert len(caught.value.message) < 200

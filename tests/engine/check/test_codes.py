"""The registry of diagnostic codes. Each code is declared once, explained, and shown by an example."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from albert_tools.engine.check.checker import check
from albert_tools.engine.check.codes import CODES, LIMITS, TYPES, WHEN_DEFINED
from albert_tools.engine.check.discovery import RULE_MODULES
from albert_tools.grammar import codes as grammar_codes
from albert_tools.grammar.finding_code import FindingCode
from tests.helpers.harness import catalog

ROOT = Path(__file__).parents[3]
READERS = [
    *(ROOT / "grammar").glob("*.py"),
    *(ROOT / "engine/check").rglob("*.py"),
    *(ROOT / "engine/judging").glob("*.py"),
]

#: Codes that no source here can show. Their cause is size, bytes that are not text, a newer Python, saved tools, a long analysis
#: or a defect of the checker.
WITHOUT_EXAMPLE = {
    "check_limit",
    "definition-size",
    "more-findings",
    "no-type-alias",
    "no-type-parameters",
    "not-formatted",
    "not-text",
    "outdated-callee",
    "readings-differ",
    "source-too-large",
    "too-difficult",
    "tool-depth",
}


def test_each_code_is_declared_once() -> None:
    declared = [c.code for m in (grammar_codes, *RULE_MODULES) for c in m.CODES]
    declared += [c.code for c in (*TYPES, *LIMITS, *WHEN_DEFINED)]
    assert [code for code, count in Counter(declared).items() if count > 1] == []
    assert set(declared) == set(CODES)


def test_each_reported_code_is_declared_and_each_declared_code_is_reported() -> None:
    reported: set[str] = set()
    for path in READERS:
        text = path.read_text(encoding="utf-8")
        # `error("code", …)` and the rows of tables such as `CONSTRUCTS`. Declarations don't count.
        text = re.sub(r'FindingCode\(\s*"[a-z_-]+"', "", text)
        reported |= set(re.findall(r'\(\s*"([a-z]+(?:[-_][a-z]+)*)",', text)) & set(CODES)
        assert set(re.findall(r'(?:error|warning|Diagnostic)\(\s*"([a-z_-]+)",', text)) <= set(CODES), path.name
    assert reported == set(CODES)


@pytest.mark.parametrize("code", CODES.values(), ids=lambda c: c.code)
def test_a_code_is_explained_in_sentences(code: FindingCode) -> None:
    for sentence in (code.summary, code.why):
        assert sentence[0] in "`" or sentence[0].isupper()
        assert sentence.endswith(".")
    assert (code.example is None) == (code.rewrite is None) == (code.code in WITHOUT_EXAMPLE)


@pytest.mark.parametrize("code", [c for c in CODES.values() if c.example], ids=lambda c: c.code)
def test_an_example_has_its_code_and_its_rewrite_has_no_finding(code: FindingCode) -> None:
    assert code.example is not None
    assert code.rewrite is not None
    found = {d.code for d in check(code.example, catalog()).diagnostics}
    assert found == (set() if code in WHEN_DEFINED else {code.code})
    assert not check(code.rewrite, catalog()).diagnostics


def test_each_code_of_a_rule_has_a_case() -> None:
    cases = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/cases").rglob("*.tool"))
    rules = {code.code for codes in (TYPES, *(m.CODES for m in RULE_MODULES)) for code in codes} - WITHOUT_EXAMPLE
    assert sorted(code for code in rules if f"[{code}]" not in cases) == []

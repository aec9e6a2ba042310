"""Generates the reference pages: run ``make docs`` after changing what they describe.

A test compares the pages with what this generates.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from albert_tools.engine.check.codes import LIMITS, WHEN_DEFINED
from albert_tools.engine.check.discovery import RULE_MODULES
from albert_tools.engine.check.types import failing_types
from albert_tools.engine.model import bounds
from albert_tools.engine.model.error_codes import CODES, DENIALS
from albert_tools.engine.model.limits import MAX_ROUNDS, MOST_OF_RUN, RunLimits
from albert_tools.engine.model.validation import MAX_STEPS
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER
from albert_tools.grammar import codes as grammar_codes
from albert_tools.grammar.finding_code import FindingCode
from albert_tools.surfaces.cli.primitives_page import primitives_page
from albert_tools.surfaces.text.exit_codes import EXITS
from albert_tools.testing import registry


def errors() -> str:
    """The page of error codes and limits."""
    lines = [
        "# Errors and limits",
        "",
        "A code is stable: programs compare `error.code`, messages may change. An error also has a sentence, often a hint that",
        "says what to do, the line of the saved tool in which it occurred, and `retryable`. A code marked * is a denial: the",
        "call was not executed, and `rule` names the rule. Failures are counted by category. The type is the name of the error in",
        "the strict form of a result and in other languages. `albert help CODE` prints an entry of this page.",
        "",
        "| code | category | type | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| [`{name}`](#{name}){' *' if name in DENIALS else ''} | {code.category} | `{code.kind}` | {code.meaning} |"
        for name, code in CODES.items()
    ]
    lines += ["", "## Each code", ""]
    for name, code in CODES.items():
        lines += [
            f"### {name}",
            "",
            code.meaning,
            "",
            f"- For example: {code.example}",
            f"- What to do: {code.remedy}",
            "",
        ]
    limits = RunLimits()
    lines += [
        "## Exit codes of `albert`",
        "",
        "| exit code | meaning |",
        "|---|---|",
        *(f"| {code} | {meaning} |" for code, meaning in EXITS.items()),
        "",
        "## Limits of one run",
        "",
        "The owner's rules can lower them (`limits`), and raise the seconds of a run and of a call to "
        f"{MOST_OF_RUN.call_seconds:,.0f} s. A program can't catch a limit: its process ends.",
        "",
        "| limit | default | code |",
        "|---|---|---|",
        f"| own time, calls not counted | {limits.own_seconds:g} s | `time_limit` |",
        f"| whole run, calls included | {limits.run_seconds:g} s | `run_limit` |",
        f"| one call | {limits.call_seconds:g} s, or less as the tool says | `timeout` |",
        f"| processor time | {limits.cpu_seconds} s | `cpu_limit` |",
        f"| memory | {limits.memory_bytes // 2**20} MiB | `memory_limit` |",
        f"| result, and arguments of one call inside `parallel` | {limits.result_bytes // 2**20} MiB | `result_limit` |",
        f"| arguments of another call | {MAX_ANSWER // 2**20} MiB | `result_limit` |",
        f"| what is printed | {limits.log_bytes // 2**20} MiB | `log_limit` |",
        f"| rounds of a loop over a list that grows in it | {MAX_ROUNDS:,} | `loop_limit` |",
        f"| tool calls | {limits.calls:,} | `call_limit` |",
        f"| saved tools inside saved tools | {limits.depth} levels | `depth_limit` |",
        f"| depth of recursion | {limits.recursion} | `recursion_limit` |",
        "",
        "## Bounds of arguments",
        "",
        "They apply to every tool that takes such an argument; a tool or a rule may set less. A refused call lists everything that",
        "is wrong with it, as `{field, rule, message}`. A hash is 64 lower-case hex digits, with or without `b3:` before them.",
        "",
        "| argument | bound | rules |",
        "|---|---|---|",
        *(f"| {what} | {bound} | {', '.join(f'`{r}`' for r in rules.split())} |" for what, bound, rules in _bounds()),
        "",
    ]
    return "\n".join(lines)


def _bounds() -> list[tuple[str, str, str]]:
    lengths = "min_length max_length"
    return [
        ("identifier, provider, model, category", f"1 to {bounds.MAX_IDENTIFIER} characters", lengths),
        ("dedupe key", f"{bounds.MAX_DEDUPE_KEY} characters, may be empty", "max_length"),
        ("path", f"1 to {bounds.MAX_PATH:,} bytes, no NUL, no `..`", f"{lengths} max_bytes nul path_traversal"),
        (
            "working directory",
            f"{bounds.MAX_WORKING_DIRECTORY:,} bytes, may be empty, no NUL",
            "max_length max_bytes nul",
        ),
        (
            "command",
            f"1 byte to {_size(bounds.MAX_COMMAND)}, no NUL; Linux starts one of up to 128 KiB (`too_large`)",
            f"{lengths} max_bytes nul",
        ),
        ("one argument of a command", f"{_size(bounds.MAX_ENTRY)}, no NUL", "max_length max_bytes nul"),
        (
            "one entry of an environment or of metadata",
            f"{_size(bounds.MAX_ENTRY)}, no NUL, one `=` with a name before it",
            "max_length max_bytes nul one_equals",
        ),
        ("list", f"{bounds.MAX_ITEMS:,} items", "max_items"),
        ("timeout", f"more than 0 s, to {bounds.MAX_TIMEOUT_SECONDS:,} s", "minimum maximum"),
        ("read limit", f"1 byte to {_size(bounds.MAX_READ)}", "minimum maximum"),
        ("content of a file", _size(bounds.MAX_WRITE), "max_length max_bytes"),
        ("text of an edit", f"{_size(bounds.MAX_EDIT)}; the old one is not empty", f"{lengths} max_bytes"),
        ("tokens of an answer", f"1 to {bounds.MAX_TOKENS:,}", "minimum maximum"),
        ("hash", f"{bounds.HASH_BYTES} bytes; that of a prompt may be empty", "hash max_length"),
        ("values in one check, each counted once for each alternative that is tried", f"{MAX_STEPS:,}", "size"),
        ("two that exclude each other", "one of them, neither false nor null", "excludes"),
    ]


def _size(count: int) -> str:
    for unit, name in ((bounds.GiB, "GiB"), (bounds.MiB, "MiB"), (bounds.KiB, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} bytes"


def checks() -> str:
    """The page of the checker's rules: the paragraph that opens each rule's module, and the codes that it declares."""
    lines = [
        "# What is checked",
        "",
        "The checker reports all findings at once, each with a place, a code, a sentence and a rewrite that would be accepted.",
        "Types are checked last, if there is no other error.",
        "Codes are stable; sentences may improve. `albert help CODE` shows one of them.",
        "",
        "## Reading the source",
        "",
        *(line for code in grammar_codes.CODES for line in _finding_code(code)),
    ]
    for module in RULE_MODULES:
        name = module.__name__.rpartition(".")[2].replace("_", " ").capitalize()
        lines += [f"## {name}", "", (module.__doc__ or "").strip(), ""]
        lines += [line for code in module.CODES for line in _finding_code(code)]
    lines += ["## Types", "", (failing_types.__doc__ or "").strip(), ""]
    lines += [line for code in failing_types.CODES for line in _finding_code(code)]
    lines += ["## Size of the answer", ""]
    lines += [line for code in LIMITS for line in _finding_code(code)]
    lines += ["## Defining the tool", ""]
    lines += [line for code in WHEN_DEFINED for line in _finding_code(code)]
    return "\n".join(lines)


def _finding_code(code: FindingCode) -> list[str]:
    lines = [f"### `{code.code}`", "", f"{code.summary} {code.why}", ""]
    if code.example is not None and code.rewrite is not None:
        # A control character would be invisible on the page.
        example = code.example.replace("\x0c", "^L")
        lines += [
            "```python",
            example.rstrip(),
            "```",
            "",
            "Accepted:",
            "",
            "```python",
            code.rewrite.rstrip(),
            "```",
            "",
        ]
    return lines


def primitives() -> str:
    """The page of the primitives that come with Albert Tools."""
    return primitives_page(registry().primitives())


#: Where the table of attacks begins in the page that it ends.
_ATTACKS = "<!-- attacks -->\n"


def sandbox() -> str:
    """The page about how commands are confined, with each attack of the tests and the layers that stop it."""
    here = Path(__file__).parent
    lines = ["| attack | `bwrap` | `landlock` |", "|---|---|---|"]
    for node in ast.parse((here.parent / "tests/helpers/probes.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and any(getattr(d, "id", "") == "probe" for d in node.decorator_list):
            layers = re.fullmatch(r"bwrap: (.*); landlock: (.*)", ast.get_docstring(node) or "")
            assert layers is not None, f"{node.name} doesn't say what stops it"
            lines.append(f"| {node.name.replace('_', ' ')} | {layers[1]} | {layers[2]} |")
    text = (here / "sandbox.md").read_text(encoding="utf-8").partition(_ATTACKS)[0]
    return text + _ATTACKS + "\n".join(lines) + "\n"


PAGES = {"errors.md": errors, "checks.md": checks, "primitives.md": primitives, "sandbox.md": sandbox}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")

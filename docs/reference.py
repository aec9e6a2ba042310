"""Writes the reference pages that are read off the code: run ``python docs/reference.py`` after changing it.

A test holds the pages to what this makes.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from albert_tools.engine.check import rules
from albert_tools.engine.model.failure import CODES, DENIALS
from albert_tools.engine.model.limits import RunLimits


def errors() -> str:
    """The page of error codes and limits."""
    lines = [
        "# Errors and limits",
        "",
        "A code is stable: compare `error.code`, in a program and in its caller alike. With it, an error",
        "carries a sentence, mostly a hint that says what to do, the line in the tool's own text, `retryable`. Those marked * mean",
        "that nothing was done.",
        "",
        "| code | meaning |",
        "|---|---|",
    ]
    lines += [f"| `{code}`{' *' if code in DENIALS else ''} | {meaning} |" for code, (_, meaning) in CODES.items()]
    limits = RunLimits()
    lines += [
        "",
        "## Limits of one run",
        "",
        "The owner's rules may lower them. A program never sees a limit as an exception: the process ends.",
        "",
        "| limit | default | code |",
        "|---|---|---|",
        f"| own time, calls not counted | {limits.own_seconds:g} s | `time_limit` |",
        f"| whole run, calls included | {limits.run_seconds:g} s | `run_limit` |",
        f"| one call | {limits.call_seconds:g} s, or less as the tool says | `timeout` |",
        f"| processor time | {limits.cpu_seconds} s | `cpu_limit` |",
        f"| memory | {limits.memory_bytes // 2**20} MiB | `memory_limit` |",
        f"| result, and arguments of one call | {limits.result_bytes // 2**20} MiB | `result_limit` |",
        f"| what is printed | {limits.log_bytes // 2**20} MiB | `log_limit` |",
        f"| tool calls | {limits.calls:,} | `call_limit` |",
        f"| depth of recursion | {limits.recursion} | `recursion_limit` |",
        "",
    ]
    return "\n".join(lines)


def checks() -> str:
    """The page of the checker's rules, each with the paragraph that opens its module."""
    lines = [
        "# What is checked",
        "",
        "All findings come back at once, each with a place, a reason and the rewrite that would be accepted.",
        "",
    ]
    for module in pkgutil.iter_modules(rules.__path__):
        text = (importlib.import_module(f"{rules.__name__}.{module.name}").__doc__ or "").strip()
        lines += [f"## {module.name}", "", text, ""]
    return "\n".join(lines)


PAGES = {"errors.md": errors, "checks.md": checks}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")

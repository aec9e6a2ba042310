"""Collect the rules. Every module in `engine/check/rules` is a rule, so a new rule only needs a new file.

Each module contains ``CODES``, the codes of its findings, and ``check``, the rule. The order of the rules has no effect, because
the checker sorts the findings.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from albert_tools.engine.check import rules
from albert_tools.engine.check.rule import Rule

RULE_MODULES = tuple(import_module(f"{rules.__name__}.{m.name}") for m in pkgutil.iter_modules(rules.__path__))
RULES: tuple[Rule, ...] = tuple(module.check for module in RULE_MODULES)

"""The rules: every module of `engine/check/rules` that can be found there. A new rule is a new file, and no list grows.

Such a module has ``CODES``, the codes of the findings that it reports first, and ``check``, the rule itself. The order in
which rules run doesn't matter: the checker sorts what they find.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from albert_tools.engine.check import rules
from albert_tools.engine.check.rule import Rule

RULE_MODULES = tuple(import_module(f"{rules.__name__}.{m.name}") for m in pkgutil.iter_modules(rules.__path__))
RULES: tuple[Rule, ...] = tuple(module.check for module in RULE_MODULES)

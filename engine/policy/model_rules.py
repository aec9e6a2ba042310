"""Rules on the providers and models that `inference` may use, by the names that providers use. ``*`` matches any characters.

Without such a rule, `inference` may use every provider that the owner has configured. Other providers can't be reached.
"""

from __future__ import annotations

from albert_tools.engine.model.wildcards import Starred
from albert_tools.engine.policy.rule_kind import ListKey, NameRule, RuleKind, nonempty


def matches_name(name: str, pattern: str) -> bool:
    """Whether a pattern matches a name. The comparison is case-sensitive; ``*`` matches any characters."""
    return Starred.of(pattern).fits(name)


PROVIDERS = ListKey(
    "allowed_providers",
    nonempty("a provider"),
    256,
    "[local]",
    "the only providers that may be asked; `*` for any characters",
)
MODELS = ListKey("allowed_models", nonempty("a model"), 256, '["small-*"]', "the only models that may be asked")

_PROVIDERS = NameRule("provider", matches_name, PROVIDERS)
_MODELS = NameRule("model", matches_name, MODELS)


INFERENCE = RuleKind(
    (PROVIDERS, MODELS),
    {"provider": _PROVIDERS.judge_resource, "model": _MODELS.judge_resource},
    uses=frozenset({"provider", "model"}),
    not_for="asks no model",
)
